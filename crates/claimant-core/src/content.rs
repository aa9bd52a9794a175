//! What is decoded of a message, and what errors call it.

use std::borrow::Cow;

use crate::event::Event;
use crate::rejection::{Fault, Rejection};

/// What errors call the body.
const BODY: &str = "the body";

/// What errors call what an envelope holds that gives it no name.
const UNNAMED: &str = "what the envelope holds";

/// What an envelope held.
#[derive(Clone)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    /// What errors call it.
    pub(crate) name: Cow<'static, str>,
    /// Whether its lines and bytes are those of a text that one can look at.
    has_places: bool,
    /// `None` where it was only packed.
    pub(crate) event: Option<Event>,
}

impl Content {
    pub(crate) fn new(bytes: Vec<u8>, event: Option<Event>) -> Self {
        Self { bytes, name: UNNAMED.into(), has_places: false, event }
    }

    /// Returns a body as a content of which something is said.
    pub(crate) fn of_body(body: &str) -> Self {
        Self { bytes: body.into(), name: BODY.into(), has_places: true, event: None }
    }

    pub(crate) fn set_name(&mut self, name: Cow<'static, str>, has_places: bool) {
        (self.name, self.has_places) = (name, has_places);
    }
}

/// Returns the rejection of a content with this fault, which is an envelope or what is in one. Without a content it is the body.
pub(crate) fn rejection(content: Option<&Content>, envelope: Option<&str>, fault: Fault) -> Rejection {
    let (name, has_places) = content.map_or((BODY, true), |content| (&*content.name, content.has_places));
    let fault = if has_places { fault } else { fault.without_place() };
    Rejection::new(match envelope {
        None => format!("{name} {fault}"),
        Some(envelope) if name == BODY => format!("{envelope} {fault}"),
        Some(envelope) => format!("{envelope} in {name} {fault}"),
    })
}
