//! The outage at a fiftieth of its size: twenty messages a second.

use std::time::Duration;

use claimant_outage::{Means, Seen, Setting, divisor};

fn run(means: Means) -> (Setting, Seen) {
    let setting = Setting::whole().divided(50);
    let seen = claimant_outage::run(&setting, means).expect("the runtime and the consumer are made");
    assert_eq!((seen.lost(), seen.doubled()), (0, 0), "{means:?}");
    assert!(seen.in_flight_most() <= setting.in_flight_max);
    (setting, seen)
}

#[test]
fn rates_are_divided_by_what_leaves_some() {
    let divided_by = |text: &str| divisor(Some(text.to_owned()), 100);
    assert_eq!((divisor(None, 100), divided_by("1"), divided_by("100")), (Ok(None), Ok(Some(1)), Ok(Some(100))));
    for text in ["0", "101", "abc", "", "-1", "1.5"] {
        assert_eq!(divided_by(text), Err(format!("{text:?}: rates are divided by a whole number from 1 to 100")));
    }
}

#[test]
fn what_is_done_and_dead_makes_up_for_nothing_that_is_lost() {
    let seen = Seen { sent: 4, done: vec![1, 0, 2], dead: vec![0, 3], ..Seen::default() };
    assert_eq!((seen.lost(), seen.doubled()), (1, 1), "the second is lost");
}

#[test]
fn backoff_alone_fills_the_queue_and_dead_letters() {
    let (setting, seen) = run(Means::Backoff);
    assert!(seen.dead.len() > seen.sent / 4, "{}", seen.dead.len());
    assert!(seen.full(setting.in_flight_max) > Duration::from_secs(20 * 60), "{:?}", seen.full(setting.in_flight_max));
    assert_eq!(seen.asked, (0, 0));
}

#[test]
fn an_outage_of_half_an_hour_dead_letters_nothing() {
    let (setting, seen) = run(Means::Hold);
    assert!(seen.dead.is_empty(), "{:?}", seen.dead);
    assert_eq!(seen.full(setting.in_flight_max), Duration::ZERO);
    // Each process fails five to ten times before it knows, with all that runs at once, and then there is a probe a minute.
    let processes = setting.invocations as u64;
    assert!(seen.calls_away <= 10 * processes + 30 + 5, "{}", seen.calls_away);
    // What the book says of costs: a read of each process every 5 s and before each probe, and few writes.
    let (reads, writes) = seen.asked;
    assert!(reads <= processes * (30 * 60 / 5 + 60), "{reads}");
    assert!(writes <= processes + 30 * (2 + processes), "{writes}");
}

#[test]
fn a_pause_keeps_nearly_all_in_the_queue_and_nothing_is_late() {
    let (setting, seen) = run(Means::Pause);
    assert!(seen.dead.is_empty(), "{:?}", seen.dead);
    assert!((2..=5).contains(&seen.pauses), "{}", seen.pauses);
    // Batches of all processes, a few times: each pause begins and ends with some.
    assert!(seen.in_flight_most() <= 4 * setting.invocations * Setting::BATCH, "{}", seen.in_flight_most());
    // They are sent until ten minutes after the outage: by then all is as ever.
    let late = seen.empty.saturating_sub(setting.sent_for);
    assert!(late < Duration::from_secs(120), "{late:?}");
}

#[test]
fn with_a_limit_the_backlog_is_worked_off_at_its_rate() {
    let (setting, seen) = run(Means::Rate);
    assert!(seen.dead.is_empty(), "{:?}", seen.dead);
    let limit = u64::from(setting.limit_per_s);
    let (least, most) = seen.pace(setting.sent_per_s, 60).expect("there is a backlog");
    assert!(least * 100 >= limit * 95 && most * 100 <= limit * 105, "{least} to {most} of {limit}");
    // What `docs/rate.md` promises of each second: 2 % and the slots.
    let bound = limit + limit / 50 + setting.invocations as u64;
    assert!(seen.samples.iter().all(|sample| u64::from(sample.calls) <= bound), "{}", seen.calls_most());
}

#[test]
fn parts_are_written_between_their_markers_all_or_none() {
    let path = std::env::temp_dir().join(format!("claimant-chapter-{}.md", std::process::id()));
    let chapter = path.to_str().expect("a temporary directory with a plain name");
    let read = || std::fs::read_to_string(&path).expect("it was written");
    std::fs::write(&path, "a <1>old</> b <2></> c").expect("temporary files can be written");
    claimant_outage::write_into(chapter, &[(["<1>", "</>"], "new"), (["<2>", "</>"], "x")])
        .expect("both markers are there");
    assert_eq!(read(), "a <1>new</> b <2>x</> c");
    let error = claimant_outage::write_into(chapter, &[(["<1>", "</>"], "lost"), (["<3>", "</>"], "x")])
        .expect_err("one is not");
    assert_eq!(error, format!("{chapter} lacks \"<3>\""));
    assert_eq!(read(), "a <1>new</> b <2>x</> c");
    std::fs::remove_file(&path).expect("it is ours");
}
