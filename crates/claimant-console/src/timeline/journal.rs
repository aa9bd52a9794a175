//! Facts from the events of a local cloud's journal.

use std::collections::BTreeSet;

use claimant_core::Timestamp;
use claimant_local::journal::{Event, InvocationEnd, Text, What as Happened};

use super::fact::{Answer, BatchEnd, Claim, Fact, Finished, Origin, Process, What};
use super::line::line;

/// Returns what these events say about the messages that `about` has. An event about several messages is a fact of each.
pub(crate) fn facts(events: &[Event], about: &BTreeSet<&str>) -> Vec<Fact> {
    // What the mapping says of an answer repeats what is known of an invocation without one.
    let ended: BTreeSet<_> =
        events.iter().filter(|event| is_failed(event)).filter_map(|event| event.invocation.as_deref()).collect();
    let mut facts = Vec::new();
    for event in events {
        for (message, what) in happened(event, &ended, about) {
            if about.contains(message) && !repeats(&mut facts, message, &what) {
                facts.push(Fact {
                    at: Timestamp::from_millis(event.at_ms),
                    message: message.to_owned(),
                    process: event.function.as_ref().map(|function| Process {
                        function: function.to_string(),
                        id: event.process.map(|id| id.to_string()),
                    }),
                    invocation: event.invocation.as_ref().map(|id| id.to_string()),
                    what,
                });
            }
        }
    }
    facts
}

/// Counts what a fault does again and again as one fact; returns whether it was that.
fn repeats(facts: &mut [Fact], message: &str, what: &What) -> bool {
    let last = facts.iter_mut().rev().find(|fact| fact.message == message);
    match (last.map(|fact| &mut fact.what), what) {
        (Some(What::Fault { did, times }), What::Fault { did: again, .. }) if did == again => {
            *times += 1;
            true
        }
        _ => false,
    }
}

fn is_failed(event: &Event) -> bool {
    matches!(event.what, Happened::InvocationEnded { how, .. } if how != InvocationEnd::Returned)
}

/// What an event says, message by message: of a batch, of those that `about` has.
fn happened<'a>(event: &'a Event, ended: &BTreeSet<&str>, about: &BTreeSet<&str>) -> Vec<(&'a str, What)> {
    let Some(message) = event.message_id.as_deref() else { return of_batch(event, ended, about) };
    let queue = event.queue.as_deref().unwrap_or("its queue").to_owned();
    let time = Timestamp::from_millis;
    let one = |what| vec![(message, what)];
    match &event.what {
        Happened::Sent { visible_at_ms, group, copy_of, redriven } => {
            let made = if *redriven { Origin::RedriveOf } else { Origin::DeadLetterOf };
            let origin = copy_of.as_ref().map(|id| made(id.to_string()));
            let delayed_until = (*visible_at_ms > event.at_ms).then(|| time(*visible_at_ms));
            let (to, copy) = (queue.clone(), message.to_owned());
            let copied = if *redriven { What::Redriven { to, copy } } else { What::Copied { to, copy } };
            let copied = copy_of.iter().map(|id| (&**id, copied.clone()));
            let mut all: Vec<_> = copied.collect();
            all.push((
                message,
                What::Sent {
                    queue: queue.clone(),
                    group: group.as_ref().map(ToString::to_string),
                    delayed_until,
                    origin,
                },
            ));
            all
        }
        Happened::Redriven { was, group, .. } => {
            let group = group.as_ref().map(ToString::to_string);
            let origin = Some(Origin::RedriveOf(was.to_string()));
            vec![
                (&**was, What::Redriven { to: queue.clone(), copy: message.to_owned() }),
                (message, What::Sent { queue, group, delayed_until: None, origin }),
            ]
        }
        Happened::Received { count, hidden_until_ms } => {
            one(What::Received { queue, count: *count, hidden_until: time(*hidden_until_ms) })
        }
        Happened::Hidden { until_ms } => one(What::Hidden { until: time(*until_ms) }),
        Happened::Deleted => one(What::Deleted),
        Happened::Filtered => one(What::Filtered),
        Happened::DeadLettered { .. } => one(What::Moved { to: queue }),
        Happened::Expired => one(What::Expired),
        Happened::Purged => one(What::Purged),
        Happened::QueueDeleted => one(What::QueueDeleted),
        Happened::Claimed(claimed) => one(What::Claimed(Claim {
            consumer: claimed.consumer.to_string(),
            owner: claimed.owner.to_string(),
            fence: claimed.fence,
            attempt: claimed.attempt,
            lease_until: time(claimed.lease_until_ms),
            taken_over: claimed.taken_over,
        })),
        Happened::Done(done) => one(What::Finished(Finished {
            outcome: done.outcome.to_string(),
            receive: done.receive,
            events: done.events,
            dead_lettered: done.dead_lettered,
            busy_until: done.busy_until_ms.map(time),
            // OK because a handler runs for minutes at most.
            handle_ms: done.handle_ms.map(|ms| ms as u64),
        })),
        Happened::Line { text, .. } => one(What::Line(line(text))),
        Happened::Mail { answer, .. } => one(mail(answer)),
        Happened::Charge { answer, .. } => one(charge(answer)),
        Happened::ProcessKilled => one(What::Killed),
        Happened::ProcessFrozen => one(What::Frozen),
        Happened::ProcessResumed => one(What::Resumed),
        Happened::Object { object, request } => {
            one(What::Effect { did: format!("sent a {request} for the object {object}"), refused: false })
        }
        _ => of_batch(event, ended, about),
    }
}

