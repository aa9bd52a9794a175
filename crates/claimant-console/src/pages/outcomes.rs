//! What became of messages, on the overview.

use claimant_core::report::OUTCOME_WORDS;
use maud::{Markup, html};

use crate::source::ConsumerState;
use crate::ui::badge::Tone;
use crate::ui::table::{self, table};
use crate::ui::{plot, text};

/// What became of messages, by consumer: only the outcomes that there were.
pub(super) fn draw(consumers: &[ConsumerState]) -> Markup {
    let count = |consumer: &ConsumerState, word: &str| {
        consumer.outcomes.iter().find(|(known, _)| known == word).map_or(0, |(_, count)| *count)
    };
    let words = OUTCOME_WORDS.into_iter().filter(|word| consumers.iter().any(|consumer| count(consumer, word) > 0));
    let words: Vec<_> = words.collect();
    if words.is_empty() {
        return text::empty("No outcomes yet", &html! { "They come with the first batch." });
    }
    let columns: Vec<_> = [table::text("Consumer"), table::text("Share")]
        .into_iter()
        .chain(words.iter().map(|word| table::number(word)))
        .collect();
    let row = |consumer: &ConsumerState| {
        let parts = words.iter().map(|word| (fill(Tone::of_outcome(word)), count(consumer, word)));
        let mut row = vec![html! { (consumer.name) }, plot::share(parts)];
        row.extend(words.iter().map(|word| text::count(count(consumer, word))));
        row
    };
    table("Outcomes", &columns, consumers.iter().map(row))
}

const fn fill(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "fill-good",
        Tone::Busy => "fill-busy",
        Tone::Warn => "fill-warn",
        Tone::Bad => "fill-bad",
        Tone::Idle | Tone::Quiet => "fill-quiet",
    }
}
