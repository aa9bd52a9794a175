//! What the sentences say, of each way that a message can go.

use super::*;

mod ends;

/// A day on which the clock reads `12:00:SS`.
const NOON_MS: u64 = 20_000 * 86_400_000 + 12 * 3_600_000;

const STAYS: &str = "It stays there until it is sent back or discarded.";

/// A time, in milliseconds after noon.
fn ms(ms: u64) -> Timestamp {
    Timestamp::from_millis(NOON_MS + ms)
}

fn s(seconds: u64) -> Timestamp {
    ms(seconds * 1_000)
}

/// The facts of a story, each message of which is called by one letter.
#[derive(Default)]
struct Story(Vec<Fact>);

impl Story {
    fn add(self, seconds: u64, message: &str, what: What) -> Self {
        self.add_in(None, seconds, message, what)
    }

    /// Adds what happened in an invocation.
    fn add_in(mut self, invocation: Option<&str>, seconds: u64, message: &str, what: What) -> Self {
        let process = Some(Process { function: "order-confirmation".into(), id: Some("41".into()) });
        let invocation = invocation.map(str::to_owned);
        self.0.push(Fact { at: s(seconds), message: message.into(), process, invocation, what });
        self
    }

    fn sent(self, at: u64, message: &str) -> Self {
        self.add(at, message, What::Sent { queue: "OrderQueue".into(), group: None, delayed_until: None, origin: None })
    }

    /// Received for the n-th time, hidden for 30 s, in a batch of its own.
    fn received(self, at: u64, message: &str, count: u32) -> Self {
        self.add(at, message, What::Received { queue: "OrderQueue".into(), count, hidden_until: s(at + 30) }).add(
            at,
            message,
            What::Delivered { batch: 1 },
        )
    }

    /// Received as above, and handed to an invocation.
    fn received_in(self, invocation: &str, at: u64, message: &str, count: u32) -> Self {
        let received = What::Received { queue: "OrderQueue".into(), count, hidden_until: s(at + 30) };
        self.add(at, message, received).add_in(Some(invocation), at, message, What::Delivered { batch: 1 })
    }

    /// The event source mapping applies the answer of an invocation.
    fn answered_in(self, invocation: &str, at: u64, message: &str, answer: Answer) -> Self {
        self.add_in(Some(invocation), at, message, What::Answered(answer))
    }

    /// The function's timeout ends an invocation.
    fn timed_out_in(self, invocation: &str, at: u64, message: &str) -> Self {
        self.add_in(Some(invocation), at, message, What::BatchFailed(BatchEnd::TimedOut))
    }

    /// Claimed until the given second.
    fn claimed(self, at: u64, message: &str, fence: u64, until: u64) -> Self {
        self.add(at, message, What::Claimed(claim(fence, until, false)))
    }

    fn took_over(self, at: u64, message: &str, fence: u64, until: u64) -> Self {
        self.add(at, message, What::Claimed(claim(fence, until, true)))
    }

    fn finished(self, at: u64, message: &str, outcome: &str) -> Self {
        self.add(at, message, What::Finished(finished(outcome)))
    }

    fn because(self, at: u64, message: &str, reason: &str) -> Self {
        let line = Line { level: Some("WARN".into()), text: "handler failed".into(), reason: Some(reason.into()) };
        self.add(at, message, What::Line(line))
    }

    fn hidden(self, at: u64, message: &str, until: u64) -> Self {
        self.add(at, message, What::Hidden { until: s(until) })
    }

    fn died(self, at: u64, message: &str) -> Self {
        self.add(at, message, What::BatchFailed(BatchEnd::Died("signal: 9 (SIGKILL)".into())))
    }

    fn deleted(self, at: u64, message: &str) -> Self {
        self.add(at, message, What::Deleted)
    }

    /// The whole of a message that is done at once.
    fn done(self, at: u64, message: &str) -> Self {
        self.sent(at, message)
            .received(at, message, 1)
            .claimed(at, message, 1, at + 28)
            .finished(at, message, "completed")
            .deleted(at, message)
    }

    /// A dead letter that the function sent: rejected, with a confirmed copy.
    fn lettered(self, at: u64, message: &str, outcome: &str) -> Self {
        let finished = Finished { dead_lettered: true, ..finished(outcome) };
        self.add(at, message, What::Copied { to: "OrderDeadLetters".into(), copy: "copy".into() })
            .add(at, message, What::Finished(finished))
            .deleted(at, message)
    }

    fn told(self, message: &str, now: u64) -> Timeline {
        tell(self.0, message, s(now)).expect("the message is in the story")
    }
}

/// Sent by a function, to the dead-letter queue.
fn copy_of(message: &str) -> What {
    let origin = Some(Origin::DeadLetterOf(message.into()));
    What::Sent { queue: "OrderDeadLetters".into(), group: None, delayed_until: None, origin }
}

