//! One message of a local cloud, from its journal.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use claimant_core::{ConsumerName, Key, RecordId};
use claimant_local::journal::{Event, InvocationEnd, Journal, What};

use super::message::MessageFacts;
use crate::timeline::facts_of_journal;

/// Messages of the same keys that are told of, the latest.
const OTHERS_MAX: usize = 20;

/// The latest receives of which it is told what faults did to their processes, and the events that are looked through for each.
const RECEIVES_MAX: usize = 5;
const LOOKED_AT_MAX: usize = 5_000;

/// Returns what the journal has of a message and of those of its keys; `None` where it has nothing of the message.
pub(super) fn message(journal: &Journal, id: &str) -> Option<MessageFacts> {
    let own = journal.of_message(id);
    if own.is_empty() {
        return None;
    }
    let keys = journal.keys_of(id);
    // One of them may be the message itself.
    let of_keys = keys.iter().flat_map(|key| journal.messages_of(key, OTHERS_MAX + 1).0).map(|other| other.to_string());
    // What it was made from, and what was made from it.
    let made = own.iter().filter(|event| matches!(event.what, What::Sent { .. } | What::Redriven { .. }));
    let made = made.flat_map(|event| event.messages().map(ToString::to_string).collect::<Vec<_>>());
    let mut known = HashSet::from([id.to_owned()]);
    // Of many, those of its keys go first.
    let mut others: Vec<_> = of_keys.chain(made).filter(|other| known.insert(other.clone())).collect();
    let others = others.split_off(others.len().saturating_sub(OTHERS_MAX));
    // By number: an event can be about several of them. What happened to a process that had several is told of this one.
    let mut events = BTreeMap::new();
    for (other, of_other) in others.iter().map(|other| (other, journal.of_message(other))) {
        let broken = of_processes(journal, &of_other, other, false);
        events.extend(broken.into_iter().chain(of_other).map(|event| (event.seq, event)));
    }
    let broken = of_processes(journal, &own, id, true);
    events.extend(own.into_iter().chain(broken).map(|event| (event.seq, event)));
    for key in &keys {
        let effects = effects(journal, key, &events);
        events.extend(effects.into_iter().map(|event| (event.seq, event)));
    }
    let events: Vec<_> = events.into_values().collect();
    let about: BTreeSet<_> = others.iter().map(String::as_str).chain([id]).collect();
    Some(MessageFacts {
        facts: facts_of_journal(&events, &about),
        keys: keys.iter().map(ToString::to_string).collect(),
        body: journal.body(id),
        missing: None,
    })
}

/// The effects that were asked for with this key, each with the message that was worked on at that time, and the invocation that had it. What
/// may be of a message of another consumer, which has the same key, is left out: effects do not say who asked for them.
fn effects(journal: &Journal, record: &str, events: &BTreeMap<u64, Event>) -> Vec<Event> {
    let id = RecordId::from_stored(record).ok();
    let Some(key) = id.as_ref().and_then(|id| Key::new(id.key()?).ok()) else { return Vec::new() };
    let effects = journal.effects_of(key.as_str());
    if effects.is_empty() {
        return effects;
    }
    let of_record = |other: RecordId| {
        let events =
            journal.messages_of(other.as_str(), OTHERS_MAX).0.into_iter().flat_map(|id| journal.of_message(&id));
        events.map(|event| (event.seq, event)).collect::<BTreeMap<_, _>>()
    };
    let consumers = journal.consumers();
    let consumers = consumers.iter().filter_map(|name| ConsumerName::new(&**name).ok());
    let of_key = consumers.flat_map(|consumer| RecordId::both(&consumer, &key));
    let others: Vec<_> = of_key.filter(|other| other.as_str() != record).map(of_record).collect();
    let with_message = |effect: Event| {
        let claimed = worked_on(events, effect.at_ms)?;
        let (message_id, invocation) = (claimed.message_id.clone(), claimed.invocation.clone());
        let mut of_others = others.iter().filter_map(|events| worked_on(events, effect.at_ms));
        let is_sure = of_others.all(|other| other.message_id == message_id);
        is_sure.then_some(Event { message_id, invocation, ..effect })
    };
    effects.into_iter().filter_map(with_message).collect()
}

