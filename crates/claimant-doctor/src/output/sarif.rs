//! SARIF 2.1.0, which code scanning reads.

use serde_json::{Value, json};

use crate::finding::{Finding, Level, Report};
use crate::{CATALOG, Check};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Returns the report as SARIF 2.1.0: findings of the level and worse; accepted ones as suppressed, with their reasons; what was not looked at as
/// notifications of the run.
pub fn sarif(report: &Report, level: Level) -> Value {
    let accepted = report.accepted.iter().filter(|accepted| accepted.finding.level >= level);
    let suppressed = accepted.map(|accepted| {
        let mut value = result(&accepted.finding);
        value["suppressions"] = json!([{"kind": "inSource", "justification": accepted.reason}]);
        value
    });
    let results: Vec<_> = report.from(level).map(result).chain(suppressed).collect();
    let notification =
        |line: &String| json!({"level": "warning", "message": {"text": format!("not looked at: {line}")}});
    let not_looked_at: Vec<_> = report.not_looked_at.iter().map(notification).collect();
    let rules: Vec<_> = CATALOG.iter().map(rule).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "claimant doctor",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "invocations": [{"executionSuccessful": true, "toolExecutionNotifications": not_looked_at}],
            "results": results,
        }],
    })
}

fn rule(check: &Check) -> Value {
    let help = format!("{} Fine: {}", check.why, check.fine);
    let mut rule = json!({
        "id": check.name,
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": check.why},
        "help": {"text": help},
    });
    if check.source.starts_with("https://") {
        rule["helpUri"] = check.source.into();
    }
    rule
}

fn result(finding: &Finding) -> Value {
    let Finding { check, level, place, what, fix } = finding;
    let level = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    let mut location = json!({"logicalLocations": [{"name": &*place.id, "kind": "resource"}]});
    if let Some(file) = &place.file {
        location["physicalLocation"] = json!({
            "artifactLocation": {"uri": uri(file)},
            "region": {"startLine": place.line.max(1)},
        });
    }
    json!({
        "ruleId": check.name,
        "ruleIndex": check.number - 1,
        "level": level,
        "message": {"text": format!("{}: {what}. {} Fix: {fix}", place.id, check.why)},
        "locations": [location],
    })
}

/// A path as a relative reference.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path).replace('\\', "/");
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}
