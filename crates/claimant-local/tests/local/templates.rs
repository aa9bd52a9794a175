//! What templates of the field are made of: each construct runs, or is named with its line.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use claimant_local::Error;
use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::stack::{CodeSpec, FunctionSpec, Stack};

fn read(template: &str) -> Stack {
    Stack::parse(template, &BTreeMap::new()).unwrap_or_else(|e| panic!("{e}\nin\n{template}"))
}

/// The template reads as this: its queues; its functions with what they read; and lines of what is not run.
fn check(template: &str, queues: &[&str], functions: &[&str], not_run: &[&str]) -> Stack {
    let stack = read(template);
    let found: Vec<_> = stack.queues.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(found, queues, "{template}");
    let reads = |function: &FunctionSpec| {
        let queues: Vec<_> = function.mappings.iter().map(|mapping| mapping.queue.as_str()).collect();
        format!("{} < {}", function.name, queues.join(" "))
    };
    assert_eq!(stack.functions.iter().map(reads).collect::<Vec<_>>(), functions, "{template}");
    let lines = stack.not_run_lines("t.yaml");
    assert_eq!(lines.len(), not_run.len(), "{lines:#?}\nin\n{template}");
    for (line, expected) in lines.iter().zip(not_run) {
        assert!(line.starts_with("not run here: ") && line.contains(expected), "`{expected}` is not in: {line}");
    }
    stack
}

/// The doctor reads the same file.
#[test]
fn values_come_to_what_cloudformation_makes_of_them() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/templates/values.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let (template, stack) = (claimant_template::parse(&text).unwrap(), read(&text));
    let of_all = template.get("Metadata").unwrap().entries();
    assert_eq!(of_all.len(), stack.functions.len());
    for (function, expected) in of_all {
        let expected = expected.entries().iter();
        let expected = expected.map(|(name, value)| (name.to_string(), value.as_text().unwrap().to_owned()));
        let found = stack.functions.iter().find(|found| *found.logical_id == **function).unwrap();
        assert_eq!(found.environment, expected.collect(), "{function}");
    }
}

/// A name that is misspelt, and one that is another stack's; what is shown to no one is not said.
#[test]
fn a_lock_table_that_is_not_in_the_template_is_named() {
    let template = |variables: &str| {
        format!(
            "Transform: AWS::Serverless-2016-10-31
Parameters: {{Hidden: {{Type: String, NoEcho: true, Default: s3cret}}}}
Resources:
  Locks:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: locks
      AttributeDefinitions: [{{AttributeName: id, AttributeType: S}}]
      KeySchema: [{{AttributeName: id, KeyType: HASH}}]
      BillingMode: PAY_PER_REQUEST
  F:
    Type: AWS::Serverless::Function
    Properties: {{Runtime: provided.al2023, Environment: {{Variables: {{{variables}}}}}}}
"
        )
    };
    let says = "lock table F (t.yaml:11): ";
    for (variables, not_run) in [
        ("CLAIMANT_TABLE: !Ref Locks", &[][..]),
        ("CLAIMANT_TABLE: locks, CLAIMANT_TABLE_BEFORE: ''", &[]),
        ("CLAIMANT_TABLE: lokcs", &["CLAIMANT_TABLE names lokcs, and no table of the template has that name"]),
        ("CLAIMANT_TABLE: 'locks, locks-2'", &["CLAIMANT_TABLE names locks-2, "]),
        ("CLAIMANT_TABLE: locks, CLAIMANT_TABLE_BEFORE: old", &["CLAIMANT_TABLE_BEFORE names old, "]),
        ("CLAIMANT_TABLE: !Ref Hidden", &[]),
    ] {
        let stack = check(&template(variables), &[], &["F < "], not_run);
        assert!(stack.not_run_lines("t.yaml").iter().all(|line| line.contains(says)), "{:?}", stack.not_run);
    }
}

#[test]
fn a_rust_function_needs_no_binary_name_and_other_runtimes_are_named() {
    let template = "Transform: AWS::Serverless-2016-10-31
Globals: {Function: {Runtime: provided.al2023, CodeUri: src/}}
Resources:
  Q: {Type: AWS::SQS::Queue}
  Rust:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda}
    Properties: {CodeUri: rust/, Events: {Q: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}}
  Go:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: makefile}
    Properties: {Events: {Q: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}}
  Node:
    Type: AWS::Serverless::Function
    Properties: {Runtime: nodejs22.x, Events: {Q: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}}
  Picture:
    Type: AWS::Serverless::Function
    Properties: {PackageType: Image}
";
    let stack = check(
        template,
        &["Q"],
        &["Rust < Q", "Go < Q"],
        &[
            "Node (t.yaml:13): its runtime is nodejs22.x; only programs for provided.al2023 are run; messages stay in Q",
            "Picture (t.yaml:16): its code is a container image",
        ],
    );
    let code = |directory: &str, cargo| CodeSpec {
        directory: Some(directory.to_owned()),
        cargo,
        binary_is_named: false,
        is_asset: false,
    };
    assert_eq!((stack.functions[0].binary.as_str(), &stack.functions[0].code), ("Rust", &code("rust/", true)));
    assert_eq!(stack.functions[1].code, code("src/", false));
}

