//! What a fault is to do, and its bounds. Pure.

use serde::{Deserialize, Serialize};

use crate::Error;

/// How often a fault acts at most.
pub const TIMES_MAX: u32 = 10_000;
/// How long a fault acts at most, in seconds.
pub const SECONDS_MAX: u32 = 3_600;
/// How long a process is frozen at most, in seconds.
pub const FROZEN_MAX_S: u32 = 900;

/// How long a fault acts where neither a number of times nor of seconds is given, in seconds.
const SECONDS_DEFAULT: u32 = 10;
/// How long a process is frozen unless that is given, in seconds.
const FROZEN_DEFAULT_S: u32 = 5;

/// What a fault does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Kills a process of a function, with all that it started.
    Kill,
    /// Stops a process of a function where it is, for some seconds.
    Freeze,
    /// Carries a request out, and loses the answer: its connection is closed.
    Lose,
    /// Refuses a request with the error of a table that has no capacity left.
    Throttle,
    /// Closes the connection of a request that does not arrive.
    Cut,
    /// Refuses a request with the error of a service that is out of order.
    Refuse,
}

/// Whose requests a fault meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// All requests of functions to DynamoDB.
    Table,
    /// Of those, the ones that claim keys.
    Claims,
    /// Of those, the writes that claim no key: they complete, release or renew claims.
    Settlements,
    /// Of those, the ones that only read.
    Reads,
    /// Mails.
    Mail,
    /// Charges.
    Gateway,
}

/// When a process is met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Once it has claimed a message, and its handler starts.
    #[default]
    Claim,
    /// Once it has taken a batch.
    Batch,
    /// At once: the one that is named, or all of the function.
    Now,
}

/// A fault as it is asked for: what it does, to what, and how long. Without `times` and `seconds` it acts once, or for 10 s where
/// it throttles, cuts or refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// What it does.
    pub act: Act,
    /// Whose requests it meets: of [`Act::Lose`], [`Act::Throttle`], [`Act::Cut`] and [`Act::Refuse`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Target>,
    /// Whose process it meets: the name of a function, of [`Act::Kill`] and [`Act::Freeze`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Only this process, at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// When the process is met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// How long a process is frozen, in seconds; 5 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_s: Option<u32>,
    /// How often it acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// For how many seconds it acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
}

impl FaultSpec {
    /// Returns a fault that does this, with nothing else said.
    #[must_use]
    pub fn new(act: Act) -> Self {
        Self { act, of: None, function: None, process: None, when: None, frozen_s: None, times: None, seconds: None }
    }

    /// Returns the fault with its defaults.
    ///
    /// # Errors
    /// When something is missing, out of bounds or does not go with what it does: what, and what to give instead.
    pub fn checked(mut self, functions: &[String]) -> Result<Self, Error> {
        for (name, value, max) in [
            ("times", self.times, TIMES_MAX),
            ("seconds", self.seconds, SECONDS_MAX),
            ("frozen_s", self.frozen_s, FROZEN_MAX_S),
        ] {
            if value.is_some_and(|value| !(1..=max).contains(&value)) {
                return Err(Error::new(format!("{name} is {}: give 1 to {max}", value.unwrap_or_default())));
            }
        }
        if matches!(self.act, Act::Kill | Act::Freeze) {
            self.check_process(functions)?;
        } else {
            self.check_requests()?;
        }
        if self.times.is_none() && self.seconds.is_none() {
            match self.act {
                Act::Kill | Act::Freeze | Act::Lose => self.times = Some(1),
                Act::Throttle | Act::Cut | Act::Refuse => self.seconds = Some(SECONDS_DEFAULT),
            }
        }
        Ok(self)
    }

    fn check_process(&mut self, functions: &[String]) -> Result<(), Error> {
        if self.of.is_some() {
            return Err(Error::new("of does not go with a fault of a process: give function"));
        }
        let known = || if functions.is_empty() { "none".to_owned() } else { functions.join(", ") };
        match &self.function {
            Some(name) if functions.contains(name) => {}
            Some(name) => return Err(Error::new(format!("there is no function {name} here: there is {}", known()))),
            None => return Err(Error::new(format!("no function is given: there is {}", known()))),
        }
        if self.process.is_some() && self.when.is_some_and(|when| when != When::Now) {
            return Err(Error::new("a process that is named is met now: leave when out, or leave process out"));
        }
        let when = if self.process.is_some() { When::Now } else { self.when.unwrap_or_default() };
        if when == When::Now && (self.times.is_some_and(|times| times > 1) || self.seconds.is_some()) {
            return Err(Error::new("a fault that acts now acts once: leave times and seconds out"));
        }
        self.when = Some(when);
        match self.act {
            Act::Freeze => self.frozen_s = Some(self.frozen_s.unwrap_or(FROZEN_DEFAULT_S)),
            _ if self.frozen_s.is_some() => return Err(Error::new("frozen_s goes with freeze only")),
            _ => {}
        }
        Ok(())
    }

