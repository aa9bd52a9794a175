//! The summary's arithmetic, as a table: one change to a good run, and the fault it must show.

use super::*;

fn mail(workload: &Workload, order: usize) -> Mail {
    let order = &workload.orders[order];
    Mail {
        message_id: String::new(),
        from: "shop@example.com".into(),
        to: vec![order.customer_email.clone()],
        subject: String::new(),
        headers: vec![crate::mailbox::Field { name: KEY_HEADER.into(), value: order.order_id.clone() }],
        tags: vec![],
        text: String::new(),
    }
}

/// A run in which everything is as it should be, its broken bodies moved by the queue.
fn good(workload: &Workload) -> Observed {
    let broken: Vec<_> = workload.broken().map(str::to_owned).collect();
    let orders = workload.orders.len() as u64;
    let messages = workload.messages.len() as u64;
    Observed {
        sent: messages,
        deleted: messages - broken.len() as u64,
        moved: broken.len() as u64,
        queued: 0,
        dead_letters: broken,
        left_for_redelivery: 9,
        handler_runs: orders + 1,
        completed: orders,
        mail_attempts: orders + 1,
        mails: (0..workload.orders.len()).map(|i| mail(workload, i)).collect(),
    }
}

/// One change to a good run.
type Change = fn(&Workload, &mut Observed);

#[test]
fn a_good_run_has_no_fault() {
    let workload = Workload::sample(9, 1, []);
    let copies = workload.messages.len() - workload.orders.len() - workload.broken().count();
    let moved = |_: &Workload, _: &mut Observed| {};
    let copied = |_: &Workload, seen: &mut Observed| {
        seen.deleted = seen.sent;
        seen.moved = 0;
    };
    let crashed_before_its_mail = |_: &Workload, seen: &mut Observed| seen.handler_runs += 1;
    let changes: [Change; 3] = [moved, copied, crashed_before_its_mail];
    for (i, change) in changes.into_iter().enumerate() {
        let mut seen = good(&workload);
        change(&workload, &mut seen);
        let summary = Summary::new(&workload, &seen);
        assert_eq!(summary.faults, [""; 0], "{i}");
        assert_eq!(summary.duplicates_absorbed, copies as i64, "{i}");
        assert_eq!(summary.dead_lettered, 4, "{i}");
        assert_eq!(summary.lost, 0, "{i}");
    }
}

#[test]
fn each_fault_is_seen() {
    let workload = Workload::sample(9, 1, []);
    let table: [(Change, &str); 13] = [
        (|_, seen| drop(seen.mails.remove(0)), "1 orders got no mail: ord-1001"),
        (|w, seen| seen.mails.push(mail(w, 2)), "1 orders got more than one mail: ord-1003"),
        (|_, seen| seen.mails[0].headers.clear(), "belong to no order: (no key)"),
        (|_, seen| seen.mails[0].to = vec!["eve@example.com".into()], "went to another address: ord-1001"),
        (|_, seen| seen.deleted -= 1, "1 messages are lost"),
        (|_, seen| seen.deleted += 1, "1 messages too many"),
        (|_, seen| seen.queued += 1, "1 messages are still queued"),
        (|_, seen| seen.completed -= 1, "shows 8 of 9 orders completed"),
        (|_, seen| seen.mail_attempts += 1, "11 mails were tried in 10 handler runs"),
        (|_, seen| drop(seen.dead_letters.pop()), "1 broken bodies were not dead-lettered"),
        (
            |w, seen| seen.dead_letters.push(w.messages.iter().find(|m| m.order == Some(0)).unwrap().body.clone()),
            "1 good orders were dead-lettered: ord-1001",
        ),
        (|_, seen| seen.dead_letters.push("eve's".into()), "1 bodies in the dead-letter queue were never sent"),
        (|_, seen| seen.sent -= 1, "messages were sent instead of"),
    ];
    for (change, expected) in table {
        let mut seen = good(&workload);
        change(&workload, &mut seen);
        let faults = Summary::new(&workload, &seen).faults;
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{expected}: {faults:?}");
    }
}

#[test]
fn long_lists_are_cut() {
    let workload = Workload::sample(60, 1, []);
    let mut seen = good(&workload);
    seen.mails.clear();
    let faults = Summary::new(&workload, &seen).faults;
    assert!(faults[0].starts_with("60 orders got no mail") && faults[0].ends_with("and 40 more"), "{faults:?}");
}
