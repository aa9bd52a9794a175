//! The log lines of functions, as they come.

use claimant_core::{Clock as _, Error, SystemClock, Timestamp};
use serde_json::Value;

use crate::http;
use crate::logs::{Followed, Logged};
use crate::place::Place;

/// Where a local cloud passes log lines on, under the address of its control endpoint.
const LOGS_PATH: &str = "/_claimant/logs";

/// A function's log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The function's name.
    pub function: String,
    /// The log stream: one for each process; empty in a local cloud, which does not say whose line it is.
    pub stream: String,
    /// When it was written; of a local cloud, when it came there, by the clock of that machine.
    pub at: Timestamp,
    /// The line, as the function wrote it.
    pub text: String,
    /// How many lines are missing here, because they came faster than they were read; then the others are empty.
    pub missed: u64,
}

/// The log lines of a place, as they come.
pub struct LogLines(Lines);

enum Lines {
    Local(http::Lines),
    Deployed(Box<Followed>),
}

impl Place {
    /// Returns the log lines of its functions from now on; of deployed functions `all` of them, or those that tell outcomes, which are
    /// fewer. They come from CloudWatch, about ten seconds late, by a request for each function every five seconds
    /// (`logs:FilterLogEvents`).
    ///
    /// # Errors
    /// When no function is known, or a local cloud gives no answer.
    pub async fn log_lines(&self, all: bool) -> Result<LogLines, Error> {
        if let Some(control) = &self.control {
            return Ok(LogLines(Lines::Local(http::lines(&format!("{control}{LOGS_PATH}")).await?)));
        }
        let logs = self.logs().ok_or_else(|| {
            Error::invalid(format!("{} has no function whose log lines could be read: give --stack NAME", self.name))
        })?;
        Ok(LogLines(Lines::Deployed(Box::new(logs.follow(all)))))
    }
}

impl LogLines {
    /// Returns the next line; `None` once the cloud stops. Cancel safe.
    ///
    /// # Errors
    /// When the connection breaks, something else answers, or lines in CloudWatch cannot be read.
    pub async fn next(&mut self) -> Result<Option<LogLine>, Error> {
        let lines = match &mut self.0 {
            Lines::Local(lines) => lines,
            Lines::Deployed(lines) => {
                let Logged { function, stream, at_ms, text, .. } = lines.next().await?;
                return Ok(Some(LogLine { function, stream, at: Timestamp::from_millis(at_ms), text, missed: 0 }));
            }
        };
        let Some(line) = lines.next().await? else { return Ok(None) };
        let line: Value = serde_json::from_slice(&line)
            .map_err(|e| Error::new("the control endpoint sent what is no log line").caused_by(e))?;
        Ok(Some(LogLine::of_local(&line, SystemClock.now())))
    }
}

impl LogLine {
    /// Returns the line that a local cloud passes on so. Where lines are missing, it does not say when they came: then it is this time.
    fn of_local(line: &Value, now: Timestamp) -> Self {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        Self {
            function: text("function"),
            stream: String::new(),
            at: line["at_ms"].as_u64().map_or(now, Timestamp::from_millis),
            text: text("line"),
            missed: line["missed"].as_u64().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Its functions stamp what they do by that clock, too.
    #[test]
    fn a_line_of_a_local_cloud_came_when_its_clock_says() {
        let (at, now) = (Timestamp::from_millis(1_000), Timestamp::from_millis(9_000));
        let line = |at, function: &str, text: &str, missed| LogLine {
            function: function.into(),
            stream: String::new(),
            at,
            text: text.into(),
            missed,
        };
        for (passed_on, wanted) in [
            (json!({ "at_ms": 1_000, "function": "F", "line": "a" }), line(at, "F", "a", 0)),
            (json!({ "missed": 3 }), line(now, "", "", 3)),
        ] {
            assert_eq!(LogLine::of_local(&passed_on, now), wanted);
        }
    }
}