/// What an event about several messages says of these, of which there are few: a batch can have ten thousand.
fn of_batch<'a>(event: &'a Event, ended: &BTreeSet<&str>, about: &BTreeSet<&str>) -> Vec<(&'a str, What)> {
    let each = |messages: &'a [Text], what: &What| -> Vec<_> {
        messages.iter().filter(|id| about.contains(&***id)).map(|id| (&**id, what.clone())).collect()
    };
    match &event.what {
        Happened::InvocationBegan { messages, .. } => each(messages, &What::Delivered { batch: messages.len() }),
        Happened::InvocationEnded { messages, how, detail } => {
            let detail = detail.as_deref().unwrap_or("for a reason that is not known").to_owned();
            let how = match how {
                InvocationEnd::Returned => return Vec::new(),
                InvocationEnd::Failed => BatchEnd::Failed(detail),
                InvocationEnd::TimedOut => BatchEnd::TimedOut,
                InvocationEnd::Crashed => BatchEnd::Died(detail),
            };
            each(messages, &What::BatchFailed(how))
        }
        Happened::TableFault { did, of, messages } => {
            each(messages, &What::Fault { did: table_fault(did, of), times: 1 })
        }
        Happened::Reported { failed, why: Some(why), .. }
            if !event.invocation.as_deref().is_some_and(|id| ended.contains(id)) =>
        {
            each(failed, &What::BatchFailed(BatchEnd::Failed(why.to_string())))
        }
        Happened::Reported { succeeded, failed, why: None } => {
            [each(succeeded, &What::Answered(Answer::Done)), each(failed, &What::Answered(Answer::Failed))].concat()
        }
        _ => Vec::new(),
    }
}

fn table_fault(did: &str, of: &str) -> String {
    let request = match of {
        "claims" => "claim of its key",
        "reads" => "read of its key's record",
        _ => "write to its key's record",
    };
    match did {
        "lose" => format!("The table's answer to a {request} was lost"),
        "throttle" => format!("The table throttled a {request}"),
        _ => format!("The table was cut off from a {request}"),
    }
}

fn mail(answer: &str) -> What {
    let (did, refused) = match answer {
        "accepted" => ("sent a mail", false),
        "answer_lost" => ("sent a mail, whose answer was lost", false),
        "rejected" => ("tried to send a mail, which was refused for good", true),
        _ => ("tried to send a mail, which was refused for now", true),
    };
    What::Effect { did: did.to_owned(), refused }
}

fn charge(answer: &str) -> What {
    let (did, refused) = match answer {
        "charged" => ("charged a card", false),
        "answer_lost" => ("charged a card, and the answer was lost", false),
        "repeated" => ("asked for the charge again, which the gateway recognised as the same", false),
        "declined" => ("tried to charge a card, which was declined", true),
        "unavailable" => ("tried to charge a card, while the gateway was unavailable", true),
        _ => ("tried to charge a card, which was refused", true),
    };
    What::Effect { did: did.to_owned(), refused }
}

