//! Each check that a template can answer: a template that it finds nothing in, and a change of it that it finds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use claimant_core::breaker::BREAKER_CONSUMER;
use claimant_doctor::fact::Fact;
use claimant_doctor::model::Link;
use claimant_doctor::{CATALOG, Level, Options, Report, read, read_all, run};

/// A consumer in whose template nothing is to be found.
const GOOD: &str = include_str!("good.yaml");
const ALARMS: &str = include_str!("alarms.yaml");

/// Checks that only an account answers; `account.rs` has them.
const BY_ACCOUNT: [u8; 3] = [23, 29, 41];

fn numbers() -> impl Iterator<Item = u8> {
    CATALOG.iter().map(|check| check.number)
}

pub(crate) fn examine(template: &str, options: &Options) -> Report {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.yaml");
    fs::write(&path, template).unwrap();
    fs::write(directory.path().join("alarms.yaml"), ALARMS).unwrap();
    let (system, not_looked_at) = read(&path, options).unwrap();
    let mut report = run(&system);
    report.not_looked_at = not_looked_at;
    report
}

fn in_region(region: &str) -> Options {
    Options { region: Some(region.to_owned()), ..Options::default() }
}

/// The template with each text replaced by another, which must be there.
pub(crate) fn changed(template: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(template.to_owned(), |template, (from, to)| {
        assert!(template.contains(from), "`{from}` is not in the template");
        template.replace(from, to)
    })
}

fn found(report: &Report) -> Vec<(u8, Level)> {
    report.findings.iter().map(|finding| (finding.check.number, finding.level)).collect()
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let report = examine(GOOD, &in_region("eu-west-1"));
    assert!(report.findings.is_empty() && report.accepted.is_empty(), "{report:#?}");
    assert!(report.not_looked_at.is_empty(), "{report:#?}");
    let unknown: Vec<_> = report.tallies.iter().filter(|(_, tally)| tally.unknown > 0).collect();
    assert!(unknown.is_empty(), "every question has an answer: {unknown:?}");
    let answered: BTreeSet<u8> = report.tallies.keys().copied().chain(BY_ACCOUNT).collect();
    // FIFO, databases, breakers and schedules have questions of their own.
    assert_eq!(answered, numbers().filter(|number| ![9, 22, 33, 36, 40].contains(number)).collect());
    let report = examine(&changed(GOOD, &[DATABASE]), &in_region("eu-west-1"));
    assert!(report.findings.is_empty() && report.tallies[&33].fine == 1, "{report:#?}");
}

const MARGIN: (&str, &str) = ("# own-queue", "CLAIMANT_MARGIN_MS: 60000");

/// What is changed, and what is then found: (check, level, a part of what it says).
type Case = (&'static [(&'static str, &'static str)], u8, Level, &'static str);

use Level::{Error, Note, Warning};

/// The mapping has provisioned pollers, which may run more than is reserved.
const POLLERS: (&str, &str) =
    ("ScalingConfig: {MaximumConcurrency: 10}", "ProvisionedPollerConfig: {MaximumPollers: 3}");

/// The role may not look up mappings.
const NO_LIST: (&str, &str) = ("Action: 'lambda:ListEventSourceMappings'", "Action: 'lambda:GetFunction'");

/// Dead letters go to the queue that they come from.
const OWN_LETTERS: (&str, &str) =
    ("CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters", "CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Orders");

const NO_REPORTS: (&str, &str) = ("FunctionResponseTypes: [ReportBatchItemFailures]", "");

const FIFO: (&str, &str) = ("# fifo", "FifoQueue: true");

/// The records in a database instead of the table.
const DATABASE: (&str, &str) =
    ("CLAIMANT_TABLE: !Ref Table", "CLAIMANT_DATABASE_URL: !Ref Any\n          CLAIMANT_DATABASE_CONNECTIONS: '4'");

/// Another function with records in a database, and its mapping.
const OTHER: &str = "  Second:
    Type: AWS::Lambda::EventSourceMapping
    # condition
    Properties: {EventSourceArn: !GetAtt Letters.Arn, FunctionName: !Ref Other, ScalingConfig: {MaximumConcurrency: 8}}
  Other:
    Type: AWS::Serverless::Function
    Properties:
      Environment: {Variables: {CLAIMANT_DATABASE_URL: !Ref Any, CLAIMANT_DATABASE_CONNECTIONS: '4'}}
  Logs:
";

/// A second mapping of the function.
const WITHOUT_A_LIMIT: &str = "  Second:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Letters.Arn, FunctionName: !Ref Worker}
  Logs:
";
const OF_A_PARAMETER: &str = "  Second:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Letters.Arn, FunctionName: !Ref Worker, ScalingConfig: {MaximumConcurrency: !Ref Any}}
  Logs:
";

/// An alarm that stays silent where SQS moves a message.
const ALARM_OF_SENT: &str = "  Sent:
    Type: AWS::CloudWatch::Alarm
    Properties:
      Namespace: AWS/SQS
      MetricName: NumberOfMessagesSent
      Dimensions: [{Name: QueueName, Value: !GetAtt Letters.QueueName}]
  Alarms:
";

const IS_FIFO: (&str, &str) = ("# letters-fifo", "FifoQueue: true");

/// Another queue for what claimant sends, which keeps it for less than Orders keeps messages.
const COPIES: &[(&str, &str)] = &[
    ("CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters", "CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Copies"),
    ("  Logs:\n", "  Copies: {Type: AWS::SQS::Queue, Properties: {MessageRetentionPeriod: 345599}}\n  Logs:\n"),
];

/// The dead-letter queue is encrypted, too.
const LETTERS_KEY: (&str, &str) = ("# letters-fifo", "KmsMasterKeyId: !Ref Key");

/// A breaker pauses the mapping.
const PAUSES: (&str, &str) = ("# own-queue", "CLAIMANT_RESUME_ROLE_ARN: !GetAtt Scheduler.Arn");

/// What waits for long is sent again.
const SCHEDULES: (&str, &str) = (
    "# own-queue",
    "CLAIMANT_SCHEDULE_ROLE_ARN: !GetAtt Scheduler.Arn\n          CLAIMANT_SCHEDULE_DEAD_LETTER_ARN: !GetAtt Letters.Arn",
);

/// The role in whose name schedules act does not trust them.
const TRUSTS_ANOTHER: (&str, &str) = ("{Service: scheduler.amazonaws.com}", "{Service: [ec2.amazonaws.com]}");

/// The table may admit roles.
const POLICY_OF_TABLE: &str = "    DeletionPolicy: Retain\n    Properties:\n      ResourcePolicy: {PolicyDocument: {}}";

/// Its role may do so.
const GRANTED: (&str, &str) = (
    "Action: kms:Decrypt",
    "Action: ['lambda:*', 'scheduler:CreateSchedule', 'scheduler:ListSchedules', 'iam:PassRole']
                Resource: '*' # granted
              - Effect: Allow
                Action: kms:Decrypt",
);

const SCHEDULING: (&str, &str) = (
    "Action: kms:Decrypt",
    "Action: ['scheduler:CreateSchedule', 'scheduler:GetSchedule', 'iam:PassRole']
                Resource: '*' # granted
              - Effect: Allow
                Action: kms:Decrypt",
);

/// On what it may do so.
const ON_ALL: &str = "Resource: '*' # granted";

/// The role is kept to the consumer's own keys.
const KEPT: (&str, &str) = (
    "Resource: !GetAtt Table.Arn",
    "Resource: !GetAtt Table.Arn
                Condition: {'ForAllValues:StringLike': {'dynamodb:LeadingKeys': ['worker#*', 'worker~*']}}",
);

/// The records are moved from another table.
const BEFORE: (&str, &str) = ("# own-queue", "CLAIMANT_TABLE_BEFORE: !Ref Old");
const OLD: (&str, &str) = ("  Logs:\n", "  Old: {Type: AWS::DynamoDB::Table, Properties: {}}\n  Logs:\n");
const ON_OLD: (&str, &str) = (
    "Resource: !GetAtt Table.Arn",
    "Resource: !GetAtt Table.Arn
              - Effect: Allow
                Action: [dynamodb:GetItem, dynamodb:BatchGetItem, dynamodb:DeleteItem] # old
                Resource: !GetAtt Old.Arn",
);

/// The table has a key of its own.
const SEALED: (&str, &str) = (
    "TimeToLiveSpecification:",
    "SSESpecification: {SSEEnabled: true, SSEType: KMS, KMSMasterKeyId: !Ref TableKey}
      TimeToLiveSpecification:",
);
const KEY_OF_TABLE: (&str, &str) = ("  Logs:\n", "  TableKey: {Type: AWS::KMS::Key}\n  Logs:\n");

