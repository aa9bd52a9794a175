//! The summary's arithmetic, as a table: one change to a good run, and the fault it must show.

use super::super::plan::{Random, Repeat, Request};
use super::super::records::Record;
use super::*;

/// Twelve pieces: the third is refused, the fourth and the fifth in doubt, the fifth sent more than once.
fn sample(count: u32) -> Plan {
    let piece = |i, number, _: &mut Random| {
        let fate = match i {
            2 => Fate::Refused,
            3 | 4 => Fate::InDoubt,
            _ => Fate::Done,
        };
        let key = format!("k-{number}");
        let (group, body, effect) = (key.clone(), format!("body of {key}"), format!("for {key}"));
        (Piece { key, group, body, effect, fate, copies: 1 }, Repeat::Usual)
    };
    Request::after(std::iter::empty(), count, 1).plan(piece, &[])
}

fn effect(piece: &Piece) -> Effect {
    Effect { key: piece.key.clone(), what: piece.effect.clone() }
}

/// A run in which everything is as it should be; of those in doubt, the last is parked, and every piece ran once but it.
fn good(plan: &Plan) -> (Seen, Traffic) {
    let parked = |i: usize| i == 4;
    let (mut seen, mut traffic) = (Seen::default(), Traffic::default());
    for (i, piece) in plan.pieces.iter().enumerate() {
        let (status, fence) = match piece.fate {
            Fate::Refused => (Status::Rejected, 1),
            _ if parked(i) => (Status::Parked, 2),
            _ => (Status::Completed, 1),
        };
        seen.records.0.insert(piece.key.clone(), Record { status, fence });
        if status != Status::Rejected {
            seen.effects.push(effect(piece));
        }
        if status != Status::Completed {
            traffic.dead_letters.extend((0..piece.copies).map(|_| piece.body.clone()));
        }
    }
    seen.tries = plan.pieces.len() as u64;
    traffic.dead_letters.extend(plan.broken.iter().cloned());
    traffic.sent = plan.messages.len() as u64;
    traffic.moved = traffic.dead_letters.len() as u64;
    traffic.deleted = traffic.sent - traffic.moved;
    traffic.left_for_redelivery = 9;
    (seen, traffic)
}

/// One change to a good run.
type Change = fn(&Plan, &mut Seen, &mut Traffic);

#[test]
fn a_good_run_has_no_fault() {
    let plan = sample(12);
    let moved: Change = |_, _, _| {};
    let copied: Change = |_, _, traffic| {
        traffic.deleted = traffic.sent;
        traffic.moved = 0;
    };
    let crashed_before_its_effect: Change = |_, seen, _| seen.records.0.get_mut("k-1001").unwrap().fence = 2;
    let parked_before_its_effect: Change = |_, seen, _| seen.effects.retain(|effect| effect.key != "k-1005");
    for (i, change) in [moved, copied, crashed_before_its_effect, parked_before_its_effect].into_iter().enumerate() {
        let (mut seen, mut traffic) = good(&plan);
        change(&plan, &mut seen, &mut traffic);
        let summary = Summary::new(&plan, &seen, &traffic);
        assert_eq!(summary.faults, [""; 0], "{i}");
        let figures = summary.figures;
        let parked = u64::from(plan.pieces[4].copies);
        let copies = (traffic.sent - plan.broken.len() as u64 - 1 - parked) - 10;
        assert_eq!(figures.duplicates, copies, "{i}");
        assert_eq!((figures.work, figures.parked, figures.lost, figures.retries), (12, 1, 0, 9), "{i}");
        assert_eq!(figures.dead_lettered, 1 + parked + plan.broken.len() as u64, "{i}");
    }
}

/// As where each answer of a function is lost.
#[test]
fn work_that_was_never_reported_done_has_no_duplicates() {
    let plan = sample(12);
    let (seen, mut traffic) = good(&plan);
    (traffic.deleted, traffic.queued) = (0, traffic.sent);
    assert_eq!(Summary::new(&plan, &seen, &traffic).figures.duplicates, 0);
}

#[test]
fn each_fault_is_seen() {
    let plan = sample(12);
    let table: [(Change, &str); 19] = [
        (|_, seen, _| drop(seen.effects.remove(0)), "1 had no effect: k-1001"),
        (|w, seen, _| seen.effects.push(effect(&w.pieces[1])), "1 had their effect more than once: k-1002"),
        (|w, seen, _| seen.effects.push(effect(&w.pieces[4])), "1 had their effect more than once: k-1005"),
        (|w, seen, _| seen.effects.push(effect(&w.pieces[2])), "although they were to be refused: k-1003"),
        (|_, seen, _| seen.effects[0].key.clear(), "never sent, and had an effect: (no key)"),
        (|_, seen, _| seen.effects[0].what = "for eve".into(), "another effect than was asked for: k-1001"),
        (|_, seen, _| seen.tries = 99, "99 tries in 13 handler runs"),
        (|_, seen, _| _ = seen.records.0.remove("k-1001"), "1 are not completed by their records: k-1001"),
        (|_, seen, _| _ = seen.records.0.remove("k-1003"), "1 are not rejected by their records: k-1003"),
        (|_, seen, _| _ = seen.records.0.remove("k-1005"), "1 are neither completed nor parked by their records"),
        (|_, _, traffic| traffic.deleted -= 1, "1 messages are lost"),
        (|_, _, traffic| traffic.deleted += 1, "1 messages too many"),
        (|_, _, traffic| traffic.queued += 1, "1 messages are still queued"),
        (|_, _, traffic| traffic.sent -= 1, "messages were sent instead of"),
        (|_, _, traffic| drop(traffic.dead_letters.pop()), "1 were broken, and not dead-lettered"),
        (|_, _, traffic| drop(traffic.dead_letters.remove(0)), "not all their copies were dead-lettered: k-1003"),
        (|w, _, traffic| traffic.dead_letters.push(w.pieces[0].body.clone()), "were good, and dead-lettered: k-1001"),
        (|w, _, traffic| traffic.dead_letters.push(w.broken[0].clone()), "more often than sent: message 1001"),
        (
            |_, _, traffic| traffic.dead_letters.push("eve's".into()),
            "1 bodies in the dead-letter queue were never sent",
        ),
    ];
    for (change, expected) in table {
        let (mut seen, mut traffic) = good(&plan);
        change(&plan, &mut seen, &mut traffic);
        let faults = Summary::new(&plan, &seen, &traffic).faults;
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{expected}: {faults:?}");
    }
}

#[test]
fn long_lists_are_cut() {
    let plan = sample(60);
    let (mut seen, traffic) = good(&plan);
    seen.effects.clear();
    let faults = Summary::new(&plan, &seen, &traffic).faults;
    assert!(faults[0].starts_with("57 had no effect") && faults[0].ends_with("and 37 more"), "{faults:?}");
}
