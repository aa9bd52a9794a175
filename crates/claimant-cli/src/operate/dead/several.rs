//! Looks at several queues side by side: at the end of each, SQS is waited for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use claimant_core::Error;
use claimant_operate::dead::{DeadLetter, DeadLetterQueue, Progress, QUEUES_AT_ONCE, Report, Selection};
use futures_util::future::join_all;

use super::seen::Seen;
use super::which::{self, Opened, Watch};
use crate::operate::interrupt::Stop;

/// Which letters are read, how many of each queue, and how they are added to what is kept of one, which says whether they fit.
pub(in crate::operate) struct What<'a, A> {
    pub(in crate::operate) selection: &'a Selection,
    pub(in crate::operate) limit: usize,
    pub(in crate::operate) add: A,
}

/// What was read of a queue: its name, what is kept of its letters, and how the look ended.
pub(in crate::operate) type Read<T> = (String, T, Result<(DeadLetterQueue, Report), Error>);

/// Reads queues, several at a time, and shows each in their order. Those that Ctrl-C or SIGTERM came before are noted.
///
/// # Errors
/// When the only one cannot be read.
pub(super) async fn show<T: Default + Send>(
    queues: Vec<Opened>,
    what: &What<'_, impl Fn(&mut T, &DeadLetter) -> bool + Sync>,
    (seen, stop): (&mut Seen, &Stop),
    mut shown: impl FnMut(&mut Seen, &DeadLetterQueue, &Report, T),
) -> Result<(), Error> {
    let mut queues = queues.into_iter();
    while queues.len() > 0 && !stop.is_asked() {
        let some = queues.by_ref().take(QUEUES_AT_ONCE).collect();
        let mut watch = Watch::begin(0, true, stop);
        let read = read(some, what, &mut watch).await;
        watch.end();
        for (name, kept, read) in read {
            if let Some((queue, report)) = seen.add(&name, read)? {
                shown(seen, &queue, &report, kept);
            }
        }
    }
    seen.not_reached.extend(queues.map(|(name, _)| name));
    Ok(())
}

/// Reads these queues, all at once, with progress.
pub(in crate::operate) async fn read<T: Default + Send>(
    queues: Vec<Opened>,
    what: &What<'_, impl Fn(&mut T, &DeadLetter) -> bool + Sync>,
    watch: &mut Watch<'_>,
) -> Vec<Read<T>> {
    let open = queues.iter().filter_map(|(_, queue)| queue.as_ref().ok());
    watch.goes_on(open.map(|queue| queue.depth().visible).sum());
    let watched = Mutex::new((&mut *watch, vec![Progress::default(); queues.len()]));
    let one = async |(number, (name, queue)): (usize, Opened)| {
        let (mut kept, fit) = (T::default(), AtomicUsize::new(0));
        let mut step = |progress| {
            let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
            let (watch, all) = &mut *watched;
            all[number] = Progress { selected: fit.load(Ordering::Relaxed), ..progress };
            watch.step(all.iter().copied().sum())
        };
        let mut each = |letter| {
            if (what.add)(&mut kept, &letter) {
                fit.fetch_add(1, Ordering::Relaxed);
            }
        };
        let read = match queue {
            Ok(queue) => {
                let report = queue.read(what.selection, what.limit, &mut each, &mut step).await;
                report.map(|report| (queue, report))
            }
            Err(error) => Err(error),
        };
        (name, kept, read)
    };
    let read = join_all(queues.into_iter().enumerate().map(one)).await;
    let (watch, all) = watched.into_inner().unwrap_or_else(PoisonError::into_inner);
    watch.has_done(all.into_iter().sum());
    for (name, _, read) in &read {
        read.iter().for_each(|(_, report)| which::note_stay_hidden(name, report, watch));
    }
    read
}