const CASES: &[Case] = &[
    (&[("VisibilityTimeout: 180", "VisibilityTimeout: 20")], 1, Error, "hidden for 20 s, less than the 30 s"),
    (&[("VisibilityTimeout: 180", ""), ("ScalingConfig: {MaximumConcurrency: 10}", "")], 2, Warning, "hidden for 30 s"),
    // The mapping has a limit, and less is reserved.
    (
        &[("VisibilityTimeout: 180", ""), ("ReservedConcurrentExecutions: 20", "ReservedConcurrentExecutions: 9")],
        2,
        Warning,
        "hidden for 30 s",
    ),
    (&[("VisibilityTimeout: 180", ""), POLLERS], 2, Warning, "hidden for 30 s"),
    (&[NO_REPORTS], 3, Error, "claimant answers with the messages that failed"),
    // A batch of one message is answered alike.
    (&[NO_REPORTS, ("BatchSize: 10", "BatchSize: 1")], 3, Error, "and Lambda deletes them"),
    (&[NO_REPORTS, ("BatchSize: 10", "BatchSize: !Ref Any")], 3, Error, "and Lambda deletes them"),
    (
        &[NO_REPORTS, ("CLAIMANT_TABLE:", "A:"), ("CLAIMANT_DEAD_LETTER_QUEUE_URL:", "B:")],
        3,
        Warning,
        "up to 10 messages",
    ),
    (&[("maxReceiveCount: 5", "maxReceiveCount: 2")], 4, Warning, "maxReceiveCount is 2"),
    (&[("maxReceiveCount: 5", "maxReceiveCount: 0")], 4, Error, "maxReceiveCount is 0: SQS takes 1 to 1000"),
    (&[("maxReceiveCount: 5", "maxReceiveCount: 1001")], 4, Error, "maxReceiveCount is 1001"),
    (
        &[
            ("RedrivePolicy: {deadLetterTargetArn: !GetAtt Letters.Arn, maxReceiveCount: 5}", ""),
            ("# dlq", "DeadLetterQueue: {Type: SQS, TargetArn: !GetAtt Letters.Arn}"),
        ],
        5,
        Warning,
        "the one of Worker is for asynchronous invocations",
    ),
    (&[("MessageRetentionPeriod: 1209600 # letters", "")], 6, Warning, "keeps dead letters for 4 days"),
    (&[("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 1209600")], 6, Note, "14 days"),
    (
        &[FIFO, IS_FIFO, ("MessageRetentionPeriod: 1209600 # letters", "MessageRetentionPeriod: 60")],
        6,
        Warning,
        "of Orders for 60 s",
    ),
    (COPIES, 6, Warning, "Copies keeps the dead letters of Worker for"),
    (
        &[FIFO, ("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 3600")],
        7,
        Error,
        "Orders is FIFO, its dead-letter queue Letters is standard",
    ),
    (
        &[(
            "deadLetterTargetArn: !GetAtt Letters.Arn",
            "deadLetterTargetArn: 'arn:aws:sqs:us-east-1:123456789012:letters'",
        )],
        7,
        Error,
        "is in us-east-1, and the queue's Region is eu-west-1",
    ),
    (
        &[("redrivePermission: byQueue, sourceQueueArns: [!GetAtt Orders.Arn]", "redrivePermission: denyAll")],
        8,
        Error,
        "denyAll",
    ),
    (
        &[("sourceQueueArns: [!GetAtt Orders.Arn]", "sourceQueueArns: [!GetAtt Letters.Arn]")],
        8,
        Error,
        "is not among the queues",
    ),
    (
        &[
            FIFO,
            ("# letters-fifo", "FifoQueue: true"),
            ("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 3600"),
        ],
        9,
        Note,
        "those behind it in its group go on",
    ),
    (&[("BatchSize: 10", "BatchSize: 100")], 10, Error, "over 10 needs a window"),
    (
        &[
            FIFO,
            ("# letters-fifo", "FifoQueue: true"),
            ("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 3600"),
            ("BatchSize: 10", "BatchSize: 11"),
        ],
        10,
        Error,
        "a FIFO queue gives 10 at most",
    ),
    (&[("MaximumConcurrency: 10", "MaximumConcurrency: 1")], 11, Error, "MaximumConcurrency is 1"),
    // Whatever the other's is.
    (
        &[("ReservedConcurrentExecutions: 20", "ReservedConcurrentExecutions: 9"), ("  Logs:\n", WITHOUT_A_LIMIT)],
        11,
        Warning,
        "its mappings may run 10 or more at once, and 9 are reserved",
    ),
    (
        &[("ReservedConcurrentExecutions: 20", "ReservedConcurrentExecutions: 9"), ("  Logs:\n", OF_A_PARAMETER)],
        11,
        Warning,
        "its mappings may run 10 or more at once, and 9 are reserved",
    ),
    (
        &[("ReservedConcurrentExecutions: 20", "ReservedConcurrentExecutions: 9")],
        11,
        Warning,
        "its mappings may run 10 at once, and 9 are reserved",
    ),
    (&[POLLERS], 11, Warning, "its mappings may run 30 at once, and 20 are reserved"),
    (&[("ReservedConcurrentExecutions: 20", "ReservedConcurrentExecutions: 0")], 12, Warning, "it does not run"),
    (
        &[
            ("ReservedConcurrentExecutions: 20", "ReservedConcurrentExecutions: 3"),
            ("ScalingConfig: {MaximumConcurrency: 10}", ""),
        ],
        12,
        Warning,
        "3 are reserved",
    ),
    (
        &[("# pollers", "ProvisionedPollerConfig: {MinimumPollers: 2, MaximumPollers: 5}")],
        13,
        Error,
        "ProvisionedPollerConfig and MaximumConcurrency (10)",
    ),
    (
        &[
            ("BatchSize: 10", "BatchSize: 10000\n            MaximumBatchingWindowInSeconds: 5"),
            ("MaximumConcurrency: 10", "MaximumConcurrency: 20"),
        ],
        14,
        Warning,
        "20 batches of 10000 are 200000 messages",
    ),
    (
        &[("# pollers", "FilterCriteria: {Filters: [{Pattern: '{\"body\": {\"kind\": [\"order\"]}}'}]}")],
        15,
        Note,
        "messages that match none are deleted",
    ),
    (&[("# pollers", "FilterCriteria: {Filters: [{Pattern: '{\"body\": 1}'}]}")], 15, Error, "a filter `body` must be"),
    (
        &[(
            "# pollers",
            "FilterCriteria: {Filters: [{Pattern: !Ref Any}, {Pattern: '{\"body\": {\"a\": \"x\"}}'}, {Pattern: '{'}]}",
        )],
        15,
        Error,
        "a filter `a` must be an object, or a list of values: write [\"x\"]; that of another is not JSON",
    ),
    (
        &[("# pollers", "FilterCriteria: {Filters: [{Pattern: '{\"Body\": {\"kind\": [\"order\"]}}'}]}")],
        15,
        Error,
        "filters by `Body`: of an SQS message only `body`",
    ),
    (
        &[("# pollers", "FilterCriteria: {Filters: [{Pattern: '{\"body\": {\"kind\": [{\"wildcard\": \"o*\"}]}}'}]}")],
        15,
        Warning,
        "the pattern of a filter uses `wildcard`, which EventBridge has, and Lambda's documentation does not: AWS may refuse",
    ),
    (
        &[(
            "# pollers",
            "FilterCriteria: {Filters: [{Pattern: '{\"$or\": [{\"body\": {\"a\": [1]}}, {\"body\": {\"b\": [1]}}]}'}]}",
        )],
        15,
        Warning,
        "uses `$or` around `body`",
    ),
    (
        &[(
            "# pollers",
            "FilterCriteria: {Filters: [{Pattern: '{\"body\": [{\"wildcard\": \"o*\"}]}'}, {Pattern: '{\"body\": 1}'}]}",
        )],
        15,
        Error,
        "the pattern of a filter `body` must be",
    ),
    (&[("# pollers", "Enabled: false")], 16, Warning, "the mapping is disabled"),
    (
        &[("Queue: !GetAtt Orders.Arn", "Queue: arn:aws:sqs:us-east-1:123456789012:orders")],
        17,
        Error,
        "is in us-east-1, the function in eu-west-1",
    ),
    (&[("sqs:DeleteMessage, ", "")], 18, Error, "may not sqs:DeleteMessage on Orders"),
    // All of it at once.
    (
        &[
            ("sqs:DeleteMessage, sqs:ChangeMessageVisibility, ", ""),
            ("Action: sqs:SendMessage", "Action: sqs:TagQueue"),
        ],
        18,
        Error,
        "may not sqs:DeleteMessage on Orders; Worker is to send dead letters to Letters, and its role may not; the role of Worker may not \
         sqs:ChangeMessageVisibility",
    ),
    (&[NO_LIST], 18, Note, "may not lambda:ListEventSourceMappings: it cannot check"),
    (
        &[NO_LIST, ("# own-queue", "CLAIMANT_MAPPING_CHECK: refuse")],
        18,
        Error,
        "may not lambda:ListEventSourceMappings: each batch in which a message fails",
    ),
    (&[("/AWSLambdaBasicExecutionRole", "/AWSXRayDaemonWriteAccess")], 18, Warning, "may not logs:PutLogEvents"),
    (
        &[("{Service: lambda.amazonaws.com}", "{Service: ec2.amazonaws.com}")],
        18,
        Error,
        "lambda.amazonaws.com may not assume the role of Worker",
    ),
    // IAM takes ARNs.
    (&[("Resource: !GetAtt Orders.Arn", "Resource: !Ref Orders")], 18, Error, "may not sqs:ReceiveMessage"),
    (&[("Resource: !GetAtt Table.Arn", "Resource: !GetAtt Table.StreamArn")], 18, Error, "may not dynamodb:UpdateItem"),
    (&[("sqs:ChangeMessageVisibility, ", "")], 18, Warning, "may not sqs:ChangeMessageVisibility on Orders"),
    (
        &[("dynamodb:UpdateItem, ", "")],
        18,
        Error,
        "may not dynamodb:UpdateItem on Table: nothing that is done is recorded",
    ),
    (&[("dynamodb:UpdateItem, ", ""), ("CLAIMANT_TABLE: !Ref Table", "CLAIMANT_TABLE: locks")], 18, Error, "on locks"),
    // Whether the queue is described here or not.
    (
        &[("dynamodb:UpdateItem, ", ""), ("Queue: !GetAtt Orders.Arn", "Queue: !ImportValue x")],
        18,
        Error,
        "may not dynamodb:UpdateItem on Table",
    ),
    (&[("dynamodb:GetItem, ", "")], 18, Warning, "may not dynamodb:GetItem on Table"),
    (&[("Action: sqs:SendMessage", "Action: sqs:TagQueue")], 18, Error, "is to send dead letters to Letters"),
    (
        &[BEFORE, OLD, ON_OLD, ("dynamodb:DeleteItem] # old", "dynamodb:Scan]")],
        18,
        Error,
        "may not dynamodb:DeleteItem on Old",
    ),
    (
        &[
            BEFORE,
            OLD,
            ON_OLD,
            (
                "[dynamodb:GetItem, dynamodb:BatchGetItem, dynamodb:DeleteItem] # old",
                "[dynamodb:GetItem, dynamodb:DeleteItem]",
            ),
        ],
        28,
        Warning,
        "may not dynamodb:BatchGetItem on Old",
    ),
    (
        &[BEFORE, OLD, ON_OLD, ("[dynamodb:GetItem, dynamodb:BatchGetItem,", "[dynamodb:BatchGetItem,")],
        18,
        Error,
        "may not dynamodb:GetItem on Old",
    ),
    (
        &[SEALED, KEY_OF_TABLE],
        18,
        Error,
        "Table is encrypted with TableKey, and the role of Worker may not kms:Decrypt",
    ),
    (
        &[("Action: kms:Decrypt", "Action: kms:Encrypt")],
        19,
        Error,
        "encrypted with Key, and the role of Worker may not kms:Decrypt",
    ),
    (&[LETTERS_KEY], 19, Error, "Letters is encrypted with Key, and the role of Worker may not kms:GenerateDataKey"),
    (
        &[("KmsMasterKeyId: !Ref Key", ""), LETTERS_KEY, ("Action: kms:Decrypt", "Action: kms:GenerateDataKey")],
        19,
        Error,
        "Letters is encrypted with Key, and the role of Worker may not kms:Decrypt",
    ),
    // What is missing goes before what is not known.
    (
        &[
            ("KmsMasterKeyId: !Ref Key", ""),
            LETTERS_KEY,
            ("Action: kms:Decrypt", "Action: kms:GenerateDataKey"),
            ("Resource: !GetAtt Key.Arn", "Resource: 'arn:aws:kms:eu-west-1:123456789012:key/x'"),
        ],
        19,
        Error,
        "Letters is encrypted with Key, and the role of Worker may not kms:Decrypt",
    ),
    (
        &[
            ("KmsMasterKeyId: !Ref Key", "KmsMasterKeyId: alias/aws/sqs"),
            ("sqs.amazonaws.com", "sqs.amazonaws.com, AWS: ['210987654321', 'arn:aws:iam::123456789012:root']"),
        ],
        20,
        Error,
        "alias/aws/sqs",
    ),
    (
        &[
            ("Resource: !GetAtt Letters.Arn", "Resource: [!GetAtt Letters.Arn, !GetAtt Orders.Arn]"),
            ("# own-queue", "OWN: !Ref Orders"),
        ],
        21,
        Note,
        "which it reads, and may send there",
    ),
    (&[OWN_LETTERS], 21, Error, "CLAIMANT_DEAD_LETTER_QUEUE_URL of Worker is Orders, which it reads"),
    (&[OWN_LETTERS, ("# dlq", "RecursiveLoop: Allow")], 21, Error, "is Orders, which it reads"),
    (&[("  Logs:\n", WITHOUT_A_LIMIT)], 21, Error, "is Letters, which it reads"),
    (
        &[
            ("Queue: !GetAtt Orders.Arn", "Queue: arn:aws:sqs:eu-west-1:123456789012:far"),
            (OWN_LETTERS.0, "CLAIMANT_DEAD_LETTER_QUEUE_URL: https://sqs.eu-west-1.amazonaws.com/123456789012/far"),
        ],
        21,
        Error,
        "123456789012:far, which it reads",
    ),
    (
        &[
            ("VisibilityTimeout: 180", "VisibilityTimeout: 180\n      FifoThroughputLimit: perMessageGroupId"),
            FIFO,
            ("# letters-fifo", "FifoQueue: true"),
            ("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 3600"),
        ],
        22,
        Error,
        "DeduplicationScope is not messageGroup",
    ),
    (&[("AttributeType: S", "AttributeType: N")], 24, Error, "its key is id N"),
    (&[("AttributeName: expires_at", "AttributeName: ttl")], 24, Warning, "on ttl"),
    (&[("DeletionPolicy: Retain", "DeletionPolicy: Delete")], 25, Warning, "it is deleted by an update"),
    (&[("UpdateReplacePolicy: Retain", "")], 25, Warning, "by an update that replaces it"),
    (
        &[("PointInTimeRecoveryEnabled: true", "PointInTimeRecoveryEnabled: false")],
        25,
        Warning,
        "no point-in-time recovery",
    ),
    // One that is known to be wrong is found, whatever the other is.
    (
        &[
            ("PointInTimeRecoveryEnabled: true", "PointInTimeRecoveryEnabled: false"),
            ("DeletionPolicy: Retain", "DeletionPolicy: !Ref Any"),
        ],
        25,
        Warning,
        "it has no point-in-time recovery",
    ),
    (
        &[
            ("PointInTimeRecoveryEnabled: true", "PointInTimeRecoveryEnabled: !Ref Any"),
            ("DeletionPolicy: Retain", "DeletionPolicy: Delete"),
        ],
        25,
        Warning,
        "it is deleted by an update that replaces it",
    ),
    (
        &[
            ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"),
            ("DeletionPolicy: Retain", "DeletionPolicy: Delete"),
            (
                "PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}",
                "Replicas: [{Region: a, DeletionProtectionEnabled: true, PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}}, {Region: b}]",
            ),
        ],
        25,
        Warning,
        "in one of its Regions at least, it has no point-in-time recovery, and is deleted by an update that replaces it",
    ),
    (
        &[("BillingMode:", "OnDemandThroughput: {MaxWriteRequestUnits: 10}\n      BillingMode:")],
        26,
        Warning,
        "10 write units a second at most",
    ),
    (
        &[("BillingMode: PAY_PER_REQUEST", "ProvisionedThroughput: {ReadCapacityUnits: 5, WriteCapacityUnits: 5}")],
        26,
        Warning,
        "does not scale",
    ),
    (
        &[
            ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"),
            (
                "PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}",
                "Replicas: [{Region: eu-west-1, PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}}, {Region: us-east-1}]",
            ),
        ],
        27,
        Warning,
        "replicas in several Regions",
    ),
    (&[("dynamodb:PutItem, ", "")], 28, Warning, "may not dynamodb:PutItem on Table"),
    (&[("dynamodb:PartiQLInsert, ", "")], 28, Warning, "may not dynamodb:PartiQLInsert on Table"),
    (
        &[("QueueName: !GetAtt Orders.QueueName", "QueueName: other")],
        30,
        Note,
        "no alarm is on ApproximateAgeOfOldestMessage of Orders",
    ),
    (
        &[("DeadLetterQueueName: !GetAtt Letters.QueueName", "DeadLetterQueueName: other")],
        30,
        Note,
        "no alarm is on ApproximateNumberOfMessagesVisible of Letters",
    ),
    // Without a redrive policy, the function alone sends there.
    (
        &[
            ("RedrivePolicy: {deadLetterTargetArn: !GetAtt Letters.Arn, maxReceiveCount: 5}", ""),
            ("DeadLetterQueueName: !GetAtt Letters.QueueName", "DeadLetterQueueName: other"),
        ],
        30,
        Note,
        "no alarm is on ApproximateNumberOfMessagesVisible of Letters",
    ),
    (
        &[
            ("DeadLetterQueueName: !GetAtt Letters.QueueName", "DeadLetterQueueName: other"),
            ("  Alarms:\n", ALARM_OF_SENT),
        ],
        30,
        Note,
        "NumberOfMessagesSent does not count what SQS moves there",
    ),
    (&[("MetricsConfig: {Metrics: [EventCount]}", "")], 31, Note, "metrics are off"),
    (&[FIFO, ("# letters-fifo", "FifoQueue: true")], 32, Warning, "a message can live for 18 days"),
    (
        &[DATABASE, ("max_connections: \"400\"", "max_connections: \"30\"")],
        33,
        Warning,
        "10 processes of 4 connections are 40, and the database takes 30",
    ),
    (&[("LogFormat: JSON", "LogFormat: Text")], 34, Note, "plain text"),
    (&[("RetentionInDays: 30", "")], 34, Note, "never expire"),
    (&[("Architectures: [arm64]", "")], 34, Note, "x86_64"),
    (
        &[("ReservedConcurrentExecutions: 20", ""), ("ScalingConfig: {MaximumConcurrency: 10}", "")],
        34,
        Note,
        "nothing limits its concurrency",
    ),
    (&[("maxReceiveCount: 5", "maxReceiveCount: 10")], 35, Note, "counts on 5 receives, and its queue gives 10"),
    (
        &[("CLAIMANT_TABLE: !Ref Table", "CLAIMANT_TABLE: !Ref Table\n          CLAIMANT_MAX_RECEIVE_COUNT: '6'")],
        35,
        Note,
        "counts on 6 receives, and its queue gives 5",
    ),
    (&[PAUSES, GRANTED, KEPT], 36, Warning, "the role of Worker may not use the records of breakers in Table"),
    (&[PAUSES], 36, Warning, "the role of Worker may not lambda:UpdateEventSourceMapping"),
    // Wherever its records are.
    (&[PAUSES, ("CLAIMANT_TABLE: !Ref Table", "A: b")], 36, Warning, "an open breaker pauses nothing"),
    (
        &[PAUSES, GRANTED, TRUSTS_ANOTHER],
        36,
        Warning,
        "scheduler.amazonaws.com may not assume Scheduler: an open breaker pauses nothing",
    ),
    (
        &[PAUSES, GRANTED, ("[lambda:UpdateEventSourceMapping]", "[lambda:GetFunction]")],
        36,
        Error,
        "Scheduler may not lambda:UpdateEventSourceMapping: what an open breaker pauses stays so",
    ),
    (
        &[PAUSES, GRANTED, (ON_ALL, "Resource: [!GetAtt Scheduler.Arn, 'arn:aws:scheduler:*:*:schedule/other/*']")],
        36,
        Warning,
        "the role of Worker may not scheduler:CreateSchedule: an open breaker",
    ),
    (
        &[
            SCHEDULES,
            SCHEDULING,
            (
                ON_ALL,
                "Resource: [!GetAtt Scheduler.Arn, !Sub 'arn:aws:scheduler:*:${AWS::AccountId}:schedule/default/claimant-resume-*']",
            ),
        ],
        40,
        Warning,
        "the role of Worker may not scheduler:CreateSchedule, scheduler:GetSchedule: what is to wait",
    ),
    (
        &[
            SCHEDULES,
            SCHEDULING,
            (", 'iam:PassRole']", "]"),
            (
                ON_ALL,
                "Resource: 'arn:aws:scheduler:*'
              - Effect: Allow
                Action: iam:PassRole
                Resource: !GetAtt Role.Arn",
            ),
        ],
        40,
        Warning,
        "the role of Worker may not iam:PassRole: what is to wait",
    ),
    (
        &[SCHEDULES],
        40,
        Warning,
        "the role of Worker may not scheduler:CreateSchedule, scheduler:GetSchedule, iam:PassRole: what is to wait",
    ),
    (&[SCHEDULES, SCHEDULING, TRUSTS_ANOTHER], 40, Warning, "scheduler.amazonaws.com may not assume Scheduler: what"),
    (
        &[SCHEDULES, SCHEDULING, ("[!GetAtt Orders.Arn, !GetAtt Letters.Arn]", "!GetAtt Letters.Arn")],
        40,
        Error,
        "Scheduler may not sqs:SendMessage on Orders: what is due is not sent",
    ),
    (
        &[SCHEDULES, SCHEDULING, ("[!GetAtt Orders.Arn, !GetAtt Letters.Arn]", "!GetAtt Orders.Arn")],
        40,
        Warning,
        "Scheduler may not sqs:SendMessage on Letters: what cannot be sent for a day is lost",
    ),
    (
        &[SCHEDULES, SCHEDULING, ("[kms:GenerateDataKey, kms:Decrypt]", "kms:Decrypt")],
        40,
        Error,
        "Orders is encrypted with Key, and Scheduler may not kms:GenerateDataKey",
    ),
    (&[("CLAIMANT_TABLE: !Ref Table", "CLAIMANT_TABLE: 'locks-1,locks-1'")], 37, Error, "\"locks-1\" is named twice"),
    (&[("# own-queue", "CLAIMANT_TABLE_BEFORE: 'locks;old'")], 37, Error, "is the name of no table"),
    (&[("CLAIMANT_TABLE:", "CLAIMANT_TABEL:")], 37, Error, "is no variable of claimant: did you mean CLAIMANT_TABLE?"),
    (&[("# own-queue", "CLAIMANT_CONCURRENCY: 0")], 37, Error, "CLAIMANT_CONCURRENCY is \"0\"; a whole number from 1"),
    (
        &[("CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters", "CLAIMANT_DEAD_LETTER_QUEUE_URL: !GetAtt Letters.Arn")],
        37,
        Error,
        "a queue's URL is needed",
    ),
    (&[("# own-queue", "CLAIMANT_RESUME_ROLE_ARN: !Ref Role")], 37, Error, "a role's ARN is needed"),
    // Names are known where values are not.
    (&[("# own-queue", "CLAIMANT_MARGIN: !Ref Any")], 37, Error, "CLAIMANT_MARGIN is no variable of claimant"),
    (&[("# own-queue", "CLAIMANT_SCHEDULE_ROLE_ARN: !GetAtt Role.Arn")], 37, Error, "are needed together"),
    // One variable is not known, and these are.
    (
        &[MARGIN, ("CLAIMANT_TABLE:", "CLAIMANT_BATCH: !Ref Any\n          CLAIMANT_TABLE:")],
        37,
        Error,
        "Worker may run for 30 s, and has to return 60000 ms before",
    ),
    (
        &[("Timeout: 30 # function", "Timeout: 5"), ("VisibilityTimeout: 180", "VisibilityTimeout: 30"), MARGIN],
        37,
        Error,
        "Worker may run for 5 s",
    ),
    (
        &[("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 180")],
        38,
        Error,
        "kept for 180 s, and hidden for 180 s",
    ),
    (
        &[("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 900")],
        38,
        Warning,
        "kept for 900 s, and 5 receives of 180 s each can last for 900 s",
    ),
    // However often.
    (
        &[
            ("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 60"),
            ("RedrivePolicy: {deadLetterTargetArn: !GetAtt Letters.Arn, maxReceiveCount: 5}", ""),
        ],
        38,
        Error,
        "kept for 60 s",
    ),
    (&[("Queue: !GetAtt Orders.Arn", "Queue: !Ref Orders")], 39, Error, "what names Orders is not its ARN"),
    (
        &[("Queue: !GetAtt Orders.Arn", "Queue: !Sub '${Orders.QueueName}'")],
        39,
        Error,
        "what names Orders is not its ARN",
    ),
    (&[("Queue: !GetAtt Orders.Arn", "Queue: https://sqs.eu-west-1.amazonaws.com/1/orders")], 39, Error, "not its ARN"),
    (&[("deadLetterTargetArn: !GetAtt Letters.Arn", "deadLetterTargetArn: !Ref Letters")], 39, Error, "names Letters"),
];

