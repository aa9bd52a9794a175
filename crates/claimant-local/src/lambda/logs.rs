//! The output of a process, line by line, to one place.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Takes a function's name and one line of its output, without the line end.
pub type LogSink = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// What of a line is kept, in bytes; the rest is dropped.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Forwards every line until the output ends.
pub(super) async fn forward(output: impl AsyncRead + Unpin, function: String, sink: LogSink) {
    let mut reader = BufReader::new(output);
    let mut line = Line::default();
    // A read error means the same as the end: no more output comes.
    while let Ok(chunk) = reader.fill_buf().await {
        if chunk.is_empty() {
            break;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        line.push(part);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            std::mem::take(&mut line).write(&function, &sink);
        }
    }
    if !line.bytes.is_empty() {
        line.write(&function, &sink);
    }
}

#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    cut: bool,
}

impl Line {
    fn push(&mut self, part: &[u8]) {
        let room = LINE_BYTES_MAX - self.bytes.len();
        self.cut |= part.len() > room;
        self.bytes.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn write(self, function: &str, sink: &LogSink) {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.trim_end_matches('\r');
        if self.cut {
            sink(function, &format!("{text}… (line cut at {LINE_BYTES_MAX} bytes)"));
        } else {
            sink(function, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    async fn lines(output: &[u8]) -> Vec<String> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink: LogSink = {
            let seen = Arc::clone(&seen);
            Arc::new(move |name, line| seen.lock().unwrap().push(format!("{name}: {line}")))
        };
        forward(output, "f".to_owned(), sink).await;
        seen.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn lines_are_forwarded_whole_and_bounded() {
        assert_eq!(lines(b"one\r\n\ntwo").await, ["f: one", "f: ", "f: two"]);
        assert_eq!(lines(b"").await, [""; 0]);
        assert_eq!(lines(b"\xff\n").await, ["f: \u{fffd}"]);
        let mut long = vec![b'x'; LINE_BYTES_MAX * 3];
        long.extend_from_slice(b"\nnext\n");
        let seen = lines(&long).await;
        assert!(seen[0].len() < LINE_BYTES_MAX + 100 && seen[0].contains("line cut"));
        assert_eq!(seen[1], "f: next");
    }
}
