//! The documents hold: their Rust code is code that is built, linted and run, but for blocks marked `ignore`; their links lead somewhere,
//! and they have every page, setting and outcome, and the figures that were measured.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use claimant_core::report::OUTCOME_WORDS;

/// The documents all of whose Rust code comes from files. The examples of others are doc tests.
const DOCUMENTS: [&str; 5] =
    ["README.md", "docs/batches.md", "docs/routes.md", "docs/your-own-consumer.md", "docs/testing.md"];

/// What stands before a block: the file that has it, from the top of the repository.
const FROM: (&str, &str) = ("<!-- from ", " -->");

/// Directories that hold nothing that is written here, and parts of documents, whose links count where they are put together.
const LEFT_OUT: [&str; 3] = ["target", "node_modules", "proof/bench/src"];

/// The longest that README.md may be, and the last line on which its first example begins.
const README_LINES_MAX: usize = 200;
const README_EXAMPLE_LINE_MAX: usize = 40;

fn root() -> PathBuf {
    claimant_servers::repository().unwrap()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns the files below a directory whose names end in this, from the top of the repository.
fn files(below: &str, end: &str) -> Vec<PathBuf> {
    let (mut found, mut directories) = (Vec::new(), vec![PathBuf::from(below)]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(root().join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let (path, name) = (directory.join(entry.file_name()), entry.file_name().into_string().unwrap());
            let left_out = LEFT_OUT.iter().any(|out| name == *out || path.ends_with(out)) || name.starts_with('.');
            if entry.file_type().unwrap().is_dir() && !left_out {
                directories.push(path);
            } else if name.ends_with(end) && entry.file_type().unwrap().is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the lines of a document that are not in a fenced block.
fn text(document: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    document.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Returns where the links of a document lead, but those to other hosts.
fn links(document: &str) -> Vec<String> {
    let whole = text(document).collect::<Vec<_>>().join("\n");
    let targets = whole.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// Returns the anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(document: &str) -> BTreeSet<String> {
    let headings = text(document).filter(|line| line.starts_with('#'));
    let words = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    };
    words.map(|words| words.chars().filter_map(kept).collect()).collect()
}

/// Returns what the rows of the first table below this heading begin with, in code.
fn rows(document: &str, heading: &str) -> Vec<String> {
    let below = document.lines().skip_while(|line| *line != heading).skip_while(|line| !line.starts_with('|'));
    let table = below.take_while(|line| line.starts_with('|'));
    table.filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(first, _)| first.to_owned()).collect()
}

/// Returns the path without `.` and `..`, which here never lead out of the repository.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part.as_os_str().to_str() {
            Some("..") => drop(plain.pop()),
            Some(".") => {}
            _ => plain.push(part),
        }
        plain
    })
}

