//! The timeline of a message.

use maud::{Markup, html};

use crate::timeline::{FIRST_STEPS, Kind, Step};
use crate::ui::badge::{Tone, shape};
use crate::ui::text;

/// Draws the steps, the oldest first; so many of the middle were left out.
pub(crate) fn timeline(steps: &[Step], left_out: usize) -> Markup {
    let gap = if left_out > 0 { FIRST_STEPS } else { usize::MAX };
    html! {
        ol .timeline role="list" {
            @for (at, step) in steps.iter().enumerate() {
                @if at == gap { li .step.wait { time {} span .mark {} p { (text::grouped(left_out as u64)) " steps are left out here." } } }
                @let before = at.checked_sub(1).and_then(|before| steps.get(before));
                (one(step, before.map_or(!step.own, |before| before.message != step.message)))
            }
        }
    }
}

/// Draws a step, with the message where it is another one than that of the step before.
fn one(step: &Step, names_message: bool) -> Markup {
    html! {
        li class={ "step " (class(step.kind)) @if !step.own { " other" } } {
            (text::time(step.at_ms))
            span .mark { (shape(tone(step.kind))) }
            div {
                p .what { (step.what) @if names_message { " " (whose(step)) } }
                @if let Some(detail) = &step.detail { p .detail { (detail) } }
                @if let Some(process) = &step.process { @if shows_process(step.kind) { p .detail { (process) } } }
            }
        }
    }
}

/// Draws whose step it is.
fn whose(step: &Step) -> Markup {
    html! { span .soft { "· " @if step.own { "this message" } @else { "message " (text::message(&step.message)) } } }
}

/// The process stands where a message comes to it, and where it ends.
const fn shows_process(kind: Kind) -> bool {
    matches!(kind, Kind::Handed | Kind::Broken)
}

const fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Receive => "receive",
        Kind::Wait => "wait",
        Kind::Log => "log",
        _ => "event",
    }
}

const fn tone(kind: Kind) -> Tone {
    match kind {
        Kind::Receive | Kind::Claim => Tone::Busy,
        Kind::Effect | Kind::Queue | Kind::Handed => Tone::Idle,
        Kind::Done => Tone::Good,
        Kind::Failed => Tone::Warn,
        Kind::Broken => Tone::Bad,
        Kind::Wait | Kind::Log => Tone::Quiet,
    }
}
