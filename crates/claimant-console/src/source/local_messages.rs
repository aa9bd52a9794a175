//! The list of messages of a local cloud, from its journal.

use std::collections::BTreeMap;

use claimant_core::Timestamp;
use claimant_local::journal::{Event, Journal, What};

use super::messages::{MessageList, MessageQuery, MessageRow, PAGE_MAX};
use crate::timeline::{Standing, facts_of_journal, tell};

/// Messages whose id and keys are compared with a text for one answer. Work is bounded by counts, so that an answer takes its time
/// whatever the machine does.
const COMPARED_MAX: usize = 50_000;

/// Messages whose events are read for one answer.
const READ_MAX: usize = 2_000;

/// Messages that are taken from the journal at once.
const STRIDE: usize = 500;

/// Returns a page of messages, the newest first. A message whose whole id is asked for is found wherever it is.
pub(super) fn list(journal: &Journal, query: &MessageQuery, now: Timestamp) -> MessageList {
    let totals = journal.totals();
    let since_ms = totals.since_ms.filter(|_| totals.events_dropped > 0);
    let mut list = MessageList { known: totals.messages, since_ms, ..MessageList::default() };
    let fits = |row: &MessageRow| {
        query.queue.as_ref().is_none_or(|queue| *queue == row.queue)
            && query.state.is_none_or(|state| state == row.state)
    };
    // Ids have small letters, as SQS's do.
    let id = query.text.as_ref().map(|text| text.to_lowercase());
    if let Some(row) = id.as_ref().and_then(|id| row(journal, id, now)) {
        list.messages.extend(Some(row).filter(fits));
        return list;
    }
    let (mut before, mut compared, mut read) = (query.before.unwrap_or(u64::MAX), 0, 0);
    loop {
        let stride = journal.messages_before(before, STRIDE);
        if stride.is_empty() {
            return list;
        }
        for (seq, id) in stride {
            if list.messages.len() == PAGE_MAX || compared == COMPARED_MAX || read == READ_MAX {
                list.stopped = list.messages.len() < PAGE_MAX;
                list.next = Some(before);
                return list;
            }
            before = seq;
            compared += 1;
            if query.text.as_ref().is_none_or(|text| has(journal, &id, text)) {
                read += 1;
                list.messages.extend(row(journal, &id, now).filter(fits));
            }
        }
    }
}

/// Returns a message as a list shows it; `None` where nothing is known of it any more.
fn row(journal: &Journal, id: &str, now: Timestamp) -> Option<MessageRow> {
    let events = journal.of_message(id);
    let own = || events.iter().filter(|event| event.message_id.as_deref() == Some(id));
    let received = own().filter_map(|event| match event.what {
        What::Received { count, .. } => Some(count),
        _ => None,
    });
    let time = |event: &Event| event.at_ms;
    let mut row = MessageRow {
        id: id.to_owned(),
        queue: own().filter_map(|event| event.queue.as_deref()).next_back().unwrap_or_default().to_owned(),
        state: Standing::Waiting,
        sent_ms: own().next().or(events.first()).map(time)?,
        last_ms: events.last().map(time)?,
        receives: received.max().unwrap_or_default(),
        keys: journal.keys_of(id).iter().map(ToString::to_string).collect(),
        copy_of: own().find_map(|event| match &event.what {
            What::Sent { copy_of, .. } => copy_of.as_ref().map(ToString::to_string),
            _ => None,
        }),
    };
    // Once its function has copied it, it is where the copy in the dead-letter queue is.
    let copies = events.iter().filter(|event| matches!(event.what, What::Sent { redriven: false, .. }));
    let copy = copies.filter_map(|event| event.message_id.clone()).rfind(|copy| **copy != *id);
    let of_copy = copy.as_deref().map(|copy| journal.of_message(copy)).unwrap_or_default();
    let known: BTreeMap<_, _> = events.into_iter().chain(of_copy).map(|event| (event.seq, event)).collect();
    let about = [id].into_iter().chain(copy.as_deref()).collect();
    row.state = tell(facts_of_journal(&known.into_values().collect::<Vec<_>>(), &about), id, now)?.standing;
    Some(row)
}

/// Whether this text is in a message's id or in one of its keys.
fn has(journal: &Journal, id: &str, text: &str) -> bool {
    id.contains(&text.to_lowercase()) || journal.keys_of(id).iter().any(|key| key.contains(text))
}

#[cfg(test)]
mod tests {
    use claimant_local::journal::Done;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn sent(journal: &Journal, id: &str, queue: &str) {
        let what = || What::Sent { visible_at_ms: 1, group: None, copy_of: None, redriven: false };
        journal.write(|| Event::new(1, what()).message(id).queue(&queue.into()));
    }