#[test]
fn links_lead_somewhere() {
    let mut faults = Vec::new();
    for path in files("", ".md") {
        let document = read(&path);
        for link in links(&document) {
            let (file, anchor) =
                link.split_once('#').map_or((link.as_str(), None), |(file, anchor)| (file, Some(anchor)));
            let target = if file.is_empty() { path.clone() } else { plain(&path.with_file_name(file)) };
            if !root().join(&target).exists() {
                faults.push(format!("{}: there is no {file}", path.display()));
            } else if anchor.is_some_and(|anchor| !anchors(&read(&target)).contains(anchor)) {
                faults.push(format!("{}: {} has no heading for {link}", path.display(), target.display()));
            } else if path.starts_with("docs") && !target.starts_with("docs") {
                faults.push(format!("{}: {link} leads out of the book, which then has a dead link", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_book_has_every_page_once() {
    let mut listed = links(&read("docs/SUMMARY.md"));
    listed.sort();
    let pages = files("docs", ".md").into_iter().map(|path| path.strip_prefix("docs").unwrap().display().to_string());
    let pages: Vec<_> = pages.filter(|page| page != "SUMMARY.md").collect();
    assert_eq!(listed, pages);
}

#[test]
fn the_settings_are_those_of_the_code() {
    let name = |text: &str| text.starts_with("CLAIMANT_") && text.len() > "CLAIMANT_".len();
    // In a program without a feature, its variables are still claimant's: all are listed here.
    let face = PathBuf::from("crates/claimant/src/settings.rs");
    let (list, mut read_by_code) = (read(&face), BTreeSet::new());
    let reads = |path: &&PathBuf| path.components().any(|part| part.as_os_str() == "src") && **path != face;
    for path in files("crates", ".rs").iter().filter(reads) {
        let source = read(path);
        let product = source.split("\nmod tests").next().unwrap();
        let texts =
            product.split('"').filter(|text| name(text) && text.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
        read_by_code.extend(texts.map(str::to_owned));
    }
    let documented: BTreeSet<_> =
        rows(&read("docs/settings.md"), "# Settings").into_iter().filter(|row| name(row)).collect();
    assert_eq!(documented, read_by_code, "docs/settings.md on the left, the crates on the right");
    let all = list.split("const ALL").nth(1).unwrap().split("];").next().unwrap().split('"').filter(|text| name(text));
    assert_eq!(
        documented,
        all.map(str::to_owned).collect(),
        "docs/settings.md on the left, {} on the right",
        face.display()
    );
}

/// The worker of an inbox is set up in code alone, so nothing else would list what can be set.
#[test]
fn the_settings_of_an_inboxs_worker_are_those_of_the_code() {
    let source = read("crates/claimant-inbox/src/worker.rs");
    let methods = source.split("    pub fn ").skip(1).map(|rest| rest.split_once(['(', '<']).unwrap());
    let methods: BTreeSet<_> = methods.map(|(name, _)| format!(".{name}(")).collect();
    let documented: BTreeSet<_> = rows(&read("docs/guarantees.md"), "## Later, from an inbox").into_iter().collect();
    assert!(methods.len() > 5, "the check finds methods");
    let missing: Vec<_> = methods.iter().filter(|name| documented.iter().all(|row| !row.starts_with(*name))).collect();
    assert!(missing.is_empty(), "docs/guarantees.md does not have {missing:?}");
}

#[test]
fn the_versions_of_other_crates_are_those_of_the_manifest() {
    let (page, manifest) = (read("docs/your-own-consumer.md"), read("Cargo.toml"));
    let table = page.split_once("| crate and version |").unwrap().1.split_once("\n\n").unwrap().0;
    let cells = table.lines().skip(2).flat_map(|row| row.split('|').nth(1).unwrap().split(", "));
    let named = cells.map(|cell| cell.trim().trim_start_matches('`').split_once("` ").unwrap());
    // The first text of an entry is its version, with features or without.
    let version = |name: &str| manifest.split_once(&format!("\n{name} = "))?.1.split('"').nth(1);
    let is_there = |(name, major): &(&str, &str)| version(name).is_some_and(|it| it.starts_with(&format!("{major}.")));
    let (found, wrong): (Vec<_>, Vec<_>) = named.partition(is_there);
    assert_eq!((found.len(), wrong), (13, vec![]), "Cargo.toml has other versions");
}

#[test]
fn the_outcomes_are_those_of_the_code() {
    let words = OUTCOME_WORDS.map(str::to_owned).into();
    for (document, heading) in
        [("docs/outcomes.md", "## What happens to each message"), ("docs/operating.md", "## Outcomes and what to do")]
    {
        let documented: BTreeSet<_> = rows(&read(document), heading).into_iter().collect();
        assert_eq!(documented, words, "{document} on the left, the code on the right");
    }
}

/// Returns what a document has in code, outside of blocks.
fn in_code(document: &str) -> Vec<String> {
    text(document).flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn files_and_tests_that_documents_name_exist() {
    const STREETS: [&str; 9] =
        ["claimant-core/", "crates/", "docs/", "examples/", "functions/", "infra/", "proof/", "scripts/", "tests/"];
    // What `claimant new welcome` writes, the example of the documents; and files of other repositories.
    const OTHERS: [&str; 3] = ["functions/welcome/", "tests/events/welcome", "tests/aws/"];
    let sources: Vec<_> = files("", ".rs").iter().map(read).collect();
    let functions = sources.iter().flat_map(|source| source.split("fn ").skip(1));
    let functions: BTreeSet<_> = functions.filter_map(|rest| rest.split_once('(')).map(|(name, _)| name).collect();
    let mut faults = Vec::new();
    for path in files("", ".md") {
        for name in in_code(&read(&path)) {
            let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "/_.-".contains(c));
            let is_path = plain && STREETS.iter().any(|street| name.starts_with(street));
            // Tests are called by sentences, which other names hardly are.
            let is_test = plain && !name.contains(['/', '.', '-']) && name.matches('_').count() >= 5;
            let other = OTHERS.iter().any(|other| name.starts_with(other));
            let exists = |below: &str| root().join(below).join(&name).exists();
            let missing = is_path && !exists("") && !exists("crates") || is_test && !functions.contains(name.as_str());
            if missing && !other {
                faults.push(format!("{}: there is no {name}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_readme_is_short_and_begins_with_code() {
    let readme = read("README.md");
    let lines = readme.lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines");
    let example = readme.lines().position(|line| line.starts_with("```rust")).unwrap() + 1;
    assert!(example <= README_EXAMPLE_LINE_MAX, "its first example begins on line {example}");
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
    for path in files("docs", ".md").into_iter().chain([PathBuf::from("README.md")]) {
        let (document, blocks) = (path.display().to_string(), blocks(&read(&path)));
        // Pages whose blocks are all from files; in the others, those that say so are.
        let is_all = DOCUMENTS.contains(&document.as_str());
        assert!(!is_all || !blocks.is_empty(), "{document} shows how it is done");
        for (from, block) in blocks {
            let start = block.first().cloned().unwrap_or_default();
            let Some(from) = from else {
                assert!(!is_all, "{document}: the block at {start:?} says no `{}…`", FROM.0);
                continue;
            };
            let from = from.to_str().unwrap();
            assert!(has(&read(from), &block), "{document}: {from} has another text than the block at {start:?}");
        }
    }
}

/// A page is built from files, or with the doc tests of `claimant`.
#[test]
fn no_page_with_code_is_left_out() {
    let sources: String = files("crates/claimant/src", ".rs").iter().map(read).collect();
    let mut tested = 0;
    for path in files("docs", ".md") {
        let has_code = read(&path).lines().any(|line| {
            let fence = line.trim_start();
            fence.starts_with("```rust") && fence != "```rust,ignore"
        });
        let page = path.display().to_string();
        if has_code && !DOCUMENTS.contains(&page.as_str()) {
            let test = format!("#[doc = include_str!(\"../../../{page}\")]");
            assert!(
                sources.lines().any(|line| line.trim() == test),
                "{page} has code that nothing builds: claimant/src/lib.rs lacks {test}"
            );
            tested += 1;
        }
    }
    assert!(tested > 5, "the check finds pages");
}

/// Returns the cells of the row that begins so, below these headings.
fn cells(document: &str, headings: [&str; 2], start: &str) -> Option<Vec<String>> {
    let [outer, inner] = headings;
    let below = document.lines().skip_while(|line| *line != outer).skip_while(|line| *line != inner).skip(1);
    let row = below.take_while(|line| !line.starts_with('#')).find(|line| line.starts_with(start))?;
    Some(row.split('|').map(|cell| cell.trim().to_owned()).collect())
}

/// Every contestant of the page, with what it works on at once, has a row in README.md; one that was not measured has none.
#[test]
fn the_readme_has_the_figures_of_the_last_run() {
    const WHAT: &str = "### 5 ms, fresh messages";
    const SHOWN: [(&str, &str); 7] = [
        ("claimant", "10"),
        ("loop by hand", "1"),
        ("bounded join by hand", "10"),
        ("Powertools (Python)", "1"),
        ("Powertools (TypeScript)", "all"),
        ("Powertools (Java 1.15)", "1"),
        ("sqs-consumer, own store", "10"),
    ];
    let (readme, performance) = (read("README.md"), read("docs/performance.md"));
    let titles = cells(&performance, ["## Ratios", WHAT], "| batch |").unwrap();
    let mut rows = Vec::new();
    for (who, at_once) in SHOWN {
        let mut wanted = format!("| {who} |");
        for batch in [10, 1000] {
            let of_claimant = cells(&performance, ["## Ratios", WHAT], &format!("| {batch} | 10 |")).unwrap();
            let start = format!("| {batch} | {who} | {at_once} |");
            let Some(figures) = cells(&performance, ["## Figures", WHAT], &start) else { continue };
            let ratio =
                titles.iter().position(|title| title == who).map(|column| format!(" ({})", of_claimant[column]));
            let (speed, requests, processor) = (&figures[4], &figures[5], &figures[8]);
            wanted += &format!(" {speed}{} | {requests} | {processor} |", ratio.unwrap_or_default());
        }
        if wanted != format!("| {who} |") {
            rows.push(wanted);
        }
    }
    assert!(rows.len() >= 5, "claimant, what is written by hand, and Powertools in two languages are always measured");
    rows.retain(|wanted| readme.lines().all(|line| line != wanted));
    assert!(rows.is_empty(), "README.md has not what docs/performance.md has:\n{}", rows.join("\n"));
}

/// Every store of the page has as many checks; their test holds the page.
#[test]
fn the_readme_counts_the_checks_that_stores_are_held_to() {
    let (readme, stores) = (read("README.md"), read("docs/stores.md"));
    let table = stores.split_once("<!-- clauses -->").unwrap().1.lines().skip_while(|line| !line.starts_with('|'));
    let rows = table.take_while(|line| line.starts_with('|')).skip(2);
    let totals: BTreeSet<_> = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(' ').next()).collect();
    let [total] = totals.into_iter().collect::<Vec<_>>()[..] else { panic!("the stores differ in their checks") };
    let (thousands, rest) = total.split_at(total.len() - 3);
    assert!(readme.contains(&format!("by {thousands},{rest} checks")), "README.md does not have the {total} checks");
}

/// Returns the rows of the table with these headings.
fn table<'a>(document: &'a str, headings: &str) -> Vec<Vec<&'a str>> {
    let rows = document.lines().skip_while(|line| *line != headings).skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Both tables of the page have every target by the name that it prints, and `make fuzz` runs its crate.
#[test]
fn the_page_has_every_fuzz_target() {
    let (page, makefile) = (read("docs/reliability.md"), read("Makefile"));
    let recipe = makefile.split_once("\nfuzz:").unwrap().1.split("\n\n").next().unwrap();
    let mut targets = BTreeSet::new();
    for path in files("crates", ".rs").iter().filter(|path| path.to_str().unwrap().contains("fuzz")) {
        let of_crate = path.iter().nth(1).unwrap().to_str().unwrap().strip_prefix("claimant-").unwrap();
        let source = read(path);
        let calls = source.split("hold(\"").skip(1).chain(source.split("holds(\"").skip(1));
        for call in calls {
            assert!(recipe.contains(&format!("-p claimant-{of_crate} ")), "make fuzz leaves {of_crate} out");
            targets.insert((of_crate.to_owned(), call.split('"').next().unwrap().to_owned()));
        }
    }
    assert!(targets.len() > 30, "the check finds targets");
    let rows = table(&page, "| crate | target | holds |");
    let listed = rows.iter().flat_map(|row| row[1].split("; ").map(|target| (row[0].to_owned(), target.to_owned())));
    assert_eq!(listed.collect::<BTreeSet<_>>(), targets, "docs/reliability.md on the left, the crates on the right");
    let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
    let figures = table(&page, "| target | executions |");
    let ran: BTreeSet<_> = figures.iter().map(|row| row[0]).collect();
    let names = targets.iter().map(|(_, target)| target.as_str()).collect();
    assert_eq!(ran, names, "the figures of docs/reliability.md on the left, the crates on the right");
    let total = page.split_once(&format!(" executions of {} targets", figures.len())).map(|(before, _)| before);
    let total = total.and_then(|before| before.split_whitespace().last()).map(number);
    assert_eq!(total, Some(figures.iter().map(|row| number(row[1])).sum()), "the figures and what they come to");
}

#[test]
fn links_and_headings_are_found() {
    let document = "# A `b`, c-d\n\n[x](y.md#z), [q\nr](#s) and [t](https://u)\n```sh\n# no [v](w)\n```\n## É_1\n";
    assert_eq!(links(document), ["y.md#z", "#s"]);
    assert_eq!(anchors(document), ["a-b-c-d", "é_1"].map(str::to_owned).into());
    assert_eq!(plain(Path::new("docs/./a/../../README.md")), Path::new("README.md"));
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
