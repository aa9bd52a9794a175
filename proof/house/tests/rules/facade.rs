//! What is written of the crate `claimant`: in examples, documents, comments and templates.

use std::collections::BTreeSet;
use std::path::PathBuf;

use claimant_house::facade;
use claimant_house::source::{self, Crate, File};

use crate::files;

fn claimant(crates: &[Crate]) -> &Crate {
    crates.iter().find(|krate| krate.name == "claimant").expect("the crate is there")
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

pub(crate) fn examples_import_what_claimant_has(crates: &[Crate]) {
    let names = facade::names(claimant(crates));
    let mut found: Vec<_> = crates.iter().flat_map(|krate| missing(&names, &krate.files)).collect();
    let pages = files(&source::repository().join("docs"), "md");
    let pages = pages.into_iter().map(|path| std::fs::read_to_string(&path).map(|text| plain(path, text)));
    found.extend(missing(&names, &pages.collect::<Result<Vec<_>, _>>().expect("they are readable")));
    assert!(found.is_empty(), "{}", found.join("\n"));
    let text = "/// use claimant::{Key, MemoryStore, memory::{self, MemoryStore as Store}};\n/// # use claimant::Hidden;\n\
        //! use claimant::lambda::run;\n// use claimant::Comment;\n//! use claimant::settings::variables;\n";
    let page = "use claimant::Prose;\n```rust,ignore\nuse claimant::inbox::{\n    Nothing, Inbox};\n```\n```sh\nuse claimant::Shell;\n```\n";
    let files = [("a.rs", text), ("a.md", page)].map(|(path, text)| plain(path.into(), text.to_owned()));
    let wanted = ["a.rs: MemoryStore", "a.rs: settings::variables", "a.md: inbox::Nothing"];
    assert_eq!(missing(&names, &files), wanted.map(|fault| fault.replace(": ", ": there is no claimant::")));
}

/// Documents, comments and templates are compiled in part only.
pub(crate) fn texts_name_what_claimant_has(crates: &[Crate]) {
    let root = source::repository();
    let names = facade::names(claimant(crates));
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
    for path in below.chain(at_root) {
        let text = std::fs::read_to_string(&path).expect("it is readable");
        assert_eq!(facade::unknown(&names, &text), Vec::<&str>::new(), "of claimant, in {}", path.display());
    }
    let text =
        "`claimant::aws::is_connect(…)`, claimant::Clock::now, claimant::memory::{MemoryStore}; `claimant::retry`.";
    assert_eq!(facade::unknown(&names, text), ["aws::is_connect"]);
}

/// Who copies an example depends on `claimant` alone.
pub(crate) fn examples_name_no_crate_beneath_claimant(crates: &[Crate]) {
    let claimant = claimant(crates);
    let shows = |krate: &&Crate| {
        let path = krate.name.replace('-', "_") + "::";
        claimant.files.iter().any(|file| file.text.contains(&path))
    };
    let beneath: Vec<_> = crates.iter().filter(shows).flat_map(|krate| &krate.files).collect();
    assert!(beneath.len() > 100, "the crates are found");
    for file in beneath {
        assert_eq!(facade::beneath(file), Vec::<&str>::new(), "{}", file.path.display());
    }
    let text = "/// [`claimant_core::Key`]\n/// ```\n/// # use claimant_core as claimant;\n/// use claimant_core::Key;\n/// ```\n";
    assert_eq!(facade::beneath(&plain("a.rs".into(), text.to_owned())), ["use claimant_core::Key;"]);
}
