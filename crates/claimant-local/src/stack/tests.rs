use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::*;

pub(super) const TEMPLATE: &str = r#"
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Parameters:
  Prefix: {Type: String, Default: shop}
  Sender: {Type: String}
Globals:
  Function:
    Timeout: 5
    MemorySize: 256
    Environment: {Variables: {RUST_LOG: info, SHARED: global}}
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: !Sub "${Prefix}-orders"
      VisibilityTimeout: 31
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Failed.Arn, maxReceiveCount: 5}
  Failed:
    Type: AWS::SQS::Queue
    Properties: {MessageRetentionPeriod: 1209600}
  Steps:
    Type: AWS::SQS::Queue
    Properties: {FifoQueue: true, ContentBasedDeduplication: "true"}
  Locks:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema: [{AttributeName: id, KeyType: HASH}, {AttributeName: at, KeyType: RANGE}]
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}, {AttributeName: at, AttributeType: N}]
      TimeToLiveSpecification: {AttributeName: expires_at, Enabled: true}
  Plain: {Type: AWS::Serverless::SimpleTable}
  Alarm: {Type: AWS::CloudWatch::Alarm, Properties: {X: !If [A, B, C]}}
  Confirm:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: order-confirmation}}
    Properties:
      FunctionName: {"Fn::Join": ["-", [!Ref Prefix, confirm]]}
      Policies: [{Statement: [{Resource: !If [A, B, C]}]}]
      Environment:
        Variables:
          SHARED: own
          TABLE: !Ref Locks
          TABLE_ARN: {"Fn::GetAtt": [Locks, Arn]}
          QUEUE_URL: {Ref: Orders}
          SENDER: {"Fn::Sub": ["${Who}@${AWS::Region}/${!Literal}/${Orders.QueueName}", {Who: !Ref Sender}]}
          COUNT: 3
      Events:
        Orders:
          Type: SQS
          Properties:
            Queue: !GetAtt Orders.Arn
            BatchSize: 100
            MaximumBatchingWindowInSeconds: 1
            FunctionResponseTypes: [ReportBatchItemFailures]
            ScalingConfig: {MaximumConcurrency: 4}
        Steps:
          Type: SQS
          Properties: {Queue: !Sub "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:Steps.fifo", Enabled: false}
        Nightly: {Type: Schedule, Properties: {Schedule: rate(1 day)}}
"#;

pub(super) fn parameters(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    owned.collect()
}

fn template() -> Stack {
    Stack::parse(TEMPLATE, &parameters(&[("Sender", "ada")])).expect("the template is sound")
}

#[test]
fn queues_and_tables_are_read_with_defaults_and_references() {
    let stack = template();
    let names: Vec<_> = stack.queues.iter().map(|q| q.name.as_str()).collect();
    assert_eq!(names, ["Failed", "Steps.fifo", "shop-orders"], "dead-letter queues first");
    let orders = &stack.queues[2].settings;
    assert_eq!(orders.visibility_timeout, Duration::from_secs(31));
    let redrive = orders.redrive.as_ref().expect("has a policy");
    assert_eq!((redrive.dead_letter_queue.as_str(), redrive.max_receive_count), ("Failed", 5));
    assert_eq!(stack.queues[0].settings.retention, Duration::from_secs(1_209_600));
    assert!(stack.queues[1].settings.fifo && stack.queues[1].settings.deduplication.content_based);

    let key = |name: &str, kind| KeySpec { name: name.to_owned(), kind };
    assert_eq!(stack.tables[0].partition_key, key("id", KeyKind::S));
    assert_eq!(stack.tables[0].sort_key, Some(key("at", KeyKind::N)));
    assert_eq!(stack.tables[0].ttl_attribute.as_deref(), Some("expires_at"));
    assert_eq!((stack.tables[1].name.as_str(), &stack.tables[1].partition_key), ("Plain", &key("id", KeyKind::S)));
    assert_eq!(stack.tables[1].ttl_attribute, None);
}

