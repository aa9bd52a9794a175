//! `/keys/KEY`: one record in words, what would come next by the decision that functions make, and the acts on it.

use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use claimant_core::protocol::Act as OnKey;
use claimant_core::{Error, RecordId};
use claimant_operate::keys::{Acted, Inspection, Keys, Order, Version, operator, record_lines};
use claimant_operate::open::{Located, Meant, find_meant};
use claimant_operate::pauses::{Pause, breaker, paused_by};
use claimant_operate::text::typed;
use maud::{Markup, html};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::two::{self, EXACT, Other, exactly};
use crate::act::Act;
use crate::answer::Page;
use crate::ask::{Ask, Reader};
use crate::console::{Console, DRAFT, FORM};
use crate::done::Done;
use crate::fields::{Fields, VERSION};
use crate::ui::badge::{Tone, badge, shape};
use crate::ui::nav::Tab;
use crate::ui::state::of_record;
use crate::ui::table::{self, Column, table};
use crate::ui::{form, text};

const NEXT: [Column; 3] = [table::text("What comes"), table::text("Outcome"), table::text("What becomes of it")];
const ACTS: [Column; 2] = [table::text("Act"), table::text("What it would do now")];

/// The latest messages that are shown.
const MESSAGES_MAX: usize = 100;

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/keys/{key}", get(show).post(act))
}

async fn show(State(console): State<Console>, Path(key): Path<String>, ask: Ask) -> Response {
    let page = page(&console, &key, &ask).await;
    ask.page(&console, page)
}

/// One key.
struct Key {
    inspection: Inspection,
    /// The key's hashed record, where this one is in the clear, or would be.
    other: Option<Other>,
    /// The version of its record when the page was opened: what its form means.
    opened_at: Version,
    /// The name of the store that has it, or would have it.
    store: String,
    /// The latest messages that are known to have this key, the latest last.
    messages: Vec<String>,
    /// Earlier ones.
    left_out: usize,
    read_only: bool,
    /// The number of the form that acts on it.
    form: String,
    /// What was typed into a form that meant an earlier version.
    typed: Option<Fields>,
}

async fn page(console: &Console, key: &str, ask: &Ask) -> Result<Key, Error> {
    let (first, other) = two::shown(console.stores().await?, key, ask.query.flag(EXACT)?).await?;
    let inspection = first.inspect()?;
    let (messages, all) = console.source().messages_of_key(first.id.as_str(), MESSAGES_MAX).await?;
    let opened_at = ask.query.get(VERSION).filter(|_| ask.reader == Reader::OpenPage).map(Version::from);
    Ok(Key {
        opened_at: opened_at.unwrap_or_else(|| Version::of(inspection.record.as_ref())),
        inspection,
        other: other.as_ref().and_then(Other::of),
        store: first.store.name.clone(),
        left_out: all.saturating_sub(messages.len()),
        messages,
        read_only: !console.source().allows_writes(),
        form: console.new_form(),
        typed: console.draft(&ask.query),
    })
}

/// Returns it with what was typed into the form of an act that did nothing.
fn with_typed(console: &Console, key: &str, act: &Act) -> String {
    let see = exactly(key);
    if act.is_typed { format!("{see}&{DRAFT}={}", console.keep_draft(act.fields.clone())) } else { see }
}

async fn act(State(console): State<Console>, Path(key): Path<String>, act: Act) -> Response {
    let (act, done) = act.once(&console, |console, act| async move { acted(&console, &key, &act).await }).await;
    act.ask.done(&console, Tab::Keys, done)
}

async fn acted(console: &Console, key: &str, act: &Act) -> Result<Done, Error> {
    console.check_writes()?;
    act.takes(&["act", "why", "force", "dry_run", EXACT, VERSION], None)?;
    let on_key: OnKey = act.fields.required("act")?.parse()?;
    // A program may mean the record as it is.
    let shown = if act.is_typed { Some(act.fields.required(VERSION)?) } else { act.fields.narrowing(VERSION)? };
    let shown = shown.map(Version::from);
    let ids = if act.fields.flag(EXACT)? { vec![RecordId::from_stored(key)?] } else { Keys::ids(key, None)? };
    let meant = find_meant(console.stores().await?, &ids).await?;
    if let Some(two) = meant.two() {
        return Ok(two::refused(key, &meant, &two, with_typed(console, key, act)));
    }
    let Meant { first: Located { id, store, .. }, .. } = meant;
    let order = Order {
        id: id.clone(),
        act: on_key,
        by: operator(),
        why: act.fields.get("why").unwrap_or_default().to_owned(),
        force: act.fields.flag("force")?,
        dry_run: act.fields.flag("dry_run")?,
    };
    let acted = store.keys.act_on(&order, shown.as_ref()).await?;
    let mut says = format!("{}: {}", typed(key), acted.in_words(on_key, &id));
    // A key may go on faster than a person types.
    let see = if matches!(acted, Acted::Changed(_)) { with_typed(console, key, act) } else { exactly(key) };
    let mut value = acted.to_json(&id, store.keys.now());
    if let Some(breaker) = breaker(id.as_str()) {
        let (paused, not_known) = paused_by(console.place(), &[breaker]).await;
        let at_once = |pause: &Pause| format!("{}. At once: Resume, on the overview", pause.in_words());
        for sentence in paused.iter().map(at_once).chain(not_known) {
            says = format!("{}. {sentence}", says.trim_end_matches('.'));
        }
        value["paused"] = paused.iter().map(Pause::to_json).collect();
    }
    Ok(Done::of(acted.is_done(), says, see, value))
}

