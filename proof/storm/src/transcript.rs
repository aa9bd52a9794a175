//! Everything that the functions and the cloud print, searched for the secrets that were planted in messages.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// Lines with a secret that are kept, to be shown.
const SHOWN_MAX: usize = 10;

/// What was printed so far. Clones share it.
#[derive(Clone)]
pub(crate) struct Transcript(Arc<Mutex<Kept>>);

struct Kept {
    /// What every secret starts with.
    secret: String,
    /// Where everything goes too.
    copy: Option<Box<dyn Write + Send>>,
    found: Found,
}

/// What the search came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) lines: u64,
    /// Lines that hold a secret.
    pub(crate) leaks: u64,
    /// The first of these, the secret's beginning masked.
    pub(crate) shown: Vec<String>,
}

impl Transcript {
    pub(crate) fn new(secret: &str, copy: Option<Box<dyn Write + Send>>) -> Self {
        Self(Arc::new(Mutex::new(Kept { secret: secret.to_owned(), copy, found: Found::default() })))
    }

    /// Takes in a line of this origin.
    pub(crate) fn line(&self, origin: &str, line: &str) {
        let mut kept = self.kept();
        let Kept { secret, copy, found } = &mut *kept;
        found.lines += 1;
        if line.contains(secret.as_str()) {
            found.leaks += 1;
            if found.shown.len() < SHOWN_MAX {
                found.shown.push(format!("{origin}: {}", line.replace(secret.as_str(), "[secret]")));
            }
        }
        if let Some(copy) = copy {
            // A copy that cannot be written is missed by who wants to read it.
            let _ = writeln!(copy, "{origin}: {line}");
        }
    }

    /// What was found since the last time this was asked.
    pub(crate) fn take(&self) -> Found {
        std::mem::take(&mut self.kept().found)
    }

    /// OK to use a poisoned lock: counting and keeping a line are complete before anything can panic.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One event of the cloud's own log is one write.
impl Write for Transcript {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line("cloud", String::from_utf8_lossy(bytes).trim_end());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Transcript {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_wherever_it_stands_and_not_repeated() {
        let transcript = Transcript::new("hush7f", None);
        transcript.line("f", "all is well");
        assert_eq!(transcript.take(), Found { lines: 1, ..Found::default() });
        transcript.line("f", r#"{"fields":{"error":"invalid type: string \"hush7f12\""}}"#);
        transcript.clone().write_all(b"WARN hush7f\n").unwrap();
        let found = transcript.take();
        assert_eq!((found.lines, found.leaks, found.shown.len()), (2, 2, 2));
        assert!(found.shown.iter().all(|line| line.contains("[secret]") && !line.contains("hush7f")), "{found:?}");
        assert_eq!(transcript.take(), Found::default());
    }
}
