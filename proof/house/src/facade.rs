//! What examples in doc comments import from `claimant`, the crate that users depend on. They are compiled against the crates beneath it, under
//! its name, so that only this sees a name that it does not have.

use std::collections::BTreeSet;

use syn::{Ident, Item, ItemUse, Visibility};

use crate::circles::flatten;
use crate::source::{Crate, File};

/// Returns what can be imported from the crate, by its path from there: `Consumer`, `dynamodb`, `dynamodb::LockTable`.
#[must_use]
pub fn names(facade: &Crate) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect(facade, &[], &facade.files[0].items, &mut names);
    names
}

fn collect(facade: &Crate, module: &[String], items: &[Item], names: &mut BTreeSet<String>) {
    let below = |name: String| module.iter().cloned().chain([name]).collect::<Vec<_>>();
    for item in items {
        match item {
            Item::Use(ItemUse { vis: Visibility::Public(_), tree, .. }) => {
                let mut leaves = Vec::new();
                flatten(tree, &mut Vec::new(), &mut leaves);
                names.extend(leaves.into_iter().map(|(name, _)| below(name).join("::")));
            }
            Item::Mod(child) if matches!(child.vis, Visibility::Public(_)) => {
                let path = below(child.ident.to_string());
                names.insert(path.join("::"));
                let file = facade.files.iter().find(|file| file.module == path);
                let items = child.content.as_ref().map(|(_, items)| items).or(file.map(|file| &file.items));
                collect(facade, &path, items.map_or(&[], Vec::as_slice), names);
            }
            item => names.extend(public(item).map(|name| below(name.to_string()).join("::"))),
        }
    }
}

/// Returns the name of an item that is written where it stands.
fn public(item: &Item) -> Option<&Ident> {
    let (vis, name) = match item {
        Item::Const(item) => (&item.vis, &item.ident),
        Item::Enum(item) => (&item.vis, &item.ident),
        Item::Fn(item) => (&item.vis, &item.sig.ident),
        Item::Struct(item) => (&item.vis, &item.ident),
        Item::Trait(item) => (&item.vis, &item.ident),
        Item::Type(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    matches!(vis, Visibility::Public(_)).then_some(name)
}

/// Returns what the examples of a file import from `claimant`, by its path from there, without the lines that readers do not see.
///
/// # Panics
///
/// Where such a line is no import.
#[must_use]
pub fn imports(file: &File) -> Vec<String> {
    let comments =
        file.text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("///").or(line.strip_prefix("//!")));
    let seen = comments.map(str::trim).filter(|line| *line != "#" && !line.starts_with("# "));
    let seen = seen.collect::<Vec<_>>().join("\n");
    let mut imports = Vec::new();
    for rest in seen.split("use claimant::").skip(1) {
        let tree = rest.split_once(';').map_or(rest, |(tree, _)| tree);
        let parsed = syn::parse_str::<ItemUse>(&format!("use {tree};"));
        let parsed = parsed.unwrap_or_else(|error| panic!("{}: use claimant::{tree}: {error}", file.path.display()));
        let mut leaves = Vec::new();
        flatten(&parsed.tree, &mut Vec::new(), &mut leaves);
        imports.extend(leaves.into_iter().map(|(_, path)| path.join("::")));
    }
    imports
}