    fn rejected() -> Done {
        Done {
            consumer: "orders".into(),
            outcome: "rejected".into(),
            dead_lettered: true,
            receive: Some(1),
            events: 1,
            busy_until_ms: None,
            handle_ms: None,
        }
    }

    fn ids(list: &MessageList) -> Vec<&str> {
        list.messages.iter().map(|message| message.id.as_str()).collect()
    }

    #[test]
    fn the_newest_come_first_page_by_page() {
        let journal = Journal::new();
        (0..250).for_each(|n| sent(&journal, &format!("m{n:03}"), "orders"));
        let mut query = MessageQuery::default();
        let mut sizes = Vec::new();
        loop {
            let page = list(&journal, &query, NOW);
            sizes.push((page.messages.len(), page.messages[0].id.clone(), page.stopped));
            let Some(next) = page.next else { break };
            query.before = Some(next);
        }
        assert_eq!(sizes, [(100, "m249".into(), false), (100, "m149".into(), false), (50, "m049".into(), false)]);
    }

    #[test]
    fn what_is_asked_for_is_found() {
        let journal = Journal::new();
        sent(&journal, "a", "orders");
        sent(&journal, "b", "payments");
        journal.tie("b", "payment#p-1");
        let received = || What::Received { count: 2, hidden_until_ms: 2_000_000 };
        journal.write(|| Event::new(5, received()).message("b").queue(&"payments".into()));
        let found = |query: MessageQuery| ids(&list(&journal, &query, NOW)).join(" ");
        assert_eq!(found(MessageQuery::default()), "b a");
        assert_eq!(found(MessageQuery { text: Some("a".into()), before: Some(0), ..MessageQuery::default() }), "a");
        assert_eq!(found(MessageQuery { text: Some("p-1".into()), ..MessageQuery::default() }), "b");
        assert_eq!(found(MessageQuery { text: Some("B".into()), ..MessageQuery::default() }), "b");
        assert_eq!(found(MessageQuery { queue: Some("orders".into()), ..MessageQuery::default() }), "a");
        assert_eq!(found(MessageQuery { state: Some(Standing::InFlight), ..MessageQuery::default() }), "b");
        assert_eq!(found(MessageQuery { text: Some("<script>".into()), ..MessageQuery::default() }), "");
        let row = &list(&journal, &MessageQuery::default(), NOW).messages[0];
        assert_eq!((row.receives, row.sent_ms, row.last_ms), (2, 1, 5));
        assert_eq!(row.keys, ["payment#p-1"]);
    }

    /// A message whose function copied it is in the dead-letter queue only while the copy is.
    #[test]
    fn a_message_is_where_its_copy_is() {
        for (gone, standing) in [
            (None, Standing::DeadLettered),
            (Some(What::Deleted), Standing::Deleted),
            (Some(What::Purged), Standing::Deleted),
            (Some(What::Expired), Standing::Expired),
            (Some(What::Redriven { from: "dead".into(), was: "copy".into(), group: None }), Standing::Redriven),
        ] {
            let journal = Journal::new();
            sent(&journal, "a", "orders");
            let write = |id: &str, queue: &str, what: What| {
                journal.write(|| Event::new(2, what).message(id).queue(&queue.into()));
            };
            let copied = What::Sent { visible_at_ms: 2, group: None, copy_of: Some("a".into()), redriven: false };
            write("a", "orders", What::Received { count: 1, hidden_until_ms: 9 });
            write("copy", "dead", copied);
            write("a", "orders", What::Done(Box::new(rejected())));
            write("a", "orders", What::Deleted);
            if let Some(gone) = gone {
                let id = if matches!(gone, What::Redriven { .. }) { "again" } else { "copy" };
                write(id, "dead", gone);
            }
            assert_eq!(row(&journal, "a", NOW).map(|row| (row.state, row.copy_of)), Some((standing, None)));
            assert_eq!(row(&journal, "copy", NOW).and_then(|row| row.copy_of).as_deref(), Some("a"));
            let asked = MessageQuery { state: Some(Standing::DeadLettered), ..MessageQuery::default() };
            let listed = ids(&list(&journal, &asked, NOW)).contains(&"a");
            assert_eq!(listed, standing == Standing::DeadLettered, "{standing:?}");
        }
    }

    #[test]
    fn a_search_that_finds_little_stops_and_can_go_on() {
        let journal = Journal::new();
        sent(&journal, "wanted", "payments");
        (0..READ_MAX + 7).for_each(|n| sent(&journal, &format!("m{n}"), "orders"));
        let mut query = MessageQuery { queue: Some("payments".into()), ..MessageQuery::default() };
        let first = list(&journal, &query, NOW);
        assert_eq!((first.messages.len(), first.stopped), (0, true));
        query.before = first.next;
        let second = list(&journal, &query, NOW);
        assert_eq!((ids(&second), second.stopped, second.next), (vec!["wanted"], false, None));
    }
}
