//! Stores held to the contract, and `docs/stores.md`, which shows what came of it.
//!
//! Each store has one row in each of the document's tables. Its test makes the rows anew and compares them with those in
//! the document; with `CLAIMANT_STORES=write` (`make stores`) it writes them there.

use std::sync::{Arc, Mutex};

use claimant_core::Store;
use claimant_servers::repository;
use claimant_testkit::contract::{self, Findings, STORE_CLAUSES, Trips};

/// The variable that has the rows written.
const WRITE_VARIABLE: &str = "CLAIMANT_STORES";

/// What `docs/stores.md` says of a store that no test can find out.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// What it is called there; its rows are found by it.
    pub name: &'static str,
    /// Whether a handler's writes can commit together with the completion.
    pub transactions: &'static str,
    /// What deletes records whose window is over.
    pub cleanup: &'static str,
    /// What a failover of the server can lose, and what comes of that.
    pub failover: &'static str,
}

/// Holds a store to the contract, by two instances with connections of their own, and `docs/stores.md` to what came of it.
///
/// # Panics
/// When a check does not hold, or the document does not show what was found.
pub async fn check<S: Store>(about: &About, [one, other]: [Arc<S>; 2]) {
    check_forms(about, [one.clone(), other], one).await;
}

/// As [`check`], of a store in two forms: one is held to the contract, and of the other, its plainest, the requests are counted.
///
/// # Panics
/// As [`check`].
pub async fn check_forms<S: Store>(about: &About, [one, other]: [Arc<S>; 2], counted: Arc<dyn Store>) {
    let findings = contract::check_two(one, other).await;
    println!("{}: {findings}", about.name);
    let trips = contract::trips(counted).await;
    let rows = [
        ("<!-- clauses -->", clauses(about, &findings)),
        ("<!-- requests -->", requests(about, trips)),
        ("<!-- life -->", life(about)),
    ];
    let path = repository().expect("a test runs in it").join("docs/stores.md");
    // Tests of one binary write one after the other.
    static DOCUMENT: Mutex<()> = Mutex::new(());
    let _writing = DOCUMENT.lock().expect("a test that panicked here has failed anyhow");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let wanted = rows.iter().fold(text.clone(), |text, (table, row)| with_row(&text, table, row));
    if std::env::var(WRITE_VARIABLE).is_ok_and(|value| value == "write") {
        std::fs::write(&path, wanted).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    } else {
        assert_eq!(text, wanted, "docs/stores.md does not show what was found on {}: run `make stores`", about.name);
    }
}

fn clauses(about: &About, findings: &Findings) -> String {
    let held = (1..=STORE_CLAUSES).map(|clause| findings.held(clause).to_string());
    row(about, held.chain([findings.total().to_string()]))
}

fn requests(about: &About, trips: Trips) -> String {
    let Trips {
        fresh,
        duplicate,
        takeover,
        renewal,
        settle,
        batch_claim,
        batch_settle,
        batch_duplicates,
        batch_looks,
        look,
    } = trips;
    let one = [fresh, duplicate, look, takeover, renewal, settle];
    let counts = one.into_iter().chain([batch_claim, batch_settle, batch_duplicates, batch_looks]);
    row(about, counts.map(|count| count.to_string()))
}

fn life(about: &About) -> String {
    row(about, [about.transactions, about.cleanup, about.failover].map(str::to_owned))
}

fn row(about: &About, cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = std::iter::once(about.name.to_owned()).chain(cells).collect();
    format!("| {} |", cells.join(" | "))
}

/// The document with this row in the table below this mark: instead of the store's old one, or as the last.
fn with_row(text: &str, mark: &str, row: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let after_mark =
        lines.iter().position(|line| *line == mark).unwrap_or_else(|| panic!("docs/stores.md lacks {mark}")) + 1;
    let table: Vec<usize> = (after_mark..lines.len())
        .skip_while(|n| !lines[*n].starts_with('|'))
        .take_while(|n| lines[*n].starts_with('|'))
        .collect();
    let name = |line: &str| line.split('|').nth(1).map(|cell| cell.trim().to_owned());
    match table.iter().find(|n| name(lines[**n]) == name(row)) {
        Some(old) => lines[*old] = row,
        None => lines.insert(table.last().unwrap_or_else(|| panic!("no table follows {mark}")) + 1, row),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::with_row;

    #[test]
    fn a_row_replaces_that_of_its_store_or_is_added() {
        let text = "<!-- a -->\n\n| store | n |\n| --- | --- |\n| x | 1 |\n\n<!-- b -->\n| store |\n| --- |\n| x |\n";
        let replaced =
            "<!-- a -->\n\n| store | n |\n| --- | --- |\n| x | 2 |\n\n<!-- b -->\n| store |\n| --- |\n| x |\n";
        let added = "<!-- a -->\n\n| store | n |\n| --- | --- |\n| x | 1 |\n| y | 2 |\n\n<!-- b -->\n| store |\n| --- |\n| x |\n";
        assert_eq!(with_row(text, "<!-- a -->", "| x | 2 |"), replaced);
        assert_eq!(with_row(text, "<!-- a -->", "| y | 2 |"), added);
        assert_eq!(with_row(text, "<!-- b -->", "| x |"), text);
    }
}