#[test]
fn functions_take_globals_and_resolve_their_variables() {
    let stack = template();
    let [confirm] = stack.functions.as_slice() else { panic!("one function") };
    assert_eq!((confirm.name.as_str(), confirm.binary.as_str()), ("shop-confirm", "order-confirmation"));
    assert_eq!((confirm.timeout, confirm.memory_mb), (Duration::from_secs(5), 256));
    let expected = parameters(&[
        ("RUST_LOG", "info"),
        ("SHARED", "own"),
        ("TABLE", "Locks"),
        ("TABLE_ARN", "arn:aws:dynamodb:us-east-1:000000000000:table/Locks"),
        ("QUEUE_URL", "http://sqs.local/000000000000/shop-orders"),
        ("SENDER", "ada@us-east-1/${Literal}/shop-orders"),
        ("COUNT", "3"),
    ]);
    assert_eq!(confirm.environment, expected);
    let [orders, steps] = confirm.mappings.as_slice() else { panic!("two mappings") };
    assert_eq!(
        *orders,
        MappingSpec {
            logical_id: "ConfirmOrders".to_owned(),
            line: 48,
            queue: "shop-orders".to_owned(),
            batch_size: 100,
            window: Duration::from_secs(1),
            filters: Vec::new(),
            report_batch_item_failures: true,
            maximum_concurrency: Some(4),
            enabled: true,
        }
    );
    assert_eq!((steps.queue.as_str(), steps.batch_size, steps.enabled), ("Steps.fifo", 10, false));
    assert!(!steps.report_batch_item_failures);
}

/// The template with one piece replaced is refused with a message that has every expected part.
fn check(piece: &str, replacement: &str, expected: &[&str]) {
    assert!(TEMPLATE.contains(piece), "the template has `{piece}`");
    let yaml = TEMPLATE.replacen(piece, replacement, 1);
    let error = Stack::parse(&yaml, &parameters(&[("Sender", "ada")])).expect_err(replacement).to_string();
    for part in expected {
        assert!(error.contains(part), "`{replacement}` must be refused with `{part}`, not: {error}");
    }
}

