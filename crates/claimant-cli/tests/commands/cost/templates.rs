//! What `claimant cost` makes of templates: what functions share, what is not known of them, what is advised.

use serde_json::Value;

use super::{PLAIN, cost, file, json, lines, text};

/// Two functions of one FIFO queue; the second is there in production only.
pub(super) const TWO: &str = "
Transform: AWS::Serverless-2016-10-31
Parameters: {Env: {Type: String}}
Conditions: {Prod: !Equals [!Ref Env, prod]}
Resources:
  Q: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 180, FifoQueue: true}}
  A:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 30
      Environment: {Variables: {CLAIMANT_TABLE: x}}
      Events: {In: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn, BatchSize: 1}}}
  B:
    Type: AWS::Serverless::Function
    Condition: Prod
    Properties:
      Timeout: 30
      Environment: {Variables: {CLAIMANT_TABLE: x}}
      Events: {In: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn, BatchSize: 1}}}
";

/// A function whose dead letters are kept for four days, as its messages are.
pub(super) const ONE: &str = "
Transform: AWS::Serverless-2016-10-31
Resources:
  D: {Type: AWS::SQS::Queue, Properties: {MessageRetentionPeriod: 345600}}
  Q:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 180, RedrivePolicy: {deadLetterTargetArn: !GetAtt D.Arn, maxReceiveCount: 5}}
  A:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 30
      Environment: {Variables: {CLAIMANT_TABLE: x}}
      Events: {In: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}
";

/// The settings that are advised.
fn advised(bill: &Value) -> Vec<&str> {
    let advice = bill["functions"][0]["advice"].as_array().unwrap();
    advice.iter().map(|one| one["setting"].as_str().unwrap()).collect()
}

/// Check 32 of the doctor: a record outlasts what can still be redriven.
#[test]
fn a_window_is_advised_that_outlasts_each_message() {
    const DAYS_14: &str = "MessageRetentionPeriod: 1209600";
    let four = ("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 345600");
    for ((from, to), window) in [
        (four, Some("a window of 5 days")),
        ((four.0, DAYS_14), None),
        ((four.0, "MessageRetentionPeriod: !Ref AWS::NoValue"), Some("a window of 5 days")),
        (("VisibilityTimeout: 180", "VisibilityTimeout: 180, MessageRetentionPeriod: 1209600"), None),
        (("VisibilityTimeout: 180", "VisibilityTimeout: 180, MessageRetentionPeriod: 60"), Some("a window of 5 days")),
    ] {
        let template = file("window.yaml", &ONE.replace(from, to));
        let more = ["--per-day", "1000000", "--filled", "10", "--store", "provisioned"];
        let bill = json(&[&["--template", &template][..], &more].concat());
        let found = advised(&bill);
        assert_eq!(found.iter().find(|setting| setting.contains("days")).copied(), window, "{to}: {found:?}");
        // A consumer that does its work at most once takes no window below 15 days.
        let bill = json(&[&["--template", &template, "--guarantee", "at-most-once"][..], &more].concat());
        let found = advised(&bill);
        assert!(!found.iter().any(|setting| setting.contains("days")), "{to}: {found:?}");
    }
}

#[test]
fn what_functions_share_is_paid_once() {
    let whole = |more: &[&str]| json(&[&["--per-day", "1000"], more].concat());
    let usd = |bill: &Value| bill["usd"].as_f64().unwrap();
    let (with, without) = (["--instance-usd", "100"], ["--instance-usd", "0"]);
    let database = |price: [&str; 2]| usd(&whole(&[&["--store", "database"][..], &price].concat()));
    assert!((database(with) - database(without) - 100.0).abs() < 1e-3, "five functions, one database");
    let shown = text(&cost(&[&["--per-day", "1000", "--store", "database"][..], &with].concat()).stdout);
    assert!(
        shown.lines().any(|line| line.starts_with("The database, as given") && line.ends_with("100.00")),
        "{shown}"
    );
    let provisioned = whole(&["--store", "provisioned"]);
    let shared = provisioned["shared"].as_array().unwrap();
    let alarms = shared.iter().find(|line| line["what"] == "Alarms of auto scaling").unwrap();
    assert_eq!(alarms["quantity"], 8.0, "five functions, one table");
    let two = file("tables.yaml", &format!("{TWO}  C: {{Type: AWS::SQS::Queue}}\n"));
    let two = json(&["--template", &two, "--parameter", "Env=prod", "--per-day", "1000", "--store", "provisioned"]);
    assert_eq!(two["shared"][0]["quantity"], 8.0, "one table that is not in the template: {two}");
}

