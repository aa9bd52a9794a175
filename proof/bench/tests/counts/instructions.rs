//! What a message takes of the processor, held to bounds by the instructions that valgrind counts: they hardly differ between runs and
//! machines.
//!
//! The programs of tests are counted, as they are built for tests: a deployed function, which is optimised more, takes fewer.

use std::env;
use std::process::Command;

use claimant_core::MemoryStore;

use crate::{Function, event, one_thread};

/// How often is counted what takes more than it should: where a busy machine lets a thread stand still, others are started for it.
const TRIES_MAX: usize = 3;

/// Says how large the batches are that valgrind counts, and how many there are.
const COUNTED: &str = "CLAIMANT_COUNTED";

/// What valgrind runs; by itself it does nothing.
#[test]
fn counted() {
    let Ok(text) = env::var(COUNTED) else { return };
    let numbers: Vec<usize> = text.split(' ').map(|number| number.parse().unwrap()).collect();
    let [size, batches] = numbers[..] else { panic!("{COUNTED}={text}") };
    let function = Function::new(one_thread(), MemoryStore::new(), 10);
    let events: Vec<_> = (0..batches).map(|n| event(n * size..(n + 1) * size, "1", 1)).collect();
    // The first one opens what is opened once.
    let (first, others) = events.split_first().unwrap();
    run(&function, first);
    run_counted_batches(&function, others);
}

fn run(function: &Function, event: &[u8]) {
    assert_eq!(function.run(event), br#"{"batchItemFailures":[]}"#);
}

/// A function of its own, by whose name valgrind knows what to count; without a closure, whose name would have this one in it.
#[inline(never)]
fn run_counted_batches(function: &Function, events: &[Vec<u8>]) {
    for event in events {
        run(function, event);
    }
}

/// Returns the instructions of a process that runs so many batches, all but the first.
fn instructions(size: usize, batches: usize) -> u64 {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*run_counted_batches*"]);
    command.arg(env::current_exe().unwrap());
    command.args(["--exact", "instructions::counted"]).env(COUNTED, format!("{size} {batches}"));
    let output = command.output().expect("valgrind is here: scripts/tools services installs it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
    let line = said.lines().find_map(|line| line.split_once("Collected :")).expect("callgrind says it");
    line.1.trim().parse().unwrap()
}

#[test]
#[ignore = "needs valgrind: make test"]
fn a_message_takes_few_instructions() {
    let mut faults = Vec::new();
    for (size, batches, most) in [(1, 41, 412_000), (10, 11, 219_000), (100, 3, 202_000)] {
        let mut least = u64::MAX;
        for _ in 0..TRIES_MAX {
            let each = instructions(size, batches) / (size * (batches - 1)) as u64;
            println!("{size} fresh, in memory: {each} instructions a message");
            assert!(each > most / 2, "not all of it is counted: {each} instructions a message");
            least = least.min(each);
            if least <= most {
                break;
            }
        }
        if least > most {
            faults.push(format!("batches of {size}: {least} instructions a message, at most {most} wanted"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