impl Key {
    fn version(&self) -> Version {
        Version::of(self.inspection.record.as_ref())
    }

    /// Returns whether the page has a form that acts on it: it had a record when it was opened.
    fn has_form(&self) -> bool {
        !self.read_only && self.opened_at != Version::of(None)
    }

    /// Says beside the form that the record is another one by now than what it means.
    fn gone_on(&self) -> Markup {
        let see = exactly(self.inspection.id.as_str());
        html! {
            // There from the first, so that what comes into it is spoken.
            div role="status" {
                @if self.version() != self.opened_at {
                    p .notice {
                        (shape(Tone::Warn))
                        span {
                            "The key has gone on since this page was opened. " a href=(see) { "Look at it again" }
                            @if self.has_form() { " before you act on it: this form means the record as it was then, and would do nothing" }
                            "."
                        }
                    }
                }
            }
        }
    }

    /// Draws what its record says of something. The record of a breaker or of a limit names a consumer in the place of a message.
    fn value_of(&self, what: &str, value: &str) -> Markup {
        if what == "message" && self.inspection.is_of_work() {
            text::message(value)
        } else {
            html! { (value) }
        }
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("store", &self.store)?;
        map.serialize_entry(VERSION, self.version().as_str())?;
        map.serialize_entry("messages", &self.messages)?;
        map.serialize_entry("left_out", &self.left_out)?;
        map.serialize_entry("key", &self.inspection.to_json())?;
        map.serialize_entry("other", &self.other)?;
        map.end()
    }
}

impl Page for Key {
    const TAB: Tab = Tab::Keys;

    fn again(&self) -> Option<String> {
        // The record of the title, also where another one would be meant by now.
        let path = exactly(self.inspection.id.as_str());
        Some(format!("{path}&{VERSION}={}", text::encoded(self.opened_at.as_str())))
    }

    fn title(&self) -> String {
        typed(self.inspection.id.as_str()).into_owned()
    }

    fn live(&self) -> Markup {
        let Inspection { record, state, now, next, acts, .. } = &self.inspection;
        html! {
            section .story aria-label="What its record says" {
                header {
                    // Spoken when it changes. What is said below changes each second.
                    span role="status" {
                        @match state {
                            Some(state) => (of_record(state.as_str())),
                            None => (badge(Tone::Quiet, "absent")),
                        }
                    }
                    span .soft.small { "in " (self.store) }
                }
                p .says { (self.inspection.headline()) }
            }
            (self.other.as_ref().map(|other| other.notice(self.inspection.state)).unwrap_or_default())
            @if let Some(record) = record {
                section .card {
                    h2 { "Record" }
                    dl .cells { @for (what, value) in record_lines(record, *now) { div { dt { (what) } dd { (self.value_of(what, &value)) } } } }
                }
            }
            section {
                h2 { "If it came now" }
                p .soft { "Decided by the code that functions run." }
                (table("If it came now", &NEXT, next.iter().map(|forecast| vec![
                    html! { (forecast.case) }, badge(tone(forecast.outcome), forecast.outcome), html! { "It " (forecast.says) "." },
                ])))
            }
            @if !self.messages.is_empty() {
                section {
                    h2 { "Its messages" }
                    @if self.left_out > 0 {
                        p .soft {
                            "The latest " (MESSAGES_MAX) ". " (text::counted(self.left_out as u64, "earlier one is", "earlier ones are"))
                            " left out: search for the key on " a href={ "/messages?text=" (text::encoded(self.inspection.id.as_str())) } { "Messages" } "."
                        }
                    }
                    ul .others { @for id in &self.messages { li { (text::message(id)) } } }
                }
            }
            @if record.is_some() {
                section {
                    h2 { "What can be done" }
                    (table("What can be done", &ACTS, acts.iter().map(|possible| vec![html! { (possible.act) }, html! { (possible.says) }])))
                }
            }
            (self.gone_on())
        }
    }

    fn below(&self) -> Markup {
        if !self.has_form() {
            return html! {};
        }
        let id = self.inspection.id.as_str();
        let typed = |name: &str| self.typed.as_ref().and_then(|typed| typed.get(name));
        let why = html! { input type="text" name="why" size="36" maxlength="120" value=[typed("why")]; };
        html! {
            section .card {
                h2 { "Act on it" }
                form method="post" action=(text::path("/keys/", id)) autocomplete="off" {
                    (form::hidden(&[(FORM, &self.form), (VERSION, self.opened_at.as_str())]))
                    // Only where it was said that there is another one.
                    @if self.other.is_some() { (form::hidden(&[(EXACT, "true")])) }
                    div .fields {
                        (form::field("Act", &html! {
                            select name="act" required {
                                option value="" { "Choose an act" }
                                @for act in OnKey::ALL { option value=(act.as_str()) selected[typed("act") == Some(act.as_str())] { (act.as_str()) } }
                            }
                        }))
                        (form::field("Why, for the note on the record", &why))
                        button .main type="submit" { "Do it" }
                    }
                    label .check {
                        input type="checkbox" name="force" value="true";
                        " Force it, although an owner works on the key or it is done: its work can then run twice, and at the same time."
                    }
                }
            }
        }
    }
}

fn tone(outcome: &str) -> Tone {
    if outcome == "runs" { Tone::Busy } else { Tone::of_outcome(outcome) }
}