#[test]
fn a_breakers_record_is_asked_for_where_there_is_one_and_keys_can_be_read() {
    let tally = |changes: &[(&str, &str)]| {
        let report = examine(&changed(GOOD, changes), &in_region("eu-west-1"));
        assert!(report.findings.is_empty(), "{changes:?}: {report:#?}");
        report.tallies.get(&36).map(|tally| (tally.fine, tally.unknown))
    };
    assert_eq!(tally(&[KEPT]), None, "nothing is paused");
    assert_eq!(tally(&[PAUSES, GRANTED]), Some((1, 0)), "all keys are allowed");
    let breakers = format!("['worker#*', '{BREAKER_CONSUMER}#*']");
    for (keys, expected) in [
        (&*breakers, (1, 0)),
        ("['claimant-*']", (1, 0)),
        // Its name is in code.
        ("['worker#*', 'claimant-breaker#gateway']", (1, 0)),
        // What it says is not known.
        ("[!Sub '${Any}#*']", (1, 0)),
    ] {
        let kept = changed(KEPT.1, &[("['worker#*', 'worker~*']", keys)]);
        assert_eq!(tally(&[PAUSES, GRANTED, (KEPT.0, &kept)]), Some(expected), "{keys}");
    }
    assert_eq!(tally(&[PAUSES, GRANTED, (KEPT.0, "Resource: !Ref Any")]), Some((0, 1)));
    let elsewhere =
        ("CLAIMANT_TABLE: !Ref Table", "CLAIMANT_TABLE: !Ref Table\n          CLAIMANT_REDIS_URL: !Ref Any");
    assert_eq!(tally(&[PAUSES, GRANTED, KEPT, elsewhere]), Some((1, 0)), "its record is in Redis");
    let policy = ("    DeletionPolicy: Retain\n    Properties:", POLICY_OF_TABLE);
    assert_eq!(tally(&[PAUSES, GRANTED, KEPT, policy]), Some((0, 1)), "the table may admit the role");
    let power = ("service-role/AWSLambdaBasicExecutionRole", "PowerUserAccess");
    let passes = (
        "Action: kms:Decrypt",
        "Action: iam:PassRole\n                Resource: '*'\n              - Effect: Allow\n                Action: kms:Decrypt",
    );
    assert_eq!(tally(&[PAUSES, passes, power]), Some((1, 0)));
    // Its console shows the functions that read a table's stream.
    let dynamodb = (
        "service-role/AWSLambdaBasicExecutionRole",
        "service-role/AWSLambdaBasicExecutionRole, arn:aws:iam::aws:policy/AmazonDynamoDBFullAccess",
    );
    let others = changed(GRANTED.1, &[("'lambda:*'", "'lambda:UpdateEventSourceMapping'")]);
    assert_eq!(tally(&[PAUSES, NO_LIST, (GRANTED.0, &others), dynamodb]), Some((1, 0)));
}

#[test]
fn a_role_that_schedules_act_for_is_looked_at_where_it_is_described() {
    let scheduler = "{Service: scheduler.amazonaws.com}";
    for (check, told, granted) in [(36, PAUSES, GRANTED), (40, SCHEDULES, SCHEDULING)] {
        for (change, expected) in [
            (("# fifo", ""), (1, 0)),
            ((scheduler, "{Service: !Sub 'scheduler.${AWS::URLSuffix}'}"), (1, 0)),
            ((scheduler, "'*'"), (0, 1)),
            ((scheduler, "{Service: !Ref Any}"), (0, 1)),
            (
                (
                    ON_ALL,
                    "Resource: [!GetAtt Scheduler.Arn, !Sub 'arn:${AWS::Partition}:scheduler:${AWS::Region}:${AWS::AccountId}:schedule/default/claimant-*']",
                ),
                (1, 0),
            ),
            // By its name, only AWS can compare it.
            ((ON_ALL, "Resource: ['arn:aws:iam::*:role/x', 'arn:aws:scheduler:*']"), (0, 1)),
            (("!GetAtt Scheduler.Arn", "!Ref Any"), (0, 1)),
            (("!GetAtt Scheduler.Arn", "arn:aws:iam::123456789012:role/scheduler"), (0, 1)),
        ] {
            let report = examine(&changed(GOOD, &[told, granted, change]), &in_region("eu-west-1"));
            assert!(report.findings.is_empty(), "{check}, {change:?}: {report:#?}");
            assert_eq!((report.tallies[&check].fine, report.tallies[&check].unknown), expected, "{check}, {change:?}");
        }
    }
}

#[test]
fn what_is_of_a_function_is_found_once_however_many_queues_it_reads() {
    for (check, told, then) in
        [(36, PAUSES, "an open breaker pauses nothing"), (40, SCHEDULES, "what is to wait longer than 12 hours")]
    {
        let report =
            examine(&changed(GOOD, &[told, TRUSTS_ANOTHER, ("  Logs:\n", WITHOUT_A_LIMIT)]), &Options::default());
        let whats: Vec<_> =
            report.findings.iter().filter(|found| found.check.number == check).map(|found| &found.what).collect();
        assert_eq!(whats.len(), 1, "{report:#?}");
        assert!(
            whats[0].contains("Worker") && whats[0].contains("may not assume") && whats[0].matches(then).count() == 1,
            "{whats:?}"
        );
    }
    let queues = [("[!GetAtt Orders.Arn, !GetAtt Letters.Arn]", "!GetAtt Key.Arn"), ("  Logs:\n", WITHOUT_A_LIMIT)];
    let report = examine(&changed(GOOD, &[&[SCHEDULES, SCHEDULING], &queues[..]].concat()), &Options::default());
    let of_it = report.findings.iter().find(|found| found.check.number == 40).unwrap();
    assert!(["on Orders: ", "on Letters: what is due"].iter().all(|part| of_it.what.contains(part)), "{of_it:?}");
}

/// (what is changed, a check, what is to be written).
#[test]
fn a_fix_can_be_written_as_it_stands() {
    const NO_LIMIT: (&str, &str) = ("ScalingConfig: {MaximumConcurrency: 10}", "");
    const POLLERS: (&str, &str) = (
        "  Logs:\n",
        "  Second:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Letters.Arn, FunctionName: !Ref Worker, ProvisionedPollerConfig: {MaximumPollers: 2}}
  Logs:\n",
    );
    let reserved = |reserved: &'static str| ("ReservedConcurrentExecutions: 20", reserved);
    type Case<'c> = (&'c [(&'c str, &'c str)], u8, &'c str);
    let cases: &[Case<'_>] = &[
        (
            &[("DeadLetterQueueName: !GetAtt Letters.QueueName", "DeadLetterQueueName: other")],
            30,
            "MetricName: ApproximateNumberOfMessagesVisible, QueueName: !GetAtt Letters.QueueName",
        ),
        (&[("sqs:DeleteMessage, ", "")], 18, "Action: [sqs:DeleteMessage], Resource: !GetAtt Orders.Arn"),
        (&[("dynamodb:PutItem, ", "")], 28, "Action: [dynamodb:PutItem], Resource: !GetAtt Table.Arn"),
        (
            &[reserved("ReservedConcurrentExecutions: 9")],
            11,
            "ReservedConcurrentExecutions: 10, or MaximumConcurrency: 9",
        ),
        // Lambda takes none under two.
        (
            &[reserved("ReservedConcurrentExecutions: 1"), ("MaximumConcurrency: 10", "MaximumConcurrency: 2")],
            11,
            "ReservedConcurrentExecutions: 2",
        ),
        (
            &[reserved("ReservedConcurrentExecutions: 3"), NO_LIMIT],
            12,
            "ReservedConcurrentExecutions: 5, or MaximumConcurrency: 3",
        ),
        (
            &[reserved("ReservedConcurrentExecutions: 1"), NO_LIMIT],
            12,
            "ReservedConcurrentExecutions: 5, or 2 with MaximumConcurrency: 2 on each of its mappings",
        ),
        // Lambda takes no MaximumConcurrency beside provisioned pollers.
        (&[reserved("ReservedConcurrentExecutions: 3"), NO_LIMIT, POLLERS], 12, "ReservedConcurrentExecutions: 7"),
        (
            &[
                reserved("ReservedConcurrentExecutions: 3"),
                (NO_LIMIT.0, "ProvisionedPollerConfig: {MinimumPollers: 10}"),
            ],
            12,
            "ReservedConcurrentExecutions: 10",
        ),
        (
            &[(NO_LIMIT.0, "ProvisionedPollerConfig: {MinimumPollers: 2, MaximumPollers: 9}")],
            11,
            "ReservedConcurrentExecutions: 90, or MaximumPollers: 2",
        ),
        // Nor more pollers at least than at most.
        (
            &[(NO_LIMIT.0, "ProvisionedPollerConfig: {MinimumPollers: 3, MaximumPollers: 9}")],
            11,
            "ReservedConcurrentExecutions: 90, or MaximumPollers: 2 with MinimumPollers: 2 or less",
        ),
        (
            &[(NO_LIMIT.0, "ProvisionedPollerConfig: {MinimumPollers: !Ref Any, MaximumPollers: 9}")],
            11,
            "ReservedConcurrentExecutions: 90, or MaximumPollers: 2 with MinimumPollers: 2 or less",
        ),
        (
            &[DATABASE, ("max_connections: \"400\"", "max_connections: \"30\"")],
            33,
            "CLAIMANT_DATABASE_CONNECTIONS: 3 or less, or less MaximumConcurrency",
        ),
        (
            &[DATABASE, ("  Logs:\n", OTHER), ("max_connections: \"400\"", "max_connections: \"71\"")],
            33,
            "CLAIMANT_DATABASE_CONNECTIONS: 3 or less in each of Worker, Other, or less MaximumConcurrency",
        ),
        // One connection each is too many.
        (
            &[DATABASE, ("max_connections: \"400\"", "max_connections: \"9\"")],
            33,
            "CLAIMANT_DATABASE_CONNECTIONS: 1, and MaximumConcurrency (of provisioned pollers MaximumPollers, times 10) of 9 in all; \
             or a pooler such as RDS Proxy",
        ),
    ];
    for (changes, number, fix) in cases {
        let report = examine(&changed(GOOD, changes), &in_region("eu-west-1"));
        let found = report.findings.iter().find(|finding| finding.check.number == *number).unwrap();
        assert!(found.fix.ends_with(fix), "{number}: {found:#?}");
    }
}

/// Boundaries and denials take away, and add nothing; what a policy adds that may not be there is not known.
#[test]
fn what_may_be_taken_away_from_a_role_is_not_known() {
    let policy = |more: &str, action: &str| {
        format!(
            "  More:
    Type: AWS::IAM::Policy
    {more}
    Properties:
      Roles: [!Ref Role]
      PolicyDocument: {{Statement: [{{Effect: Allow, Action: '{action}', Resource: '*'}}]}}
  Logs:
"
        )
    };
    let (may, always) = (policy("Condition: IsAny", "sqs:*"), policy("", "sqs:*"));
    let of_another_service = policy("Condition: IsAny", "s3:GetObject");
    let of_role = (
        "    Type: AWS::IAM::Role\n    Properties:",
        "    Type: AWS::IAM::Role\n    Properties:\n      PermissionsBoundary: !Ref Any",
    );
    let role_too = ("    Type: AWS::IAM::Role\n", "    Type: AWS::IAM::Role\n    Condition: IsAny\n");
    let lacks = ("sqs:DeleteMessage, ", "");
    // Of a role that SAM makes.
    let of_sam =
        ("      Role: !GetAtt Role.Arn\n", "      Policies: [AmazonSQSFullAccess, AmazonDynamoDBFullAccess]\n");
    let in_globals = ("Globals:\n  Function:\n", "Globals:\n  Function:\n    PermissionsBoundary: !Ref Any\n");
    let none = ("AmazonSQSFullAccess, ", "");
    let denies = policy("", "sqs:*").replace("Allow", "Deny");
    // In another policy, and in the one that allows it.
    let beside = |action: &str| {
        format!(
            "        - PolicyName: denies
          PolicyDocument: {{Statement: {{Effect: Deny, Action: '{action}', Resource: '*'}}}}
        - PolicyName: own
"
        )
    };
    let (all, of_s3, named) = (beside("*"), beside("s3:*"), "        - PolicyName: own\n");
    let first = "              - Effect: Allow\n                Action: sqs:SendMessage\n";
    let within = format!("              - {{Effect: Deny, NotAction: 's3:*', Resource: '*'}}\n{first}");
    let denied_by_sam = "{Statement: {Effect: Deny, Action: 'dynamodb:U*', Resource: !GetAtt Table.Arn}}";
    let denied_by_sam = of_sam.1.replace("]", &format!(", {denied_by_sam}]"));
    // On a role that SAM makes, and on one that is not known.
    let denied_beside_sam = denies.replace("!Ref Role", "!Ref WorkerRole");
    let on_another = of_another_service.replace("!Ref Role", "!Ref Other");
    // A policy, and all of them.
    let document = "PolicyDocument: {Statement: [{Effect: Deny, Action: '*', Resource: '*'}]}";
    let may_deny = format!("        - !If [IsAny, {{PolicyName: denies, {document}}}, !Ref AWS::NoValue]\n{named}");
    let (list, not_known) = ("      Policies:\n", "      Policies: !If [IsAny, [], []]\n      Unread:\n");
    let all_by_another = policy("", "*");
    for (changes, expected) in [
        (&[lacks][..], (1, 1, 0)),
        (&[of_role, lacks], (0, 1, 1)),
        (&[of_role], (0, 0, 2)),
        (&[of_sam], (2, 0, 0)),
        (&[of_sam, in_globals], (0, 0, 2)),
        (&[of_sam, none, in_globals], (0, 1, 1)),
        (&[lacks, ("  Logs:\n", &may)], (1, 0, 1)),
        (&[lacks, ("  Logs:\n", &of_another_service)], (1, 1, 0)),
        (&[lacks, ("  Logs:\n", &always)], (2, 0, 0)),
        (&[lacks, role_too, ("  Logs:\n", &may)], (2, 0, 0)),
        (&[(named, &all)], (0, 0, 2)),
        (&[lacks, (named, &all)], (0, 1, 1)),
        (&[(named, &of_s3)], (2, 0, 0)),
        (&[(first, &within)], (0, 0, 2)),
        (&[("  Logs:\n", &denies)], (1, 0, 1)),
        (&[(of_sam.0, &denied_by_sam)], (1, 0, 1)),
        (&[of_sam, ("  Logs:\n", &denied_beside_sam)], (1, 0, 1)),
        (&[lacks, ("  Logs:\n", &on_another)], (1, 1, 0)),
        (&[(named, &may_deny)], (0, 0, 2)),
        (&[(list, not_known), ("  Logs:\n", &all_by_another)], (0, 0, 2)),
    ] {
        let report = examine(&changed(GOOD, changes), &in_region("eu-west-1"));
        let tally = report.tallies[&18];
        assert_eq!((tally.fine, tally.found, tally.unknown), expected, "{changes:?}: {report:#?}");
    }
}

