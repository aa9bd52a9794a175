//! The other checks: the lock table, alarms, metrics, what a consumer costs, its variables, and what came later.

use super::check::Check;

const PARTIQL: &str = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-iam.html";

pub(super) const CHECKS: &[Check] = &[
    Check {
        number: 24,
        name: "lock-table-shape",
        title: "The lock table has the string id as its only key, and time to live on expires_at",
        why: "With another key every claim fails, and no message is handled. Without time to live the table grows for ever.",
        fine: "Never for the key; no time to live where old records are deleted by something else.",
        source: "docs/deploying.md",
    },
    Check {
        number: 25,
        name: "lock-table-protection",
        title: "The lock table has point-in-time recovery, and outlives its stack and its updates",
        why: "It says what was done. When it is gone, every redelivered message has its effect once more.",
        fine: "Where all effects can run twice, or have a guard of their own.",
        source: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Point-in-time-recovery.html",
    },
    Check {
        number: 26,
        name: "lock-table-capacity",
        title: "The lock table is on demand or scales, and is warm for the peak",
        why: "Each fresh message takes two write units. Claims that are throttled are tried again, and in the end their \
              messages come back.",
        fine: "Where the provisioned capacity, or the maximum, is above the greatest peak.",
        source: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html",
    },
    Check {
        number: 27,
        name: "lock-table-replicas",
        title: "The lock table is no global table with eventual consistency",
        why: "Two Regions can claim the same key before they know of each other, and the last writer wins: work runs twice.",
        fine: "Where consumers run in one Region only, and the others are for its loss.",
        source: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html",
    },
    Check {
        number: 28,
        name: "batch-rights",
        title: "The role may use PutItem, PartiQL and BatchGetItem on the lock table",
        why: "Without the last two each claim and each completion is a request of its own: 25 times as many. Without PutItem, \
              the claim of a new key that has a request of its own takes more processor time.",
        fine: "With CLAIMANT_BATCH=off, which asks for PutItem alone, or where messages come one by one.",
        source: PARTIQL,
    },
    Check {
        number: 29,
        name: "throttled-keys",
        title: "A lock table that was throttled has Contributor Insights",
        why: "A partition takes 1,000 write units a second, whatever the table takes. Only Contributor Insights say which \
              keys are throttled.",
        fine: "Where the table as a whole was throttled.",
        source: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/contributorinsights_HowItWorks.html",
    },
    Check {
        number: 30,
        name: "missing-alarms",
        title: "There are alarms on dead letters and on the age of the oldest message",
        why: "A queue that stands still and a dead letter look like silence: only an alarm tells of them.",
        fine: "Where another stack or another system has them.",
        source: "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html",
    },
    Check {
        number: 31,
        name: "mapping-metrics",
        title: "The mapping's metrics are on, and all of a function's delete as many events as it reports as done",
        why: "DeletedEventCount is Lambda's own count. More than the function reported means that messages were deleted \
              which nobody handled.",
        fine: "Off where the price of the metrics matters more; a few more in flight at the ends of the day.",
        source: "https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html",
    },
    Check {
        number: 32,
        name: "short-window",
        title: "The consumer's window is longer than a message can live in its queue and its dead-letter queue",
        why: "After the window a record is forgotten: a message that is redriven later runs again. A FIFO queue's dead letters \
              begin a new age.",
        fine: "Where the consumer sets .window so long, or its effect has a guard of its own.",
        source: "docs/guarantees.md",
    },
    Check {
        number: 33,
        name: "too-many-connections",
        title: "Connections of all processes fit into the database",
        why: "Each process opens its own. Beyond max_connections the database refuses them, also those of other programs.",
        fine: "Behind a pooler such as RDS Proxy, or where each function has a database server of its own.",
        source: "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/CHAP_Limits.html",
    },
    Check {
        number: 34,
        name: "defaults-that-cost",
        title: "Logs are JSON and expire, the function runs on arm64, and its concurrency has a limit",
        why: "Logs that never expire and x86_64 cost more every month. Without a limit a backlog starts as many executions as \
              the account allows, and they meet whatever the function calls.",
        fine: "Where a log group is made elsewhere, a library exists for x86_64 only, or what is called has no limit.",
        source: "https://docs.aws.amazon.com/lambda/latest/dg/best-practices.html",
    },
    Check {
        number: 35,
        name: "receives-unknown",
        title: "CLAIMANT_MAX_RECEIVE_COUNT is the queue's maxReceiveCount",
        why: "A consumer cannot read it from its queue. By it, claimant knows a message's last receives: it works on those first, \
              and keeps a message that ends its process away from others.",
        fine: "Where the variable is set elsewhere, such as in the function's code.",
        source: "docs/settings.md",
    },
    Check {
        number: 36,
        name: "breaker-record",
        title: "The role of a function that pauses its intake may do so and use the record of its breaker, and a schedule may end the pause",
        why: "An open breaker is a record of the reserved consumer claimant-breaker, by which all processes know it. Where \
              dynamodb:LeadingKeys name the consumer's own keys alone, each process has a breaker of its own, and nothing is \
              paused. Where the role of CLAIMANT_RESUME_ROLE_ARN may not switch the mapping on again, it stays off until a \
              person does.",
        fine: "Where the consumer has no breaker.",
        source: "docs/breaker.md",
    },
    Check {
        number: 37,
        name: "unusable-settings",
        title: "claimant knows each CLAIMANT_ variable of the function, takes its value, and has time left by it",
        why: "A function reads them when it starts, and ends with an error where a name is misspelt or a value out of bounds. \
              With a CLAIMANT_MARGIN_MS as long as the timeout it has no time to work. Either way nothing is handled, and every \
              message uses up its receives.",
        fine: "Where the function is built with another version or other features of claimant, which take them.",
        source: "docs/settings.md",
    },
    Check {
        number: 38,
        name: "messages-expire-first",
        title: "A message is kept until its receives are used up",
        why: "Its age counts from its first sending, and a receive begins no new one. What expires before it was received \
              maxReceiveCount times never comes to the dead-letter queue: it is gone, and nothing tells of it.",
        fine: "Where messages lose their worth before that time.",
        source: "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html",
    },
    Check {
        number: 39,
        name: "queue-without-arn",
        title: "Mappings and redrive policies name queues by their ARNs",
        why: "A Ref of a queue is its URL. Lambda refuses the mapping, and SQS the redrive policy.",
        fine: "Never.",
        source: "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html",
    },
    Check {
        number: 40,
        name: "schedule-rights",
        title: "The role of a function that sends again by schedules may make them, and the role they act for may send",
        why: "Without a schedule, what is to wait longer than 12 hours comes back after 11 h 45 min. What the other role lacks shows \
              only when messages are due, after their originals were deleted: one that neither queue takes is lost.",
        fine: "Where the policy of the queue or the key admits the role.",
        source: "docs/outcomes.md",
    },
    Check {
        number: 41,
        name: "not-there",
        title: "Each table, queue and dead-letter queue that a function, a mapping or a RedrivePolicy names is there, and so is what a stack has",
        why: "Without its lock table no message is handled, without its queue none comes, and without its dead-letter queue what always \
              fails is kept nowhere. An empty lock table in place of one that is gone lets done work run again. What is deleted by other \
              means than its stack, CloudFormation takes for there, and does not make again.",
        fine: "Where what names it is not in use any more.",
        source: "docs/operating.md",
    },
];
