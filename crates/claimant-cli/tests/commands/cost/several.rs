//! What a template has beside its functions, nested or not; and functions that read several queues.

use serde_json::Value;

use super::templates::{ONE, TWO};
use super::{cost, file, json, lines, text};

/// What watches a function.
const WATCHING: &str = "
  Alarm: {Type: AWS::CloudWatch::Alarm, Properties: {Namespace: claimant, MetricName: parked}}
  Dashboard: {Type: AWS::CloudWatch::Dashboard, Properties: {DashboardBody: '{}'}}
";

fn usd(bill: &Value) -> f64 {
    bill["usd"].as_f64().unwrap()
}

#[test]
fn what_is_nested_under_a_condition_that_is_not_known_is_left_out_and_named() {
    file("inner.yaml", &format!("{}{WATCHING}", ONE.trim_end()));
    let nested = "  N: {Type: AWS::CloudFormation::Stack, Condition: Prod, Properties: {TemplateURL: inner.yaml}}\n";
    let declared = "\nParameters: {Env: {Type: String}}\nConditions: {Prod: !Equals [!Ref Env, prod]}\nResources:";
    let outer = file("outer.yaml", &format!("{}{nested}", ONE.replace("\nResources:", declared)));
    let of = |more: &[&str]| json(&[&["--template", &outer, "--per-day", "1000"], more].concat());
    let (unknown, without, with) = (of(&[]), of(&["--parameter", "Env=dev"]), of(&["--parameter", "Env=prod"]));
    assert!((usd(&unknown) - usd(&without)).abs() < 1e-6, "{unknown}");
    assert!(usd(&with) > usd(&without) + 3.1, "the dashboard and the alarm: {with}");
    let left_out = |bill: &Value| {
        let not_counted = bill["not_counted"].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned());
        not_counted.filter(|one| one.contains("(--parameter)")).collect::<Vec<_>>()
    };
    let expected = [
        "alarms and dashboards of which it is not known whether they are there (--parameter): 2",
        "N>A: its function, or whether it is there, is not known (--parameter)",
    ];
    assert_eq!(
        (left_out(&unknown), left_out(&without).len(), left_out(&with).len()),
        (expected.map(str::to_owned).to_vec(), 0, 0)
    );
}

#[test]
fn of_a_function_with_a_bill_a_mapping_is_named_that_may_not_be_there() {
    let declared = "\nParameters: {Env: {Type: String}}\nConditions: {Prod: !Equals [!Ref Env, prod]}\nResources:";
    let mapping = "  M: {Type: AWS::Lambda::EventSourceMapping, Condition: Prod, Properties: {FunctionName: !Ref A, EventSourceArn: !GetAtt D.Arn}}\n";
    let template = file("mapping.yaml", &format!("{}{mapping}", ONE.replace("\nResources:", declared)));
    let bill = json(&["--template", &template, "--per-day", "1000"]);
    assert_eq!(bill["functions"][0]["function"], "A");
    assert!(bill["not_counted"].to_string().contains("\"A/M: its function, or whether it is there"), "{bill}");
}

/// A queue whose visibility timeout another template needs to know, and what that template makes of it.
const BASE: &str = "
Resources:
  Q: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 180}}
Outputs:
  Arn: {Value: !GetAtt Q.Arn, Export: {Name: shop-orders}}
";