/// Only a request has what a condition is about.
#[test]
fn what_a_condition_may_take_away_is_not_known() {
    let (on_key, on_queue) = ("Resource: !GetAtt Key.Arn\n", "Resource: !GetAtt Orders.Arn\n");
    let of_s3 = "{StringEquals: {'kms:ViaService': s3.eu-west-1.amazonaws.com}}";
    for (resource, condition, check, expected) in [
        (on_key, of_s3, 19, (0, 1)),
        (on_queue, "{StringEquals: {'aws:SourceVpc': vpc-1}}", 18, (1, 1)),
        (on_queue, "{Bool: {'aws:SecureTransport': true}, StringLike: {'aws:PrincipalTag/a': b}}", 18, (1, 1)),
        (on_queue, "{Bool: {'aws:SecureTransport': true}}", 18, (2, 0)),
        (on_queue, "!If [IsAny, {Bool: {'aws:SecureTransport': true}}, !Ref AWS::NoValue]", 18, (1, 1)),
        (on_queue, "!Ref AWS::NoValue", 18, (2, 0)),
    ] {
        let with = format!("{resource}                Condition: {condition}\n");
        let report = examine(&changed(GOOD, &[(resource, &with)]), &in_region("eu-west-1"));
        let tally = report.tallies[&check];
        assert_eq!((tally.fine, tally.unknown, tally.found), (expected.0, expected.1, 0), "{condition}: {report:#?}");
    }
}

/// Policies of IAM allow what a key's own policy grants its account, and no more.
#[test]
fn the_policy_of_a_key_leaves_its_use_to_iam_where_it_grants_the_account_that() {
    let more = |statement: &str| {
        format!("Statement:\n          - {statement}\n          - Effect: Allow\n            Principal: {{AWS: !Sub")
    };
    let to_root = "Statement:\n          - Effect: Allow\n            Principal: {AWS: !Sub";
    let (all, root) = ("Action: kms:*", "Principal: {AWS: 'arn:aws:iam::123456789012:root'}");
    let denied = more(&format!("{{Effect: Deny, {root}, Action: kms:Decrypt, Resource: '*'}}"));
    let all_but_one = more(
        "{Effect: Allow, NotPrincipal: {AWS: 'arn:aws:iam::123456789012:root'}, Action: kms:Decrypt, Resource: '*'}",
    );
    let described = more(&format!("{{Effect: Allow, {root}, Action: kms:DescribeKey, Resource: '*'}}"));
    for (change, fine) in [
        ((all, "Action: [kms:Create*, kms:Describe*, kms:Put*, kms:ScheduleKeyDeletion]"), 0),
        ((all, "Action: ['kms:D*', kms:GenerateDataKey]"), 1),
        (
            (
                all,
                "Action: kms:*\n            Condition: {StringEquals: {'kms:ViaService': s3.eu-west-1.amazonaws.com}}",
            ),
            0,
        ),
        ((to_root, &denied), 0),
        ((to_root, &all_but_one), 0),
        ((to_root, &described), 1),
    ] {
        let report = examine(&changed(GOOD, &[change]), &in_region("eu-west-1"));
        let tally = report.tallies[&19];
        assert_eq!((tally.fine, tally.found, tally.unknown), (fine, 0, 1 - fine), "{change:?}: {report:#?}");
    }
}

/// What another resource has can be the ARN of a queue.
#[test]
fn an_arn_from_elsewhere_can_be_of_any_queue() {
    for (kind, resource) in
        [("AWS::SSM::Parameter", "!GetAtt Storage.Value"), ("Custom::Storage", "!GetAtt Storage.Arn")]
    {
        let storage = format!("  Storage: {{Type: {kind}}}\n  Logs:\n");
        let resource = format!("Resource: {resource}");
        let report = examine(
            &changed(GOOD, &[("  Logs:\n", &storage), ("Resource: !GetAtt Orders.Arn", &resource)]),
            &in_region("eu-west-1"),
        );
        let tally = report.tallies[&18];
        assert_eq!((tally.fine, tally.found, tally.unknown), (1, 0, 1), "{resource}: {report:#?}");
    }
}

/// A loop that is allowed is no finding, whatever the role may do.
#[test]
fn a_loop_is_known_to_be_none_by_what_decides_it() {
    let may = "  More:
    Type: AWS::IAM::Policy
    Condition: IsAny
    Properties:
      Roles: [!Ref Role]
      PolicyDocument: {Statement: [{Effect: Allow, Action: 'sqs:SendMessage', Resource: !GetAtt Orders.Arn}]}
  Logs:
";
    let (sends, own) = (("  Logs:\n", may), ("# own-queue", "OWN: !Ref Orders"));
    for (changes, fine) in [
        (&[own, sends, ("# dlq", "RecursiveLoop: Allow")][..], 1),
        (&[own, sends], 0),
        (&[own, ("# dlq", "RecursiveLoop: !Ref Any")], 1),
    ] {
        let report = examine(&changed(GOOD, changes), &in_region("eu-west-1"));
        let tally = report.tallies[&21];
        assert_eq!((tally.fine, tally.found, tally.unknown), (fine, 0, 1 - fine), "{changes:?}: {report:#?}");
    }
}

/// Connections of all functions and of all mappings are of one database.
#[test]
fn connections_add_up() {
    let of_worker = OTHER.replace("Ref Other", "Ref Worker");
    let perhaps = ("# condition", "Condition: IsAny");
    let takes = |second: &str, most: &str, changes: &[(&str, &str)]| {
        let most = format!("max_connections: \"{most}\"");
        let all = [&[DATABASE, ("  Logs:\n", second), ("max_connections: \"400\"", &most)], changes].concat();
        let report = examine(&changed(GOOD, &all), &in_region("eu-west-1"));
        let what = report.findings.iter().filter(|finding| finding.check.number == 33);
        let what = what.map(|finding| format!("{}: {}", finding.place.id, finding.what)).collect::<Vec<_>>();
        (what, report.tallies[&33].unknown)
    };
    // The URLs of both, in their order.
    let urls = |own: &str, other: &str| {
        let (own, other) = (format!("CLAIMANT_DATABASE_URL: {own}\n"), format!("{{CLAIMANT_DATABASE_URL: {other}, "));
        takes(
            OTHER,
            "71",
            &[("CLAIMANT_DATABASE_URL: !Ref Any\n", &own), ("{CLAIMANT_DATABASE_URL: !Ref Any, ", &other)],
        )
    };
    let none = (Vec::<String>::new(), 0);
    assert_eq!(takes(OTHER, "72", &[]), none);
    let both = [
        "Worker: 10 processes of 4 connections, with those of Other, are 72, and the database takes 71",
        "Other: 8 processes of 4 connections, with those of Worker, are 72, and the database takes 71",
    ];
    let both = (both.map(str::to_owned).to_vec(), 0);
    assert_eq!(takes(OTHER, "71", &[]), both);
    let unknown = (Vec::new(), 2);
    for (own, other, expected) in [
        ("'postgres://a/b'", "'postgres://c/d'", &none),
        ("'postgres://shop@db/orders'", "'postgres://stock@db:5432/stock'", &both),
        ("'postgres://db/orders'", "'mysql://db/orders'", &none),
        ("!Sub 'postgres://${Any}@${DbA.Endpoint.Address}/a'", "!Sub 'postgres://${DbA.Endpoint.Address}/b'", &both),
        ("!Sub 'postgres://${DbA.Endpoint.Address}/a'", "!Sub 'postgres://${DbB.Endpoint.Address}/a'", &unknown),
        ("!Sub 'postgres://${Any}/a'", "!Sub 'postgres://${Any}/a'", &both),
        ("!Sub 'postgres://${Any}/a'", "!Sub 'postgres://db/a'", &unknown),
        ("'{{resolve:secretsmanager:a}}'", "'{{resolve:secretsmanager:a}}'", &both),
        ("'{{resolve:secretsmanager:a}}'", "'{{resolve:secretsmanager:b}}'", &unknown),
    ] {
        assert_eq!(&urls(own, other), expected, "{own} {other}");
    }
    let open = ("Variables: {CLAIMANT_DATABASE_URL: !Ref Any, ", "Variables: {'Fn::Transform': {Name: AWS::Include}, ");
    assert_eq!(takes(OTHER, "71", &[open]), unknown, "the other may have a database");
    assert_eq!(takes(OTHER, "71", &[perhaps]).1, 1, "the other may open none");
    assert_eq!(takes(&of_worker, "72", &[]), none);
    let one = "Worker: 18 processes of 4 connections are 72, and the database takes 71";
    assert_eq!(takes(&of_worker, "71", &[]), (vec![one.to_owned()], 0));
}

/// The same text leads to another server in each of two stacks.
#[test]
fn connections_of_stacks_with_their_own_servers_do_not_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outer.yaml");
    let url = ("DATABASE_URL: !Ref Any", "DATABASE_URL: !Sub 'postgres://u@db.${AWS::StackName}.internal/a'");
    let inner = changed(GOOD, &[DATABASE, url, ("max_connections: \"400\"", "max_connections: \"79\"")]);
    fs::write(directory.path().join("inner.yaml"), inner).unwrap();
    fs::write(directory.path().join("alarms.yaml"), ALARMS).unwrap();
    let stack = "{Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: inner.yaml}}";
    fs::write(&path, format!("Resources:\n  One: {stack}\n  Two: {stack}\n")).unwrap();
    let (system, _) = read(&path, &in_region("eu-west-1")).unwrap();
    let tally = run(&system).tallies[&33];
    assert_eq!((tally.fine, tally.found, tally.unknown), (0, 0, 2));
}

/// Of a margin that leaves time, and of one that may, nothing is found.
#[test]
fn a_margin_is_compared_with_the_timeout() {
    for (margin, timeout, tally) in [
        ("29999", "30", (1, 0, 0)),
        ("30000", "30", (0, 1, 0)),
        ("30000", "!Ref Any", (0, 0, 1)),
        ("!Ref Any", "30", (0, 0, 1)),
    ] {
        let margin = format!("CLAIMANT_MARGIN_MS: {margin}");
        let timeout = format!("Timeout: {timeout}");
        let template = changed(GOOD, &[("# own-queue", &margin), ("Timeout: 30 # function", &timeout)]);
        let of = examine(&template, &in_region("eu-west-1")).tallies[&37];
        assert_eq!((of.fine, of.found, of.unknown), tally, "{margin}, {timeout}");
    }
}

/// In another account a table can have the name that this one has in its template.
#[test]
fn a_table_has_no_name_that_its_logical_id_tells() {
    let before = ("# own-queue", "CLAIMANT_TABLE_BEFORE: arn:aws:dynamodb:eu-west-1:222222222222:table/Table");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outer.yaml");
    fs::write(directory.path().join("inner.yaml"), changed(GOOD, &[before])).unwrap();
    fs::write(directory.path().join("alarms.yaml"), ALARMS).unwrap();
    fs::write(&path, "Resources: {In: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: inner.yaml}}}")
        .unwrap();
    let (system, _) = read(&path, &in_region("eu-west-1")).unwrap();
    let tally = run(&system).tallies[&37];
    assert_eq!((tally.fine, tally.found, tally.unknown), (1, 0, 0));
}

#[test]
fn each_check_finds_what_it_is_for() {
    for (changes, number, level, says) in CASES {
        let report = examine(&changed(GOOD, changes), &in_region("eu-west-1"));
        let is_it = |finding: &&claimant_doctor::Finding| {
            finding.check.number == *number && finding.level == *level && finding.what.contains(says)
        };
        let finding = report.findings.iter().find(is_it);
        let finding = finding.unwrap_or_else(|| panic!("check {number} does not say `{says}`: {report:#?}"));
        assert!(finding.place.line > 1 && finding.fix.len() > 5, "{finding:?}");
    }
    let covered: BTreeSet<u8> = CASES.iter().map(|case| case.1).chain(BY_ACCOUNT).collect();
    assert_eq!(
        covered,
        numbers().collect(),
        "CASES has a change for each check, but for those that only metrics answer"
    );
}

/// Functions without variables of claimant, and who may do nothing with a table.
#[test]
fn the_book_says_which_checks_are_for_consumers_of_claimant_only() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let page = fs::read_to_string(page).unwrap().replace('\n', " ");
    let list = page.split_once("; checks ").unwrap().1.split_once(" are for consumers of claimant only").unwrap().0;
    let list = list.replace(", and ", ", ").replace(" and ", ", ");
    let ranges = list.split(", ").map(|part| part.split_once(" to ").unwrap_or((part, part)));
    let listed: BTreeSet<u8> =
        ranges.flat_map(|(from, to)| from.parse().unwrap()..=to.parse::<u8>().unwrap()).collect();
    let other: String = GOOD.split_inclusive('\n').filter(|line| !line.contains("CLAIMANT_")).collect();
    let other = examine(&other, &in_region("eu-west-1"));
    let both = examine(GOOD, &in_region("eu-west-1"));
    let answered = |report: &Report| report.tallies.keys().copied().collect::<BTreeSet<u8>>();
    let (other, both) = (answered(&other), answered(&both));
    let not_said: Vec<_> = both.difference(&other).filter(|number| !listed.contains(number)).collect();
    let wrong: Vec<_> = listed.intersection(&other).collect();
    assert!(
        not_said.is_empty() && wrong.is_empty(),
        "docs/doctor.md lacks {not_said:?}, and {wrong:?} are for others, too"
    );
}

