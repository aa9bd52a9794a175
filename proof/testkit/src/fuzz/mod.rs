//! Generated inputs: a moment of them in `cargo test`, as many as wanted in `make fuzz`.
//!
//! Made with `proptest`: what fails is made smaller, and its seed is kept beside the crate's sources
//! (`proptest-regressions`) and played again first, in every later run.
//!
//! | module | holds |
//! | --- | --- |
//! | `inputs` | texts that are nearly right: the kept corpus, spoilt here and there; JSON values |
//! | `records` | records, within the bounds of every store |

mod inputs;
mod records;

use std::cell::Cell;
use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

pub use inputs::{Bytes, corpus, json, spoilt};
pub use records::{any_text, records, times};

/// The environment variable that says for how many seconds each target gets inputs, instead of a fixed number of them.
pub const SECONDS_VARIABLE: &str = "CLAIMANT_FUZZ_SECONDS";

/// How many inputs a target gets in `cargo test`, and between two looks at the clock in `make fuzz`.
const ROUND: u32 = 512;

/// Holds `check`, which panics where something is wrong, to generated inputs, and prints how many they were.
///
/// `file` is the caller's `file!()`: the seeds of inputs that fail are kept by it.
///
/// # Panics
/// With the smallest input that was found to fail.
pub fn hold<S: Strategy>(target: &str, file: &'static str, inputs: S, check: impl Fn(S::Value)) {
    let executions = Cell::new(0_u64);
    let begun = Instant::now();
    let period = seconds();
    loop {
        let config = Config {
            cases: ROUND,
            source_file: Some(file),
            failure_persistence: Some(Box::new(FileFailurePersistence::SourceParallel("proptest-regressions"))),
            ..Config::default()
        };
        let found = TestRunner::new(config).run(&inputs, |input| {
            executions.set(executions.get() + 1);
            check(input);
            Ok(())
        });
        if let Err(found) = found {
            panic!("{target}, after {} executions: {found}", executions.get());
        }
        if begun.elapsed() >= period {
            break;
        }
    }
    println!("fuzz: {target}: {} executions in {:.1} s", executions.get(), begun.elapsed().as_secs_f64());
}

/// For how long inputs are wanted; nothing where it is not said, which is one round.
pub(crate) fn seconds() -> Duration {
    let named = std::env::var(SECONDS_VARIABLE).ok();
    let seconds = named.map_or(0, |text| text.parse().unwrap_or_else(|_| panic!("{SECONDS_VARIABLE} is {text:?}")));
    Duration::from_secs(seconds)
}
