//! What `claimant cost` makes of lock tables: capacity that does not scale, replicas, several tables.

use serde_json::Value;

use super::templates::{ONE, TWO, limit};
use super::{cost, file, json, lines};

const KEY: &str = "KeySchema: [{AttributeName: id, KeyType: HASH}]";

/// The template with a table of these properties, which its functions use.
fn with_table(template: &str, kind: &str, properties: &str) -> String {
    let template = template.replace("CLAIMANT_TABLE: x", "CLAIMANT_TABLE: !Ref Locks");
    format!("{template}  Locks: {{Type: AWS::DynamoDB::{kind}, Properties: {{{KEY}, {properties}}}}}\n")
}

fn provisioned(units: &str) -> String {
    format!("ProvisionedThroughput: {{ReadCapacityUnits: {units}, WriteCapacityUnits: {units}}}")
}

fn bill(template: &str, more: &[&str]) -> Value {
    json(&[&["--template", &file("table.yaml", template)], more].concat())
}

fn has(bill: &Value, at: &str, what: &str) -> bool {
    let found = if at == "not_counted" { &bill[at] } else { &bill["functions"][0][at] };
    found.to_string().contains(what)
}

/// What is provisioned without scaling is paid whether it is used or not, and there is no more.
#[test]
fn capacity_that_does_not_scale_is_what_is_paid_and_a_limit() {
    let million = ["--per-day", "1000000", "--filled", "10"];
    let fixed = bill(&with_table(ONE, "Table", &provisioned("5")), &million);
    let quantity = |bill: &Value, what: &str| lines(bill).iter().find(|line| line.0 == what).map(|line| line.1);
    assert_eq!(quantity(&fixed, "Write capacity"), Some(3_600.0));
    assert_eq!(quantity(&fixed, "Read capacity"), Some(3_600.0));
    assert_eq!(quantity(&fixed, "Alarms of auto scaling"), None);
    let (needed, most) = limit(&fixed, "write units a second, provisioned");
    assert!((46.0..47.0).contains(&needed) && (most - 5.0).abs() < 1e-6, "{needed} of {most}");
    assert_eq!(fixed["functions"][0]["store"], "DynamoDB provisioned, without scaling");
    let idle = bill(&with_table(ONE, "Table", &provisioned("1000")), &["--per-day", "1000"]);
    assert!(idle["usd"].as_f64().unwrap() > 500.0 && has(&idle, "advice", "PAY_PER_REQUEST"), "{idle}");
    // Two functions of one table.
    let two = with_table(TWO, "Table", &provisioned("1000"));
    let two = bill(&two, &["--per-day", "1000", "--parameter", "Env=prod"]);
    assert_eq!(
        (&two["shared"][0]["what"], &two["shared"][0]["quantity"]),
        (&"Write capacity".into(), &720_000.0.into())
    );
    assert!(has(&two, "assumed", "the capacity of Locks, and what another BillingMode saves: all of it"), "{two}");
    let template = file("fixed.yaml", &with_table(ONE, "Table", &provisioned("5")));
    let chart = file("fixed.svg", "");
    cost(&["--template", &template, "--per-day", "1000", "--chart", &chart]);
    assert!(std::fs::read_to_string(chart).unwrap().contains("without scaling, as if it were enough<"));
    // What a parameter has is not known; what a target scales is not fixed.
    let open = with_table(ONE, "Table", &provisioned("!Ref AWS::StackId"));
    let open = bill(&open, &million);
    let assumed = "as if it scaled, with alarms; nothing scales it, and its units are not known (--parameter)";
    assert!(has(&open, "assumed", assumed), "{open}");
    let simple = with_table(ONE, "Table", &provisioned("5")).replace("DynamoDB::Table", "Serverless::SimpleTable");
    for (template, scaled, alarms) in [
        (&with_table(ONE, "Table", &provisioned("5")), "Write", Some(8.0)),
        (&with_table(ONE, "Table", &provisioned("5")), "Read", None),
        (&simple, "Write", Some(8.0)),
        (&simple, "Read", None),
    ] {
        let properties = format!(
            "ServiceNamespace: dynamodb, ScalableDimension: 'dynamodb:table:{scaled}CapacityUnits', ResourceId: !Sub 'table/${{Locks}}'"
        );
        let target =
            format!("  T: {{Type: AWS::ApplicationAutoScaling::ScalableTarget, Properties: {{{properties}}}}}\n");
        let found = bill(&format!("{template}{target}"), &million);
        assert_eq!(quantity(&found, "Alarms of auto scaling"), alarms, "{scaled}: {found}");
        assert_eq!(found["functions"][0]["store"] == fixed["functions"][0]["store"], alarms.is_none(), "{found}");
    }
    let most = with_table(ONE, "Table", &provisioned(&u64::MAX.to_string()))
        .replace("CLAIMANT_TABLE: !Ref Locks", "CLAIMANT_TABLE: !Sub '${Locks},other'");
    assert!(limit(&bill(&most, &million), "write units a second, provisioned").1 > 1.8e19);
}

