//! Values of options.

use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use claimant_core::limits::{LIMIT_CALLS_MAX, LIMIT_PER_MAX_MS, LIMIT_PER_MIN_MS};
use claimant_core::{ConsumerName, Error, State};
use claimant_operate::keys::LIST_MAX;
use claimant_operate::text::from_typed;
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};

/// The longest time that can be asked for: a hundred years.
const TIME_MAX_S: u64 = 100 * 365 * 86_400;

/// A state of a key: one of those that help and completions show.
pub(crate) fn state() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new(State::ALL.map(State::as_str)).try_map(|text| text.parse::<State>())
}

/// A key or the id of a record, as lists show it to a shell.
pub(crate) fn key() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().try_map(|key| from_typed(key.into_vec()))
}

/// Checks that no more keys or ids were given than one command takes.
///
/// # Errors
/// When there are more.
pub(crate) fn at_most(max: usize, what: &str, given: &[String]) -> Result<(), Error> {
    match given.len() {
        given if given <= max => Ok(()),
        given => {
            Err(Error::invalid(format!("give {max} {what} at most; {given} were given (xargs -n {max} divides them)")))
        }
    }
}

/// A consumer's name.
pub(crate) fn consumer(text: &str) -> Result<ConsumerName, String> {
    ConsumerName::new(text).map_err(|e| e.to_string())
}

/// How many to list.
pub(crate) fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(limit) if (1..=LIST_MAX).contains(&limit) => Ok(limit),
        _ => Err(format!("give a whole number from 1 to {LIST_MAX}")),
    }
}

/// A name and its value, or the variable that holds it.
pub(crate) fn name_and_value(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or("write NAME=VALUE, or NAME=env:VARIABLE")?;
    Ok((name.to_owned(), of_variable(value)?))
}

/// A span of time: a whole number and s, m, h or d.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("min", 60), ("h", 3_600), ("d", 86_400)];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = units.iter().find(|(name, _)| *name == unit.trim()).map(|(_, seconds)| seconds);
    match (number.parse::<u64>(), unit) {
        (Ok(number), Some(unit)) if number <= TIME_MAX_S / unit => Ok(Duration::from_secs(number * unit)),
        (Ok(_), Some(_)) => Err(format!("give {}d at most", TIME_MAX_S / 86_400)),
        _ => Err("give a whole number and s, m, h or d, such as 90s or 15m".to_owned()),
    }
}

/// What asks for no calls at all does instead.
const TO_START_NOTHING: &str = "to start nothing: claimant pause FUNCTION";

/// How many calls run at once.
pub(crate) fn at_once(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err(TO_START_NOTHING.to_owned()),
        Ok(calls) if calls <= LIMIT_CALLS_MAX => Ok(calls),
        _ => Err(format!("give a whole number from 1 to {LIMIT_CALLS_MAX}")),
    }
}

/// A rate: a whole number, and the time that it is for in milliseconds.
pub(crate) fn rate(text: &str) -> Result<(u32, u64), String> {
    let parts = text.split_once('/').and_then(|(calls, per)| {
        let per = per.trim();
        let per = if per.starts_with(|c: char| c.is_ascii_digit()) { per.to_owned() } else { format!("1{per}") };
        Some((calls.trim(), u64::try_from(time(&per).ok()?.as_millis()).ok()?))
    });
    if let Some(whole) = parts.and_then(|(calls, per_ms)| instead_of_part(calls, per_ms)) {
        return Err(whole);
    }
    match parts.and_then(|(calls, per_ms)| Some((calls.parse().ok()?, per_ms))) {
        Some((0, _)) => Err(TO_START_NOTHING.to_owned()),
        Some((calls, per_ms)) if per_ms > LIMIT_PER_MAX_MS => {
            Err(match u64::from(calls).saturating_mul(60_000) / per_ms {
                // Another rate than the one asked for.
                0 => slowest(),
                in_a_minute => format!("a rate is for a minute at most: {in_a_minute}/min"),
            })
        }
        Some((calls, per_ms)) if calls <= LIMIT_CALLS_MAX && per_ms >= LIMIT_PER_MIN_MS => Ok((calls, per_ms)),
        Some(_) => Err(format!("give {LIMIT_CALLS_MAX} at most, for a second or more")),
        None => Err("give a whole number and a time, such as 20/s, 6/min or 100/30s".to_owned()),
    }
}