#[cfg(test)]
mod tests {
    use claimant_local::journal::lines;

    use super::*;

    #[test]
    fn an_outcome_says_of_which_receive_it_is_and_of_how_many_events() {
        let line =
            "INFO message done consumer=c message_id=a outcome=completed dead_lettered=false receive_count=2 events=3";
        let events = [Event::new(1, lines::read(line).what).message("a")];
        let told = facts(&events, &BTreeSet::from(["a"])).into_iter().map(|fact| fact.what).next();
        let done = Finished { outcome: "completed".into(), receive: Some(2), events: 3, ..Finished::default() };
        assert_eq!(told, Some(What::Finished(done)));
    }

    #[test]
    fn what_fits_no_filter_is_deleted_once() {
        let events =
            [Happened::Filtered, Happened::Deleted].map(|what| Event::new(1, what).message("a").queue(&"q".into()));
        let told: Vec<_> = facts(&events, &BTreeSet::from(["a"])).into_iter().map(|fact| fact.what).collect();
        assert_eq!(told, [What::Filtered, What::Deleted]);
    }

    /// Without an answer, the mapping says again what is known of the invocation.
    #[test]
    fn what_the_mapping_makes_of_an_answer_is_a_fact_of_each_message() {
        let ended = |how| Happened::InvocationEnded { messages: ["a", "b"].into_iter().collect(), how, detail: None };
        let reported = |succeeded: &[&str], failed: &[&str], why: Option<&str>| Happened::Reported {
            succeeded: succeeded.iter().copied().collect(),
            failed: failed.iter().copied().collect(),
            why: why.map(Into::into),
        };
        let invalid = || What::BatchFailed(BatchEnd::Failed("the response is not JSON".into()));
        for (how, reported, wanted) in [
            (
                InvocationEnd::Returned,
                reported(&["a"], &["b"], None),
                [("a", What::Answered(Answer::Done)), ("b", What::Answered(Answer::Failed))],
            ),
            (
                InvocationEnd::Returned,
                reported(&[], &["a", "b"], Some("the response is not JSON")),
                [("a", invalid()), ("b", invalid())],
            ),
            (
                InvocationEnd::TimedOut,
                reported(&[], &["a", "b"], Some("the function timed out")),
                ["a", "b"].map(|id| (id, What::BatchFailed(BatchEnd::TimedOut))),
            ),
        ] {
            let events = [ended(how), reported].map(|what| Event::new(1, what).invocation(&"i".into()));
            let told = facts(&events, &BTreeSet::from(["a", "b"]));
            let told: Vec<_> = told.iter().map(|fact| (fact.message.as_str(), fact.what.clone())).collect();
            assert_eq!(told, wanted);
        }
    }

    /// A list asks of each message by itself.
    #[test]
    fn of_a_batch_only_those_are_told_that_were_asked_for() {
        let ids: Vec<_> = (0..10_000).map(|n| n.to_string()).collect();
        let messages = || ids.iter().map(String::as_str).collect();
        let (about, why) = (BTreeSet::from(["77"]), Some("the response is not JSON".into()));
        for what in [
            Happened::InvocationBegan { messages: messages(), deadline_ms: 1 },
            Happened::Reported { succeeded: messages(), failed: messages(), why: None },
            Happened::Reported { succeeded: messages(), failed: messages(), why },
        ] {
            let event = Event::new(1, what);
            let told = happened(&event, &BTreeSet::new(), &about);
            assert!(!told.is_empty() && told.iter().all(|(id, _)| *id == "77"), "{}", told.len());
        }
    }

    #[test]
    fn a_fault_that_acts_again_and_again_is_one_fact() {
        let fault = |at_ms, did| {
            let messages = ["a", "b"].into_iter().collect();
            Event::new(at_ms, Happened::TableFault { did, of: "claims", messages })
        };
        let events = [fault(1, "throttle"), fault(2, "throttle"), fault(3, "lose")];
        let told: Vec<_> = facts(&events, &BTreeSet::from(["a"])).into_iter().map(|fact| fact.what).collect();
        let wanted =
            [("The table throttled a claim of its key", 2), ("The table's answer to a claim of its key was lost", 1)];
        assert_eq!(told, wanted.map(|(did, times)| What::Fault { did: did.to_owned(), times }));
    }
}
