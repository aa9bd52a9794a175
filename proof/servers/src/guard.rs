//! A server process that cannot outlive the process that started it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take to start.
const START_MAX: Duration = Duration::from_secs(60);

/// How much of a server's log an error shows.
const LOG_LINES_MAX: usize = 20;

/// Starts a server and waits for the end of standard input, which only the process that started the guard holds open. Then
/// it ends the server and removes its data. Ctrl-C goes to the whole group of processes, so the guard ignores it.
const GUARD: &str = r#"
trap '' INT TERM HUP
stop=$1 data=$2
shift 2
"$@" </dev/null 2>&1 &
exec >/dev/null 2>&1
read -r _
kill -s "$stop" $!
wait
rm -rf "$data"
"#;

/// A running server. Dropping it ends the server and removes its data.
#[derive(Debug)]
pub struct Server {
    /// `127.0.0.1:port`.
    pub address: String,
    guard: Child,
}

/// A server program, ready to start.
pub(crate) struct Program {
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    /// The directory that it works in; removed with it.
    pub(crate) data: TempDir,
    /// The user and group to run it as, if not ours.
    pub(crate) user: Option<(u32, u32)>,
    /// The signal that ends it, and its own processes with it.
    pub(crate) stop: &'static str,
}

impl Program {
    /// Starts the server and returns it once `listening` finds its address in a line of its log.
    pub(crate) fn start(self, listening: impl Fn(&str) -> Option<String>) -> io::Result<Server> {
        self.start_and_read(listening).map(|(server, _)| server)
    }

    /// Starts the server as [`start`](Self::start) does, and returns what it then writes to its log as well.
    pub(crate) fn start_and_read(
        self,
        listening: impl Fn(&str) -> Option<String>,
    ) -> io::Result<(Server, Receiver<String>)> {
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "guard", self.stop]).arg(self.data.path()).args(&self.command);
        // What else the server writes goes to its own directory: it is certain that its user may write there.
        command.current_dir(self.data.path()).env("TMPDIR", self.data.path());
        run_as(&mut command, self.user);
        let mut guard = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        // From here on, the guard removes it.
        let _ = self.data.keep();
        let lines = lines_of(guard.stdout.take().ok_or_else(|| io::Error::other("standard output is not piped"))?);
        let mut server = Server { address: String::new(), guard };
        server.address = wait_for_address(&lines, listening)?;
        Ok((server, lines))
    }
}

impl Server {
    /// Returns the port that it listens on.
    #[must_use]
    pub fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // OK because there is nothing else to do about a guard that cannot be waited for.
        let _ = self.guard.wait();
    }
}

/// Has a command run as this user and group, where one is given.
pub(crate) fn run_as(command: &mut Command, user: Option<(u32, u32)>) {
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
}

/// Reads the lines of a log until its end, so that the server never waits for a reader.
fn lines_of(log: impl io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(log).split(b'\n').map_while(Result::ok) {
            // OK because no one listens any more once the server has started.
            let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
        }
    });
    receiver
}

fn wait_for_address(lines: &Receiver<String>, listening: impl Fn(&str) -> Option<String>) -> io::Result<String> {
    let deadline = Instant::now() + START_MAX;
    let mut last = VecDeque::new();
    let why = loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if let Some(address) = listening(&line) {
                    return Ok(address);
                }
                last.push_back(line);
                if last.len() > LOG_LINES_MAX {
                    last.pop_front();
                }
            }
            Err(RecvTimeoutError::Disconnected) => break "the server ended",
            Err(RecvTimeoutError::Timeout) => break "the server did not start in time",
        }
    };
    Err(io::Error::other(format!("{why}; the end of its log:\n{}", Vec::from(last).join("\n"))))
}