/// What is global and ignored neither counts nor is said to have no effect.
#[test]
fn a_function_ignores_of_the_global_properties_what_it_says() {
    for (ignored, timeout_s, memory_mb, not_run) in
        [("[]", 60, 1024, &["Layers"][..]), ("[Timeout, Layers]", 3, 1024, &[]), ("'*'", 3, 128, &[])]
    {
        let template = format!(
            "Transform: AWS::Serverless-2016-10-31
Globals: {{Function: {{Timeout: 60, MemorySize: 1024, Layers: [a]}}}}
Resources:
  F:
    Type: AWS::Serverless::Function
    IgnoreGlobals: {ignored}
    Properties: {{Runtime: provided.al2023, CodeUri: .}}
"
        );
        let stack = check(&template, &[], &["F < "], not_run);
        let function = &stack.functions[0];
        assert_eq!((function.timeout.as_secs(), function.memory_mb), (timeout_s, memory_mb), "{ignored}");
    }
}

#[test]
fn functions_of_cloudformation_are_evaluated() {
    let value = |expression: &str| {
        let template = format!(
            "Transform: AWS::Serverless-2016-10-31
Parameters:
  Stage: {{Type: String, Default: dev}}
  Zones: {{Type: CommaDelimitedList, Default: \"a, b\"}}
Conditions: {{Production: !Equals [!Ref Stage, prod]}}
Mappings: {{Sizes: {{dev: {{batch: 7, names: [x, y]}}}}}}
Resources:
  Q: {{Type: AWS::SQS::Queue, Properties: {{VisibilityTimeout: !If [Production, 900, !FindInMap [Sizes, !Ref Stage, batch]]}}}}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Environment: {{Variables: {{VALUE: {expression}}}}}
"
        );
        let stack = read(&template);
        assert_eq!(stack.queues[0].settings.visibility_timeout, Duration::from_secs(7));
        assert!(stack.not_run.is_empty(), "{expression}: {:?}", stack.not_run);
        stack.functions[0].environment.get("VALUE").cloned()
    };
    let table = [
        ("!If [Production, a, b]", Some("b")),
        ("!If [Production, a, !Ref AWS::NoValue]", None),
        ("!Select [1, [a, b]]", Some("b")),
        ("!Select [1, !Ref Zones]", Some("b")),
        ("!Select [0, !FindInMap [Sizes, dev, names]]", Some("x")),
        ("!FindInMap [Sizes, dev, none, {DefaultValue: z}]", Some("z")),
        ("!Select [2, !Split [\":\", !GetAtt Q.Arn]]", Some("sqs")),
        ("!Join [\"-\", !Split [\".\", a.b]]", Some("a-b")),
        ("!Select [1, !Split [\",\", \"a, b\"]]", Some(" b")),
        ("!Join [\",\", [a, !If [Production, b, !Ref AWS::NoValue]]]", Some("a")),
        ("!Sub [\"${A}/${AWS::StackName}\", {A: !If [Production, a, b]}]", Some("b/local")),
        ("{\"Fn::Base64\": ab}", Some("YWI=")),
        ("!GetAtt Q.QueueName", Some("Q")),
        ("012", Some("012")),
        ("!Select [4, !Split ['-', !Select [2, !Split ['/', !Ref AWS::StackId]]]]", Some("000000000000")),
    ];
    for (expression, expected) in table {
        assert_eq!(value(expression).as_deref(), expected, "{expression}");
    }
}

#[test]
fn roles_have_arns() {
    let template = "Transform: AWS::Serverless-2016-10-31
Resources:
  Sender: {Type: AWS::IAM::Role, Properties: {RoleName: reminders}}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Environment: {Variables: {ROLE: !GetAtt Sender.Arn, NAME: !Ref Sender}}
";
    let stack = read(template);
    let environment = &stack.functions[0].environment;
    assert_eq!(environment["ROLE"], "arn:aws:iam::000000000000:role/reminders");
    assert_eq!(environment["NAME"], "reminders");
    assert_eq!(stack.not_run.len(), 1, "no stand-in, only that nothing checks permissions: {:?}", stack.not_run);
}

#[test]
fn what_only_aws_knows_has_a_stand_in_and_a_line() {
    let template = "Transform: AWS::Serverless-2016-10-31
Parameters: {Name: {Type: 'AWS::SSM::Parameter::Value<String>', Default: /x}}
Resources:
  Topic: {Type: AWS::SNS::Topic}
  Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !ImportValue Name, DelaySeconds: !ImportValue Delay}}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Environment:
        Variables:
          TOPIC: !Ref Topic
          ARN: !Sub 'x:${Topic.Arn}'
          KEY: '{{resolve:secretsmanager:key}}'
          NAME: !Ref Name
          STREAM: !GetAtt F.Other
          QUEUE: !Ref Q
      Events: {Q: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}
";
    let stack = check(
        template,
        &["Q"],
        &["F < Q"],
        &[
            "AWS::SNS::Topic Topic (t.yaml:4): this service is not available here",
            "Q.Properties.DelaySeconds (t.yaml:5): is the export Delay of another stack",
            "Q.Properties.QueueName (t.yaml:5): is the export Name of another stack (!ImportValue): its default counts",
            "Variables.TOPIC (t.yaml:12): refers to Topic (AWS::SNS::Topic), which is not run here: `Topic` stands in for it",
            "Variables.ARN (t.yaml:13)",
            "Variables.KEY (t.yaml:14): is a dynamic reference",
            "Variables.NAME (t.yaml:15): is the SSM parameter that Name names: give --parameter Name=…",
            "Variables.STREAM (t.yaml:16): !GetAtt F.Other has no local value",
        ],
    );
    let environment = &stack.functions[0].environment;
    assert_eq!(environment["ARN"], "x:arn:aws:local:us-east-1:000000000000:Topic");
    assert_eq!(environment["QUEUE"], "http://sqs.local/000000000000/Q");
}

