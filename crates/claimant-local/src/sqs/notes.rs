//! What a queue writes into the journal.

use super::message::{AttributeValue, attributes_json};
use super::queued::Message;
use crate::journal::{Event, Journal, Text, What};

/// The attribute in which claimant's copy in a dead-letter queue names the message that it is a copy of.
const COPY_OF: &str = "claimant-message-id";

/// What only a copy has that is sent back, and what only one has that a function sent to the dead-letter queue: the outcome.
const REDRIVES: &str = "claimant-redrives";
const OUTCOME: &str = "claimant-outcome";

/// A queue's hand in the journal.
#[derive(Debug, Default)]
pub(super) struct Notes {
    journal: Journal,
    queue: Option<Text>,
}

impl Notes {
    pub(super) fn new(journal: Journal, queue: &str) -> Self {
        let queue = journal.is_on().then(|| queue.into());
        Self { journal, queue }
    }

    /// Writes what happened to a message of the queue.
    pub(super) fn write(&self, now_ms: u64, message_id: &str, what: impl FnOnce() -> What) {
        self.journal.write(|| Event { queue: self.queue.clone(), ..Event::new(now_ms, what()).message(message_id) });
    }

    /// Keeps what a message holds.
    fn keep(&self, message_id: &str, Message { content, .. }: &Message) {
        let attributes = if self.journal.is_on() { attributes_json(&content.attributes) } else { String::new() };
        self.journal.keep_body(message_id, &content.body, &attributes);
    }

    /// Writes that the queue accepted a message, which can be received from then on.
    pub(super) fn sent(&self, now_ms: u64, visible_at_ms: u64, message: &Message) {
        self.keep(&message.id, message);
        self.write(now_ms, &message.id, || {
            let has = |name| message.content.attributes.contains_key(name);
            let redriven = has(REDRIVES) && !has(OUTCOME);
            let copy_of = message.content.attributes.get(COPY_OF).and_then(|attribute| match &attribute.value {
                AttributeValue::Text(id) => Some(id.into()),
                AttributeValue::Binary(_) => None,
            });
            What::Sent { visible_at_ms, group: message.group_id.as_ref().map(Text::from), copy_of, redriven }
        });
    }

    /// Writes that a message of a dead-letter queue was sent on as a new one.
    pub(super) fn redriven(&self, now_ms: u64, message_id: &str, message: &Message, from: &str) {
        self.keep(message_id, message);
        self.write(now_ms, message_id, || What::Redriven {
            from: from.into(),
            was: message.id.as_str().into(),
            group: message.group_id.as_ref().map(Text::from),
        });
    }

    /// Writes what happened to all messages of the queue at once.
    pub(super) fn of_all<'a>(&self, now_ms: u64, messages: impl Iterator<Item = &'a Message>, what: fn() -> What) {
        messages.for_each(|message| self.write(now_ms, &message.id, what));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::account::Account;
    use super::super::attributes::Attributes;
    use super::super::message::{MessageAttribute, NewMessage};
    use super::super::settings::{QueueSettings, Redrive};
    use super::*;

    fn account(journal: &Journal) -> Account {
        let mut account = Account::default();
        account.journal = journal.clone();
        let redrive = Some(Redrive { dead_letter_queue: "dead".to_owned(), max_receive_count: 1 });
        for (name, redrive) in [("dead", None), ("orders", redrive)] {
            let settings = QueueSettings { redrive, retention: Duration::from_secs(60), ..QueueSettings::default() };
            account.create(0, name, Attributes::new(settings)).unwrap();
        }
        account
    }

    /// What the journal has of a message: time, queue, and the word of each event.
    fn story(journal: &Journal, id: &str) -> String {
        let word = |event: Event| {
            let json = serde_json::to_value(&event).unwrap();
            let word = json["what"].as_str().unwrap().to_owned();
            let until = json.get("until_ms").or(json.get("hidden_until_ms")).map(|until| format!(" until {until}"));
            format!("{} {} {word}{}", event.at_ms, event.queue.unwrap(), until.unwrap_or_default())
        };
        journal.of_message(id).into_iter().map(word).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_queue_tells_what_happens_to_its_messages() {
        let journal = Journal::new();
        let mut account = account(&journal);
        let grouped = NewMessage { group_id: Some("g".to_owned()), ..NewMessage::new("x") };
        let id = account.send(1, "orders", grouped).unwrap().message_id;
        let received = account.receive(2, "orders", 1, Some(Duration::from_secs(5))).unwrap();
        account.change_visibility(3, "orders", &received[0].receipt_handle, Duration::from_secs(1)).unwrap();
        assert!(account.receive(1_003, "orders", 1, None).unwrap().is_empty());
        account.start_move(1_004, "dead", None, None).unwrap();
        let redriven = account.receive(1_005, "orders", 1, Some(Duration::from_secs(9))).unwrap();
        account.delete(1_006, "orders", &redriven[0].receipt_handle).unwrap();

        assert_eq!(
            story(&journal, &id),
            "1 orders sent, 2 orders received until 5002, 3 orders hidden until 1003, 1003 dead dead_lettered, 1004 orders redriven"
        );
        assert_eq!(
            story(&journal, &redriven[0].message_id),
            "1004 orders redriven, 1005 orders received until 10005, 1006 orders deleted"
        );
        let group = |id: &str| journal.of_message(id).remove(0).group().cloned();
        assert_eq!([group(&id), group(&redriven[0].message_id)], [Some("g".into()), Some("g".into())]);
        let dead = journal.of_message(&id).remove(3).what;
        assert_eq!(dead, What::DeadLettered { from: "orders".into(), receives: 1 });
    }

    #[test]
    fn what_was_too_old_and_what_is_a_copy_is_said() {
        let journal = Journal::new();
        let mut account = account(&journal);
        let old = account.send(0, "orders", NewMessage::new("x")).unwrap().message_id;
        account.queue("orders").unwrap().depth(60_000);
        assert_eq!(story(&journal, &old), "0 orders sent, 60000 orders expired");

        let attribute = MessageAttribute { data_type: "String".to_owned(), value: AttributeValue::Text(old.clone()) };
        let message_attributes = BTreeMap::from([(COPY_OF.to_owned(), attribute)]);
        let copy = NewMessage { message_attributes, ..NewMessage::new("x") };
        account.send(60_001, "dead", copy).unwrap();
        assert_eq!(story(&journal, &old), "0 orders sent, 60000 orders expired, 60001 dead sent");
    }

    #[test]
    fn what_goes_with_its_queue_is_said() {
        let journal = Journal::new();
        let mut account = account(&journal);
        let mut send = |at_ms| {
            let id = account.send(at_ms, "orders", NewMessage::new("x")).unwrap().message_id;
            account.receive(at_ms, "orders", 1, Some(Duration::from_secs(5))).unwrap();
            id
        };
        let (purged, also) = (send(1), send(2));
        account.queue("orders").unwrap().purge(3, "orders").unwrap();
        let last = account.send(4, "orders", NewMessage::new("x")).unwrap().message_id;
        account.remove(5, "orders").unwrap();
        assert_eq!(story(&journal, &purged), "1 orders sent, 1 orders received until 5001, 3 orders purged");
        assert_eq!(story(&journal, &also), "2 orders sent, 2 orders received until 5002, 3 orders purged");
        assert_eq!(story(&journal, &last), "4 orders sent, 5 orders queue_deleted");
    }
}
