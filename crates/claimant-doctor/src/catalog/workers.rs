//! The next checks: concurrency, mappings and rights.

use super::check::Check;

const CONFIGURE: &str = "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html";
const SCALING: &str = "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html";
const KEYS: &str = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html";
const HIGH_THROUGHPUT: &str =
    "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/high-throughput-fifo.html";

pub(super) const CHECKS: &[Check] = &[
    Check {
        number: 11,
        name: "concurrency-limits",
        title: "MaximumConcurrency is 2 to 1,000, and all of a function's together, with 10 for each of MaximumPollers, fit into its reserved \
                concurrency",
        why: "Lambda refuses other values. What does not fit is throttled, which uses up receives.",
        fine: "Where the mappings are never busy at the same time.",
        source: SCALING,
    },
    Check {
        number: 12,
        name: "reserved-below-five",
        title: "Reserved concurrency is 5 or more, or none is reserved",
        why: "Lambda begins with five pollers. With less concurrency, batches are throttled even at low load, and their \
              messages end in the dead-letter queue. With 0, the function does not run.",
        fine: "Where MaximumConcurrency, or MinimumPollers of provisioned pollers, is not above it (neither is reported); 0 for as long as the function is to stand still.",
        source: CONFIGURE,
    },
    Check {
        number: 13,
        name: "pollers-and-maximum",
        title: "A mapping has provisioned pollers or MaximumConcurrency, not both",
        why: "Lambda refuses the mapping.",
        fine: "Never.",
        source: SCALING,
    },
    Check {
        number: 14,
        name: "in-flight-limit",
        title: "Fewer than 120,000 messages of a queue are in flight",
        why: "At the limit SQS gives out no more messages, or answers OverLimit, and the consumers stand still. Messages that \
              wait for their next try count as in flight.",
        fine: "Where the batches are never full.",
        source: "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html",
    },
    Check {
        number: 15,
        name: "filter-deletes",
        title: "Everybody who sends to the queue knows that its mapping filters, and by what Lambda can filter",
        why: "Lambda deletes what no filter matches, without an invocation, a dead letter or a log line. It refuses a pattern that is none, \
              and filters the messages of a queue by nothing but their body. Whether it takes operators that only EventBridge has is not \
              documented.",
        fine: "Where those messages are of no interest to any consumer; never for a pattern that is wrong.",
        source: "https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html",
    },
    Check {
        number: 16,
        name: "other-consumer",
        title: "The queue has one mapping, and it is enabled",
        why: "Each message goes to one of the consumers, by chance; with filters, it is deleted where it goes to the wrong \
              one. Of one queue and one function, Lambda refuses a second mapping. A mapping that is disabled lets messages grow \
              old.",
        fine: "Where the consumers do the same work, as in a change of versions; disabled for as long as it is to pause.",
        source: "https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html",
    },
    Check {
        number: 17,
        name: "another-region",
        title: "The queue is in the function's Region",
        why: "Lambda refuses the mapping.",
        fine: "Never.",
        source: CONFIGURE,
    },
    Check {
        number: 18,
        name: "missing-rights",
        title: "Lambda may assume the function's role, and that may do what the queue, the lock table and the log need",
        why: "Lambda receives and deletes with the function's role: it refuses the mapping, or stops to poll. Without \
              ChangeMessageVisibility, claimant's backoff has no effect; without SendMessage, its dead letters stay. Without \
              UpdateItem on the lock table, handlers run and nothing is completed; without GetItem, a write whose answer is \
              lost is not looked up; without kms:Decrypt on a key of your own that the table is encrypted with, nothing is \
              claimed. Tables of CLAIMANT_TABLE_BEFORE need GetItem and DeleteItem: without them records are not moved, and \
              their keys not claimed. Without ListEventSourceMappings, CLAIMANT_MAPPING_CHECK finds out nothing, and as refuse fails each \
              batch as a whole in which a message fails; without PutLogEvents, there is no log.",
        fine: "Where the policy of the queue, the table or the key admits the role, or where a function without records has CLAIMANT_TABLE \
               from Globals, or an extension sends its log elsewhere.",
        source: "https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AWSLambdaSQSQueueExecutionRole.html",
    },
    Check {
        number: 19,
        name: "key-rights",
        title: "The function's role may use the keys of the queues that it receives from and sends to",
        why: "Lambda cannot read the queue's messages (kms:Decrypt), or copies to the dead-letter queue fail \
              (kms:GenerateDataKey and kms:Decrypt).",
        fine: "Where the key's policy admits the role.",
        source: CONFIGURE,
    },
    Check {
        number: 20,
        name: "default-key-across-accounts",
        title: "A queue that another account receives from has a key of its own",
        why: "The policy of alias/aws/sqs cannot be changed, so no other account can decrypt the messages.",
        fine: "Never.",
        source: KEYS,
    },
    Check {
        number: 21,
        name: "feeds-itself",
        title: "The function does not send to the queue that it reads",
        why: "Lambda stops what went round about 16 times, and puts the message into the dead-letter queue, if there is one. Dead letters that claimant copies to a queue \
              that the function reads are worked on again; from that queue it copies none.",
        fine: "Where a message goes round a few times only, or RecursiveLoop is Allow (not reported); never for CLAIMANT_DEAD_LETTER_QUEUE_URL.",
        source: "https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html",
    },
    Check {
        number: 22,
        name: "fifo-half-throughput",
        title: "High throughput of a FIFO queue has both settings: by message group",
        why: "FifoThroughputLimit perMessageGroupId is refused without DeduplicationScope messageGroup; and that alone \
              changes what is a duplicate, and gives no throughput.",
        fine: "Where duplicates are by group on purpose.",
        source: HIGH_THROUGHPUT,
    },
    Check {
        number: 23,
        name: "few-groups",
        title: "A FIFO queue has at least as many groups as its mapping may run at once",
        why: "Lambda works on one batch of a group at a time: with few groups, a backlog grows while concurrency is free.",
        fine: "Where the order needs so few groups, and the age of the oldest message stays low.",
        source: SCALING,
    },
];
