//! What a template does not say is counted as not known, or as not looked at: it neither vanishes nor counts as well.

use claimant_doctor::{Level, Options, Report};

use crate::templates::{changed, examine};

/// A consumer with a mapping of CloudFormation, whose queue hides messages for too short a time.
const PLAIN: &str = "Transform: AWS::Serverless-2016-10-31
Parameters: {Any: {Type: String}}
Conditions: {IsAny: !Equals [!Ref Any, x]}
Resources:
  Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 10}}
  Work:
    Type: AWS::Lambda::Function
    Properties: {Timeout: 60, Environment: {Variables: {CLAIMANT_TABLE: locks}}, Role: arn:aws:iam::123456789012:role/x}
  Mapping:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Orders.Arn, FunctionName: !Ref Work, BatchSize: 11} # more
";

fn read(changes: &[(&str, &str)]) -> Report {
    examine(&changed(PLAIN, changes), &Options::default())
}

/// Of a check: (fine, found, unknown).
fn tally(report: &Report, check: u8) -> (usize, usize, usize) {
    report.tallies.get(&check).map_or((0, 0, 0), |tally| (tally.fine, tally.found, tally.unknown))
}

fn has(report: &Report, check: u8) -> bool {
    report.findings.iter().any(|finding| finding.check.number == check)
}

#[test]
fn a_mapping_whose_source_is_not_known_is_looked_at() {
    for source in ["!Ref Any", "!ImportValue Any", "!GetAtt Nested.Outputs.Arn"] {
        let report = read(&[
            ("!GetAtt Orders.Arn", source),
            ("  Orders:", "  Nested: {Type: AWS::CloudFormation::Stack}\n  Orders:"),
        ]);
        assert!(has(&report, 3), "{source}: {report:#?}");
        let counted = [1, 2, 10, 16, 17, 19].map(|check| tally(&report, check));
        assert_eq!(counted, [(0, 0, 1); 6], "{source}: {report:#?}");
        assert_eq!(tally(&report, 18), (0, 0, 2), "the queue, and the records: {source}");
        assert_eq!(tally(&report, 11), (2, 0, 0), "{source}");
    }
}

#[test]
fn a_mapping_of_another_service_is_not_and_a_template_without_any_says_so() {
    let stream = "  Stream: {Type: AWS::Kinesis::Stream}\n  Orders:";
    for source in
        ["arn:aws:kinesis:eu-west-1:123456789012:stream/x", "!GetAtt Stream.Arn", "!Ref Any, StartingPosition: LATEST"]
    {
        let report = read(&[("!GetAtt Orders.Arn", source), ("  Orders:", stream)]);
        // The function's variables are looked at, wherever its messages come from.
        assert!(report.tallies.keys().eq(&[37]), "{source}: {report:#?}");
        let [line] = &*report.not_looked_at else { panic!("{source}: {report:#?}") };
        assert!(line.contains("no event source mapping from a queue"), "{line}");
    }
}

#[test]
fn events_that_are_not_known_are_not_looked_at() {
    let event = "{Type: SQS, Properties: {Queue: !GetAtt Orders.Arn}}";
    for (events, says) in [
        (format!("!If [IsAny, {{In: {event}}}, !Ref AWS::NoValue]"), "the Events of Work, not known here"),
        (format!("{{In: !If [IsAny, {event}, !Ref AWS::NoValue]}}"), "the event In of Work, not known here"),
    ] {
        let report = read(&[
            ("AWS::Lambda::Function", "AWS::Serverless::Function"),
            ("{Timeout: 60", &format!("{{Timeout: 60, Events: {events}")),
        ]);
        let [line] = &*report.not_looked_at else { panic!("{events}: {report:#?}") };
        assert!(line.contains(says), "{line}");
    }
}

#[test]
fn a_function_is_found_behind_its_alias() {
    for name in [
        "!Sub '${Work}:live'",
        "!Sub '${Work.Arn}:live'",
        "!Join [':', [!GetAtt Work.Arn, live]]",
        "!Sub 'arn:aws:lambda:${AWS::Region}:${AWS::AccountId}:function:${Work}:live'",
    ] {
        let report = read(&[("!Ref Work", name)]);
        assert!(has(&report, 1), "{name}: {report:#?}");
    }
    let report = read(&[("!Ref Work", "!Ref Any")]);
    assert_eq!([1, 2, 18, 19].map(|check| tally(&report, check)), [(0, 0, 1); 4], "{report:#?}");
}