#[test]
fn faults_name_resource_property_and_fix() {
    let confirm = "Confirm.Properties.Environment.Variables.TABLE";
    check(
        "Queue: !GetAtt Orders.Arn",
        "Queue: !GetAtt Nowhere.Arn",
        &["Confirm.Properties.Events.Orders.Properties.Queue", "Nowhere"],
    );
    check(
        "Queue: !GetAtt Orders.Arn",
        "Queue: !GetAtt Orders.Ann",
        &["Properties.Queue", "Arn, QueueName and QueueUrl"],
    );
    check("Queue: !GetAtt Orders.Arn", "Queue: !Ref Orders", &["Properties.Queue", "must be the ARN of a queue"]);
    check("Queue: !GetAtt Orders.Arn", "Other: x", &["Events.Orders.Properties.Queue", "is missing"]);
    for no_type in ["type: SQS", "Type:", "Type: !Ref AWS::NoValue"] {
        let no_type = format!("          {no_type}\n");
        check("          Type: SQS\n", &no_type, &["Confirm.Properties.Events.Orders.Type: is missing"]);
    }
    check(
        "        Nightly: {",
        "        Blank:\n        Nightly: {",
        &["Confirm.Properties.Events.Blank.Type: is missing"],
    );
    check("BatchSize: 100", "BatchSize: 10001", &["BatchSize", "1 to 10000", "10001"]);
    check("MaximumBatchingWindowInSeconds: 1", "Enabled: true", &["ConfirmOrders", "over 10 needs a window"]);
    check("Enabled: false", "BatchSize: 11", &["ConfirmSteps", "FIFO queue allows 10"]);
    check("Enabled: false", "MaximumBatchingWindowInSeconds: 1", &["ConfirmSteps", "not for FIFO"]);
    check("[ReportBatchItemFailures]", "[ReportBatchItemFailure]", &["FunctionResponseTypes[0]"]);
    check("MaximumConcurrency: 4", "MaximumConcurrency: 1", &["ScalingConfig.MaximumConcurrency", "2 to 1000"]);
    check("COUNT: 3", "AWS_REGION: x", &["Confirm.Properties.Environment.Variables.AWS_REGION", "Lambda reserves"]);
    check(
        "RUST_LOG: info",
        "_HANDLER: x",
        &[":11: Globals.Function.Environment.Variables._HANDLER", "Lambda reserves"],
    );
    check("COUNT: 3", "ITEM-COUNT: 3", &["Variables.ITEM-COUNT", "a letter, then letters, digits and underscores"]);
    check("COUNT: 3", "N: 3", &["Variables.N", "two characters at least"]);
    check("Timeout: 5", "Timeout: 32", &["VisibilityTimeout of Orders is 31 s", "193 s"]);
    check("Timeout: 5", "Timeout: soon", &["Globals.Function.Timeout", "soon"]);
    check("VisibilityTimeout: 31", "VisibilityTimeout: -1", &["Orders.Properties.VisibilityTimeout", "0 to 43200"]);
    check(
        "FifoQueue: true",
        "FifoQueue: true, DeduplicationScope: table",
        &["DeduplicationScope", "messageGroup", "table"],
    );
    check("FifoQueue: true", "FifoQueue: true, FifoThroughputLimit: perHour", &["FifoThroughputLimit", "perHour"]);
    check(
        "FifoQueue: true",
        "FifoQueue: true, FifoThroughputLimit: perMessageGroupId",
        &["FifoThroughputLimit", "needs `DeduplicationScope: messageGroup`"],
    );
    check(
        "VisibilityTimeout: 31",
        "DeduplicationScope: queue",
        &["Orders.Properties.DeduplicationScope", "FIFO queues only"],
    );
    check("VisibilityTimeout: 31", "MaximumMessageSize: 1023", &["MaximumMessageSize", "1024 to 1048576"]);
    let no_list = "Orders.Properties.RedriveAllowPolicy.sourceQueueArns: must be a list of 1 to 10 ARNs";
    for (policy, expected) in [
        ("some", "RedriveAllowPolicy.redrivePermission: must be allowAll, denyAll or byQueue, not `some`"),
        ("byQueue", no_list),
        ("byQueue, sourceQueueArns: !Ref AWS::NoValue", no_list),
        ("byQueue, sourceQueueArns: [!Ref AWS::NoValue]", no_list),
        ("byQueue, sourceQueueArns: !GetAtt Steps.Arn", no_list),
        ("denyAll, sourceQueueArns: [!GetAtt Steps.Arn]", "sourceQueueArns: is for `redrivePermission: byQueue` only"),
    ] {
        let policy = format!("RedriveAllowPolicy: {{redrivePermission: {policy}}}");
        check("VisibilityTimeout: 31", &policy, &[expected]);
    }
    check(
        "{MessageRetentionPeriod: 1209600}",
        "{RedriveAllowPolicy: {redrivePermission: byQueue, sourceQueueArns: [!GetAtt Steps.Arn, !Ref AWS::NoValue]}}",
        &["Orders.Properties.RedrivePolicy.deadLetterTargetArn", "`Failed` refuses this queue"],
    );
    check("${Prefix}-orders", "${Prefix}.orders", &[":13: Orders: its name is `shop.orders`: Can only include"]);
    check(
        "[!Ref Prefix, confirm]",
        "[!Ref Prefix, a<b]",
        &["Confirm.Properties.FunctionName: must be 1 to 64 letters"],
    );
    check("  Plain:", "  Plain-1:", &["Plain-1: is no logical id"]);
    check("  Plain:", "  \"Pl\\e[31m\\nain\":", &["Pl\u{1b}[31m\\nain: is no logical id"]);
    check(
        "MemorySize: 256",
        "LoggingConfig: {ApplicationLogLevel: LOUD}",
        &[
            "Globals.Function.LoggingConfig.ApplicationLogLevel: must be one of TRACE",
            "`LOUD`",
            "needs `LogFormat: JSON`",
        ],
    );
    for flag in ["perhaps", "!Ref Steps"] {
        check("FifoQueue: true", &format!("FifoQueue: {flag}"), &["Steps.Properties.FifoQueue", "true or false"]);
    }
    check("FifoQueue: true", "QueueName: x.fifo", &["Steps: its name is `x.fifo`", "ContentBasedDeduplication"]);
    check("!GetAtt Failed.Arn", "!GetAtt Steps.Arn", &["deadLetterTargetArn", "FIFO exactly if"]);
    check("!GetAtt Failed.Arn", "!GetAtt Orders.Arn", &["deadLetterTargetArn", "is the queue itself"]);
    check(", maxReceiveCount: 5", "", &["RedrivePolicy.maxReceiveCount", "is missing"]);
    let as_text = "RedrivePolicy: '{\t\"deadLetterTargetArn\":5}'";
    let policy = "RedrivePolicy: {deadLetterTargetArn: !GetAtt Failed.Arn, maxReceiveCount: 5}";
    check(policy, as_text, &[":18: Orders.Properties.RedrivePolicy.maxReceiveCount: is missing", "not `5`"]);
    for text in [
        "{\"maxReceiveCount\": 5,}",
        "{\"maxReceiveCount\": 5 \"deadLetterTargetArn\": 5}",
        "{maxReceiveCount: 5}",
        "5 or so",
    ] {
        check(policy, &format!("RedrivePolicy: '{text}'"), &[":18: Orders.Properties.RedrivePolicy: is not JSON: "]);
    }
    check(
        policy,
        "RedriveAllowPolicy: '{\"redrivePermission\": \"denyAll\",}'",
        &["RedriveAllowPolicy: is not JSON: "],
    );
    check("!Ref Locks", "!Ref Nowhere", &[confirm, "neither a parameter nor a resource"]);
    check("!Ref Locks", "!If [Nowhere, a, b]", &[confirm, "names the condition Nowhere"]);
    check("!Ref Locks", "!FindInMap [a, b, c]", &[confirm, "finds nothing under Mappings.a.b.c"]);
    check("!Ref Locks", "!Select [2, [a, b]]", &[confirm, "no item 2 in a list of 2"]);
    check("!Ref Locks", "!GetAtt Locks", &[confirm, "names no attribute"]);
    check("!Ref Locks", "!Sub \"${Locks\"", &[confirm, "without `}`"]);
    check("!Ref Locks", "[a, b]", &[confirm, "single value"]);
    check("!Sub \"${Prefix}-orders\"", "!Ref Orders", &["Orders.Properties.QueueName: refers to itself in a circle"]);
    check("!Sub \"${Prefix}-orders\"", "Failed", &["`Failed` is taken"]);
    check(
        "AttributeName: at, AttributeType: N",
        "AttributeName: on, AttributeType: N",
        &["Locks.Properties.AttributeDefinitions", "`at`"],
    );
    check("KeyType: RANGE", "KeyType: HASH", &["KeySchema[1]", "second HASH"]);
    check("AttributeType: N", "AttributeType: X", &["AttributeDefinitions[1].AttributeType", "S, N or B"]);
    check("Resources:", "Things:", &["no `Resources`"]);
    check("Timeout: 5", "Timeout: [", &["the template:", "this cannot be read: "]);
}

