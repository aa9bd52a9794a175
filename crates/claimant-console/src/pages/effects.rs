//! `/effects`: what the functions have done, and what was done twice.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use claimant_operate::effects::{Effect, Effects, Kind};
use claimant_operate::text::typed;
use maud::{Markup, html};
use serde::Serialize;

use super::local_only::local_only;
use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::ui::badge::{Tone, badge, shape};
use crate::ui::nav::Tab;
use crate::ui::table::{self, Column, table};
use crate::ui::text;

/// The latest effects of a kind that are shown.
const LATEST: usize = 20;

const KINDS: [Column; 5] = [
    table::text("Effects"),
    table::number("Done"),
    table::number("Keys"),
    table::number("Asked for"),
    table::text("More than once"),
];

const NOT_HERE: &str = "What functions do to the world is seen where it is done: a local cloud plays the mail server and the gateway, and counts. \
    Of a deployed stack the other systems can tell it, by the keys that they were given.";

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/effects", get(show))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    if let Some(answer) = local_only(&console, &ask, Tab::Effects, NOT_HERE) {
        return answer;
    }
    let effects = Effects::of(console.place()).await;
    ask.page(&console, effects.map(Done))
}

#[derive(Serialize)]
struct Done(Effects);

impl Page for Done {
    const TAB: Tab = Tab::Effects;

    fn title(&self) -> String {
        "Effects".to_owned()
    }

    fn above(&self) -> Markup {
        html! {
            p .lead {
                "What the functions have done to the world, seen where it was done: each key may have one effect of a kind. "
                "What was asked for more often was recognised, or refused."
            }
        }
    }

    fn live(&self) -> Markup {
        let Self(effects) = self;
        html! {
            @if effects.repeated() > 0 { (alarm(effects)) }
            (table("Kinds of effects", &KINDS, effects.kinds.iter().map(row)))
            @if effects.kinds.iter().all(|kind| kind.total == 0) {
                (text::empty("Nothing was done yet", &html! { "Send something on " a href="/send" { "Send" } "." }))
            }
            @for kind in effects.kinds.iter().filter(|kind| kind.total > 0) { (latest(kind)) }
        }
    }

    fn summary(&self) -> Option<String> {
        Some(match self.0.repeated() {
            0 if self.0.kinds.iter().all(|kind| kind.total == 0) => "Nothing was done yet.".to_owned(),
            0 if self.0.kinds.iter().any(|kind| kind.problem.is_some()) => {
                "It is not known of all kinds whether anything was done twice.".to_owned()
            }
            0 => "Nothing was done twice.".to_owned(),
            repeated => format!("Done more than once: {}.", text::counted(repeated, "key", "keys")),
        })
    }
}

/// What was done twice, where nobody can overlook it.
fn alarm(effects: &Effects) -> Markup {
    html! {
        section .alarm role="alert" {
            h2 { (shape(Tone::Bad)) "Done more than once" }
            ul {
                @for kind in &effects.kinds {
                    @for repeated in &kind.repeated {
                        li {
                            strong { (text::grouped(repeated.times)) " " (kind.in_words()) } ", key " (key(&repeated.key)) ": "
                            (repeated.what.join("; "))
                        }
                    }
                }
            }
        }
    }
}

fn row(kind: &Kind) -> Vec<Markup> {
    let of = |number: u64| html! { @if kind.problem.is_none() { (text::count(number)) } };
    vec![
        html! { (kind.name) @if let Some(of) = kind.of_in_words() { span .soft.small { " of " (of) } } },
        of(kind.total),
        of(kind.keys),
        of(kind.tries),
        html! {
            @match (&kind.problem, kind.repeated_keys) {
                (Some(problem), _) => { (badge(Tone::Warn, "not known")) " " span .soft.small { (problem) } },
                (None, 0) => (badge(if kind.total == 0 { Tone::Idle } else { Tone::Good }, "none")),
                (None, 1) => (badge(Tone::Bad, "1 key")),
                (None, keys) => (badge(Tone::Bad, &format!("{keys} keys"))),
            }
        },
    ]
}

fn latest(kind: &Kind) -> Markup {
    let columns = [table::text("Key"), table::text("What")];
    let row = |effect: &Effect| vec![key(&effect.key), html! { (effect.what) }];
    let some = if kind.total > LATEST as u64 { "The latest " } else { "All " };
    html! {
        section {
            h2 { (some) (kind.in_words()) }
            (table(&kind.in_words(), &columns, kind.latest.iter().take(LATEST).map(row)))
        }
    }
}

/// A key, with a link to the messages that have it.
fn key(key: &str) -> Markup {
    if key.is_empty() {
        return html! { span .soft.small { "no key" } };
    }
    html! { a .id href={ "/messages?text=" (text::encoded(key)) } { (typed(key)) } }
}

#[cfg(test)]
mod tests {
    use claimant_operate::effects::Repeated;

    use super::*;

    /// Functions with tables of their own have effects of one name.
    #[test]
    fn whose_effects_are_meant_is_said() {
        let repeated = vec![Repeated { key: "k".to_owned(), times: 2, what: vec!["x".to_owned(), "y".to_owned()] }];
        let kind = |functions: &[&str]| Kind {
            name: "rows".to_owned(),
            functions: functions.iter().map(|name| (*name).to_owned()).collect(),
            total: 2,
            repeated_keys: 1,
            repeated: repeated.clone(),
            ..Kind::default()
        };
        let page = Done(Effects { kinds: vec![kind(&["A", "B"]), kind(&["C"])] }).live().into_string();
        for of in ["A or B", "C"] {
            let shown = [format!("<strong>2 rows of {of}</strong>, key "), format!("<h2>All rows of {of}</h2>")];
            shown.iter().for_each(|shown| assert!(page.contains(shown), "{shown} is not in {page}"));
        }
    }
}
