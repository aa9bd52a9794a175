//! Batch handlers: how calls are formed, what their items share, and what is in one transaction.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::{
    Call, Clock as _, Consumer, ConsumerName, Engine, Failure, HandlerError, InvocationTime, Item, Items, Key, Lease,
    MemoryStore, Message, Meter, RecordId, Store, SystemClock, TransactionGuard,
};
use claimant_testkit::batch_ledger::{BatchLedger, Draft, TransactionFault};
use claimant_testkit::logs::Logs;
use claimant_testkit::outcomes::{self, Work, World, message};
use claimant_testkit::{DeadLetterQueue, MovableClock, ScriptedQueue};

use super::many::Shared;
use super::support::process;
use super::{TIMEOUT, words};

/// The calls of a handler: the keys of each.
type Calls = Arc<Mutex<Vec<Vec<String>>>>;

fn keys(items: &Items<Work>) -> Vec<String> {
    items.payloads().map(|work| work.id.clone()).collect()
}

fn sizes(calls: &Calls) -> Vec<usize> {
    calls.lock().unwrap().iter().map(Vec::len).collect()
}

fn fresh(count: usize) -> Vec<Message> {
    (0..count).map(|n| message(n, &format!("k{n} ok"), 1)).collect()
}

/// A consumer whose calls take this long.
fn recorded(store: impl Store, calls: &Calls, takes: Duration) -> Consumer<Work> {
    let calls = Arc::clone(calls);
    let handler = move |items: Items<Work>| {
        calls.lock().unwrap().push(keys(&items));
        async move {
            tokio::time::sleep(takes).await;
            Ok::<_, HandlerError>(())
        }
    };
    Consumer::batch("c", store, handler).key(|work: &Work| &work.id)
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_item_do_as_a_handler_of_one_message_does() {
    let store = || Arc::new(MemoryStore::new());
    assert!(outcomes::check_in_calls(store(), TIMEOUT / 2, 1, |_| true).await > 25);
    // What ends a call ends it for all of its items.
    let apart = |case: &outcomes::Case| {
        let mut messages = case.deliveries.iter().flat_map(|delivery| delivery.batch);
        !messages.any(|message| ["panic", "hang", "long"].iter().any(|word| message.contains(word)))
    };
    assert!(outcomes::check_in_calls(store(), TIMEOUT / 2, 10, apart).await > 25);
}

#[tokio::test(start_paused = true)]
async fn calls_are_as_full_as_they_may_be_and_cost_no_request_more() {
    // Messages, items of a call, the calls, requests to the store at most.
    let rows: [(usize, usize, &[usize], usize); 5] = [
        (10, 25, &[10], 2),
        (100, 25, &[25, 25, 25, 25], 8),
        (100, 100, &[100], 8),
        (7, 3, &[3, 3, 1], 2),
        (1_000, 500, &[500, 500], 80),
    ];
    for (count, items, wanted, requests) in rows {
        let (store, calls) = (Shared(Arc::default()), Calls::default());
        let consumer = recorded(store.clone(), &calls, Duration::from_millis(50)).items_max(items);
        let report = process(&Engine::with_defaults(consumer).unwrap(), &fresh(count)).await;
        assert_eq!(report.counts()["completed"], count);
        assert_eq!(sizes(&calls), wanted, "{count} messages, {items} in a call");
        assert!(store.requests() <= requests, "{count}, {items}: {} requests", store.requests());
    }
}

#[tokio::test(start_paused = true)]
async fn the_concurrency_counts_messages_and_has_room_for_a_call() {
    for (set, wanted) in [(None, 40), (Some(80), 80), (Some(4), 4)] {
        let consumer = recorded(MemoryStore::new(), &Calls::default(), Duration::ZERO).items_max(40);
        let consumer = set.into_iter().fold(consumer, Consumer::concurrency);
        assert_eq!(Engine::with_defaults(consumer).unwrap().concurrency(), wanted);
    }
    // Less than a call has items: calls are smaller.
    let calls = Calls::default();
    let consumer = recorded(MemoryStore::new(), &calls, Duration::from_secs(1)).concurrency(4);
    process(&Engine::with_defaults(consumer).unwrap(), &fresh(10)).await;
    assert_eq!(sizes(&calls), [4, 4, 2]);
}

#[tokio::test(start_paused = true)]
async fn settings_of_calls_are_checked() {
    let faults = |consumer: Consumer<Work>| Engine::with_defaults(consumer).unwrap_err().to_string();
    let calls = Calls::default();
    let none = faults(recorded(MemoryStore::new(), &calls, Duration::ZERO).items_max(0));
    assert!(none.contains("the size of a call is 0 items; 1 to 1000 are allowed"), "{none}");
    let single = Consumer::new("c", MemoryStore::new(), |_: Work, _| async { Ok(()) }).items_max(5);
    assert!(faults(single).contains("a size of calls needs a batch handler"));
    let parks = entering(&BatchLedger::default(), &calls).at_most_once();
    assert!(faults(parks).contains("at most once does not go with a batch in a transaction"));
}

#[tokio::test(start_paused = true)]
async fn leases_of_a_call_are_renewed_and_a_lost_one_ends_it() {
    let world_of = |calls, held| {
        let setting: outcomes::Setting = |consumer| consumer.lease(Lease::Renewed(Duration::from_secs(3)));
        let case = outcomes::Case { setting, calls, ..outcomes::Case::default() };
        let mut world = World::of(Arc::new(MemoryStore::new()), TIMEOUT, &case);
        world.queue.held = held;
        world
    };
    let world = |held| world_of(Some(10), held);
    let (good, single) = (world(true), world_of(None, true));
    assert_eq!(words(&single.deliver(&["a long"], 0).await), "completed");
    assert_eq!(words(&good.deliver(&["a long", "b ok"], 0).await), "completed completed");
    // Each item is renewed and hidden as a message is that runs by itself.
    let hidden = |world: &World, index| world.queue.hidden().iter().filter(|(of, _)| *of == index).count();
    assert_eq!([0, 1].map(|index| hidden(&good, index)), [hidden(&single, 0); 2]);
    let lost = world(false);
    let start = tokio::time::Instant::now();
    assert_eq!(words(&lost.deliver(&["a long", "b ok"], 0).await), "lease_lost lease_lost");
    assert!(start.elapsed() < Duration::from_secs(2));
    // One only: its neighbour is cancelled with it.
    let one = world(true);
    let throttled = claimant_testkit::Fault::NotApplied(claimant_core::StoreErrorKind::Throttled);
    for _ in 0..2 {
        one.store.fail_next(claimant_testkit::Call::Renew, throttled);
        one.store.fail_next(claimant_testkit::Call::Renew, claimant_testkit::Fault::Late(Duration::ZERO));
    }
    assert_eq!(words(&one.deliver(&["a long", "b ok"], 0).await), "lease_lost cancelled");
}

/// What a transactional batch handler does, by the words of its items.
async fn enter(
    items: Items<Work>,
    mut tx: TransactionGuard<Draft>,
) -> Result<Vec<Result<(), HandlerError>>, HandlerError> {
    let any = |action| items.payloads().any(|work| work.action == action);
    for work in items.payloads() {
        tx.entries.push(work.id.clone());
    }
    if any("sink") {
        return Err(HandlerError::retry("no luck with any"));
    }
    if any("doom") {
        return Err(HandlerError::terminal("no use for any"));
    }
    if any("object") {
        tx.objection = Some(Failure::terminal("no such card"));
    }
    if any("keep") {
        std::mem::forget(tx);
    }
    if any("hang") {
        std::future::pending::<()>().await;
    }
    assert!(!any("panic"), "on purpose");
    let result = |work: &Work| match work.action.as_str() {
        "fail" => Err(HandlerError::retry("no luck")),
        "reject" => Err(HandlerError::terminal("no use")),
        _ => Ok(()),
    };
    Ok(items.payloads().map(result).collect())
}

fn entering(ledger: &BatchLedger, calls: &Calls) -> Consumer<Work> {
    let calls = Arc::clone(calls);
    let handler = move |items: Items<Work>, tx: TransactionGuard<Draft>| {
        calls.lock().unwrap().push(keys(&items));
        enter(items, tx)
    };
    Consumer::batch_transactional("ledger", Arc::new(ledger.clone()), handler).key(|work| &work.id)
}

#[tokio::test(start_paused = true)]
async fn what_is_in_one_transaction_is_entered_exactly_when_it_is_completed() {
    use TransactionFault::{AnswerLost, NeverArrived, NotBegun};
    // Messages, faults, outcomes, entries, items of each call.
    type Row = (&'static [&'static str], &'static [TransactionFault], &'static str, &'static str, &'static [usize]);
    let rows: [Row; 13] = [
        (&["a ok", "b ok", "c ok"], &[], "completed completed completed", "a b c", &[3]),
        // What failed by itself is left out, and the others are done in the next transaction.
        (&["a ok", "b fail", "c ok"], &[], "completed retry completed", "a c", &[3, 2]),
        (&["a reject", "b fail", "c ok"], &[], "rejected retry completed", "c", &[3, 1]),
        (&["a fail", "b fail"], &[], "retry retry", "", &[2]),
        // What failed as a whole is tried one by one.
        (&["a ok", "b sink", "c ok"], &[], "completed retry completed", "a c", &[3, 1, 1, 1]),
        (&["a ok", "b doom", "c ok"], &[], "completed rejected completed", "a c", &[3, 1, 1, 1]),
        (&["a ok", "b panic", "c ok"], &[], "completed retry completed", "a c", &[3, 1, 1, 1]),
        (&["a ok", "b object", "c ok"], &[], "completed rejected completed", "a c", &[3, 1, 1, 1]),
        (&["a ok", "b keep"], &[], "completed retry", "a", &[2, 1, 1]),
        // Without an answer, the record tells.
        (&["a ok", "b ok"], &[AnswerLost], "completed completed", "a b", &[2]),
        (&["a ok", "b ok"], &[NeverArrived], "completed completed", "a b", &[2, 1, 1]),
        (&["a ok", "b ok"], &[NotBegun], "store_failed store_failed", "", &[]),
        (&["a ok", "b hang"], &[], "cancelled cancelled", "", &[2]),
    ];
    for (batch, faults, wanted, entries, called) in rows {
        let (ledger, calls) = (BatchLedger::failing(faults), Calls::default());
        let engine = Engine::with_defaults(entering(&ledger, &calls)).unwrap();
        let deliver =
            |receives| batch.iter().enumerate().map(|(n, text)| message(n, text, receives)).collect::<Vec<_>>();
        let report = process(&engine, &deliver(1)).await;
        assert_eq!(words(&report), wanted, "{batch:?}, {faults:?}");
        let longest = report.entries().iter().filter_map(|entry| entry.details.settle).max().unwrap_or_default();
        assert_eq!(report.totals.latencies.settle, longest, "{batch:?}, {faults:?}");
        // Whoever asks for the answer waits before.
        assert!(faults != [AnswerLost] || !longest.is_zero(), "{batch:?}, {faults:?}");
        assert_eq!(ledger.entries().join(" "), entries, "{batch:?}, {faults:?}");
        assert_eq!(sizes(&calls), called, "{batch:?}, {faults:?}");
        assert_eq!(ledger.begun(), called.len(), "{batch:?}, {faults:?}: a transaction for each call");
        // And once, however often it comes.
        process(&engine, &deliver(2)).await;
        let again = ledger.entries();
        let done = wanted.split(' ').filter(|word| *word == "completed").count();
        assert!(again.len() >= done && again.windows(2).all(|pair| pair[0] != pair[1]), "{batch:?}: {again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_lost_takes_nothing_with_it() {
    // Another worker takes the key of one while the call runs: its completion is refused, and with it the whole transaction.
    let (ledger, calls) = (BatchLedger::default(), Calls::default());
    let thief = ledger.clone();
    let recorded = Arc::clone(&calls);
    let handler = move |items: Items<Work>, mut tx: TransactionGuard<Draft>| {
        let first = recorded.lock().unwrap().is_empty();
        recorded.lock().unwrap().push(keys(&items));
        let thief = thief.clone();
        async move {
            items.payloads().for_each(|work| tx.entries.push(work.id.clone()));
            if first {
                outcomes::rob(&thief, &items[1].cx, SystemClock.now().plus(TIMEOUT * 100)).await;
            }
            Ok::<_, HandlerError>(())
        }
    };
    let consumer = Consumer::batch_transactional("ledger", ledger.clone(), handler).key(|work: &Work| &work.id);
    let report = process(&Engine::with_defaults(consumer).unwrap(), &fresh(3)).await;
    assert_eq!(words(&report), "completed lease_lost completed");
    assert_eq!((ledger.entries(), sizes(&calls)), (vec!["k0".to_owned(), "k2".to_owned()], vec![3, 1, 1]));
}

/// S11: a transaction can take longer to begin than the leases last, which are not renewed meanwhile.
#[tokio::test(start_paused = true)]
async fn no_call_begins_under_a_lease_that_is_over() {
    let (ledger, clock) =
        (BatchLedger::failing(&[TransactionFault::BegunLate(Duration::from_millis(3_500))]), MovableClock::start());
    let (records, now) = (ledger.clone(), clock.clone());
    let handler = move |items: Items<Work>, _: TransactionGuard<Draft>| {
        let (records, now) = (records.clone(), now.clone());
        async move {
            for Item { cx, .. } in &items {
                let id = RecordId::new(&ConsumerName::new(cx.consumer())?, &Key::new(cx.key())?);
                let meter = Meter::default();
                let record = records.get(&id, Call { within: TIMEOUT, meter: &meter }).await?;
                assert!(record.is_some_and(|record| record.lease_until > now.now()), "the lease is over");
            }
            Ok::<_, HandlerError>(())
        }
    };
    let consumer = Consumer::batch_transactional("ledger", ledger.clone(), handler).key(|work: &Work| &work.id);
    let engine = Engine::with_defaults(consumer.lease(Lease::Renewed(Duration::from_secs(3)))).unwrap();
    assert_eq!(words(&process(&engine.clock(Arc::new(clock)), &fresh(2)).await), "completed completed");
    assert_eq!((ledger.begun(), ledger.rolled_back()), (1, 0));
}

/// Its session is needed for others, and what is only dropped can go back late.
#[tokio::test(start_paused = true)]
async fn a_transaction_without_items_is_rolled_back() {
    let ledger = BatchLedger::failing(&[TransactionFault::BegunLate(Duration::from_millis(3_500))]);
    let consumer = entering(&ledger, &Calls::default()).lease(Lease::Renewed(Duration::from_secs(3)));
    let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(MovableClock::start()));
    // Their messages are not theirs any more, and so are their leases.
    let mut queue = ScriptedQueue::new(DeadLetterQueue::Without);
    queue.held = false;
    let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
    assert_eq!(words(&engine.process(&fresh(2), time, &queue).await), "lease_lost lease_lost");
    assert_eq!((ledger.begun(), ledger.rolled_back()), (1, 1));
}

/// Those that wait for their turns are renewed before them.
#[tokio::test(start_paused = true)]
async fn messages_of_a_call_stay_hidden_until_all_rounds_are_over() {
    let handler = |items: Items<Work>, _: TransactionGuard<Draft>| async move {
        let (takes_ms, result) = if items.len() > 1 { (1_900, Err(HandlerError::retry("all"))) } else { (400, Ok(())) };
        tokio::time::sleep(Duration::from_millis(takes_ms)).await;
        result
    };
    let consumer = Consumer::batch_transactional("ledger", BatchLedger::default(), handler).key(|work: &Work| &work.id);
    let engine = Engine::with_defaults(consumer.lease(Lease::Renewed(Duration::from_secs(3)))).unwrap();
    let (engine, queue) = (engine.clock(Arc::new(MovableClock::start())), ScriptedQueue::new(DeadLetterQueue::Without));
    let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
    assert_eq!(engine.process(&fresh(8), time, &queue).await.counts()["completed"], 8);
    for index in 0..8 {
        let last = queue.hidden().into_iter().rfind(|(of, _)| *of == index).unwrap();
        assert!(last.1 > Duration::from_secs(4), "{last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_there_is_no_time_for_is_released() {
    // Each call takes a third of the time: after the one for all, there is time for one item or two.
    let (ledger, calls) = (BatchLedger::default(), Calls::default());
    let recorded = Arc::clone(&calls);
    let handler = move |items: Items<Work>, _: TransactionGuard<Draft>| {
        recorded.lock().unwrap().push(keys(&items));
        async move {
            tokio::time::sleep(TIMEOUT / 3).await;
            if items.len() > 1 { Err(HandlerError::retry("too many")) } else { Ok(()) }
        }
    };
    let consumer = Consumer::batch_transactional("ledger", ledger.clone(), handler).key(|work: &Work| &work.id);
    let engine = Engine::with_defaults(consumer).unwrap();
    assert_eq!(words(&process(&engine, &fresh(4)).await), "completed not_started not_started not_started");
    // Released, so that this attempt does not count.
    let report = process(&engine, &fresh(4)).await;
    assert_eq!(words(&report), "duplicate completed not_started not_started");
    assert_eq!(ledger.begun(), sizes(&calls).len());
}

/// Levels are set to save logs. What is left of them has to say as much.
#[tokio::test(start_paused = true)]
async fn a_handlers_own_lines_say_what_they_are_about_at_each_level() {
    let alone = |_: Work, _| async {
        tracing::error!("of a message");
        Ok::<_, HandlerError>(())
    };
    let together = |_: Items<Work>| async {
        tracing::error!("of a call");
        Ok::<_, HandlerError>(())
    };
    let alone = Consumer::new("c", MemoryStore::new(), alone).key(|work: &Work| &work.id);
    let together = Consumer::batch("c", MemoryStore::new(), together).key(|work: &Work| &work.id);
    let logs = Logs::record_from(tracing::Level::ERROR);
    for consumer in [alone, together] {
        process(&Engine::with_defaults(consumer).unwrap(), &fresh(1)).await;
    }
    for (line, span) in
        [("of a message", "message{consumer=c message_id=m0 attempt=1}"), ("of a call", "call{consumer=c items=1}")]
    {
        assert!(matches!(&logs.with(line)[..], [one] if one.contains(span)), "{:?}", logs.with(line));
    }
}