#[test]
fn an_environment_that_is_not_known_can_be_a_consumers() {
    let report = read(&[(
        "Variables: {CLAIMANT_TABLE: locks}",
        "Variables: !If [IsAny, {CLAIMANT_TABLE: a}, {CLAIMANT_TABLE: b}]",
    )]);
    assert_eq!([31, 32, 35].map(|check| tally(&report, check)), [(0, 0, 1); 3], "{report:#?}");
}

/// What throws has its one message back; claimant answers, and the message is lost.
#[test]
fn a_batch_of_one_message_is_fine_where_claimant_is_known_not_to_run() {
    let one = ("BatchSize: 11", "BatchSize: 1");
    let claimant = "Variables: {CLAIMANT_TABLE: locks}";
    for (changes, expected) in [
        (&[one][..], (0, 1, 0)),
        (&[one, (claimant, "Variables: {A: b}")], (1, 0, 0)),
        (&[one, (claimant, "Variables: !Ref Any")], (0, 0, 1)),
        (&[one, ("!Ref Work", "!Ref Any")], (0, 0, 1)),
    ] {
        let report = read(changes);
        assert_eq!(tally(&report, 3), expected, "{changes:?}: {report:#?}");
    }
}

#[test]
fn what_a_macro_adds_is_not_known() {
    let report = read(&[("VisibilityTimeout: 10", "'Fn::Transform': {Name: AWS::Include}, FifoQueue: false")]);
    assert_eq!((tally(&report, 1), tally(&report, 5)), ((0, 0, 1), (0, 0, 1)), "{report:#?}");
    let report =
        read(&[("Variables: {CLAIMANT_TABLE: locks}", "Variables: {'Fn::Transform': {Name: AWS::Include}, A: b}")]);
    assert_eq!(tally(&report, 35), (0, 0, 1), "{report:#?}");
}

/// An alarm on the queue: (what it is on, what it has besides), and what check 30 then answers.
#[test]
fn an_alarm_is_on_a_queues_name_and_is_there_and_acts() {
    let alarm = |name: &str, value: &str, more: &str, properties: &str| {
        format!(
            "  Orders: {{Type: AWS::SQS::Queue, Properties: {{QueueName: orders}}}}
  Alarm:
    Type: AWS::CloudWatch::Alarm
    {more}
    Properties: {{Namespace: AWS/SQS, MetricName: ApproximateAgeOfOldestMessage, Dimensions: [{{Name: {name}, Value: {value}}}], {properties}}}
"
        )
    };
    let (fine, found, unknown) = ((1, 0, 0), (0, 1, 0), (0, 0, 1));
    for (name, value, more, properties, expected) in [
        ("QueueName", "!GetAtt Orders.QueueName", "", "", fine),
        ("QueueName", "orders", "", "", fine),
        ("QueueName", "!Ref Orders", "", "", found),
        ("QueueName", "!GetAtt Orders.Arn", "", "", found),
        ("QueueName", "!Sub 'arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:orders'", "", "", found),
        ("Queue", "!GetAtt Orders.QueueName", "", "", found),
        ("!Ref Any", "!GetAtt Orders.QueueName", "", "", unknown),
        ("QueueName", "!Ref Any", "", "", unknown),
        ("QueueName", "!GetAtt Orders.QueueName", "Condition: IsAny", "", unknown),
        ("QueueName", "!GetAtt Orders.QueueName", "", "ActionsEnabled: !Ref Any", unknown),
        ("QueueName", "!GetAtt Orders.QueueName", "", "ActionsEnabled: false", found),
    ] {
        let own = alarm(name, value, more, properties);
        let report = read(&[("  Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 10}}\n", &own)]);
        assert_eq!(tally(&report, 30), expected, "{own}: {report:#?}");
    }
}