fn finished(outcome: &str) -> Finished {
    Finished { outcome: outcome.into(), events: 1, ..Finished::default() }
}

fn claim(fence: u64, until: u64, taken_over: bool) -> Claim {
    Claim {
        consumer: "order-confirmation".into(),
        owner: "1f0c".into(),
        fence,
        attempt: u32::try_from(fence).unwrap(),
        lease_until: s(until),
        taken_over,
    }
}

/// What a message of a story is said to be, at a second after noon.
struct Row {
    name: &'static str,
    story: Story,
    now: u64,
    standing: Standing,
    says: &'static [&'static str],
}

fn row(name: &'static str, story: Story, now: u64, standing: Standing, says: &'static [&'static str]) -> Row {
    Row { name, story, now, standing, says }
}

fn check(rows: Vec<Row>) {
    for Row { name, story, now, standing, says } in rows {
        let told = story.told("a", now);
        assert_eq!(told.says, says, "{name}");
        assert_eq!(told.standing, standing, "{name}");
        assert!(told.is_whole, "{name}");
    }
}

fn story() -> Story {
    Story::default()
}

/// Received for the second time and taken over, before the timeout of the first receive's invocation is over.
fn late_timeout() -> Story {
    let first = story().sent(0, "a").received_in("first", 1, "a", 1).claimed(1, "a", 1, 29);
    first.received_in("second", 31, "a", 2).took_over(31, "a", 2, 59).timed_out_in("first", 33, "a")
}

#[test]
fn messages_that_are_done() {
    use Standing::Done;
    let killed = || story().sent(0, "a").received(1, "a", 1).claimed(1, "a", 1, 29).died(5, "a");
    check(vec![
        row(
            "done at once",
            story().done(1, "a"),
            9,
            Done,
            &["Done.", "It was received once: the handler did the work."],
        ),
        row(
            "killed and taken over",
            killed().received(31, "a", 2).took_over(31, "a", 2, 59).finished(32, "a", "completed").deleted(32, "a"),
            40,
            Done,
            &[
                "Done.",
                "It was received twice: in the first receive its process was killed after the message was claimed; in the second the claim \
                 was taken over after its lease ended at 12:00:29, and the handler did the work.",
            ],
        ),
        row(
            "killed after its effect",
            story()
                .sent(0, "a")
                .received(1, "a", 1)
                .claimed(1, "a", 1, 29)
                .add(2, "a", What::Effect { did: "sent a mail".into(), refused: false })
                .died(3, "a")
                .received(31, "a", 2)
                .took_over(31, "a", 2, 59)
                .finished(32, "a", "completed")
                .deleted(32, "a"),
            40,
            Done,
            &[
                "Done.",
                "It was received twice: in the first receive its process was killed after the handler had sent a mail, and before \
                 that was recorded; in the second the claim was taken over after its lease ended at 12:00:29, and the handler did \
                 the work.",
            ],
        ),
        row(
            "killed after it was recorded",
            killed().received(31, "a", 2).finished(31, "a", "duplicate").deleted(31, "a"),
            40,
            Done,
            &[
                "Done: it is a duplicate of work that was done already.",
                "It was received twice: in the first receive its process was killed after the message was claimed; in the second the work \
                 was found done by an earlier receive, so the handler did not run.",
            ],
        ),
        row(
            "absorbed duplicate",
            story().done(1, "b").sent(2, "a").received(3, "a", 1).finished(3, "a", "duplicate").deleted(3, "a"),
            9,
            Done,
            &[
                "Done: it is a duplicate of work that was done already.",
                "It was received once: the work was found done, by message b at 12:00:01, so the handler did not run.",
            ],
        ),
        row(
            "a batch neighbour killed it",
            story()
                .sent(0, "a")
                .add(1, "a", What::Received { queue: "OrderQueue".into(), count: 1, hidden_until: s(31) })
                .add(1, "a", What::Delivered { batch: 10 })
                .died(2, "a")
                .received(31, "a", 2)
                .claimed(31, "a", 1, 59)
                .finished(32, "a", "completed")
                .deleted(32, "a"),
            40,
            Done,
            &[
                "Done.",
                "It was received twice: in the first receive its process was killed before this message was started; other messages \
                 were in its batch; in the second the handler did the work.",
            ],
        ),
        row(
            "failed three times, then done",
            (1..=3)
                .fold(story().sent(0, "a"), |story, n| {
                    let at = u64::from(n) * 10;
                    story
                        .received(at, "a", n)
                        .claimed(at, "a", u64::from(n), at + 28)
                        .because(at, "a", "the mail server is busy")
                        .finished(at, "a", "retry")
                        .hidden(at, "a", at + 10)
                })
                .received(40, "a", 4)
                .claimed(40, "a", 4, 68)
                .finished(40, "a", "completed")
                .deleted(40, "a"),
            50,
            Done,
            &[
                "Done.",
                "It was received 4 times: in the first three receives the handler failed (“the mail server is busy”); in the \
                 fourth the handler did the work.",
            ],
        ),
        row(
            "several events",
            story()
                .sent(0, "a")
                .received(1, "a", 1)
                .claimed(1, "a", 1, 29)
                .claimed(1, "a", 1, 29)
                .add(2, "a", What::Finished(Finished { events: 3, ..finished("completed") }))
                .deleted(2, "a"),
            9,
            Done,
            &["Done.", "It holds 3 events. It was received once: the handler did the work."],
        ),
        row(
            "nothing in its envelope",
            story().sent(0, "a").received(1, "a", 1).finished(1, "a", "empty").deleted(1, "a"),
            9,
            Done,
            &[
                "Done: there was nothing to do.",
                "It was received once: its envelope held no event, so there was nothing to do.",
            ],
        ),
    ]);
}

#[test]
fn messages_that_are_on_their_way() {
    use Standing::{ComesBack, Delayed, InFlight, Waiting};
    let first = || story().sent(0, "a").received(1, "a", 1);
    check(vec![
        row(
            "not received yet",
            story().sent(0, "a"),
            9,
            Waiting,
            &["Waiting in OrderQueue since 12:00:00, and not received yet."],
        ),
        row(
            "delayed",
            story().add(
                0,
                "a",
                What::Sent { queue: "OrderQueue".into(), group: None, delayed_until: Some(s(50)), origin: None },
            ),
            9,
            Delayed,
            &["Delayed by its sender until 12:00:50."],
        ),
        row(
            "being worked on",
            first().claimed(1, "a", 1, 29),
            9,
            InFlight,
            &["Being worked on since 12:00:01: its lease ends at 12:00:29."],
        ),
        row(
            "with a renewed lease",
            first().claimed(1, "a", 1, 11).hidden(4, "a", 24).hidden(8, "a", 28),
            9,
            InFlight,
            &["Being worked on since 12:00:01: its lease was renewed twice, and is honoured until about 12:00:28."],
        ),
        row(
            "frozen",
            first().claimed(1, "a", 1, 29).add(2, "a", What::Frozen),
            9,
            InFlight,
            &["Being worked on since 12:00:01, but its process is frozen: its lease ends at 12:00:29."],
        ),
        row(
            "killed by a fault",
            first().claimed(1, "a", 1, 29).add(2, "a", What::Killed).died(2, "a"),
            9,
            ComesBack,
            &[
                "Hidden in OrderQueue until 12:00:31: it comes back when its queue's visibility timeout ends.",
                "It was received once: a fault killed its process after the message was claimed.",
            ],
        ),
        row(
            "frozen beyond its function's timeout",
            first().claimed(1, "a", 1, 29).add(2, "a", What::Frozen).add(
                20,
                "a",
                What::BatchFailed(BatchEnd::TimedOut),
            ),
            25,
            ComesBack,
            &[
                "Hidden in OrderQueue until 12:00:31: it comes back when its queue's visibility timeout ends.",
                "It was received once: a fault froze its process, and its function timed out after the message was claimed.",
            ],
        ),
        row(
            "no longer frozen",
            first().claimed(1, "a", 1, 29).add(2, "a", What::Frozen).add(3, "a", What::Resumed),
            9,
            InFlight,
            &["Being worked on since 12:00:01: its lease ends at 12:00:29."],
        ),
        row(
            "claimed by no one yet",
            first(),
            9,
            InFlight,
            &["With its function since 12:00:01, and hidden from others until 12:00:31."],
        ),
        row(
            "its process was killed",
            first().claimed(1, "a", 1, 29).died(5, "a"),
            9,
            ComesBack,
            &[
                "Hidden in OrderQueue until 12:00:31: it comes back when its queue's visibility timeout ends.",
                "It was received once: its process was killed after the message was claimed.",
            ],
        ),
        row(
            "busy elsewhere",
            story()
                .sent(0, "b")
                .received(0, "b", 1)
                .claimed(0, "b", 1, 28)
                .sent(1, "a")
                .received(2, "a", 1)
                .add(2, "a", What::Finished(Finished { busy_until: Some(s(28)), ..finished("busy") }))
                .hidden(2, "a", 30),
            9,
            ComesBack,
            &[
                "Hidden in OrderQueue until 12:00:30: it comes back when the other claim's lease is over, in case its owner has died.",
                "It was received once: message b of the same key was being worked on, until 12:00:28 at the latest.",
            ],
        ),
        row(
            "busy with itself",
            first()
                .claimed(1, "a", 1, 60)
                .died(5, "a")
                .received(31, "a", 2)
                .finished(31, "a", "busy")
                .hidden(31, "a", 62),
            40,
            ComesBack,
            &[
                "Hidden in OrderQueue until 12:01:02: it comes back when the other claim's lease is over, in case its owner has died.",
                "It was received twice: in the first receive its process was killed after the message was claimed; in the second the claim of \
                 an earlier receive was still honoured, until 12:01:00.",
            ],
        ),
        row(
            "blocked in its group",
            story()
                .add(
                    0,
                    "a",
                    What::Sent {
                        queue: "LedgerQueue.fifo".into(),
                        group: Some("g".into()),
                        delayed_until: None,
                        origin: None,
                    },
                )
                .add(1, "a", What::Received { queue: "LedgerQueue.fifo".into(), count: 1, hidden_until: s(31) })
                .finished(1, "a", "blocked")
                .hidden(1, "a", 1),
            9,
            Waiting,
            &[
                "Waiting in LedgerQueue.fifo: it has been visible since 12:00:01, and was not received again yet.",
                "It was received once: it waited behind an earlier message of its group, which did not succeed.",
            ],
        ),
        row(
            "worked on again",
            first().claimed(1, "a", 1, 29).died(5, "a").received(31, "a", 2).took_over(31, "a", 2, 59),
            40,
            InFlight,
            &[
                "Being worked on since 12:00:31: its lease ends at 12:00:59.",
                "It was received twice: in the first receive its process was killed after the message was claimed; in the second the handler \
                 runs now.",
            ],
        ),
        row(
            "to be deleted, as a schedule sends it again",
            first().claimed(1, "a", 1, 29).finished(2, "a", "scheduled"),
            9,
            InFlight,
            &[
                "A schedule sends it again, as a new message, and it is deleted once its batch has been reported.",
                "It was received once: the handler failed, and a schedule sends it again later than its queue could hide it.",
            ],
        ),
        row(
            "to be deleted, as it has a copy",
            first().add(2, "copy", copy_of("a")).add(
                2,
                "a",
                What::Finished(Finished { dead_lettered: true, ..finished("rejected") }),
            ),
            9,
            InFlight,
            &[
                "The dead-letter queue has a copy of it, and it is deleted once its batch has been reported.",
                "It was received once: it could not be handled, and no retry can fix that.",
            ],
        ),
        row(
            "received again before a process that was frozen told its outcome",
            first()
                .claimed(1, "a", 1, 29)
                .add(2, "a", What::Frozen)
                .received(31, "a", 2)
                .took_over(31, "a", 2, 59)
                .add(33, "a", What::Finished(Finished { receive: Some(1), ..finished("lease_lost") })),
            40,
            InFlight,
            &[
                "Being worked on since 12:00:31: its lease ends at 12:00:59.",
                "It was received twice: in the first receive its claim was lost to another owner before the work was recorded as done; in the \
                 second the handler runs now.",
            ],
        ),
        row(
            "received again before its function timed out",
            late_timeout(),
            40,
            InFlight,
            &[
                "Being worked on since 12:00:31: its lease ends at 12:00:59.",
                "It was received twice: in the first receive its function timed out after the message was claimed; in the second the handler \
                 runs now.",
            ],
        ),
        row(
            "received again, and not handed over, before its function timed out",
            story()
                .sent(0, "a")
                .received_in("first", 1, "a", 1)
                .claimed(1, "a", 1, 29)
                .add(31, "a", What::Received { queue: "OrderQueue".into(), count: 2, hidden_until: s(61) })
                .timed_out_in("first", 31, "a"),
            40,
            InFlight,
            &[
                "With its function since 12:00:31, and hidden from others until 12:01:01.",
                "It was received twice: in the first receive its function timed out after the message was claimed; in the second it is with \
                 its function now.",
            ],
        ),
        row(
            "timed out before it was handed over again",
            story()
                .sent(0, "a")
                .received_in("first", 1, "a", 1)
                .finished(1, "a", "retry")
                .add(11, "a", What::Received { queue: "OrderQueue".into(), count: 2, hidden_until: s(41) })
                .timed_out_in("second", 31, "a"),
            35,
            ComesBack,
            &[
                "Hidden in OrderQueue until 12:00:41: it comes back when its queue's visibility timeout ends.",
                "It was received twice: in the first receive the handler failed; in the second its function timed out before this message was \
                 started.",
            ],
        ),
        row(
            "timed out",
            first().claimed(1, "a", 1, 29).add(29, "a", What::BatchFailed(BatchEnd::TimedOut)),
            40,
            Waiting,
            &[
                "Waiting in OrderQueue: it has been visible since 12:00:31, and was not received again yet.",
                "It was received once: its function timed out after the message was claimed.",
            ],
        ),
    ]);
}

#[test]
fn messages_that_no_function_runs_any_more() {
    use Standing::{DeadLettered, Deleted, Expired, Parked, Redriven};
    let first = || story().sent(0, "a").received(1, "a", 1);
    let lettered = || first().claimed(1, "a", 1, 29).add(2, "copy", copy_of("a")).lettered(2, "a", "rejected");
    let failing = |n: u32| {
        (1..=n).fold(story().sent(0, "a"), |story, n| {
            let at = u64::from(n) * 10;
            story.received(at, "a", n).claimed(at, "a", u64::from(n), at + 28).finished(at, "a", "retry").hidden(
                at,
                "a",
                at + 10,
            )
        })
    };
    check(vec![
        row(
            "rejected",
            first().claimed(1, "a", 1, 29).because(2, "a", "no such address").lettered(2, "a", "rejected"),
            9,
            DeadLettered,
            &[
                "In the dead-letter queue OrderDeadLetters since 12:00:02, as message copy.",
                "It was received once: its work failed for good (“no such address”).",
                STAYS,
            ],
        ),
        row(
            "does not decode",
            first().because(2, "a", "the body is not JSON").lettered(2, "a", "rejected"),
            9,
            DeadLettered,
            &[
                "In the dead-letter queue OrderDeadLetters since 12:00:02, as message copy.",
                "It was received once: it could not be handled, and no retry can fix that (“the body is not JSON”).",
                STAYS,
            ],
        ),
        row(
            "parked",
            first().claimed(1, "a", 1, 29).died(5, "a").received(31, "a", 2).lettered(31, "a", "parked"),
            40,
            Parked,
            &[
                "Parked in the dead-letter queue OrderDeadLetters since 12:00:31, as message copy.",
                "It was received twice: in the first receive its process was killed after the message was claimed; in the second its work may \
                 have been done, and it was parked.",
                "Nothing runs it again by itself, since its work may be done. A person decides: resolve its key if the work is done; \
                 if it is not, release the key and send the message back.",
            ],
        ),
        row(
            "dead-lettered by SQS",
            failing(5).add(60, "a", What::Moved { to: "OrderDeadLetters".into() }),
            70,
            DeadLettered,
            &[
                "In the dead-letter queue OrderDeadLetters since 12:01:00: SQS moved it there, as it had been received 5 times without \
                 success.",
                "It was received 5 times, and each time the handler failed.",
                STAYS,
            ],
        ),
        row(
            "the copy in the dead-letter queue, looked at",
            story()
                .sent(0, "b")
                .received(1, "b", 1)
                .claimed(1, "b", 1, 29)
                .because(2, "b", "no such address")
                .add(2, "a", copy_of("b"))
                .add(2, "b", What::Copied { to: "OrderDeadLetters".into(), copy: "a".into() })
                .finished(2, "b", "rejected")
                .deleted(2, "b")
                .add(5, "a", What::Received { queue: "OrderDeadLetters".into(), count: 1, hidden_until: s(10) }),
            9,
            DeadLettered,
            &[
                "In the dead-letter queue OrderDeadLetters since 12:00:02: the copy of message b that its function sent there.",
                "That message was received once: its work failed for good (“no such address”).",
                STAYS,
            ],
        ),
        row(
            "its copy was discarded",
            lettered().deleted(20, "copy"),
            40,
            Deleted,
            &[
                "Deleted from its dead-letter queue at 12:00:20: it was discarded, sent back as a new message, or done by what reads that queue.",
                "It was received once: its work failed for good.",
            ],
        ),
        row(
            "its copy's queue was emptied",
            lettered().add(20, "copy", What::Purged),
            40,
            Deleted,
            &[
                "Deleted at 12:00:20: its dead-letter queue was emptied.",
                "It was received once: its work failed for good.",
            ],
        ),
        row(
            "its copy is too old",
            lettered().add(20, "copy", What::Expired),
            40,
            Expired,
            &[
                "Lost at 12:00:20: its dead-letter queue keeps messages no longer than that, and its work is not known to be done.",
                "It was received once: its work failed for good.",
            ],
        ),
        row(
            "its copy was sent back by SQS",
            lettered().add(20, "copy", What::Redriven { to: "OrderQueue".into(), copy: "b".into() }).done(21, "b"),
            40,
            Redriven,
            &[
                "Sent back to OrderQueue at 12:00:20, where it is message b (which is done now).",
                "It was received once: its work failed for good.",
            ],
        ),
        row(
            "sent again by a schedule",
            first()
                .claimed(1, "a", 1, 29)
                .because(2, "a", "closed until Monday")
                .finished(2, "a", "scheduled")
                .deleted(2, "a"),
            9,
            Deleted,
            &[
                "Deleted at 12:00:02: a schedule sends it again, as a new message.",
                "It was received once: the handler failed, and a schedule sends it again later than its queue could hide it \
                 (“closed until Monday”).",
            ],
        ),
        row(
            "discarded",
            story().add(2, "a", copy_of("b")).deleted(5, "a"),
            9,
            Deleted,
            &[
                "Deleted from its dead-letter queue at 12:00:05: it was discarded, sent back as a new message, or done by what reads that queue.",
            ],
        ),
        row(
            "redriven",
            failing(1)
                .add(20, "a", What::Moved { to: "OrderDeadLetters".into() })
                .add(30, "a", What::Redriven { to: "OrderQueue".into(), copy: "b".into() })
                .done(31, "b"),
            40,
            Redriven,
            &[
                "Sent back to OrderQueue at 12:00:30, where it is message b (which is done now).",
                "It was received once: the handler failed.",
            ],
        ),
        row(
            "expired",
            story().sent(0, "a").add(9, "a", What::Expired),
            10,
            Expired,
            &["Lost at 12:00:09: its queue keeps messages no longer than that, and its work is not known to be done."],
        ),
        row(
            "fits no filter",
            story()
                .sent(0, "a")
                .add(1, "a", What::Received { queue: "OrderQueue".into(), count: 1, hidden_until: s(31) })
                .add(1, "a", What::Filtered)
                .deleted(1, "a"),
            40,
            Deleted,
            &[
                "Deleted at 12:00:01: it fits no filter of the event source mapping.",
                "It was received once: no function was called for it.",
            ],
        ),
        row(
            "purged",
            story().sent(0, "a").add(9, "a", What::Purged),
            10,
            Deleted,
            &["Deleted at 12:00:09: its queue was emptied."],
        ),
        row(
            "deleted with the dead-letter queue to which SQS had moved it",
            failing(1).add(20, "a", What::Moved { to: "OrderDeadLetters".into() }).add(30, "a", What::QueueDeleted),
            40,
            Deleted,
            &["Deleted at 12:00:30, with its dead-letter queue.", "It was received once: the handler failed."],
        ),
        row(
            "deleted unseen",
            story().sent(0, "a").deleted(9, "a"),
            10,
            Deleted,
            &["Deleted at 12:00:09, before a function received it."],
        ),
    ]);
}

#[test]
fn steps_are_in_order_with_what_was_waited_for_and_until_when() {
    let told = story()
        .sent(0, "a")
        .received(1, "a", 1)
        .claimed(1, "a", 1, 29)
        .died(5, "a")
        .done(6, "b")
        .received(31, "a", 2)
        .told("a", 40);
    let of_a = told.steps.iter().filter(|step| step.own);
    let first_ms = told.steps[0].at_ms;
    let of_a: Vec<_> = of_a.map(|step| ((step.at_ms - first_ms) / 1_000, step.kind, step.what.as_str())).collect();
    assert_eq!(
        of_a,
        [
            (0, Kind::Queue, "Sent to OrderQueue"),
            (0, Kind::Wait, "Waited 1 s"),
            (1, Kind::Receive, "Received from OrderQueue, for the first time"),
            (1, Kind::Handed, "Handed to its function"),
            (1, Kind::Claim, "Claimed by order-confirmation"),
            (5, Kind::Broken, "Its process ended"),
            (5, Kind::Wait, "Waited 26 s"),
            (31, Kind::Receive, "Received from OrderQueue, for the second time"),
            (31, Kind::Handed, "Handed to its function"),
        ]
    );
    assert_eq!(told.copies, [("b".to_owned(), Standing::Done)]);
    assert_eq!(
        told.steps[4].detail.as_deref(),
        Some("run 1 of the handler · owner 1f0c · fence 1 · lease until 12:00:29")
    );
    assert_eq!(told.steps[4].process.as_deref(), Some("order-confirmation, process 41"));
    assert!(told.steps.is_sorted_by_key(|step| step.at_ms));
}

#[test]
fn what_a_message_waits_for_is_its_last_step() {
    let died = story().sent(0, "a").received(1, "a", 1).claimed(1, "a", 1, 29).hidden(2, "a", 31).died(3, "a");
    let told = died.told("a", 5);
    let renewed =
        told.steps.iter().find(|step| step.what == "Hidden until 12:00:31").expect("it was hidden for longer");
    assert_eq!(renewed.detail.as_deref(), Some("so that no other worker receives it while this one works"));
    let last = told.steps.last().expect("it has steps");
    let after_ms = last.at_ms - told.steps[0].at_ms;
    assert_eq!((last.kind, last.what.as_str(), after_ms), (Kind::Wait, "Waits until 12:00:31", 3_000));
    assert!(last.detail.as_deref().is_some_and(|why| why.starts_with("for the end of its visibility timeout")));
}

/// The line of an outcome comes a moment after what followed from it, and nothing says then that a worker still had the message.
#[test]
fn a_backoff_follows_the_outcome_that_it_is_for() {
    let cut_off = || story().sent(0, "a").received(1, "a", 1).claimed(1, "a", 1, 29);
    let told = cut_off().hidden(2, "a", 4).finished(2, "a", "cancelled").received(4, "a", 2).told("a", 5);
    let steps: Vec<_> = told.steps[5..8].iter().map(|step| (step.what.as_str(), step.detail.as_deref())).collect();
    let waited = ("Waited 2 s", Some("for the backoff after a failed run"));
    assert_eq!(steps, [("Cancelled", None), ("Hidden until 12:00:04", None), waited]);
    // A renewal beside the handler is none, however short before its end.
    let told = cut_off().hidden(2, "a", 9).finished(2, "a", "cancelled").hidden(2, "a", 4).told("a", 3);
    let steps: Vec<_> = told.steps[5..8].iter().map(|step| (step.what.as_str(), step.detail.as_deref())).collect();
    let renewed = ("Hidden until 12:00:09", Some("so that no other worker receives it while this one works"));
    assert_eq!(steps, [renewed, ("Cancelled", None), ("Hidden until 12:00:04", None)]);
    // Nor is the last one of work that is done.
    let told = cut_off().hidden(2, "a", 9).finished(2, "a", "completed").deleted(2, "a").told("a", 3);
    let steps: Vec<_> = told.steps[5..].iter().map(|step| (step.what.as_str(), step.detail.as_deref())).collect();
    assert_eq!(steps, [renewed, ("Completed", None), ("Deleted from its queue", None)]);
}

/// A process that was frozen tells the outcome of its receive, or its timeout is over, after the next one has begun.
#[test]
fn a_late_end_ends_no_later_receive() {
    let late = || What::Finished(Finished { receive: Some(1), ..finished("lease_lost") });
    let moved = || What::Moved { to: "OrderDeadLetters".into() };
    let second = || story().sent(0, "a").received(1, "a", 1).claimed(1, "a", 1, 29).received(31, "a", 2);
    let worked_on = || second().took_over(31, "a", 2, 59).add(33, "a", late()).hidden(45, "a", 75);
    for (story, step, detail) in [
        (worked_on(), "Hidden until 12:01:15", "so that no other worker receives it while this one works"),
        (
            late_timeout().hidden(45, "a", 75),
            "Hidden until 12:01:15",
            "so that no other worker receives it while this one works",
        ),
        (late_timeout().received(61, "a", 3), "Waited 30 s", "for the end of its visibility timeout"),
        // Of a message of several events.
        (
            second().finished(32, "a", "completed").finished(32, "a", "retry").received(62, "a", 3),
            "Waited 30 s",
            "for the backoff after a failed run",
        ),
        (
            worked_on().finished(50, "a", "stuck").received(80, "a", 3),
            "Waited 30 s",
            "for the end of the lease of its claim",
        ),
        (
            second().finished(32, "a", "stuck").add(33, "a", late()).received(62, "a", 3),
            "Waited 30 s",
            "for the end of the lease of its claim",
        ),
        // To look at a dead letter is to receive it.
        (
            second().finished(32, "a", "retry").add(61, "a", moved()).add(62, "a", late()).received(80, "a", 3),
            "Waited 19 s",
            "in the dead-letter queue",
        ),
    ] {
        let told = story.told("a", 90);
        let step =
            told.steps.iter().rfind(|told| told.what == step).unwrap_or_else(|| panic!("{step}: {:?}", told.steps));
        assert_eq!(step.detail.as_deref(), Some(detail));
    }
}

/// A breaker holds the message of a probe that failed back for longer than its backoff, as one that it held back.
#[test]
fn a_wait_that_is_longer_than_the_backoff_is_told_as_such() {
    let failed = |until: u64| {
        story().sent(0, "a").received(1, "a", 1).claimed(1, "a", 1, 29).finished(2, "a", "retry").hidden(2, "a", until)
    };
    let longer = "after a failed run, for longer than the backoff: its handler asked for that, or the breaker was open";
    let late = || {
        let hidden = Fact { at: ms(1_999), ..failed(549).0.pop().unwrap() };
        let mut story = story().sent(0, "a").received(1, "a", 1).claimed(1, "a", 1, 29).finished(2, "a", "retry");
        story.0.push(hidden);
        story
    };
    // The engine says what became of a message before it hides it, and its line can come a moment later.
    let told = late().told("a", 9);
    let step = told.steps.iter().find(|step| step.what == "Hidden until 12:09:09").unwrap();
    assert_eq!(step.detail, None);
    let renewed = story().sent(0, "a").received(1, "a", 1).claimed(1, "a", 1, 29);
    let mut renewed = renewed.finished(2, "a", "completed").deleted(2, "a");
    renewed.0.push(Fact { at: ms(1_900), ..failed(31).0.pop().unwrap() });
    let told = renewed.told("a", 9);
    let step = told.steps.iter().find(|step| step.what == "Hidden until 12:00:31").unwrap();
    assert_eq!(step.detail.as_deref(), Some("so that no other worker receives it while this one works"));
    let of_several = |other: &str| {
        let run = story().sent(0, "a").received(1, "a", 1).claimed(1, "a", 1, 29).finished(2, "a", "retry");
        run.finished(2, "a", other).hidden(2, "a", 549).received(549, "a", 2)
    };
    let of_another = "after a failed run, for longer than the backoff: its handler asked for that, the breaker was open, or another event of \
                      it waits longer";
    let at_once = "after a failed run, to be received: it was visible again at once";
    for (story, waited, why) in [
        (failed(4).received(4, "a", 2), "Waited 2 s", "for the backoff after a failed run".to_owned()),
        (failed(549).received(549, "a", 2), "Waited 9 min 7 s", longer.to_owned()),
        (late().received(549, "a", 2), "Waited 9 min 7 s", longer.to_owned()),
        (failed(2).received(27, "a", 2), "Waited 25 s", at_once.to_owned()),
        (of_several("busy"), "Waited 9 min 7 s", of_another.to_owned()),
        (of_several("cancelled"), "Waited 9 min 7 s", longer.to_owned()),
        (of_several("completed"), "Waited 9 min 7 s", longer.to_owned()),
        (
            failed(4).received(29, "a", 2),
            "Waited 27 s",
            "for the backoff after a failed run, and 25 s more to be received".to_owned(),
        ),
        (failed(549).received(560, "a", 2), "Waited 9 min 18 s", format!("{longer}, and 11 s more to be received")),
    ] {
        let told = story.told("a", 600);
        let step = told.steps.iter().rfind(|step| step.what == waited);
        let step = step.unwrap_or_else(|| panic!("{waited}: {:?}", told.steps));
        assert_eq!(step.detail.as_deref(), Some(&*why));
    }
}

/// Without a line of the engine nobody knows what was started; and an error of the function kills nothing.
#[test]
fn what_is_not_known_of_a_failed_batch_is_not_said() {
    let failed = || story().sent(0, "a").received(1, "a", 1);
    for (how, said, why) in [
        (BatchEnd::Failed("Unhandled".into()), "its batch failed (Unhandled)", "for the end of its visibility timeout"),
        (
            BatchEnd::TimedOut,
            "its function timed out",
            "for the end of its visibility timeout: nothing else brings a message back whose process died",
        ),
    ] {
        let told = failed().add(2, "a", What::BatchFailed(how.clone())).told("a", 5);
        assert_eq!(told.says[1], format!("It was received once: {said}."));
        assert_eq!(told.steps.last().and_then(|step| step.detail.as_deref()), Some(why));
        let known = failed().add(2, "a", What::BatchFailed(how)).done(3, "b").told("a", 5);
        assert_eq!(known.says[1], format!("It was received once: {said} before this message was started."));
    }
}

#[test]
fn what_faults_do_and_claims_that_were_given_back_are_steps() {
    let lost = What::Fault { did: "The table's answer to a claim of its key was lost".into(), times: 2 };
    let told = story()
        .sent(0, "a")
        .received(0, "a", 1)
        .add(0, "a", lost)
        .took_over(0, "a", 2, 29)
        .took_over(0, "a", 3, 29)
        .add(1, "a", What::Killed)
        .told("a", 9);
    let steps: Vec<_> = told.steps.iter().skip(3).map(|step| (step.what.as_str(), step.detail.as_deref())).collect();
    assert_eq!(steps[0], ("The table's answer to a claim of its key was lost", Some("2 times in a row, by a fault")));
    let whats: Vec<_> = steps[1..].iter().map(|(what, _)| *what).collect();
    let wanted =
        ["Claim taken over by order-confirmation", "Claimed again by order-confirmation", "A fault killed its process"];
    assert_eq!(whats, wanted);
}

#[test]
fn what_lines_tell_late_is_put_where_it_happened() {
    let mail = || What::Effect { did: "sent a mail".into(), refused: false };
    let told = story()
        .sent(0, "a")
        .received(1, "a", 1)
        .add(1, "a", mail())
        .claimed(1, "a", 1, 29)
        .deleted(2, "a")
        .finished(2, "a", "completed")
        .told("a", 9);
    let kinds: Vec<_> = told.steps.iter().map(|step| step.kind).filter(|kind| *kind != Kind::Wait).collect();
    let wanted = [Kind::Queue, Kind::Receive, Kind::Handed, Kind::Claim, Kind::Effect, Kind::Done, Kind::Queue];
    assert_eq!(kinds, wanted);
    // Another receive's effect, and one long before, stay before the claim.
    let told = story().sent(0, "a").received(1, "a", 1).add(1, "a", mail()).claimed(5, "a", 1, 29).told("a", 9);
    assert_eq!(told.steps.last().map(|step| step.kind), Some(Kind::Claim));
    assert_eq!(told.outcome, None);
}

#[test]
fn a_timeline_is_bounded_and_says_what_is_missing() {
    let many = (1..=2_000).fold(story(), |story, n| {
        story.add(u64::from(n), "a", What::Received { queue: "Q".into(), count: n, hidden_until: s(u64::from(n)) })
    });
    let told = many.told("a", 3_000);
    assert_eq!(told.steps.len(), STEPS_MAX);
    assert!(told.left_out > 1_000 && !told.is_whole);
    // However it went, what is said of it stays short.
    assert!(told.says.concat().len() < 1_000, "{:?}", told.says);
    assert_eq!(tell(Vec::new(), "a", s(0)), None);
    assert_eq!(tell(story().sent(0, "b").0, "a", s(0)), None);
}
