//! Runs one of the examples: `cargo run -p claimant-examples -- leased`. Each file beside this one is a program.

mod support;

/// What each program returns.
type Result = std::result::Result<(), Box<dyn std::error::Error>>;

macro_rules! examples {
    ($($name:ident)*) => {
        $(mod $name;)*

        /// Each program and its name.
        const EXAMPLES: &[(&str, fn() -> Result)] = &[$((stringify!($name), $name::main)),*];
    };
}

examples! {
    at_most_once
    attributes
    batch
    conflicts
    decoders
    envelopes
    inbox
    large_payloads
    leased
    lock_table
    mysql
    mysql_transaction
    notifications
    optimistic
    outbox
    postgres
    postgres_batch
    postgres_transaction
    producer
    redis
    results
    routes
    schedules
    sending
    short_wait
    state
    telemetry
    transaction
    worker
}

fn main() -> Result {
    let asked = std::env::args().nth(1).unwrap_or_default();
    match EXAMPLES.iter().find(|(name, _)| *name == asked) {
        Some((_, example)) => example(),
        None => {
            let names: Vec<_> = EXAMPLES.iter().map(|(name, _)| *name).collect();
            Err(format!("there is no example {asked:?}: name one of {}", names.join(", ")).into())
        }
    }
}
