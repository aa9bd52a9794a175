//! A state, by word and shape and colour: never by colour alone.

use maud::{Markup, html};

/// What a state means for who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// It is done.
    Good,
    /// It is under way.
    Busy,
    /// It waits.
    Idle,
    /// It will come again, or someone should look.
    Warn,
    /// It failed for good, or needs a person.
    Bad,
    /// It was skipped, or has no meaning of its own.
    Quiet,
}

impl Tone {
    /// Returns the tone of an outcome, by the word that logs and metrics have for it.
    pub(crate) fn of_outcome(word: &str) -> Self {
        match word {
            "completed" => Self::Good,
            "duplicate" => Self::Quiet,
            "rejected" | "dead_lettered" | "parked" | "conflict" => Self::Bad,
            _ => Self::Warn,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Busy => "busy",
            Self::Idle => "idle",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::Quiet => "quiet",
        }
    }
}

/// Draws a state.
pub(crate) fn badge(tone: Tone, word: &str) -> Markup {
    html! { span class={ "badge " (tone.class()) } { (shape(tone)) (word) } }
}

/// Draws the shape of a tone, for the eye alone.
pub(crate) fn shape(tone: Tone) -> Markup {
    html! {
        svg class={ "shape " (tone.class()) } viewBox="0 0 12 12" width="12" height="12" aria-hidden="true" {
            @match tone {
                Tone::Good => { circle cx="6" cy="6" r="5" fill="currentColor" {} path d="M3.4 6.2 5.3 8 8.7 4.2" class="cut" {} },
                Tone::Busy => { circle cx="6" cy="6" r="4.25" class="line" {} path d="M6 1.75a4.25 4.25 0 0 1 0 8.5z" fill="currentColor" {} },
                Tone::Idle => { circle cx="6" cy="6" r="4.25" class="line" {} },
                Tone::Warn => { path d="M6 1 11.4 10.6H.6z" fill="currentColor" {} },
                Tone::Bad => { rect x="1.2" y="1.2" width="9.6" height="9.6" rx="1.5" fill="currentColor" {} path d="M4 4l4 4M8 4l-4 4" class="cut" {} },
                Tone::Quiet => { path d="M2 6h8" class="line" {} },
            }
        }
    }
}
