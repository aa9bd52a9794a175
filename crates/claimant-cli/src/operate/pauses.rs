//! Event source mappings that breakers have paused.

use claimant_core::Error;
use claimant_core::breaker::BREAKER_CONSUMER;
use claimant_operate::intake::{ComesBack, Intake, Mapping};
use claimant_operate::target::Place;
use serde_json::{Value, json};

/// A mapping that is off, and when it is on again.
pub(super) struct Pause {
    mapping: Mapping,
    back: ComesBack,
}

impl Pause {
    /// Returns whether this breaker may have wanted it.
    pub(super) fn may_be_of(&self, breaker: &str) -> bool {
        self.back.why.as_ref().is_none_or(|why| why.starts_with(&format!("breaker {breaker} of ")))
    }

    pub(super) fn in_words(&self) -> String {
        let Mapping { function, queue, .. } = &self.mapping;
        format!("{function} from {queue} is paused, and on again at {}. At once: claimant resume {function}", self.back)
    }

    pub(super) fn to_json(&self) -> Value {
        let Mapping { function, queue, .. } = &self.mapping;
        json!({ "function": function, "queue": queue, "on_again": self.back.to_json() })
    }
}

/// Returns the name of the breaker whose record has this id, if it is one's.
pub(super) fn breaker(id: &str) -> Option<&str> {
    id.strip_prefix(BREAKER_CONSUMER)?.strip_prefix('#')
}

/// Returns the mappings that breakers have paused, and an error where it is not known of all.
pub(super) async fn paused(place: &Place) -> (Vec<Pause>, Option<Error>) {
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
    (paused, failed)
}
