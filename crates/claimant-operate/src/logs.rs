//! What the functions of an account have logged: CloudWatch Logs, searched and followed.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use claimant_core::error::Chain;
use claimant_core::{Clock as _, Error, ErrorKind, SystemClock};
use claimant_doctor::account::{Account as _, Aws, Request, Service};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::place::{Function, Place};

/// Requests for the lines of one function, of one search. CloudWatch Logs may answer with an empty page and go on.
const PAGES_MAX: usize = 20;

/// Lines of one function, of one search.
const LINES_MAX: usize = 2_000;

/// The same of lines that are followed: what one minute brings.
const FOLLOWED_MAX: usize = 50_000;

/// Between two looks for new lines: CloudWatch Logs answers a few such requests a second, of a whole account.
const FOLLOW_EVERY: Duration = Duration::from_secs(5);

/// How late a line may come, and still be seen.
const LATE: Duration = Duration::from_secs(60);

/// Looks in a row that may fail, as where there are too many requests.
const FAILURES_MAX: u32 = 3;

/// What the lines hold that tell outcomes: one of the two.
const OUTCOMES: &str = r#"?"message done" ?"batch done""#;

/// The log groups of a place.
pub struct Logs {
    aws: Aws,
    /// The name of each function, and its log group.
    groups: Vec<(String, String)>,
}

/// A line, and where it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// The function's name.
    pub function: String,
    /// The log stream: one for each process.
    pub stream: String,
    /// What tells it from all other lines.
    pub id: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The line.
    pub text: String,
}

/// What a search found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The lines, the oldest first.
    pub lines: Vec<Logged>,
    /// What was not read, and why, each in a sentence.
    pub missing: Vec<String>,
}

impl fmt::Debug for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logs").field("groups", &self.groups).finish_non_exhaustive()
    }
}

impl Place {
    /// Returns the log groups of its functions; `None` where no function has one that is known, as in a local cloud.
    #[must_use]
    pub fn logs(&self) -> Option<Logs> {
        let group = |function: &Function| Some((function.name.clone(), function.log_group.clone()?));
        let groups: Vec<_> = self.functions.iter().filter_map(group).collect();
        (!groups.is_empty()).then(|| Logs { aws: Aws::new(self.aws()), groups })
    }
}

impl Logs {
    /// Returns the lines that hold all of `words`, each as it is written, from `since_ms` on: of each function about 2,000 at most, the
    /// oldest. Asks for `logs:FilterLogEvents`, a request for each function and more for long searches, all functions at once.
    ///
    /// # Errors
    /// When a word has a quote or a backslash; when the lines of no function can be read.
    pub async fn find(&self, words: &[&str], since_ms: u64) -> Result<Found, Error> {
        if let Some(bad) = words.iter().find(|word| word.contains(['"', '\\']) || word.chars().any(char::is_control)) {
            return Err(Error::invalid(format!(
                "{bad:?} cannot be searched for: it has a quote, a backslash or a control character"
            )));
        }
        let pattern: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
        self.search(&pattern.join(" "), since_ms, LINES_MAX).await
    }

    async fn search(&self, pattern: &str, since_ms: u64, lines_max: usize) -> Result<Found, Error> {
        let search = (pattern, since_ms, lines_max);
        let read = self.groups.iter().map(|(function, group)| self.of_function(function, group, search));
        let (mut found, mut failed) = (Found::default(), Vec::new());
        for read in join_all(read).await {
            match read {
                Ok(of_function) => {
                    found.lines.extend(of_function.lines);
                    found.missing.extend(of_function.missing);
                }
                Err(error) => failed.push(error),
            }
        }
        found.missing.extend(failed.iter().map(|error| Chain(error).to_string()));
        match failed.pop() {
            Some(error) if failed.len() + 1 == self.groups.len() => Err(error),
            _ => {
                found.lines.sort_by_key(|line| line.at_ms);
                Ok(found)
            }
        }
    }

