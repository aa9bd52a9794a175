//! An output that a thread of its own writes: a reader who is slow, or does not read at all, keeps no one else waiting.

use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

/// What waits to be written, in bytes at most; beside it there is what is being written, which is no more.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Text on its way to an output. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Writer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when there is text to write, and when all of it is written.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines without room since what waits was taken last.
    dropped: u64,
    is_writing: bool,
}

impl State {
    fn is_done(&self) -> bool {
        self.waiting.is_empty() && !self.is_writing
    }
}

impl Writer {
    /// Starts the thread, which passes all text to `write`, in order, until the process ends.
    ///
    /// # Errors
    /// When the system starts no thread.
    pub(crate) fn start(name: &str, mut write: impl FnMut(&[u8]) + Send + 'static) -> io::Result<Self> {
        let writer = Self::default();
        let taken = writer.clone();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            loop {
                write(&taken.next());
            }
        })?;
        Ok(writer)
    }

    /// Adds a line, or several, with the line end. Where too much waits already it is dropped, which the output says where that was.
    pub(crate) fn push(&self, text: &[u8]) {
        let mut state = self.state();
        if state.waiting.len() + text.len() > WAITING_BYTES_MAX {
            state.dropped += 1;
            return;
        }
        state.waiting.extend_from_slice(text);
        drop(state);
        self.0.changed.notify_all();
    }

    /// Returns whether all that was added is written.
    pub(crate) fn is_done(&self) -> bool {
        self.state().is_done()
    }

    /// Waits until all that was added is written, no longer than this; returns whether it is. Blocks.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let waited = self.0.changed.wait_timeout_while(self.state(), limit, |state| !state.is_done());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_done()
    }

    /// Waits for text, and takes all there is.
    fn next(&self) -> Vec<u8> {
        let mut state = self.state();
        state.is_writing = false;
        self.0.changed.notify_all();
        let waited = self.0.changed.wait_while(state, |state| state.waiting.is_empty());
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_writing = true;
        let mut text = take(&mut state.waiting);
        match take(&mut state.dropped) {
            0 => {}
            1 => text.extend_from_slice(b"claimant: 1 line was dropped here: it came faster than lines are read\n"),
            many => text.extend_from_slice(
                format!("claimant: {many} lines were dropped here: they came faster than they are read\n").as_bytes(),
            ),
        }
        text
    }

    /// What it guards is whole after every statement.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn who_does_not_read_keeps_no_one_waiting_and_misses_lines_that_are_counted() {
        let (written, reads) = mpsc::sync_channel(0);
        let writer = Writer::start("unread", move |text| written.send(text.to_owned()).unwrap()).unwrap();
        assert!(writer.wait(Duration::ZERO), "there is nothing to write");
        writer.push(b"first\n");
        assert!(!writer.is_done() && !writer.wait(Duration::from_millis(20)), "it is not read");
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        // More than is kept, even if some of it is being written.
        let lines = 3 * WAITING_BYTES_MAX / line.len();
        (0..lines).for_each(|_| writer.push(&line));

        let mut read = Vec::new();
        while !writer.is_done() {
            read.extend(reads.recv_timeout(Duration::from_millis(20)).unwrap_or_default());
        }
        writer.push(b"last\n");
        read.extend(reads.recv_timeout(PATIENCE).unwrap());
        let read = String::from_utf8(read).unwrap();
        assert!(read.len() < 2 * WAITING_BYTES_MAX + 1_000, "{} bytes", read.len());
        assert!(read.starts_with("first\nxxx") && read.ends_with(" read\nlast\n"));
        let whole = read.lines().filter(|read| read.len() == 1023).count();
        let note = format!("claimant: {} lines were dropped here", lines - whole);
        assert!(read.contains(&note), "{whole} of {lines} came, and there is no {note}");
    }
}
