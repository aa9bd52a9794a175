//! A reader of environment variables: every fault of every part of a program in one message.
//!
//! Each crate reads its own settings through [`Variables`], and so does a function. What a reader was asked for is what it
//! knows: so it finds misspelt names without a list of all settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::mem;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// The prefix of claimant's own variables.
const PREFIX: &str = "CLAIMANT_";

/// A name that differs from a known one by at most so many letters is taken for that name, misspelt.
const MISSPELT_MAX: usize = 2;

/// The words of a switch.
const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];

/// The faults that readers of the process's environment have noted, and no [`finish`](Variables::finish) has returned yet.
static UNSAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Reads environment variables and notes every fault; [`finish`](Self::finish) returns them all in one error.
///
/// A variable that is missing, empty or malformed is noted, and a placeholder is returned, so that reading can go on. Use what
/// was read only after `finish`, or what calls it, has returned `Ok`. What a reader of the process's environment has noted and was never
/// asked for is in the error of the next one that is finished: a function does not start with a placeholder.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::Variables;
///
/// struct Gateway {
///     url: String,
///     deduplicates: bool,
/// }
///
/// # fn main() -> Result<(), claimant::Error> {
/// let mut variables = Variables::new([("GATEWAY_URL", "https://pay.example"), ("GATEWAY_DEDUPLICATES", "yes")]);
/// let gateway = Gateway {
///     url: variables.text("GATEWAY_URL"),
///     deduplicates: variables.choice("GATEWAY_DEDUPLICATES", [("yes", true), ("no", false)]),
/// };
/// variables.finish()?;
/// assert!(gateway.deduplicates && gateway.url == "https://pay.example");
///
/// let mut variables = Variables::new([("GATEWAY_URL", " ")]);
/// variables.text("GATEWAY_URL");
/// variables.number("CENTS_MAX", 1..=500);
/// let error = variables.finish().unwrap_err().to_string();
/// assert!(error.contains("GATEWAY_URL is set but empty") && error.contains("CENTS_MAX is not set"));
/// # Ok(())
/// # }
/// ```
#[must_use = "its faults are returned by `finish`"]
pub struct Variables {
    vars: BTreeMap<String, String>,
    known: BTreeSet<String>,
    faults: Vec<String>,
    unknown: Unknown,
    /// Where its faults are until a `finish` returns them, by whichever reader.
    unsaid: Option<&'static Mutex<Vec<String>>>,
}

/// What to do about a variable with claimant's prefix that nothing has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// It can be another part's, unless it is nearly the name of a known one.
    RefusedIfMisspelt,
    /// Every part has read its own: it is a fault.
    Refused,
}

impl Variables {
    /// Returns a reader of the process's environment.
    pub fn from_env() -> Self {
        let readable = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        Self { unsaid: Some(&UNSAID), ..Self::new(readable) }
    }

    /// Returns a reader of these variables, for tests.
    pub fn new<N: Into<String>, V: Into<String>>(vars: impl IntoIterator<Item = (N, V)>) -> Self {
        let vars = vars.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { vars, known: BTreeSet::new(), faults: Vec::new(), unknown: Unknown::RefusedIfMisspelt, unsaid: None }
    }

    /// Makes [`finish`](Self::finish) refuse every `CLAIMANT_` variable that was not read: for a program whose parts have all read
    /// their settings by then. Otherwise it refuses only names that differ from a known one by a letter or two.
    pub fn refuse_unknown(mut self) -> Self {
        self.unknown = Unknown::Refused;
        self
    }

    /// Returns the value of a variable that has to be set; in place of a fault, an empty text.
    pub fn text(&mut self, name: &str) -> String {
        self.text_or_hint(name, "")
    }

    /// Returns the value as [`text`](Self::text) does. The fault of one that is not set ends with this hint.
    pub fn text_or_hint(&mut self, name: &str, hint: &str) -> String {
        self.require(name, hint);
        self.optional_text(name).unwrap_or_default()
    }

