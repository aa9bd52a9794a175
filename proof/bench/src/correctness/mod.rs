//! What becomes of messages when something goes wrong: the same scenarios for every contestant, on the same kind of store.
//!
//! Each is judged from outside: by which handlers ran, and which messages were reported failed. A message that is not
//! reported failed is acknowledged: SQS deletes it. Nothing is decided by how long something took; what has to become true
//! is waited for.

mod scenarios;
mod stage;

use claimant_core::Error;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::args::Peers;
use crate::field::{Entry, FIELD};
use crate::store::Store;
pub(crate) use scenarios::Scenario;
use stage::Stage;

/// How many contestants play at once: most of the time they wait for leases to end.
const AT_ONCE: usize = 3;

/// Long enough for two claims that are sent at once to come before the first one's completion.
const LATENCY_MS: u64 = 50;

/// What a cell of the table says, beside its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// As one would want it.
    Good,
    /// Nothing is lost and nothing is done twice, but it costs something, or is a matter of choice.
    Price,
    /// Work is lost or done twice, or another worker's claim is not safe.
    Bad,
}

/// What was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) mark: Mark,
    pub(crate) words: &'static str,
}

impl Seen {
    const fn good(words: &'static str) -> Self {
        Self { mark: Mark::Good, words }
    }

    const fn price(words: &'static str) -> Self {
        Self { mark: Mark::Price, words }
    }

    const fn bad(words: &'static str) -> Self {
        Self { mark: Mark::Bad, words }
    }
}

/// What was seen of one contestant, in the order of [`Scenario::ALL`]; or why it did not play.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) entry: &'static Entry,
    pub(crate) seen: Result<Vec<Seen>, String>,
}

/// Has every contestant play every scenario.
///
/// # Errors
/// When the store fails, or one of this repository's own contestants does.
pub(crate) async fn run(peers: &Peers) -> Result<Vec<Played>, Error> {
    eprintln!("bench: what becomes of messages when something goes wrong");
    let store = Store::start(&FIELD.each_ref().map(|entry| entry.name)).await?;
    store.set_latency(LATENCY_MS);
    let endpoint = store.endpoint();
    stream::iter(&FIELD).map(|entry| one(entry, peers, &endpoint)).buffered(AT_ONCE).try_collect().await
}

async fn one(entry: &'static Entry, peers: &Peers, endpoint: &str) -> Result<Played, Error> {
    if let Some(why) = entry.not_played {
        return Ok(Played { entry, seen: Err(why.to_owned()) });
    }
    match play(entry, peers, endpoint).await {
        Err(e) if entry.ours => Err(e),
        Err(e) => {
            eprintln!("bench: {} does not play: {e:?}", entry.title);
            Ok(Played { entry, seen: Err(e.to_string()) })
        }
        Ok(seen) => Ok(Played { entry, seen: Ok(seen) }),
    }
}

async fn play(entry: &'static Entry, peers: &Peers, endpoint: &str) -> Result<Vec<Seen>, Error> {
    let mut stage = Stage::new(entry, peers, endpoint).await?;
    let mut all = Vec::new();
    for scenario in Scenario::ALL {
        let seen = scenario.play(&mut stage).await?;
        eprintln!("bench: {}: {}: {}", entry.title, scenario.title(), seen.words);
        all.push(seen);
    }
    Ok(all)
}
