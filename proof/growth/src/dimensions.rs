//! The dimensions: in each, there is more and more of one thing, and the others are held fixed.

use std::path::PathBuf;

use claimant_core::Error;
use claimant_outage::number;
use fastrand::Rng;

use crate::lab::{Lab, Message, Sum, Worker, filled, fresh};
use crate::process::resident_kb;
use crate::side_by_side;
use crate::table::{Row, Table};

/// Messages in a batch, where that is held fixed.
const BATCH: usize = 10;
/// Where random keys come from.
const SEED: u64 = 7;

/// How much is measured.
#[derive(Debug, Clone)]
pub struct Extent {
    /// Records in the table, step by step.
    pub records: Vec<u64>,
    /// Messages in a batch, step by step.
    pub batches: Vec<usize>,
    /// Keys in a batch, step by step: the first has a message for each.
    pub keys: Vec<usize>,
    /// Processes, step by step; each step has as many messages.
    pub processes: Vec<usize>,
    /// Groups of a FIFO queue, step by step.
    pub groups: Vec<usize>,
    /// Messages for a step, about.
    pub messages: usize,
}

impl Extent {
    /// What the page shows.
    #[must_use]
    pub fn whole() -> Self {
        Self {
            records: vec![10_000, 100_000, 1_000_000, 10_000_000],
            batches: vec![1, 10, 100, 1_000, 10_000],
            keys: vec![1_000, 100, 10, 1],
            processes: vec![1, 2, 4, 8, 16, 32, 64],
            groups: vec![1, 10, 100, 1_000],
            messages: 6_400,
        }
    }

    /// In less than a minute.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            records: vec![1_000, 10_000, 100_000],
            batches: vec![1, 10, 100, 1_000],
            processes: vec![1, 4, 16],
            groups: vec![1, 100],
            messages: 960,
            ..Self::whole()
        }
    }
}

/// Measures every dimension; workers run `program`. `done` is called with each dimension.
///
/// # Errors
/// When something does not start, a handler did not run exactly once for its key, or order was not kept.
pub async fn run(extent: &Extent, program: PathBuf, mut done: impl FnMut(&Table)) -> Result<Vec<Table>, Error> {
    let lab = Lab::start(program).await?;
    let mut tables = Vec::new();
    let mut add = |table: Table| {
        done(&table);
        tables.push(table);
    };
    add(batches(&lab, extent).await?);
    add(keys(&lab, extent).await?);
    add(side_by_side::own_keys(&lab, extent).await?);
    add(side_by_side::same_keys(&lab, extent).await?);
    add(groups(&lab, extent).await?);
    // Last: all others are measured on a small table.
    records(&lab, extent).await?.into_iter().for_each(add);
    Ok(tables)
}

/// Has a worker do these batches, and sums up what they took. Nothing else asks the store meanwhile.
async fn row(lab: &Lab, step: &str, worker: &mut Worker, batches: &[Vec<Message>]) -> Result<(Row, Sum), Error> {
    let (before, mut sum) = (lab.counts(), Sum::default());
    for batch in batches {
        let done = worker.deliver(batch).await?;
        if !done.failed.is_empty() {
            return Err(Error::new(format!("{} of {} messages failed", done.failed.len(), batch.len())));
        }
        sum.add(batch.len(), done);
    }
    let counts = lab.counts().since(before);
    let runs = Sum { runs: sum.runs.clone(), busy: sum.busy, ..Sum::default() };
    Ok((Row::new(step.to_owned(), sum, counts), runs))
}

/// More and more records in the table: first deliveries, and copies of messages whose work is done.
async fn records(lab: &Lab, extent: &Extent) -> Result<[Table; 2], Error> {
    let (mut new, mut copies, mut there, mut random) = (Vec::new(), Vec::new(), 0, Rng::with_seed(SEED));
    let batches = extent.messages.div_ceil(2 * BATCH);
    for records in &extent.records {
        let step = number(*records);
        let mut worker = lab.worker(&format!("records-{step}"), BATCH).await?;
        lab.fill(there..*records)?;
        there = *records;
        let sent: Vec<_> = (0..batches).map(|n| fresh(&format!("new-{step}-{n}"), BATCH)).collect();
        let (row_new, runs) = row(lab, &step, &mut worker, &sent).await?;
        runs.check("new messages", batches * BATCH)?;
        let bare = worker.probe((0..batches).map(|_| filled(random.u64(..there)))).await?;
        let store = format!("{:.0}", resident_kb(std::process::id()) as f64 / 1024.0);
        let more = vec![format!("{:.0}", bare.get_us), format!("{:.0}", bare.update_us), store];
        new.push(Row { more, ..row_new });

        let mut worker = lab.worker(&format!("copies-{step}"), BATCH).await?;
        let sent: Vec<Vec<_>> = (0..batches).map(|n| sent_again(&step, n, there, &mut random)).collect();
        // It learns that nearly all are copies.
        let (learnt, measured) = sent.split_at(sent.len() / 4);
        row(lab, &step, &mut worker, learnt).await?;
        let (row_copies, runs) = row(lab, &step, &mut worker, measured).await?;
        runs.check("copies", 0)?;
        copies.push(row_copies);
    }
    Ok([
        Table {
            title: "Records in the table: new messages",
            text: format!(
                "Batches of {BATCH}, one process, keys that the table does not have, which lie next to each other. Beside it what the store takes for one bare \
                 consistent `GetItem` and one bare `UpdateItem` of a random record, by the same client and without claimant, and \
                 what the store has in memory."
            ),
            step: "records",
            more: &["bare read, µs", "bare write, µs", "store, MiB"],
            rows: new,
        },
        Table {
            title: "Records in the table: copies of finished work",
            text: format!(
                "Batches of {BATCH}, one process, new messages for random keys whose records are in the table."
            ),
            step: "records",
            more: &[],
            rows: copies,
        },
    ])
}