#[test]
fn an_alarm_by_a_query_can_be_on_any_queue() {
    let query = |from: &str| format!("SELECT MAX(ApproximateAgeOfOldestMessage) FROM SCHEMA(\"{from}\", QueueName)");
    for (expression, expected) in [
        (query("AWS/SQS"), (0, 0, 1)),
        (query("AWS/Lambda"), (0, 1, 0)),
        (query("AWS/SQS").replace("ApproximateAgeOfOldestMessage", "NumberOfMessagesSent"), (0, 1, 0)),
        (format!("!Sub '{}'", query("${Any}")), (0, 0, 1)),
        ("!Ref Any".to_owned(), (0, 0, 1)),
        ("m1 / 60".to_owned(), (0, 1, 0)),
    ] {
        let quoted = if expression.starts_with('!') { expression } else { format!("'{expression}'") };
        let alarm = format!(
            "  Alarm:
    Type: AWS::CloudWatch::Alarm
    Properties: {{Metrics: [{{Id: q, Period: 60, Expression: {quoted}}}]}}
  Orders:"
        );
        let report = read(&[("  Orders:", &alarm)]);
        assert_eq!(tally(&report, 30), expected, "{alarm}: {report:#?}");
    }
}

/// Whatever is not read can give the role what it lacks here.
#[test]
fn a_role_is_not_known_where_the_template_is_not_known_whole() {
    let role = "  Role: {Type: AWS::IAM::Role}\n  Orders:";
    let lacks = [("arn:aws:iam::123456789012:role/x", "!GetAtt Role.Arn"), ("  Orders:", role)];
    assert_eq!(tally(&read(&lacks), 18), (0, 2, 0));
    let nested = "  Rest: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: 'https://x/y'}}\n  Orders:";
    assert_eq!(tally(&read(&[lacks[0], lacks[1], ("  Orders:", nested)]), 18), (0, 0, 2));
    for (transform, says) in [
        ("AWS::Serverless-2016-10-31", None),
        ("[AWS::LanguageExtensions, OurMacro]", Some("t.yaml:1: what OurMacro makes of the template")),
        ("{Name: AWS::Include, Parameters: {Location: x}}", Some("what AWS::Include makes")),
    ] {
        let report = read(&[lacks[0], lacks[1], ("AWS::Serverless-2016-10-31", transform)]);
        let (found, unknown) = if says.is_some() { (0, 2) } else { (2, 0) };
        assert_eq!(tally(&report, 18), (0, found, unknown), "{transform}: {report:#?}");
        let said = report.not_looked_at.iter().any(|line| line.contains(says.unwrap_or("makes of")));
        assert_eq!(said, says.is_some(), "{transform}: {:#?}", report.not_looked_at);
    }
}

/// SAM lets a function send where its asynchronous invocations end.
#[test]
fn a_role_of_sam_may_send_where_asynchronous_invocations_end() {
    let queue = |place: &str| {
        format!("{place}: {{Type: SQS, TargetArn: !GetAtt Letters.Arn, Destination: !GetAtt Letters.Arn}}")
    };
    for (properties, expected) in [
        (queue("DeadLetterQueue"), (1, 0, 0)),
        (format!("EventInvokeConfig: {{DestinationConfig: {{{}}}}}", queue("OnFailure")), (1, 0, 0)),
        ("Description: none".to_owned(), (0, 1, 0)),
    ] {
        let report = read(&[
            ("AWS::Lambda::Function", "AWS::Serverless::Function"),
            ("CLAIMANT_TABLE: locks", "CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters, CLAIMANT_MAPPING_CHECK: 'off'"),
            (
                "Role: arn:aws:iam::123456789012:role/x",
                &format!("Policies: [{{SQSPollerPolicy: {{QueueName: !GetAtt Orders.QueueName}}}}], {properties}"),
            ),
            ("  Orders:", "  Letters: {Type: AWS::SQS::Queue}\n  Orders:"),
        ]);
        assert_eq!(tally(&report, 18), expected, "{properties}: {report:#?}");
    }
}

