//! Event source mappings that breakers have paused.

use claimant_core::breaker::BREAKER_CONSUMER;
use claimant_core::error::Chain;
use serde_json::{Value, json};

use crate::intake::{ComesBack, Intake, Mapping};
use crate::target::Place;

/// A mapping that is off, and when it is on again.
#[derive(Debug, Clone)]
pub struct Pause {
    mapping: Mapping,
    back: ComesBack,
}

impl Pause {
    /// Returns the function that gets no messages.
    #[must_use]
    pub fn function(&self) -> &str {
        &self.mapping.function
    }

    /// Returns the queue that waits.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.mapping.queue
    }

    /// Returns it in words, without a full stop.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Mapping { function, queue, .. } = &self.mapping;
        format!("{function} from {queue} is paused, and on again at {}", self.back)
    }

    /// Returns it as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Mapping { function, queue, .. } = &self.mapping;
        json!({ "function": function, "queue": queue, "on_again": self.back.to_json() })
    }

    /// Returns whether this breaker may have wanted it.
    fn may_be_of(&self, breaker: &str) -> bool {
        self.back.why.as_ref().is_none_or(|why| why.starts_with(&format!("breaker {breaker} of ")))
    }
}

/// Returns the name of the breaker whose record has this id, if it is one's.
#[must_use]
pub fn breaker(id: &str) -> Option<&str> {
    id.strip_prefix(BREAKER_CONSUMER)?.strip_prefix('#')
}

/// Returns the mappings that breakers have paused; and in words, without a full stop, that it is not known of all.
pub async fn paused(place: &Place) -> (Vec<Pause>, Option<String>) {
    let intake = Intake::of(place);
    let (mut paused, mut failed) = (Vec::new(), None);
    match intake.list_in(place).await {
        Ok(mappings) => {
            for mapping in mappings {
                match intake.comes_back(&mapping).await {
                    Ok(back) => paused.extend(back.map(|back| Pause { mapping, back })),
                    Err(error) => failed = Some(error),
                }
            }
        }
        Err(error) => failed = Some(error),
    }
    let why = match failed {
        Some(error) => Some(format!(": {}", Chain(&error))),
        None => place.functions.is_empty().then(|| ", since no function is known here".to_owned()),
    };
    (paused, why.map(|why| format!("Whether a breaker has paused the intake is not known{why}")))
}

/// Returns the mappings that these breakers have paused, which an act on a breaker's record does not switch on; and what [`paused`] says of
/// what is not known.
pub async fn paused_by(place: &Place, breakers: &[&str]) -> (Vec<Pause>, Option<String>) {
    let (mut paused, not_known) = self::paused(place).await;
    paused.retain(|pause| breakers.iter().any(|breaker| pause.may_be_of(breaker)));
    (paused, not_known)
}