/// The claim of the message that was worked on at this time, by these events of one key.
fn worked_on(events: &BTreeMap<u64, Event>, at_ms: u64) -> Option<&Event> {
    // Lines arrive a moment after what they tell of.
    let before = events.values().filter(|event| event.at_ms <= at_ms.saturating_add(50));
    let mut of_message = before.rev().filter(|event| event.message_id.is_some());
    let claimed = of_message.find(|event| matches!(event.what, What::Claimed(_)))?;
    let receive = events.range(..claimed.seq).rev().find_map(|(_, event)| match event.what {
        What::Received { count, .. } if event.message_id == claimed.message_id => Some(count),
        _ => None,
    });
    let ended = events.range(claimed.seq..).any(|(_, event)| match &event.what {
        // Of several receives that are under way each tells its own outcome.
        What::Done(done) => {
            (done.receive.is_none() || receive.is_none() || done.receive == receive)
                && event.message_id == claimed.message_id
                && event.at_ms < at_ms
        }
        // Of a process that died there is none.
        What::InvocationEnded { .. } => {
            event.invocation.is_some()
                && event.invocation == claimed.invocation
                && event.at_ms.saturating_add(100) < at_ms
        }
        _ => false,
    });
    (!ended).then_some(claimed)
}

/// What faults did to the processes that had a message, while they had it; unless all is asked for, of those that gave no answer.
fn of_processes(journal: &Journal, own: &[Event], id: &str, all_of_them: bool) -> Vec<Event> {
    let began = own.iter().rev().filter(|event| matches!(event.what, What::InvocationBegan { .. }));
    let mut all = Vec::new();
    for began in began.take(RECEIVES_MAX) {
        let ends =
            |event: &&Event| matches!(event.what, What::InvocationEnded { .. }) && event.invocation == began.invocation;
        let end = own.iter().find(ends);
        let answered =
            matches!(end, Some(Event { what: What::InvocationEnded { how: InvocationEnd::Returned, .. }, .. }));
        if answered && !all_of_them {
            continue;
        }
        // Of a kill, the invocation may end before it is written down.
        let end_ms = end.map_or(u64::MAX, |event| event.at_ms.saturating_add(100));
        let later = journal.after(began.seq, LOOKED_AT_MAX).into_iter().take_while(|event| event.at_ms <= end_ms);
        let done = |event: &Event| {
            event.process == began.process
                && matches!(event.what, What::ProcessKilled | What::ProcessFrozen | What::ProcessResumed)
        };
        let of_it = |event: Event| Event { invocation: began.invocation.clone(), ..event.message(id) };
        all.extend(later.filter(done).map(of_it));
    }
    // What is found of two of them is of the later one: it comes last.
    all.reverse();
    all
}

#[cfg(test)]
mod tests {
    use claimant_local::journal::lines;

    use super::*;

    /// The outcome of one receive ends no work of another: what a process that was frozen tells late, and that the next one finds it busy.
    #[test]
    fn an_effect_is_of_the_message_that_was_worked_on_then() {
        let claimed = "INFO message claimed consumer=order message_id=a owner=o fence=2 lease_until=59000 attempt=2 taken_over=true";
        let received = |count| What::Received { count, hidden_until_ms: 61_000 };
        let claimed = || lines::read(claimed).what;
        for (received_and_claimed, outcome, of, is_told) in [
            ([received(1), received(2), claimed()], "lease_lost", 1, true),
            ([received(1), received(2), claimed()], "lease_lost", 2, false),
            ([received(1), claimed(), received(2)], "busy", 2, true),
        ] {
            let done = format!("INFO message done consumer=order message_id=a outcome={outcome} receive_count={of}");
            let journal = Journal::new();
            for what in received_and_claimed {
                journal.write(|| Event::new(31_000, what).message("a").invocation(&"i".into()));
            }
            journal.write(|| Event::new(33_000, lines::read(&done).what).message("a"));
            journal.write(|| Event::new(35_000, What::Mail { key: Some("k".into()), answer: "accepted" }));
            let events = journal.of_message("a").into_iter().map(|event| (event.seq, event)).collect();
            let told = effects(&journal, "order#k", &events);
            assert_eq!(
                told.iter().map(|e| (e.message_id.as_deref(), e.invocation.as_deref())).collect::<Vec<_>>(),
                is_told.then_some((Some("a"), Some("i"))).into_iter().collect::<Vec<_>>(),
                "{outcome} of {of}"
            );
        }
    }