/// Auto scaling makes eight alarms for a table, which can cost more than it saves.
#[test]
fn provisioned_capacity_is_advised_where_it_saves_more_than_its_alarms() {
    for (per_day, is_advised) in [("30000", false), ("1000000", true)] {
        let of =
            |store: &str| json(&["--per-day", per_day, "--function", "OrderConfirmationFunction", "--store", store]);
        let (on_demand, provisioned) = (of("on-demand"), of("provisioned"));
        let dearer = provisioned["usd"].as_f64().unwrap() - on_demand["usd"].as_f64().unwrap();
        let found = advised(&on_demand);
        assert_eq!(found.iter().any(|setting| setting.contains("PROVISIONED")), is_advised, "{found:?}");
        assert_eq!(dearer < 0.0, is_advised, "{per_day}: {dearer}");
        assert!(lines(&provisioned).iter().any(|(what, count, usd)| {
            what == "Alarms of auto scaling" && (*count - 8.0).abs() < 1e-6 && (*usd - 0.8).abs() < 1e-6
        }));
    }
}

#[test]
fn provisioned_pollers_ask_an_empty_queue_as_many_as_they_are() {
    let empty = |config: &str| {
        let template = file("pollers.yaml", &ONE.replace("!GetAtt Q.Arn}", &format!("!GetAtt Q.Arn{config}}}")));
        let bill = json(&["--template", &template, "--per-day", "1000"]);
        lines(&bill).iter().find(|line| line.0 == "Receives of an empty queue").unwrap().1
    };
    let usual = empty("");
    assert!(
        empty(", ProvisionedPollerConfig: {MinimumPollers: 50, MaximumPollers: 100}") > 9.0 * usual,
        "fifty of them"
    );
    assert!(empty(", ProvisionedPollerConfig: {MaximumPollers: 100}") < usual, "two, unless set");
}

/// The limit whose name begins so.
pub(super) fn limit(bill: &Value, what: &str) -> (f64, f64) {
    let limits = bill["functions"][0]["limits"].as_array().unwrap();
    let limit = limits.iter().find(|limit| limit["what"].as_str().unwrap().starts_with(what));
    let limit = limit.unwrap_or_else(|| panic!("no {what} in {limits:?}"));
    (limit["needed"].as_f64().unwrap(), limit["limit"].as_f64().unwrap())
}

#[test]
fn a_fifo_queue_is_limited_by_requests_and_to_batches_of_ten() {
    let template = file("two.yaml", TWO);
    let of = |more: &[&str]| {
        json(&[&["--template", &template, "--function", "A", "--per-second", "250", "--retries", "0"], more].concat())
    };
    // The busiest second has twice the messages, each in a batch of its own.
    assert_eq!(limit(&of(&[]), "requests a second of a kind, FIFO"), (500.0, 300.0));
    assert_eq!(of(&[])["functions"][0]["never_enough"], Value::Null, "250 on the mean are enough");
    let filled = ["--per-second", "6000", "--filled", "10", "--batch-size", "10"];
    let bill = json(&[&["--template", &template, "--function", "A"][..], &filled].concat());
    assert_eq!(bill["functions"][0]["never_enough"], "requests a second of a kind, FIFO", "{bill}");
    let (needed, _) = limit(&of(&["--batch-size", "100", "--filled", "100"]), "requests a second of a kind, FIFO");
    assert!((needed - 50.0).abs() < 1e-6, "{needed}");
    let (needed, _) =
        limit(&of(&["--batch-size", "10", "--filled", "10", "--sent-in", "1"]), "requests a second of a kind");
    assert!((needed - 500.0).abs() < 1e-6, "{needed}");
    let filled = of(&["--batch-size", "100", "--filled", "100"]);
    assert_eq!(filled["functions"][0]["batch"], 10.0);
    let assumed = filled["functions"][0]["assumed"].as_array().unwrap();
    assert!(assumed.contains(&"batches of 10 messages: no more fit".into()), "{assumed:?}");
    let (needed, most) = limit(&of(&["--handler-ms", "40000"]), "seconds of an invocation");
    assert!(needed > 40.0 && (most - 30.0).abs() < 1e-6, "{needed} {most}");
    // Messages of one group run one after the other.
    let groups = "each message of a batch is of a group of its own (--per-group)";
    assert!(assumed.contains(&groups.into()), "{assumed:?}");
    let filled = ["--batch-size", "10", "--filled", "10", "--handler-ms", "4000", "--per-group"];
    for (per_group, seconds) in [("1", 4.0), ("2.5", 10.0), ("10", 40.0)] {
        let bill = of(&[&filled[..], &[per_group]].concat());
        let (needed, _) = limit(&bill, "seconds of an invocation");
        assert!((needed - seconds).abs() < 0.2, "{per_group}: {needed}");
        assert_eq!(bill["functions"][0]["assumed"].to_string().contains(groups), per_group == "1");
    }
    // A queue without groups has none to wait for.
    let plain = json(&[&PLAIN[..], &["--handler-ms", "4000", "--per-group", "10"]].concat());
    assert!(limit(&plain, "seconds of an invocation").0 < 4.2, "{plain}");
}

