//! A scripted account in which nothing is to be found, and changes of its answers that checks find.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use claimant_core::report::OUTCOME_WORDS;
use claimant_doctor::account::{Account, Refused, Request, Scope, examine};
use claimant_doctor::{Level, Report, run};
use serde_json::{Value, json};

const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:orders";
const LETTERS: &str = "arn:aws:sqs:eu-west-1:123456789012:letters";

/// The end of the day that is looked at.
const UNTIL_S: u64 = 1_800_000_000;

/// Answers by the operation and, where one has several subjects, the subject: `GetQueueAttributes orders`.
struct Script {
    answers: Value,
    asked: RefCell<Vec<&'static str>>,
    /// The names of the metrics that were asked for.
    metrics: RefCell<Vec<String>>,
}

impl Script {
    fn new(answers: Value) -> Self {
        Self { answers, asked: RefCell::default(), metrics: RefCell::default() }
    }
}

impl Account for Script {
    async fn ask(&self, request: Request) -> Result<Value, Refused> {
        let Request { operation, input, .. } = request;
        self.asked.borrow_mut().push(operation);
        let about =
            ["QueueUrl", "QueueName", "FunctionName", "TableName", "LogicalResourceId", "StackName", "PolicySourceArn"];
        let about = about.iter().find_map(|key| input[*key].as_str()).unwrap_or("the account");
        let about = about.rsplit(['/', ':']).next().unwrap().to_owned();
        let refused = |code: &str| Refused { operation, about: about.clone(), code: code.to_owned() };
        let by_subject = format!("{operation} {about}");
        let answer = self.answers.get(&by_subject).or_else(|| self.answers.get(operation));
        match (operation, answer) {
            (_, Some(Value::String(code))) => Err(refused(code)),
            ("GetQueueUrl", _) => Ok(json!({"QueueUrl": format!("https://sqs/123456789012/{about}")})),
            ("GetMetricData", Some(values)) => {
                let queries = input["MetricDataQueries"].as_array().unwrap().iter();
                let name = |query: &Value| query["MetricStat"]["Metric"]["MetricName"].as_str().unwrap().to_owned();
                let names: Vec<_> = queries.map(name).collect();
                if names.iter().any(|name| values["refused"] == **name) {
                    return Err(refused("ThrottlingException"));
                }
                self.metrics.borrow_mut().extend(names);
                Ok(metrics(&input, values))
            }
            ("SimulatePrincipalPolicy", Some(denied)) => {
                Ok(denied.get("as_it_is").cloned().unwrap_or_else(|| decisions(&input, denied)))
            }
            (_, Some(answer)) => Ok(answer.clone()),
            (_, None) => Err(refused("ResourceNotFoundException")),
        }
    }
}

/// The values of each metric, by its name and the value of its first dimension: `Throttles worker`, or by its name alone. A request with the
/// metric that it names as `refused` has no answer.
fn metrics(input: &Value, values: &Value) -> Value {
    assert_eq!((input["StartTime"].as_u64(), input["EndTime"].as_u64()), (Some(UNTIL_S - 86_400), Some(UNTIL_S)));
    let result = |query: &Value| {
        let metric = &query["MetricStat"]["Metric"];
        let name = metric["MetricName"].as_str().unwrap();
        let of = metric["Dimensions"][0]["Value"].as_str().unwrap();
        let found = values.get(format!("{name} {of}")).or_else(|| values.get(name)).cloned().unwrap_or(json!([]));
        json!({"Id": query["Id"], "Values": found})
    };
    json!({"MetricDataResults": input["MetricDataQueries"].as_array().unwrap().iter().map(result).collect::<Vec<_>>()})
}

/// All actions are allowed but these; or, where it says `allowed_on`, those on what has an ARN that begins so; or, where it says `depends`,
/// all but those that begin so, which have a condition on a key.
fn decisions(input: &Value, denied: &Value) -> Value {
    let arn = input["ResourceArns"][0].as_str().unwrap();
    let is_denied = |action: &Value| match &denied["allowed_on"] {
        Value::String(begin) => !arn.starts_with(begin) && arn != "*",
        _ => denied.as_array().is_some_and(|denied| denied.contains(action)),
    };
    let result = |action: &Value| {
        let depends = &denied["depends"];
        let is_denied =
            is_denied(action) || action.as_str().unwrap().starts_with(depends[0].as_str().unwrap_or("none"));
        let decision = if is_denied { "implicitDeny" } else { "allowed" };
        // IAM names the keys of all statements, whatever they are about.
        let missing = if depends.is_array() { json!([depends[1]]) } else { json!([]) };
        json!({"EvalActionName": action, "EvalDecision": decision, "MissingContextValues": missing})
    };
    json!({"EvaluationResults": input["ActionNames"].as_array().unwrap().iter().map(result).collect::<Vec<_>>()})
}

fn good() -> Value {
    json!({
        "ListStackResources": {"StackResourceSummaries": [
            {"ResourceType": "AWS::Lambda::Function", "PhysicalResourceId": "worker"},
            {"ResourceType": "AWS::SQS::Queue", "PhysicalResourceId": "https://sqs/123456789012/orders"},
        ]},
        "DescribeStackResource": {},
        "GetFunction": {
            "Configuration": {
                "FunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:worker",
                "Role": "arn:aws:iam::123456789012:role/worker",
                "Timeout": 30,
                "Architectures": ["arm64"],
                "LoggingConfig": {"LogFormat": "JSON", "LogGroup": "/logs/worker"},
                "Environment": {"Variables": {
                    "CLAIMANT_TABLE": "locks",
                    "CLAIMANT_DEAD_LETTER_QUEUE_URL": "https://sqs/123456789012/letters",
                    "SECRET": "s3cret",
                }},
            },
            "Concurrency": {"ReservedConcurrentExecutions": 20},
        },
        "ListEventSourceMappings": {"EventSourceMappings": [{
            "UUID": "m-1",
            "EventSourceArn": QUEUE,
            "FunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:worker",
            "BatchSize": 10,
            "MaximumBatchingWindowInSeconds": 0,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ScalingConfig": {"MaximumConcurrency": 10},
            "MetricsConfig": {"Metrics": ["EventCount"]},
            "State": "Enabled",
        }]},
        "GetQueueUrl": {},
        "GetQueueAttributes orders": {"Attributes": {
            "VisibilityTimeout": "180",
            "MessageRetentionPeriod": "345600",
            "RedrivePolicy": format!("{{\"deadLetterTargetArn\":\"{LETTERS}\",\"maxReceiveCount\":5}}"),
        }},
        "GetQueueAttributes letters": {"Attributes": {"VisibilityTimeout": "30", "MessageRetentionPeriod": "1209600"}},
        "DescribeTable": {"Table": {
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
            "DeletionProtectionEnabled": true,
            "WarmThroughput": {"WriteUnitsPerSecond": 4000},
        }},
        "DescribeTimeToLive": {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}},
        "DescribeContinuousBackups": {"ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"}}},
        "DescribeContributorInsights": {"ContributorInsightsStatus": "DISABLED"},
        "GetResourcePolicy": "PolicyNotFoundException (status 400)",
        "SimulatePrincipalPolicy": [],
        "DescribeAlarms": {"MetricAlarms": [
            {"Namespace": "AWS/SQS", "MetricName": "ApproximateAgeOfOldestMessage", "Dimensions": [{"Name": "QueueName", "Value": "orders"}]},
            {"Metrics": [{"MetricStat": {"Metric": {"Namespace": "AWS/SQS", "MetricName": "ApproximateNumberOfMessagesVisible",
                "Dimensions": [{"Name": "QueueName", "Value": "letters"}]}}}]},
        ]},
        "DescribeLogGroups": {"logGroups": [{"logGroupName": "/logs/worker", "retentionInDays": 30}]},
        "ListMetrics": {"Metrics": [
            {"MetricName": "completed", "Dimensions": [{"Name": "consumer", "Value": "orders"}, {"Name": "function", "Value": "worker"}]},
            {"MetricName": "retry", "Dimensions": [{"Name": "consumer", "Value": "orders"}, {"Name": "function", "Value": "worker"}]},
        ]},
        "GetMetricData": {"completed": [600.0, 400.0], "DeletedEventCount": [500.0, 500.0], "Duration": [900.0], "ConsumedWriteCapacityUnits": [6000.0]},
    })
}

/// What a scripted account never has to wait for.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a script answers at once"),
    }
}

fn examined(answers: Value) -> Result<Report, Refused> {
    examined_by(&Script::new(answers))
}

