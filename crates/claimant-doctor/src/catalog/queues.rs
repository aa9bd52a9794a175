//! The first checks: queues, their dead letters and their batches.

use super::check::Check;

const CONFIGURE: &str = "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html";
const DEAD_LETTERS: &str =
    "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html";

pub(super) const CHECKS: &[Check] = &[
    Check {
        number: 1,
        name: "visibility-below-timeout",
        title: "The queue's visibility timeout is at least the function's timeout",
        why: "Lambda refuses the mapping; and where the timeout is changed later, messages are given to a second worker while \
              the first still works on them.",
        fine: "Never.",
        source: CONFIGURE,
    },
    Check {
        number: 2,
        name: "visibility-six-times",
        title: "The visibility timeout is six times the function's timeout, and the batching window",
        why: "Lambda keeps trying a batch that is throttled. Messages that become visible meanwhile use up receives and end in \
              the dead-letter queue although nothing is wrong with them.",
        fine: "Where MaximumConcurrency or provisioned pollers keep the function from being throttled; those mappings are not \
               reported, unless fewer are reserved for the function than they may run at once.",
        source: CONFIGURE,
    },
    Check {
        number: 3,
        name: "no-partial-batch-response",
        title: "The mapping has ReportBatchItemFailures",
        why: "Without it, Lambda ignores which messages of a batch failed: a function that returns them has all deleted, and one \
              that throws has all received again, those that succeeded, too.",
        fine: "Where the function throws for one failure, and BatchSize is 1 (not reported) or all its work may run twice; never \
               for consumers of claimant.",
        source: "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html",
    },
    Check {
        number: 4,
        name: "few-receives",
        title: "maxReceiveCount is 5 or more, and 1,000 at most",
        why: "Throttling, a process that dies and an outage of a minute each use up receives of good messages, which then end in \
              the dead-letter queue. SQS takes 1 to 1,000.",
        fine: "Where a second try can never help, or costs more than a message that a person has to redrive; never where SQS refuses it.",
        source: CONFIGURE,
    },
    Check {
        number: 5,
        name: "no-dead-letter-queue",
        title: "The queue has a dead-letter queue",
        why: "A message that always fails comes back until its retention is over, and then is gone. A FIFO group stands still as \
              long. The function's own DeadLetterConfig is for asynchronous invocations and never gets a queue's message.",
        fine: "Where messages lose their worth before their retention ends, and no order is kept.",
        source: CONFIGURE,
    },
    Check {
        number: 6,
        name: "dead-letters-expire-first",
        title: "Dead letters are kept longer than messages of their queue",
        why: "A standard queue counts a message's age from its first sending, in the dead-letter queue, too. One that waited for \
              long is deleted there before a person has seen it. In a FIFO one, and for what claimant itself copies there, a new age \
              begins.",
        fine: "Where the alarm on the dead-letter queue is answered within the time that is left.",
        source: DEAD_LETTERS,
    },
    Check {
        number: 7,
        name: "dead-letter-queue-elsewhere",
        title: "The dead-letter queue is another queue of its queue's type, account and Region, and sends nothing back",
        why: "SQS refuses the redrive policy, or has no queue where dead letters stay: what always fails is received again and again \
              until it expires.",
        fine: "Never.",
        source: DEAD_LETTERS,
    },
    Check {
        number: 8,
        name: "redrive-denied",
        title: "The dead-letter queue's RedriveAllowPolicy admits the queue",
        why: "SQS refuses the redrive policy, or leaves messages in the queue that should have been moved.",
        fine: "Never.",
        source: DEAD_LETTERS,
    },
    Check {
        number: 9,
        name: "fifo-dead-letters",
        title: "A FIFO queue whose order matters does without a dead-letter queue, or knows that it breaks the order",
        why: "When a message is moved away, those behind it in its group go on without it.",
        fine: "Where the messages of a group do not depend on each other, or the handler notices that one is missing.",
        source: DEAD_LETTERS,
    },
    Check {
        number: 10,
        name: "batch-window",
        title: "Batches over 10 have a window of a second or more; those of FIFO queues have 10 at most, and no window",
        why: "Lambda refuses the mapping.",
        fine: "Never.",
        source: CONFIGURE,
    },
];
