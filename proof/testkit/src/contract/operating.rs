//! What operators ask of a store: clauses 14 to 17.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use claimant_core::key::RECORD_ID_PLAIN_MAX_BYTES;
use claimant_core::protocol::{Act, ClaimRequest, Ending, OperateDecision, Operation, operate};
use claimant_core::record::{ERROR_MAX_BYTES, NOTE_MAX_BYTES, RESULT_MAX_BYTES};
use claimant_core::{
    Call, Claim, ConsumerName, Cursor, Fence, Filter, Key, Meter, Record, RecordId, Records, Replaced, State, Status,
};
use futures_util::future::join_all;

use super::examiner::{Examiner, Finding, ensure};
use super::scene::{answers, call, fresh_id, granted, look, record, request, settle, time, token};
use super::watched::in_time;
use crate::script::{LEASE_MS, SKEW_MS, done, endings, failed, no_answer, parked, rejected};

/// How many operators write at once.
const OPERATORS: usize = 20;

/// How long a page may take that was given hardly any time.
const HURRY: Duration = Duration::from_secs(1);

pub(super) async fn check(examiner: &mut Examiner, store: &dyn Records) {
    for act in Act::ALL {
        for ending in [None, Some(done()), Some(failed()), Some(rejected()), Some(parked())] {
            let name = format!("{act} of {}", ending.as_ref().map_or(Status::InProgress, Ending::status));
            examiner.hold(14, name, acted(store, act, ending).await);
        }
    }
    examiner.hold(14, "the longest record", longest(store).await);
    examiner.hold(14, "only what was seen is replaced", guarded(store).await);
    examiner.hold(14, "one of many operators writes", raced(store).await);
    examiner.hold(14, "no record comes of nothing", absent(store).await);
    for batched in [false, true] {
        let company = if batched { ", batched" } else { "" };
        examiner.hold(14, format!("a note outlives claims and their ends{company}"), noted(store, batched).await);
    }
    for parts in [1, 4] {
        examiner.hold(15, format!("lists in {parts} parts have what is there"), listed(store, parts).await);
    }
    examiner.hold(15, "the size is known", sized(store).await);
    examiner.hold(16, "a cursor can be followed again, and in a hurry", followed(store).await);
    examiner.hold(16, "a foreign cursor is refused", foreign(store).await);
    examiner.hold(17, "a list changes nothing", untouched(store).await);
}

async fn replace(store: &dyn Records, id: &RecordId, seen: &Record, next: &Record) -> Result<Replaced, String> {
    store.replace(id, seen, next, call(&Meter::default())).await.map_err(|e| no_answer(&e))
}

/// An operation after the lease and its margin are over.
fn operation(id: &RecordId, act: Act) -> Operation {
    Operation {
        id: id.clone(),
        act,
        owner: token(),
        now: time(LEASE_MS + SKEW_MS + 1),
        skew: Duration::from_millis(SKEW_MS),
        force: true,
        by: "ada".into(),
        why: "it's 'ß' \\ \"so\"".into(),
    }
}

fn next_of(seen: &Record, operation: &Operation) -> Option<Record> {
    match operate(Some(seen), operation) {
        OperateDecision::Write(next) => Some(*next),
        _ => None,
    }
}

async fn is(store: &dyn Records, id: &RecordId, wanted: &Record) -> Finding {
    let seen = record(store, id).await?;
    ensure(seen == *wanted, || format!("expected {wanted:?}, saw {seen:?}"))
}

/// What an act makes of a record is there, exactly; and the owner from before can do nothing more.
async fn acted(store: &dyn Records, act: Act, ending: Option<Ending>) -> Finding {
    let id = fresh_id("acted");
    let claim = granted(store, &request(&id, 0)).await?;
    if let Some(ending) = ending {
        settle(store, &claim, ending, 5).await?;
    }
    let seen = record(store, &id).await?;
    let Some(next) = next_of(&seen, &operation(&id, act)) else { return Ok(()) };
    let replaced = replace(store, &id, &seen, &next).await?;
    ensure(replaced == Replaced::Done, || "the record seen was not replaced".into())?;
    is(store, &id, &next).await?;
    let again = replace(store, &id, &seen, &next).await?;
    ensure(again == Replaced::Changed, || "a record that is gone was replaced".into())?;
    let late = super::scene::settled(store, &claim, done(), 10).await?;
    ensure(!late, || "the owner from before has ended the key".into())?;
    is(store, &id, &next).await
}

async fn longest(store: &dyn Records) -> Finding {
    let id = fresh_id("longest");
    let _claim = granted(store, &request(&id, 0)).await?;
    let seen = record(store, &id).await?;
    let next = Record {
        status: Status::Completed,
        owner: token(),
        // As large as every store keeps them.
        fence: Fence::new(u64::MAX >> 1),
        completed_at: Some(time(1)),
        result: Some(format!("\"{}\"", "r".repeat(RESULT_MAX_BYTES - 2))),
        error: Some("é".repeat(ERROR_MAX_BYTES / 2)),
        note: Some("\0".repeat(NOTE_MAX_BYTES)),
        ..seen.clone()
    };
    replace(store, &id, &seen, &next).await?;
    is(store, &id, &next).await
}