#[test]
fn what_may_not_be_there_and_what_was_assumed_is_said() {
    let template = file("two.yaml", TWO);
    let shown = |more: &[&str]| text(&cost(&[&["--template", &template, "--per-day", "1000"], more].concat()).stdout);
    let one = shown(&[]);
    assert!(one.contains("B: its function, or whether it is there, is not known (--parameter)"), "{one}");
    let two = shown(&["--parameter", "Env=prod"]);
    assert!(!two.contains("is not known (") && two.contains("assumed: A: its table: on demand"), "{two}");
    assert!(one.contains("storage of logs, Lambda's init time"), "{one}");
    let mapping = "  M: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: !GetAtt Q.Arn, FunctionName: !Ref Env}}\n";
    let other = file("other.yaml", &format!("{TWO}{mapping}"));
    let other = text(&cost(&["--template", &other, "--per-day", "1000", "--parameter", "Env=prod"]).stdout);
    assert!(other.contains("M: its function, or"), "{other}");
    // As `alias.addEventSource` of CDK names it.
    let live = "  Live: {Type: AWS::Lambda::Alias, Properties: {Name: live, FunctionName: !Ref A}}\n";
    let of_live = mapping.replace("!Ref Env", "!Join ['', [!Select [6, !Split [':', !Ref Live]], ':live']]");
    let by_alias = file("alias.yaml", &format!("{TWO}{live}{of_live}").replace("Events: {In:", "Tags: {In:"));
    let by_alias = json(&["--template", &by_alias, "--per-day", "1000", "--parameter", "Env=prod"]);
    assert_eq!(by_alias["functions"][0]["function"], "A", "{by_alias}");
    let alone = file("alone.yaml", &TWO.replace("  A:\n", "  A:\n    Condition: Prod\n"));
    let output = cost(&["--template", &alone, "--per-day", "1000"]);
    assert!(text(&output.stderr).contains("A, B: its function, or whether"), "{}", text(&output.stderr));
    let output = cost(&["--template", &template, "--per-day", "1000", "--function", "B"]);
    let errors = text(&output.stderr);
    assert!(
        errors.contains("those that do: A; B: its function, or whether it is there, is not known (--parameter)"),
        "{errors}"
    );
    let errors = text(&cost(&["--per-day", "1000", "--function", "InventoryFunction"]).stderr);
    assert!(errors.contains("one whose condition does not hold is not there (--parameter)"), "{errors}");
}

#[test]
fn what_a_store_or_a_process_cannot_do_is_neither_advised_nor_computed() {
    let database = ["--store", "database", "--guarantee", "transactional"];
    let bill = json(&[&PLAIN[..], &database].concat());
    let advice = bill["functions"][0]["advice"].as_array().unwrap();
    assert!(advice.iter().all(|one| one["setting"] != "optimistic_transactions()"), "{advice:?}");
    for wrong in ["0", "1001", "many"] {
        let template = TWO.replace("CLAIMANT_TABLE: x", &format!("CLAIMANT_TABLE: x, CLAIMANT_CONCURRENCY: '{wrong}'"));
        let bill = json(&["--template", &file("concurrency.yaml", &template), "--per-day", "1000"]);
        assert!(bill["functions"][0]["usd"].is_f64(), "{bill}");
        assert!(
            bill["functions"][0]["assumed"].as_array().unwrap().contains(&"CLAIMANT_CONCURRENCY: 10".into()),
            "{bill}"
        );
    }
}

