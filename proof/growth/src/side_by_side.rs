//! More and more processes on one table.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use claimant_core::Error;
use claimant_outage::number;
use futures_util::future::try_join_all;

use crate::dimensions::Extent;
use crate::lab::{Lab, Message, Sum, Worker, fresh};
use crate::table::{Row, Table};

/// Messages in a batch.
const BATCH: usize = 10;
/// How often a message comes back at most. What is busy is done soon: handlers take no time here.
const ROUNDS_MAX: u32 = 100;
/// How long a message stays away that was reported failed.
const AWAY: Duration = Duration::from_millis(20);

const MORE: &[&str] = &["messages/s", "handlers run", "busy"];

/// Each process has keys of its own; all of them together as many messages in each step.
pub(crate) async fn own_keys(lab: &Lab, extent: &Extent) -> Result<Table, Error> {
    let mut rows = Vec::new();
    for processes in &extent.processes {
        let batches = (extent.messages / BATCH / processes).max(1);
        let of = |process: usize| {
            let batch = move |n| fresh(&format!("own-{processes}-{process}-{n}"), BATCH);
            (0..batches).map(batch).collect::<Vec<_>>()
        };
        rows.push(step(lab, "own", *processes, of, processes * batches * BATCH).await?);
    }
    let text = format!(
        "Batches of {BATCH}, and as many messages in every row: with more processes, each has fewer. All start together, each a \
         process of the system, on a machine with {} cores, which the store needs as well. Time is that of the whole step, by its \
         messages.",
        std::thread::available_parallelism().map_or(0, usize::from)
    );
    Ok(Table { title: "Processes, each with keys of its own", text, step: "processes", more: MORE, rows })
}

/// All processes get messages for the same keys, in the same order.
pub(crate) async fn same_keys(lab: &Lab, extent: &Extent) -> Result<Table, Error> {
    let mut rows = Vec::new();
    let batches = (extent.messages / BATCH / 20).max(2);
    for processes in &extent.processes {
        let of = |process: usize| {
            let message = move |n, m| Message::new(format!("same-{processes}-{n}-{m}"), &process.to_string());
            (0..batches).map(|n| (0..BATCH).map(|m| message(n, m)).collect()).collect()
        };
        rows.push(step(lab, "same", *processes, of, batches * BATCH).await?);
    }
    let text = format!(
        "Each process gets a message for each of the same {} keys, in batches of {BATCH} and in the same order, all at once. A message \
         whose key is busy elsewhere is reported failed, and comes back after {} ms until it is done, each time with a request of its \
         own. With one process there is no other to meet: of the messages of all others, each is refused once, and its record \
         read. The handler of each key ran once in all, which the run checks.",
        number((batches * BATCH) as u64),
        AWAY.as_millis()
    );
    Ok(Table { title: "Processes, all with the same keys", text, step: "processes", more: MORE, rows })
}

async fn step(
    lab: &Lab,
    name: &str,
    processes: usize,
    of: impl Fn(usize) -> Vec<Vec<Message>>,
    keys: usize,
) -> Result<Row, Error> {
    let mut workers = Vec::new();
    for process in 0..processes {
        workers.push((lab.worker(&format!("{name}-{processes}-{process}"), BATCH).await?, of(process)));
    }
    let (before, since) = (lab.counts(), Instant::now());
    let sums = try_join_all(workers.iter_mut().map(|(worker, batches)| all(worker, batches))).await?;
    let (took, counts) = (since.elapsed(), lab.counts().since(before));
    let sum = sums.into_iter().fold(Sum::default(), |mut sum, other| {
        sum.merge(other);
        sum
    });
    sum.check(&format!("{processes} processes"), keys)?;
    let ran: u32 = sum.runs.values().sum();
    let per_second = sum.messages as f64 / took.as_secs_f64();
    let more = [per_second as u64, ran.into(), sum.busy as u64].map(number).into();
    Ok(Row { more, time_us: 1e6 / per_second, ..Row::new(number(processes as u64), sum, counts) })
}

/// Delivers each batch until all of it is done. Each message counts once.
async fn all(worker: &mut Worker, batches: &[Vec<Message>]) -> Result<Sum, Error> {
    let mut sum = Sum::default();
    for batch in batches {
        let mut left = batch.clone();
        for round in 0..=ROUNDS_MAX {
            let done = worker.deliver(&left).await?;
            let failed: BTreeMap<_, _> = done.failed.iter().map(|id| (id.clone(), ())).collect();
            sum.add(if round == 0 { left.len() } else { 0 }, done);
            left.retain(|message| failed.contains_key(&message.id));
            left.iter_mut().for_each(|message| message.receives += 1);
            if left.is_empty() {
                break;
            }
            if round == ROUNDS_MAX {
                return Err(Error::new(format!("a message was not done after {ROUNDS_MAX} receives")));
            }
            tokio::time::sleep(AWAY).await;
        }
    }
    Ok(sum)
}
