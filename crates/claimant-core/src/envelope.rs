//! What a message's content can be wrapped in.

use crate::event::Event;
use crate::limits::EVENTS_MAX;
use crate::message::Message;
use crate::rejection::Rejection;

/// Opens what the content of a message is wrapped in: for [`Consumer::envelope`](crate::Consumer::envelope).
///
/// A panic in it rejects the message alone.
pub trait Envelope: Send + Sync + 'static {
    /// Returns the message with what its [`content`](Message::content) holds, by [`Message::opened`] or [`Message::unpacked`], and what
    /// errors are to call that, by [`Message::with_content_name`] or [`Message::with_part_name`].
    ///
    /// Several where it holds several events, at most [`EVENTS_MAX`]: each has a key of its own, and the
    /// message is done when all of them are. An event without an id of its own gets that of what is around it, and its number;
    /// without a kind, a source or a subject of its own a copy of that around it, however long that is.
    ///
    /// None where there is nothing to do: the message is done, and its outcome is `empty`.
    ///
    /// # Errors
    /// When the content is no such envelope. The error says what is wrong and where, and quotes nothing: [`Message::rejection_as`] makes it.
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection>;
}

/// Returns what an envelope around several events held, each event with an id of its own: unless its envelope gave it one, that of what was
/// around it and its number, from 1. For an envelope that opens others, one inside the other; for the outermost ones it is done.
#[must_use]
pub fn numbered(around: &Message, inside: Vec<Message>) -> Vec<Message> {
    if inside.len() == 1 {
        return inside;
    }
    (1..).zip(inside).map(|(number, one)| with_own_id(around, one, number)).collect()
}

fn with_own_id(around: &Message, one: Message, number: usize) -> Message {
    // An empty id is none: messages that have nothing in common would share their keys.
    fn id(message: &Message) -> Option<&str> {
        message.event().and_then(|event| event.id.as_deref()).filter(|id| !id.is_empty())
    }
    if id(&one).is_some_and(|given| Some(given) != id(around)) {
        return one;
    }
    let own = around.first_id();
    let of = id(around).unwrap_or(own.as_str());
    let event = Event { id: Some(format!("{of}#{number}")), ..Event::default() };
    one.said(event)
}

/// Checks that a message may hold so many events.
///
/// # Errors
/// When they are more than [`EVENTS_MAX`].
pub fn check_count(events: usize) -> Result<(), Rejection> {
    if events <= EVENTS_MAX {
        return Ok(());
    }
    Err(Rejection::new(format!("the message holds {events} events or more; at most {EVENTS_MAX} are allowed")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_without_an_id_get_that_of_what_is_around_them_and_an_empty_one_is_none() {
        let with = |id: Option<&str>| Event { id: id.map(str::to_owned), ..Event::default() };
        for (id, own, wanted) in [
            (Some("e"), None, ["e#1", "e#2"]),
            (Some("e"), Some(""), ["e#1", "e#2"]),
            (Some(""), None, ["m#1", "m#2"]),
            (Some(""), Some("own"), ["own", "own"]),
            (None, Some(""), ["m#1", "m#2"]),
        ] {
            let around = Message::new("m", "body").unwrap().opened("both", with(id));
            let inside = vec![around.clone().opened("one", with(own)); 2];
            let ids = numbered(&around, inside).into_iter().map(|one| one.event().unwrap().id.clone().unwrap());
            assert_eq!(ids.collect::<Vec<_>>(), wanted);
        }
    }
}
