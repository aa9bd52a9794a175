//! Files of one crate that import each other, directly or through others.
//!
//! An import is a `use`, or a path of more than one name in code. Names that a module re-exports count as those of the file
//! that has them, so that a table of contents (`lib.rs`) makes no circle.

use std::collections::{BTreeSet, HashMap};

use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse, Path, UseTree};

use crate::source::{Crate, File};

/// Returns each circle: the modules of files that all import each other.
#[must_use]
pub fn of(krate: &Crate) -> Vec<Vec<String>> {
    let modules: Vec<Module<'_>> = krate.files.iter().map(Module::read).collect();
    let by_name: HashMap<&[String], usize> =
        krate.files.iter().enumerate().map(|(at, file)| (file.module.as_slice(), at)).collect();
    let edges: Vec<BTreeSet<usize>> = (0..modules.len())
        .map(|from| {
            let paths = modules[from].imports.iter();
            let targets = paths.filter_map(|path| find(&modules, &by_name, from, path, 0));
            targets.filter(|to| *to != from).collect()
        })
        .collect();
    let reach: Vec<BTreeSet<usize>> = (0..edges.len()).map(|from| reachable(&edges, from)).collect();
    let mut circles = BTreeSet::new();
    for from in 0..edges.len() {
        if reach[from].contains(&from) {
            let circle: Vec<usize> = reach[from].iter().copied().filter(|to| reach[*to].contains(&from)).collect();
            circles.insert(circle);
        }
    }
    let name = |at: usize| match krate.files[at].module.join("::") {
        root if root.is_empty() => "the root".to_owned(),
        name => name,
    };
    circles.into_iter().map(|circle| circle.into_iter().map(name).collect()).collect()
}

/// What a file imports and re-exports: paths as they are written.
struct Module<'a> {
    file: &'a File,
    imports: Vec<Vec<String>>,
    /// Names that it re-exports, each with its path; `*` for a glob.
    exports: Vec<(String, Vec<String>)>,
}

impl<'a> Module<'a> {
    fn read(file: &'a File) -> Self {
        let mut module = Self { file, imports: Vec::new(), exports: Vec::new() };
        file.items.iter().for_each(|item| module.visit_item(item));
        module
    }

    fn has_child(&self, name: &str) -> bool {
        self.file.items.iter().any(|item| matches!(item, Item::Mod(child) if child.ident == name))
    }
}

impl<'ast> Visit<'ast> for Module<'_> {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let mut leaves = Vec::new();
        flatten(&item.tree, &mut Vec::new(), &mut leaves);
        for (name, path) in leaves {
            // A re-export imports nothing that the file's own code uses.
            if matches!(item.vis, syn::Visibility::Inherited) {
                self.imports.push(path);
            } else {
                self.exports.push((name, path));
            }
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.segments.len() > 1 {
            self.imports.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        // A module inside the file has other `super` and `self`; those of the house have none of them.
        visit::visit_item_mod(self, item);
    }
}

/// Adds what an import names, each with its path; a glob with the path before it.
pub(crate) fn flatten(tree: &UseTree, before: &mut Vec<String>, leaves: &mut Vec<(String, Vec<String>)>) {
    let mut leaf = |name: String, last: Option<String>| {
        leaves.push((name, before.iter().cloned().chain(last).collect()));
    };
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, leaves);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => leaf(before.last().cloned().unwrap_or_default(), None),
        UseTree::Name(name) => leaf(name.ident.to_string(), Some(name.ident.to_string())),
        UseTree::Rename(rename) => leaf(rename.rename.to_string(), Some(rename.ident.to_string())),
        UseTree::Glob(_) => leaf("*".to_owned(), None),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, leaves)),
    }
}

/// Finds the file that has what a path names; `None` where that is in no file of the crate.
fn find(
    modules: &[Module<'_>],
    by_name: &HashMap<&[String], usize>,
    from: usize,
    path: &[String],
    depth: usize,
) -> Option<usize> {
    let here = &modules[from].file.module;
    let (first, rest) = path.split_first()?;
    let mut at: Vec<String> = match first.as_str() {
        "crate" => Vec::new(),
        "self" => here.clone(),
        "super" => here.split_last()?.1.to_vec(),
        child if modules[from].has_child(child) => here.iter().cloned().chain([child.to_owned()]).collect(),
        _ => return None,
    };
    let mut rest = rest;
    while let Some((next, after)) = rest.split_first() {
        if next == "super" {
            at.pop()?;
        } else {
            let inner: Vec<String> = at.iter().cloned().chain([next.clone()]).collect();
            if !by_name.contains_key(inner.as_slice()) {
                break;
            }
            at = inner;
        }
        rest = after;
    }
    // A module that is written inside a file has no file of its own.
    let found = by_name.get(at.as_slice()).or_else(|| by_name.get(at.split_last()?.1)).copied()?;
    let Some(name) = rest.first() else { return Some(found) };
    let export = modules[found].exports.iter().find(|(exported, _)| exported == name);
    match export {
        Some((_, path)) if depth < 8 => find(modules, by_name, found, path, depth + 1).or(Some(found)),
        _ => Some(found),
    }
}

fn reachable(edges: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(at) = next.pop() {
        next.extend(edges[at].iter().filter(|to| seen.insert(**to)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn krate(files: &[(&str, &str)]) -> Crate {
        let file = |(module, text): &(&str, &str)| File {
            path: module.into(),
            module: module.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            items: syn::parse_file(text).expect("it is Rust").items,
            text: (*text).to_owned(),
            lines: text.lines().count(),
        };
        Crate { name: "c".to_owned(), files: files.iter().map(file).collect() }
    }

    #[test]
    fn circles_are_found_and_tables_of_contents_are_none() {
        let root = ("", "mod a; mod b; mod c; pub use a::A; pub use c::*;");
        let rows: [(&str, &str, &str, usize); 6] = [
            ("pub struct A;", "use crate::a::A;", "", 0),
            ("use crate::b::B; pub struct A;", "use crate::A; pub struct B;", "", 1),
            ("fn f() { crate::b::g() }", "fn g() { super::c::h() }", "fn h() { super::a::f() }", 1),
            ("fn f(b: crate::b::B) {}", "pub struct B;", "use crate::{a, b};", 0),
            ("use super::b as other;", "use crate::a::{self, A};", "", 1),
            ("", "use std::a::A;", "use a::A;", 0),
        ];
        for (a, b, c, wanted) in rows {
            let found = of(&krate(&[root, ("a", a), ("b", b), ("c", c)]));
            assert_eq!(found.len(), wanted, "{a} | {b} | {c}: {found:?}");
        }
    }
}
