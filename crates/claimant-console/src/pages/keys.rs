//! `/keys`: records by state, consumer and text; a key that is given in full is found at once.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use claimant_core::{Clock as _, ConsumerName, Error, State as KeyState, SystemClock};
use claimant_operate::keys::{Found, Keys, Query, record_json, span};
use claimant_operate::open::find;
use maud::{Markup, html};
use serde::Serialize;
use serde_json::Value;

use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::ui::nav::Tab;
use crate::ui::state::of_record;
use crate::ui::table::{self, Column, table};
use crate::ui::{form, text};

/// Records on the page.
const SHOWN_MAX: usize = 100;

/// After so many records no further page of them is read: a search without a match must not read a whole table each time.
const LOOKED_AT_MAX: u64 = 2_000;

/// The word for every state that waits for a person, or for a message that may not come again.
const OPEN: &str = "open";

const OPEN_STATES: [KeyState; 4] = [KeyState::Stuck, KeyState::Parked, KeyState::Rejected, KeyState::Failed];

const COLUMNS: [Column; 5] = [
    table::text("Key"),
    table::text("State"),
    table::number("Runs"),
    table::number("Last written"),
    table::text("Error"),
];

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/keys", get(show))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    let page = page(&console, &ask).await;
    ask.page(&console, page)
}

/// Some keys.
#[derive(Serialize)]
struct KeyList {
    text: Option<String>,
    consumer: Option<String>,
    state: Option<String>,
    keys: Vec<Value>,
    /// Whether there can be more, and how many records were read.
    more: bool,
    looked_at: u64,
    /// Why nothing was read, in a sentence: what reading would cost.
    not_read: Option<String>,
    #[serde(skip)]
    found: Vec<Found>,
}

async fn page(console: &Console, ask: &Ask) -> Result<KeyList, Error> {
    let field = |name: &str| ask.query.get(name).map(str::to_owned);
    let (text, consumer, state) = (field("text"), field("consumer"), field("state"));
    let states = match state.as_deref() {
        None => Vec::new(),
        Some(OPEN) => OPEN_STATES.to_vec(),
        Some(word) => vec![word.parse::<KeyState>()?],
    };
    let name = consumer.as_deref().map(ConsumerName::new).transpose()?;
    let query = Query { states, consumer: name.clone(), older_than: None, text: text.clone(), limit: SHOWN_MAX };
    let mut list = KeyList {
        text,
        consumer,
        state,
        keys: Vec::new(),
        more: false,
        looked_at: 0,
        not_read: None,
        found: Vec::new(),
    };
    list.found.extend(exactly(console, list.text.as_deref(), name.as_ref()).await?);
    let is_asked = list.text.is_some() || list.state.is_some() || list.consumer.is_some();
    if list.found.is_empty() && (console.source().is_sampled() || is_asked) {
        read(console, &query, &mut list).await?;
    } else if list.found.is_empty() {
        let mut costs = Vec::new();
        for store in console.stores().await? {
            costs.push(format!("a search of {} {}", store.name, store.keys.cost().await?.in_words()));
        }
        list.not_read = Some(format!("There is no index of keys: {}.", costs.join("; ")));
    }
    list.keys = list.found.iter().map(|found| record_json(&found.id, &found.record, Some(found.state))).collect();
    Ok(list)
}

/// The record whose id or key this text is.
async fn exactly(
    console: &Console,
    text: Option<&str>,
    consumer: Option<&ConsumerName>,
) -> Result<Option<Found>, Error> {
    // What is no key, and no record's id, is searched for.
    let Some(ids) = text.and_then(|text| Keys::ids(text, consumer).ok()) else { return Ok(None) };
    let (id, store) = find(console.stores().await?, &ids).await?;
    let inspection = store.keys.inspect(&id).await?;
    Ok(inspection.record.zip(inspection.state).map(|(record, state)| Found { id, record, state }))
}

async fn read(console: &Console, query: &Query, list: &mut KeyList) -> Result<(), Error> {
    for store in console.stores().await? {
        let listed = store.keys.list_some(query, LOOKED_AT_MAX).await?;
        list.more |= listed.more;
        list.looked_at += listed.looked_at;
        list.found.extend(listed.found);
    }
    list.more |= list.found.len() > SHOWN_MAX;
    list.found.truncate(SHOWN_MAX);
    Ok(())
}

impl Page for KeyList {
    const TAB: Tab = Tab::Keys;

    fn title(&self) -> String {
        "Keys".to_owned()
    }

    fn above(&self) -> Markup {
        let states = [("", "any"), (OPEN, "needs a look")];
        let states = states.into_iter().chain(KeyState::ALL.map(|state| (state.as_str(), state.as_str())));
        let state = form::select("state", states, self.state.as_deref());
        html! {
            form .fields role="search" method="get" action="/keys" {
                (form::field("Key, or a part of it", &html! { input type="search" name="text" value=[self.text.as_deref()] size="28"; }))
                (form::field("Consumer", &html! { input type="text" name="consumer" value=[self.consumer.as_deref()] size="18"; }))
                (form::field("State", &state))
                button .main type="submit" { "Search" }
            }
        }
    }

    fn below(&self) -> Markup {
        if let Some(why) = &self.not_read {
            return text::empty("Nothing was read yet", &html! { (why) });
        }
        let is_asked = self.text.is_some() || self.consumer.is_some() || self.state.is_some();
        if self.found.is_empty() && !is_asked {
            let more = html! { "The first message of a key makes its record. " a href="/send" { "Send a sample" } "." };
            return text::empty("No key has been claimed yet", &more);
        }
        if self.found.is_empty() {
            let read = text::counted(self.looked_at, "record was read", "records were read");
            return text::empty(
                "No such key",
                &html! { (read) @if self.more { ", and there are more: give the key in full, with its consumer" } "." },
            );
        }
        html! {
            (table("Keys", &COLUMNS, self.found.iter().map(row)))
            @if self.more {
                p .soft { "There are more: search for a part of the key, or choose a consumer or a state. " code { "claimant list" } " reads them all." }
            }
        }
    }
}

fn row(found: &Found) -> Vec<Markup> {
    let age = span(SystemClock.now().since(found.record.updated_at).as_secs());
    vec![
        text::key(found.id.as_str()),
        of_record(found.state.as_str()),
        text::count(u64::from(found.record.attempts)),
        html! { (age) " ago" },
        html! { (found.record.error.as_deref().unwrap_or_default()) },
    ]
}