    /// Returns the value of a variable that may be left out. Set but empty is a fault: a template left a reference unresolved.
    pub fn optional_text(&mut self, name: &str) -> Option<String> {
        self.known.insert(name.to_owned());
        let value = self.vars.get(name)?;
        if value.trim().is_empty() {
            self.fault(format!("{name} is set but empty: give it a value or remove it"));
            return None;
        }
        Some(value.clone())
    }

    /// Returns the whole number that a variable, which has to be set, holds; in place of a fault, the smallest one allowed.
    pub fn number(&mut self, name: &str, allowed: RangeInclusive<u64>) -> u64 {
        self.require(name, "");
        let smallest = *allowed.start();
        self.optional_number(name, allowed).unwrap_or(smallest)
    }

    /// Returns the whole number that a variable holds, if it is set.
    pub fn optional_number(&mut self, name: &str, allowed: RangeInclusive<u64>) -> Option<u64> {
        let text = self.optional_text(name)?;
        let number = text.parse().ok().filter(|number| allowed.contains(number));
        if number.is_none() {
            let (min, max) = allowed.into_inner();
            self.fault(format!("{name} is {text:?}; a whole number from {min} to {max} is needed"));
        }
        number
    }

    /// Returns what the word in a variable, which has to be set, stands for; in place of a fault, what the first word does.
    pub fn choice<C: Copy, const WORDS: usize>(&mut self, name: &str, choices: [(&str, C); WORDS]) -> C {
        const { assert!(WORDS > 0, "a choice needs words to choose from") };
        self.require(name, "");
        self.optional_choice(name, choices).unwrap_or(choices[0].1)
    }

    /// Returns what the word in a variable stands for, if it is set.
    pub fn optional_choice<C: Copy, const WORDS: usize>(
        &mut self,
        name: &str,
        choices: [(&str, C); WORDS],
    ) -> Option<C> {
        let text = self.optional_text(name)?;
        let choice = choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
        if choice.is_none() {
            let words = choices.map(|(word, _)| format!("`{word}`"));
            self.fault(format!("{name} is {text:?}; {} is needed", words.join(" or ")));
        }
        choice
    }

    /// Returns whether a variable is `on`, or `off`, if it is set.
    pub fn optional_switch(&mut self, name: &str) -> Option<bool> {
        self.optional_choice(name, SWITCH)
    }

    /// Records a fault that only the caller can detect, such as a URL of another scheme; once, however often it is recorded.
    /// The text is shown: leave out values that are secret.
    pub fn fault(&mut self, fault: impl Into<String>) {
        let fault = fault.into();
        if self.faults.contains(&fault) {
            return;
        }
        if let Some(unsaid) = self.unsaid {
            lock(unsaid).push(fault.clone());
        }
        self.faults.push(fault);
    }

    /// Ends reading.
    ///
    /// # Errors
    /// One error that lists every fault: missing, empty or malformed values, values out of bounds, and `CLAIMANT_` variables
    /// that do not exist, most likely misspelt. Of a reader [of the environment](Self::from_env), also the faults of others that were
    /// not finished.
    pub fn finish(self) -> Result<(), Error> {
        Error::unless_empty("the environment is not usable", &self.into_faults())
    }

    /// Ends reading as [`finish`](Self::finish) does, and returns each fault by itself: for what shows them in its own way.
    pub fn into_faults(mut self) -> Vec<String> {
        for fault in self.unknown_names() {
            self.fault(fault);
        }
        let unsaid = self.unsaid.map(|unsaid| mem::take(&mut *lock(unsaid))).unwrap_or_default();
        for fault in unsaid {
            if !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
        }
        self.faults
    }

    fn require(&mut self, name: &str, hint: &str) {
        if !self.vars.contains_key(name) {
            let hint = if hint.is_empty() { String::new() } else { format!(": {hint}") };
            self.fault(format!("{name} is not set{hint}"));
        }
    }

    fn unknown_names(&self) -> Vec<String> {
        let unknown = self.vars.keys().filter(|name| name.starts_with(PREFIX) && !self.known.contains(*name));
        unknown.filter_map(|name| self.unknown_name(name)).collect()
    }