fn slowest() -> String {
    format!("a rate is for a minute at most, and 1/min is the slowest; {TO_START_NOTHING}")
}

/// Returns what to give instead of a part of a call in that time.
fn instead_of_part(calls: &str, per_ms: u64) -> Option<String> {
    let calls = calls.parse::<f64>().ok().filter(|calls| calls.fract() != 0.0)?;
    // Such as 0.7 is kept as a little less.
    let a_minute = (calls * 60_000.0 / per_ms as f64 + 1e-6).floor();
    match a_minute {
        0.0 if calls > 0.0 => Some(slowest()),
        1.0.. if a_minute <= LIMIT_CALLS_MAX.into() => Some(format!("give a whole number and a time: {a_minute}/min")),
        _ => None,
    }
}

/// Returns the value of an option; of one that is `env:NAME` what the variable has, which no list of processes shows.
pub(crate) fn of_variable(option: &str) -> Result<String, String> {
    let Some(name) = option.strip_prefix("env:") else { return Ok(option.to_owned()) };
    std::env::var(name).map_err(|_| format!("the variable {name} is not set, or is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_values() {
        assert_eq!(name_and_value("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert!(name_and_value("A").is_err());
        assert!(name_and_value("=b").is_err());
        let home = std::env::var("HOME").unwrap();
        assert_eq!(name_and_value("A=env:HOME"), Ok(("A".into(), home)));
        assert!(name_and_value("A=env:NO_SUCH_VARIABLE").is_err_and(|why| why.contains("NO_SUCH_VARIABLE")));
    }

    #[test]
    fn times() {
        for (text, seconds) in [
            ("90s", Some(90)),
            ("15m", Some(900)),
            ("2 d", Some(172_800)),
            ("0s", Some(0)),
            ("15", None),
            ("m", None),
            ("1.5h", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
            ("", None),
        ] {
            assert_eq!(time(text).ok(), seconds.map(Duration::from_secs), "{text}");
        }
        assert_eq!(time("36501d").unwrap_err(), "give 36500d at most");
    }

    #[test]
    fn rates() {
        for (text, wanted) in [
            ("20/s", Some((20, 1_000))),
            ("6/min", Some((6, 60_000))),
            ("100 / 30s", Some((100, 30_000))),
            ("20", None),
            ("/s", None),
            ("2.5/s", None),
            ("-1/s", None),
            ("5e-1/s", None),
            ("20/", None),
            ("20/x", None),
        ] {
            assert_eq!(rate(text).ok(), wanted, "{text}");
        }
        // What to give instead.
        for (refused, says) in [
            (rate("0/s").err(), "claimant pause FUNCTION"),
            (at_once("0").err(), "claimant pause FUNCTION"),
            (rate("1000/2min").err(), "500/min"),
            (rate("60/h").err(), "at most: 1/min"),
            (rate("59/h").err(), "1/min is the slowest; to start nothing: claimant pause FUNCTION"),
            (rate("5/0s").err(), "for a second or more"),
            (rate("0.1/s").err(), "and a time: 6/min"),
            (rate("2.5 / 10s").err(), "and a time: 15/min"),
            (rate(".01/s").err(), "1/min is the slowest; to start nothing: claimant pause FUNCTION"),
            (rate("-0.5/s").err(), "such as 20/s, 6/min"),
            (rate("0.5/0s").err(), "such as 20/s, 6/min"),
            (rate("9999.5/s").err(), "such as 20/s, 6/min"),
            (rate("nan/s").err(), "such as 20/s, 6/min"),
            (rate("100001/s").err(), "100000 at most"),
            (at_once("100001").err(), "from 1 to 100000"),
        ] {
            assert!(refused.as_ref().is_some_and(|refused| refused.contains(says)), "{says}: {refused:?}");
        }
        assert_eq!(at_once("100000"), Ok(100_000));
    }

    #[test]
    fn limits() {
        assert!(limit("0").is_err() && limit("x").is_err() && limit("7") == Ok(7));
    }
}
