//! What a scenario says of a limit.

use serde::{Deserialize, Serialize};

/// A limit's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitSpec {
    /// How many messages are started in a second.
    pub per_second: Option<u32>,
    /// How many run at once.
    pub at_once: Option<u32>,
    /// Into how many slots it is split.
    pub slots: u32,
    /// How every second process sets it: one of another version.
    #[serde(default)]
    pub other: Option<OtherLimit>,
}

/// A limit's settings in another version of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherLimit {
    /// How many messages are started in a second, where the first version has a rate.
    pub per_second: Option<u32>,
    /// Into how many slots it is split.
    pub slots: u32,
}

impl LimitSpec {
    /// As the process in this place sets it.
    #[must_use]
    pub fn of_process(self, place: usize) -> Self {
        match self.other {
            Some(OtherLimit { per_second, slots }) if place % 2 == 1 => Self { per_second, slots, ..self },
            _ => self,
        }
    }

    /// The most messages that are started in a second, whichever version's plan holds, if it has a rate.
    #[must_use]
    pub fn rate(self) -> Option<u32> {
        [0, 1].map(|place| self.of_process(place).per_second).into_iter().max().flatten()
    }

    /// How many slots are used at most.
    #[must_use]
    pub fn used(self) -> u32 {
        let used = |spec: Self| {
            let most = spec.per_second.unwrap_or(u32::MAX).min(spec.at_once.unwrap_or(u32::MAX));
            most.clamp(1, spec.slots)
        };
        [0, 1].map(|place| used(self.of_process(place))).into_iter().fold(1, u32::max)
    }
}
