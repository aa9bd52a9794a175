//! An output that a thread of its own writes: a reader who is slow, or does not read at all, keeps no one else waiting.

use std::io::{self, ErrorKind, Write};
use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// What waits to be written, in bytes at most, without the [last](Writer::push_last) lines; beside it there is what is being written, which is
/// no more.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What is written at once, in bytes at most, unless one line is longer. A pipe of Linux takes so much whole or not at all (`PIPE_BUF`): where
/// two outputs share one, no line of the one ends up within a line of the other.
const PIECE_BYTES_MAX: usize = 4096;

/// How long to wait for room in an output that does not wait itself: another process that has it, too, may have made it so.
const ROOM_WAIT: Duration = Duration::from_millis(10);

/// Text on its way to an output. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Writer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when there is text to write, and when a piece or all of it is written.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines without room since what waits was taken last: they would come after that.
    dropped: usize,
    is_writing: bool,
    /// How many pieces were written, or could not be.
    pieces: u64,
}

impl State {
    fn has_text(&self) -> bool {
        !self.waiting.is_empty() || self.dropped > 0
    }

    fn is_done(&self) -> bool {
        !self.has_text() && !self.is_writing
    }
}

impl Writer {
    /// Starts the thread, which passes all text to `write`, in order and in pieces of whole lines, until the process ends. A piece for which that
    /// returns false counts as dropped.
    ///
    /// # Errors
    /// When the system starts no thread.
    pub(crate) fn start(name: &str, mut write: impl FnMut(&[u8]) -> bool + Send + 'static) -> io::Result<Self> {
        let writer = Self::default();
        let taken = writer.clone();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut dropped = 0;
            // Each after a note of what was dropped before it.
            let mut write = |piece: &[u8], dropped: &mut usize| {
                if *dropped > 0 && write(note(*dropped).as_bytes()) {
                    *dropped = 0;
                }
                if !piece.is_empty() && (*dropped > 0 || !write(piece)) {
                    *dropped += lines(piece);
                }
            };
            loop {
                let (text, without_room) = taken.next();
                for piece in pieces(&text) {
                    write(piece, &mut dropped);
                    taken.state().pieces += 1;
                    taken.0.changed.notify_all();
                }
                dropped += without_room;
                write(&[], &mut dropped);
            }
        })?;
        Ok(writer)
    }

    /// Adds a line, or several, with the line end. Where too much waits already they are dropped, with all that comes until that is taken: the
    /// output says how many lines were, and where.
    pub(crate) fn push(&self, text: &[u8]) {
        let mut state = self.state();
        if state.dropped > 0 || state.waiting.len() + text.len() > WAITING_BYTES_MAX {
            state.dropped += lines(text);
        } else {
            state.waiting.extend_from_slice(text);
        }
        drop(state);
        self.0.changed.notify_all();
    }

    /// Adds the last lines, for which there is always room.
    pub(crate) fn push_last(&self, text: &[u8]) {
        let mut state = self.state();
        if state.dropped > 0 {
            let note = note(take(&mut state.dropped));
            state.waiting.extend_from_slice(note.as_bytes());
        }
        state.waiting.extend_from_slice(text);
        drop(state);
        self.0.changed.notify_all();
    }

    /// Returns whether all that was added is written.
    pub(crate) fn is_done(&self) -> bool {
        self.state().is_done()
    }

    /// Waits until all that was added is written, for as long as some of it is each time within this; returns whether all is. Blocks.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let mut state = self.state();
        loop {
            let before = state.pieces;
            let is_same = |state: &mut State| !state.is_done() && state.pieces == before;
            let waited = self.0.changed.wait_timeout_while(state, limit, is_same);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.is_done() || state.pieces == before {
                return state.is_done();
            }
        }
    }

    /// Waits for text, and takes all there is, with the number of lines that were dropped after it.
    fn next(&self) -> (Vec<u8>, usize) {
        let mut state = self.state();
        state.is_writing = false;
        self.0.changed.notify_all();
        let waited = self.0.changed.wait_while(state, |state| !state.has_text());
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_writing = true;
        (take(&mut state.waiting), take(&mut state.dropped))
    }

    /// What it guards is whole after every statement.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes text whole, also to an output that does not wait for room itself.
///
/// # Errors
/// When the output fails.
pub(crate) fn write_whole(output: &mut impl Write, mut text: &[u8]) -> io::Result<()> {
    while !text.is_empty() {
        match with_room(|| output.write(text))? {
            0 => return Err(ErrorKind::WriteZero.into()),
            written => text = text.get(written..).unwrap_or_default(),
        }
    }
    with_room(|| output.flush())
}

fn with_room<T>(mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match act() {
            Err(e) if e.kind() == ErrorKind::WouldBlock => thread::sleep(ROOM_WAIT),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Returns text in pieces, each of as many whole lines as fit, or of one that is longer.
fn pieces(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let is_end = |byte: &u8| *byte == b'\n';
        let (first, rest) = text.split_at(text.len().min(PIECE_BYTES_MAX));
        let end = match first.iter().rposition(is_end) {
            Some(end) => end + 1,
            None => rest.iter().position(is_end).map_or(text.len(), |end| first.len() + end + 1),
        };
        let (piece, left) = text.split_at(end);
        text = left;
        (!piece.is_empty()).then_some(piece)
    })
}

