//! Records by state, consumer, age and text.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use claimant_core::breaker::BREAKER_CONSUMER;
use claimant_core::limit::LIMIT_CONSUMER;
use claimant_core::{ConsumerName, Cursor, Error, Filter, Page, Record, RecordId, Size, State, Status, Timestamp};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use super::access::Keys;
use crate::text::typed;

/// The most records that one list returns.
pub const LIST_MAX: usize = 100_000;

/// How many parts of a store are read side by side, where it has parts.
const PARTS: usize = 8;

/// How often a page is asked for again at most.
const TRIES_MAX: u32 = 5;

/// How long to wait before that; then twice as long each time.
const WAIT_BASE_MS: u64 = 200;

/// The price of a million read units in US dollars: on-demand capacity in `us-east-1`, the same since November 2024.
const DOLLARS_PER_MILLION_READ_UNITS: f64 = 0.125;

/// Which records to list.
#[derive(Debug, Clone)]
pub struct Query {
    /// In one of these states; in any if there are none.
    pub states: Vec<State>,
    /// Of this consumer, if set.
    pub consumer: Option<ConsumerName>,
    /// Last written at least so long ago.
    pub older_than: Option<Duration>,
    /// With this text in the record's id, also as it is [shown](crate::text::typed), its error, its note, or the id of the message that claimed
    /// it last, if set.
    pub text: Option<String>,
    /// How many at most; at most [`LIST_MAX`].
    pub limit: usize,
}

/// One record of a list.
#[derive(Debug, Clone)]
pub struct Found {
    /// The record's id.
    pub id: RecordId,
    /// What is there, without its result.
    pub record: Record,
    /// What that means at the time of the list.
    pub state: State,
}

/// How far a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// How many records were read.
    pub looked_at: u64,
    /// How many of them are to be listed.
    pub found: usize,
}

/// A list.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// The records, those first that were not written for the longest time.
    pub found: Vec<Found>,
    /// Whether the limit ended the list, or the caller, and there can be more.
    pub more: bool,
    /// How many records were read for it.
    pub looked_at: u64,
    /// How many of them claimant did not write. They are left out.
    pub foreign: u64,
}

impl Listed {
    /// Says how many records were left out since claimant did not write them, in a sentence; nothing where there is none.
    #[must_use]
    pub fn left_out_in_words(&self) -> Option<String> {
        let records = match self.foreign {
            0 => return None,
            1 => "1 record is not of the form that claimant writes, and is".to_owned(),
            many => format!("{many} records are not of the form that claimant writes, and are"),
        };
        Some(format!("{records} left out."))
    }
}

/// Where a list of some records goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReadOn {
    /// What is still to be read, by the store's own cursors; the default is everything.
    cursors: Vec<String>,
    /// How many records of the first page there were listed already. One that changed meanwhile can be missed, or listed again.
    listed: usize,
}

impl Query {
    /// Returns what a list has found that found nothing, in a sentence: which keys there are none of.
    #[must_use]
    pub fn none_in_words(&self) -> String {
        let of = self.consumer.as_ref().map_or_else(String::new, |consumer| format!(" of {consumer}"));
        let with = self.text.as_ref();
        let with = with.map_or_else(String::new, |text| format!(" with {text} in its id, error, note or message id"));
        let states: Vec<_> = self.states.iter().map(|state| state.as_str()).collect();
        let (last, others) = states.split_last().unwrap_or((&"there", &[]));
        let states = if others.is_empty() { (*last).to_owned() } else { format!("{} or {last}", others.join(", ")) };
        format!("No key{of}{with} is {states}.")
    }

    fn filter(&self, (now, skew): (Timestamp, Duration)) -> Filter {
        Filter {
            states: self.states.clone(),
            consumer: self.consumer.clone(),
            written_before: self.older_than.map(|age| now.minus(age)),
            now,
            skew,
        }
    }

    /// Returns whether a record that a store has found is meant.
    fn wants(&self, id: &RecordId, record: &Record) -> bool {
        // Of limits, only what an operator has set is listed unasked: it counts for years. Slots are no work, and what was taken
        // back counts no more. Of breakers, those that are not closed.
        let is_shown = match id.consumer() {
            LIMIT_CONSUMER => record.status == Status::Completed && !id.as_str().contains('/'),
            BREAKER_CONSUMER => record.status == Status::InProgress,
            _ => true,
        };
        let is_hidden = self.consumer.is_none() && !is_shown;
        !is_hidden && self.text.as_deref().is_none_or(|text| mentions(id, record, text))
    }
}

/// What reading everything costs, about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// How much there is to read.
    pub size: Size,
    /// In US dollars, on demand in `us-east-1`, from a store that charges by read units.
    pub dollars: Option<f64>,
}

impl Cost {
    fn of(size: Size) -> Self {
        // OK because no table has so many units that a float would not hold them well enough for a price.
        let dollars = size.read_units.map(|units| units as f64 / 1e6 * DOLLARS_PER_MILLION_READ_UNITS);
        Self { size, dollars }
    }

    /// Returns the cost in one sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Size { records, bytes, read_units } = self.size;
        let amount = format!("reads about {} ({})", counted(records, "record"), megabytes(bytes));
        match (read_units, self.dollars) {
            (Some(units), Some(dollars)) if dollars >= 0.01 => {
                format!("{amount}: {}, about ${dollars:.2} on demand", counted(units, "read unit"))
            }
            (Some(units), _) => format!("{amount}: {}, less than a cent on demand", counted(units, "read unit")),
            (None, _) => amount,
        }
    }
}

