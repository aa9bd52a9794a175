//! Lines of files and functions, fields of types, parameters of functions.

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Block, Fields, FnArg, ImplItemFn, ItemFn, ItemStruct, Signature, TraitItemFn, Variant};

use crate::source::File;

/// Something with a size.
#[derive(Debug)]
pub struct Sized {
    /// What it is, and where: `path:line name`.
    pub what: String,
    /// How large it is.
    pub size: usize,
}

/// The sizes in one file.
#[derive(Debug, Default)]
pub struct Sizes {
    /// Lines of functions.
    pub functions: Vec<Sized>,
    /// Fields of structs and of variants.
    pub fields: Vec<Sized>,
    /// Parameters of functions, without `self`.
    pub parameters: Vec<Sized>,
}

/// Measures a file.
#[must_use]
pub fn of(file: &File) -> Sizes {
    let mut reader = Reader { path: file.path.display().to_string(), sizes: Sizes::default() };
    file.items.iter().for_each(|item| reader.visit_item(item));
    reader.sizes
}

struct Reader {
    path: String,
    sizes: Sizes,
}

impl Reader {
    fn named(&self, name: &syn::Ident, size: usize) -> Sized {
        Sized { what: format!("{}:{} {name}", self.path, name.span().start().line), size }
    }

    fn function(&mut self, signature: &Signature, body: Option<&Block>) {
        let parameters = signature.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_))).count();
        self.sizes.parameters.push(self.named(&signature.ident, parameters));
        if let Some(body) = body {
            let lines = body.span().end().line + 1 - signature.span().start().line;
            self.sizes.functions.push(self.named(&signature.ident, lines));
        }
    }

    fn fields(&mut self, name: &syn::Ident, fields: &Fields) {
        self.sizes.fields.push(self.named(name, fields.len()));
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.sig, Some(&item.block));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.sig, Some(&item.block));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.function(&item.sig, item.default.as_ref());
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.fields(&item.ident, &item.fields);
        visit::visit_item_struct(self, item);
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        self.fields(&variant.ident, &variant.fields);
        visit::visit_variant(self, variant);
    }
}
