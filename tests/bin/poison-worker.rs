//! A function whose messages end its process: `{"id": …, "kills": true}` aborts it, as a stack that overflows does; any other
//! message takes two seconds, or as many milliseconds as `takes_ms` says, and is then a line in the file `EFFECTS_FILE`.

use std::io::Write as _;
use std::time::Duration;

use claimant::dynamodb::LockTable;
use claimant::{Consumer, Context, HandlerError, Lease, limits};
use serde::Deserialize;

const WORK_MS: u64 = 2_000;

/// Long enough for renewed leases to hide the messages beside it: they then come back soon.
const FUSE: Duration = Duration::from_millis(1_500);

#[derive(Debug, Deserialize)]
struct Work {
    id: String,
    #[serde(default)]
    kills: bool,
    takes_ms: Option<u64>,
}

async fn work(work: Work, effects: String) -> Result<(), HandlerError> {
    if work.kills {
        tokio::time::sleep(FUSE).await;
        std::process::abort();
    }
    tokio::time::sleep(Duration::from_millis(work.takes_ms.unwrap_or(WORK_MS))).await;
    let mut effects = std::fs::OpenOptions::new().create(true).append(true).open(effects)?;
    effects.write_all(format!("{}\n", work.id).as_bytes())?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let effects = variables.text("EFFECTS_FILE");
    let table = LockTable::from_variables(variables).await?;
    let handler = move |payload, _: Context| work(payload, effects.clone());
    let consumer = Consumer::new("poison", table, handler)
        .key(|work| &work.id)
        .lease(Lease::Renewed(Duration::from_millis(limits::LEASE_MIN_MS)));
    claimant::lambda::run(consumer).await
}
