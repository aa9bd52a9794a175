//! A `lib.rs` is a table of contents: each of its modules has a row, whose first cell names it. In `claimant`, whose table is for users,
//! each public one.

use std::collections::BTreeSet;

use syn::{Item, Visibility};

use crate::source::Crate;

/// Returns the modules that the table of a crate does not have.
#[must_use]
pub fn missing(krate: &Crate) -> Vec<String> {
    let root = &krate.files[0];
    let rows = root.text.lines().filter_map(|line| line.strip_prefix("//! | ")?.split('|').next());
    // What is between two backquotes is a name.
    let names = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let named: BTreeSet<_> = names.map(|name| name.trim_start_matches("mod@").trim_end_matches("()")).collect();
    let modules = root.items.iter().filter_map(|item| match item {
        Item::Mod(module) if krate.name != "claimant" || matches!(module.vis, Visibility::Public(_)) => {
            Some(module.ident.to_string())
        }
        _ => None,
    });
    modules.filter(|module| !named.contains(module.as_str())).collect()
}