fn lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

fn note(dropped: usize) -> String {
    let were = if dropped == 1 { "line was" } else { "lines were" };
    format!("claimant: {dropped} {were} dropped here: the output did not take them in time\n")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Returns a writer that waits with each piece until that is read, once it has begun to write `first`.
    fn unread(first: &[u8]) -> (Writer, Receiver<Vec<u8>>) {
        let (written, reads) = mpsc::sync_channel(0);
        let (begins, begun) = mpsc::channel();
        let write = move |text: &[u8]| {
            // OK to fail: only the first one is waited for.
            let _ = begins.send(());
            written.send(text.to_owned()).is_ok()
        };
        let writer = Writer::start("unread", write).unwrap();
        assert!(writer.wait(Duration::ZERO), "there is nothing to write");
        writer.push(first);
        begun.recv_timeout(PATIENCE).unwrap();
        (writer, reads)
    }

    fn all(writer: &Writer, reads: &Receiver<Vec<u8>>) -> String {
        let mut read = Vec::new();
        while !writer.is_done() {
            read.extend(reads.recv_timeout(Duration::from_millis(20)).unwrap_or_default());
        }
        String::from_utf8(read).unwrap()
    }

    #[test]
    fn who_does_not_read_keeps_no_one_waiting_and_misses_lines_that_are_counted() {
        let (writer, reads) = unread(b"first\n");
        assert!(!writer.is_done() && !writer.wait(Duration::from_millis(20)), "it is not read");
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        let kept = WAITING_BYTES_MAX / line.len();
        (1..kept).for_each(|_| writer.push(&line));
        // Has no room: nothing after it comes before the note.
        writer.push(&line.repeat(2));
        writer.push(b"short\n");
        let read = all(&writer, &reads);
        assert!(read.starts_with("first\nxxx"), "{}", &read[..20]);
        assert_eq!(read.lines().filter(|read| read.len() == 1023).count(), kept - 1);
        let says = "x\nclaimant: 3 lines were dropped here: the output did not take them in time\n";
        assert!(read.ends_with(says), "{}", &read[read.len() - 200..]);
        writer.push(b"next\n");
        assert_eq!(all(&writer, &reads), "next\n");
    }

    #[test]
    fn the_last_lines_come_whatever_waits() {
        let (writer, reads) = unread(b"first\n");
        (0..2).for_each(|_| writer.push(&[&vec![b'x'; WAITING_BYTES_MAX - 1][..], b"\n"].concat()));
        writer.push_last(b"error: x\n");
        let read = all(&writer, &reads);
        let says = "x\nclaimant: 1 line was dropped here: the output did not take them in time\nerror: x\n";
        assert!(read.ends_with(says), "{}", &read[read.len() - 200..]);
    }

    #[test]
    fn a_reader_is_waited_for_as_long_as_it_reads() {
        let (limit, step) = (Duration::from_secs(1), Duration::from_millis(150));
        let writer = Writer::start("slow", move |_| {
            thread::sleep(step);
            true
        });
        let writer = writer.unwrap();
        // Two such lines are no piece.
        writer.push(&[&[b'x'; 3_000][..], b"\n"].concat().repeat(10));
        assert!(writer.wait(limit));
    }

    #[test]
    fn what_cannot_be_written_is_counted_where_it_was() {
        let (written, reads) = mpsc::channel();
        let mut writes = 0..;
        // The second piece, and twice the note of that.
        let write =
            move |text: &[u8]| !(1..4).contains(&writes.next().unwrap()) && written.send(text.to_owned()).is_ok();
        let writer = Writer::start("full", write).unwrap();
        for line in ["a\n", "b\nc\n", "d\n", "e\n"] {
            writer.push(line.as_bytes());
            assert!(writer.wait(PATIENCE));
        }
        let says = "claimant: 3 lines were dropped here: the output did not take them in time\n";
        assert_eq!(reads.try_iter().collect::<Vec<_>>().concat(), format!("a\n{says}e\n").into_bytes());
    }

    #[test]
    fn a_piece_has_whole_lines_as_a_pipe_takes_them_at_once() {
        let long = [&[b'l'; 10_000][..], b"\n"].concat();
        let text = [&b"short\n".repeat(1_000)[..], &long, b"end\n", b"no end"].concat();
        let pieces: Vec<_> = pieces(&text).collect();
        assert_eq!(pieces.concat(), text);
        let lengths: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
        assert_eq!(lengths, [4_092, 1_908, 10_001, 4, 6]);
    }

    /// Takes three bytes at a time, and none each second time.
    struct Nonblocking(Vec<u8>, bool);

    impl Write for Nonblocking {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let taken = text.len().min(3);
            self.0.extend_from_slice(&text[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_output_that_does_not_wait_gets_everything_too() {
        let mut output = Nonblocking(Vec::new(), false);
        write_whole(&mut output, b"eight\nby").unwrap();
        assert_eq!(output.0, b"eight\nby");
    }
}
