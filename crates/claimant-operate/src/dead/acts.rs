//! Reading and discarding dead letters.

use std::io::{self, Write};

use claimant_core::Error;

use super::letter::DeadLetter;
use super::pace::Pace;
use super::queue::{DeadLetterQueue, REQUEST_MAX};
use super::report::{Bounds, Observer, Report};
use super::selection::Selection;
use super::walk::{LOOKED_AT_MAX, Walk, delete, finish};

impl DeadLetterQueue {
    /// Reads the letters that are selected, and gives each to `each`. They are hidden from other readers meanwhile, 120 s at most,
    /// and shown again at the end. To SQS that is a receive. Those of a local cloud, opened with [`open_in`](Self::open_in), are not.
    ///
    /// Of a FIFO queue SQS shows at most ten letters of a group at a time: the others come once these are sent back or
    /// discarded.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub async fn read(
        &self,
        selection: &Selection,
        limit: usize,
        each: &mut (dyn FnMut(DeadLetter) + Send),
        observer: Observer<'_>,
    ) -> Result<Report, Error> {
        selection.check()?;
        if self.is_only_looked_at() {
            return self.read_by_looking(selection, limit, each, observer).await;
        }
        self.receive_letters((selection, limit, LOOKED_AT_MAX), each, observer).await
    }

    /// Reads as [`read`](Self::read) does, by receiving; looks at about so many letters at most, the last of the three.
    pub(super) async fn receive_letters(
        &self,
        (selection, limit, looks): (&Selection, usize, usize),
        each: &mut (dyn FnMut(DeadLetter) + Send),
        observer: Observer<'_>,
    ) -> Result<Report, Error> {
        let mut walk = Walk::new(self, selection, limit, false);
        walk.looks = looks;
        let mut report = Report::default();
        let read = async {
            while let Some(letters) = walk.next().await? {
                report.progress.selected += letters.len();
                report.progress.looked_at = walk.looked_at();
                letters.into_iter().for_each(&mut *each);
                if observer(report.progress).is_break() && !walk.is_over() {
                    report.unseen.cut = true;
                    break;
                }
            }
            Ok(())
        };
        let result = read.await;
        let report = finish(walk, report, false).await;
        result.map(|()| report)
    }

    /// Deletes the letters that are selected. With `save`, each is first written there, whole, as one line of JSON, and flushed; what cannot
    /// be is not deleted. A [`SaveFile`](super::SaveFile) is flushed to the disk. What was written may be the last copy also of a letter that is a problem of the report: where no answer
    /// came, it is not known whether it was deleted.
    ///
    /// # Errors
    /// When the queue cannot be read, or `save` cannot be written, and nothing was done before. Otherwise the report says so.
    pub async fn discard(
        &self,
        selection: &Selection,
        bounds: Bounds,
        mut save: Option<&mut (dyn Write + Send)>,
        observer: Observer<'_>,
    ) -> Result<Report, Error> {
        selection.check_act()?;
        let mut walk = Walk::new(self, selection, bounds.limit, bounds.per_s.is_some());
        let (mut report, mut pace) = (Report::default(), Pace::new(bounds.per_s));
        let result = async {
            while let Some(letters) = walk.next().await? {
                report.progress.looked_at = walk.looked_at();
                report.progress.selected += letters.len();
                for chunk in letters.chunks(pace.batch(REQUEST_MAX)) {
                    if bounds.dry_run {
                        chunk.iter().for_each(|letter| report.done(letter, None, None));
                        continue;
                    }
                    if let Some(save) = &mut save {
                        keep(*save, chunk)?;
                    }
                    pace.turn(chunk.len()).await;
                    let left = delete(&mut walk, chunk.iter()).await;
                    for letter in chunk {
                        match left.get(&letter.message_id) {
                            None => report.done(letter, None, None),
                            Some(why) => report.problem(letter, why.as_str(), false),
                        }
                    }
                    if walk.refused.is_some() {
                        break;
                    }
                }
                if observer(report.progress).is_break() && !walk.is_over() {
                    report.unseen.cut = true;
                    break;
                }
            }
            Ok(())
        };
        let result = result.await;
        finish(walk, report, bounds.dry_run).await.ended(result, bounds.dry_run)
    }
}

fn keep(save: &mut (dyn Write + Send), letters: &[DeadLetter]) -> Result<(), Error> {
    let mut write = || {
        for letter in letters {
            // In one piece: a body has many, and what is cut off in the middle is a torn line.
            save.write_all(format!("{}\n", letter.to_json(true)).as_bytes())?;
        }
        save.flush()
    };
    write().map_err(|e: io::Error| Error::new("letters could not be saved, so they were not discarded").caused_by(e))
}