    fn unknown_name(&self, name: &str) -> Option<String> {
        let ours = || self.known.iter().filter(|known| known.starts_with(PREFIX));
        let nearest = ours().map(|known| (strsim::osa_distance(name, known), known)).min();
        match nearest.filter(|(distance, _)| *distance <= MISSPELT_MAX) {
            Some((_, meant)) => Some(format!("{name} is no variable of claimant: did you mean {meant}?")),
            None if self.unknown == Unknown::RefusedIfMisspelt => None,
            None => {
                let names: Vec<_> = ours().map(String::as_str).collect();
                Some(format!("{name} is no variable of claimant: there are {}", names.join(", ")))
            }
        }
    }
}

fn lock(faults: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    // OK because a push that panics leaves a list that is whole.
    faults.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows names, never values: they can be secret.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables").field("known", &self.known).field("unknown", &self.unknown).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Vars<'a> = &'a [(&'a str, &'a str)];

    fn reader(vars: Vars<'_>) -> Variables {
        Variables::new(vars.iter().copied())
    }

    /// A part's variables and a function's own, each in its own way.
    fn read(vars: Vars<'_>) -> Result<(String, Option<String>, u64, bool), Error> {
        let mut reader = reader(vars).refuse_unknown();
        reader.text("CLAIMANT_PLACE");
        let deduplicates = reader.choice("DEDUPLICATES", [("yes", true), ("no", false)]);
        let cents_max = reader.number("CENTS_MAX", 1..=500);
        let read = (reader.text("SENDER"), reader.optional_text("COPY"), cents_max, deduplicates);
        reader.finish().map(|()| read)
    }

    #[test]
    fn a_functions_own_variables_are_read_with_claimants() {
        let vars = [("CLAIMANT_PLACE", "x"), ("SENDER", "a@b.c"), ("CENTS_MAX", "500"), ("DEDUPLICATES", "no")];
        assert_eq!(read(&vars).unwrap(), ("a@b.c".into(), None, 500, false));
        let more = [&vars[..], &[("COPY", "d@e.f")]].concat();
        assert_eq!(read(&more).unwrap().1.as_deref(), Some("d@e.f"));
    }

    #[test]
    fn every_fault_is_in_one_message() {
        let none =
            ["CLAIMANT_PLACE is not set", "SENDER is not set", "CENTS_MAX is not set", "DEDUPLICATES is not set"];
        let empty = ["CLAIMANT_PLACE", "SENDER", "COPY", "CENTS_MAX", "DEDUPLICATES"];
        let is_empty = empty.map(|name| format!("{name} is set but empty"));
        let bad = [
            ("CLAIMANT_PLAEC", "x"),
            ("CLAIMANT_PLACE", "x"),
            ("SENDER", "x"),
            ("CENTS_MAX", "501"),
            ("DEDUPLICATES", "on"),
        ];
        let is_bad = [
            "CLAIMANT_PLAEC is no variable of claimant: did you mean CLAIMANT_PLACE?",
            "CENTS_MAX is \"501\"; a whole number from 1 to 500",
            "DEDUPLICATES is \"on\"; `yes` or `no`",
        ];
        let rows: [(Vars<'_>, &[&str]); 3] =
            [(&[], &none), (&empty.map(|name| (name, " ")), &is_empty.each_ref().map(String::as_str)), (&bad, &is_bad)];
        for (vars, wanted) in rows {
            let text = read(vars).unwrap_err().to_string();
            assert!(text.contains(&format!("{} faults", wanted.len())), "{text}");
            for wanted in wanted {
                assert!(text.contains(wanted), "{wanted} in {text}");
            }
        }
    }

    #[test]
    fn the_faults_of_a_forgotten_reader_are_in_the_next_error() {
        static OF_THIS_TEST: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let of_the_environment = |vars| Variables { unsaid: Some(&OF_THIS_TEST), ..reader(vars) };
        let finish = |variables: Variables| variables.finish().err().map(|error| error.to_string());
        let mut forgotten = of_the_environment(&[("CENTS_MAX", "501")]);
        assert_eq!((forgotten.text("URL"), forgotten.number("CENTS_MAX", 1..=500)), (String::new(), 1));
        assert_eq!(finish(reader(&[])), None, "what is no reader of the environment has nothing to do with it");
        let mut store = of_the_environment(&[]);
        store.text("URL");
        store.text("CLAIMANT_PLACE");
        let said = finish(store).unwrap();
        for wanted in ["3 faults", "CLAIMANT_PLACE is not set", "URL is not set", "CENTS_MAX is \"501\""] {
            assert!(said.contains(wanted), "{wanted} in {said}");
        }
        // They are said once, and its own error is as complete as ever.
        assert_eq!(finish(of_the_environment(&[])), None);
        assert!(finish(forgotten).unwrap().contains("2 faults"));
        assert_eq!(finish(of_the_environment(&[])), None);
    }

    #[test]
    fn optional_values_are_left_out_or_checked() {
        let mut set = reader(&[("N", "7"), ("S", "off"), ("C", "b")]);
        assert_eq!((set.optional_number("N", 1..=7), set.optional_switch("S")), (Some(7), Some(false)));
        assert_eq!(set.optional_choice("C", [("a", 1), ("b", 2)]), Some(2));
        assert_eq!((set.optional_number("M", 1..=7), set.optional_switch("T")), (None, None));
        set.finish().unwrap();
        let mut bad = reader(&[("N", "0"), ("M", "soon"), ("S", "yes"), ("C", "on")]);
        assert_eq!((bad.optional_number("N", 1..=7), bad.optional_number("M", 1..=7)), (None, None));
        assert_eq!((bad.optional_switch("S"), bad.optional_choice("C", [("a", 1), ("b", 2), ("c", 3)])), (None, None));
        let text = bad.finish().unwrap_err().to_string();
        for wanted in ["4 faults", "N is \"0\"; a whole number from 1 to 7", "M is \"soon\"", "`on` or `off`"] {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
        assert!(text.contains("C is \"on\"; `a` or `b` or `c` is needed"), "{text}");
    }

    /// What is said of a variable with this name, where `CLAIMANT_PLACE` was read.
    fn said_of(name: &str, whole_program: bool) -> Option<String> {
        let mut reader = reader(&[("CLAIMANT_PLACE", "x"), (name, "x"), ("PATH", "/bin")]);
        reader.text("CLAIMANT_PLACE");
        let reader = if whole_program { reader.refuse_unknown() } else { reader };
        reader.finish().err().map(|error| error.to_string())
    }

    #[test]
    fn misspelt_names_are_refused_by_a_part_and_unknown_ones_by_the_program() {
        for name in ["CLAIMANT_PLAEC", "CLAIMANT_PLAC", "CLAIMANT_PLACES", "CLAIMANT_PALCE", "CLAIMANT__PLACE"] {
            for whole_program in [false, true] {
                let said = said_of(name, whole_program).expect(name);
                assert!(said.contains(name) && said.contains("did you mean CLAIMANT_PLACE?"), "{said}");
            }
        }
        assert_eq!(said_of("CLAIMANT_CONCURRENCY", false), None);
        let said = said_of("CLAIMANT_CONCURRENCY", true).unwrap();
        assert!(said.contains("CLAIMANT_CONCURRENCY is no variable") && said.contains("there are CLAIMANT_PLACE"));
        assert_eq!(said_of("SENDER", true), None);
    }

    #[test]
    fn a_fault_is_noted_once_and_values_are_not_shown() {
        let mut reader = reader(&[("URL", "postgres://u:secret@h/d")]);
        reader.text("URL");
        reader.text_or_hint("NAME", "give it a name");
        reader.text_or_hint("NAME", "give it a name");
        reader.fault("URL is of another scheme");
        assert!(!format!("{reader:?}").contains("secret"));
        let text = reader.finish().unwrap_err().to_string();
        assert!(text.contains("2 faults") && text.contains("NAME is not set: give it a name"), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
}
