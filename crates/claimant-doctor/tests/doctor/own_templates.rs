//! Nothing is found in the repository's own template: neither an error nor a note.

use std::path::Path;

use claimant_doctor::{Level, Options, read, run, text};

fn check(parameters: &[(&str, &str)], accepted: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../template.yaml");
    let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = Options { parameters, region: Some("eu-west-1".to_owned()), account: None };
    let (system, not_looked_at) = read(&path, &options).unwrap();
    let report = run(&system);
    assert!(report.findings.is_empty(), "{}", text(&report, Level::Note, 120));
    assert_eq!(not_looked_at, [""; 0]);
    assert_eq!(report.accepted.len(), accepted, "{:?}", report.accepted);
    let unknown: Vec<_> = report.tallies.iter().filter(|(_, tally)| tally.unknown > 0).collect();
    assert!(unknown.is_empty(), "the template answers all questions: {unknown:?}");
}

#[test]
fn nothing_is_found_in_the_template() {
    check(&[], 2);
}

#[test]
fn nothing_is_found_in_the_template_with_inventory() {
    check(&[("DatabaseUrl", "postgres://user:password@host/database")], 2);
}
