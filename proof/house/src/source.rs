//! A crate's files, parsed. Test modules (`#[cfg(test)]`) are left out everywhere.

use std::fs;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned as _;
use syn::{Attribute, Item};

/// A crate that is read.
pub struct Crate {
    /// The package's name.
    pub name: String,
    /// Its files, the crate's root first.
    pub files: Vec<File>,
}

/// One file of a crate: a module, with the modules that are written inside it.
pub struct File {
    /// Where it is, from the repository's root.
    pub path: PathBuf,
    /// The names of its module from the crate's root: empty for the root.
    pub module: Vec<String>,
    /// Its items, without tests.
    pub items: Vec<Item>,
    /// Its text, where each line of a test is empty.
    pub text: String,
    /// How many lines it has, without tests.
    pub lines: usize,
}

/// Returns the repository's root: of the copy in which cargo runs this, whichever it was built in.
///
/// # Panics
///
/// Where cargo does not run this.
#[must_use]
pub fn repository() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs this");
    Path::new(&package).join("../..").canonicalize().expect("the repository is there")
}

/// Reads every package in a folder of the repository, in the order of their names.
///
/// # Panics
///
/// Where a file cannot be read or parsed: this is a check, and cannot go on.
#[must_use]
pub fn street(root: &Path, street: &str) -> Vec<Crate> {
    let entries = fs::read_dir(root.join(street)).expect("the folder is there");
    let mut packages: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    packages.retain(|path| path.join("Cargo.toml").is_file());
    packages.sort();
    packages.iter().map(|package| read(root, package)).collect()
}

fn read(root: &Path, package: &Path) -> Crate {
    let name = package.file_name().expect("a folder has a name").to_string_lossy().into_owned();
    let roots = ["src/lib.rs", "src/main.rs"].map(|file| package.join(file));
    let start = roots.iter().find(|file| file.is_file()).expect("a crate has a lib.rs or a main.rs");
    let mut files = Vec::new();
    read_file(root, start, Vec::new(), &mut files);
    Crate { name, files }
}

fn read_file(root: &Path, path: &Path, module: Vec<String>, files: &mut Vec<File>) {
    let mut text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (tests, items): (Vec<_>, Vec<_>) = parsed.items.into_iter().partition(|item| is_test(attributes(item)));
    let mut lines: Vec<&str> = text.lines().collect();
    for test in &tests {
        let span = test.span();
        lines[span.start().line - 1..span.end().line].fill("");
    }
    let tested: usize = tests.iter().map(|test| test.span().end().line + 1 - test.span().start().line).sum();
    let count = lines.len() - tested;
    text = lines.join("\n");
    let is_root = matches!(path.file_name().and_then(|name| name.to_str()), Some("lib.rs" | "main.rs" | "mod.rs"));
    let folder = if is_root { path.with_file_name("") } else { path.with_extension("") };
    let children: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            Item::Mod(child) if child.content.is_none() => Some(child.ident.to_string()),
            _ => None,
        })
        .collect();
    let shown = path.strip_prefix(root).unwrap_or(path).to_path_buf();
    files.push(File { path: shown, module: module.clone(), items, text, lines: count });
    for child in children {
        let flat = folder.join(format!("{child}.rs"));
        let path = if flat.is_file() { flat } else { folder.join(&child).join("mod.rs") };
        let module = module.iter().cloned().chain([child]).collect();
        read_file(root, &path, module, files);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item is there in tests only: by `cfg(test)` or `cfg(doctest)`, alone or as the first of `all`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let condition = attribute.meta.require_list().map(|list| list.tokens.to_string().replace(' ', ""));
        condition.is_ok_and(|condition| {
            let first = condition.strip_prefix("all(").unwrap_or(&condition).split(',').next();
            matches!(first, Some("test" | "doctest"))
        })
    })
}