    fn check_requests(&self) -> Result<(), Error> {
        if self.function.is_some() || self.process.is_some() || self.when.is_some() || self.frozen_s.is_some() {
            return Err(Error::new("function, process, when and frozen_s go with kill and freeze only"));
        }
        let is_table = |of| matches!(of, Target::Table | Target::Claims | Target::Settlements | Target::Reads);
        let (fits, wanted) = match self.act {
            Act::Refuse => (self.of.is_some_and(|of| matches!(of, Target::Mail | Target::Gateway)), "mail or gateway"),
            Act::Lose => (self.of.is_some(), "table, claims, settlements, reads, mail or gateway"),
            _ => (self.of.is_some_and(is_table), "table, claims, settlements or reads"),
        };
        if fits { Ok(()) } else { Err(Error::new(format!("of is not what this fault can meet: give {wanted}"))) }
    }

    /// Returns whether it meets a request of this kind.
    pub(super) fn meets(&self, act: Act, target: Target) -> bool {
        let is_of_table = matches!(target, Target::Claims | Target::Settlements | Target::Reads);
        self.act == act && (self.of == Some(target) || (self.of == Some(Target::Table) && is_of_table))
    }

    /// Returns what it does, in words.
    #[must_use]
    pub fn does(&self) -> String {
        let function = self.function.as_deref().unwrap_or_default();
        let process = match (self.process, self.when) {
            (Some(process), _) => format!("process {process} of {function}"),
            (None, Some(When::Now)) => format!("all processes of {function}"),
            (None, Some(When::Batch)) => format!("a process of {function} that has taken a batch"),
            (None, _) => format!("a process of {function} that has claimed a message"),
        };
        let requests = match self.of {
            Some(Target::Claims) => "claims",
            Some(Target::Settlements) => "settlements",
            Some(Target::Reads) => "reads of the table",
            Some(Target::Mail) => "mails",
            Some(Target::Gateway) => "charges",
            Some(Target::Table) | None => "requests to the table",
        };
        match self.act {
            Act::Kill => format!("kills {process}"),
            Act::Freeze => format!("freezes {process} for {} s", self.frozen_s.unwrap_or_default()),
            Act::Lose => format!("loses the answers to {requests}"),
            Act::Throttle => format!("throttles {requests}"),
            Act::Cut => format!("cuts off {requests}"),
            Act::Refuse => format!("refuses {requests}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(spec: serde_json::Value) -> Result<FaultSpec, String> {
        let spec: FaultSpec = serde_json::from_value(spec).map_err(|e| e.to_string())?;
        spec.checked(&["orders".to_owned()]).map_err(|e| e.to_string())
    }

    #[test]
    fn a_fault_says_what_it_does() {
        for (spec, does, times, seconds) in [
            (
                json!({"act": "kill", "function": "orders"}),
                "kills a process of orders that has claimed a message",
                Some(1),
                None,
            ),
            (json!({"act": "kill", "function": "orders", "process": 7}), "kills process 7 of orders", Some(1), None),
            (
                json!({"act": "freeze", "function": "orders", "when": "batch", "frozen_s": 9, "times": 3}),
                "freezes a process of orders that has taken a batch for 9 s",
                Some(3),
                None,
            ),
            (json!({"act": "lose", "of": "settlements"}), "loses the answers to settlements", Some(1), None),
            (json!({"act": "cut", "of": "table"}), "cuts off requests to the table", None, Some(10)),
            (json!({"act": "refuse", "of": "mail", "seconds": 60}), "refuses mails", None, Some(60)),
        ] {
            let fault = checked(spec).unwrap();
            assert_eq!((fault.does().as_str(), fault.times, fault.seconds), (does, times, seconds));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_to_give() {
        for (spec, wanted) in [
            (json!({"act": "explode"}), "explode"),
            (json!({"act": "kill"}), "there is orders"),
            (json!({"act": "kill", "function": "order"}), "there is no function order here: there is orders"),
            (json!({"act": "kill", "function": "orders", "of": "mail"}), "give function"),
            (json!({"act": "kill", "function": "orders", "process": 1, "when": "claim"}), "leave when out"),
            (json!({"act": "kill", "function": "orders", "when": "now", "times": 2}), "acts once"),
            (json!({"act": "kill", "function": "orders", "frozen_s": 2}), "freeze only"),
            (json!({"act": "freeze", "function": "orders", "frozen_s": 901}), "give 1 to 900"),
            (json!({"act": "cut", "of": "mail"}), "give table, claims, settlements or reads"),
            (json!({"act": "refuse", "of": "table"}), "give mail or gateway"),
            (json!({"act": "lose"}), "give table, claims"),
            (json!({"act": "lose", "of": "mail", "function": "orders"}), "kill and freeze only"),
            (json!({"act": "lose", "of": "mail", "times": 0}), "give 1 to 10000"),
            (json!({"act": "lose", "of": "mail", "minutes": 1}), "minutes"),
        ] {
            let error = checked(spec.clone()).unwrap_err();
            assert!(error.contains(wanted), "{spec}: {error}");
        }
    }
}
