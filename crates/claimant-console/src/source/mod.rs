//! What a page can know, of a local cloud or of a deployed stack.
//!
//! | module | holds |
//! | --- | --- |
//! | `overview` | queues, functions and outcomes at one time |
//! | `messages` | the list of messages: what is asked for, and a page of it |
//! | `message` | one message: what happened to it, and what it holds |
//! | `local_message`, `local_messages` | the same, from a local cloud's journal |
//! | `local` | [`LocalCloud`]: the source that sees a local cloud from within |
//! | `deployed` | [`Deployed`]: the source that asks AWS's APIs |
//!
//! What a source cannot tell is an error that says so, and its page shows that.

mod deployed;
mod local;
mod local_message;
mod local_messages;
mod message;
mod messages;
mod overview;

use std::collections::BTreeMap;
use std::time::Duration;

use claimant_core::{Error, ErrorKind};
use claimant_operate::target::Place;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

pub use deployed::Deployed;
pub use local::LocalCloud;
pub use message::MessageFacts;
pub(crate) use messages::STANDINGS;
pub use messages::{MessageList, MessageQuery, MessageRow, PAGE_MAX};
pub use overview::{ConsumerState, FunctionCounts, FunctionState, MappingState, Overview, QueueCounts, QueueState};

/// What a source answers.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// What a page can know. What it does goes through `claimant-operate`, on [`place`](Self::place).
pub trait Source: Send + Sync {
    /// Returns what it is, for people: `the local cloud of template.yaml`.
    fn name(&self) -> String;

    /// Returns what acts work on.
    fn place(&self) -> &Place;

    /// Returns the values that the parameters of the place's template were given, beside their defaults. Some may be secrets.
    fn parameters(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Returns whether acts are allowed.
    fn allows_writes(&self) -> bool {
        true
    }

    /// Returns the clock-skew margin of the consumers, where they have one of their own.
    fn skew(&self) -> Option<Duration> {
        None
    }

    /// Returns whether it is so cheap to ask that it is asked every second, for the plot, and pages ask again by themselves.
    fn is_sampled(&self) -> bool {
        true
    }

    /// Returns what grows whenever something changes that a page shows.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Returns queues, functions and outcomes.
    fn overview(&self) -> Answer<'_, Overview>;

    /// Returns a page of messages, the newest first.
    fn messages<'a>(&'a self, query: &'a MessageQuery) -> Answer<'a, MessageList> {
        let _ = query;
        cannot_tell(&self.name(), "which messages there were")
    }

    /// Returns what is known of a message; `None` where nothing is.
    fn message<'a>(&'a self, id: &'a str) -> Answer<'a, Option<MessageFacts>> {
        let _ = id;
        cannot_tell(&self.name(), "what happened to a message")
    }

    /// Returns the ids of the latest messages that are known to have a key, by its record's id, as many as asked for, and the number of all;
    /// none where that is not known.
    fn messages_of_key<'a>(&'a self, key: &'a str, max: usize) -> Answer<'a, (Vec<String>, usize)> {
        let _ = (key, max);
        Box::pin(async { Ok((Vec::new(), 0)) })
    }
}

/// Answers that the source of this name cannot tell something, such as `which messages there were`.
fn cannot_tell<T: Send>(name: &str, what: &str) -> Answer<'static, T> {
    let error = Error::new(format!("{name} cannot tell {what}")).of_kind(ErrorKind::Unavailable);
    Box::pin(async move { Err(error) })
}
