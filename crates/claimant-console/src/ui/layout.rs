//! The whole page around its content, and the part of it that is drawn again and again.

use claimant_core::{Clock as _, SystemClock, Timestamp};
use maud::{DOCTYPE, Markup, html};

use crate::done::Notice;
use crate::ui::badge::{Tone, shape};
use crate::ui::nav::{Tab, nav};

/// htmx: no style of its own, no saved pages, what is folded out stays so when the live part is drawn again, and a console that was away is
/// seen to be back within seconds.
const HTMX: &str = r#"{"includeIndicatorCSS":false,"history":false,"morphIgnore":["data-htmx-powered","open"],"sse":{"reconnectMaxDelay":5000}}"#;

/// What is around a page's content.
pub(crate) struct Frame<'a> {
    /// The part of the console that it belongs to.
    pub(crate) tab: Tab,
    /// The heading.
    pub(crate) title: &'a str,
    /// What the console shows, such as `the local cloud of template.yaml`.
    pub(crate) place: &'a str,
    /// Whether acts are not allowed.
    pub(crate) read_only: bool,
    /// Whether it asks again by itself.
    pub(crate) is_live: bool,
    /// What became of the act that led here.
    pub(crate) notice: Option<Notice>,
}

/// Draws a whole page.
pub(crate) fn page(frame: &Frame<'_>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="htmx-config" content=(HTMX);
                title { (frame.title) " · claimant" }
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/console.css";
                script src="/assets/htmx.js" defer {}
            }
            body {
                a .skip href="#main" { "Skip to the content" }
                header .top {
                    a .brand href="/" { img src="/assets/icon.svg" alt="" width="24" height="24"; "claimant" }
                    p .place { (frame.place) @if frame.read_only { " · read-only" } }
                    (nav(frame.tab))
                }
                main #main tabindex="-1" {
                    h1 { (frame.title) }
                    @if let Some(notice) = &frame.notice { (self::notice(notice)) }
                    (content)
                }
                footer { p { @if !frame.is_live { "This page stays as it is: load it again to look again. " } "Times are UTC. Every page answers JSON too, with " code { "Accept: application/json" } "." } }
            }
        }
    }
}

/// Draws what became of an act. It has the focus: of a page that loads nothing else is spoken but its title, and the next link is below it.
fn notice(notice: &Notice) -> Markup {
    let (class, role, tone) =
        if notice.done { ("notice", "status", Tone::Good) } else { ("notice refused", "alert", Tone::Bad) };
    html! { p #notice class=(class) role=(role) aria-labelledby="notice" tabindex="-1" autofocus { (shape(tone)) (notice.text) } }
}

/// Draws what hears that something changed. An element of its own: where a stream has an `hx-trigger`, that is what opens it.
pub(crate) fn stream() -> Markup {
    html! { div #stream hx-sse:connect="/live" {} }
}

/// Draws what is seen once the page was not drawn again for a while: a sentence that is another one each time. Without a script, so that it
/// also says so of a console that is stopped, but not gone. A tab that was in the background asked for nothing, and says so, too, until it is
/// drawn again.
fn old(drawn: Timestamp) -> Markup {
    let utc = drawn.to_utc();
    html! {
        // There from the first, so that what is seen in it is spoken.
        div role="status" {
            p .old id={ "drawn-" (drawn.as_millis()) } {
                strong { "Not drawn again since " time datetime=(utc) { (utc.replace('T', " ").replace('Z', " UTC")) } "." }
                " What is here is as it was then. Is the console still running?"
            }
        }
    }
}

/// Draws the live part of the page at `uri`: it asks for itself again when something changes; without `uri` it stays as it is. The
/// summary is spoken when it changes.
pub(crate) fn live(uri: Option<&str>, summary: Option<&str>, content: &Markup) -> Markup {
    let trigger = uri.map(|_| "changed from:#stream");
    html! {
        div #live hx-get=[uri] hx-trigger=[trigger] hx-swap="outerMorph" {
            @if uri.is_some() { (old(SystemClock.now())) }
            p #summary .lead role="status" hidden[summary.is_none()] { (summary.unwrap_or_default()) }
            (content)
        }
    }
}
