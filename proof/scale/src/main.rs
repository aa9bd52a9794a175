//! `make scale`: runs every case, prints what was measured, and writes it into the book. With a number, all rates are divided by that
//! once more, and nothing is written.

use std::error::Error;
use std::sync::Mutex;
use std::time::Instant;

use claimant_outage::{divisor, write_into};
use claimant_scale::{Case, Seen, cases, minutes, run, staying, table};

/// The chapter, and what is around its tables.
const CHAPTER: &str = "docs/scale.md";
const TABLE: [&str; 2] = ["<!-- by make scale -->\n\n", "\n\n<!-- to here -->"];
const MINUTES: [&str; 2] = ["<!-- by make scale, minutes -->\n\n", "\n\n<!-- to here -->"];

/// Where the runs' randomness comes from.
const SEED: u64 = 7;

/// By more, the smallest partitions take nothing.
const DIVISOR_MAX: u32 = 10;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let by = divisor(std::env::args().nth(1), DIVISOR_MAX)?;
    let all: Vec<_> = [staying()].into_iter().chain(cases()).map(|case| case.divided(by.unwrap_or(1).into())).collect();
    let mut runs = all_of(all)?;
    let (case, seen) = runs.remove(0);
    let (table, minutes) = (table(&runs), minutes(&case, &seen, 10));
    println!("{table}\n\n{minutes}");
    if let Some((case, _)) = runs.iter().chain([&(case, seen)]).find(|(_, seen)| seen.lost + seen.doubled > 0) {
        return Err(format!("{}: messages were lost, or run twice", case.name).into());
    }
    if by.is_some() {
        return Ok(());
    }
    Ok(write_into(CHAPTER, &[(TABLE, &table), (MINUTES, &minutes)])?)
}

/// Runs them on all cores: each has its own time.
fn all_of(cases: Vec<Case>) -> Result<Vec<(Case, Seen)>, Failure> {
    let count = cases.len();
    let (waiting, done) = (Mutex::new(cases.into_iter().enumerate()), Mutex::new(Vec::with_capacity(count)));
    let work = || {
        while let Some((index, case)) = lock(&waiting).next() {
            let start = Instant::now();
            let seen = run(&case, SEED);
            println!("{}: {} s", case.name, start.elapsed().as_secs());
            lock(&done).push((index, seen.map(|seen| (case, seen))));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut done = std::mem::take(&mut *lock(&done));
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, run)| run).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