#[test]
fn what_cannot_be_known_is_never_a_finding() {
    /// Another reader of the queue.
    const SECOND: &str = "  Second:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      EventSourceArn: !GetAtt Orders.Arn
      FunctionName: other
      FunctionResponseTypes: [ReportBatchItemFailures]
      # second
  Logs:
";
    /// A table that may be in one Region only.
    const GLOBAL: (&str, &str) =
        ("AWS::DynamoDB::Table\n    DeletionPolicy: Retain", "AWS::DynamoDB::GlobalTable\n    DeletionPolicy: Retain");
    const PERHAPS: (&str, &str) = (
        "BillingMode:",
        "Replicas:
        - {Region: eu-west-1, PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}}
        - !If [IsAny, {Region: us-east-1}, !Ref AWS::NoValue]
      BillingMode:",
    );
    // Each value that a check depends on, by a parameter without a value.
    let table: &[(&str, &str, u8)] = &[
        ("VisibilityTimeout: 180", "VisibilityTimeout: !Ref Any", 1),
        ("Timeout: 30 # function", "Timeout: !ImportValue Any", 1),
        ("VisibilityTimeout: 180", "VisibilityTimeout: !Select [1, [!If [IsAny, 1, !Ref AWS::NoValue], 180, 10]]", 1),
        ("FunctionResponseTypes: [ReportBatchItemFailures]", "FunctionResponseTypes: !Ref Any", 3),
        ("maxReceiveCount: 5", "maxReceiveCount: !Ref Any", 4),
        ("RedrivePolicy: {deadLetterTargetArn: !GetAtt Letters.Arn, maxReceiveCount: 5}", "RedrivePolicy: !Ref Any", 5),
        ("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: '{{resolve:ssm:any}}'", 6),
        ("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: !If [IsAny, 60, 1209600]", 6),
        ("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: !Ref Any", 38),
        ("maxReceiveCount: 5", "maxReceiveCount: !Ref Any", 38),
        ("Queue: !GetAtt Orders.Arn", "Queue: !Sub '${Any}'", 39),
        ("deadLetterTargetArn: !GetAtt Letters.Arn", "deadLetterTargetArn: !Ref Any", 39),
        ("# fifo", "FifoQueue: !Ref Any", 7),
        ("sourceQueueArns: [!GetAtt Orders.Arn]", "sourceQueueArns: [!Ref Any]", 8),
        ("BatchSize: 10", "BatchSize: 100\n            MaximumBatchingWindowInSeconds: !Ref Any", 10),
        ("MaximumConcurrency: 10", "MaximumConcurrency: !Ref Any", 11),
        ("ReservedConcurrentExecutions: 20", "ReservedConcurrentExecutions: !Ref Any", 12),
        ("# pollers", "FilterCriteria: !Ref Any", 15),
        ("# pollers", "FilterCriteria: {Filters: [!If [IsAny, {Pattern: x}, !Ref AWS::NoValue]]}", 15),
        ("Metrics: [EventCount]", "Metrics: [!If [IsAny, EventCount, !Ref AWS::NoValue]]", 31),
        ("# pollers", "Enabled: !Ref Any", 16),
        ("Action: [sqs:ReceiveMessage", "Action: [!Ref Any", 18),
        ("Resource: !GetAtt Orders.Arn", "Resource: !Ref Any", 18),
        ("{Service: lambda.amazonaws.com}", "'*'", 18),
        ("{Service: lambda.amazonaws.com}", "{AWS: '*'}", 18),
        ("CLAIMANT_TABLE: !Ref Table", "CLAIMANT_TABLE: !Ref Any", 18),
        ("CLAIMANT_TABLE: !Ref Table", "CLAIMANT_TABLE: locks", 18),
        ("KmsMasterKeyId: !Ref Key", "KmsMasterKeyId: !Ref Any", 19),
        ("iam::${AWS::AccountId}:root", "iam::${AWS::AccountId}:role/admin", 19),
        ("AttributeName: expires_at", "AttributeName: !Ref Any", 24),
        ("DeletionPolicy: Retain", "DeletionPolicy: !Ref Any", 25),
        ("DeletionPolicy: Retain", "DeletionPolicy: !If [IsAny, Retain, Delete]", 25),
        ("BillingMode: PAY_PER_REQUEST", "BillingMode: !Ref Any", 26),
        ("TemplateURL: alarms.yaml", "TemplateURL: !Ref Any", 30),
        // The alarms themselves have no condition; the stack that they are in has.
        ("  Alarms:\n", "  Alarms:\n    Condition: IsAny\n", 30),
        ("LogFormat: JSON", "LogFormat: !Ref Any", 34),
        (
            "CLAIMANT_TABLE: !Ref Table",
            "CLAIMANT_TABLE: !Ref Table\n          CLAIMANT_MAX_RECEIVE_COUNT: !Ref Any",
            35,
        ),
        ("CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters", "CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Any", 37),
        ("CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters", "CLAIMANT_DEAD_LETTER_QUEUE_URL: !ImportValue Any", 18),
        ("CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters", "CLAIMANT_DEAD_LETTER_QUEUE_URL: https://x/1/letters", 18),
        ("CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters", "CLAIMANT_DEAD_LETTER_QUEUE_URL: !ImportValue Any", 19),
        ("# own-queue", "CLAIMANT_BATCH: !If [IsAny, 'maybe', !Ref AWS::NoValue]", 37),
    ];
    for (from, to, number) in table {
        let report = examine(&changed(GOOD, &[(from, to)]), &in_region("eu-west-1"));
        assert!(report.findings.is_empty(), "{to}: {:#?}", found(&report));
        assert!(report.tallies[number].unknown > 0, "{to}: check {number} does not say that it cannot know");
    }
    let unprotected =
        [GLOBAL, PERHAPS, ("PointInTimeRecoveryEnabled: true}}\n", "PointInTimeRecoveryEnabled: false}}\n")];
    let report = examine(&changed(GOOD, &unprotected), &in_region("eu-west-1"));
    let what: Vec<_> = report.findings.iter().map(|finding| (finding.check.number, &*finding.what)).collect();
    assert_eq!(what, [(25, "it has no point-in-time recovery")], "it may be in one Region");
    let one_account = [
        ("KmsMasterKeyId: !Ref Key", "KmsMasterKeyId: alias/aws/sqs"),
        ("sqs.amazonaws.com", "sqs.amazonaws.com, AWS: '210987654321'"),
    ];
    let report = examine(&changed(GOOD, &one_account), &in_region("eu-west-1"));
    assert!(report.findings.is_empty() && report.tallies[&20].unknown == 1, "it can be its own account: {report:#?}");
    for (own, expected) in [("210987654321", &[][..]), ("123456789012", &[(20, Error)])] {
        let known = Options { account: Some(own.to_owned()), ..in_region("eu-west-1") };
        let report = examine(&changed(GOOD, &one_account), &known);
        assert_eq!((found(&report), report.tallies[&20].unknown), (expected.to_vec(), 0), "{own}");
    }
    let policy = [
        ("dynamodb:PutItem, dynamodb:UpdateItem, ", ""),
        ("    DeletionPolicy: Retain\n    Properties:", POLICY_OF_TABLE),
    ];
    let report = examine(&changed(GOOD, &policy), &in_region("eu-west-1"));
    assert!(
        report.findings.is_empty() && [18, 28].map(|check| report.tallies[&check].unknown) == [1, 1],
        "the table may admit the role: {report:#?}"
    );
    for (changes, check) in [
        (&[("sqs:ChangeMessageVisibility, ", ""), ("# own-queue", "CLAIMANT_VISIBILITY: !Ref Any")][..], 18),
        (&[("dynamodb:PartiQLInsert, ", ""), ("# own-queue", "CLAIMANT_BATCH: !Ref Any")], 28),
        (
            &[
                BEFORE,
                OLD,
                ("CLAIMANT_TABLE:", "CLAIMANT_BATCH: !Ref Any\n          CLAIMANT_TABLE:"),
                ON_OLD,
                ("dynamodb:BatchGetItem, dynamodb:DeleteItem", "dynamodb:DeleteItem"),
            ],
            28,
        ),
        (&[("  Logs:\n", SECOND), ("# second", "Enabled: !Ref Any")], 16),
        (&[GLOBAL, PERHAPS], 27),
        (&[GLOBAL, ("BillingMode:", "Replicas: []\n      BillingMode:")], 25),
    ] {
        let report = examine(&changed(GOOD, changes), &in_region("eu-west-1"));
        assert!(report.findings.is_empty() && report.tallies[&check].unknown > 0, "{changes:?}: {report:#?}");
    }
    let pollers = ("ScalingConfig: {MaximumConcurrency: 10}", "ProvisionedPollerConfig: {MaximumPollers: 2}");
    let report = examine(&changed(GOOD, &[DATABASE, pollers]), &in_region("eu-west-1"));
    assert!(report.findings.is_empty() && report.tallies[&33].fine == 1, "two pollers are a limit: {report:#?}");
    let few = ("ReservedConcurrentExecutions: 20", "ReservedConcurrentExecutions: 3");
    for (pollers, fine) in [("{MinimumPollers: 2, MaximumPollers: 2}", 1), ("!Ref Any", 0)] {
        let pollers = format!("ProvisionedPollerConfig: {pollers}");
        let report = examine(
            &changed(GOOD, &[few, ("ScalingConfig: {MaximumConcurrency: 10}", &pollers)]),
            &in_region("eu-west-1"),
        );
        let tally = report.tallies[&12];
        assert_eq!((tally.fine, tally.unknown), (fine, 1 - fine), "it begins with its own pollers: {report:#?}");
    }
    let formula = ("max_connections: \"400\"", "max_connections: '{DBInstanceClassMemory/9531392}'");
    let report = examine(&changed(GOOD, &[DATABASE, formula]), &in_region("eu-west-1"));
    assert!(report.findings.is_empty() && report.tallies[&33].unknown == 1, "{report:#?}");
}

/// What is known to be wrong, and beside it what is not known.
#[test]
fn one_that_is_known_to_be_wrong_is_found_whatever_another_is() {
    const POLLING: &str =
        "[sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility, sqs:GetQueueAttributes]";
    const SOME_POLLING: &str = "[sqs:ChangeMessageVisibility, sqs:GetQueueAttributes]
                Resource: !GetAtt Orders.Arn
              - Effect: Allow
                Action: sqs:ReceiveMessage
                Resource: arn:aws:sqs:eu-west-1:123456789012:orders
              - Effect: Allow
                Action: sqs:TagQueue";
    const PUT: (&str, &str) = (
        "[dynamodb:PutItem, dynamodb:UpdateItem, dynamodb:GetItem, dynamodb:PartiQLInsert,",
        "dynamodb:PutItem
                Resource: arn:aws:dynamodb:eu-west-1:123456789012:table/locks
              - Effect: Allow
                Action: [dynamodb:UpdateItem, dynamodb:GetItem,",
    );
    const NO_LIMIT: (&str, &str) = ("ScalingConfig: {MaximumConcurrency: 10}", "");
    const SECOND: (&str, &str) = (
        "  Logs:\n",
        "  Second:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Letters.Arn, FunctionName: !Ref Worker} # second
  Logs:\n",
    );
    const LIMIT_OF_SECOND: (&str, &str) = ("} # second", ", ScalingConfig: {MaximumConcurrency: !Ref Any}}");
    let window = |size: &'static str, window: &str| {
        let size_and_window = format!("BatchSize: {size}\n            MaximumBatchingWindowInSeconds: {window}");
        ("BatchSize: 10", &*size_and_window.leak())
    };
    let reserved = |reserved: &'static str| ("ReservedConcurrentExecutions: 20", reserved);
    let unknown_queue = ("Queue: !GetAtt Orders.Arn", "Queue: !Ref Any");
    type Known<'c> = (&'c [(&'c str, &'c str)], u8, &'c str);
    let cases: &[Known<'_>] = &[
        (&[("VisibilityTimeout: 180", ""), NO_LIMIT, window("10", "!Ref Any")], 2, "AWS advises 180 s or more"),
        (&[FIFO, IS_FIFO, window("11", "!Ref Any")], 10, "a FIFO queue gives 10 at most"),
        (&[FIFO, IS_FIFO, window("!Ref Any", "5")], 10, "is not for FIFO queues"),
        (&[reserved("ReservedConcurrentExecutions: 3"), SECOND, LIMIT_OF_SECOND], 12, "3 are reserved"),
        (
            &[
                window("10000", "5"),
                ("MaximumConcurrency: 10", "MaximumConcurrency: 20"),
                ("# pollers", "ProvisionedPollerConfig: !Ref Any"),
            ],
            14,
            "are 200000 messages in flight",
        ),
        (&[unknown_queue, ("# pollers", "Enabled: false")], 16, "messages of its queue wait"),
        (&[(POLLING, SOME_POLLING)], 18, "may not sqs:DeleteMessage on Orders"),
        (
            &[unknown_queue, ("Action: sqs:SendMessage", "Action: sqs:TagQueue")],
            18,
            "is to send dead letters to Letters",
        ),
        (&[unknown_queue, LETTERS_KEY], 19, "may not kms:GenerateDataKey"),
        (
            &[
                ("AttributeDefinitions: [{AttributeName: id, AttributeType: S}]", "AttributeDefinitions: !Ref Any"),
                ("AttributeName: expires_at", "AttributeName: ttl"),
            ],
            24,
            "its time to live is on ttl",
        ),
        (&[PUT], 28, "may not dynamodb:PartiQLInsert on Table"),
        (
            &[
                DATABASE,
                ("CLAIMANT_DATABASE_CONNECTIONS: '4'", "CLAIMANT_DATABASE_CONNECTIONS: !Ref Any"),
                reserved(""),
                NO_LIMIT,
            ],
            33,
            "the number of processes has no limit",
        ),
        (
            &[("MaximumConcurrency: 10", "MaximumConcurrency: !Ref Any"), SECOND, reserved("")],
            34,
            "nothing limits its concurrency",
        ),
        (
            &[PAUSES, ("CLAIMANT_TABLE: !Ref Table", "CLAIMANT_TABLE: !Ref Any")],
            36,
            "may not lambda:UpdateEventSourceMapping",
        ),
    ];
    for (changes, number, says) in cases {
        let report = examine(&changed(GOOD, changes), &in_region("eu-west-1"));
        let mut of_check = report.findings.iter().filter(|finding| finding.check.number == *number);
        assert!(
            of_check.any(|finding| finding.what.contains(says)),
            "check {number} does not say `{says}`: {report:#?}"
        );
    }
}

/// A table that records are moved from is used as well, though not as a lock table.
#[test]
fn tables_that_records_are_moved_from_are_asked_about() {
    let tallies = |changes: &[(&str, &str)]| {
        let report = examine(&changed(GOOD, &[&[OLD, ON_OLD][..], changes].concat()), &in_region("eu-west-1"));
        let tally =
            |check| report.tallies.get(&check).map_or((0, 0, 0), |tally| (tally.fine, tally.found, tally.unknown));
        assert_eq!(report.tallies[&24].fine, 1, "{changes:?}");
        [18, 28].map(tally)
    };
    let both = ("CLAIMANT_TABLE: !Ref Table", "CLAIMANT_TABLE: !Sub '${Table},${Old}'");
    let before = |tables: &str| format!("CLAIMANT_TABLE_BEFORE: {tables}");
    for (tables, expected) in [
        ("!Ref Old", [(3, 0, 0), (2, 0, 0)]),
        // No record of it is moved.
        ("!Ref Table", [(3, 0, 0), (1, 0, 0)]),
        ("!Sub '${Old},${Table}'", [(3, 0, 0), (2, 0, 0)]),
        ("''", [(3, 0, 0), (1, 0, 0)]),
        ("!Ref Any", [(2, 0, 1), (1, 0, 0)]),
        ("!Sub '${Old},${Any}'", [(2, 0, 1), (1, 0, 0)]),
    ] {
        assert_eq!(tallies(&[(BEFORE.0, &before(tables))]), expected, "{tables}");
    }
    let lacks = ("[dynamodb:GetItem, dynamodb:BatchGetItem, dynamodb:DeleteItem] # old", "[dynamodb:GetItem]");
    assert_eq!(tallies(&[BEFORE, lacks]), [(2, 1, 0), (1, 1, 0)]);
    let off = before("!Ref Old\n          CLAIMANT_BATCH: 'off'");
    assert_eq!(tallies(&[(BEFORE.0, &off), lacks]), [(2, 1, 0), (2, 0, 0)]);
    // From one table to two: keys of the old one go to the new one.
    let grows = [OLD, ON_OLD, both, (BEFORE.0, "CLAIMANT_TABLE_BEFORE: !Ref Table")];
    let report = examine(&changed(GOOD, &grows), &in_region("eu-west-1"));
    let says = "may not dynamodb:DeleteItem on Table";
    assert!(report.findings.iter().any(|finding| finding.what.contains(says)), "{report:#?}");
}