/// CDK joins the names of nested constructs, and adds a hash.
#[test]
fn a_queue_with_a_long_id_is_called_by_its_end() {
    let long = |end: &str| format!("{}{end}", "Nested".repeat(20));
    let yaml = TEMPLATE.replace("Failed", &long("AB12")).replace("Steps", &long("CD34"));
    let stack = Stack::parse(&yaml, &parameters(&[("Sender", "ada")])).expect("CloudFormation shortens it too");
    let [failed, steps, orders] = stack.queues.as_slice() else { panic!("{:?}", stack.queues) };
    assert!(failed.name.ends_with("NestedAB12") && failed.name.len() == 80, "{}", failed.name);
    assert!(steps.name.ends_with("NestedCD34.fifo") && steps.name.len() == 80, "{}", steps.name);
    assert_eq!(orders.settings.redrive.as_ref().map(|redrive| &redrive.dead_letter_queue), Some(&failed.name));
}

/// On AWS, the stack's name is in front.
#[test]
fn a_table_with_a_short_id_has_a_longer_name() {
    let template = "Transform: AWS::Serverless-2016-10-31\nResources: {Db: {Type: AWS::Serverless::SimpleTable}}";
    let stack = Stack::parse(template, &parameters(&[])).expect("sound");
    assert_eq!(stack.tables[0].name, "local-Db");
}

#[test]
fn all_faults_come_in_one_message() {
    let yaml = TEMPLATE.replace("BatchSize: 100", "BatchSize: 0").replace("FifoQueue: true", "FifoQueue: maybe");
    let error = Stack::parse(&yaml, &parameters(&[("Nobody", "x")])).expect_err("four faults").to_string();
    for part in [
        ":52: Confirm.Properties.Events.Orders.Properties.BatchSize",
        ":24: Steps.Properties.FifoQueue",
        "parameter Nobody",
        "needs parameter Sender",
    ] {
        assert!(error.contains(part), "`{part}` is missing in: {error}");
    }
}

#[test]
fn parameters_override_defaults() {
    let given = parameters(&[("Sender", "ada"), ("Prefix", "test")]);
    let stack = Stack::parse(TEMPLATE, &given).expect("sound");
    assert!(stack.queues.iter().any(|q| q.name == "test-orders"));
}

#[test]
fn a_missing_file_is_named() {
    let error = Stack::load(Path::new("/nowhere/template.yaml"), &BTreeMap::new()).expect_err("no such file");
    let error = error.to_string();
    assert!(error.starts_with("cannot read the template /nowhere/template.yaml: No such file"), "{error}");
}

#[test]
fn the_projects_own_template_is_sound() {
    let stack =
        Stack::load(Path::new("../../template.yaml"), &BTreeMap::new()).expect("the template of this repository");
    assert!(stack.functions.iter().all(|function| !function.mappings.is_empty()));
    assert!(!stack.tables.is_empty() && !stack.queues.is_empty());
}