/// What the template gives a function or its mapping, and what is needed of it.
#[test]
fn reserved_concurrency_and_pollers_are_limits() {
    let reserved = ("Timeout: 30", "Timeout: 30\n      ReservedConcurrentExecutions: 5");
    let pollers = ("!GetAtt Q.Arn}", "!GetAtt Q.Arn, ProvisionedPollerConfig: {MinimumPollers: 2, MaximumPollers: 2}}");
    let limited = ("!GetAtt Q.Arn}", "!GetAtt Q.Arn, ScalingConfig: {MaximumConcurrency: 5}}");
    for ((from, to), per_day, what, needed, most) in [
        (reserved, "10000000", "invocations at once, reserved", 47.3, 5.0),
        (pollers, "100000000", "invocations at once, MaximumPollers", 472.9, 20.0),
        (limited, "10000000", "MaximumConcurrency", 47.3, 5.0),
    ] {
        let template = file("limits.yaml", &ONE.replace(from, to));
        let options = ["--template", &template, "--per-day", per_day, "--handler-ms", "2000"];
        let bill = json(&options);
        let found = limit(&bill, what);
        assert!((found.0 / needed - 1.0).abs() < 0.01 && (found.1 - most).abs() < 1e-6, "{what}: {found:?}");
        assert_eq!(bill["functions"][0]["scaling_s"], 0.0, "there are never enough: {what}");
        assert_eq!(
            bill["functions"][0]["limits"].as_array().unwrap().len(),
            7,
            "the account's, or the reserved: {bill}"
        );
        let shown = text(&cost(&options).stdout);
        assert!(shown.contains("  over\n    beyond it ") && !shown.contains("Lambda adds"), "{shown}");
        // The mean is half of it, and beyond all of these too.
        assert_eq!(shown.contains("the queue grows, on the mean, too"), !what.ends_with("reserved"), "{shown}");
        assert!(!shown.contains("unharmed"), "{shown}");
        assert!(shown.contains("this rate is not reached"), "{shown}");
        assert!(bill["functions"][0]["never_enough"].as_str().unwrap().starts_with(what), "{bill}");
    }
    // Batches fill once messages have to wait: two at once do ten a second of these.
    let two = file("limits.yaml", &ONE.replace(limited.0, &limited.1.replace('5', "2")));
    for more in [&[][..], &["--filled", "2"]] {
        let options = ["--template", &two, "--per-second", "1", "--handler-ms", "2000"];
        let shown = text(&cost(&[&options, more].concat()).stdout);
        assert!(!shown.contains("not reached") && !shown.contains("  over"), "{shown}");
    }
    // So it is behind the mapping, though what is not full is throttled meanwhile.
    for (to, rate) in [(reserved.1, ["--per-second", "20"]), ("Timeout: 30", ["--per-second", "600"])] {
        let template = file("limits.yaml", &ONE.replace(reserved.0, to));
        let options = ["--template", &template, "--handler-ms", "1000", "--filled", "1"];
        let bill = json(&[&options[..], &rate].concat());
        assert!(limit(&bill, "invocations at once, ").0 > 5.0, "{bill}");
        assert_eq!(bill["functions"][0]["never_enough"], Value::Null, "{bill}");
    }
    // No more have to be added than the mapping lets run.
    let many = file("limits.yaml", &ONE.replace(limited.0, &limited.1.replace('5', "200")));
    let options = ["--template", &many, "--per-second", "900", "--handler-ms", "1000", "--filled", "1"];
    let scaling_s = json(&options)["functions"][0]["scaling_s"].as_f64().unwrap();
    assert!((30.0..60.0).contains(&scaling_s), "{scaling_s}");
    // A mapping's own limit cannot be raised.
    let template = file("limits.yaml", ONE);
    let shown = text(&cost(&["--template", &template, "--per-second", "10000", "--handler-ms", "8000"]).stdout);
    assert!(shown.contains("gets too old: provisioned pollers"), "{shown}");
    // Only the busiest second is beyond it.
    let busy = ONE.replace(limited.0, &limited.1.replace('5', "30"));
    let busy = file("limits.yaml", &busy);
    let shown = text(&cost(&["--template", &busy, "--per-day", "10000000", "--handler-ms", "2000"]).stdout);
    assert!(shown.contains("  over\n    beyond it messages wait in the queue, unharmed"), "{shown}");
    assert!(!shown.contains("not reached"), "{shown}");
    let of = |template: &str| {
        json(&["--template", &file("limits.yaml", template), "--per-day", "10000000", "--handler-ms", "2000"])
    };
    assert!(of(ONE)["functions"][0]["scaling_s"].as_f64().unwrap() > 8.0);
    // What the mapping holds back never meets what is behind it.
    let both = ONE.replace(reserved.0, "Timeout: 30\n      ReservedConcurrentExecutions: 10");
    let both = of(&both.replace(limited.0, limited.1));
    assert_eq!(limit(&both, "invocations at once, reserved"), (5.0, 10.0));
    assert_eq!(limit(&of(&ONE.replace(limited.0, limited.1)), "invocations at once, of the account"), (5.0, 1_000.0));
}

