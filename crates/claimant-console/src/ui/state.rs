//! The states of messages and of keys, as badges.

use maud::Markup;

use crate::timeline::Standing;
use crate::ui::badge::{Tone, badge};

/// Draws where a message is.
pub(crate) fn of_standing(standing: Standing) -> Markup {
    let tone = match standing {
        Standing::Done => Tone::Good,
        Standing::InFlight => Tone::Busy,
        Standing::Waiting | Standing::Delayed => Tone::Idle,
        Standing::ComesBack => Tone::Warn,
        Standing::DeadLettered | Standing::Parked | Standing::Expired => Tone::Bad,
        Standing::Redriven | Standing::Deleted => Tone::Quiet,
    };
    badge(tone, standing.as_str())
}

/// Draws the state of a key's record, by its word.
pub(crate) fn of_record(state: &str) -> Markup {
    let tone = match state {
        "completed" => Tone::Good,
        "running" => Tone::Busy,
        "stuck" | "failed" => Tone::Warn,
        "rejected" | "parked" => Tone::Bad,
        _ => Tone::Quiet,
    };
    badge(tone, state)
}