/// SAM puts what it is given into an ARN.
#[test]
fn a_policy_template_of_sam_takes_a_queues_name() {
    let with = |name: &str| {
        read(&[
            ("AWS::Lambda::Function", "AWS::Serverless::Function"),
            (
                "Role: arn:aws:iam::123456789012:role/x",
                &format!("Policies: [AmazonDynamoDBFullAccess, {{SQSPollerPolicy: {{QueueName: {name}}}}}]"),
            ),
        ])
    };
    let wrong = with("!Ref Orders");
    let finding = wrong.findings.iter().find(|finding| finding.check.number == 18);
    assert!(finding.is_some_and(|finding| finding.level == Level::Error), "{wrong:#?}");
    assert_eq!(tally(&with("!GetAtt Orders.QueueName"), 18), (2, 0, 0));
    assert_eq!(tally(&with("orders"), 18), (1, 0, 1));
}

/// Only the second version of SAM's template has what a sender needs.
#[test]
fn a_policy_template_of_sam_for_keys() {
    let own = "  Key:
    Type: AWS::KMS::Key
    Properties:
      KeyPolicy:
        Statement:
          - {Effect: Allow, Principal: {AWS: !Sub 'arn:${AWS::Partition}:iam::${AWS::AccountId}:root'}, Action: 'kms:*', Resource: '*'}
  Letters: {Type: AWS::SQS::Queue, Properties: {KmsMasterKeyId: !Ref Key}}
  Orders:";
    for (policy, expected) in [("KMSEncryptPolicy", (0, 1, 0)), ("KMSEncryptPolicy_v2", (1, 0, 0))] {
        let policies =
            format!("Policies: [{{KMSDecryptPolicy: {{KeyId: !Ref Key}}}}, {{{policy}: {{KeyId: !Ref Key}}}}]");
        let report = read(&[
            ("AWS::Lambda::Function", "AWS::Serverless::Function"),
            ("CLAIMANT_TABLE: locks", "CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters"),
            ("Role: arn:aws:iam::123456789012:role/x", &policies),
            ("  Orders:", own),
        ]);
        assert_eq!(tally(&report, 19), expected, "{policy}: {report:#?}");
    }
}

#[test]
fn a_table_scales_by_a_target_of_its_own() {
    let target = |properties: &str| {
        format!(
            "  Locks:
    Type: AWS::DynamoDB::Table
    Properties: {{ProvisionedThroughput: {{ReadCapacityUnits: 1, WriteCapacityUnits: 1}}}}
  Target:
    Type: AWS::ApplicationAutoScaling::ScalableTarget
    Properties: {properties}
  Orders:"
        )
    };
    for (properties, expected) in [
        ("{ServiceNamespace: dynamodb, ResourceId: !Sub 'table/${Locks}'}", (1, 0, 0)),
        ("{ServiceNamespace: dynamodb, ResourceId: !Join [/, [table, !Ref Locks]]}", (1, 0, 0)),
        (
            "{ServiceNamespace: dynamodb, ScalableDimension: 'dynamodb:table:WriteCapacityUnits', ResourceId: !Sub 'table/${Locks}'}",
            (1, 0, 0),
        ),
        (
            "{ServiceNamespace: dynamodb, ScalableDimension: 'dynamodb:table:ReadCapacityUnits', ResourceId: !Sub 'table/${Locks}'}",
            (0, 1, 0),
        ),
        ("{ServiceNamespace: dynamodb, ScalableDimension: !Ref Any, ResourceId: !Sub 'table/${Locks}'}", (0, 0, 1)),
        ("{ServiceNamespace: ecs, ResourceId: service/a/b}", (0, 1, 0)),
        ("{ServiceNamespace: dynamodb, ResourceId: table/other}", (0, 1, 0)),
        ("{ServiceNamespace: dynamodb, ResourceId: !Sub 'table/${Locks}/index/i'}", (0, 1, 0)),
        ("{ServiceNamespace: dynamodb, ResourceId: !Ref Any}", (0, 0, 1)),
        ("{ServiceNamespace: !Ref Any, ResourceId: !Sub 'table/${Locks}'}", (0, 0, 1)),
    ] {
        let own = target(properties);
        let report = read(&[("  Orders:", &own), ("CLAIMANT_TABLE: locks", "CLAIMANT_TABLE: !Ref Locks")]);
        assert_eq!(tally(&report, 26), expected, "{properties}: {report:#?}");
    }
    // Under its table's condition, it is there with the table.
    let both = ["AWS::DynamoDB::Table", "AWS::ApplicationAutoScaling::ScalableTarget"];
    for (kinds, expected) in [(&both[..], (1, 0, 0)), (&both[1..], (0, 0, 1))] {
        let own = target("{ServiceNamespace: dynamodb, ResourceId: !Sub 'table/${Locks}'}");
        let own = kinds.iter().fold(own, |own, kind| own.replace(kind, &format!("{kind}\n    Condition: IsAny")));
        let report = read(&[("  Orders:", &own), ("CLAIMANT_TABLE: locks", "CLAIMANT_TABLE: !Ref Locks")]);
        assert_eq!(tally(&report, 26), expected, "{kinds:?}: {report:#?}");
    }
}

