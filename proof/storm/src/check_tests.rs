//! The check as a table: one change to a good run, and the fault it must show.

use std::time::Duration;

use fastrand::Rng;

use super::*;
use crate::plan::Extent;
use crate::seen::Record;

fn plan(target: Target) -> Plan {
    target.plan(Extent { pieces: 24, within: Duration::from_secs(10) }, "hush", &mut Rng::with_seed(7))
}

/// A run in which everything is as it should be.
fn good(plan: &Plan) -> (Seen, Traffic) {
    let (mut seen, mut traffic) = (Seen::default(), Traffic::default());
    for piece in &plan.pieces {
        let status = match piece.fate {
            Fate::Done => "COMPLETED",
            Fate::Refused => "REJECTED",
            Fate::Deadly | Fate::InDoubt => "IN_PROGRESS",
        };
        seen.records.insert(piece.key.clone(), Record { status: status.to_owned(), attempts: 2 });
        if piece.fate == Fate::Done {
            seen.effects.insert(piece.key.clone(), vec![piece.effect.clone()]);
            seen.tries.insert(piece.key.clone(), 2);
            seen.completed.insert(piece.body.clone(), 1);
        } else {
            traffic.dead_letters.extend((0..piece.copies).map(|_| piece.body.clone()));
        }
    }
    traffic.dead_letters.extend(plan.broken.iter().cloned());
    traffic.sent = plan.messages.len() as u64;
    traffic.deleted = traffic.sent;
    (seen, traffic)
}

type Change = fn(&Plan, &mut Seen, &mut Traffic);

fn faults(target: Target, change: Change) -> (Verdict, Vec<String>) {
    let plan = plan(target);
    let (mut seen, mut traffic) = good(&plan);
    change(&plan, &mut seen, &mut traffic);
    let verdict = Verdict::new(target, &plan, &seen, &traffic);
    let faults = verdict.faults.clone();
    (verdict, faults)
}

#[test]
fn what_a_storm_may_do_is_no_fault() {
    let nothing: Change = |_, _, _| {};
    let copied_again: Change = |plan, _, traffic| traffic.dead_letters.push(plan.broken[0].clone());
    let mailed_again: Change = |plan, seen, _| {
        let first = &plan.pieces[0];
        seen.effects.get_mut(&first.key).unwrap().push(first.effect.clone());
    };
    for target in Target::ALL {
        let (verdict, faults) = self::faults(target, nothing);
        let effects = if target == Target::Poison { 23 } else { 22 };
        assert_eq!((faults, verdict.work, verdict.effects, verdict.repeated), (vec![], 24, effects, 0), "{target:?}");
    }
    let (verdict, none) = faults(Target::GiftCards, copied_again);
    assert_eq!((none, verdict.letters_repeated), (vec![], 1));
    let (verdict, none) = faults(Target::Orders, mailed_again);
    assert_eq!((none, verdict.repeated), (vec![], 1));
    let redriven: Change = |_, _, traffic| {
        (traffic.sent, traffic.redriven) = (traffic.sent + 2, 2);
        (traffic.deleted, traffic.moved) = (traffic.deleted + 1, 1);
    };
    assert_eq!(faults(Target::Poison, redriven).1, Vec::<String>::new());
    let (_, twice) = faults(Target::Payments, mailed_again);
    assert!(twice[0].contains("more than once"), "{twice:?}");
}

#[test]
fn each_fault_is_seen() {
    let table: [(Change, &str); 19] = [
        (|p, s, _| _ = s.completed.insert(p.pieces[0].body.clone(), 2), "1 were completed more than once"),
        (|_, s, _| s.dropped = Some("bodies"), "the journal has dropped bodies"),
        (|_, s, _| s.completed.clear(), "no function said that it has completed a message"),
        (|p, s, _| drop(s.effects.remove(&p.pieces[0].key)), "1 had no effect"),
        (|p, s, _| drop(s.effects.insert(p.pieces[7].key.clone(), vec!["x".into()])), "were to be refused"),
        (|p, s, _| s.effects.get_mut(&p.pieces[0].key).unwrap().push("1".into()), "more than once"),
        (|p, s, _| s.effects.get_mut(&p.pieces[0].key).unwrap()[0].push('1'), "another effect than was asked for"),
        (|_, s, _| drop(s.effects.insert("eve".into(), vec!["x".into()])), "never sent, and had an effect: eve"),
        (|_, s, _| s.torn.push("card".into()), "do not fit together: card"),
        (|_, s, _| s.overlaps.push("ord".into()), "twice at the same time: ord"),
        (|p, s, _| *s.tries.get_mut(&p.pieces[0].key).unwrap() = 3, "tried more often than their handler was run"),
        (|p, s, _| drop(s.records.remove(&p.pieces[0].key)), "1 are not COMPLETED"),
        (|p, s, _| s.records.get_mut(&p.pieces[7].key).unwrap().status = "COMPLETED".into(), "1 are not REJECTED"),
        (|_, _, t| t.deleted -= 1, "messages, "),
        (|_, _, t| (t.deleted, t.queued) = (t.deleted - 1, 1), "1 messages are still queued"),
        (|_, _, t| drop(t.dead_letters.pop()), "1 of the broken ones were not dead-lettered"),
        (|_, _, t| drop(t.dead_letters.remove(0)), "not all their copies were dead-lettered"),
        (|p, _, t| t.dead_letters.push(p.pieces[0].body.clone()), "were good, and dead-lettered"),
        (|_, _, t| t.dead_letters.push("eve's".into()), "1 bodies in the dead-letter queue were never sent"),
    ];
    for (change, expected) in table {
        let (_, faults) = faults(Target::GiftCards, change);
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{expected}: {faults:?}");
    }
}

#[test]
fn a_deadly_message_is_dead_lettered_and_never_done() {
    let table: [(Change, &str); 3] = [
        (|p, _, t| t.dead_letters.retain(|body| *body != p.pieces[7].body), "not all their copies were dead-lettered"),
        (|p, s, _| s.records.get_mut(&p.pieces[7].key).unwrap().status = "COMPLETED".into(), "end their process"),
        (|p, s, _| drop(s.effects.insert(p.pieces[7].key.clone(), vec!["done".into()])), "were to be refused"),
    ];
    for (change, expected) in table {
        let (_, faults) = faults(Target::Poison, change);
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{expected}: {faults:?}");
    }
}
