//! Settings from the environment: read once, every fault in one message.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Error;
use crate::limits;

/// The prefix of claimant's own variables.
const PREFIX: &str = "CLAIMANT_";

/// One of claimant's own variables.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it sets, with unit, bounds and default: one line for the documentation.
    pub meaning: &'static str,
}

/// The lock table's name.
pub const TABLE: Variable =
    Variable { name: "CLAIMANT_TABLE", meaning: "name of the lock table; its partition key is the string `id`" };
/// How many messages at once.
pub const CONCURRENCY: Variable =
    Variable { name: "CLAIMANT_CONCURRENCY", meaning: "messages of a batch worked on at once, 1 to 1000 (default 10)" };
/// How early to return.
pub const MARGIN: Variable = Variable {
    name: "CLAIMANT_MARGIN_MS",
    meaning: "how long before the deadline the function has returned, 50 to 60000 ms (default 500)",
};
/// The time-out where the runtime gives no deadline.
pub const LOCAL_TIMEOUT: Variable = Variable {
    name: "CLAIMANT_LOCAL_TIMEOUT_MS",
    meaning: "time-out where the runtime gives no real deadline, as `cargo lambda watch` does, 1000 to 900000 ms (default 30000)",
};
/// Whether visibility is changed.
pub const VISIBILITY: Variable = Variable {
    name: "CLAIMANT_VISIBILITY",
    meaning: "`on`: failed messages come back after their backoff (needs sqs:ChangeMessageVisibility); `off`: after the queue's visibility timeout (default `on`)",
};

/// All of claimant's own variables, for the documentation and for finding misspelt ones.
pub const VARIABLES: [Variable; 5] = [TABLE, CONCURRENCY, MARGIN, LOCAL_TIMEOUT, VISIBILITY];

/// What the environment says.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The lock table's name, where one is set.
    pub table: Option<String>,
    /// How many messages of a batch are worked on at once, where the consumer does not say.
    pub concurrency: usize,
    /// How long before the deadline the engine has returned.
    pub margin: Duration,
    /// The time-out where the runtime gives no real deadline.
    pub local_timeout: Duration,
    /// Whether the visibility of failed messages is changed.
    pub change_visibility: bool,
    required: BTreeMap<String, String>,
}

impl Settings {
    /// Reads the environment: claimant's own variables, and those that this function requires.
    ///
    /// # Errors
    /// One error that lists every fault: missing, empty or unreadable values, values out of bounds, and
    /// `CLAIMANT_` variables that do not exist (most likely misspelt).
    pub fn from_env(required: &[&str]) -> Result<Self, Error> {
        let readable = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        Self::from_vars(readable.collect(), required)
    }

    /// As [`from_env`](Self::from_env), from these variables.
    ///
    /// # Errors
    /// As there.
    pub fn from_vars(vars: BTreeMap<String, String>, required: &[&str]) -> Result<Self, Error> {
        let mut reader = Reader { vars, faults: Vec::new() };
        let settings = Self {
            table: reader.text(TABLE.name),
            // OK because the bounds fit any usize.
            concurrency: reader.number(
                CONCURRENCY.name,
                limits::CONCURRENCY_DEFAULT as u64,
                1,
                limits::CONCURRENCY_MAX as u64,
            ) as usize,
            margin: reader.millis(MARGIN.name, limits::MARGIN_DEFAULT_MS, 50, limits::MARGIN_MAX_MS),
            local_timeout: reader.millis(LOCAL_TIMEOUT.name, 30_000, 1_000, 900_000),
            change_visibility: reader.switch(VISIBILITY.name, true),
            required: required.iter().filter_map(|name| Some(((*name).to_owned(), reader.required(name)?))).collect(),
        };
        reader.unknown_names();
        Error::unless_empty("the environment is not usable", &reader.faults)?;
        Ok(settings)
    }

