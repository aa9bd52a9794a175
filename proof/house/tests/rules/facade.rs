//! What is written of the crate `claimant`: in examples, documents, comments and templates.

use std::collections::BTreeSet;
use std::path::PathBuf;

use claimant_house::facade;
use claimant_house::source::{self, Crate, File};

use crate::files;

fn named<'a>(crates: &'a [Crate], name: &str) -> &'a Crate {
    crates.iter().find(|krate| krate.name == name).expect("the crate is there")
}

/// A file that is not parsed.
fn plain(path: PathBuf, text: String) -> File {
    File { path, module: vec![], items: vec![], text, lines: 0 }
}

/// Returns what examples import from `claimant` that it does not have: `path: name`.
fn missing(names: &BTreeSet<String>, files: &[File]) -> Vec<String> {
    let imports = files.iter().flat_map(|file| facade::imports(file).into_iter().map(move |name| (file, name)));
    let missing = imports.filter(|(_, name)| !names.contains(name));
    missing.map(|(file, name)| format!("{}: there is no claimant::{name}", file.path.display())).collect()
}

pub(crate) fn examples_import_what_claimant_has(crates: &[Crate]) -> Vec<String> {
    let names = facade::names(named(crates, "claimant"));
    let mut found: Vec<_> = crates.iter().flat_map(|krate| missing(&names, &krate.files)).collect();
    let pages = files(&source::repository().join("docs"), "md");
    let pages = pages.into_iter().map(|path| std::fs::read_to_string(&path).map(|text| plain(path, text)));
    found.extend(missing(&names, &pages.collect::<Result<Vec<_>, _>>().expect("they are readable")));
    let text = "/// use claimant::{Key, MemoryStore, memory::{self, MemoryStore as Store}};\n/// # use claimant::Hidden;\n\
        //! use claimant::lambda::run;\n// use claimant::Comment;\n//! use claimant::settings::variables;\n";
    let page = "use claimant::Prose;\n```rust,ignore\nuse claimant::inbox::{\n    Nothing, Inbox};\n```\n```sh\nuse claimant::Shell;\n```\n";
    let files = [("a.rs", text), ("a.md", page)].map(|(path, text)| plain(path.into(), text.to_owned()));
    let wanted = ["a.rs: MemoryStore", "a.rs: settings::variables", "a.md: inbox::Nothing"];
    assert_eq!(missing(&names, &files), wanted.map(|fault| fault.replace(": ", ": there is no claimant::")));
    found
}

/// Documents, comments and templates are compiled in part only.
pub(crate) fn texts_name_what_claimant_has(crates: &[Crate]) -> Vec<String> {
    let root = source::repository();
    let names = facade::names(named(crates, "claimant"));
    let below = [
        ("crates", "rs"),
        ("crates", "md"),
        ("crates", "in"),
        ("docs", "md"),
        ("examples", "rs"),
        ("examples", "md"),
        ("functions", "rs"),
    ];
    let below = below.iter().flat_map(|(folder, extension)| files(&root.join(folder), extension));
    let at_root =
        std::fs::read_dir(&root).expect("a folder can be listed").map(|entry| entry.expect("an entry").path());
    let at_root = at_root.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut found = Vec::new();
    for path in below.chain(at_root) {
        let text = std::fs::read_to_string(&path).expect("it is readable");
        let unknown = facade::unknown(&names, &text).into_iter();
        found.extend(unknown.map(|name| format!("{}: there is no claimant::{name}", path.display())));
    }
    let text =
        "`claimant::aws::is_connect(…)`, claimant::Clock::now, claimant::memory::{MemoryStore}; `claimant::retry`.";
    assert_eq!(facade::unknown(&names, text), ["aws::is_connect"]);
    found
}

/// Who copies an example depends on `claimant` alone.
pub(crate) fn examples_name_no_crate_beneath_claimant(crates: &[Crate]) -> Vec<String> {
    let claimant = named(crates, "claimant");
    let shows = |krate: &&Crate| {
        let path = krate.name.replace('-', "_") + "::";
        claimant.files.iter().any(|file| file.text.contains(&path))
    };
    let beneath: Vec<_> = crates.iter().filter(shows).flat_map(|krate| &krate.files).collect();
    assert!(beneath.len() > 100, "the crates are found");
    let lines = beneath.into_iter().flat_map(|file| facade::beneath(file).into_iter().map(move |line| (file, line)));
    let found = lines
        .map(|(file, line)| format!("{}: an example names a crate beneath: {line}", file.path.display()))
        .collect();
    let text = "/// [`claimant_core::Key`]\n/// ```\n/// # use claimant_core as claimant;\n/// use claimant_core::Key;\n/// ```\n";
    assert_eq!(facade::beneath(&plain("a.rs".into(), text.to_owned())), ["use claimant_core::Key;"]);
    found
}

/// Envelopes and decoders: users reach them through `claimant`, and find them in their chapter, or the function that makes them.
pub(crate) fn what_opens_messages_is_in_claimant_and_its_chapter(crates: &[Crate]) -> Vec<String> {
    let names = facade::names(named(crates, "claimant"));
    let mut found = Vec::new();
    for (krate, module, page) in
        [("claimant-decode", "decode", "docs/decoders.md"), ("claimant-events", "envelope", "docs/envelopes.md")]
    {
        let text = std::fs::read_to_string(source::repository().join(page)).expect("it is readable");
        let words: BTreeSet<_> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let root = facade::names(named(crates, krate));
        let is_type = |name: &&String| name.starts_with(char::is_uppercase) && !name.contains([':', '_']);
        let types: Vec<_> = root.iter().filter(is_type).collect();
        assert!(types.len() > 2, "the check finds the types of {krate}");
        for name in types {
            let path = format!("{module}::{name}");
            if !names.contains(&path) {
                found.push(format!(
                    "there is no claimant::{path} (crates/claimant/src/{module}.rs), and {krate} has {name}"
                ));
            }
            // One that a function makes is known by that: `detect`.
            let maker = name.to_lowercase();
            let is_named = words.contains(name.as_str()) || root.contains(&maker) && words.contains(maker.as_str());
            if !is_named {
                found.push(format!("{page} does not name {name}"));
            }
        }
    }
    found
}