fn examined_by(script: &Script) -> Result<Report, Refused> {
    let scope = Scope { stack: Some("shop".to_owned()), history_until_s: Some(UNTIL_S), ..Scope::default() };
    let (system, not_looked_at) = ready(examine(script, &scope))?;
    let mut report = run(&system);
    report.not_looked_at = not_looked_at;
    Ok(report)
}

const BACKUPS: &str = "DescribeContinuousBackups/ContinuousBackupsDescription/PointInTimeRecoveryDescription";

const VARIABLES: &str = "GetFunction/Configuration/Environment/Variables";

const MAPPING: &str = "ListEventSourceMappings/EventSourceMappings/0";

/// Puts a value at a place such as `GetFunction/Configuration/Timeout`.
fn changed(changes: &[(&str, Value)]) -> Value {
    let mut answers = good();
    for (path, value) in changes {
        let mut place = &mut answers;
        for part in path.split('/') {
            place = match part.parse::<usize>() {
                Ok(index) => &mut place[index],
                Err(_) => &mut place[part],
            };
        }
        *place = value.clone();
    }
    answers
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let report = examined(good()).unwrap();
    assert!(report.findings.is_empty() && report.not_looked_at.is_empty(), "{report:#?}");
    let unknown: Vec<_> = report.tallies.iter().filter(|(_, tally)| tally.unknown > 0).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn what_is_deployed_and_what_its_last_day_says_is_found() {
    use Level::{Error, Warning};
    let at = |path: &str| format!("{MAPPING}/{path}");
    let of_queue = |path: &str| format!("GetQueueAttributes orders/Attributes/{path}");
    let fifo = || {
        vec![
            (of_queue("FifoQueue"), json!("true")),
            ("GetQueueAttributes letters/Attributes/FifoQueue".to_owned(), json!("true")),
            (of_queue("MessageRetentionPeriod"), json!("60")),
        ]
    };
    let one = |path: String, value: Value| vec![(path, value)];
    let metric = |name: &str, values: Value| one(format!("GetMetricData/{name}"), values);
    let with = |mut changes: Vec<(String, Value)>, more: Vec<(String, Value)>| {
        changes.extend(more);
        changes
    };
    let before = |tables: &str| one(format!("{VARIABLES}/CLAIMANT_TABLE_BEFORE"), json!(tables));
    type Case = (Vec<(String, Value)>, u8, Level, &'static str);
    let cases: Vec<Case> = vec![
        (one(of_queue("VisibilityTimeout"), json!("20")), 1, Error, "hidden for 20 s"),
        (one(at("FunctionResponseTypes"), json!([])), 3, Error, "no ReportBatchItemFailures"),
        (one(of_queue("RedrivePolicy"), Value::Null), 5, Warning, "no RedrivePolicy"),
        (
            one(
                "GetQueueAttributes letters/Attributes/RedriveAllowPolicy".to_owned(),
                json!("{\"redrivePermission\":\"denyAll\"}"),
            ),
            8,
            Error,
            "denyAll",
        ),
        (metric("Throttles", json!([0.0, 7.0])), 12, Warning, "7 invocations were throttled"),
        (
            metric("ApproximateNumberOfMessagesNotVisible", json!([5.0, 110_000.0])),
            14,
            Error,
            "110000 messages were in flight",
        ),
        (one(at("State"), json!("Disabled")), 16, Warning, "disabled"),
        (
            one("SimulatePrincipalPolicy".to_owned(), json!(["sqs:ReceiveMessage"])),
            18,
            Error,
            "may not sqs:ReceiveMessage",
        ),
        (
            one("SimulatePrincipalPolicy".to_owned(), json!(["dynamodb:UpdateItem"])),
            18,
            Error,
            "may not dynamodb:UpdateItem on locks",
        ),
        (
            with(
                one(of_queue("KmsMasterKeyId"), json!("alias/aws/sqs")),
                one(
                    of_queue("Policy"),
                    json!(
                        "{\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":{\"AWS\":\"arn:aws:iam::210987654321:root\"},\"Action\":\"sqs:*\"}]}"
                    ),
                ),
            ),
            20,
            Error,
            "alias/aws/sqs",
        ),
        (metric("RecursiveInvocationsDropped", json!([2.0])), 21, Error, "stopped 2 invocations"),
        (
            one(format!("{VARIABLES}/CLAIMANT_DEAD_LETTER_QUEUE_URL"), json!("https://sqs/123456789012/orders")),
            21,
            Error,
            "which it reads",
        ),
        (
            one(at("FilterCriteria"), json!({"Filters": [{"Pattern": "{\"kind\": [\"x\"]}"}]})),
            15,
            Error,
            "filters by `kind`",
        ),
        (
            one(
                at("FilterCriteria"),
                json!({"Filters": [{"Pattern": "{\"body\": {\"kind\": [{\"wildcard\": \"a*\"}]}}"}]}),
            ),
            15,
            Level::Note,
            "messages that match none are deleted",
        ),
        (
            with(
                one("SimulatePrincipalPolicy".to_owned(), json!(["lambda:ListEventSourceMappings"])),
                one(format!("{VARIABLES}/CLAIMANT_MAPPING_CHECK"), json!("refuse")),
            ),
            18,
            Error,
            "may not lambda:ListEventSourceMappings",
        ),
        (
            with(
                fifo(),
                with(
                    metric("ApproximateNumberOfGroupsWithInflightMessages", json!([2.0, 3.0])),
                    metric("ApproximateAgeOfOldestMessage", json!([900.0])),
                ),
            ),
            23,
            Warning,
            "3 groups at once at most, with room for 10, while the oldest message waited 900 s",
        ),
        (one("DescribeTable/Table/AttributeDefinitions/0/AttributeType".to_owned(), json!("N")), 24, Error, "id N"),
        (
            one("DescribeTimeToLive/TimeToLiveDescription/TimeToLiveStatus".to_owned(), json!("DISABLED")),
            24,
            Warning,
            "no time to live",
        ),
        (
            metric("ConsumedWriteCapacityUnits", json!([60.0, 300_000.0])),
            26,
            Warning,
            "5000 write units a second, and it is warm for 4000",
        ),
        (
            one("DescribeTable/Table/OnDemandThroughput".to_owned(), json!({"MaxWriteRequestUnits": 90})),
            26,
            Warning,
            "90 write units a second at most",
        ),
        (one("DescribeTable/Table/Replicas".to_owned(), json!([{"RegionName": "us-east-1"}])), 27, Warning, "replicas"),
        (
            one("SimulatePrincipalPolicy".to_owned(), json!(["dynamodb:BatchGetItem"])),
            28,
            Warning,
            "dynamodb:BatchGetItem",
        ),
        (
            with(
                one("DescribeTable/Table/DeletionProtectionEnabled".to_owned(), json!(false)),
                one(format!("{BACKUPS}/PointInTimeRecoveryStatus"), json!("DISABLED")),
            ),
            25,
            Warning,
            "it has no point-in-time recovery",
        ),
        (
            with(
                one("DescribeTable/Table/WarmThroughput".to_owned(), Value::Null),
                metric("WriteThrottleEvents", json!([12.0])),
            ),
            26,
            Warning,
            "12 requests were throttled within the last day; its busiest minute had 100 write units a second",
        ),
        (
            with(
                one("GetQueueUrl".to_owned(), json!("AccessDenied")),
                metric("RecursiveInvocationsDropped", json!([2.0])),
            ),
            21,
            Error,
            "stopped 2 invocations",
        ),
        (
            with(before("old"), one("SimulatePrincipalPolicy".to_owned(), json!(["dynamodb:DeleteItem"]))),
            18,
            Error,
            "may not dynamodb:DeleteItem on old",
        ),
        (metric("WriteThrottleEvents", json!([12.0])), 29, Warning, "12 requests were throttled"),
        (one("DescribeAlarms/MetricAlarms".to_owned(), json!([])), 30, Warning, "no alarm"),
        (
            one("DescribeAlarms/MetricAlarms/0/ActionsEnabled".to_owned(), json!(false)),
            30,
            Warning,
            "no alarm is on ApproximateAge",
        ),
        (
            metric("DeletedEventCount m-1", json!([1500.0])),
            31,
            Error,
            "Lambda deleted 1500 messages within the last day, and worker reported 1000",
        ),
        (
            one("GetFunction/Configuration/Environment/Variables/CLAIMANT_METRICS".to_owned(), json!("none")),
            37,
            Error,
            "CLAIMANT_METRICS is \"none\"; `on` or `off` is needed",
        ),
        (
            one(format!("{VARIABLES}/CLAIMANT_MARGIN_MS"), json!("30000")),
            37,
            Error,
            "has to return 30000 ms before that is over",
        ),
    ];
    for (changes, number, level, says) in &cases {
        let changes: Vec<_> = changes.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
        let report = examined(changed(&changes)).unwrap();
        let is_it = |finding: &&claimant_doctor::Finding| {
            finding.check.number == *number && finding.level == *level && finding.what.contains(says)
        };
        assert!(
            report.findings.iter().any(|finding| is_it(&finding)),
            "check {number} does not say `{says}`: {report:#?}"
        );
    }
    let covered: BTreeSet<u8> = cases.iter().map(|case| case.1).collect();
    assert!(covered.contains(&23) && covered.contains(&29), "those that only metrics answer");
}

/// (what is changed, a check, where it is found, what is to be written).
#[test]
fn a_finding_names_what_people_know_and_can_write() {
    let arn = "Action: [sqs:ReceiveMessage], Resource: arn:aws:sqs:eu-west-1:123456789012:orders";
    for (path, value, number, place, fix) in [
        (&*format!("{MAPPING}/FunctionResponseTypes"), json!([]), 3, "worker (orders, m-1)", "ReportBatchItemFailures"),
        (
            &format!("{MAPPING}/State"),
            json!("Disabled"),
            16,
            "worker (orders, m-1)",
            "claimant resume worker --queue orders",
        ),
        ("SimulatePrincipalPolicy", json!(["sqs:ReceiveMessage"]), 18, "worker", arn),
        ("SimulatePrincipalPolicy", json!(["dynamodb:PutItem"]), 28, "worker", "Resource: the ARN of locks"),
        ("DescribeAlarms/MetricAlarms", json!([]), 30, LETTERS, "QueueName: letters"),
    ] {
        let report = examined(changed(&[(path, value)])).unwrap();
        let is_it = |finding: &&claimant_doctor::Finding| {
            finding.check.number == number && *finding.place.id == *place && finding.fix.contains(fix)
        };
        assert!(report.findings.iter().any(|finding| is_it(&finding)), "{number}: {report:#?}");
    }
}

/// Another stack's function takes its share of the messages, and is not examined itself.
#[test]
fn a_reader_that_is_not_examined_is_found() {
    for (queue, state, says) in [
        (QUEUE, "Enabled", Some("also go to worker-old:live: each message to one of them")),
        (QUEUE, "Disabled", None),
        (LETTERS, "Enabled", None),
    ] {
        let mut answers = good();
        let mut other = answers["ListEventSourceMappings"]["EventSourceMappings"][0].clone();
        for (key, value) in [
            ("UUID", "m-2"),
            ("EventSourceArn", queue),
            ("FunctionArn", "arn:aws:lambda:eu-west-1:123456789012:function:worker-old:live"),
            ("State", state),
        ] {
            other[key] = json!(value);
        }
        // Of one that is not examined nothing else is said.
        other["FunctionResponseTypes"] = json!([]);
        answers["ListEventSourceMappings"]["EventSourceMappings"].as_array_mut().unwrap().push(other);
        let report = examined(answers).unwrap();
        let found: Vec<_> = report.findings.iter().map(|finding| (finding.check.number, &*finding.what)).collect();
        let is_expected = match (&*found, says) {
            ([], None) => true,
            ([(16, what)], Some(says)) => what.contains(says),
            _ => false,
        };
        assert!(is_expected, "{queue} {state}: {report:#?}");
    }
}

/// One version was asked for, by its alias; `GetFunction` then has the alias in the function's ARN.
#[test]
fn another_version_of_the_function_is_another_reader() {
    let arn = |of: &str| json!(format!("arn:aws:lambda:eu-west-1:123456789012:function:{of}"));
    for (other, says) in [
        ("worker:blue", Some("also go to worker:blue by worker (orders, m-2): each")),
        ("worker", Some("also go to worker by worker (orders, m-2): each")),
        ("worker:live", None),
    ] {
        let mut answers = changed(&[
            ("GetFunction/Configuration/FunctionArn", arn("worker:live")),
            (&format!("{MAPPING}/FunctionArn"), arn("worker:live")),
        ]);
        let mappings = answers["ListEventSourceMappings"]["EventSourceMappings"].as_array_mut().unwrap();
        if other != "worker:live" {
            let mut second = mappings[0].clone();
            (second["UUID"], second["FunctionArn"]) = (json!("m-2"), arn(other));
            mappings.push(second);
        }
        let scope = Scope { functions: vec!["worker:live".to_owned()], ..Scope::default() };
        let (system, _) = ready(examine(&Script::new(answers), &scope)).unwrap();
        let report = run(&system);
        let found: Vec<_> = report.findings.iter().map(|finding| (finding.check.number, &*finding.what)).collect();
        assert_eq!(found.len(), usize::from(says.is_some()), "{other}: {report:#?}");
        assert!(found.iter().all(|(check, what)| *check == 16 && what.contains(says.unwrap())), "{found:?}");
    }
}

/// Only metrics say of what is deployed whether messages go round.
#[test]
fn without_a_history_loops_are_not_known() {
    let scope = Scope { stack: Some("shop".to_owned()), ..Scope::default() };
    let own = [(&*format!("{VARIABLES}/CLAIMANT_DEAD_LETTER_QUEUE_URL"), json!("https://sqs/123456789012/orders"))];
    for (answers, found) in [(good(), 0), (changed(&own), 1)] {
        let (system, not_looked_at) = ready(examine(&Script::new(answers), &scope)).unwrap();
        let tally = run(&system).tallies[&21];
        assert_eq!((tally.fine, tally.found, tally.unknown), (0, found, 1 - found));
        assert_eq!(not_looked_at, [""; 0]);
    }
}

/// It can be another Region's, or one that these credentials may not see.
#[test]
fn rights_on_a_dead_letter_queue_that_is_not_seen_are_not_known() {
    let report = examined(changed(&[
        ("GetQueueUrl letters", json!("AccessDenied")),
        ("SimulatePrincipalPolicy", json!(["sqs:SendMessage"])),
    ]));
    let report = report.unwrap();
    assert!(report.findings.iter().all(|finding| finding.check.number != 18), "{report:#?}");
    assert_eq!([18, 19].map(|check| report.tallies[&check].unknown), [1, 1], "{report:#?}");
}

/// Outcomes after which the message stays in its queue; after all others it may be deleted.
const STAYS: [&str; 12] = [
    "busy",
    "retry",
    "cancelled",
    "stuck",
    "not_started",
    "breaker_open",
    "rate_limited",
    "blocked",
    "lease_lost",
    "settle_unknown",
    "store_failed",
    "fetch_failed",
];

#[test]
fn every_message_that_may_be_deleted_counts_as_done() {
    assert!(STAYS.iter().all(|word| OUTCOME_WORDS.contains(word)));
    for word in OUTCOME_WORDS.into_iter().filter(|word| *word != "completed") {
        let report = examined(changed(&[
            ("ListMetrics/Metrics/1/MetricName", json!(word)),
            ("GetMetricData", json!({"completed": [900.0], word: [100.0], "DeletedEventCount": [1_000.0]})),
        ]));
        let report = report.unwrap();
        let is_found = report.findings.iter().any(|finding| finding.check.number == 31);
        assert_eq!(is_found, STAYS.contains(&word), "{word}: {report:#?}");
    }
}

/// The metrics of claimant are by function, and Lambda's by mapping.
#[test]
fn the_mappings_of_a_function_are_audited_together() {
    let filters = json!({"Filters": [{"Pattern": "{}"}]});
    for (of_payments, metrics, expected) in [
        // One of them lost 300, which is less than the other one did.
        (json!({}), json!({"DeletedEventCount m-1": [1000.0], "DeletedEventCount m-2": [5000.0]}), (0, 1, 0)),
        (json!({}), json!({"DeletedEventCount m-1": [1000.0], "DeletedEventCount m-2": [4700.0]}), (1, 0, 0)),
        (json!({}), json!({"DeletedEventCount m-1": [1000.0]}), (1, 0, 0)),
        (json!({}), json!({}), (0, 0, 1)),
        // It may have deleted more.
        (json!({"MetricsConfig": {}}), json!({"DeletedEventCount m-1": [1000.0]}), (0, 0, 1)),
        (json!({"MetricsConfig": {}}), json!({"DeletedEventCount m-1": [6000.0]}), (0, 1, 0)),
        // Whether Lambda counts those that it drops is not known.
        (
            json!({"FilterCriteria": filters}),
            json!({"DeletedEventCount m-2": [6000.0], "FilteredOutEventCount m-2": [300.0]}),
            (1, 0, 0),
        ),
        (
            json!({"FilterCriteria": filters}),
            json!({"DeletedEventCount m-2": [6000.0], "FilteredOutEventCount m-2": [200.0]}),
            (0, 1, 0),
        ),
    ] {
        let mut answers = changed(&[("GetMetricData", metrics.clone())]);
        answers["GetMetricData"]["completed"] = json!([5700.0]);
        let mappings = answers["ListEventSourceMappings"]["EventSourceMappings"].as_array_mut().unwrap();
        let mut payments = mappings[0].clone();
        payments["UUID"] = json!("m-2");
        payments["EventSourceArn"] = json!("arn:aws:sqs:eu-west-1:123456789012:payments");
        payments.as_object_mut().unwrap().extend(of_payments.as_object().unwrap().clone());
        mappings.push(payments);
        let report = examined(answers).unwrap();
        let found =
            report.findings.iter().filter(|finding| finding.check.number == 31 && finding.level == Level::Error);
        assert!(found.clone().all(|finding| &*finding.place.id == "worker"), "{report:#?}");
        // Of each mapping, whether its metrics are on.
        let (of_mappings, tally) = (usize::from(of_payments["MetricsConfig"].is_null()), report.tallies[&31]);
        let audits = (tally.fine - 1 - of_mappings, found.count(), tally.unknown);
        assert_eq!(audits, expected, "{of_payments} {metrics}: {report:#?}");
    }
}

/// Groups wait for concurrency where there is none left.
#[test]
fn groups_are_few_beside_what_may_run_at_once() {
    let (fine, found, unknown) = ((1, 0, 0), (0, 1, 0), (0, 0, 1));
    for (groups, scaling, reserved, mappings, expected) in [
        (9.0, json!({}), json!(10), 1, found),
        (10.0, json!({}), json!(10), 1, fine),
        (10.0, json!({"ScalingConfig": {"MaximumConcurrency": 10}}), Value::Null, 1, fine),
        (10.0, json!({"ScalingConfig": {"MaximumConcurrency": 20}}), json!(10), 1, fine),
        (19.0, json!({"ProvisionedPollerConfig": {"MaximumPollers": 2}}), Value::Null, 1, found),
        (20.0, json!({"ProvisionedPollerConfig": {"MaximumPollers": 2}}), Value::Null, 1, fine),
        (20.0, json!({}), Value::Null, 1, found),
        // The other one takes its share.
        (9.0, json!({}), json!(10), 2, unknown),
        (9.0, json!({"ScalingConfig": {"MaximumConcurrency": 10}}), json!(20), 2, found),
    ] {
        let mut answers = changed(&[
            ("GetQueueAttributes orders/Attributes/FifoQueue", json!("true")),
            (&format!("{MAPPING}/ScalingConfig"), Value::Null),
            ("GetFunction/Concurrency/ReservedConcurrentExecutions", reserved.clone()),
            ("GetMetricData/ApproximateNumberOfGroupsWithInflightMessages", json!([groups])),
            ("GetMetricData/ApproximateAgeOfOldestMessage", json!([1200.0])),
        ]);
        let all = answers["ListEventSourceMappings"]["EventSourceMappings"].as_array_mut().unwrap();
        all[0].as_object_mut().unwrap().extend(scaling.as_object().unwrap().clone());
        let mut other = all[0].clone();
        (other["UUID"], other["EventSourceArn"]) = (json!("m-2"), json!(LETTERS));
        all.push(other);
        all.truncate(mappings);
        let tally = examined(answers).unwrap().tallies[&23];
        assert_eq!((tally.fine, tally.found, tally.unknown), expected, "{groups} {scaling} {reserved} {mappings}");
    }
}

/// What was refused can be a part of what the function reported.
#[test]
fn a_part_of_the_metrics_is_no_audit() {
    let metric = |name: &str, consumer: &str| json!({"MetricName": name, "Dimensions": [{"Name": "consumer", "Value": consumer}, {"Name": "function", "Value": "worker"}]});
    // More than one request takes.
    let mut all: Vec<_> = (0..500).map(|index| metric("completed", &format!("c{index}"))).collect();
    all.push(metric("duplicate", "c0"));
    let values = |refused: &str| json!({"completed": [], "completed c0": [600.0], "duplicate": [400.0], "DeletedEventCount": [1000.0], "refused": refused});
    for (refused, expected) in [("none", (2, 0)), ("duplicate", (1, 1))] {
        let report =
            examined(changed(&[("ListMetrics/Metrics", json!(all)), ("GetMetricData", values(refused))])).unwrap();
        assert!(report.findings.is_empty(), "{refused}: {report:#?}");
        let tally = report.tallies[&31];
        assert_eq!((tally.fine, tally.unknown), expected, "{refused}: {report:#?}");
    }
}

#[test]
fn tables_and_queues_are_in_the_partition_of_their_function() {
    let gov = |service: &str, name: &str| json!(format!("arn:aws-us-gov:{service}:us-gov-west-1:123456789012:{name}"));
    let changes = |allowed: &str| {
        changed(&[
            ("GetFunction/Configuration/FunctionArn", gov("lambda", "function:worker")),
            (&format!("{MAPPING}/EventSourceArn"), gov("sqs", "orders")),
            (&format!("{MAPPING}/FunctionArn"), gov("lambda", "function:worker")),
            ("SimulatePrincipalPolicy", json!({ "allowed_on": allowed })),
        ])
    };
    let found = |answers: Value, number: u8| {
        let report = examined(answers).unwrap();
        report.findings.iter().filter(|finding| finding.check.number == number).count()
    };
    assert_eq!(found(changes("arn:aws-us-gov:dynamodb:us-gov-west-1:123456789012:table/locks"), 28), 0);
    assert_eq!(found(changes("arn:aws:dynamodb:"), 28), 1, "the check looks at what is simulated");
    let mut answers = changes("arn:aws-us-gov:");
    // A dead-letter queue that only the function knows.
    answers["GetQueueAttributes orders"]["Attributes"]["RedrivePolicy"] = Value::Null;
    assert_eq!((found(answers.clone(), 18), found(answers, 28)), (0, 0));
}

/// IAM is not told what a request would be, and a silent doctor would be taken for a content one.
#[test]
fn what_iam_does_not_decide_here_is_said() {
    let variable = "GetFunction/Configuration/Environment/Variables/CLAIMANT_RESUME_ROLE_ARN";
    let mut answers = changed(&[(variable, json!("arn:aws:iam::123456789012:role/resume"))]);
    answers["SimulatePrincipalPolicy"] = json!({"depends": ["dynamodb:", "dynamodb:LeadingKeys"]});
    let report = examined(answers.clone()).unwrap();
    assert!(report.findings.is_empty(), "{report:#?}");
    for says in ["the role of worker may pause its intake", "roles may do with locks"] {
        assert!(report.not_looked_at.iter().any(|line| line.contains(says)), "{says}: {:#?}", report.not_looked_at);
    }
    for (key, is_found) in [
        ("dynamodb:LeadingKeys", true),
        ("ses:FromAddress", true),
        ("aws:SourceVpc", false),
        ("lambda:SourceFunctionArn", false),
    ] {
        let orders = format!("roles may do with {QUEUE}, as far as it depends on {key}: check 18");
        answers["SimulatePrincipalPolicy"] = json!({"depends": ["sqs:ReceiveMessage", key]});
        let report = examined(answers.clone()).unwrap();
        assert_eq!(report.findings.iter().any(|finding| finding.check.number == 18), is_found, "{key}: {report:#?}");
        assert_eq!(report.not_looked_at.iter().any(|line| line.contains(&orders)), !is_found, "{key}: {report:#?}");
    }
    for (detail, allowed, says) in [
        ("OrganizationsDecisionDetail", "AllowedByOrganizations", "the organization's policies"),
        ("PermissionsBoundaryDecisionDetail", "AllowedByPermissionsBoundary", "the permissions boundary"),
    ] {
        let mut result = decisions(
            &json!({"ResourceArns": [QUEUE], "ActionNames": ["sqs:ReceiveMessage"]}),
            &json!(["sqs:ReceiveMessage"]),
        );
        result["EvaluationResults"][0][detail] = json!({allowed: "false"});
        answers["SimulatePrincipalPolicy"] = json!({ "as_it_is": result });
        let report = examined(answers.clone()).unwrap();
        assert!(report.findings.is_empty(), "{report:#?}");
        assert!(report.not_looked_at.iter().any(|line| line.contains(says)), "{report:#?}");
    }
}

/// IAM is not told of it, and of another account's table it decides alone.
#[test]
fn a_tables_own_policy_may_admit_the_role() {
    let of_other = "arn:aws:dynamodb:eu-west-1:222222222222:table/locks";
    for (table, policy) in [
        ("locks", json!({"Policy": "{}"})),
        (of_other, json!({"Policy": "{}"})),
        (of_other, json!("AccessDeniedException")),
    ] {
        let report = examined(changed(&[
            ("GetFunction/Configuration/Environment/Variables/CLAIMANT_TABLE", json!(table)),
            ("GetResourcePolicy", policy),
            ("SimulatePrincipalPolicy", json!({"allowed_on": "arn:aws:sqs:"})),
        ]))
        .unwrap();
        assert!(report.findings.is_empty(), "{table}: {report:#?}");
        assert_eq!((report.tallies[&18].unknown, report.tallies[&28].unknown), (1, 1), "{table}: {report:#?}");
        let says =
            format!("roles may do with {table}, as far as it depends on the table's own policy: checks 18 and 28");
        assert!(report.not_looked_at.contains(&format!("what {says}")), "{:#?}", report.not_looked_at);
    }
}

/// What AWS leaves out is neither taken for what is not there, nor passed over.
#[test]
fn what_is_encrypted_is_not_looked_at_and_said() {
    let error = |code: &str| json!({"Error": {"ErrorCode": code, "Message": "the key is off"}});
    let filters = format!("{MAPPING}/KMSKeyArn");
    let key = || json!("arn:aws:kms:eu-west-1:123456789012:key/k");
    for (path, value, says, check) in [
        (
            "GetFunction/Configuration/Environment",
            error("AccessDeniedException"),
            "the variables of worker: AccessDeniedException: they are encrypted with a key that these credentials may not use",
            37,
        ),
        (
            "GetFunction/Configuration/Environment",
            error("KMSDisabledException"),
            "the variables of worker: KMSDisabledException: the key is off",
            37,
        ),
        (filters.as_str(), key(), "the filters of worker (orders, m-1): they are encrypted", 15),
    ] {
        let report = examined(changed(&[(path, value)])).unwrap();
        assert!(report.findings.is_empty(), "{path}: {report:#?}");
        assert!(report.not_looked_at.iter().any(|line| line.contains(says)), "{path}: {:#?}", report.not_looked_at);
        assert_eq!((report.tallies[&check].fine, report.tallies[&check].unknown), (0, 1), "{path}: {report:#?}");
    }
}

/// A queue's redrive uses no role's rights: only a role that sends there itself needs its key.
#[test]
fn keys_of_queues_that_roles_use_are_said_not_to_be_asked_for() {
    let mut answers = changed(&[
        ("GetQueueAttributes orders/Attributes/KmsMasterKeyId", json!("k")),
        ("GetQueueAttributes letters/Attributes/KmsMasterKeyId", json!("k")),
    ]);
    let line =
        |of: &str| [format!("whether roles may use the keys of {of}: policies of keys are not asked for (check 19)")];
    assert_eq!(examined(answers.clone()).unwrap().not_looked_at, line(&format!("{LETTERS}, {QUEUE}")));
    answers["GetFunction"]["Configuration"]["Environment"]["Variables"]["CLAIMANT_DEAD_LETTER_QUEUE_URL"] = Value::Null;
    assert_eq!(examined(answers).unwrap().not_looked_at, line(QUEUE));
}

/// Each table that records are moved from is asked about for itself.
#[test]
fn tables_that_records_are_moved_from_are_asked_about() {
    let variable = format!("{VARIABLES}/CLAIMANT_TABLE_BEFORE");
    let answers = changed(&[(&variable, json!("old-1, arn:aws:dynamodb:eu-west-1:123456789012:table/old-2"))]);
    let report = examined(answers.clone()).unwrap();
    assert!(report.findings.is_empty() && report.not_looked_at.is_empty(), "{report:#?}");
    assert_eq!(
        (report.tallies[&18].fine, report.tallies[&24].fine, report.tallies[&28].fine),
        (3, 1, 3),
        "{report:#?}"
    );
    let mut denied = answers;
    denied["SimulatePrincipalPolicy"] = json!(["dynamodb:BatchGetItem"]);
    let report = examined(denied).unwrap();
    let on =
        |table: &str| report.findings.iter().any(|finding| finding.what.contains(&format!("BatchGetItem on {table}")));
    assert!(["locks", "old-1", "old-2"].into_iter().all(on), "{report:#?}");
}

/// What no check looks at is not asked for.
#[test]
fn only_lock_tables_are_asked_about_as_such() {
    let variables = |more: Value| {
        let mut all = good()["GetFunction"]["Configuration"]["Environment"]["Variables"].take();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        [(VARIABLES, all)]
    };
    for (more, tables, lock_tables) in [
        (json!({"CLAIMANT_TABLE_BEFORE": "old"}), 2, 1),
        (json!({"CLAIMANT_TABLE_BEFORE": ""}), 1, 1),
        (json!({"CLAIMANT_TABLE": "locks,more", "CLAIMANT_TABLE_BEFORE": "locks,old"}), 3, 2),
        (json!({"CLAIMANT_DATABASE_URL": "postgres://db"}), 0, 0),
    ] {
        let script = Script::new(changed(&variables(more.clone())));
        let report = examined_by(&script).unwrap();
        assert_eq!(report.not_looked_at, [""; 0], "{more}");
        let asked = |operation| script.asked.borrow().iter().filter(|asked| **asked == operation).count();
        assert_eq!((asked("DescribeTable"), asked("GetResourcePolicy")), (tables, tables), "{more}");
        let of_lock_tables = ["DescribeTimeToLive", "DescribeContinuousBackups", "DescribeContributorInsights"];
        assert_eq!(of_lock_tables.map(asked), [lock_tables; 3], "{more}");
        let metrics = script.metrics.borrow().iter().filter(|metric| *metric == "WriteThrottleEvents").count();
        assert_eq!(metrics, lock_tables, "{more}");
    }
}

/// Protection is asked for in the function's Region.
#[test]
fn replicas_in_other_regions_are_said_not_to_be_asked_for() {
    let in_regions = |regions: &[&str]| {
        let replicas: Vec<_> = regions.iter().map(|region| json!({ "RegionName": region })).collect();
        let report = examined(changed(&[
            ("DescribeTable/Table/Replicas", json!(replicas)),
            ("DescribeTable/Table/MultiRegionConsistency", json!("STRONG")),
            ("DescribeTable/Table/TableArn", json!("arn:aws:dynamodb:eu-west-1:123456789012:table/locks")),
        ]));
        let report = report.unwrap();
        assert!(report.findings.is_empty(), "{report:#?}");
        report.not_looked_at
    };
    let line =
        "the replicas of locks in us-east-1, us-west-2: what protects them is asked for in this Region only (check 25)";
    assert_eq!(in_regions(&["us-east-1", "eu-west-1", "us-west-2"]), [line]);
    assert_eq!(in_regions(&["eu-west-1"]), [""; 0]);
}

/// The key may be AWS's own, and its policy is not known.
#[test]
fn the_key_of_a_table_is_said_not_to_be_asked_for() {
    let description = "DescribeTable/Table/SSEDescription";
    for (encrypted, unknown) in [
        (
            json!({"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": "arn:aws:kms:eu-west-1:123456789012:key/k"}),
            1,
        ),
        (json!({"Status": "DISABLED"}), 0),
    ] {
        let report = examined(changed(&[(description, encrypted)])).unwrap();
        assert!(report.findings.is_empty(), "{report:#?}");
        assert_eq!(report.tallies[&18].unknown, unknown, "{report:#?}");
        let says = "whether roles may use the KMS keys of locks: ";
        assert_eq!(report.not_looked_at.iter().filter(|line| line.contains(says)).count(), unknown, "{report:#?}");
    }
}

/// Of queues and tables of another account, that account's are judged, and those of the same name here are not.
#[test]
fn what_another_account_has_is_looked_at_there() {
    let of_other = |kind: &str, name: &str| format!("arn:aws:{kind}:eu-west-1:222222222222:{name}");
    let redrive =
        json!(format!("{{\"deadLetterTargetArn\":\"{}\",\"maxReceiveCount\":5}}", of_other("sqs", "letters")));
    let report = examined(changed(&[
        (&format!("{MAPPING}/EventSourceArn"), json!(of_other("sqs", "orders"))),
        ("GetQueueAttributes orders/Attributes/RedrivePolicy", redrive),
        ("GetQueueUrl letters", json!("AccessDenied")),
        ("GetFunction/Configuration/Environment/Variables/CLAIMANT_DEAD_LETTER_QUEUE_URL", Value::Null),
    ]));
    let report = report.unwrap();
    assert!(report.findings.is_empty(), "{report:#?}");
    assert_eq!((report.tallies[&7].fine, report.tallies[&7].found), (1, 0), "{report:#?}");
    let url = |host: &str| json!(format!("https://{host}/222222222222/letters"));
    let variable = |name: &str| format!("GetFunction/Configuration/Environment/Variables/{name}");
    for (name, value, action, on) in [
        (
            "CLAIMANT_DEAD_LETTER_QUEUE_URL",
            url("sqs.eu-west-1.amazonaws.com"),
            "sqs:SendMessage",
            of_other("sqs", "letters"),
        ),
        (
            "CLAIMANT_TABLE",
            json!(of_other("dynamodb", "table/locks")),
            "dynamodb:UpdateItem",
            of_other("dynamodb", "table/locks"),
        ),
        (
            "CLAIMANT_TABLE",
            json!("arn:aws:dynamodb:eu-west-1:123456789012:table/locks"),
            "dynamodb:UpdateItem",
            "on locks".to_owned(),
        ),
    ] {
        let answers = changed(&[(&variable(name), value), ("SimulatePrincipalPolicy", json!([action]))]);
        let report = examined(answers).unwrap();
        let found = report.findings.iter().find(|finding| finding.check.number == 18);
        assert!(found.is_some_and(|finding| finding.what.contains(&on)), "{on}: {report:#?}");
    }
    // Its alarms are there, and one here is on the queue of that name here.
    let queue = (&*variable("CLAIMANT_DEAD_LETTER_QUEUE_URL"), url("sqs.eu-west-1.amazonaws.com"));
    let report = examined(changed(&[queue])).unwrap();
    let tally = report.tallies[&30];
    assert_eq!((tally.fine, tally.found, tally.unknown), (2, 0, 1), "{report:#?}");
    let elsewhere = changed(&[
        (&variable("CLAIMANT_DEAD_LETTER_QUEUE_URL"), url("vpce-0a1-2b3.sqs.eu-west-2.vpce.amazonaws.com")),
        ("SimulatePrincipalPolicy", json!(["sqs:SendMessage"])),
    ]);
    let report = examined(elsewhere).unwrap();
    assert!(report.findings.is_empty(), "{report:#?}");
    assert!(report.not_looked_at.iter().any(|line| line.contains("another Region")), "{:#?}", report.not_looked_at);
}

#[test]
fn mappings_of_versions_and_aliases_are_the_functions() {
    for (function, its) in [("worker", 1), ("worker:live", 1), ("worker:7", 1), ("workers", 0), ("other:worker", 0)] {
        let arn = json!(format!("arn:aws:lambda:eu-west-1:123456789012:function:{function}"));
        let answers = changed(&[
            (&format!("{MAPPING}/FunctionArn"), arn),
            (&format!("{MAPPING}/FunctionResponseTypes"), json!([])),
        ]);
        let report = examined(answers).unwrap();
        let found = report.findings.iter().filter(|finding| finding.check.number == 3).count();
        assert_eq!(found, its, "{function}: {report:#?}");
    }
}

#[test]
fn what_is_refused_is_unknown_and_said() {
    // Each answer that can be refused, whoever asks.
    for operation in [
        "GetQueueUrl",
        "GetQueueAttributes letters",
        "DescribeTable",
        "DescribeTimeToLive",
        "DescribeContinuousBackups",
        "DescribeContributorInsights",
        "GetResourcePolicy",
        "SimulatePrincipalPolicy",
        "DescribeAlarms",
        "DescribeLogGroups",
        "ListMetrics",
        "GetMetricData",
    ] {
        let report = examined(changed(&[(operation, json!("AccessDeniedException"))])).unwrap();
        assert!(report.findings.is_empty(), "{operation}: {:#?}", report.findings);
        if operation == "GetMetricData" {
            assert_eq!((report.tallies[&21].fine, report.tallies[&21].unknown), (0, 1), "nobody looked for loops");
        }
        let note = report.not_looked_at.first().unwrap_or_else(|| panic!("{operation} is not said to be refused"));
        assert!(note.contains("lack the permission") && !note.contains("s3cret"), "{note}");
    }
}

/// What was deleted does not read as a permission that is missing; what another account has, it may only not show.
#[test]
fn what_is_named_and_not_there_is_an_error() {
    let arn = |kind: &str, name: &str| format!("arn:aws:{kind}:eu-west-1:222222222222:{name}");
    let variable = |name: &str| format!("{VARIABLES}/{name}");
    let (no_table, no_queue) =
        (json!("ResourceNotFoundException (status 400)"), json!("QueueDoesNotExist (status 400)"));
    for (gone, code, what, by) in [
        ("DescribeTable locks", &no_table, "no table locks", vec!["CLAIMANT_TABLE of worker"]),
        ("GetQueueUrl orders", &no_queue, "no queue orders", vec!["the mapping worker (orders, m-1)"]),
        (
            "GetQueueUrl letters",
            &json!("AWS.SimpleQueueService.NonExistentQueue (status 400)"),
            "no queue letters",
            vec![
                "CLAIMANT_DEAD_LETTER_QUEUE_URL of worker",
                "the RedrivePolicy of arn:aws:sqs:eu-west-1:123456789012:orders",
            ],
        ),
        ("GetQueueAttributes letters", &no_queue, "no queue letters", vec!["CLAIMANT_DEAD_LETTER_QUEUE_URL of worker"]),
    ] {
        let report = examined(changed(&[(gone, code.clone())])).unwrap();
        let errors: Vec<_> = report.from(Level::Error).collect();
        let [error] = &errors[..] else { panic!("{gone}: {report:#?}") };
        assert!(error.check.number == 41 && error.what.contains(what), "{error:?}");
        assert!(by.iter().all(|by| error.what.contains(by)), "{error:?}");
        assert!(!report.not_looked_at.iter().any(|line| line.contains(&format!("{code}"))), "{report:#?}");
    }
    let before = (&*variable("CLAIMANT_TABLE_BEFORE"), json!("old"));
    let report = examined(changed(&[before, ("DescribeTable old", no_table.clone())])).unwrap();
    let errors: Vec<_> = report.from(Level::Error).map(|error| &*error.fix).collect();
    assert!(errors.len() == 1 && errors[0].contains("deploy without CLAIMANT_TABLE_BEFORE"), "{report:#?}");
    let url = json!("https://sqs.eu-west-1.amazonaws.com/222222222222/theirs");
    for (name, value, gone, code) in [
        ("CLAIMANT_TABLE", json!(arn("dynamodb", "table/theirs")), "DescribeTable theirs", &no_table),
        ("CLAIMANT_DEAD_LETTER_QUEUE_URL", url, "GetQueueUrl theirs", &no_queue),
    ] {
        let report = examined(changed(&[(&variable(name), value), (gone, code.clone())])).unwrap();
        assert_eq!(report.from(Level::Error).count(), 0, "{report:#?}");
        assert!(report.not_looked_at.iter().any(|line| line.contains("theirs")), "{report:#?}");
    }
}

/// SQS has one answer for both.
#[test]
fn a_queue_that_these_credentials_may_only_not_see_is_said_to_be_one() {
    let name = "AWS.SimpleQueueService.NonExistentQueue (status 400)";
    for (says, may_be_hidden) in [
        ("The specified queue does not exist or you do not have access to it.", true),
        ("The specified queue does not exist.", false),
    ] {
        let report = examined(changed(&[("GetQueueUrl letters", json!(format!("{name} {says}")))])).unwrap();
        let errors: Vec<_> = report.from(Level::Error).collect();
        let [error] = &errors[..] else { panic!("{says}: {report:#?}") };
        assert_eq!(error.check.number, 41, "{error:?}");
        let (what, fix) = ("or these credentials may not see it", "sqs:GetQueueUrl and sqs:GetQueueAttributes");
        assert_eq!([error.what.contains(what), error.fix.contains(fix)], [may_be_hidden; 2], "{error:?}");
    }
}

/// Of what nothing names only the stack shows that it was there; what is named is asked for once.
#[test]
fn what_was_deleted_by_other_means_than_its_stack_is_found() {
    let (no_table, no_queue) =
        (json!("ResourceNotFoundException (status 400)"), json!("QueueDoesNotExist (status 400)"));
    let hidden = json!("QueueDoesNotExist (status 400) … or you do not have access to it.");
    let queue = "https://sqs/123456789012/old";
    for (kind, id, gone, found) in [
        (
            "Lambda::EventSourceMapping",
            "m-9",
            ("UNUSED", json!({})),
            Some((Level::Error, "no event source mapping m-9, which the stack shop has as Old: ")),
        ),
        (
            "Lambda::Function",
            "old",
            ("GetFunction old", json!("ResourceNotFoundException (status 404)")),
            Some((Level::Error, "no function old, which the stack shop has as Old: ")),
        ),
        ("SQS::Queue", queue, ("GetQueueUrl old", no_queue), Some((Level::Warning, "no queue old, which the stack"))),
        ("SQS::Queue", queue, ("GetQueueUrl old", hidden), None),
        ("SQS::Queue", queue, ("GetQueueUrl old", json!("AccessDenied (status 403)")), None),
        (
            "DynamoDB::Table",
            "old",
            ("DescribeTable old", no_table),
            Some((Level::Warning, "no table old, which the stack")),
        ),
        ("DynamoDB::Table", "old", ("DescribeTable old", json!("AccessDenied (status 400)")), None),
    ] {
        let mut of_stack = resources("WorkerReads");
        let old = json!({"ResourceType": format!("AWS::{kind}"), "LogicalResourceId": "Old", "PhysicalResourceId": id});
        of_stack.as_array_mut().unwrap().push(old);
        let answers = changed(&[("ListStackResources/StackResourceSummaries", of_stack), (gone.0, gone.1.clone())]);
        let report = examined(answers).unwrap();
        let all: Vec<_> = report.findings.iter().map(|one| (one.check.number, one.level, &*one.what)).collect();
        match (&all[..], found) {
            ([(41, level, what)], Some((expected, text))) => {
                assert!(*level == expected && what.contains(text), "{kind}: {what}");
                assert_eq!(report.not_looked_at, [""; 0], "{kind}");
            }
            ([], None) => assert!(report.not_looked_at[0].contains("old"), "{report:#?}"),
            _ => panic!("{kind} {gone:?}: {report:#?}"),
        }
    }
    let script = Script::new(changed(&[("ListStackResources/StackResourceSummaries", resources("WorkerReads"))]));
    assert!(examined_by(&script).unwrap().findings.is_empty());
    let count = |operation| script.asked.borrow().iter().filter(|asked| **asked == operation).count();
    assert_eq!((count("GetQueueUrl"), count("DescribeTable")), (2, 2), "orders and letters, locks and worker");
    // A name that is misspelt is none that was there.
    let script = Script::new(changed(&[("GetFunction typo", json!("ResourceNotFoundException (status 404)"))]));
    let scope = Scope { stack: Some("shop".to_owned()), functions: vec!["typo".to_owned()], ..Scope::default() };
    let (system, not_looked_at) = ready(examine(&script, &scope)).unwrap();
    assert!(run(&system).findings.is_empty() && not_looked_at[0].contains("GetFunction of typo"), "{not_looked_at:?}");
}

#[test]
fn an_alarm_by_a_query_can_be_on_any_queue() {
    for (metric, found, unknown, lines) in [
        (
            "ApproximateAgeOfOldestMessage",
            0,
            2,
            &["which queues the alarm all is on: it asks by a query (check 30)"][..],
        ),
        ("NumberOfMessagesSent", 2, 0, &[]),
    ] {
        let query = format!("SELECT MAX({metric}) FROM SCHEMA(\"AWS/SQS\", QueueName) GROUP BY QueueName");
        let alarms = json!([{"AlarmName": "all", "Metrics": [{"Id": "q1", "Expression": query, "Period": 60}]}]);
        let report = examined(changed(&[("DescribeAlarms/MetricAlarms", alarms)])).unwrap();
        let tally = report.tallies[&30];
        assert_eq!((report.findings.len(), tally.found, tally.unknown), (found, found, unknown), "{report:#?}");
        assert_eq!(report.not_looked_at, lines, "{metric}");
    }
}

/// Each request to a service that cannot be reached would take its whole time.
#[test]
fn a_service_without_an_answer_is_asked_once() {
    let operations = ["SimulatePrincipalPolicy", "DescribeTable", "GetQueueUrl", "DescribeAlarms"];
    for operation in operations {
        let script = Script::new(changed(&[(operation, json!("no answer: timed out"))]));
        let report = examined_by(&script).unwrap();
        assert!(report.findings.is_empty(), "{operation}: {report:#?}");
        let asked = script.asked.borrow().iter().filter(|asked| **asked == operation).count();
        let [line, rest @ ..] = &*report.not_looked_at else { panic!("{operation}: {:#?}", report.not_looked_at) };
        assert!(asked == 1 && line.contains("not asked again"), "{asked}: {line}");
        assert!(rest.iter().all(|line| line.contains("not asked about after")), "{operation}: {rest:#?}");
    }
}

/// What SAM's globals give to each function of a stack.
#[test]
fn a_function_that_reads_no_queue_needs_no_table_by_its_name_alone() {
    let of_table = ["UpdateItem", "GetItem", "PutItem", "PartiQLInsert", "PartiQLUpdate", "BatchGetItem"];
    let of_table = of_table.map(|action| format!("dynamodb:{action}"));
    for (denied, expected) in [(&of_table[..], &[][..]), (&of_table[2..], &[28])] {
        let mut answers = changed(&[("SimulatePrincipalPolicy api", json!(denied))]);
        answers["GetFunction api"] = answers["GetFunction"].clone();
        let api = &mut answers["GetFunction api"]["Configuration"];
        api["FunctionArn"] = json!("arn:aws:lambda:eu-west-1:123456789012:function:api");
        api["Role"] = json!("arn:aws:iam::123456789012:role/api");
        let resources = answers["ListStackResources"]["StackResourceSummaries"].as_array_mut().unwrap();
        resources.push(json!({"ResourceType": "AWS::Lambda::Function", "PhysicalResourceId": "api"}));
        let report = examined(answers).unwrap();
        let found: Vec<_> = report.findings.iter().map(|finding| finding.check.number).collect();
        assert_eq!(found, expected, "{report:#?}");
    }
}

/// The resources of the stack, of which the function's mapping has this logical id.
fn resources(mapping: &str) -> Value {
    let resource = |kind: &str, logical_id: &str, id: &str| json!({"ResourceType": kind, "LogicalResourceId": logical_id, "PhysicalResourceId": id});
    json!([
        resource("AWS::Lambda::Function", "Worker", "worker"),
        resource("AWS::Lambda::EventSourceMapping", mapping, "m-1"),
        resource("AWS::DynamoDB::Table", "Others", "worker"),
        resource("AWS::SQS::Queue", "Orders", "https://sqs/123456789012/orders"),
        resource("AWS::SQS::Queue", "Letters", "https://sqs/123456789012/letters"),
        resource("AWS::DynamoDB::Table", "Locks", "locks"),
    ])
}

fn described(script: &Script) -> usize {
    script.asked.borrow().iter().filter(|asked| **asked == "DescribeStackResource").count()
}

/// As of a template: by the resource, and of a mapping that SAM made by its function.
#[test]
fn what_a_stack_accepts_is_accepted() {
    for (by, reasons, expected) in [
        (
            "Orders",
            json!({"no-dead-letter-queue": "each stands alone", "no-partial-batch-response": "not here"}),
            &[5][..],
        ),
        ("Worker", json!({"no-partial-batch-response": "one each"}), &[3]),
        ("WorkerReads", json!({"3": "one each"}), &[3]),
        ("Others", json!({"3": "one each"}), &[]),
        ("Orders", json!({"no-dead-letter-queue": " "}), &[]),
        ("Orders", json!("no-dead-letter-queue"), &[]),
    ] {
        let counts_for_nothing = reasons.as_object().is_none_or(|reasons| reasons.values().any(|why| why == " "));
        let metadata = json!({"claimant-doctor": reasons, "SamResourceId": by}).to_string();
        let script = Script::new(changed(&[
            ("ListStackResources/StackResourceSummaries", resources("WorkerReads")),
            (&format!("DescribeStackResource {by}"), json!({"StackResourceDetail": {"Metadata": metadata}})),
            ("GetQueueAttributes orders/Attributes/RedrivePolicy", Value::Null),
            (&format!("{MAPPING}/FunctionResponseTypes"), json!([])),
        ]));
        let report = examined_by(&script).unwrap();
        let accepted: Vec<_> = report.accepted.iter().map(|accepted| accepted.finding.check.number).collect();
        assert_eq!(accepted, expected, "{by} {reasons}: {report:#?}");
        let found: Vec<_> = report.findings.iter().map(|finding| finding.check.number).collect();
        assert!([3, 5].iter().all(|number| found.contains(number) != expected.contains(number)), "{by}: {found:?}");
        let said = format!("{by} of shop: Metadata.claimant-doctor has an entry that counts for nothing");
        assert_eq!(report.not_looked_at.iter().any(|line| line.starts_with(&said)), counts_for_nothing, "{report:#?}");
        // Nothing is found of the others.
        assert_eq!(described(&script), 3, "{by}");
    }
}

/// A mapping that no event of its function makes has its own; and without the permission, no other resource is asked about.
#[test]
fn what_a_stack_does_not_accept_is_shown() {
    for (mapping, answer, asked, said) in [
        ("Second", json!({"StackResourceDetail": {"Metadata": r#"{"claimant-doctor":{"3":"one"}}"#}}), 2, None),
        ("WorkerReads", json!("AccessDenied (status 403)"), 1, Some("so all findings are shown")),
    ] {
        let script = Script::new(changed(&[
            ("ListStackResources/StackResourceSummaries", resources(mapping)),
            ("DescribeStackResource Worker", answer),
            ("DescribeStackResource Second", json!({})),
            ("DescribeStackResource Orders", json!({})),
            ("GetQueueAttributes orders/Attributes/RedrivePolicy", Value::Null),
            (&format!("{MAPPING}/FunctionResponseTypes"), json!([])),
        ]));
        let report = examined_by(&script).unwrap();
        let found: Vec<_> = report.findings.iter().map(|finding| finding.check.number).collect();
        assert!([3, 5].iter().all(|number| found.contains(number)) && report.accepted.is_empty(), "{report:#?}");
        assert_eq!(
            (described(&script), report.not_looked_at.len()),
            (asked, usize::from(said.is_some())),
            "{report:#?}"
        );
        assert!(said.is_none_or(|said| report.not_looked_at[0].contains(said)), "{report:#?}");
    }
}

/// One request of many that takes too long silences no service, and what is not asked for is named.
#[test]
fn functions_behind_a_service_without_an_answer_are_named() {
    let named = |names: &[&str]| {
        let of = |name: &&str| json!({"ResourceType": "AWS::Lambda::Function", "PhysicalResourceId": name});
        json!(names.iter().map(of).collect::<Vec<_>>())
    };
    let report = examined(changed(&[
        ("ListStackResources/StackResourceSummaries", named(&["worker", "x2", "x3", "x4", "x5"])),
        ("GetFunction x2", json!("no answer: timed out")),
        ("GetFunction x3", json!("no answer: timed out")),
    ]));
    assert_eq!(
        report.unwrap().not_looked_at,
        [
            "GetFunction of x2: no answer: timed out",
            "GetFunction of x3: no answer: timed out (this service is not asked again)",
            "x4, x5: not asked about after GetFunction of x3",
        ]
    );
    let report = examined(changed(&[("GetQueueAttributes letters", json!("no answer: timed out"))])).unwrap();
    assert_eq!(report.not_looked_at, ["GetQueueAttributes of letters: no answer: timed out"]);
}

/// Whoever has to sign in again is not sent to look for permissions.
#[test]
fn a_refusal_says_what_to_do() {
    let (permission, credentials) = ("lack the permission for Op", "sign in again, or set this machine's clock");
    for (code, expected) in [
        ("AccessDeniedException (status 403) no", Some(permission)),
        ("no code (status 403) not authorized to perform it", Some(permission)),
        ("ExpiredToken (status 403) it is expired", Some(credentials)),
        ("SignatureDoesNotMatch (status 403) no", Some(credentials)),
        ("ThrottlingException (status 400) slow down", None),
        ("InvalidNextToken (status 400) no", None),
    ] {
        let shown = Refused { operation: "Op", about: "x".to_owned(), code: code.to_owned() }.to_string();
        let said = [permission, credentials].into_iter().find(|hint| shown.contains(hint));
        assert_eq!(said, expected, "{shown}");
    }
    let code = "ValidationError (status 400) Stack with id x does not exist".to_owned();
    let shown = Refused { operation: "ListStackResources", about: "x".to_owned(), code }.to_string();
    assert!(shown.ends_with("does not exist (are the stack's name, the account and the Region right?)"), "{shown}");
}

#[test]
fn stacks_that_are_left_out_are_said() {
    let mut answers = good();
    let resources = answers["ListStackResources"]["StackResourceSummaries"].as_array_mut().unwrap();
    resources.resize(2_000, json!({"ResourceType": "AWS::SQS::Queue", "PhysicalResourceId": "q"}));
    resources.push(json!({"ResourceType": "AWS::CloudFormation::Stack", "PhysicalResourceId": "inner"}));
    let report = examined(answers).unwrap();
    assert_eq!(report.not_looked_at, ["the stack inner: there are 2000 resources before it"]);
}

/// One that a stack failed to make has the name of one that there is, of another stack; one that it is about to delete can be gone already.
#[test]
fn what_a_stack_failed_to_make_or_is_deleting_is_not_examined() {
    for (kind, id, state) in [
        ("AWS::Lambda::Function", "taken", "CREATE_FAILED"),
        ("AWS::Lambda::Function", "gone", "DELETE_IN_PROGRESS"),
        ("AWS::Lambda::EventSourceMapping", "m-9", "DELETE_IN_PROGRESS"),
    ] {
        let gone = json!("ResourceNotFoundException (status 404)");
        let mut answers = changed(&[("GetFunction taken", json!("AccessDenied")), ("GetFunction gone", gone)]);
        let resources = answers["ListStackResources"]["StackResourceSummaries"].as_array_mut().unwrap();
        resources.push(json!({"ResourceType": kind, "PhysicalResourceId": id, "ResourceStatus": state}));
        let report = examined(answers).unwrap();
        assert!(report.findings.is_empty() && report.not_looked_at.is_empty(), "{kind} {state}: {report:#?}");
    }
}

/// As everything of a stack can be.
#[test]
fn the_only_function_of_a_stack_is_found_deleted_and_its_metadata_accepts_that() {
    let metadata = json!({"claimant-doctor": {"not-there": "moved by hand"}}).to_string();
    for (metadata, found, accepted) in [("{}", 1, 0), (&*metadata, 0, 1)] {
        let worker = json!({"ResourceType": "AWS::Lambda::Function", "LogicalResourceId": "Worker", "PhysicalResourceId": "worker"});
        let report = examined(changed(&[
            ("ListStackResources/StackResourceSummaries", json!([worker])),
            ("GetFunction", json!("ResourceNotFoundException (status 404)")),
            ("DescribeStackResource Worker", json!({"StackResourceDetail": {"Metadata": metadata}})),
        ]));
        let report = report.unwrap();
        assert_eq!((report.findings.len(), report.accepted.len()), (found, accepted), "{report:#?}");
        let found = report.findings.iter().chain(report.accepted.iter().map(|accepted| &accepted.finding));
        assert!(found.map(|one| one.check.number).eq([41]), "{report:#?}");
        assert_eq!(report.not_looked_at, [""; 0]);
    }
}

#[test]
fn an_account_that_shows_nothing_is_an_error() {
    for operation in ["ListStackResources", "GetFunction"] {
        let refused = examined(changed(&[(operation, json!("AccessDenied"))])).unwrap_err().to_string();
        assert!(refused.contains(operation) && refused.contains("lack the permission"), "{refused}");
    }
    // The wrong one of two stacks is not found to be in order.
    let empty = Script::new(changed(&[("ListStackResources/StackResourceSummaries", json!([]))]));
    let refused = examined_by(&empty).unwrap_err().to_string();
    assert!(refused.contains("ListStackResources of shop: there is no function in it"), "{refused}");
    let scope = Scope { stack: Some("shop".to_owned()), functions: vec!["worker".to_owned()], ..Scope::default() };
    let (system, not_looked_at) = ready(examine(&empty, &scope)).unwrap();
    assert_eq!((system.functions.len(), not_looked_at.len()), (1, 1), "{not_looked_at:#?}");
}