/// (what encrypts the table; fine, found and not known for the rights on records).
#[test]
fn the_key_of_a_lock_table_is_asked_about() {
    let sealed = |with: &str| format!("SSESpecification: {{{with}}}\n      TimeToLiveSpecification:");
    for (with, expected) in [
        ("SSEEnabled: false", (2, 0, 0)),
        ("SSEEnabled: true", (2, 0, 0)),
        ("SSEEnabled: true, KMSMasterKeyId: alias/aws/dynamodb", (2, 0, 0)),
        ("SSEEnabled: true, KMSMasterKeyId: !GetAtt Key.Arn", (2, 0, 0)),
        ("SSEEnabled: true, KMSMasterKeyId: !Ref TableKey", (1, 1, 0)),
        ("SSEEnabled: !Ref Any, KMSMasterKeyId: !Ref TableKey", (1, 0, 1)),
        ("SSEEnabled: true, KMSMasterKeyId: !Ref Any", (1, 0, 1)),
        ("SSEEnabled: true, KMSMasterKeyId: 'arn:aws:kms:eu-west-1:123456789012:key/k'", (1, 0, 1)),
    ] {
        let template = changed(GOOD, &[KEY_OF_TABLE, (SEALED.0, &sealed(with))]);
        let report = examine(&template, &in_region("eu-west-1"));
        let tally = report.tallies[&18];
        assert_eq!((tally.fine, tally.found, tally.unknown), expected, "{with}: {report:#?}");
    }
    let replicas = "Replicas:
        - {Region: us-east-1, SSESpecification: {KMSMasterKeyId: 'arn:aws:kms:us-east-1:123456789012:key/k'}}
        - {Region: !Ref AWS::Region, SSESpecification: {KMSMasterKeyId: !Ref TableKey}}
      TimeToLiveSpecification:";
    let global = [
        ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"),
        KEY_OF_TABLE,
        SEALED,
        ("TimeToLiveSpecification:", replicas),
        ("Type: KMS, KMSMasterKeyId: !Ref TableKey", "Type: KMS"),
    ];
    for options in [in_region("eu-west-1"), Options::default()] {
        let report = examine(&changed(GOOD, &global), &options);
        assert!(found(&report).contains(&(18, Error)), "{options:?}: {report:#?}");
    }
}

/// As SAM does: the function's own value counts, and so does that it wants none.
#[test]
fn no_value_takes_a_global_value_away() {
    let globals = ("Architectures: [arm64]", "Architectures: [arm64]\n    Timeout: 60");
    for (own, expected) in [
        ("# dlq", 60),
        ("Timeout: !Ref AWS::NoValue", 3),
        ("Timeout: !If [IsEu, !Ref AWS::NoValue, 5]", 3),
        ("Timeout: !If [IsEu, 7, 5]", 7),
    ] {
        let is_eu = ("  IsAny:", "  IsEu: !Equals [!Ref AWS::Region, eu-west-1]\n  IsAny:");
        let template = changed(
            GOOD,
            &[globals, is_eu, ("Timeout: 30 # function", own), ("VisibilityTimeout: 180", "VisibilityTimeout: 2")],
        );
        let report = examine(&template, &in_region("eu-west-1"));
        let says = format!("less than the {expected} s");
        assert!(report.findings.iter().any(|finding| finding.what.contains(&says)), "{own}: {report:#?}");
    }
    for (own, notes) in [("# dlq", 0), ("LoggingConfig: !Ref AWS::NoValue", 1), ("Architectures: !Ref AWS::NoValue", 1)]
    {
        let template = changed(
            GOOD,
            &[
                ("      LoggingConfig: {LogGroup: !Ref Logs}\n", ""),
                ("# dlq", own),
                ("RetentionInDays: 30", "RetentionInDays: 30\n      LogGroupName: !Sub '/aws/lambda/${Worker}'"),
            ],
        );
        let report = examine(&template, &in_region("eu-west-1"));
        assert_eq!(report.tallies[&34].found, notes, "{own}: {report:#?}");
    }
    for (ignored, level) in [("'*'", Some(Note)), ("[LoggingConfig]", Some(Note)), ("[Architectures]", None)] {
        let attribute = format!("  Worker:\n    IgnoreGlobals: {ignored}\n");
        let report = examine(&changed(GOOD, &[("  Worker:\n", &attribute)]), &in_region("eu-west-1"));
        let plain = report.findings.iter().find(|finding| finding.what.contains("plain text"));
        assert_eq!(plain.map(|finding| finding.level), level, "{ignored}: {report:#?}");
    }
}

/// SAM puts them behind those that are global.
#[test]
fn lists_of_a_function_are_joined_to_global_ones() {
    for own in ["[arm64]", "[x86_64]"] {
        let report = examine(&changed(GOOD, &[("# dlq", &format!("Architectures: {own}"))]), &in_region("x"));
        let tally = report.tallies[&34];
        assert_eq!((tally.found, tally.unknown), (0, 1), "Lambda refuses two: {own}: {report:#?}");
    }
}

/// What a text with an account leads to, which stack is known or not.
#[test]
fn what_is_of_the_stacks_account_and_region_is_here() {
    let own = Options { account: Some("123456789012".to_owned()), ..in_region("eu-west-1") };
    let of_account = Options { region: None, ..own.clone() };
    for (arn, options, is_here) in [
        ("!Sub 'arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:orders'", &Options::default(), true),
        ("!Sub 'arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:orders'", &own, true),
        ("!Sub 'arn:aws:sqs:us-east-1:${AWS::AccountId}:orders'", &own, false),
        ("arn:aws:sqs:eu-west-1:123456789012:orders", &own, true),
        ("arn:aws:sqs:us-east-1:123456789012:orders", &own, false),
        ("arn:aws:sqs:eu-west-1:210987654321:orders", &own, false),
        ("arn:aws:sqs:eu-west-1:123456789012:orders", &Options::default(), false),
        // The same name is in another Region, too.
        ("arn:aws:sqs:us-east-1:123456789012:orders", &of_account, false),
        ("!Sub 'arn:aws:sqs:us-east-1:${AWS::AccountId}:orders'", &of_account, false),
        ("!Sub 'arn:aws:sqs:${AWS::Region}:123456789012:orders'", &of_account, true),
    ] {
        let named = ("      # fifo", "      QueueName: orders");
        let report =
            examine(&changed(GOOD, &[named, ("Queue: !GetAtt Orders.Arn", &format!("Queue: {arn}"))]), options);
        assert_eq!(report.tallies[&1].unknown, usize::from(!is_here), "{arn}: {report:#?}");
    }
    for (url, options, is_here) in [
        ("https://sqs.eu-west-1.amazonaws.com/123456789012/letters", &own, true),
        ("https://sqs.us-east-1.amazonaws.com/123456789012/letters", &own, false),
        ("https://sqs.eu-west-1.amazonaws.com/123456789012/letters", &of_account, false),
        ("!Sub 'https://sqs.${AWS::Region}.amazonaws.com/${AWS::AccountId}/letters'", &own, true),
        ("!Sub 'https://sqs.${AWS::Region}.amazonaws.com/123456789012/letters'", &of_account, true),
        ("!Sub 'https://sqs.${AWS::Region}.amazonaws.com/${AWS::AccountId}/letters'", &Options::default(), true),
        ("!Sub 'https://sqs.us-east-1.amazonaws.com/${AWS::AccountId}/letters'", &in_region("eu-west-1"), false),
    ] {
        let changes = [
            ("      # letters-fifo", "      QueueName: letters"),
            ("CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters", &format!("CLAIMANT_DEAD_LETTER_QUEUE_URL: {url}")),
            ("Action: sqs:SendMessage", "Action: sqs:TagQueue"),
        ];
        let report = examine(&changed(GOOD, &changes), options);
        assert_eq!(found(&report).contains(&(18, Error)), is_here, "{url}: {report:#?}");
    }
    // Roles have no Region.
    let role = [
        ("Role: !GetAtt Role.Arn", "Role: arn:aws:iam::123456789012:role/worker"),
        (
            "    Type: AWS::IAM::Role\n    Properties:",
            "    Type: AWS::IAM::Role\n    Properties:\n      RoleName: worker",
        ),
    ];
    let report = examine(&changed(GOOD, &role), &of_account);
    assert_eq!(report.tallies[&18].unknown, 0, "{report:#?}");
}

/// A function that has claimant's variables as all others have them may do without claimant, and one whose mapping is disabled reads nothing.
#[test]
fn loops_and_checks_of_what_may_be_no_consumer_are_not_known() {
    let from_globals = [
        (
            "LoggingConfig: {LogFormat: JSON}",
            "LoggingConfig: {LogFormat: JSON}\n    Environment: {Variables: {CLAIMANT_TABLE: !Ref Table, CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Orders}}",
        ),
        (
            "          CLAIMANT_TABLE: !Ref Table\n          CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters\n",
            "          LOG: info\n",
        ),
    ];
    let is_error =
        |report: &Report, check| report.findings.iter().any(|one| one.check.number == check && one.level == Error);
    let report = examine(&changed(GOOD, &from_globals), &in_region("eu-west-1"));
    assert!(!is_error(&report, 21) && report.tallies[&21].unknown == 1, "{report:#?}");
    let report = examine(&changed(GOOD, &[OWN_LETTERS, ("# pollers", "Enabled: false")]), &in_region("eu-west-1"));
    assert!(!is_error(&report, 21), "{report:#?}");
    let report = examine(&changed(GOOD, &[OWN_LETTERS]), &in_region("eu-west-1"));
    assert!(is_error(&report, 21), "{report:#?}");
}

/// A value that is given counts as its parameter's type says.
#[test]
fn parameters_are_read_by_their_types() {
    let policies = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole,arn:aws:iam::aws:policy/AmazonSQSFullAccess,arn:aws:iam::aws:policy/AmazonDynamoDBFullAccess";
    let by_list = [
        ("Any: {Type: String}", "Any: {Type: CommaDelimitedList}"),
        (
            "ManagedPolicyArns: [arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]",
            "ManagedPolicyArns: !Ref Any",
        ),
        ("sqs:DeleteMessage, ", ""),
    ];
    let by_name = [
        ("Any: {Type: String}", "Any: {Type: 'AWS::SSM::Parameter::Value<String>'}"),
        ("# own-queue", "CLAIMANT_CONCURRENCY: !Ref Any"),
    ];
    for (changes, value, check) in [(&by_list[..], policies, 18), (&by_name, "/shop/concurrency", 37)] {
        let given = Options { parameters: [("Any".to_owned(), value.to_owned())].into(), ..in_region("eu-west-1") };
        let report = examine(&changed(GOOD, changes), &given);
        assert!(report.findings.is_empty(), "{value}: {report:#?}");
        assert_eq!(report.tallies[&check].unknown, usize::from(check == 37), "{value}: {report:#?}");
    }
}

/// A nested stack has its own defaults, and lists of what it is given.
#[test]
fn what_a_nested_stack_is_given_counts_as_the_types_say() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write(
        "outer.yaml",
        "Resources:
  Other: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 360}}
  Own: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 360}}
  Inner:
    Type: AWS::CloudFormation::Stack
    Properties:
      TemplateURL: inner.yaml
      Parameters: {Seconds: !Ref AWS::NoValue, Queues: !Join [',', [!GetAtt Other.Arn, !GetAtt Own.Arn]]}
",
    );
    write(
        "inner.yaml",
        "Transform: AWS::Serverless-2016-10-31
Parameters: {Seconds: {Type: Number, Default: 360}, Queues: {Type: CommaDelimitedList}}
Resources:
  Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: !Ref Seconds}}
  Work:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 60
      Events:
        Q: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn}}
        R: {Type: SQS, Properties: {Queue: !Select [1, !Ref Queues]}}
",
    );
    let (system, _) = read(&directory.path().join("outer.yaml"), &Options::default()).unwrap();
    let report = run(&system);
    assert_eq!((report.tallies[&1].fine, report.tallies[&1].unknown), (2, 0), "{report:#?}");
}

/// A queue of one nested stack, which a function of another reads, and one of the outer template: whichever is written first.
#[test]
fn what_a_nested_stack_gives_out_is_known_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    let inner = "Outputs: {Arn: {Value: !GetAtt Q.Arn}, Known: {Value: !ImportValue Any}}\n";
    write(
        "queues.yaml",
        &format!("Resources: {{Q: {{Type: AWS::SQS::Queue, Properties: {{VisibilityTimeout: 30}}}}}}\n{inner}"),
    );
    let passed = "Resources: {N: {Type: AWS::SNS::Topic}}\nParameters: {Arn: {Type: String}}\nOutputs: {Arn: {Value: !Ref Arn}}\n";
    write("passes.yaml", passed);
    let work = |source: &str| {
        format!(
            "Type: AWS::Serverless::Function, Properties: {{Timeout: 60, Events: {{E: {{Type: SQS, Properties: {{Queue: {source}}}}}}}}}"
        )
    };
    let sam = "Transform: AWS::Serverless-2016-10-31\n";
    write(
        "work.yaml",
        &format!("{sam}Parameters: {{Arn: {{Type: String}}}}\nResources: {{F: {{{}}}}}\n", work("!Ref Arn")),
    );
    let stack = |id: &str, file: &str, arn: &str| {
        format!(
            "  {id}: {{Type: AWS::CloudFormation::Stack, Properties: {{TemplateURL: {file}, Parameters: {{Arn: {arn}}}}}}}\n"
        )
    };
    let queues = stack("Queues", "queues.yaml", "x");
    let reads = [
        stack("Work", "work.yaml", "!GetAtt Queues.Outputs.Arn"),
        format!("  F: {{{}}}\n", work("!Sub '${Queues.Outputs.Arn}'")),
        stack("Work", "work.yaml", "!GetAtt Passes.Outputs.Arn")
            + &stack("Passes", "passes.yaml", "!GetAtt [Queues, Outputs.Arn]"),
    ];
    for read_by in reads {
        for resources in [format!("{queues}{read_by}"), format!("{read_by}{queues}")] {
            write("t.yaml", &format!("{sam}Resources:\n{resources}"));
            let (system, not_looked_at) = read(&directory.path().join("t.yaml"), &Options::default()).unwrap();
            let report = run(&system);
            assert_eq!(not_looked_at, [""; 0], "{resources}");
            let place =
                report.findings.iter().find(|finding| finding.check.number == 1).map(|finding| &*finding.place.id);
            assert_eq!(place, Some("Queues>Q"), "{resources}: {report:#?}");
        }
    }
    write("t.yaml", &format!("{sam}Resources:\n{queues}  F: {{{}}}\n", work("!GetAtt Queues.Outputs.Known")));
    let (system, _) = read(&directory.path().join("t.yaml"), &Options::default()).unwrap();
    assert_eq!(run(&system).tallies[&1].unknown, 1, "another stack's export");
}

/// However the stacks stand, and where what is given out is passed on.
#[test]
fn what_a_stack_gives_out_decides_which_others_are_there() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    let stack = |id: &str, rest: &str| format!("  {id}: {{Type: AWS::CloudFormation::Stack, {rest}}}\n");
    write("inner.yaml", "Transform: AWS::Serverless-2016-10-31
Resources:
  Q: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 30}}
  F: {Type: AWS::Serverless::Function, Properties: {Timeout: 60, Events: {E: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}}}