/// Each of the four that name a write is compared.
async fn guarded(store: &dyn Records) -> Finding {
    let id = fresh_id("guarded");
    let _claim = granted(store, &request(&id, 0)).await?;
    let there = record(store, &id).await?;
    let Some(next) = next_of(&there, &operation(&id, Act::Release)) else { return Err("it can be released".into()) };
    let others = [
        Record { status: Status::Failed, ..there.clone() },
        Record { owner: token(), ..there.clone() },
        Record { fence: there.fence.next(), ..there.clone() },
        Record { lease_until: time(LEASE_MS + 1), ..there.clone() },
    ];
    for other in others {
        let replaced = replace(store, &id, &other, &next).await?;
        ensure(replaced == Replaced::Changed, || format!("seen was {other:?}, there was {there:?}"))?;
        is(store, &id, &there).await?;
    }
    Ok(())
}

async fn raced(store: &dyn Records) -> Finding {
    let id = fresh_id("raced");
    let _claim = granted(store, &request(&id, 0)).await?;
    let seen = record(store, &id).await?;
    let all = (0..OPERATORS).filter_map(|_| next_of(&seen, &operation(&id, Act::Release)));
    let all: Vec<_> = all.collect();
    let replaced = join_all(all.iter().map(|next| replace(store, &id, &seen, next))).await;
    let mut won = Vec::new();
    for (replaced, next) in replaced.into_iter().zip(&all) {
        if replaced? == Replaced::Done {
            won.push(next);
        }
    }
    ensure(won.len() == 1, || format!("{} of {OPERATORS} writes applied", won.len()))?;
    is(store, &id, won[0]).await
}

async fn absent(store: &dyn Records) -> Finding {
    let (id, other) = (fresh_id("absent"), fresh_id("there"));
    let _claim = granted(store, &request(&other, 0)).await?;
    let seen = record(store, &other).await?;
    let replaced = replace(store, &id, &seen, &seen).await?;
    let now = look(store, &id).await?;
    ensure(replaced == Replaced::Changed && now.is_none(), || format!("{replaced:?}, and then {now:?}"))
}

/// Claims of a released, a failed and an expired key, a renewal and each ending leave the note.
async fn noted(store: &dyn Records, batched: bool) -> Finding {
    for ending in endings() {
        let id = fresh_id("noted");
        let _claim = granted(store, &request(&id, 0)).await?;
        let seen = record(store, &id).await?;
        let at = LEASE_MS + SKEW_MS + 2;
        for act in [Act::Release, Act::Forget] {
            let seen = if act == Act::Release { seen.clone() } else { record(store, &id).await? };
            let Some(next) = next_of(&seen, &operation(&id, act)) else { continue };
            replace(store, &id, &seen, &next).await?;
            let claim = claimed(store, &request(&id, at), batched).await?;
            super::scene::renewed(store, &claim, at + 1, at + LEASE_MS + 1).await?;
            settle(store, &claim, ending.clone(), at + 2).await?;
            let note = record(store, &id).await?.note;
            ensure(note == next.note, || format!("after {act} and {ending:?} it is {note:?}"))?;
        }
    }
    Ok(())
}

async fn claimed(store: &dyn Records, request: &ClaimRequest, batched: bool) -> Result<Claim, String> {
    if batched {
        // That it was granted is seen by the claim that follows, which has the same owner.
        answers(store, std::slice::from_ref(request)).await?;
    }
    granted(store, request).await
}

fn filter(consumer: &ConsumerName, states: &[State]) -> Filter {
    Filter {
        states: states.into(),
        consumer: Some(consumer.clone()),
        written_before: None,
        now: time(LEASE_MS + SKEW_MS + 1),
        skew: Duration::from_millis(SKEW_MS),
    }
}

fn fresh_consumer() -> ConsumerName {
    ConsumerName::new(format!("list-{}", token().as_str())).expect("it is a name")
}