impl Keys {
    /// Returns what a list costs, from the store's own counts, which can be hours old. Costs one small request.
    ///
    /// # Errors
    /// When the store did not give an answer.
    pub async fn cost(&self) -> Result<Cost, Error> {
        Ok(Cost::of(self.store().size(self.call()).await?))
    }

    /// Lists records: reads the whole store, a few pages side by side, until the limit is reached. `progress` is called after each
    /// round of pages, and can end it there.
    ///
    /// Memory holds the records listed and one page of each part. It is no snapshot: a record that changes meanwhile is listed as it
    /// was or as it is.
    ///
    /// # Errors
    /// When the store did not give an answer, also after a few tries.
    pub async fn list(
        &self,
        query: &Query,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Listed, Error> {
        let filter = query.filter(self.now());
        let limit = query.limit.min(LIST_MAX);
        let mut open = self.store().cursors(PARTS, self.call()).await?;
        // By id: a store can show a record twice.
        let mut found = BTreeMap::new();
        let (mut looked_at, mut foreign, mut more) = (0, 0, false);
        while !open.is_empty() && !more {
            let round = open.len().min(PARTS);
            let pages = join_all(open[..round].iter().map(|from| self.page(&filter, from))).await;
            let mut next = open.split_off(round);
            for page in pages {
                let page = page?;
                looked_at += page.looked_at;
                foreign += page.foreign;
                for (id, record) in page.records {
                    if !query.wants(&id, &record) {
                        continue;
                    }
                    if found.len() >= limit && !found.contains_key(&id) {
                        more = true;
                        break;
                    }
                    found.insert(id, record);
                }
                next.extend(page.next);
            }
            open = next;
            more |= progress(Progress { looked_at, found: found.len() }).is_break() && !open.is_empty();
        }
        Ok(Listed { found: sorted(found, &filter), more, looked_at, foreign })
    }

    /// Lists among some records only: reads one page after the other, until so many records were read or the limit is reached. Returns
    /// where the list goes on, too; `None` at its end. A list that goes on counts no record that was counted before.
    ///
    /// # Errors
    /// When the store did not give an answer, also after a few tries, or the list does not go on there.
    pub async fn list_some(
        &self,
        query: &Query,
        records: u64,
        mut from: ReadOn,
    ) -> Result<(Listed, Option<ReadOn>), Error> {
        let filter = query.filter(self.now());
        if from.cursors.is_empty() {
            let cursors = self.store().cursors(1, self.call()).await?;
            from.cursors = cursors.iter().map(|cursor| cursor.as_str().to_owned()).collect();
        }
        let (mut found, mut looked_at, mut foreign) = (BTreeMap::new(), 0, 0);
        while looked_at < records && found.len() < query.limit {
            let Some(cursor) = from.cursors.first() else { break };
            let page = self.page(&filter, &Cursor::new(cursor)).await?;
            // What is read again, for those that were not listed yet, was counted.
            if from.listed == 0 {
                looked_at += page.looked_at;
                foreign += page.foreign;
            }
            let mut meant = page.records.into_iter().filter(|(id, record)| query.wants(id, record)).skip(from.listed);
            let room = query.limit - found.len();
            found.extend(meant.by_ref().take(room));
            if meant.next().is_some() {
                from.listed += room;
                break;
            }
            from.listed = 0;
            from.cursors.splice(..1, page.next.map(|next| next.as_str().to_owned()));
        }
        let more = !from.cursors.is_empty();
        Ok((Listed { found: sorted(found, &filter), more, looked_at, foreign }, more.then_some(from)))
    }

    /// Reads a page, again where the store is busy.
    async fn page(&self, filter: &Filter, from: &Cursor) -> Result<Page, Error> {
        let mut tries = 0;
        loop {
            match self.store().list(filter, from, self.page_call()).await {
                Ok(page) => return Ok(page),
                Err(error) if error.kind().is_transient() && tries < TRIES_MAX => {
                    tokio::time::sleep(Duration::from_millis(WAIT_BASE_MS << tries)).await;
                    tries += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Returns records with their states, those first that were not written for the longest time.
fn sorted(found: BTreeMap<RecordId, Record>, filter: &Filter) -> Vec<Found> {
    let with_state = |(id, record)| Found { state: State::of(&record, filter.now, filter.skew), id, record };
    let mut found: Vec<_> = found.into_iter().map(with_state).collect();
    found.sort_by_key(|found| found.record.updated_at);
    found
}

fn mentions(id: &RecordId, record: &Record, text: &str) -> bool {
    let texts = [Some(id.as_str()), record.error.as_deref(), record.note.as_deref(), Some(record.message_id.as_str())];
    texts.into_iter().flatten().any(|has| has.contains(text)) || typed(id.as_str()).contains(text)
}

fn megabytes(bytes: u64) -> String {
    // OK because sizes are far below 2^52 bytes.
    let bytes = bytes as f64;
    match bytes {
        1e9.. => format!("{:.1} GB", bytes / 1e9),
        1e6.. => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.1} KB", bytes / 1e3),
    }
}

/// A number of things, in words: `1 record`, `2 records`.
fn counted(count: u64, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}