fn sent_again(step: &str, batch: usize, records: u64, random: &mut Rng) -> Vec<Message> {
    let copy = |n| Message::new(filled(random.u64(..records)), &format!("{step}-{batch}-{n}"));
    (0..BATCH).map(copy).collect()
}

/// More and more messages in a batch.
async fn batches(lab: &Lab, extent: &Extent) -> Result<Table, Error> {
    let mut rows = Vec::new();
    for size in &extent.batches {
        let step = number(*size as u64);
        let mut worker = lab.worker(&format!("size-{step}"), *size).await?;
        let count = (extent.messages / size).clamp(3, 1_000);
        let sent: Vec<_> = (0..count).map(|n| fresh(&format!("sized-{step}-{n}"), *size)).collect();
        let (row, runs) = row(lab, &step, &mut worker, &sent).await?;
        runs.check("batches", count * size)?;
        rows.push(row);
    }
    let text = "One process with `CLAIMANT_CONCURRENCY=10`, keys that the table does not have. A batch is in memory as a whole, \
                so memory has to grow with it."
        .to_owned();
    Ok(Table { title: "Messages in a batch", text, step: "batch", more: &[], rows })
}

/// Fewer and fewer keys in a batch.
async fn keys(lab: &Lab, extent: &Extent) -> Result<Table, Error> {
    let (mut rows, size) = (Vec::new(), extent.keys.first().copied().unwrap_or(1));
    for keys in &extent.keys {
        let step = number(*keys as u64);
        let mut worker = lab.worker(&format!("hot-{step}"), size).await?;
        let count = (extent.messages / size).max(2);
        let batch = |n: usize| {
            let message = |m: usize| Message::new(format!("hot-{step}-{n}-{}", m % keys), &m.to_string());
            (0..size).map(message).collect::<Vec<_>>()
        };
        let (row, runs) = row(lab, &step, &mut worker, &(0..count).map(batch).collect::<Vec<_>>()).await?;
        runs.check("hot keys", count * keys)?;
        rows.push(row);
    }
    let text = format!(
        "Batches of {}, one process, fewer and fewer different keys in a batch. The handler of each key runs once, for all of its \
         messages.",
        number(size as u64)
    );
    Ok(Table { title: "Hot keys within a batch", text, step: "keys", more: &[], rows })
}

/// More and more groups of a FIFO queue.
async fn groups(lab: &Lab, extent: &Extent) -> Result<Table, Error> {
    let mut rows = Vec::new();
    for groups in &extent.groups {
        let step = number(*groups as u64);
        let mut worker = lab.worker(&format!("groups-{step}"), BATCH).await?;
        let count = extent.messages.div_ceil(BATCH);
        let (before, mut sum, mut last) = (lab.counts(), Sum::default(), vec![None; *groups]);
        for n in 0..count {
            let message = |m: usize| {
                let (group, place) = ((n * BATCH + m) % groups, (n * BATCH + m) / groups);
                let message = Message::new(format!("g{group}-of-{step}-{place:06}"), "1");
                Message { group: Some(format!("g{group}")), ..message }
            };
            let batch: Vec<_> = (0..BATCH).map(message).collect();
            let done = worker.deliver(&batch).await?;
            in_order(&done.ran, &mut last)?;
            sum.add(BATCH, done);
        }
        sum.check("groups", count * BATCH)?;
        rows.push(Row::new(step, sum, lab.counts().since(before)));
    }
    let text = format!(
        "Batches of {BATCH}, the most of a FIFO queue, one process. With one group, each message waits for the one before it, and \
         shares its requests with none. The handlers of each group ran in its order, which the run checks."
    );
    Ok(Table { title: "Groups of a FIFO queue", text, step: "groups", more: &[], rows })
}

/// Whether what ran goes on where its group was.
fn in_order(ran: &[String], last: &mut [Option<usize>]) -> Result<(), Error> {
    for key in ran {
        let parsed = key.strip_prefix('g').and_then(|key| {
            let (group, place) = (key.split('-').next()?, key.rsplit('-').next()?);
            Some((group.parse::<usize>().ok()?, place.parse::<usize>().ok()?))
        });
        let Some((group, place)) = parsed else { return Err(Error::new(format!("no such message was sent: {key}"))) };
        if place != last[group].map_or(0, |last| last + 1) {
            return Err(Error::new(format!("{key} ran after {:?} of its group", last[group])));
        }
        last[group] = Some(place);
    }
    Ok(())
}
