//! Event source mappings that breakers have paused, in the words of the command line.

use claimant_operate::pauses::Pause;

/// Returns a pause in words, with the command that ends it.
pub(super) fn in_words(pause: &Pause) -> String {
    format!("{}. At once: claimant resume {}", pause.in_words(), pause.function())
}
