//! By what messages are routed.

use std::borrow::Cow;
use std::fmt;

use super::field::{self, Unreadable};
use crate::message::Message;

type Rule = Box<dyn Fn(&Message) -> Option<String> + Send + Sync>;

/// By what messages are routed.
pub(crate) enum Selector {
    Attribute(String),
    Kind,
    /// A path through objects.
    Field(Vec<String>),
    Queue,
    Rule(Rule),
}

impl Selector {
    /// Returns the value by which a message is routed; `None` if it has none.
    pub(crate) fn value<'m>(&self, message: &'m Message) -> Result<Option<Cow<'m, str>>, Unreadable> {
        match self {
            Self::Attribute(name) => match message.attribute(name) {
                None => Ok(None),
                Some(_) => match message.require_sent(name) {
                    Ok(value) => Ok(Some(Cow::Borrowed(value))),
                    Err(invalid) => Err(Unreadable::NoValue(invalid.into())),
                },
            },
            Self::Kind => Ok(message.event().and_then(|event| event.kind.as_deref()).map(Cow::Borrowed)),
            Self::Field(path) => Ok(field::read(message, path)?.map(Cow::Owned)),
            Self::Queue => Ok(message.source_arn().map(Cow::Borrowed)),
            Self::Rule(rule) => Ok(rule(message).map(Cow::Owned)),
        }
    }

    /// Returns the shorter value under which a route can be found, too: a queue's name, of its ARN.
    pub(crate) fn short<'v>(&self, value: &'v str) -> Option<&'v str> {
        match self {
            Self::Queue => value.rsplit_once(':').map(|(_, name)| name),
            _ => None,
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(name) => write!(f, "the attribute `{name}`"),
            Self::Kind => f.write_str("the kind that its envelope says"),
            Self::Field(path) => write!(f, "the field `{}`", path.join(".")),
            Self::Queue => f.write_str("the queue that it comes from"),
            Self::Rule(_) => f.write_str("the value that the function's own rule finds"),
        }
    }
}