    /// The value of a variable that was required.
    ///
    /// # Panics
    /// When `name` was not among those that were required: a slip in the program, not in its environment.
    #[must_use]
    pub fn required(&self, name: &str) -> &str {
        match self.required.get(name) {
            Some(value) => value,
            None => panic!("{name} was not among the variables given to Settings::from_env"),
        }
    }
}

struct Reader {
    vars: BTreeMap<String, String>,
    faults: Vec<String>,
}

impl Reader {
    /// The value, if it is set and not blank. A blank one is a fault: a template left a reference unresolved.
    fn text(&mut self, name: &str) -> Option<String> {
        let value = self.vars.get(name)?;
        if value.trim().is_empty() {
            self.fault(format!("{name} is set but empty: give it a value or remove it"));
            return None;
        }
        Some(value.clone())
    }

    /// Notes a fault, once: a variable can be claimant's own and required too.
    fn fault(&mut self, fault: String) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn required(&mut self, name: &str) -> Option<String> {
        if !self.vars.contains_key(name) {
            self.faults.push(format!("{name} is not set"));
        }
        self.text(name)
    }

    fn number(&mut self, name: &str, default: u64, min: u64, max: u64) -> u64 {
        let Some(text) = self.text(name) else { return default };
        match text.parse() {
            Ok(n) if (min..=max).contains(&n) => n,
            _ => {
                self.faults.push(format!("{name} is {text:?}; a whole number from {min} to {max} is needed"));
                default
            }
        }
    }

    fn millis(&mut self, name: &str, default: u64, min: u64, max: u64) -> Duration {
        Duration::from_millis(self.number(name, default, min, max))
    }

    fn switch(&mut self, name: &str, default: bool) -> bool {
        let Some(text) = self.text(name) else { return default };
        match text.as_str() {
            "on" => true,
            "off" => false,
            _ => {
                self.faults.push(format!("{name} is {text:?}; `on` or `off` is needed"));
                default
            }
        }
    }

    fn unknown_names(&mut self) {
        let known = |name: &str| VARIABLES.iter().any(|v| v.name == name);
        let unknown: Vec<&String> = self.vars.keys().filter(|n| n.starts_with(PREFIX) && !known(n)).collect();
        for name in unknown {
            let names: Vec<_> = VARIABLES.iter().map(|v| v.name).collect();
            self.faults.push(format!("{name} is no variable of claimant: there are {}", names.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)], required: &[&str]) -> Result<Settings, Error> {
        Settings::from_vars(vars.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(), required)
    }

    #[test]
    fn defaults_and_values() {
        let defaults = read(&[("PATH", "/bin")], &[]).unwrap();
        assert_eq!((defaults.concurrency, defaults.change_visibility), (10, true));
        let set = read(&[("CLAIMANT_TABLE", "locks"), ("CLAIMANT_MARGIN_MS", "50"), ("SENDER", "a@b.c")], &["SENDER"])
            .unwrap();
        assert_eq!((set.table.as_deref(), set.margin), (Some("locks"), Duration::from_millis(50)));
        assert_eq!(set.required("SENDER"), "a@b.c");
    }

    #[test]
    fn every_fault_stands_in_one_message() {
        let vars = [
            ("CLAIMANT_TABLE", " "),
            ("CLAIMANT_CONCURRENCY", "0"),
            ("CLAIMANT_MARGIN_MS", "soon"),
            ("CLAIMANT_VISIBILITY", "yes"),
            ("CLAIMANT_TABEL", "locks"),
        ];
        let text = read(&vars, &["SENDER"]).unwrap_err().to_string();
        let wanted = [
            "6 faults",
            "CLAIMANT_TABLE is set but empty",
            "CLAIMANT_CONCURRENCY is \"0\"",
            "from 1 to 1000",
            "CLAIMANT_MARGIN_MS",
            "`on` or `off`",
            "CLAIMANT_TABEL is no variable",
            "SENDER is not set",
        ];
        for wanted in wanted {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
    }
}