    async fn of_function(
        &self,
        function: &str,
        group: &str,
        (pattern, since_ms, lines_max): (&str, u64, usize),
    ) -> Result<Found, Error> {
        let (mut found, mut token) = (Found::default(), Value::Null);
        for _ in 0..PAGES_MAX {
            let mut input = json!({ "logGroupName": group, "filterPattern": pattern, "startTime": since_ms });
            if !token.is_null() {
                input["nextToken"] = token;
            }
            let request = Request { service: Service::Logs, operation: "FilterLogEvents", input };
            let mut page = match self.aws.ask(request).await {
                // A function that has not run yet has no log group.
                Err(refused) if refused.code.starts_with("ResourceNotFoundException") => return Ok(found),
                page => page.map_err(|refused| {
                    Error::new(format!("the log lines of {function} cannot be read: {refused}"))
                        .of_kind(ErrorKind::Unavailable)
                })?,
            };
            let events = page["events"].as_array().map(Vec::as_slice).unwrap_or_default();
            found.lines.extend(events.iter().map(|event| logged(function, event)));
            token = page["nextToken"].take();
            if token.is_null() {
                return Ok(found);
            }
            if found.lines.len() >= lines_max {
                break;
            }
        }
        found.missing.push(format!("The lines of {function} were not read to the end: there are too many."));
        Ok(found)
    }
}

/// New lines, as they come.
pub(crate) struct Followed {
    logs: Logs,
    pattern: &'static str,
    /// When it began, in milliseconds since 1970.
    since_ms: u64,
    /// The ids of the lines that it has seen, each with its time; those that can be met again.
    seen: BTreeMap<String, u64>,
    ready: VecDeque<Logged>,
    look_at: Instant,
    failures: u32,
}

impl Logs {
    /// Follows the lines that tell outcomes, or all of them, from now on.
    pub(crate) fn follow(self, all: bool) -> Followed {
        Followed {
            logs: self,
            pattern: if all { "" } else { OUTCOMES },
            since_ms: SystemClock.now().as_millis(),
            seen: BTreeMap::new(),
            ready: VecDeque::new(),
            look_at: Instant::now(),
            failures: 0,
        }
    }
}

impl Followed {
    /// Returns the next line. Cancel safe.
    ///
    /// # Errors
    /// When the lines of a function cannot be read, several times in a row, or are too many.
    pub(crate) async fn next(&mut self) -> Result<Logged, Error> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(line);
            }
            sleep_until(self.look_at).await;
            self.look_at = Instant::now() + FOLLOW_EVERY;
            let since_ms = SystemClock.now().minus(LATE).as_millis().max(self.since_ms);
            let found = self.logs.search(self.pattern, since_ms, FOLLOWED_MAX).await;
            let failed = match &found {
                Err(error) => Some(Chain(error).to_string()),
                Ok(found) => found.missing.first().cloned(),
            };
            self.failures = if failed.is_some() { self.failures + 1 } else { 0 };
            // A permission that is missing does not come by itself.
            let is_final = |failed: &String| failed.contains("AccessDenied") || self.failures >= FAILURES_MAX;
            if let Some(failed) = failed.filter(is_final) {
                return Err(Error::new(failed).of_kind(ErrorKind::Unavailable));
            }
            self.seen.retain(|_, at_ms| *at_ms >= since_ms);
            for line in found.into_iter().flat_map(|found| found.lines) {
                if self.seen.insert(line.id.clone(), line.at_ms).is_none() {
                    self.ready.push_back(line);
                }
            }
        }
    }
}

fn logged(function: &str, event: &Value) -> Logged {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    Logged {
        function: function.to_owned(),
        stream: text("logStreamName"),
        id: text("eventId"),
        at_ms: event["timestamp"].as_u64().unwrap_or_default(),
        text: text("message").trim_end().to_owned(),
    }
}
