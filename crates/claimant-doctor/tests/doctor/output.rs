//! The forms of a report, and the page of the book that lists the checks.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use claimant_doctor::{CATALOG, Level, Options, Report, json, read, run, sarif, text};

/// One error, one warning, one note and one accepted finding; a resource whose name would steer a terminal.
const TEMPLATE: &str = "Transform: AWS::Serverless-2016-10-31
Resources:
  \"Or\\eders\":
    Type: AWS::SQS::Queue
    Metadata: {claimant-doctor: {no-dead-letter-queue: old orders are of no use}}
    Properties: {VisibilityTimeout: 5}
  Work:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 60
      Architectures: [arm64]
      LoggingConfig: {LogFormat: JSON, LogGroup: shared}
      Events:
        Q:
          Type: SQS
          Properties: {Queue: !GetAtt \"Or\\eders.Arn\", ScalingConfig: {MaximumConcurrency: 2}}
";

fn report() -> Report {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a b.yaml");
    fs::write(&path, TEMPLATE).unwrap();
    let (system, _) = read(&path, &Options::default()).unwrap();
    run(&system)
}

#[test]
fn text_has_the_worst_first_and_explains_each_check_once() {
    let report = report();
    let shown = text(&report, Level::Note, 80);
    let heads: Vec<_> = shown.lines().filter(|line| line.contains(", check ")).collect();
    let places: Vec<_> = heads.iter().map(|head| head.split_once("yaml:").unwrap().1).collect();
    assert_eq!(
        places,
        [
            "3: error: Or\u{1b}ders (visibility-below-timeout, check 1)",
            "14: warning: WorkQ (no-partial-batch-response, check 3)",
            "3: note: Or\u{1b}ders (missing-alarms, check 30)",
        ],
        "{shown}"
    );
    assert!(shown.lines().all(|line| line.chars().count() <= 80 || line.contains(", check ") || line.contains("http")));
    assert!(shown.contains("1 error, 1 warning, 1 note, 1 accepted"), "{shown}");
    let errors = text(&report, Level::Error, 80);
    assert!(errors.contains("2 of these not shown (--level note)") && !errors.contains("check 3)"), "{errors}");
}

#[test]
fn json_and_sarif_have_the_same_findings() {
    let report = report();
    let (plain, scanned) = (json(&report, Level::Warning), sarif(&report, Level::Note));
    assert_eq!(plain["findings"].as_array().unwrap().len(), 2);
    assert_eq!(plain["accepted"][0]["reason"], "old orders are of no use");
    let of_costs =
        plain["checks"].as_array().unwrap().iter().find(|check| check["check"] == "defaults-that-cost").unwrap();
    assert_eq!(of_costs["unknown"], 1, "the group of its logs is elsewhere");
    assert_eq!(scanned["version"], "2.1.0");
    let run = &scanned["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), CATALOG.len());
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 4, "three, and one that is suppressed");
    for result in results {
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        let location = &result["locations"][0]["physicalLocation"];
        assert!(location["region"]["startLine"].as_u64().unwrap() > 1, "{result}");
        assert!(location["artifactLocation"]["uri"].as_str().unwrap().ends_with("a%20b.yaml"), "{result}");
    }
    assert_eq!(results[3]["suppressions"][0]["justification"], "old orders are of no use");
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], true);
    assert_eq!(invocation["toolExecutionNotifications"], serde_json::json!([]));
}

/// Whoever reads the file alone takes what is not in it for mended.
#[test]
fn sarif_has_what_was_not_looked_at() {
    let report = Report { not_looked_at: vec!["GetQueueUrl of orders: AccessDenied".to_owned()], ..report() };
    let notified = &sarif(&report, Level::Error)["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    assert_eq!(notified.as_array().unwrap().len(), 1);
    assert_eq!(notified[0]["level"], "warning");
    assert_eq!(notified[0]["message"]["text"], "not looked at: GetQueueUrl of orders: AccessDenied");
}

#[test]
fn the_book_lists_the_checks() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let page = fs::read_to_string(page).unwrap();
    let rows: Vec<_> = CATALOG
        .iter()
        .map(|check| format!("| {} | `{}` | {} | {} |", check.number, check.name, check.title, check.fine))
        .collect();
    let is_check = |line: &&str| line.split(" | ").nth(1).is_some_and(|name| name.starts_with('`'));
    let is_row = |line: &&str| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit() && is_check(line);
    let listed: Vec<_> = page.lines().filter(is_row).collect();
    let (listed, rows) = (BTreeSet::from_iter(listed), BTreeSet::from_iter(rows.iter().map(String::as_str)));
    let (lacks, other): (Vec<_>, Vec<_>) = (rows.difference(&listed).collect(), listed.difference(&rows).collect());
    assert!(
        listed == rows,
        "docs/doctor.md lacks these rows: {lacks:#?}\nand has these, which no check is: {other:#?}"
    );
}

#[test]
fn what_a_finding_refers_to_is_there_from_wherever_it_is_read() {
    for check in &CATALOG {
        let see = check.see();
        assert!(see.starts_with("https://") || Path::new(&see).is_absolute() && Path::new(&see).is_file(), "{see}");
    }
}