");
    write(
        "work.yaml",
        &format!(
            "Parameters: {{Stage: {{Type: String}}}}\nConditions: {{IsProd: !Equals [!Ref Stage, prod]}}\nResources:\n{}",
            stack("Inner", "Condition: IsProd, Properties: {TemplateURL: inner.yaml}")
        ),
    );
    write("pass.yaml", "Parameters: {Stage: {Type: String}}\nResources: {}\nOutputs: {Stage: {Value: !Ref Stage}}\n");
    for (stage, expected) in [("dev", None), ("prod", Some(true)), ("!ImportValue Any", Some(false))] {
        write("cfg.yaml", &format!("Resources: {{}}\nOutputs: {{Stage: {{Value: {stage}}}}}\n"));
        write(
            "t.yaml",
            &format!(
                "Resources:\n{}{}{}",
                stack("Work", "Properties: {TemplateURL: work.yaml, Parameters: {Stage: !GetAtt Pass.Outputs.Stage}}"),
                stack("Pass", "Properties: {TemplateURL: pass.yaml, Parameters: {Stage: !Sub '${Cfg.Outputs.Stage}'}}"),
                stack("Cfg", "Properties: {TemplateURL: cfg.yaml}"),
            ),
        );
        let (system, _) = read(&directory.path().join("t.yaml"), &Options::default()).unwrap();
        assert_eq!(system.queues.first().map(|queue| queue.place.certain), expected, "{stage}");
    }
}

#[test]
fn a_finding_is_accepted_with_a_reason_and_only_so() {
    let fifo = [
        FIFO,
        ("# letters-fifo", "FifoQueue: true"),
        ("MessageRetentionPeriod: 345600", "MessageRetentionPeriod: 3600"),
    ];
    let with = |metadata: &str| {
        let template = changed(&changed(GOOD, &fifo), &[("# metadata", metadata)]);
        examine(&template, &in_region("eu-west-1"))
    };
    let report = with("Metadata: {claimant-doctor: {fifo-dead-letters: each order stands alone}}");
    assert!(report.findings.is_empty() && report.accepted[0].reason == "each order stands alone", "{report:#?}");
    for wrong in ["{fifo-dead-letters: ''}", "{no-such-check: a reason}", "fifo-dead-letters", "[fifo-dead-letters]"] {
        let report = with(&format!("Metadata: {{claimant-doctor: {wrong}}}"));
        assert_eq!(found(&report), [(9, Note)], "{wrong}");
        assert!(report.not_looked_at[0].contains("has an entry that counts for nothing"), "{report:#?}");
    }
}

#[test]
fn two_consumers_of_a_queue_are_found_unless_only_one_can_be_there() {
    let second = |condition: &str| {
        format!(
            "  Second:
    Type: AWS::Lambda::EventSourceMapping
    {condition}
    Properties: {{EventSourceArn: !GetAtt Orders.Arn, FunctionName: other, FunctionResponseTypes: [ReportBatchItemFailures]}}
"
        )
    };
    let report = examine(&format!("{GOOD}{}", second("")), &Options::default());
    assert_eq!(found(&report), [(16, Warning), (16, Warning)], "{report:#?}");
    let report = examine(&format!("{GOOD}{}", second("Condition: IsAny")), &Options::default());
    assert_eq!(found(&report), [], "{report:#?}");
}

/// One queue and one function: Lambda refuses a second mapping of both, and takes one of another version or alias.
#[test]
fn two_mappings_of_a_queue_and_a_function_are_told_apart_by_version_and_alias() {
    let published = ("Timeout: 30 # function", "Timeout: 30 # function\n      AutoPublishAlias: live");
    let aliases = "  Live: {Type: AWS::Lambda::Alias, Properties: {Name: live, FunctionName: !Ref Worker}}
  Latest: {Type: AWS::Lambda::Version, Properties: {FunctionName: !Ref Worker}}
";
    let (refused, shared) = ("the same queue and function, Orders and Worker", "also go to Worker");
    for (is_published, name, properties, expected, says) in [
        (false, "!Ref Worker", "", Error, refused),
        (false, "!GetAtt Worker.Arn", "Enabled: false", Error, refused),
        (false, "!Sub '${Worker}:live'", "", Warning, "also go to Worker by WorkerOrders: each"),
        (false, "!Ref Live", "", Warning, "also go to Worker:live by Second: each"),
        (false, "!Ref Latest", "", Warning, "also go to Worker by Second: each"),
        (true, "!Ref Worker", "", Warning, "also go to Worker:live by WorkerOrders: each"),
        (true, "!Sub '${Worker.Arn}:live'", "", Error, refused),
        (true, "!Ref Worker.Alias", "", Error, refused),
        (true, "!Ref Live", "", Error, refused),
        (true, "!Sub '${Worker}:${Any}'", "", Warning, shared),
    ] {
        let second = format!(
            "{aliases}  Second:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {{EventSourceArn: !GetAtt Orders.Arn, FunctionName: {name}, FunctionResponseTypes: [ReportBatchItemFailures], {properties}}}
"
        );
        let good = if is_published { changed(GOOD, &[published]) } else { GOOD.to_owned() };
        let report = examine(&format!("{good}{second}"), &Options::default());
        let of_both: Vec<_> = report.findings.iter().filter(|finding| finding.check.number == 16).collect();
        assert_eq!(of_both.len(), 2, "{name}: {report:#?}");
        assert!(of_both.iter().all(|finding| finding.level == expected), "{name}: {report:#?}");
        assert!(of_both.iter().any(|finding| finding.what.contains(says)), "{name}: {report:#?}");
        // Behind a topic, the function would have each message twice.
        let fix = "remove one of the two mappings, and give the other one the filters of both, or none if one has none";
        assert!(of_both.iter().all(|finding| finding.fix.starts_with(fix)), "{name}: {report:#?}");
    }
}

/// Each nested stack has a name of its own, and what is passed down has that of the stack that passes it.
#[test]
fn what_is_named_by_its_stack_is_told_from_that_of_another_stack() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    let arn = |name: &str| format!("!Sub 'arn:aws:sqs:${{AWS::Region}}:${{AWS::AccountId}}:{name}'");
    let stack = |id: &str, dead: &str| {
        format!(
            "  {id}: {{Type: AWS::CloudFormation::Stack, Properties: {{TemplateURL: inner.yaml, Parameters: {{Dead: {dead}}}}}}}\n"
        )
    };
    for own in ["${AWS::StackName}-orders", "${AWS::StackId}-orders"] {
        let orders = arn(own);
        write("inner.yaml", &format!("Parameters: {{Dead: {{Type: String}}}}
Resources:
  Letters: {{Type: AWS::SQS::Queue, Properties: {{RedriveAllowPolicy: {{redrivePermission: byQueue, sourceQueueArns: [{orders}]}}}}}}
  Orders:
    Type: AWS::SQS::Queue
    Properties: {{QueueName: !Sub '{own}', RedrivePolicy: {{deadLetterTargetArn: !GetAtt Letters.Arn, maxReceiveCount: 5}}}}
  Others:
    Type: AWS::SQS::Queue
    Properties: {{QueueName: !Sub '{own}s', RedrivePolicy: {{deadLetterTargetArn: !Ref Dead, maxReceiveCount: 5}}}}
  Work: {{Type: AWS::Lambda::Function}}
  Mapping: {{Type: AWS::Lambda::EventSourceMapping, Properties: {{EventSourceArn: {orders}, FunctionName: !Ref Work}}}}
"));
        let passed = arn(&format!("{own}s"));
        write("t.yaml", &format!("Resources:\n{}{}", stack("A", &passed), stack("B", &passed)));
        let (system, not_looked_at) = read(&directory.path().join("t.yaml"), &Options::default()).unwrap();
        assert_eq!(not_looked_at, [""; 0]);
        let report = run(&system);
        for (check, expected) in [(7, (2, 0, 2)), (8, (2, 0, 2)), (16, (2, 0, 0))] {
            let tally = report.tallies[&check];
            assert_eq!((tally.fine, tally.found, tally.unknown), expected, "{check}: {report:#?}");
        }
    }
}

/// By names alone, which CloudFormation does not follow; what comes back is no dead letter, however long it is kept.
#[test]
fn dead_letters_that_come_back_are_found() {
    let redrive = "RedrivePolicy: {deadLetterTargetArn: !GetAtt Letters.Arn, maxReceiveCount: 5}";
    let to_itself = "QueueName: orders\n      RedrivePolicy: {deadLetterTargetArn: !Sub 'arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:orders', maxReceiveCount: 5}";
    let back = format!("{redrive}\n      QueueName: orders");
    let backwards = "RedrivePolicy: {deadLetterTargetArn: !Sub 'arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:orders', maxReceiveCount: 5}";
    let letters = ("# letters-fifo", backwards);
    let expires = ("MessageRetentionPeriod: 1209600 # letters", "MessageRetentionPeriod: 60");
    for (changes, expected) in [
        (&[(redrive, to_itself)][..], vec![("Orders", Error, "Orders is its own dead-letter queue")]),
        (
            &[(redrive, &*back), letters, expires],
            vec![
                ("Orders", Warning, "dead letters of Orders go to Letters and come back"),
                ("Letters", Warning, "dead letters of Letters go to Orders and come back"),
            ],
        ),
        (
            &[(redrive, &*back), ("# letters-fifo", &*format!("FifoQueue: true\n      {backwards}"))],
            vec![
                (
                    "Orders",
                    Error,
                    "Orders is standard, its dead-letter queue Letters is FIFO; dead letters of Orders go",
                ),
                (
                    "Letters",
                    Error,
                    "Letters is FIFO, its dead-letter queue Orders is standard; dead letters of Letters go",
                ),
            ],
        ),
        // The queue of this name may not be there.
        (&[(redrive, &*back), letters, ("# metadata", "Condition: IsAny")], vec![]),
    ] {
        let report = examine(&changed(GOOD, changes), &in_region("eu-west-1"));
        let of = |number: u8| report.findings.iter().filter(move |finding| finding.check.number == number);
        let found: Vec<_> = of(7).map(|finding| (&*finding.place.id, finding.level, &*finding.what)).collect();
        assert_eq!(found.len(), expected.len(), "{report:#?}");
        for (one, wanted) in found.iter().zip(&expected) {
            assert_eq!((one.0, one.1), (wanted.0, wanted.1), "{report:#?}");
            assert!(one.2.starts_with(wanted.2), "{report:#?}");
        }
        assert!(expected.is_empty() || of(6).count() == 0, "{report:#?}");
    }
}

/// A queue's name tells it from an ARN; one that CloudFormation makes can be in each.
#[test]
fn a_queue_that_has_another_name_is_not_among_those_that_are_admitted() {
    let admits = |arn: &str| format!("sourceQueueArns: ['{arn}']");
    for (name, arn, expected) in [
        ("QueueName: orders", "arn:aws:sqs:eu-west-1:123456789012:order", (0, 1, 0)),
        ("QueueName: orders", "arn:aws:sqs:eu-west-2:123456789012:orders", (0, 0, 1)),
        ("QueueName: orders", "arn:aws:sqs:eu-west-1:123456789012:orders", (1, 0, 0)),
        ("QueueName: !Sub '${AWS::StackName}-orders'", "arn:aws:sqs:eu-west-1:123456789012:order", (0, 0, 1)),
        ("DelaySeconds: 0", "arn:aws:sqs:eu-west-1:123456789012:order", (0, 0, 1)),
    ] {
        let changes = [("# fifo", name), ("sourceQueueArns: [!GetAtt Orders.Arn]", &admits(arn))];
        let options = Options { account: Some("123456789012".to_owned()), ..in_region("eu-west-1") };
        let report = examine(&changed(GOOD, &changes), &options);
        let tally = report.tallies[&8];
        assert_eq!((tally.fine, tally.found, tally.unknown), expected, "{name} {arn}: {report:#?}");
    }
}

/// `TemplateURL` is where the template is uploaded to.
#[test]
fn a_nested_stack_of_cdk_is_read_where_it_is_synthesized() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write(
        "App.nested.template.json",
        r#"{"Parameters": {"Arn": {"Type": "String"}}, "Resources": {
            "F": {"Type": "AWS::Lambda::Function", "Properties": {"Timeout": 60}},
            "M": {"Type": "AWS::Lambda::EventSourceMapping",
                  "Properties": {"FunctionName": {"Ref": "F"}, "EventSourceArn": {"Ref": "Arn"}}}}}"#,
    );
    let examined = |property: &str, path: &str| {
        let stack = r#"{"Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 30}},
            "Nest": {"Type": "AWS::CloudFormation::Stack",
                "Properties": {"Parameters": {"Arn": {"Fn::GetAtt": ["Q", "Arn"]}}, "TemplateURL": {"Fn::Join": ["", [
                    "https://s3.", {"Ref": "AWS::Region"}, ".", {"Ref": "AWS::URLSuffix"}, "/assets/aa.json"]]}},
                "Metadata": {"aws:asset:path": "PATH", "aws:asset:property": "PROPERTY"}}}}"#;
        write("App.template.json", &changed(stack, &[("PATH", path), ("PROPERTY", property)]));
        let (system, not_looked_at) = read(&directory.path().join("App.template.json"), &Options::default()).unwrap();
        (run(&system), not_looked_at)
    };
    let (report, not_looked_at) = examined("TemplateURL", "App.nested.template.json");
    assert_eq!(not_looked_at, [""; 0]);
    assert!(found(&report).contains(&(1, Error)), "{report:#?}");
    for (property, path, says) in [
        ("TemplateURL", "Other.nested.template.json", "Nest: cannot read the template"),
        ("Code", "App.nested.template.json", "Nest: its template is not known"),
    ] {
        let (_, not_looked_at) = examined(property, path);
        assert!(not_looked_at[0].contains(says), "{not_looked_at:?}");
    }
}

/// `CloudFormation` refuses the whole template, and a stack that it is certain to be nested in fails with it.
#[test]
fn resources_of_sam_are_refused_without_its_macro() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let sam = "Transform: AWS::Serverless-2016-10-31\n";
    let bare = write("bare.yaml", &changed(GOOD, &[(sam, "")]));
    write("alarms.yaml", ALARMS);
    let says = "bare.yaml:55: Worker: CloudFormation refuses AWS::Serverless::Function in a template without \
                `Transform: AWS::Serverless-2016-10-31`: add it";
    let error = read(&bare, &in_region("eu-west-1")).unwrap_err().to_string();
    assert!(error.ends_with(says), "{error}");
    let outer = |stack: &str| {
        let head = "Parameters: {Any: {Type: String}}\nConditions: {IsAny: !Equals [!Ref Any, x]}\n";
        write("outer.yaml", &format!("{head}Resources: {{Inner: {{Type: AWS::CloudFormation::Stack, {stack}}}}}\n"))
    };
    let nested = "Properties: {TemplateURL: bare.yaml}";
    let error = read(&outer(nested), &Options::default()).unwrap_err().to_string();
    assert!(error.ends_with(says), "{error}");
    // Of one that may not be there, all is looked at.
    let path = outer(&format!("Condition: IsAny, {nested}"));
    let (system, not_looked_at) = read(&path, &Options::default()).unwrap();
    let [line] = &*not_looked_at else { panic!("{not_looked_at:#?}") };
    assert!(line.ends_with(says) && system.functions.len() == 1, "{line}");
}

/// `012` is 10 without quotes, 12 with them, and tools take quotes away.
#[test]
fn a_number_with_a_zero_in_front_is_not_known() {
    for (size, expected) in [("012", (0, 0, 1)), ("'012'", (0, 0, 1)), ("12", (0, 1, 0)), ("10", (1, 0, 0))] {
        let size = format!("BatchSize: {size}");
        let report = examine(&changed(GOOD, &[("BatchSize: 10", &size)]), &in_region("eu-west-1"));
        let tally = report.tallies[&10];
        assert_eq!((tally.fine, tally.found, tally.unknown), expected, "{size}: {report:#?}");
    }
    // A variable's value, too: a function reads the text as a decimal number, if that is what it is given.
    for (count, expected) in [("06", (0, 0, 1)), ("'06'", (0, 0, 1)), ("6", (0, 1, 0)), ("5", (1, 0, 0))] {
        let count = format!("CLAIMANT_MAX_RECEIVE_COUNT: {count}\n          CLAIMANT_TABLE:");
        let report = examine(&changed(GOOD, &[("CLAIMANT_TABLE:", &count)]), &in_region("eu-west-1"));
        let tally = report.tallies[&35];
        assert_eq!((tally.fine, tally.found, tally.unknown), expected, "{count}: {report:#?}");
    }
}

