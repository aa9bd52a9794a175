//! The end of an invocation, of one consumer or of several.

use std::collections::HashSet;

use tokio::time::Instant;

use super::Engine;
use super::again::SentAgain;
use super::invocation::Invocation;
use crate::key::ConsumerName;
use crate::message::Message;
use crate::report::{Entry, Outcome, Report};

impl Engine {
    /// Ends an invocation, once it is known what became of `all` of its messages: sends those again that come back later than their queue can
    /// hide them, shows at once those that failed on their last receive, warns of groups that end, ends the spans, and shows duplicates. Where there are several
    /// consumers, `of_each` has a report for each, and any engine can do this: they know the same of the queue.
    pub(crate) async fn finish(
        &self,
        invocation: &Invocation<'_>,
        batch: &[Message],
        all: &mut Report,
        of_each: &mut [(ConsumerName, Report)],
        by: Instant,
    ) {
        let again = SentAgain::of(all.entries(), batch, &invocation.queue, self.now(), by).await;
        for report in std::iter::once(&mut *all).chain(of_each.iter_mut().map(|(_, report)| report)) {
            again.note(&mut report.entries);
            self.show_last_at_once(&mut report.entries);
        }
        if of_each.is_empty() {
            self.warn_if_groups_end(batch, [(self.name(), &*all)]);
        } else {
            self.warn_if_groups_end(batch, of_each.iter().map(|(name, report)| (name, report)));
        }
        invocation.end_spans(all.entries());
        invocation.show_duplicates(by);
    }

    /// Shows at once what failed on its last receive, and is not sent again after all, and what was rejected on it without a dead letter.
    fn show_last_at_once(&self, entries: &mut [Entry]) {
        for entry in entries {
            entry.visible_after = self.0.shown_after(&entry.outcome, entry.details.receive_count, entry.visible_after);
        }
    }

    /// Logs it where messages wait behind a failure of their FIFO group, and hardly come back: once for each group of an invocation.
    fn warn_if_groups_end<'r>(
        &self,
        batch: &[Message],
        reports: impl IntoIterator<Item = (&'r ConsumerName, &'r Report)>,
    ) {
        let mut warned = HashSet::new();
        let entries =
            |(name, report): (&'r ConsumerName, &'r Report)| report.entries().iter().map(move |entry| (name, entry));
        for (consumer, entry) in reports.into_iter().flat_map(entries) {
            let receive_count = entry.details.receive_count;
            if entry.outcome != Outcome::Blocked || !self.0.receives_max.is_nearly_last(receive_count) {
                continue;
            }
            let message = batch.iter().find(|message| *message.id() == entry.message_id);
            if warned.insert(message.and_then(Message::ordered_group)) {
                tracing::warn!(consumer = %consumer, message_id = %entry.message_id, receive_count, "message waits behind one of its FIFO group that fails, and one receive is left at most before both are dead-lettered: with CLAIMANT_DEAD_LETTER_QUEUE_URL and .attempts_max(n), n at most maxReceiveCount - 2, the group goes on before that; a smaller batch takes fewer messages along");
            }
        }
    }
}
