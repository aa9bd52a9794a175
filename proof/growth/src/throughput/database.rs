//! The process of the embedded DynamoDB: the template's tables, served over HTTP, and what stands in the lock table at the end.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use claimant_bench::process::say;
use claimant_core::Error;
use claimant_local::dynamodb::{DynamoDb, Item};
use claimant_local::stack::Stack;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;

use super::producer::order_id;

/// Where it is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    pub(super) address: String,
}

/// What is looked for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Look {
    /// The lock table.
    pub(super) table: String,
    /// What the ids of the records begin with.
    pub(super) prefix: String,
    /// How many orders were sent.
    pub(super) sent: u64,
}

/// What stands in the lock table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Orders with a completed record.
    pub(crate) completed: u64,
    /// Runs of handlers, by the records.
    pub(crate) attempts: u64,
    /// Records of no order that was sent, or of work that is not completed.
    pub(crate) strange: u64,
}

/// Serves the tables of a template until standard input ends, and looks into the lock table when it is told so.
///
/// # Errors
/// When it cannot start, or a table cannot be read.
#[tokio::main]
pub async fn serve(template: &Path) -> Result<(), Error> {
    let failed = |e: claimant_local::Error| Error::new("the database did not start").caused_by(e);
    let io = |e: std::io::Error| Error::new("the database did not start").caused_by(e);
    let database = DynamoDb::in_memory().map_err(failed)?;
    for table in Stack::load(template, &BTreeMap::new()).map_err(failed)?.tables {
        database.create_table(&table).map_err(failed)?;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(io)?;
    say(&Ready { address: format!("http://{}", listener.local_addr().map_err(io)?) })?;
    tokio::spawn(database.clone().serve(listener, std::future::pending()));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await.map_err(io)? {
        let look: Look = serde_json::from_str(&line).map_err(|e| Error::new("a task is no JSON").caused_by(e))?;
        say(&found(&database, &look).map_err(|e| Error::new("a table cannot be read").caused_by(e))?)?;
    }
    Ok(())
}

fn found(database: &DynamoDb, look: &Look) -> Result<Found, claimant_local::Error> {
    let mut found = Found::default();
    // A table has each key once: as many as were sent, and none that was not, are all of them.
    let was_sent = |id: &str| {
        let number = id.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
        number.is_some_and(|number| number < look.sent && order_id(number) == id)
    };
    let mut take = |items: Vec<Item>| {
        for item in items {
            let id = item.text("id").and_then(|id| id.strip_prefix(&look.prefix));
            let good = id.is_some_and(was_sent) && item.text("status") == Some("COMPLETED");
            *(if good { &mut found.completed } else { &mut found.strange }) += 1;
            found.attempts += item.number("attempts").and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
        }
        Ok(())
    };
    database.pages(&look.table, &mut take)?;
    Ok(found)
}
