//! Event source mappings that breakers have paused, in the words of the command line.

use claimant_operate::pauses::Pause;
use claimant_operate::text::harmless;

use crate::output::note;

/// What is said where Ctrl-C or SIGTERM came before it was looked at.
pub(super) const NOT_LOOKED_AT: &str = "Whether a breaker has paused the intake was not looked at";

/// Returns a pause in words, with the command that ends it.
pub(super) fn in_words(pause: &Pause) -> String {
    format!("{}. At once: claimant resume {} --queue {}", pause.in_words(), pause.function(), pause.queue())
}

/// Says what is not known of pauses, if anything is, with the command that looks again.
pub(super) fn note_not_known(not_known: Option<&str>) {
    if let Some(not_known) = not_known {
        note(harmless(&format!("{not_known}. claimant pause --dry-run FUNCTION says so, with the rights for it.")));
    }
}
