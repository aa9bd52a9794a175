//! What examples import from `claimant`, the crate that users depend on, and what documents, comments and templates name of it. Examples in doc
//! comments are compiled against the crates beneath it, under its name, and some of the pages' are not compiled, so that only this sees a name
//! that it does not have; the others are not compiled at all.

use std::collections::BTreeSet;

use syn::{Ident, Item, ItemUse, Visibility};

use crate::circles::flatten;
use crate::source::{Crate, File};

/// What a failed direct invocation is called by, with `claimant::` before it: these are no paths.
const ERROR_TYPES: [&str; 7] = ["busy", "conflict", "error", "not_started", "parked", "rejected", "retry"];

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

/// Returns the doc comments of a file, or the blocks of Rust of a page, without the lines of examples that readers do not see.
fn seen(file: &File) -> Vec<&str> {
    let lines = if file.path.extension().is_some_and(|extension| extension == "md") { blocks } else { comments };
    lines(&file.text).into_iter().map(str::trim).filter(|line| *line != "#" && !line.starts_with("# ")).collect()
}

/// Returns the lines of a file's examples that name a crate beneath `claimant`.
#[must_use]
pub fn beneath(file: &File) -> Vec<&str> {
    let is_small = |c: char| c.is_ascii_lowercase();
    let names =
        |line: &str| line.split("claimant_").skip(1).any(|rest| rest.trim_start_matches(is_small).starts_with("::"));
    // What is between two fences is an example.
    let mut is_example = false;
    let mut lines = seen(file);
    lines.retain(|line| {
        is_example ^= line.starts_with("```");
        is_example && names(line)
    });
    lines
}

/// Returns what a text names of `claimant` that it does not have, in code and in prose, by its path from there. What is imported in a group is
/// not looked into.
#[must_use]
pub fn unknown<'a>(names: &BTreeSet<String>, text: &'a str) -> Vec<&'a str> {
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let paths = text.split("claimant::").skip(1);
    let paths = paths.map(|rest| rest[..rest.find(|c| !is_of_path(c)).unwrap_or(rest.len())].trim_end_matches(':'));
    // What a type has is the compiler's to know: `Key::new`.
    let is_type = |path: &str| path.rsplit("::").next().is_some_and(|name| name.starts_with(char::is_uppercase));
    let of_type = |path: &str| path.rsplit_once("::").is_some_and(|(of, _)| is_type(of) && names.contains(of));
    let unknown =
        |path: &&str| !path.is_empty() && !names.contains(*path) && !of_type(path) && !ERROR_TYPES.contains(path);
    paths.filter(unknown).collect()
}

/// Returns what the examples of a file or page import from `claimant`, by its path from there, without the lines that readers do not see.
///
/// # Panics
///
/// Where such a line is no import.
#[must_use]
pub fn imports(file: &File) -> Vec<String> {
    let seen = seen(file).join("\n");
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

/// Returns the lines of the doc comments of a file.
fn comments(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim_start);
    lines.filter_map(|line| line.strip_prefix("///").or(line.strip_prefix("//!"))).collect()
}

/// Returns the lines of the blocks of Rust of a page.
fn blocks(page: &str) -> Vec<&str> {
    let (mut lines, mut of_rust) = (Vec::new(), false);
    for line in page.lines() {
        match line.trim_start().strip_prefix("```") {
            Some(language) => of_rust = language.starts_with("rust"),
            None if of_rust => lines.push(line),
            None => {}
        }
    }
    lines
}