#[test]
fn a_maximum_of_a_table_on_demand_is_a_limit() {
    let with = |kind: &str, maximum: &str| {
        let properties = format!("BillingMode: PAY_PER_REQUEST, {maximum}");
        bill(&with_table(ONE, kind, &properties), &["--per-day", "1000000"])
    };
    for (kind, name) in [("Table", "OnDemandThroughput"), ("GlobalTable", "WriteOnDemandThroughputSettings")] {
        let found = with(kind, &format!("{name}: {{MaxWriteRequestUnits: 10}}"));
        assert!((limit(&found, "write units a second, as set").1 - 10.0).abs() < 1e-6, "{found}");
    }
    assert!(!has(&with("Table", "OnDemandThroughput: {MaxWriteRequestUnits: -1}"), "limits", "as set"));
}

/// Each Region of a global table takes all writes, and keeps all records.
#[test]
fn replicas_are_paid_for_each() {
    let regions = |regions: &[&str]| {
        let all: Vec<_> = regions
            .iter()
            .map(|region| format!("{{Region: {region}, TableClass: STANDARD_INFREQUENT_ACCESS}}"))
            .collect();
        let properties = format!("BillingMode: PAY_PER_REQUEST, Replicas: [{}]", all.join(", "));
        bill(&with_table(ONE, "GlobalTable", &properties), &["--per-day", "1000000", "--filled", "10"])
    };
    let (one, three) = (regions(&["eu-west-1"]), regions(&["eu-west-1", "eu-north-1", "us-east-1"]));
    for what in ["Write units", "Storage"] {
        let of = |bill: &Value| lines(bill).iter().find(|line| line.0 == what).unwrap().1;
        assert!((of(&three) / of(&one) - 3.0).abs() < 0.01, "{what}: {three}");
    }
    assert!(has(&three, "assumed", "3 replicas: each Region has these prices") && !has(&one, "assumed", "replicas:"));
    assert!(has(&one, "not_counted", "STANDARD_INFREQUENT_ACCESS"), "{one}");
    // Of one that may be AWS::NoValue, it is said what counts.
    let perhaps = "BillingMode: PAY_PER_REQUEST, Replicas: [{Region: eu-west-1}, !If [X, {Region: us-east-1}, !Ref AWS::NoValue]]";
    let perhaps = bill(&with_table(ONE, "GlobalTable", perhaps), &["--per-day", "1000"]);
    assert!(has(&perhaps, "assumed", "Replicas: 1") && !has(&perhaps, "assumed", "2 replicas"), "{perhaps}");
}

#[test]
fn several_tables_have_alarms_of_their_own_and_what_moves_records_is_said() {
    let tables = "  B: {Type: AWS::DynamoDB::Table, Properties: {BillingMode: PAY_PER_REQUEST}}\n";
    let three = with_table(ONE, "Table", "BillingMode: PAY_PER_REQUEST").replace(
        "CLAIMANT_TABLE: !Ref Locks",
        "CLAIMANT_TABLE: !Sub '${Locks},${B},other', CLAIMANT_TABLE_BEFORE: old",
    );
    let found = bill(&format!("{three}{tables}"), &["--per-day", "1000", "--store", "provisioned"]);
    let alarms = lines(&found).iter().find(|line| line.0 == "Alarms of auto scaling").unwrap().1;
    assert!((alarms - 24.0).abs() < 1e-6, "{found}");
    assert!(has(&found, "assumed", "all of its 3 tables: as Locks"), "{found}");
    assert!(has(&found, "not_counted", "CLAIMANT_TABLE_BEFORE: a read unit for each message"), "{found}");
    let fixed = with_table(ONE, "Table", &provisioned("5"))
        .replace("CLAIMANT_TABLE: !Ref Locks", "CLAIMANT_TABLE: !Sub '${Locks},other'");
    let with = |template: &str| limit(&bill(template, &["--per-day", "1000000"]), "write units a second, provisioned");
    // The limits are those of each, which has its share of the keys.
    let (one, two) = (with(&fixed.replace("${Locks},other", "${Locks}")), with(&fixed));
    assert_eq!((one.1, two.1), (5.0, 5.0));
    assert!((two.0 - one.0 / 2.0).abs() < 0.01 && two.0 > 0.0, "{two:?} of {one:?}");
}