#[test]
fn stacks_that_import_from_each_other_have_one_bill() {
    let base = file("Base.template.yaml", &BASE.replace("Outputs:", &format!("{}Outputs:", &WATCHING[1..])));
    let app = file("App.template.yaml", &ONE.replace("!GetAtt Q.Arn", "!ImportValue shop-orders"));
    let other = file("Other.template.yaml", ONE);
    let bill = |templates: &[&String]| {
        let templates = templates.iter().flat_map(|template| ["--template", template.as_str()]);
        json(&templates.chain(["--per-day", "1000"]).collect::<Vec<_>>())
    };
    let (alone, together) = (bill(&[&app]), bill(&[&base, &app]));
    let names = |bill: &Value| {
        let functions = bill["functions"].as_array().unwrap().iter();
        functions.map(|one| one["function"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names(&alone), names(&together)), (vec!["A".to_owned()], vec!["App>A".to_owned()]));
    let assumes = |bill: &Value| bill["functions"][0]["assumed"].to_string().contains("VisibilityTimeout");
    assert_eq!((assumes(&alone), assumes(&together)), (true, false), "{together}");
    assert!(usd(&together) > usd(&alone) + 3.0, "the dashboard and the alarm of the other stack: {together}");
    // One that imports nothing is in the bill all the same.
    let all = bill(&[&base, &app, &other]);
    assert_eq!(names(&all), ["App>A", "Other>A"]);
    assert!((usd(&all) - usd(&together) - usd(&bill(&[&other]))).abs() < 0.5, "{all}");
    let output = cost(&["--template", &base, "--template", &base, "--per-day", "1"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains(&format!("{base}, {base}: no function reads a queue: give the template")), "{said}");
}

/// What the stack has once is in the total of a single function, and in what stands below it.
#[test]
fn a_single_function_with_a_dashboard_has_one_total() {
    let template = file("watched.yaml", &format!("{}{WATCHING}", ONE.trim_end()));
    let options = ["--template", &template, "--per-day", "1000"];
    let (bill, shown) = (json(&options), text(&cost(&options).stdout));
    let of = |name: &str| {
        let line = shown.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().last().unwrap().parse::<f64>().unwrap()
    };
    assert!((of("total") - usd(&bill)).abs() < 0.01, "{shown}");
    assert!((of("for a million messages") - usd(&bill) / 0.03).abs() < 0.01, "{shown}");
    let share = 300.0 / usd(&bill);
    assert!(shown.contains(&format!("Most of it: CloudWatch, Dashboards ({share:.0} %)")), "{shown}");
}

/// A function of two queues: a row for each, the metrics once, and all of what one of them asks on demand.
#[test]
fn a_function_that_reads_two_queues_has_a_bill_for_each() {
    let event = "In: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}";
    let two = ONE
        .replace(event, &format!("{event}, Fast: {{Type: SQS, Properties: {{Queue: !GetAtt D.Arn}}}}"))
        .replace("Timeout: 30", "Timeout: 30\n      ReservedConcurrentExecutions: 20");
    let template = file("queues.yaml", &two);
    let of = |more: &[&'static str]| [&["--template", &template, "--per-day", "1000"], more].concat();
    let both = text(&cost(&of(&[])).stdout);
    assert!(both.contains("to each queue; USD") && both.contains("\nA/AIn ") && both.contains("\nA/AFast "), "{both}");
    assert!(both.contains("all 20 for this queue, though it has others"), "{both}");
    assert_eq!(
        both,
        text(&cost(&of(&["--function", "A"])).stdout).replace(
            "alarms and dashboards: the bill of all functions has them",
            "composite alarms, and what an alarm of less than a minute costs more than another",
        )
    );
    let bill = json(&of(&[]));
    let rows = bill["functions"].as_array().unwrap();
    let metrics =
        |row: &Value| row["lines"].as_array().unwrap().iter().filter(|line| line["what"] == "Metrics").count();
    assert_eq!(rows.iter().map(metrics).collect::<Vec<_>>(), [1, 0], "{bill}");
    let assumed = &rows[1]["assumed"];
    assert!(assumed.to_string().contains("its metrics: those of A/A"), "{assumed}");
    assert!(assumed.to_string().contains("at the rate of one queue; what is compared has its own"), "{assumed}");
    let advised = |row: &Value| row["advice"].to_string().contains("CLAIMANT_METRICS: off");
    assert_eq!(rows.iter().map(advised).collect::<Vec<_>>(), [true, false], "what its row no longer has: {bill}");
    let fast = of(&["--function", "A/AFast"]);
    let shown = text(&cost(&fast).stdout);
    assert!(shown.contains("A/AFast: at least once") && shown.contains("Limits, at 2 times the mean rate"), "{shown}");
    assert!(lines(&json(&fast)).iter().any(|line| line.0 == "Metrics"), "{shown}");
    let output = cost(&of(&["--function", "A/In"]));
    assert!(text(&output.stderr).contains("those that do: A/A"), "{}", text(&output.stderr));
}

/// Each function has its rate: what they share has the sum of all.
#[test]
fn the_limits_of_a_table_are_those_of_all_that_write_to_it() {
    let template = file("shared.yaml", TWO);
    let of = |more: &[&'static str]| {
        let all = ["--template", &*template, "--per-day", "1200000000", "--parameter", "Env=prod"];
        [&all[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let as_json = |more: &[&'static str]| json(&of(more).iter().map(String::as_str).collect::<Vec<_>>());
    let (both, one) = (as_json(&[]), as_json(&["--function", "A"]));
    let needed = |limits: &Value, what: &str| {
        let limit = limits.as_array().unwrap().iter().find(|limit| limit["what"] == what);
        limit.unwrap_or_else(|| panic!("no {what} in {limits}"))["needed"].as_f64().unwrap()
    };
    for what in
        ["write units a second, of a table", "write units a second, new table", "invocations at once, of the account"]
    {
        let (all, own) = (needed(&both["limits"], what), needed(&one["functions"][0]["limits"], what));
        assert!((all - 2.0 * own).abs() < 0.01 && own > 0.0, "{what}: {all}, and {own} of one");
    }
    let tables: Vec<_> = both["limits"].as_array().unwrap().iter().map(|limit| limit["table"].as_str()).collect();
    assert!(tables.contains(&Some("x")) && tables.contains(&None), "{both}");
    let shown = text(&cost(&of(&[]).iter().map(String::as_str).collect::<Vec<_>>()).stdout);
    let line = shown.lines().find(|line| line.trim_start().starts_with("write units a second, of a table")).unwrap();
    assert!(line.ends_with("of   40,000  over  x"), "{shown}");
    // Each alone is far from it.
    assert_eq!(both["never_enough"], "write units a second, of a table", "{both}");
    assert!(shown.contains("this rate is not reached, and these bills neither: see write units a second"), "{shown}");
    assert_eq!(one["never_enough"], Value::Null, "{one}");
    // Of one, others are left out, which is said.
    assert_eq!(one["limits"], serde_json::json!([]));
    let note = "the limits of x: without the writes of the others that use it (1)";
    assert!(one["functions"][0]["assumed"].to_string().contains(note), "{one}");
    assert!(!both.to_string().contains("without the writes of the others"), "{both}");
    // In an instance the functions share no table.
    let instance = as_json(&["--function", "A", "--store", "database"]);
    assert!(!instance.to_string().contains("without the writes"), "{instance}");
    // What reads two queues is one function.
    let event = "In: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn, BatchSize: 1}}";
    let (a, b) = TWO.split_once("  B:").unwrap();
    let queues = format!("{a}  B:{}", b.replace(event, &format!("{event}, Other: {}", &event["In: ".len()..])));
    let template = file("queues-of-one.yaml", &queues);
    let one = json(&["--template", &template, "--per-day", "1000", "--parameter", "Env=prod", "--function", "A"]);
    assert!(one["functions"][0]["assumed"].to_string().contains(note), "{one}");
}

/// Each table has its share of the keys, whatever the order of the names.
#[test]
fn a_table_of_several_has_the_writes_of_all_that_name_it() {
    let of = |a: &str, b: &str| {
        let (first, second) = TWO.split_once("  B:").unwrap();
        let named =
            |part: &str, tables: &str| part.replace("CLAIMANT_TABLE: x", &format!("CLAIMANT_TABLE: '{tables}'"));
        let template = file("overlap.yaml", &format!("{}  B:{}", named(first, a), named(second, b)));
        let bill = json(&["--template", &template, "--per-day", "1200000000", "--parameter", "Env=prod"]);
        let limits = bill["limits"].as_array().unwrap().clone().into_iter();
        let limits = limits.filter(|limit| limit["what"] == "write units a second, of a table");
        let limits =
            limits.map(|limit| (limit["table"].as_str().unwrap().to_owned(), limit["needed"].as_f64().unwrap()));
        (limits.collect::<Vec<_>>(), bill["never_enough"].clone())
    };
    let (one, over) = of("x", "x");
    assert_eq!((one.len(), over), (1, "write units a second, of a table".into()));
    let (all, about) = (one[0].1, |one: f64, other: f64| (one / other - 1.0).abs() < 1e-6);
    let (two, over) = of("x,y", "y,x");
    assert!(two.len() == 1 && two[0].0 == "x, y" && about(two[0].1, all / 2.0), "{two:?} of {all}");
    assert_ne!(over, "write units a second, of a table", "two tables take it");
    let (overlapping, _) = of("x,y", "y,z");
    assert!(overlapping.len() == 1 && overlapping[0].0 == "y" && about(overlapping[0].1, all / 2.0), "{overlapping:?}");
    let (unequal, _) = of("x", "x,y");
    assert!(unequal.len() == 1 && unequal[0].0 == "x" && about(unequal[0].1, all * 0.75), "{unequal:?}");
}

/// What is reserved is taken from the account, used or not: no message needs it.
#[test]
fn reservations_are_no_limit_of_the_rate() {
    let of = |a: Option<u32>, b: Option<u32>, more: &[&str]| {
        let (first, second) = TWO.split_once("  B:").unwrap();
        let reserved = |part: &str, reserved: Option<u32>| {
            let setting = reserved.map_or(String::new(), |all| format!("\n      ReservedConcurrentExecutions: {all}"));
            part.replace("Timeout: 30", &format!("Timeout: 30{setting}"))
        };
        let template = file("reserved.yaml", &format!("{}  B:{}", reserved(first, a), reserved(second, b)));
        let bill = json(&[&["--template", &template, "--parameter", "Env=prod"], more].concat());
        let limits = bill["limits"].as_array().unwrap().clone().into_iter();
        let limits = limits.filter(|limit| limit["table"].is_null());
        let of = |limit: &Value, name: &str| limit[name].as_f64().unwrap();
        let limits =
            limits.map(|one| (one["what"].as_str().unwrap().to_owned(), of(&one, "needed"), of(&one, "limit")));
        (limits.collect::<Vec<_>>(), bill["never_enough"].clone())
    };
    let (limits, over) = of(Some(600), Some(600), &["--per-day", "1"]);
    assert_eq!(limits, [("reserved, of the account's invocations".to_owned(), 1_200.0, 900.0)]);
    assert_eq!(over, Value::Null, "one message a day");
    // The other one has what is left of the account.
    let busy = ["--per-second", "300", "--handler-ms", "1000"];
    let (limits, over) = of(Some(800), None, &busy);
    let unreserved = limits.iter().find(|limit| limit.0 == "invocations at once, unreserved").unwrap();
    assert!(unreserved.1 > 200.0 && (unreserved.2 - 200.0).abs() < 1e-9, "{limits:?}");
    assert_eq!(over, "invocations at once, unreserved");
    // Where more than all of it is reserved, the account has more.
    let (limits, over) = of(Some(1_100), None, &["--per-day", "1"]);
    assert!(limits.iter().any(|limit| limit.0.ends_with("unreserved") && (limit.2 - 100.0).abs() < 1e-9), "{limits:?}");
    assert_eq!((over, of(None, None, &busy).1), (Value::Null, Value::Null));
}