/// AWS takes each of these: that a value is needed is no reason to refuse it.
#[test]
fn what_is_needed_and_only_aws_knows_is_not_missing() {
    let template = "Transform: AWS::Serverless-2016-10-31
Parameters: {P: {Type: 'AWS::SSM::Parameter::Value<String>', Default: /x}}
Resources:
  Q: {Type: AWS::SQS::Queue, Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt D.Arn, maxReceiveCount: !Ref P}}}
  D: {Type: AWS::SQS::Queue, Properties: {RedriveAllowPolicy: '{\"redrivePermission\": \"denyAll\"}'}}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Events: {Q: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn, FilterCriteria: {Filters: [
        {Pattern: !Sub '{\"body\": {\"a\": [\"${P}\"]}}'}, {Pattern: '{\"body\": {\"a\": [1]}}'}]}}}}
";
    let stack = check(
        template,
        &["Q", "D"],
        &["F < Q"],
        &[
            "maxReceiveCount (t.yaml:4): is the SSM parameter that P names: give --parameter P=…: messages stay in the queue",
            "Filters[0].Pattern (t.yaml:11): is the SSM parameter that P names: give --parameter P=…: all messages fit it",
        ],
    );
    assert!(stack.functions[0].mappings[0].filters.iter().any(|filter| filter.matches("{}")));
    assert_eq!(stack.queues[0].settings.redrive, None);
    let error = Stack::parse(&template.replace("maxReceiveCount: !Ref P", "maxReceiveCount: !Ref X"), &BTreeMap::new());
    let error = error.expect_err("no such parameter").to_string();
    assert!(error.contains("maxReceiveCount: refers to X") && error.matches("\n  - ").count() == 1, "{error}");
    let text = "'{\"deadLetterTargetArn\": \"${D.Arn}\", \"maxReceiveCount\": 5}'";
    let as_text =
        template.replace("{deadLetterTargetArn: !GetAtt D.Arn, maxReceiveCount: !Ref P}", &format!("!Sub {text}"));
    let error = Stack::parse(&as_text, &BTreeMap::new()).expect_err("D allows none").to_string();
    assert!(error.contains("`D` refuses this queue") && error.matches("\n  - ").count() == 1, "{error}");
}

/// SAM merges mappings, and looks into no function.
#[test]
fn variables_are_merged_where_both_are_mappings() {
    let function = "!FindInMap [A, B, C, {DefaultValue: {AB: '1'}}]";
    for (globals, own, expected) in [
        ("{AB: '1'}", "{CD: '2'}", "AB CD"),
        (function, "{CD: '2'}", "CD"),
        ("{AB: '1'}", function, "AB"),
        (function, "", "AB"),
    ] {
        let own = if own.is_empty() { String::new() } else { format!("Environment: {{Variables: {own}}}") };
        let stack = read(&format!(
            "Transform: AWS::Serverless-2016-10-31
Globals: {{Function: {{Environment: {{Variables: {globals}}}}}}}
Resources: {{F: {{Type: AWS::Serverless::Function, Properties: {{Runtime: provided.al2023, {own}}}}}}}
"
        ));
        let names: Vec<_> = stack.functions[0].environment.keys().map(String::as_str).collect();
        assert_eq!(names.join(" "), expected, "{globals} {own}");
    }
}

