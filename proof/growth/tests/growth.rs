//! Each dimension in small: the counts are what they are in large. And the search.

use std::time::Duration;

use claimant_growth::throughput::{Moment, Tried, judged, next};
use claimant_growth::{Extent, Row, Table, run};

fn small() -> Extent {
    Extent {
        records: vec![200, 2_000],
        batches: vec![1, 10],
        keys: vec![100, 1],
        processes: vec![1, 3],
        groups: vec![1, 10],
        messages: 60,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_do_not_grow() {
    let tables = run(&small(), env!("CARGO_BIN_EXE_claimant-growth").into(), |_| {}).await.unwrap();
    let table = |title: &str| tables.iter().find(|table| table.title == title).unwrap();
    // A thread that does not run for some milliseconds sends in two requests what goes into one.
    let about = |is: f64, ought: f64| (ought - 0.01..=ought * 1.5 + 0.01).contains(&is);
    let held = |table: &Table, step: usize, requests: f64, writes: f64, reads: f64| {
        let Row { requests: asked, write_units, read_units, .. } = &table.rows[step];
        let close = |is: f64, ought: f64| (is - ought).abs() < 0.01;
        assert!(
            about(*asked, requests) && close(*write_units, writes) && close(*read_units, reads),
            "{}",
            table.section()
        );
    };
    for step in 0..2 {
        held(table("Records in the table: new messages"), step, 0.2, 2.0, 0.0);
        held(table("Processes, each with keys of its own"), step, 0.2, 2.0, 0.0);
    }
    held(table("Messages in a batch"), 0, 2.0, 2.0, 0.0);
    held(table("Messages in a batch"), 1, 0.2, 2.0, 0.0);
    held(table("Hot keys within a batch"), 1, 0.02, 0.02, 0.0);
    held(table("Groups of a FIFO queue"), 0, 2.0, 2.0, 0.0);
    held(table("Groups of a FIFO queue"), 1, 0.2, 2.0, 0.0);
    let copies = &table("Records in the table: copies of finished work").rows[1];
    assert!(copies.read_units <= 1.01 && copies.requests <= 0.3, "{copies:?}");
    // The handler of each key ran once, whoever got its messages: `run` has checked that.
    let same = table("Processes, all with the same keys");
    assert_eq!(same.rows[1].more[1], same.rows[0].more[1]);
}

#[test]
fn a_verdict_names_what_grows() {
    let first = Row {
        step: "1".into(),
        requests: 0.2,
        write_units: 2.0,
        read_units: 0.0,
        allocations: 100.0,
        cpu_us: 50.0,
        time_us: 80.0,
        peak_mib: 10.0,
        more: Vec::new(),
    };
    let grown = Row { requests: 0.3, read_units: 1.0, time_us: 100.0, peak_mib: 25.0, ..first.clone() };
    assert_eq!(first.verdict(&first), "flat");
    assert_eq!(grown.verdict(&first), "grows: requests 1.50 ×, read units, from 0, memory 2.50 ×");
}

/// The first row may be the dearest, as a batch of one is: what grows after it is seen all the same.
#[test]
fn growth_is_seen_from_the_least_row_on() {
    let row = |step: &str, cpu_us| Row {
        step: step.into(),
        requests: 0.2,
        write_units: 2.0,
        read_units: 0.0,
        allocations: 100.0,
        cpu_us,
        time_us: 80.0,
        peak_mib: 10.0,
        more: Vec::new(),
    };
    let rows = vec![row("1", 329.0), row("100", 23.0), row("1,000", 29.0), row("10,000", 230.0)];
    let table = Table { title: "Messages in a batch", text: String::new(), step: "batch", more: &[], rows };
    let section = table.section();
    let verdicts: Vec<_> = section.lines().skip(6).map(|line| line.rsplit(" | ").next().unwrap()).collect();
    assert_eq!(verdicts, ["flat |", "flat |", "flat |", "grows: processor 10.00 × |"], "{section}");
}

#[test]
fn a_rate_is_held_only_if_it_was_sent() {
    let seen = |sent_per_s: u64, waiting| {
        let moment = |s| Moment { at: Duration::from_secs(s), sent: 7_000 + s * sent_per_s, waiting };
        (2..=6).map(moment).collect::<Vec<_>>()
    };
    assert_eq!(judged(1_000, &seen(1_000, 250)), Tried::Held);
    assert_eq!(judged(1_000, &seen(960, 0)), Tried::Held);
    assert_eq!(judged(1_000, &seen(500, 0)), Tried::NotSent);
    assert_eq!(judged(1_000, &seen(1_000, 251)), Tried::Filled);
    assert_eq!(judged(1_000, &seen(500, 251)), Tried::Filled);
    assert_eq!(judged(1_000, &[]), Tried::NotSent);
}

#[test]
fn the_search_ends_close_to_the_highest_rate() {
    for highest in [1, 37, 200, 1_234, 40_000] {
        let mut tried = Vec::new();
        while let Some(rate) = next(&tried) {
            // What is not held is not sent either, from some rate on.
            let bad = if rate > 10_000 { Tried::NotSent } else { Tried::Filled };
            tried.push((rate, if rate <= highest { Tried::Held } else { bad }));
            assert!(tried.len() < 20, "{tried:?}");
        }
        let found = tried.iter().filter(|(_, came)| *came == Tried::Held).map(|(rate, _)| *rate).max();
        assert!(found.is_some_and(|found| found <= highest && found * 5 >= highest * 4), "{highest}: {tried:?}");
    }
}
