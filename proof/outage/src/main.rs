//! `make outage`: runs the outage with each means against it, prints the table, and writes it and the plot into the book.
//! With a number, everything is divided by that, and nothing is written but the plot, into `target/outage.svg`.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use claimant_outage::{Means, Seen, Setting, divisor, plot, table, write_into};

/// The chapter, and what is around its table.
const CHAPTER: &str = "docs/breaker.md";
const TABLE: [&str; 2] = ["<!-- by make outage -->\n\n", "\n\n<!-- to here -->"];

/// By more, there is no invocation.
const DIVISOR_MAX: u32 = 100;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let by = divisor(std::env::args().nth(1), DIVISOR_MAX)?;
    let setting = Setting::whole().divided(by.unwrap_or(1));
    let runs = all(&setting)?;
    let table = table(&setting, &runs);
    println!("{table}");
    // Before anything is written: a page shows no run in which that is so.
    for (means, seen) in &runs {
        let (lost, doubled) = (seen.lost(), seen.doubled());
        if lost + doubled > 0 {
            return Err(format!("{}: {lost} messages are lost, and {doubled} were done twice", means.name()).into());
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if by.is_some() {
        return Ok(std::fs::write(root.join("target/outage.svg"), plot(&setting, &runs))?);
    }
    std::fs::write(root.join("docs/outage.svg"), plot(&setting, &runs))?;
    Ok(write_into(CHAPTER, &[(TABLE, &table)])?)
}

/// Runs them side by side: each has its own time.
fn all(setting: &Setting) -> Result<Vec<(Means, Seen)>, Failure> {
    std::thread::scope(|scope| {
        let run = |means: Means| {
            let start = Instant::now();
            let seen = claimant_outage::run(setting, means)?;
            println!("{}: {} s", means.name(), start.elapsed().as_secs());
            Ok((means, seen))
        };
        let threads: Vec<_> = Means::ALL.map(|means| scope.spawn(move || run(means))).into();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a run has panicked".into()))).collect()
    })
}
