//! What is said of a message that is gone, by the last facts of it.

use claimant_core::report::OUTCOME_WORDS;

use super::*;

/// Sent, received once at 12:00:01 and hidden for 30 s, in an invocation.
fn received() -> Story {
    story().sent(0, "a").received_in("i", 1, "a", 1)
}

/// Received once more at 12:00:31, by what is no event source mapping.
fn read_by_hand(story: Story) -> Story {
    story.add(31, "a", What::Received { queue: "OrderQueue".into(), count: 2, hidden_until: s(61) })
}

/// What the engine logged as a receive's end, with a copy in the dead-letter queue or without one.
fn ended(story: Story, outcome: &str, dead_lettered: bool) -> Story {
    story.add(2, "a", What::Finished(Finished { dead_lettered, ..finished(outcome) }))
}

/// The first sentence is right for each outcome and each answer, before and after the visibility timeout of the receive is over.
#[test]
fn who_deleted_a_message_is_told_of_each_outcome() {
    const BY_OTHERS: &str = "Deleted at 12:00:03 by something else that reads its queue, or by hand.";
    const BY_MAPPING: &str = "Deleted by its event source mapping at 12:00:03, though its work is not known to be done: does the mapping \
                              have ReportBatchItemFailures?";
    const SCHEDULED: &str = "Deleted at 12:00:03: a schedule sends it again, as a new message.";
    // A new outcome belongs to one of these.
    let done = ["completed", "duplicate", "empty", "ignored"];
    let done_with_copy = ["conflict", "rejected", "parked"];
    let undone = [
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
    for word in OUTCOME_WORDS {
        for (has_copy, answer, now) in [false, true].into_iter().flat_map(|has_copy| {
            let answers = [Some(Answer::Done), Some(Answer::Failed), None];
            answers.into_iter().flat_map(move |answer| [9, 90].map(|now| (has_copy, answer, now)))
        }) {
            let wanted = match word {
                _ if done.contains(&word) => "Done",
                "scheduled" => SCHEDULED,
                "parked" if has_copy => "Parked in the dead-letter queue.",
                _ if done_with_copy.contains(&word) && has_copy => "In the dead-letter queue.",
                _ if done_with_copy.contains(&word) || undone.contains(&word) => match answer {
                    Some(Answer::Done) => BY_MAPPING,
                    _ => BY_OTHERS,
                },
                _ => panic!("is {word} a success?"),
            };
            let mut story = ended(received(), word, has_copy && done_with_copy.contains(&word));
            if let Some(answer) = answer {
                story = story.answered_in("i", 3, "a", answer);
            }
            let said = story.deleted(3, "a").told("a", now).says[0].clone();
            assert!(said.starts_with(wanted), "{word}, {has_copy}, {answer:?} at {now}: {said}");
        }
    }
}

#[test]
fn how_a_message_left_is_told_by_its_last_facts() {
    use Standing::{ComesBack, DeadLettered, Deleted, Done, Expired, Parked, Redriven, Waiting};
    const NO_LINES: &str = "Deleted by its event source mapping at 12:00:03: its function logged nothing of its work.";
    const AHEAD: &str = "Deleted by its function at 12:00:03, ahead of its answer: it deletes what is done before it removes a payload, \
                         or runs what may end its process.";
    const BY_OTHERS: &str = "by something else that reads its queue, or by hand.";
    const PARKED: &str = "Parked in the dead-letter queue OrderDeadLetters since 12:00:02, as message copy.";
    const PARKED_BY_SQS: &str = "Parked in the dead-letter queue OrderDeadLetters since 12:00:40: SQS moved it there, as it had been \
                                 received once without success.";
    const COPY: &str = "Parked in the dead-letter queue OrderDeadLetters since 12:00:02: the copy of message b that its function sent \
                        there.";
    const COPY_BY_SQS: &str = "Parked in the dead-letter queue OrderDeadLetters since 12:00:40: SQS moved it there.";
    const SCHEDULED: &str = "a schedule sends it again, as a new message.";
    const KEPT: &str = "keeps messages no longer than that, and its work is not known to be done.";
    const LETTERS_KEPT: &str = "Lost at 12:00:50: its dead-letter queue keeps messages no longer than that";
    let died = |story: Story| story.add_in(Some("i"), 2, "a", What::BatchFailed(BatchEnd::Died("signal: 9".into())));
    let answered = |story: Story, answer| story.answered_in("i", 3, "a", answer);
    let copied = |story: Story| {
        let to = "OrderDeadLetters".into();
        story.add(2, "copy", copy_of("a")).add(2, "a", What::Copied { to, copy: "copy".into() })
    };
    let moved = |story: Story| story.add(40, "a", What::Moved { to: "OrderDeadLetters".into() });
    let sent_back = |story: Story| story.add(50, "a", What::Redriven { to: "OrderQueue".into(), copy: "b".into() });
    let parked_copy = || story().sent(0, "b").received(1, "b", 1).add(2, "a", copy_of("b")).finished(2, "b", "parked");
    let two_events = |one, other| ended(ended(received(), one, false), other, false);
    let filtered = || received().add(1, "a", What::Filtered);
    for (story, now, standing, says) in [
        // Without a line of the function, the mapping's answer is all that is known.
        (answered(received(), Answer::Done).deleted(3, "a"), 9, Deleted, NO_LINES),
        (answered(copied(received()), Answer::Done).deleted(3, "a"), 9, DeadLettered, "as message copy."),
        (answered(received(), Answer::Failed), 9, ComesBack, "Hidden in OrderQueue until 12:00:31: it comes back"),
        (answered(received(), Answer::Failed).deleted(4, "a"), 9, Deleted, BY_OTHERS),
        // Only its function can, before it has answered.
        (received().deleted(3, "a"), 9, Deleted, AHEAD),
        (answered(received().deleted(3, "a"), Answer::Done), 9, Deleted, AHEAD),
        (received().deleted(3, "a").timed_out_in("i", 5, "a"), 9, Deleted, AHEAD),
        // It was not deleted: its receipt handle was too old.
        (answered(received(), Answer::Done), 40, Waiting, "Waiting in OrderQueue: it has been visible since 12:00:31"),
        (ended(received(), "completed", false), 40, Waiting, "Waiting in OrderQueue: it has been visible since"),
        // Handed to no function, or to one that died.
        (read_by_hand(answered(received(), Answer::Done)).deleted(35, "a"), 40, Deleted, BY_OTHERS),
        (read_by_hand(ended(received(), "retry", false)).deleted(35, "a"), 40, Deleted, BY_OTHERS),
        (died(received()).deleted(4, "a"), 9, Deleted, BY_OTHERS),
        (filtered().deleted(1, "a"), 9, Deleted, "Deleted at 12:00:01: it fits no filter of the event source mapping."),
        // What was done is done, however it leaves.
        (read_by_hand(died(ended(received(), "completed", false))).deleted(35, "a"), 40, Done, "Done."),
        (died(ended(received(), "completed", false)).add(40, "a", What::Expired), 50, Done, "Done."),
        (died(ended(received(), "completed", false)).add(40, "a", What::Purged), 50, Done, "Done."),
        (
            moved(died(ended(received(), "completed", false))),
            50,
            DeadLettered,
            "received once, though its work is done.",
        ),
        // But not before all of its events are.
        (moved(two_events("retry", "completed")), 50, DeadLettered, "received once without success."),
        (moved(two_events("retry", "completed")).deleted(50, "a"), 60, Deleted, "Deleted from its dead-letter queue"),
        (two_events("busy", "ignored").add(40, "a", What::Expired), 50, Expired, KEPT),
        (
            ended(ended(copied(received()), "rejected", true), "completed", false).deleted(3, "a"),
            9,
            DeadLettered,
            "copy.",
        ),
        (two_events("completed", "ignored").deleted(3, "a"), 9, Done, "Done."),
        // A copy stands for it, however it leaves, and since it was sent.
        (died(ended(copied(received()), "parked", true)).add(40, "a", What::Expired), 50, Parked, PARKED),
        (read_by_hand(died(ended(copied(received()), "parked", true))).deleted(35, "a"), 40, Parked, PARKED),
        // What is parked is so, too, where SQS has moved it, or its copy.
        (moved(ended(received(), "parked", false)), 50, Parked, PARKED_BY_SQS),
        (parked_copy(), 9, Parked, COPY),
        (moved(parked_copy()), 50, Parked, COPY_BY_SQS),
        (ended(copied(received()), "parked", true).deleted(3, "a").add(40, "copy", What::Expired), 50, Expired, KEPT),
        // A schedule sends it again, however it leaves.
        (died(ended(received(), "scheduled", false)).add(40, "a", What::Expired), 50, Deleted, SCHEDULED),
        (died(ended(received(), "scheduled", false)).add(40, "a", What::Purged), 50, Deleted, SCHEDULED),
        // Nobody did its work.
        (died(received()).add(40, "a", What::Expired), 50, Expired, KEPT),
        (died(received()).add(40, "a", What::Purged), 50, Deleted, "Deleted at 12:00:40: its queue was emptied."),
        // Not its queue, but that to which SQS had moved it, or its function had sent it.
        (moved(died(received())).add(50, "a", What::Expired), 60, Expired, LETTERS_KEPT),
        (
            moved(died(received())).add(50, "a", What::Purged),
            60,
            Deleted,
            "at 12:00:50: its dead-letter queue was emptied.",
        ),
        (parked_copy().add(50, "a", What::Purged), 60, Deleted, "at 12:00:50: its dead-letter queue was emptied."),
        // Who sends a letter back sends it first.
        (sent_back(moved(died(received()))).deleted(50, "a"), 60, Redriven, "Sent back to OrderQueue at 12:00:50"),
        (
            moved(died(received())).deleted(50, "a"),
            60,
            Deleted,
            "Deleted from its dead-letter queue at 12:00:50: it was",
        ),
    ] {
        let told = story.told("a", now);
        assert!(told.standing == standing && told.says[0].contains(says), "{standing:?}, {says}: {told:?}");
    }
}

/// In each receive, what the mapping was told stands where the function logged nothing.
#[test]
fn what_a_function_answered_is_told_of_each_receive() {
    let (done, failed) = (Answer::Done, Answer::Failed);
    let again = |story: Story| story.received_in("j", 31, "a", 2);
    let moved = |story: Story| story.add(40, "a", What::Moved { to: "OrderDeadLetters".into() });
    let read_as_letter = |story: Story| {
        let archived = What::Finished(Finished { receive: Some(2), ..finished("completed") });
        let handed = story.add_in(Some("j"), 45, "a", What::Delivered { batch: 1 }).add(45, "a", archived);
        handed.answered_in("j", 45, "a", done).deleted(45, "a")
    };
    let claimed = || received().claimed(1, "a", 1, 29);
    let mailed =
        |story: Story, at| story.add_in(Some("i"), at, "a", What::Effect { did: "sent a mail".into(), refused: false });
    let died = |story: Story, at, status: &str| {
        story.add_in(Some("i"), at, "a", What::BatchFailed(BatchEnd::Died(status.into())))
    };
    let nothing = "It was received once: nothing more was heard of it until its visibility timeout ended at 12:00:31.";
    let aborted = "It was received once: its process aborted after the message was deleted.";
    for (story, now, says) in [
        (received().answered_in("i", 3, "a", failed), 9, "It was received once: its function said that it failed."),
        (
            again(received().answered_in("i", 3, "a", failed)).answered_in("j", 33, "a", done).deleted(33, "a"),
            40,
            "It was received twice: in the first receive its function said that it failed; in the second its event source mapping took it \
             for done.",
        ),
        // What comes late is of its own receive, and what reads the dead-letter queue is of none.
        (
            again(received()).answered_in("i", 33, "a", failed),
            40,
            "It was received twice: in the first receive its function said that it failed; in the second it is with its function now.",
        ),
        (
            again(received()).answered_in("i", 33, "a", done),
            40,
            "It was received twice: in the first receive its function answered only after its visibility timeout had ended at 12:00:31; in \
             the second it is with its function now.",
        ),
        (read_as_letter(moved(received())), 50, nothing),
        // But its process goes on after SQS has moved it.
        (
            died(mailed(moved(claimed()), 41), 42, "signal: 9 (SIGKILL)"),
            50,
            "It was received once: its process was killed after the handler had sent a mail, and before that was recorded.",
        ),
        // Its function deletes what is done, and what is recorded as done.
        (died(mailed(claimed(), 1).deleted(2, "a"), 5, "signal: 6 (SIGABRT)"), 9, aborted),
        (died(received().deleted(2, "a"), 5, "signal: 6 (SIGABRT)"), 9, aborted),
        // It was deleted before its visibility timeout was over.
        (received().deleted(3, "a"), 9, "It was received once: nothing more was heard of it."),
        (received().deleted(3, "a"), 50, "It was received once: nothing more was heard of it."),
        (received().add(40, "a", What::Expired), 50, nothing),
    ] {
        let told = story.told("a", now).says;
        assert_eq!(told.get(1).map(String::as_str), Some(says), "{told:?}");
    }
}

/// A line that arrives late is told before what followed from it.
#[test]
fn an_answer_is_a_step() {
    let story = received().answered_in("i", 3, "a", Answer::Done).deleted(3, "a").finished(3, "a", "retry");
    let told = story.told("a", 9);
    let last: Vec<_> = told.steps.iter().rev().take(3).map(|step| step.what.as_str()).collect();
    assert_eq!(last, ["Deleted from its queue", "Taken for done by its event source mapping", "Retry"]);
    assert_eq!(told.says[1], "It was received once: the handler failed.");
}