    /// A mail and a charge of one key do not say whose they are.
    #[test]
    fn an_effect_that_may_be_of_another_consumer_is_told_of_none() {
        let journal = Journal::new();
        let line = |at_ms, id: &'static str, text: &str| {
            let what = lines::read(&format!("INFO {text} message_id={id}")).what;
            journal.write(|| Event::new(at_ms, what).message(id).invocation(&format!("i-{id}").into()));
        };
        let key = Key::new("k").unwrap();
        let id_of = |consumer: &str| RecordId::both(&ConsumerName::new(consumer).unwrap(), &key);
        let ([order, _], [payment, _], [_, audit]) = (id_of("order"), id_of("payment"), id_of("audit"));
        for (at_ms, id, record) in [(10, "a", &order), (20, "c", &audit), (500, "b", &payment)] {
            journal.write(|| Event::new(at_ms, What::Received { count: 1, hidden_until_ms: 61_000 }).message(id));
            journal.tie(id, record.as_str());
            let consumer = record.consumer();
            line(
                at_ms,
                id,
                &format!(
                    "message claimed consumer={consumer} owner=o fence=1 lease_until=59000 attempt=1 taken_over=false"
                ),
            );
        }
        // One whose process dies.
        let died = InvocationEnd::Crashed;
        let ended = What::InvocationEnded { messages: ["c"].into_iter().collect(), how: died, detail: None };
        journal.write(|| Event::new(60, ended).invocation(&"i-c".into()));
        line(900, "b", "message done consumer=payment outcome=completed receive_count=1");
        for at_ms in [100, 200, 700, 1_000] {
            journal.write(|| Event::new(at_ms, What::Mail { key: Some("k".into()), answer: "accepted" }));
        }
        for (id, record, wanted) in [("a", order.as_str(), &[200, 1_000][..]), ("b", payment.as_str(), &[])] {
            let events = journal.of_message(id).into_iter().map(|event| (event.seq, event)).collect();
            let told: Vec<_> = effects(&journal, record, &events).iter().map(|event| event.at_ms).collect();
            assert_eq!(told, wanted, "{record}");
        }
    }

    /// Of two invocations in one process, one right after the other, the later one has it.
    #[test]
    fn what_faults_do_to_a_process_is_of_the_invocation_that_it_had() {
        let journal = Journal::new();
        let write = |at_ms, what, invocation: Option<&str>| {
            let event = Event::new(at_ms, what).process(&"order".into(), 1);
            journal.write(|| invocation.map_or(event.clone(), |id| event.invocation(&id.into())));
        };
        let messages = || ["a"].into_iter().collect();
        let began = |deadline_ms| What::InvocationBegan { messages: messages(), deadline_ms };
        write(1, began(90), Some("i"));
        write(2, What::InvocationEnded { messages: messages(), how: InvocationEnd::Returned, detail: None }, Some("i"));
        write(3, began(90), Some("j"));
        write(4, What::ProcessFrozen, None);
        let found: BTreeMap<_, _> =
            of_processes(&journal, &journal.of_message("a"), "a", true).into_iter().map(|e| (e.seq, e)).collect();
        let of: Vec<_> = found.values().map(|e| (e.message_id.as_deref(), e.invocation.as_deref())).collect();
        assert_eq!(of, [(Some("a"), Some("j"))]);
    }
}
