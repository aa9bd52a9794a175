//! Workspaces around a new project.

use std::fs;
use std::path::{Path, PathBuf};

use claimant_doctor::rights::matches;

use super::insert;
use super::plan::Plan;
use super::project::toml_string;

/// Notes the workspaces above a new project whose `members` take it in, or its functions: cargo takes no workspace within another, and would
/// do nothing in theirs any more.
pub(super) fn check(plan: &mut Plan) {
    let root = plan.root().to_owned();
    for outer in root.ancestors().skip(1) {
        let manifest = outer.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap_or_default();
        let own = root.strip_prefix(outer).unwrap_or(&root);
        let is_below = |path: &&str| own.starts_with(path.split('/').filter(|part| *part != ".").collect::<PathBuf>());
        let members = insert::texts_of(&text, "workspace.members");
        let takes = |pattern: &&&str| [own, &own.join("functions/*")].iter().any(|path| is_member(pattern, path));
        let Some(pattern) = members.iter().find(takes) else { continue };
        // Of what is below a member that is named by its path, cargo excludes nothing.
        let is_named = members.iter().any(is_below);
        if !is_named && insert::texts_of(&text, "workspace.exclude").iter().any(is_below) {
            continue;
        }
        let exclude = match is_named {
            true => String::new(),
            false => format!("add {} to its `exclude`, or ", toml_string(&own.display().to_string())),
        };
        plan.fault(format!(
            "{}: `members` of the workspace has {}, which takes the new project in, and cargo takes no workspace within another: {exclude}choose another directory with --directory",
            manifest.display(),
            toml_string(pattern),
        ));
    }
}

/// Whether what is at this path below a workspace is a member by a pattern: `*` and `?` stand for parts of a name, `**` for directories.
fn is_member(pattern: &str, path: &Path) -> bool {
    let pattern: Vec<_> = pattern.split('/').filter(|part| !["", "."].contains(part)).collect();
    let path: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    let path: Vec<_> = path.iter().map(AsRef::as_ref).collect();
    are_members(&pattern, &path)
}

fn are_members(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=path.len()).any(|parts| are_members(rest, &path[parts..])),
        ([first, rest @ ..], [name, names @ ..]) => matches(first, name) && are_members(rest, names),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_those_that_cargo_takes() {
        for (pattern, path, is) in [
            ("services/*", "services/pay-mail", true),
            ("./services/pay-????/", "services/pay-mail", true),
            ("*", "services/pay-mail", false),
            ("services/*/functions/*", "services/pay-mail", false),
            ("**", "services/pay-mail", true),
            ("**/*-mail", "services/pay-mail", true),
            ("services/**/functions/*", "services/pay-mail/functions/pay-mail", true),
            ("services", "services/pay-mail", false),
        ] {
            assert_eq!(is_member(pattern, Path::new(path)), is, "{pattern} {path}");
        }
    }
}
