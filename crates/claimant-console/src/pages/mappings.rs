//! `POST /mappings`, as `claimant pause` and `claimant resume` do.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{Redirect, Response};
use axum::routing::get;
use claimant_core::Error;
use claimant_core::error::Chain;
use claimant_operate::intake::{Change, Intake};
use claimant_operate::switch::{Switched, switch};
use serde_json::json;

use crate::act::Act;
use crate::console::Console;
use crate::done::Done;
use crate::timeline::words::sentence;
use crate::ui::nav::Tab;

/// Where mappings are paused and resumed.
pub(super) const MAPPINGS: &str = "/mappings";

/// Where mappings are seen.
const SEEN: &str = "/";

/// How long a page waits until mappings are off.
const OFF_WITHIN: Duration = Duration::from_secs(10);

/// Returns the routes of this act.
pub(crate) fn routes() -> Router<Console> {
    // An address that only does something is opened by who loads a page anew.
    Router::new().route(MAPPINGS, get(|| async { Redirect::to(SEEN) }).post(act))
}

async fn act(State(console): State<Console>, act: Act) -> Response {
    let (act, done) = act.once(&console, |console, act| async move { switched(&console, &act).await }).await;
    act.ask.done_at(&console, Tab::Overview, done, || SEEN.to_owned())
}

/// Pauses or resumes the mappings of a function.
async fn switched(console: &Console, act: &Act) -> Result<Done, Error> {
    console.check_writes()?;
    act.takes(&["function", "enabled"], None)?;
    let function = act.fields.required("function")?;
    act.fields.required("enabled")?;
    let enabled = act.fields.flag("enabled")?;
    let intake = Intake::of(console.place());
    let (_, mappings) = intake.list_called(console.place(), function).await?;
    if mappings.is_empty() {
        return Ok(Done::refused(format!("{function} has no event source mapping."), SEEN, json!([])));
    }
    let change = Change { enabled: Some(enabled), ..Change::default() };
    let within = if enabled { Duration::ZERO } else { OFF_WITHIN };
    // Whoever may not delete schedules pauses all the same; a breaker's is on again at its time, which the notice then says.
    let mut all = switch(&intake, mappings, change, within, std::future::pending()).await;
    let changed = all.iter().filter(|one| one.is_changed()).count();
    if changed == 0
        && let Some(error) = all.iter_mut().find_map(|one| one.failed.take())
    {
        return Err(error);
    }
    let is_whole = changed == all.len();
    let mut text = match (is_whole, enabled) {
        (false, _) => in_parts(&all),
        (true, true) => format!("{function} gets messages again."),
        (true, false) => format!("{function} gets no more messages; what is in flight ends as it would."),
    };
    if let Some(error) = all.iter().find_map(|one| one.not_kept_off.as_ref()) {
        let why = format!("where a breaker had paused it, a schedule switches it on again: {}", Chain(error));
        text.push_str(&format!(" {}", sentence(&why)));
    }
    Ok(Done::of(is_whole, text, SEEN, all.iter().map(Switched::to_json).collect()))
}

/// Says what is known of each mapping, where not all were changed.
fn in_parts(all: &[Switched]) -> String {
    let part = |one: &Switched| {
        let why = one.why_not().map_or_else(String::new, |why| format!(" ({why})"));
        format!("the mapping of {} is {}{why}", one.mapping.queue, one.mapping.state)
    };
    format!("Not all was changed: {}.", all.iter().map(part).collect::<Vec<_>>().join("; "))
}