#[test]
fn plain_cloudformation_and_what_cdk_synthesises_run() {
    let template = r#"{
  "Resources": {
    "QueueAB12": {"Type": "AWS::SQS::Queue", "UpdateReplacePolicy": "Delete"},
    "WorkerCD34": {
      "Type": "AWS::Lambda::Function",
      "Properties": {
        "Code": {"S3Bucket": {"Fn::Sub": "cdk-${AWS::AccountId}"}, "S3Key": "ab.zip"},
        "Runtime": "provided.al2023",
        "Role": {"Fn::GetAtt": ["RoleEF56", "Arn"]}
      },
      "Metadata": {"aws:asset:path": "asset.ab", "aws:asset:property": "Code"}
    },
    "RoleEF56": {"Type": "AWS::IAM::Role"},
    "Live": {"Type": "AWS::Lambda::Alias", "Properties": {"FunctionName": {"Ref": "WorkerCD34"}, "Name": "live"}},
    "Mapping": {
      "Type": "AWS::Lambda::EventSourceMapping",
      "Properties": {
        "BatchSize": 3,
        "EventSourceArn": {"Fn::GetAtt": ["QueueAB12", "Arn"]},
        "FunctionName": {"Ref": "Live"},
        "FilterCriteria": {"Filters": [{"Pattern": "{\"body\":{\"a\":[1]}}"}]},
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ProvisionedPollerConfig": {"MinimumPollers": 2}
      }
    },
    "Stream": {
      "Type": "AWS::Lambda::EventSourceMapping",
      "Properties": {"EventSourceArn": "arn:aws:kinesis:eu-west-1:1:stream/x", "FunctionName": {"Ref": "WorkerCD34"}}
    },
    "Elsewhere": {
      "Type": "AWS::Lambda::EventSourceMapping",
      "Properties": {"EventSourceArn": {"Fn::GetAtt": ["QueueAB12", "Arn"]}, "FunctionName": "other"}
    }
  }
}"#;
    let stack = check(
        template,
        &["QueueAB12"],
        &["WorkerCD34 < QueueAB12"],
        &[
            "AWS::IAM::Role RoleEF56 (t.yaml:13): permissions",
            "AWS::Lambda::Alias Live (t.yaml:14): calls to it reach its function",
            "Mapping.Properties.ProvisionedPollerConfig (t.yaml:23): has no effect",
            "AWS::Lambda::EventSourceMapping Stream (t.yaml:26): only SQS queues that are known here are read",
            "AWS::Lambda::EventSourceMapping Elsewhere (t.yaml:30): its function is not run; messages stay in QueueAB12",
        ],
    );
    let worker = &stack.functions[0];
    assert_eq!(worker.code.directory.as_deref(), Some("asset.ab"));
    let mapping = &worker.mappings[0];
    assert_eq!((mapping.batch_size, mapping.filters.len(), mapping.report_batch_item_failures), (3, 1, true));
}