/// SAM makes a mapping of a topic's event that has a queue before the function.
#[test]
fn a_queue_between_a_topic_and_a_function_is_looked_at() {
    let with = |subscription: &str| {
        let template = format!(
            "Transform: AWS::Serverless-2016-10-31
Parameters: {{Any: {{Type: String}}}}
Resources:
  Orders: {{Type: AWS::SQS::Queue, Properties: {{VisibilityTimeout: 10}}}}
  Work:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 60
      Events: {{In: {{Type: SNS, Properties: {{Topic: !Ref Any, SqsSubscription: {subscription}}}}}}}
"
        );
        examine(&template, &Options::default())
    };
    let report = with("{QueueArn: !GetAtt Orders.Arn, QueueUrl: !Ref Orders, BatchSize: 3, Enabled: false}");
    assert!([1, 3, 5].iter().all(|check| has(&report, *check)), "{report:#?}");
    assert_eq!(
        (tally(&report, 16), tally(&report, 18)),
        ((1, 0, 0), (1, 0, 0)),
        "SAM enables it, and may read: {report:#?}"
    );
    let reports = report.findings.iter().find(|finding| finding.check.number == 3).unwrap();
    assert!(
        reports.place.id.as_ref() == "WorkInEventSourceMapping" && reports.what.contains("of up to 3"),
        "{reports:?}"
    );
    assert!(reports.fix.contains("in place of SqsSubscription"), "{reports:?}");
    assert!(report.not_looked_at.is_empty(), "{report:#?}");
    for (subscription, says) in [
        ("true", "the queue that SAM makes for the event In of Work"),
        ("!Ref Any", "the event In of Work, not known here"),
        ("false", "no event source mapping from a queue"),
    ] {
        let report = with(subscription);
        assert!(report.not_looked_at.iter().any(|line| line.contains(says)), "{subscription}: {report:#?}");
        assert_eq!(tally(&report, 1), if subscription == "true" { (0, 0, 1) } else { (0, 0, 0) }, "{report:#?}");
    }
}

