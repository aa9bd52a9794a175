//! Dead letters of a local cloud, seen without receiving them.

use std::collections::HashMap;
use std::ops::ControlFlow;

use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as System};
use claimant_core::Error;
use serde::Deserialize;

use super::letter::DeadLetter;
use super::queue::DeadLetterQueue;
use super::report::{Observer, Report, Unseen};
use super::selection::Selection;
use super::walk::LOOKED_AT_MAX;
use crate::attribute::Attribute;
use crate::http;

/// Messages of one look.
const PAGE_MAX: usize = 500;

/// Some of the letters of a queue.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The letters that are selected, the oldest first.
    pub letters: Vec<DeadLetter>,
    /// Letters that were looked at.
    pub looked_at: usize,
    /// Where the next page begins; none on the last, and where the queue has no pages.
    pub next: Option<u64>,
    /// What may be left that fits, and no page of it.
    pub unseen: Unseen,
}

/// What an SQS endpoint of a local cloud answers to a look.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    messages: Vec<Seen>,
    next: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Seen {
    position: u64,
    message_id: String,
    body: String,
    body_bytes: usize,
    #[serde(default)]
    attributes: HashMap<String, String>,
    #[serde(default)]
    message_attributes: HashMap<String, Attribute>,
}

impl Seen {
    fn letter(self) -> Option<DeadLetter> {
        let attribute = |(name, attribute): (String, Attribute)| Some((name, attribute.value()?));
        let system = self.attributes.into_iter().map(|(name, value)| (System::from(name.as_str()), value));
        let message = Message::builder()
            .message_id(self.message_id)
            .body(self.body)
            .set_attributes(Some(system.collect()))
            .set_message_attributes(Some(self.message_attributes.into_iter().filter_map(attribute).collect()));
        let mut letter = DeadLetter::read(message.build())?;
        letter.content.body_bytes = self.body_bytes;
        Some(letter)
    }
}

impl DeadLetterQueue {
    /// Returns letters that are selected, `limit` at most, of those after a place: `None` for the first. At most `looks` letters are
    /// looked at, or a few more where they are received.
    ///
    /// Of a local cloud they are seen without being received. Elsewhere they are [read](Self::read), from the first, and there are
    /// no further pages.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub async fn page(
        &self,
        selection: &Selection,
        after: Option<u64>,
        limit: usize,
        looks: usize,
    ) -> Result<Page, Error> {
        selection.check()?;
        let mut page = Page::default();
        if self.looked_at().is_none() {
            let bounds = (selection, limit, looks);
            let mut each = |letter| page.letters.push(letter);
            let report = self.receive_letters(bounds, &mut each, &mut |_| ControlFlow::Continue(())).await?;
            return Ok(Page { looked_at: report.progress.looked_at, unseen: report.unseen, ..page });
        }
        let mut place = after;
        while page.looked_at < looks {
            let looked = self.look(place, (looks - page.looked_at).min(PAGE_MAX)).await?;
            for seen in looked.messages {
                let position = seen.position;
                page.looked_at += 1;
                if let Some(letter) = seen.letter().filter(|letter| selection.fits(letter)) {
                    if page.letters.len() == limit {
                        // The next page begins with this one.
                        page.next = place;
                        return Ok(page);
                    }
                    page.letters.push(letter);
                }
                place = Some(position);
            }
            page.next = looked.next;
            if looked.next.is_none() {
                break;
            }
        }
        Ok(page)
    }

    /// Reads as [`read`](Self::read) does, without receiving.
    pub(super) async fn read_by_looking(
        &self,
        selection: &Selection,
        limit: usize,
        each: &mut (dyn FnMut(DeadLetter) + Send),
        observer: Observer<'_>,
    ) -> Result<Report, Error> {
        let (mut report, mut place) = (Report::default(), None);
        loop {
            let Answer { messages, next } = self.look(place, PAGE_MAX).await?;
            for letter in messages.into_iter().filter_map(Seen::letter) {
                report.progress.looked_at += 1;
                if report.progress.selected < limit && selection.fits(&letter) {
                    report.progress.selected += 1;
                    each(letter);
                }
            }
            let full = report.progress.selected >= limit || report.progress.looked_at >= LOOKED_AT_MAX;
            let ended = observer(report.progress).is_break();
            report.unseen.cut = (full && selection.ids.named.is_empty()) || (ended && next.is_some());
            match next {
                Some(next) if !full && !ended => place = Some(next),
                _ => return Ok(report),
            }
        }
    }

    /// Returns messages after a place.
    async fn look(&self, after: Option<u64>, limit: usize) -> Result<Answer, Error> {
        let endpoint = self.looked_at().unwrap_or_default();
        let after = after.map_or_else(String::new, |after| format!("&after={after}"));
        let body = self.body_max().map_or_else(String::new, |bytes| format!("&body={bytes}"));
        let queue = self.name();
        let answer =
            http::get(&format!("{endpoint}/_claimant/messages?queue={queue}&limit={limit}{after}{body}")).await?;
        serde_json::from_slice(&answer)
            .map_err(|e| Error::new(format!("{endpoint} is no SQS endpoint of a local cloud")).caused_by(e))
    }
}