/// `alias.addEventSource` and `fn.currentVersion.addEventSource` of CDK, what SAM makes, and a version that only AWS knows.
#[test]
fn a_mapping_names_its_function_by_an_alias_or_a_version() {
    let template = |called: &str| {
        format!(
            r#"{{"Transform": "AWS::Serverless-2016-10-31", "Resources": {{
  "Q63C6E3AB": {{"Type": "AWS::SQS::Queue"}},
  "WorkBF636A8B": {{"Type": "AWS::Lambda::Function", "Properties": {{"Runtime": "provided.al2023"}}}},
  "WorkCurrentVersion918A": {{"Type": "AWS::Lambda::Version", "Properties": {{"FunctionName": {{"Ref": "WorkBF636A8B"}}}}}},
  "Live848578DF": {{"Type": "AWS::Lambda::Alias", "Properties": {{"FunctionName": {{"Ref": "WorkBF636A8B"}}, "Name": "live",
      "FunctionVersion": {{"Fn::GetAtt": ["WorkCurrentVersion918A", "Version"]}}}}}},
  "Sam": {{"Type": "AWS::Serverless::Function", "Properties": {{"Runtime": "provided.al2023", "AutoPublishAlias": "blue"}}}},
  "Mapping": {{"Type": "AWS::Lambda::EventSourceMapping", "Properties": {{"EventSourceArn": {{"Fn::GetAtt": ["Q63C6E3AB", "Arn"]}},
      "FunctionName": {called}}}}}
}}}}"#
        )
    };
    let named = |reference: &str| {
        format!(r#"{{"Fn::Join": ["", [{{"Fn::Select": [6, {{"Fn::Split": [":", {reference}]}}]}}, ":live"]]}}"#)
    };
    let not_run =
        ["AWS::Lambda::Version WorkCurrentVersion918A (t.yaml:4)", "AWS::Lambda::Alias Live848578DF (t.yaml:5)"];
    let (work, sam) = (["WorkBF636A8B < Q63C6E3AB", "Sam < "], ["WorkBF636A8B < ", "Sam < Q63C6E3AB"]);
    for (called, functions) in [
        (named(r#"{"Ref": "Live848578DF"}"#), work),
        (named(r#"{"Fn::GetAtt": ["Live848578DF", "AliasArn"]}"#), work),
        (named(r#"{"Ref": "WorkCurrentVersion918A"}"#), work),
        (named(r#"{"Fn::GetAtt": ["WorkBF636A8B", "Arn"]}"#), work),
        (named(r#"{"Ref": "Sam.Alias"}"#), sam),
        (named(r#"{"Ref": "Sam.Version"}"#), sam),
        (
            r#"{"Fn::Join": ["", [{"Ref": "WorkBF636A8B"}, ":", {"Fn::GetAtt": ["WorkCurrentVersion918A", "Version"]}]]}"#.to_owned(),
            work,
        ),
    ] {
        check(&template(&called), &["Q63C6E3AB"], &functions, &not_run);
    }
    let alias = template(r#"{"Ref": "Live848578DF"}"#);
    check(
        &alias.replace(r#""Name": "live""#, r#""Name": {"Fn::ImportValue": "Stage"}"#),
        &["Q63C6E3AB"],
        &work,
        &not_run,
    );
    let unknown = "Mapping.Properties.FunctionName (t.yaml:9): is the export Name of another stack (!ImportValue): \
                   the messages of its queue are not read";
    let imported = template(r#"{"Fn::ImportValue": "Name"}"#);
    check(&imported, &["Q63C6E3AB"], &["WorkBF636A8B < ", "Sam < "], &[not_run[0], not_run[1], unknown]);
    let error = Stack::parse(&alias.replace(r#""Name": "live","#, ""), &BTreeMap::new());
    let error = error.expect_err("CloudFormation refuses it").to_string();
    assert!(error.contains("refers to Live848578DF, which has no Name: give it one"), "{error}");
}

/// CDK writes the account and the Region of a stack out, where it has them.
#[test]
fn a_queue_of_the_template_in_another_account_is_not_read_and_named() {
    let template = "Transform: AWS::Serverless-2016-10-31
Resources:
  Q:
    Type: AWS::SQS::Queue
    Properties: {QueueName: orders, RedrivePolicy: {deadLetterTargetArn: 'arn:aws:sqs:eu-west-1:111122223333:dead', maxReceiveCount: 5}}
  D: {Type: AWS::SQS::Queue, Properties: {QueueName: dead}}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Events: {In: {Type: SQS, Properties: {Queue: !Sub 'arn:${AWS::Partition}:sqs:eu-west-1:111122223333:orders'}}}
";
    check(
        template,
        &["orders", "dead"],
        &["F < "],
        &[
            "the dead-letter queue arn:aws:sqs:eu-west-1:111122223333:dead is not in 000000000000 and us-east-1, as D is here: write \
             !GetAtt D.Arn if that is meant: its messages stay in the queue",
            "event source mapping FIn (t.yaml:11): reads the queue arn:aws:sqs:eu-west-1:111122223333:orders, which is not in 000000000000 \
             and us-east-1, as Q is here: write !GetAtt Q.Arn if that is meant",
        ],
    );
}

#[test]
fn loops_are_written_out() {
    let template = "
Transform: [AWS::LanguageExtensions, AWS::Serverless-2016-10-31]
Parameters: {Names: {Type: CommaDelimitedList, Default: 'a,b-c'}}
Resources:
  Fn::ForEach::Queues:
    - Name
    - !Ref Names
    - 'Q&{Name}':
        Type: AWS::SQS::Queue
        Properties: {QueueName: !Sub 'orders-${Name}'}
      'F&{Name}':
        Type: AWS::Serverless::Function
        Properties:
          Runtime: provided.al2023
          FunctionName: !Ref Name
          Events: {E: {Type: SQS, Properties: {Queue: !GetAtt 'Q&{Name}.Arn'}}}
";
    check(template, &["orders-a", "orders-b-c"], &["a < orders-a", "b-c < orders-b-c"], &[]);
    let error = Stack::parse(&template.replace("    - !Ref Names\n", ""), &BTreeMap::new()).expect_err("two items");
    assert!(error.to_string().contains(":5: Fn::ForEach::Queues: takes a name, a list and a mapping"), "{error}");
}

#[test]
fn a_queue_between_a_topic_and_a_function_is_read() {
    let with = |subscription: &str| {
        format!(
            "Transform: AWS::Serverless-2016-10-31
Resources:
  Orders: {{Type: AWS::SQS::Queue}}
  Work:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Events: {{In: {{Type: SNS, Properties: {{Topic: arn, SqsSubscription: {subscription}}}}}}}
"
        )
    };
    let named = "SNS event Work.Properties.Events.In (t.yaml:8): ";
    let object = "{QueueArn: !GetAtt Orders.Arn, QueueUrl: !Ref Orders, BatchSize: 3, Enabled: false}";
    let stack = check(
        &with(object),
        &["Orders"],
        &["Work < Orders"],
        &[
            &format!("{named}no messages come from its topic; its queue is read"),
            "property Work.Properties.Events.In.Properties.SqsSubscription.Enabled (t.yaml:8): has no effect",
        ],
    );
    let mapping = &stack.functions[0].mappings[0];
    assert_eq!((&*mapping.logical_id, mapping.batch_size, mapping.enabled), ("WorkInEventSourceMapping", 3, true));
    let of_true = format!("{named}neither its topic nor the queue that SAM makes is run; a queue of the template is");
    check(&with("true"), &["Orders"], &["Work < "], &[&of_true]);
    let of_false = format!("{named}only SQS events are run, and SNS events with the SqsSubscription of a queue");
    check(&with("false"), &["Orders"], &["Work < "], &[&of_false]);
}

#[test]
fn events_and_queues_from_elsewhere_are_named() {
    let template = "Transform: AWS::Serverless-2016-10-31
Resources:
  Q:
    Type: AWS::SQS::Queue
    Properties:
      FancyNewProperty: 1
      RedrivePolicy: {deadLetterTargetArn: 'arn:aws:sqs:eu-west-1:1:dead', maxReceiveCount: 3}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Events:
        Nightly: {Type: Schedule, Properties: {Schedule: rate(1 day)}}
        Hourly: {Type: Schedule, Properties: {Schedule: rate(1 hour)}}
        Foreign: {Type: SQS, Properties: {Queue: arn:aws:sqs:eu-west-1:1:x}}
        Gone: {Type: SQS, Properties: {Queue: !Sub 'arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:x'}}
        Imported: {Type: SQS, Properties: {Queue: !ImportValue QueueArn}}
  Shared:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !ImportValue OtherArn, FunctionName: !Ref F}
  Rest:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !ImportValue DeadArn, maxReceiveCount: 3}}
  G: {Type: AWS::Serverless::Function, Properties: {Runtime: provided.al2023, Environment: {Variables: {PAUSED: !Ref Shared}}, Events: {
    Q: !Ref AWS::NoValue, 'Fn::Transform': {Name: AWS::Include}}}}
";
    let stack = check(
        template,
        &["Q", "Rest"],
        &["F < ", "G < "],
        &[
            "RedrivePolicy Q (t.yaml:3): the dead-letter queue arn:aws:sqs:eu-west-1:1:dead is not in this template",
            "FancyNewProperty (t.yaml:6): has no effect",
            "Schedule event F.Properties.Events.Nightly (t.yaml:13), F.Properties.Events.Hourly (:14): only SQS",
            "event source mapping FForeign (t.yaml:15): reads the queue arn:aws:sqs:eu-west-1:1:x, which is not in this template",
            "event source mapping FGone (t.yaml:16): reads the queue x, which is not in this template",
            "F.Properties.Events.Imported.Properties.Queue (t.yaml:17): is the export QueueArn of another stack \
             (!ImportValue): no messages of it are read",
            "AWS::Lambda::EventSourceMapping Shared (t.yaml:18): only SQS queues that are known here are read",
            "Shared.Properties.EventSourceArn (t.yaml:20): is the export OtherArn of another stack (!ImportValue): \
             no messages of it are read",
            "deadLetterTargetArn (t.yaml:23): is the export DeadArn of another stack (!ImportValue): \
             messages stay in the queue",
            "Variables.PAUSED (t.yaml:24): refers to Shared (AWS::Lambda::EventSourceMapping), whose id is made when it \
             starts: `Shared` stands in for it",
            "macro G.Properties.Events.Fn::Transform (t.yaml:25): the events that it would add are not known here",
        ],
    );
    assert_eq!(stack.queues[0].settings.redrive, None);
}

/// What SAM makes is referred to by the id of its function and what it is; a queue with a typo in its name begins so, too.
#[test]
fn a_reference_to_what_sam_makes_of_a_function_is_told_from_a_typo() {
    let template = "Transform: AWS::Serverless-2016-10-31
Resources:
  ConfirmQueue: {Type: AWS::SQS::Queue}
  Stock: {Type: AWS::Serverless::SimpleTable}
  Confirm:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Environment: {Variables: {VALUE: !GetAtt REFERENCE}}
      Events: {Orders: {Type: SQS, Properties: {Queue: !GetAtt ConfirmQueue.Arn}}}
";
    for made in ["ConfirmRole.Arn", "ConfirmAliaslive.Arn", "ConfirmUrl.FunctionUrl", "ConfirmOrders.Id"] {
        let stack = read(&template.replace("REFERENCE", made));
        let [line] = stack.not_run_lines("t.yaml").try_into().unwrap_or_else(|lines| panic!("{made}: {lines:?}"));
        assert!(line.contains("which SAM makes for Confirm: ") && line.contains("stands in for it"), "{line}");
    }
    for typo in ["ConfirmQeue.Arn", "ConfirmOrder.Id", "Confirmation.Arn", "StockQeue.Arn"] {
        let error = Stack::parse(&template.replace("REFERENCE", typo), &BTreeMap::new()).expect_err(typo).to_string();
        let (id, _) = typo.split_once('.').unwrap();
        let place = format!(":9: Confirm.Properties.Environment.Variables.VALUE: refers to {id}, which is neither");
        assert!(error.contains(&place), "{error}");
    }
    let template = template.replace("REFERENCE", "ConfirmRole.Arn").replace("ConfirmQueue.Arn", "ConfirmQeue.Arn");
    let error = Stack::parse(&template, &BTreeMap::new()).expect_err("the event's queue").to_string();
    assert!(error.contains(":10: Confirm.Properties.Events.Orders.Properties.Queue: refers to ConfirmQeue"), "{error}");
}

#[test]
fn a_function_of_sam_is_refused_without_its_macro() {
    let template = "Transform: AWS::Serverless-2016-10-31
Resources:
  Q: {Type: AWS::SQS::Queue}
  F: {Type: AWS::Serverless::Function, Properties: {Runtime: provided.al2023}}
";
    check(template, &["Q"], &["F < "], &[]);
    let error = Stack::parse(&template.replace("Serverless-2016-10-31", "LanguageExtensions"), &BTreeMap::new());
    let error = error.expect_err("CloudFormation refuses it").to_string();
    let says = "the template:4: F: CloudFormation refuses AWS::Serverless::Function in a template without `Transform: AWS::Serverless-2016-10-31`";
    assert!(error.contains(says), "{error}");
}

/// Lambda refuses it at deployment; here, each would delete what fits the other alone.
#[test]
fn a_function_reads_a_queue_by_one_mapping() {
    let template = "Transform: AWS::Serverless-2016-10-31
Resources:
  Q: {Type: AWS::SQS::Queue}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Events:
        A: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn, FilterCriteria: {Filters: [{Pattern: '{\"body\": {\"kind\": [\"a\"]}}'}]}}}
MORE
  G:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Events: {A: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}
";
    check(&template.replace("MORE", ""), &["Q"], &["F < Q", "G < Q"], &[]);
    for (second, more) in [
        ("FB", "        B: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn, Enabled: false}}"),
        (
            "M",
            "  M: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: !GetAtt Q.Arn, FunctionName: !Ref F}}",
        ),
    ] {
        let error = Stack::parse(&template.replace("MORE", more), &BTreeMap::new()).expect_err(second).to_string();
        let fault = format!(":10: {second}: reads Q, as FA does: Lambda allows one event source mapping");
        assert!(error.contains(&fault) && error.matches("\n  - ").count() == 1, "{error}");
        assert!(error.contains("or none if one has none"), "{error}");
    }
    // It may be of an alias, which counts as another function.
    let more = "
  M: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: !GetAtt Q.Arn, FunctionName: !Ref Live}}
  Live: {Type: AWS::Lambda::Alias, Properties: {FunctionName: !Ref F, Name: live}}";
    let both = "event source mapping M (t.yaml:11): reads Q, as FA does: each deletes what fits the other alone";
    let alias = "AWS::Lambda::Alias Live (t.yaml:12)";
    check(&template.replace("MORE", more), &["Q"], &["F < Q Q", "G < Q"], &[both, alias]);
    let published = template.replace("MORE", &more.replace("!Ref Live", "!Ref F").replace("  Live", "  #"));
    let published = published.replacen("provided.al2023", "provided.al2023\n      AutoPublishAlias: live", 1);
    check(&published, &["Q"], &["F < Q Q", "G < Q"], &[&both.replace(":11", ":12")]);
}

#[test]
fn properties_of_tables_and_functions_without_effect_are_named() {
    let template = "Transform: AWS::Serverless-2016-10-31
Globals: {Function: {Runtime: provided.al2023, VpcConfig: {SubnetIds: [a]}}}
Resources:
  Q: {Type: AWS::SQS::Queue}
  T:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}, {AttributeName: customer, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      GlobalSecondaryIndexes:
        - {IndexName: by_customer, KeySchema: [{AttributeName: customer, KeyType: HASH}]}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Description: One at a time
      ReservedConcurrentExecutions: 1
      Events: {Q: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}
";
    let named = "property Globals.Function.VpcConfig (t.yaml:2), T.Properties.GlobalSecondaryIndexes (:11), \
                 F.Properties.ReservedConcurrentExecutions (:17): has no effect";
    check(template, &["Q"], &["F < Q"], &[named]);
    let unused = template.replace("AttributeName: customer, KeyType", "AttributeName: id, KeyType");
    let error = Stack::parse(&unused, &BTreeMap::new()).expect_err("DynamoDB refuses it").to_string();
    assert!(
        error.contains("T.Properties.AttributeDefinitions: defines `customer`, which no key and no index has"),
        "{error}"
    );
    // A macro's indexes are not known.
    let by_macro = "GlobalSecondaryIndexes: {Fn::Transform: {Name: Indexes}}";
    let list = "GlobalSecondaryIndexes:\n        - {IndexName: by_customer, KeySchema: [{AttributeName: customer, KeyType: HASH}]}";
    let stack = Stack::parse(&template.replace(list, by_macro), &BTreeMap::new());
    assert!(stack.is_ok() && !template.replace(list, by_macro).contains("by_customer"), "{stack:?}");
}

/// As on Lambda, each mapping's maximum counts for itself.
#[tokio::test]
async fn a_function_has_processes_for_the_batches_of_all_its_mappings() {
    for (scaling, expected) in [
        (["MaximumConcurrency: 2", "MaximumConcurrency: 2"], 4),
        (["MaximumConcurrency: 3", "MaximumConcurrency: 4"], 7),
        (["MaximumConcurrency: 2", ""], 6),
        (["MaximumConcurrency: 50", "MaximumConcurrency: 50"], 16),
    ] {
        let mut template = "Transform: AWS::Serverless-2016-10-31
Resources:
  Q0: {Type: AWS::SQS::Queue}
  Q1: {Type: AWS::SQS::Queue}
  F: {Type: AWS::Serverless::Function, Properties: {Runtime: provided.al2023, FunctionName: both}}
"
        .to_owned();
        for (number, scaling) in scaling.iter().enumerate() {
            template += &format!(
                "  M{number}:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {{EventSourceArn: !GetAtt Q{number}.Arn, FunctionName: both, ScalingConfig: {{{scaling}}}}}\n"
            );
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("template.yaml");
        std::fs::write(&path, template).unwrap();
        let mut config = CloudConfig::new(&path, "/nowhere");
        (config.binaries.search, config.binaries.wait) = (true, true);
        let cloud = Cloud::start(config).await.unwrap();
        assert_eq!(cloud.function("both").unwrap().concurrency(), expected, "{scaling:?}");
        cloud.stop().await;
    }
}

#[test]
fn many_resources_of_a_type_share_a_line() {
    let mut template = "Resources:\n  Q: {Type: AWS::SQS::Queue}\n".to_owned();
    for n in 0..60 {
        template += &format!("  Alarm{n}: {{Type: AWS::CloudWatch::Alarm}}\n");
    }
    template += "  Nested: {Type: AWS::CloudFormation::Stack}\n  Fn::Transform: {Name: AWS::Include}\n";
    let lines = ["Alarm0 (t.yaml:3), Alarm1 (:4)", "nested stacks are not read", "macro Fn::Transform (t.yaml:64)"];
    let stack = check(&template, &["Q"], &[], &lines);
    assert!(stack.not_run_lines("t.yaml")[0].contains("Alarm59 (:62)"), "each is named");
}

#[test]
fn a_filter_that_lambda_would_refuse_is_a_fault_with_its_line() {
    let template = "Transform: AWS::Serverless-2016-10-31
Resources:
  Q: {Type: AWS::SQS::Queue}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Events:
        Q:
          Type: SQS
          Properties:
            Queue: !GetAtt Q.Arn
            FilterCriteria:
              Filters:
                - Pattern: PATTERN
";
    let long = format!("'{{\"body\": {{\"a\": [\"{}\"]}}}}'", "x".repeat(4_096));
    for (pattern, expected) in [
        (&*long, "has more than 4096 characters"),
        ("'{\"body\": 1}'", "`body` must be"),
        ("'{\"body\"'", "is not JSON"),
        ("'{\"attributes\": {\"a\": [1]}}'", "only `body`"),
    ] {
        let error =
            Stack::parse(&template.replace("PATTERN", pattern), &BTreeMap::new()).expect_err(pattern).to_string();
        let place = ":15: F.Properties.Events.Q.Properties.FilterCriteria.Filters[0].Pattern: ";
        assert!(error.contains(place) && error.contains(expected), "{pattern}: {error}");
    }
}

/// Not part of any check: `CLAIMANT_TEMPLATES=directory cargo test --test local -- --ignored --nocapture` starts a cloud
/// for every template with a queue below a directory, such as a clone of a collection, and says what becomes of each.
#[tokio::test]
#[ignore = "needs templates from elsewhere: CLAIMANT_TEMPLATES=directory"]
async fn templates_from_elsewhere() {
    let directory = std::env::var_os("CLAIMANT_TEMPLATES").expect("CLAIMANT_TEMPLATES is a directory of templates");
    let (mut started, mut refused) = (0, 0);
    let mut directories = vec![Path::new(&directory).to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if std::fs::read_to_string(&path).is_ok_and(|text| text.contains("AWS::SQS::Queue")) {
                match start(&path).await {
                    Ok(stack) => {
                        started += 1;
                        println!("{}: starts; {} queues", path.display(), stack.queues.len());
                        stack.not_run_lines("").iter().for_each(|line| println!("  {line}"));
                    }
                    Err(error) => {
                        refused += 1;
                        println!("REFUSED: {error}");
                    }
                }
            }
        }
    }
    println!("{started} started, {refused} refused");
    assert!(started > 0, "there is a template with a queue");
}

async fn start(template: &Path) -> Result<Stack, Error> {
    let mut config = CloudConfig::new(template, "/nowhere");
    (config.binaries.search, config.binaries.wait) = (true, true);
    let cloud = Cloud::start(config).await?;
    let stack = cloud.stack().clone();
    cloud.stop().await;
    Ok(stack)
}
