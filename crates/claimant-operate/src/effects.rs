//! What the functions of a local cloud have done to the world, and how often each thing was done.

use claimant_core::Error;
use serde::{Deserialize, Serialize};

use crate::http;
use crate::target::Place;

/// Everything that was done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// Its kinds: mails and charges, and what the functions that the local cloud knows keep in tables.
    pub kinds: Vec<Kind>,
}

/// Effects of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// What they are, in the plural: `mails`.
    pub name: String,
    /// The functions that have them: which of these did one is not known. None where no function that is known has them.
    #[serde(default)]
    pub functions: Vec<String>,
    /// How many there are.
    #[serde(default)]
    pub total: u64,
    /// How often one was asked for: repeats that were recognised, and those that were refused, are among them.
    #[serde(default)]
    pub tries: u64,
    /// How many different keys they have.
    #[serde(default)]
    pub keys: u64,
    /// How many keys have more than one.
    #[serde(default)]
    pub repeated_keys: u64,
    /// Keys that have more than one, the first 100.
    #[serde(default)]
    pub repeated: Vec<Repeated>,
    /// The latest 100; of tables, any 100.
    #[serde(default)]
    pub latest: Vec<Effect>,
    /// Why it is not known.
    #[serde(default)]
    pub problem: Option<String>,
}

/// A key that has more than one effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    /// The key.
    pub key: String,
    /// How many.
    pub times: u64,
    /// The first ten of them: an address, an amount.
    pub what: Vec<String>,
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// Its key; empty where it has none.
    pub key: String,
    /// What was done: an address, an amount.
    pub what: String,
}

/// Of more functions, the others are counted.
const NAMED_MAX: usize = 3;

impl Kind {
    /// Returns whose they are, in words: the function, or those of which it may be one, up to three by name; nothing where none is known.
    #[must_use]
    pub fn of_in_words(&self) -> Option<String> {
        let (named, others) = self.functions.split_at(self.functions.len().min(NAMED_MAX));
        match (named, others.len()) {
            ([], _) => None,
            ([one], _) => Some(one.clone()),
            ([first @ .., last], 0) => Some(format!("{} or {last}", first.join(", "))),
            (named, 1) => Some(format!("{} or 1 other", named.join(", "))),
            (named, others) => Some(format!("{} or {others} others", named.join(", "))),
        }
    }

    /// Returns what they are and whose, in words, which no other kind has: `rows of audit`.
    #[must_use]
    pub fn in_words(&self) -> String {
        self.of_in_words().map_or_else(|| self.name.clone(), |of| format!("{} of {of}", self.name))
    }
}

impl Effects {
    /// Asks a local cloud what its functions have done.
    ///
    /// # Errors
    /// When it is no local cloud, which alone sees what is done, or gives no answer.
    pub async fn of(place: &Place) -> Result<Self, Error> {
        let control = place.control.as_deref().ok_or_else(|| {
            Error::invalid(format!(
                "{} cannot tell what its functions have done: only a local cloud sees it",
                place.name
            ))
        })?;
        let answer = http::get(&format!("{control}/_claimant/effects")).await?;
        serde_json::from_slice(&answer)
            .map_err(|e| Error::new(format!("{control} is no control endpoint of a local cloud")).caused_by(e))
    }

    /// Returns how many keys have more than one effect of a kind.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.repeated_keys).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_are_named_that_it_may_be() {
        let of = |names: &[&str]| {
            let functions = names.iter().map(|name| (*name).to_owned()).collect();
            Kind { functions, ..Kind::default() }.of_in_words()
        };
        assert_eq!(of(&[]), None);
        for (names, words) in [
            (&["a"][..], "a"),
            (&["a", "b"], "a or b"),
            (&["a", "b", "c"], "a, b or c"),
            (&["a", "b", "c", "d"], "a, b, c or 1 other"),
            (&["a", "b", "c", "d", "e"], "a, b, c or 2 others"),
        ] {
            assert_eq!(of(names).as_deref(), Some(words));
        }
        let rows = |functions| Kind { name: "rows".to_owned(), functions, ..Kind::default() }.in_words();
        assert_eq!((rows(vec![]), rows(vec!["a".to_owned()])), ("rows".to_owned(), "rows of a".to_owned()));
    }
}