/// Only one of two mappings can be there, or the first one alone.
#[test]
fn mappings_that_are_not_certain_do_not_add_up() {
    let second = "  Second:
    Type: AWS::Lambda::EventSourceMapping
    Condition: IsAny
    Properties:
      EventSourceArn: !GetAtt Letters.Arn
      FunctionName: !Ref Worker
      FunctionResponseTypes: [ReportBatchItemFailures]
      MetricsConfig: {Metrics: [EventCount]}
      # limit
";
    let reserved = |reserved: &str| format!("ReservedConcurrentExecutions: {reserved}");
    for (limit, own, checks) in [
        ("ScalingConfig: {MaximumConcurrency: 15}", reserved("20"), &[11][..]),
        ("ScalingConfig: {MaximumConcurrency: 2}", reserved("4"), &[]),
        ("", String::new(), &[34]),
    ] {
        let template =
            changed(&format!("{GOOD}{second}"), &[("# limit", limit), ("ReservedConcurrentExecutions: 20", &own)]);
        let report = examine(&template, &Options::default());
        let found: Vec<_> = [11, 12, 34].into_iter().filter(|check| report.tallies[check].found > 0).collect();
        let unknown: Vec<_> = [11, 12, 34].into_iter().filter(|check| report.tallies[check].unknown > 0).collect();
        let expected = if checks.is_empty() { vec![11, 12] } else { Vec::new() };
        assert_eq!((found, &*unknown), (expected, checks), "{limit}: {report:#?}");
    }
}

/// All that there is, is there together or not at all.
#[test]
fn a_function_that_is_not_certain_is_judged_as_it_would_be() {
    let template = changed(
        GOOD,
        &[
            ("    Type: AWS::Serverless::Function\n", "    Type: AWS::Serverless::Function\n    Condition: IsAny\n"),
            ("ReservedConcurrentExecutions: 20", "ReservedConcurrentExecutions: 4"),
            ("ScalingConfig: {MaximumConcurrency: 10}", ""),
        ],
    );
    let report = examine(&template, &in_region("eu-west-1"));
    assert_eq!(found(&report), [(12, Warning)], "{report:#?}");
    assert_eq!([11, 34].map(|check| report.tallies[&check].unknown), [0, 0], "{report:#?}");
}

/// SAM's globals name the table for all functions, also for those without records.
#[test]
fn a_table_of_globals_alone_is_no_error() {
    /// On another table.
    const OF_ITS_OWN: &str = "'dynamodb:*'
                Resource: !GetAtt Customers.Arn
              - Effect: Allow
                Action: dynamodb:Scan";
    let actions = "[dynamodb:PutItem, dynamodb:UpdateItem, dynamodb:GetItem, dynamodb:PartiQLInsert, dynamodb:PartiQLUpdate, dynamodb:BatchGetItem]";
    for (own, allowed, expected) in [
        ("A: b", "dynamodb:Scan", &[(18, Warning)][..]),
        ("A: b", OF_ITS_OWN, &[(18, Warning)]),
        ("CLAIMANT_CONCURRENCY: '2'", "dynamodb:Scan", &[(18, Error), (28, Warning)]),
        ("A: b", "dynamodb:PutItem", &[(18, Error), (28, Warning)]),
    ] {
        let template = changed(
            GOOD,
            &[
                ("CLAIMANT_TABLE: !Ref Table", own),
                ("CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Letters", ""),
                (
                    "Globals:\n  Function:\n",
                    "Globals:\n  Function:\n    Environment: {Variables: {CLAIMANT_TABLE: !Ref Table}}\n",
                ),
                (actions, allowed),
            ],
        );
        let customers = "  Customers: {Type: AWS::DynamoDB::Table, Properties: {}}\n";
        let report = examine(&format!("{template}{customers}"), &in_region("eu-west-1"));
        assert_eq!(found(&report), expected, "{own} {allowed}");
        // A key of the table's own is no more an error than the table is.
        let sealed = changed(&template, &[SEALED, KEY_OF_TABLE]);
        let report = examine(&format!("{sealed}{customers}"), &in_region("eu-west-1"));
        assert_eq!(found(&report), expected, "{own} {allowed}, with a key");
        // Nor does claimant run for certain in a function that may do nothing with it.
        let silent = changed(&template, &[NO_REPORTS]);
        let report = examine(&format!("{silent}{customers}"), &in_region("eu-west-1"));
        assert!(found(&report).contains(&(3, expected[0].1)), "{own} {allowed}: {report:#?}");
    }
}

/// Neither of one that reads no queue, nor of one in another language: claimant, whose rights these are, may not run there.
#[test]
fn a_function_beside_consumers_is_none() {
    let reads_a_queue = "{Type: SQS, Properties: {Queue: !GetAtt Letters.Arn}}";
    // Of records in another store, the rights on a table say nothing.
    let elsewhere = "CLAIMANT_TABLE: !Ref Table, CLAIMANT_REDIS_URL: !Ref Any";
    for (of_all, event, expected) in [
        ("CLAIMANT_TABLE: !Ref Table", "{Type: HttpApi}", &[][..]),
        ("CLAIMANT_TABLE: !Ref Table", reads_a_queue, &[(18, Warning), (34, Note)]),
        (elsewhere, reads_a_queue, &[(18, Warning), (34, Note)]),
    ] {
        let section = "Globals:\n  Function:\n";
        let globals = format!("{section}    Environment: {{Variables: {{{of_all}}}}}\n");
        let beside = format!(
            "{GOOD}  Beside:
    Type: AWS::Serverless::Function
    Properties: {{LoggingConfig: {{LogGroup: !Ref Logs}}, Events: {{In: {event}}}}}
"
        );
        let report = examine(&changed(&beside, &[(section, &globals)]), &in_region("eu-west-1"));
        let all = report.findings.iter().filter(|finding| &*finding.place.id == "Beside");
        let all: Vec<_> = all.map(|finding| (finding.check.number, finding.level)).collect();
        assert_eq!(all, expected, "{event}: {report:#?}");
        let is_judged = report.findings.iter().any(|finding| finding.what.contains("backoff"));
        assert_eq!(is_judged, of_all == elsewhere, "{report:#?}");
    }
}

/// However many queues it reads.
#[test]
fn the_rights_on_records_are_asked_for_once_for_each_function() {
    let second = "  Second:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Orders.Arn, FunctionName: !Ref Worker}
";
    let report = examine(&changed(&format!("{GOOD}{second}"), &[("dynamodb:UpdateItem, ", "")]), &Options::default());
    let all = report.findings.iter().filter(|finding| finding.what.contains("UpdateItem"));
    assert_eq!(all.count(), 1, "{report:#?}");
}

/// A second table, and a function whose records are in both.
#[test]
fn each_of_several_lock_tables_is_checked() {
    let second = "  Table2:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: Retain
    UpdateReplacePolicy: Retain
    Properties:
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}
  Database:
";
    for tables in ["!Sub '${Table},${Table2}'", "!Join [',', [!Ref Table, !Ref Table2]]"] {
        let tables = format!("CLAIMANT_TABLE: {tables}");
        let report = examine(
            &changed(GOOD, &[("  Database:\n", second), ("CLAIMANT_TABLE: !Ref Table", &tables)]),
            &Options::default(),
        );
        let mut found = found(&report);
        found.sort_unstable_by_key(|(check, _)| *check);
        assert_eq!(found, [(18, Error), (24, Warning), (26, Warning), (28, Warning)], "{report:#?}");
        let of = |check| report.findings.iter().find(|finding| finding.check.number == check).unwrap();
        assert!(of(24).what.contains("time to live") && of(28).what.contains("BatchGetItem on Table2"), "{report:#?}");
        assert_eq!(report.tallies[&24].fine, 1, "the first one's");
    }
}

#[test]
fn unreadable_templates_are_errors_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.yaml");
    let error = |text: &str| {
        fs::write(&path, text).unwrap();
        read(&path, &Options::default()).unwrap_err().to_string()
    };
    assert!(error("a: [").contains("t.yaml:"), "the line");
    let other = error("provider: aws");
    assert!(other.contains("no `Resources`") && other.contains("cdk.out/STACK.template.json"), "{other}");
    let given = read(directory.path(), &Options::default()).unwrap_err().to_string();
    assert!(given.contains("cdk.out/STACK.template.json"), "{given}");
    fs::write(&path, b"# M\xfcnchen").unwrap();
    assert!(read(&path, &Options::default()).unwrap_err().to_string().contains("save it as UTF-8"));
    assert!(
        read(Path::new("/none/there"), &Options::default()).unwrap_err().to_string().contains("check that it exists")
    );
    let unknown = Options { parameters: [("No".to_owned(), "x".to_owned())].into(), ..Options::default() };
    fs::write(&path, GOOD).unwrap();
    assert!(read(&path, &unknown).unwrap_err().to_string().contains("has no parameter No"));
    let (other, known) = (
        directory.path().join("u.yaml"),
        Options { parameters: [("Any".to_owned(), "x".to_owned())].into(), ..unknown.clone() },
    );
    fs::write(&other, ALARMS).unwrap();
    let both = [path, other];
    assert_eq!(read_all(&both, &known).unwrap().len(), 2, "one of them has it");
    assert!(read_all(&both, &unknown).unwrap_err().to_string().contains("u.yaml have no parameter No"));
}

/// As CloudFormation and the local cloud refuse them: there is no stack that such a value makes.
#[test]
fn values_that_a_template_forbids_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.yaml");
    let stage = "Type: String, Default: dev, AllowedValues: [dev, prod]";
    let ssm = "Type: 'AWS::SSM::Parameter::Value<String>', Default: /stage, AllowedValues: [dev]";
    // (definition, value, what is said; nothing where it is taken)
    let table = [
        (stage, None, ""),
        (stage, Some("prod"), ""),
        (stage, Some("s3cret"), "t.yaml:4: parameter P: the value given is not one of AllowedValues: dev, prod"),
        ("Type: Number, MinValue: 2", Some("abc"), "is not a number: give another one with --parameter P=…"),
        ("Type: String, Default: test, AllowedValues: [dev]", None, "its default is not one of AllowedValues: dev"),
        ("Type: String, Default: test, AllowedValues: [dev]", Some("dev"), ""),
        ("Type: String, Default: '{{resolve:ssm:stage}}', AllowedValues: [dev]", None, ""),
        (ssm, None, ""),
    ];
    for (definition, value, expected) in table {
        let defined = format!("Any: {{Type: String}}\n  P: {{{definition}}}");
        fs::write(&path, changed(GOOD, &[("Any: {Type: String}", &defined)])).unwrap();
        let parameters = value.map(|value| ("P".to_owned(), value.to_owned())).into_iter().collect();
        let read = read(&path, &Options { parameters, ..Options::default() });
        let said = read.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(said.is_empty(), expected.is_empty(), "{definition}, {value:?}: {said}");
        assert!(said.contains(expected) && !said.contains("s3cret"), "{definition}, {value:?}: {said}");
    }
}

#[test]
fn values_that_a_nested_template_forbids_are_refused_where_it_is_certain_to_be_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.yaml");
    let inner = "Parameters: {P: {Type: String, Default: none, AllowedValues: [dev, prod]}}\nResources: {}\n";
    fs::write(directory.path().join("n.yaml"), inner).unwrap();
    fs::write(directory.path().join("o.yaml"), "Resources: {}\nOutputs: {P: {Value: s3cret}}\n").unwrap();
    let forbidden = "n.yaml:1: parameter P: the value given is not one of AllowedValues: dev, prod: give another one under Parameters of N";
    // (what N is given, beside what, what is said; nothing where it is taken)
    let table = [
        ("{P: dev}", "", ""),
        ("{P: s3cret}", "", forbidden),
        ("{P: !GetAtt O.Outputs.P}", "", forbidden),
        ("{P: !Ref Any}", "", ""),
        ("{P: !GetAtt Q.QueueName}", "", ""),
        ("{P: s3cret}", "Condition: IsAny, ", ""),
        ("{P: !Ref AWS::NoValue}", "", "P: its default is not one of AllowedValues"),
        ("{}", "", "P: its default is not one of AllowedValues"),
    ];
    for (given, beside, expected) in table {
        let stack = |id: &str, file: &str, rest: &str| {
            format!("  {id}: {{Type: AWS::CloudFormation::Stack, {beside}Properties: {{TemplateURL: {file}{rest}}}}}\n")
        };
        let stacks = stack("N", "n.yaml", &format!(", Parameters: {given}")) + &stack("O", "o.yaml", "");
        fs::write(
            &path,
            format!("Parameters: {{Any: {{Type: String}}}}\nConditions: {{IsAny: !Equals [!Ref Any, x]}}\nResources:\n  Q: {{Type: AWS::SQS::Queue}}\n{stacks}"),
        )
        .unwrap();
        let said = read(&path, &Options::default()).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(said.is_empty(), expected.is_empty(), "{given}: {said}");
        assert!(said.contains(expected) && !said.contains("s3cret"), "{given}: {said}");
    }
}

#[test]
fn a_pattern_that_is_compared_with_nothing_is_said() {
    let looked = |parameter: &str| {
        let report = examine(&changed(GOOD, &[("Any: {Type: String}", parameter)]), &Options::default());
        report.not_looked_at.into_iter().find(|line| line.contains("matches its AllowedPattern"))
    };
    let line = looked("Any: {Type: String, Default: y, AllowedPattern: '(?=y)y'}");
    assert!(line.is_some_and(|line| {
        line.ends_with("t.yaml:3: whether Any matches its AllowedPattern, which only AWS can read")
    }));
    assert_eq!(looked("Any: {Type: String, Default: y, AllowedPattern: 'y'}"), None);
    assert_eq!(looked("Any: {Type: String, AllowedPattern: '(?=y)y'}"), None, "it has no value");
}

/// The local cloud reads the same file.
#[test]
fn values_come_to_what_cloudformation_makes_of_them() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/templates/values.yaml");
    let template = claimant_template::parse(&fs::read_to_string(&path).unwrap()).unwrap();
    let (system, _) = read(&path, &Options::default()).unwrap();
    let of_all = template.get("Metadata").unwrap().entries();
    assert_eq!(of_all.len(), system.functions.len());
    for (function, expected) in of_all {
        let expected =
            expected.entries().iter().map(|(name, value)| (name.to_string(), value.as_text().unwrap().to_owned()));
        let found = system.functions.iter().find(|found| *found.place.id == **function).unwrap();
        let known = |value: &Fact<Link>| value.known().map_or("not known", Link::text).to_owned();
        let found = found.environment.variables.iter().map(|(name, value)| (name.clone(), known(value)));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), expected.collect(), "{function}");
    }
}

/// References in a circle, and texts that double with each step, come to an end.
#[test]
fn circles_and_floods_are_unknown() {
    let mut mappings = String::from("Mappings:\n  M:\n    a:\n      v0: xxxxxxxxxxxxxxxx\n");
    for step in 1..40 {
        let before = format!("!FindInMap [M, a, v{}]", step - 1);
        mappings.push_str(&format!("      v{step}: !Join ['', [{before}, {before}]]\n"));
    }
    let template = format!(
        "{mappings}Conditions: {{C: !Condition C}}
Resources:
  Q: {{Type: AWS::SQS::Queue, Condition: C, Properties: {{VisibilityTimeout: !FindInMap [M, a, v39]}}}}
"
    );
    let report = examine(&template, &Options::default());
    assert_eq!(found(&report), []);
}