/// What is under one condition is there together; of what is not, it is not known whether the queue is read.
#[test]
fn what_may_not_be_there_is_looked_at_with_what_is_there_then() {
    let second = "  Second:
    Type: AWS::Lambda::EventSourceMapping
    # second
    Properties: {EventSourceArn: !GetAtt Orders.Arn, FunctionName: other}
  Orders:";
    let all_under = [
        ("  Orders: {", "  Orders: {Condition: IsAny, "),
        ("  Mapping:\n", "  Mapping:\n    Condition: IsAny\n"),
        ("# second", "Condition: IsAny"),
    ];
    let dead = "VisibilityTimeout: 10, RedrivePolicy: {deadLetterTargetArn: 'arn:x', maxReceiveCount: 1}";
    for (changes, expected) in [
        // Checks 4, 5, 16 and 30.
        (&all_under[..], [(0, 1, 0), (1, 0, 0), (0, 2, 0), (0, 1, 0)]),
        (&all_under[1..2], [(0, 1, 0), (1, 0, 0), (0, 0, 2), (0, 1, 0)]),
        (&all_under[1..], [(0, 0, 1), (1, 0, 0), (0, 2, 0), (0, 0, 1)]),
        (&[all_under[1], ("# second", "Condition: Other")], [(0, 0, 1), (1, 0, 0), (0, 0, 2), (0, 0, 1)]),
    ] {
        let first = [
            ("  Orders:", second),
            ("VisibilityTimeout: 10", dead),
            ("{IsAny:", "{Other: !Equals [!Ref Any, y], IsAny:"),
        ];
        let report = read(&[&first[..], changes].concat());
        assert_eq!([4, 5, 16, 30].map(|check| tally(&report, check)), expected, "{changes:?}: {report:#?}");
    }
    let report = read(&[all_under[1]]);
    assert_eq!([5, 30].map(|check| tally(&report, check)), [(0, 0, 1); 2], "{report:#?}");
    let alarm = "  Old:
    Type: AWS::CloudWatch::Alarm
    Condition: IsAny
    Properties:
      {Namespace: AWS/SQS, MetricName: ApproximateAgeOfOldestMessage, Dimensions: [{Name: QueueName, Value: !GetAtt Orders.QueueName}]}
  Orders:";
    for (changes, expected) in [(&all_under[..2], (1, 0, 0)), (&[], (0, 0, 1))] {
        let report = read(&[&[("  Orders:", alarm)], changes].concat());
        assert_eq!(tally(&report, 30), expected, "{changes:?}: {report:#?}");
    }
}

/// Only one of them is there, which is not known; by its name, both are meant.
#[test]
fn of_two_queues_of_one_name_neither_is_known_to_be_meant() {
    let queues = "  Letters:
    Type: AWS::SQS::Queue
    Properties:
      RedriveAllowPolicy:
        redrivePermission: byQueue
        sourceQueueArns: [!Sub 'arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:orders']
  Orders: {Type: AWS::SQS::Queue, Condition: IsAny, Properties: {QueueName: orders, RedrivePolicy: &to {deadLetterTargetArn: !GetAtt Letters.Arn, maxReceiveCount: 5}}}
  Late: {Type: AWS::SQS::Queue, Condition: Other, Properties: {QueueName: orders, RedrivePolicy: *to}}
  Unused:";
    let other = ("{IsAny:", "{Other: !Not [Condition: IsAny], IsAny:");
    let report = read(&[other, ("  Orders:", queues)]);
    assert_eq!(tally(&report, 8), (0, 0, 2), "{report:#?}");
    // As one that is known to be there.
    for condition in ["Condition: IsAny, ", "Condition: Other, "] {
        let report = read(&[other, ("  Orders:", &queues.replace(condition, ""))]);
        assert_eq!(tally(&report, 8), (0, 0, 2), "{condition}: {report:#?}");
    }
}

/// Check 16, of a mapping and a second one: `fine` only where the second is certain not to be one of the same queue and function.
#[test]
fn a_second_mapping_of_a_function_is_refused_or_is_another_or_is_not_known() {
    let second = |condition: &str, function: &str, enabled: &str| {
        format!(
            "  Second:
    Type: AWS::Lambda::EventSourceMapping
    {condition}
    Properties: {{EventSourceArn: !GetAtt Orders.Arn, FunctionName: {function}, Enabled: {enabled}}}
  Orders:"
        )
    };
    let under = |condition: &'static str| ("  Mapping:\n", condition);
    let (always, is_any) = (under("  Mapping:\n"), under("  Mapping:\n    Condition: IsAny\n"));
    for (mapping, condition, function, enabled, expected) in [
        (always, "", "!Ref Work", "true", (0, 2, 0)),
        (always, "", "!Ref Work", "false", (0, 2, 0)),
        (is_any, "Condition: IsAny", "!Ref Work", "true", (0, 2, 0)),
        // They exclude each other, which is not known here.
        (is_any, "Condition: Other", "!Ref Work", "true", (0, 0, 2)),
        (always, "Condition: IsAny", "!Ref Work", "true", (0, 0, 2)),
        // What is disabled is a warning of its own.
        (is_any, "Condition: Other", "!Ref Work", "false", (0, 1, 1)),
        (always, "Condition: IsAny", "!Ref Work", "false", (0, 1, 1)),
        (always, "", "!Sub '${Work}:${Any}'", "false", (0, 1, 1)),
        (always, "", "!Ref Any", "false", (0, 1, 1)),
        // Another function, version or alias is none, whatever else is not known.
        (always, "Condition: IsAny", "!Sub '${Work}:live'", "false", (1, 1, 0)),
        (always, "Condition: IsAny", "other", "false", (1, 1, 0)),
        (always, "", "!Sub '${Any}:live'", "false", (1, 1, 0)),
        (always, "Condition: Never", "!Ref Work", "true", (1, 0, 0)),
    ] {
        let conditions = "{Other: !Not [Condition: IsAny], Never: !Equals [a, b], IsAny:";
        let second = second(condition, function, enabled);
        let report = read(&[("  Orders:", &second), ("{IsAny:", conditions), mapping]);
        assert_eq!(tally(&report, 16), expected, "{} {second}: {report:#?}", mapping.1);
    }
    // A function by its ARN may be the same one as by its name.
    let arn = "arn:aws:lambda:eu-west-1:123456789012:function:other";
    let second = second("", arn, "false");
    let report = read(&[("!Ref Work", "other"), ("  Orders:", &second)]);
    assert_eq!(tally(&report, 16), (0, 1, 1), "{report:#?}");
}

