//! Transactional consumers: what the handler entered is there exactly when its key is completed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::{
    Consumer, Context, Engine, HandlerError, InvocationTime, Key, Message, Meter, NoQueue, RecordId, Status, Store,
    TransactionGuard,
};
use claimant_testkit::Call::Settle;
use claimant_testkit::outcomes::{Work, message};
use claimant_testkit::{Fault, MemoryTransactions, MovableClock};

use super::{TIMEOUT, words, world};

/// The entries that a handler wants to make, and why its commit fails.
#[derive(Debug, Default)]
struct Draft {
    entries: Vec<String>,
    objection: Option<HandlerError>,
}

/// Transactions that handlers did not give back.
type Kept = Arc<Mutex<Vec<TransactionGuard<Draft>>>>;

async fn enter(
    work: Work,
    mut tx: TransactionGuard<Draft>,
    cx: Context,
    kept: Kept,
) -> Result<Option<String>, HandlerError> {
    tx.entries.push(work.id);
    match work.action.as_str() {
        "ok" => return Ok(Some("entered".to_owned())),
        "fail" => return Err(HandlerError::retry("no luck")),
        "reject" => return Err(HandlerError::terminal("no use")),
        "panic" => panic!("on purpose"),
        "hang" => std::future::pending().await,
        "keep" => kept.lock().unwrap().push(tx),
        "conflict" if cx.attempt() == 1 => tx.objection = Some(HandlerError::retry("conflict")),
        "object" => tx.objection = Some(HandlerError::terminal("no such card")),
        _ => {}
    }
    Ok(None)
}

#[tokio::test(start_paused = true)]
async fn entries_are_there_exactly_when_the_key_is_completed() {
    // What the handler does, and what the deliveries come to; at most once, too: once it has returned, what it did outside may be done.
    let rows = [
        ("ok", "completed duplicate", "completed duplicate"),
        ("fail", "retry retry", "retry retry"),
        ("reject", "rejected rejected", "rejected rejected"),
        ("panic", "retry retry", "parked parked"),
        ("hang", "cancelled cancelled", "parked parked"),
        ("keep", "retry retry", "parked parked"),
        ("conflict", "retry completed", "parked parked"),
        ("object", "rejected rejected", "rejected rejected"),
    ];
    let rows = rows.into_iter().flat_map(|(action, reruns, parks)| [(action, false, reruns), (action, true, parks)]);
    for (action, at_most_once, wanted) in rows {
        let (entries, kept, clock) = (Arc::new(Mutex::new(Vec::new())), Kept::default(), MovableClock::start());
        let made = Arc::clone(&entries);
        let ledger = MemoryTransactions::new(move |draft: Draft| {
            draft.objection.map_or(Ok(()), Err)?;
            made.lock().unwrap().extend(draft.entries);
            Ok(())
        });
        let handler = move |work, tx, cx| enter(work, tx, cx, Arc::clone(&kept));
        let consumer = Consumer::transactional("ledger", ledger.clone(), handler).key(|w: &Work| &w.id);
        let consumer = if at_most_once { consumer.at_most_once() } else { consumer };
        let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(clock));
        let mut seen = Vec::new();
        for delivery in 1..=2 {
            let time =
                InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(MARGIN_DEFAULT_MS));
            let batch = [message(0, &format!("a {action}"), delivery)];
            seen.push(words(&engine.process(&batch, time, &NoQueue).await));
        }
        let status = match seen[1].as_str() {
            "completed" | "duplicate" => Status::Completed,
            "rejected" => Status::Rejected,
            "parked" => Status::Parked,
            _ => Status::Failed,
        };
        let what = format!("{action}, at most once: {at_most_once}");
        assert_eq!(seen.join(" "), wanted, "{what}");
        let entered: &[&str] = if status == Status::Completed { &["a"] } else { &[] };
        assert_eq!(*entries.lock().unwrap(), entered, "{what}");
        let (id, meter) = (RecordId::new(engine.name(), &Key::new("a").unwrap()), Meter::default());
        let call = claimant_core::Call { within: TIMEOUT, meter: &meter };
        assert_eq!(ledger.get(&id, call).await.unwrap().map(|r| r.status), Some(status), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_aborts_is_a_failure_once_and_a_lost_claim_if_the_failure_aborts_too() {
    for (aborts, wanted) in [(0, "completed"), (1, "retry"), (2, "lease_lost")] {
        let world = world(|consumer| consumer);
        (0..aborts).for_each(|_| world.store.fail_next(Settle, Fault::Aborts));
        assert_eq!(words(&world.deliver(&["a ok"], 0).await), wanted, "{aborts}");
    }
}

/// Without a claim beforehand, a transaction can find its key completed. Only work that is done can be done already.
#[tokio::test(start_paused = true)]
async fn a_completion_that_is_refused_is_a_duplicate_and_no_other_ending_is() {
    for (text, wanted) in [("a ok", "duplicate"), ("a fail", "lease_lost"), ("a reject", "lease_lost")] {
        let world = world(|consumer| consumer);
        world.store.fail_next(Settle, Fault::Refuses);
        assert_eq!(words(&world.deliver(&[text], 0).await), wanted, "{text}");
    }
}

/// As an inbox stores messages: what is kept of each, functions of its user say.
#[tokio::test(start_paused = true)]
async fn a_panic_over_what_is_kept_of_a_message_fails_that_message_alone() {
    let entries = Arc::new(Mutex::new(Vec::new()));
    let made = Arc::clone(&entries);
    let ledger = MemoryTransactions::new(move |draft: Draft| {
        made.lock().unwrap().extend(draft.entries);
        Ok(())
    });
    let note = |work: &Work, _: &Message, draft: &mut Draft| {
        assert_ne!(work.action, "panic", "on purpose");
        draft.entries.push(work.id.clone());
        Ok(())
    };
    let engine = Engine::with_defaults(Consumer::storing("intake", ledger, note).key(|w: &Work| &w.id)).unwrap();
    let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(MARGIN_DEFAULT_MS));
    let batch = [message(0, "a panic", 1), message(1, "b ok", 1)];
    assert_eq!(words(&engine.process(&batch, time, &NoQueue).await), "retry completed");
    assert_eq!(*entries.lock().unwrap(), ["b"]);
}
