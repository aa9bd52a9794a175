//! The house rules, held to the crates that users depend on.

use std::path::Path;

use claimant_house::sizes::{self, Sized};
use claimant_house::source::Crate;
use claimant_house::{FIELDS_MAX, FILE_LINES_MAX, FUNCTION_LINES_MAX, PARAMETERS_MAX, circles, source, words};

/// Types with more fields, each with its reason.
const WIDE: &[(&str, &str)] = &[
    ("AttributeNames", "one name for each attribute of a record"),
    ("Record", "one field for each attribute that is stored"),
];

fn crates() -> Vec<Crate> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there");
    let crates = source::street(&root, "crates");
    assert!(crates.len() > 10, "the crates are there");
    crates
}

fn too_large(all: impl IntoIterator<Item = Sized>, most: usize) -> Vec<String> {
    let over = all.into_iter().filter(|one| one.size > most);
    over.map(|one| format!("{} has {}, and {most} are the most", one.what, one.size)).collect()
}

#[test]
fn no_files_of_a_crate_import_each_other() {
    for krate in crates() {
        assert_eq!(circles::of(&krate), Vec::<Vec<String>>::new(), "{}", krate.name);
    }
}

#[test]
fn files_functions_and_types_are_small() {
    let mut found = Vec::new();
    for file in crates().iter().flat_map(|krate| &krate.files) {
        let of = sizes::of(file);
        found.extend(too_large([Sized { what: file.path.display().to_string(), size: file.lines }], FILE_LINES_MAX));
        found.extend(too_large(of.functions, FUNCTION_LINES_MAX));
        found.extend(too_large(of.parameters, PARAMETERS_MAX));
        let fields = of.fields.into_iter().filter(|one| !WIDE.iter().any(|(name, _)| one.what.ends_with(name)));
        found.extend(too_large(fields, FIELDS_MAX));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_core_names_no_other_system() {
    let crates = crates();
    let named = |name: &str| crates.iter().find(|krate| krate.name == name).expect("the crate is there");
    let found = words::of(named("claimant-core"), words::SYSTEMS);
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(!words::of(named("claimant-dynamodb"), words::SYSTEMS).is_empty(), "the check finds words");
}