/// A name without a colon has neither.
#[test]
fn a_function_that_is_named_by_its_stack_has_no_version_and_no_alias() {
    for name in ["${AWS::StackName}-worker", "worker-${AWS::StackName}-1", "${AWS::StackName}"] {
        let second = format!(
            "  Second: {{Type: AWS::Lambda::EventSourceMapping, Properties: {{EventSourceArn: !GetAtt Orders.Arn, FunctionName: !Sub '{name}'}}}}
  Orders:"
        );
        let named = format!("{{FunctionName: !Sub '{name}', Timeout: 60");
        let report = read(&[("  Orders:", &second), ("{Timeout: 60", &named)]);
        let of_both: Vec<_> = report.findings.iter().filter(|finding| finding.check.number == 16).collect();
        assert!(of_both.len() == 2 && of_both.iter().all(|one| one.level == Level::Error), "{name}: {report:#?}");
    }
}

#[test]
fn loops_are_written_out_where_their_lists_are_known() {
    let with = |list: &str| {
        let loops = format!("  Fn::ForEach::Queues:\n    - N\n    - {list}\n    - Orders${{N}}: {{Type: AWS::SQS::Queue}}\n  Fn::ForEach::Mappings:
    - N\n    - {list}
    - Mapping${{N}}:
        Type: AWS::Lambda::EventSourceMapping
        Properties: {{EventSourceArn: {{'Fn::GetAtt': [!Sub 'Orders${{N}}', Arn]}}, FunctionName: !Ref Work}}\n");
        let (start, _) = PLAIN.split_once("  Mapping:").unwrap();
        examine(&(start.to_owned() + &loops), &Options::default())
    };
    let report = with("[A, B]");
    assert_eq!((tally(&report, 1), report.not_looked_at.len()), ((0, 2, 0), 0), "{report:#?}");
    let report = with("!Ref Any");
    let [queues, mappings, none] = &*report.not_looked_at else { panic!("{report:#?}") };
    assert!(queues.contains(":9: Fn::ForEach::Queues: its list is not known here"), "{queues}");
    assert!(mappings.contains("Fn::ForEach::Mappings") && none.ends_with("a queue that is known here"), "{none}");
    // Once, however often the one around them goes round.
    let within = "  Fn::ForEach::A:\n    - A\n    - [x, y, z]\n    - Fn::ForEach::B: [B, !Ref Any, {}]\n      Fn::ForEach::C: [C, !Ref Any, {}]\n";
    let report = examine(&(PLAIN.to_owned() + within), &Options::default());
    let [b, c] = &*report.not_looked_at else { panic!("{report:#?}") };
    assert!(b.contains("Fn::ForEach::B: its list") && c.contains("Fn::ForEach::C: its list"), "{b}, {c}");
}