/// Keys of every state and form, of this consumer and of those whose names look like it.
async fn populated(store: &dyn Records, consumer: &ConsumerName) -> Result<BTreeMap<RecordId, Record>, String> {
    let mut all = BTreeMap::new();
    let alike = ["", "-x", "x", "_"].map(|more| format!("{consumer}{more}"));
    for name in alike {
        let name = ConsumerName::new(name).map_err(|e| e.to_string())?;
        let long = "k".repeat(RECORD_ID_PLAIN_MAX_BYTES - name.as_str().len() - 1);
        for (n, text) in ["k", "#", "~", "é 🦀\0%", &long].into_iter().enumerate() {
            let key = Key::new(text).map_err(|e| e.to_string())?;
            for id in [RecordId::new(&name, &key), RecordId::hashed(&name, &key)] {
                // Some are live when the others are stuck.
                let claim = granted(store, &request(&id, if n == 4 { LEASE_MS } else { 0 })).await?;
                let done = Ending::Completed { result: Some("1".into()) };
                let ending = [None, Some(done), Some(failed()), Some(rejected()), Some(parked())];
                if let Some(ending) = ending.into_iter().nth(n % 5).flatten().filter(|_| text != long) {
                    settle(store, &claim, ending, 5 + n as u64).await?;
                }
                all.insert(id.clone(), Record { result: None, ..record(store, &id).await? });
            }
        }
    }
    Ok(all)
}

/// Follows each cursor to its end. No record may be behind two of them.
async fn list(store: &dyn Records, filter: &Filter, parts: usize) -> Result<BTreeMap<RecordId, Record>, String> {
    let meter = Meter::default();
    let mut all = BTreeMap::new();
    let cursors = store.cursors(parts, call(&meter)).await.map_err(|e| no_answer(&e))?;
    ensure(!cursors.is_empty(), || "there is no cursor".into())?;
    for cursor in cursors {
        let (mut from, mut part, mut followed) = (Some(cursor), BTreeSet::new(), BTreeSet::new());
        while let Some(cursor) = from {
            ensure(followed.insert(cursor.as_str().to_owned()), || "a cursor comes again: the list has no end".into())?;
            let page = store.list(filter, &cursor, call(&meter)).await.map_err(|e| no_answer(&e))?;
            ensure(page.records.len() as u64 <= page.looked_at, || "more is listed than was read".into())?;
            for (id, record) in page.records {
                ensure(!all.contains_key(&id) || part.contains(&id), || "a record is behind two cursors".into())?;
                part.insert(id.clone());
                all.insert(id, record);
            }
            from = page.next;
        }
    }
    Ok(all)
}

async fn listed(store: &dyn Records, parts: usize) -> Finding {
    let consumer = fresh_consumer();
    let there = populated(store, &consumer).await?;
    let mut filters = vec![filter(&consumer, &[]), filter(&consumer, &[State::Stuck, State::Parked])];
    filters.extend(State::ALL.map(|state| filter(&consumer, &[state])));
    filters.push(Filter { written_before: Some(time(7)), ..filter(&consumer, &[]) });
    // Of every consumer, those of other checks among them.
    filters.push(Filter { consumer: None, ..filter(&consumer, &[State::Stuck, State::Parked]) });
    for filter in &filters {
        let wanted: BTreeMap<_, _> = there.iter().filter(|(id, record)| filter.matches(id, record)).collect();
        let seen = list(store, filter, parts).await?;
        let seen: BTreeMap<_, _> =
            seen.iter().filter(|(id, _)| there.contains_key(id) || filter.consumer.is_some()).collect();
        ensure(seen == wanted, || {
            format!("{filter:?}: expected {} records, saw {}: {seen:?}", wanted.len(), seen.len())
        })?;
    }
    Ok(())
}

async fn sized(store: &dyn Records) -> Finding {
    let _claim = granted(store, &request(&fresh_id("sized"), 0)).await?;
    store.size(call(&Meter::default())).await.map(drop).map_err(|e| no_answer(&e))
}

async fn followed(store: &dyn Records) -> Finding {
    let consumer = fresh_consumer();
    populated(store, &consumer).await?;
    let filter = filter(&consumer, &[]);
    let (first, second) = (list(store, &filter, 1).await?, list(store, &filter, 1).await?);
    ensure(first == second, || "the second list is another one".into())?;
    let meter = Meter::default();
    let cursors = store.cursors(1, call(&meter)).await.map_err(|e| no_answer(&e))?;
    let hurried = Call { within: Duration::from_millis(1), meter: &meter };
    let page = in_time(HURRY, store.list(&filter, &cursors[0], hurried)).await;
    ensure(page.is_ok(), || "a page takes longer than it may".into())
}

async fn foreign(store: &dyn Records) -> Finding {
    let filter = filter(&fresh_consumer(), &[]);
    let cursor = Cursor::new("no such cursor");
    let page = store.list(&filter, &cursor, call(&Meter::default())).await;
    ensure(page.is_err(), || "it is followed".into())
}

async fn untouched(store: &dyn Records) -> Finding {
    let consumer = fresh_consumer();
    let there = populated(store, &consumer).await?;
    list(store, &filter(&consumer, &[]), 4).await?;
    for (id, wanted) in &there {
        let now = Record { result: None, ..record(store, id).await? };
        ensure(now == *wanted, || format!("expected {wanted:?}, saw {now:?}"))?;
    }
    Ok(())
}
