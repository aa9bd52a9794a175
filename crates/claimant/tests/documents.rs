//! The Rust code in the documents is code that is built, linted and run: each block names its file, and is in it.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::path::{Path, PathBuf};

/// The documents all of whose Rust code comes from files. The examples of others are doc tests.
const DOCUMENTS: [&str; 3] = ["README.md", "docs/your-own-consumer.md", "docs/testing.md"];

/// What stands before a block: the file that has it, from the top of the repository.
const FROM: (&str, &str) = ("<!-- from ", " -->");

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The blocks of Rust of a document: the file that each is from, if it says so, and its lines without the list's indentation.
fn blocks(document: &str) -> Vec<(Option<PathBuf>, Vec<String>)> {
    let (mut blocks, mut from) = (Vec::new(), None);
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let text = line.trim();
        if let Some(path) = text.strip_prefix(FROM.0).and_then(|rest| rest.strip_suffix(FROM.1)) {
            from = Some(PathBuf::from(path));
        } else if text.starts_with("```") {
            let indent = line.len() - line.trim_start().len();
            let body = lines.by_ref().take_while(|line| line.trim() != "```");
            let body: Vec<_> = body.map(|line| line.get(indent..).unwrap_or_default().to_owned()).collect();
            if text.starts_with("```rust") {
                blocks.push((from.take(), body));
            }
        } else if !text.is_empty() {
            from = None;
        }
    }
    blocks
}

/// Whether these lines stand together in the file, whatever its indentation is where they do.
fn has(file: &str, block: &[String]) -> bool {
    let file: Vec<_> = file.lines().collect();
    let same = |part: &[&str]| {
        let indent = part[0].len() - part[0].trim_start().len();
        part.iter().zip(block).all(|(line, wanted)| line.get(indent..).unwrap_or_default() == wanted)
    };
    file.windows(block.len()).any(same)
}

#[test]
fn code_in_the_documents_is_code_that_runs() {
    for document in DOCUMENTS {
        let blocks = blocks(&read(document));
        assert!(!blocks.is_empty(), "{document} shows how it is done");
        for (from, block) in blocks {
            let start = block.first().cloned().unwrap_or_default();
            let from = from.unwrap_or_else(|| panic!("{document}: the block at {start:?} says no `{}…`", FROM.0));
            let from = from.to_str().unwrap();
            assert!(has(&read(from), &block), "{document}: {from} has another text than the block at {start:?}");
        }
    }
}

#[test]
fn a_block_that_differs_is_seen() {
    let document = "- item\n\n  <!-- from a.rs -->\n  ```rust\n  let a = 1;\n  if a {\n      b();\n  ```\n\ntext\n```rust\nc\n```\n```sh\nd\n```\n";
    let found = blocks(document);
    assert_eq!(found[0], (Some(PathBuf::from("a.rs")), ["let a = 1;", "if a {", "    b();"].map(str::to_owned).into()));
    assert_eq!((found.len(), &found[1]), (2, &(None, vec!["c".to_owned()])));
    let block = &found[0].1;
    assert!(has("fn f() {\n    let a = 1;\n    if a {\n        b();\n    }\n}", block));
    for other in
        ["let a = 2;\nif a {\n    b();", "let a = 1;\nif a {\nb();", "let a = 1;\n\nif a {\n    b();", "let a = 1;"]
    {
        assert!(!has(other, block), "{other}");
    }
}