#[test]
fn what_the_template_leaves_to_a_parameter_is_assumed_and_said() {
    let open = ONE
        .replace("\nResources:", "\nParameters: {Any: {Type: String}}\nResources:")
        .replace("Timeout: 30", "Timeout: 30\n      ReservedConcurrentExecutions: !Ref Any")
        .replace(
            "CLAIMANT_TABLE: x",
            "CLAIMANT_TABLE: x, CLAIMANT_METRICS: !Ref Any, CLAIMANT_LOG_MESSAGES: !Ref Any, CLAIMANT_VISIBILITY: !Ref Any, CLAIMANT_TABLE_BEFORE: !Ref Any",
        )
        .replace("!GetAtt Q.Arn}", "!GetAtt Q.Arn, ScalingConfig: {MaximumConcurrency: !Ref Any}, ProvisionedPollerConfig: !Ref Any}")
        .replace("VisibilityTimeout: 180", "VisibilityTimeout: 180, FifoQueue: true, DeduplicationScope: !Ref Any");
    let bill = json(&["--template", &file("open.yaml", &open), "--per-day", "1000"]);
    let assumed = bill["functions"][0]["assumed"].as_array().unwrap();
    for what in [
        "ReservedConcurrentExecutions: not set",
        "MaximumConcurrency: not set",
        "ProvisionedPollerConfig: not set",
        "CLAIMANT_METRICS: on",
        "CLAIMANT_LOG_MESSAGES: off",
        "CLAIMANT_VISIBILITY: on",
        "CLAIMANT_TABLE_BEFORE: not set",
        "FifoThroughputLimit: perQueue",
    ] {
        assert!(assumed.contains(&what.into()), "{what}: {assumed:?}");
    }
    let off = ONE.replace("CLAIMANT_TABLE: x", "CLAIMANT_TABLE: x, CLAIMANT_VISIBILITY: 'off'");
    let changes = |template: &str| {
        let bill = json(&["--template", &file("off.yaml", template), "--per-day", "1000000"]);
        lines(&bill).iter().any(|line| line.0 == "Changes of visibility")
    };
    assert_eq!([ONE, &off].map(changes), [true, false]);
}

#[test]
fn why_no_function_is_known_to_read_a_queue_is_said() {
    let none = "no function is known to read a queue; A: ";
    for (from, to, says) in [
        ("!GetAtt Q.Arn}", "!GetAtt Q.Arn, Enabled: false}", format!("{none}the mapping is disabled")),
        (
            "    Type: AWS::Serverless",
            "    Condition: No\n    Type: AWS::Serverless",
            format!("{none}its function, or whether"),
        ),
    ] {
        let template = file("none.yaml", &ONE.replace(from, to));
        let output = cost(&["--template", &template, "--per-day", "1"]);
        assert!(text(&output.stderr).contains(&says), "{to}: {}", text(&output.stderr));
    }
}
