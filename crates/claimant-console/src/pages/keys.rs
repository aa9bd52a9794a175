//! `/keys`: records by state, consumer and text; a key that is given in full is found at once.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use claimant_core::protocol::runs;
use claimant_core::{ConsumerName, Error, State as KeyState};
use claimant_operate::keys::{Found, Inspection, Keys, Listed, Query, ReadOn, record_json};
use claimant_operate::open::find_meant;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::timeline::words::sentence;
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
    /// How many records were read, for the pages before this one too.
    looked_at: u64,
    /// Where the list goes on: `from` of the next page; `None` where all were read.
    next: Option<String>,
    /// Whether this is such a page.
    #[serde(skip)]
    is_later: bool,
    /// Why nothing was read, in a sentence: what reading would cost.
    not_read: Option<String>,
    /// What may be there and is not found, a sentence for each store of which that is so.
    unknown: Vec<String>,
    #[serde(skip)]
    found: Vec<Found>,
}

async fn page(console: &Console, ask: &Ask) -> Result<KeyList, Error> {
    let field = |name: &str| ask.query.get(name).map(str::to_owned);
    let (text, consumer, state, from) = (field("text"), field("consumer"), field("state"), field("from"));
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
        looked_at: 0,
        next: None,
        is_later: from.is_some(),
        not_read: None,
        unknown: console.place().absent_tables().iter().map(|one| sentence(one)).collect(),
        found: Vec::new(),
    };
    if from.is_none() {
        let exact = exactly(console, list.text.as_deref(), name.as_ref()).await?.into_iter();
        list.found.extend(exact.filter(|found| query.states.is_empty() || query.states.contains(&found.state)));
    }
    let is_asked = list.text.is_some() || list.state.is_some() || list.consumer.is_some() || from.is_some();
    if list.found.is_empty() && (console.source().is_sampled() || is_asked) {
        read(console, &query, from.as_deref(), &mut list).await?;
    } else if list.found.is_empty() {
        let mut costs = Vec::new();
        for store in console.stores().await? {
            costs.push(format!("a search of {} {}", store.name, store.keys.cost().await?.in_words()));
        }
        list.not_read = Some(format!("There is no index of keys: {}.", costs.join("; ")));
    }
    list.keys = list.found.iter().map(|found| record_json(&found.id, &found.record, found.state)).collect();
    Ok(list)
}

/// The records whose id or key this text is: one in the clear, and one that is hashed.
async fn exactly(console: &Console, text: Option<&str>, consumer: Option<&ConsumerName>) -> Result<Vec<Found>, Error> {
    // What is no key, and no record's id, is searched for.
    let Some(ids) = text.and_then(|text| Keys::ids(text, consumer).ok()) else { return Ok(Vec::new()) };
    let (meant, mut found) = (find_meant(console.stores().await?, &ids).await?, Vec::new());
    for one in meant.all() {
        let Inspection { id, record, state, .. } = one.inspect()?;
        found.extend(record.zip(state).map(|(record, state)| Found { id, record, state }));
    }
    Ok(found)
}

/// Where a list of several stores goes on.
#[derive(Serialize, Deserialize)]
struct Onward {
    /// How many records were read until then.
    looked_at: u64,
    /// Of each store; `None` where all of it was read.
    stores: Vec<Option<ReadOn>>,
    /// How many records of each store claimant did not write, until then.
    foreign: Vec<u64>,
}

async fn read(console: &Console, query: &Query, from: Option<&str>, list: &mut KeyList) -> Result<(), Error> {
    let stores = console.stores().await?;
    let count = stores.len();
    let begin = || Onward { looked_at: 0, stores: vec![Some(ReadOn::default()); count], foreign: vec![0; count] };
    let is_of_these = |on: &Onward| on.stores.len() == count && on.foreign.len() == count;
    let given = from.map(|text| serde_json::from_str(text).ok().filter(is_of_these));
    let unknown = || Error::invalid("from is none that a page of this list has given: leave it out");
    let mut onward = given.unwrap_or_else(|| Some(begin())).ok_or_else(unknown)?;
    for ((store, on), foreign) in stores.iter().zip(&mut onward.stores).zip(&mut onward.foreign) {
        let left_out = |listed: &Listed| Some(format!("{}: {}", store.name, listed.left_out_in_words()?));
        let Some(from) = on.take() else {
            list.unknown.extend(left_out(&Listed { foreign: *foreign, ..Listed::default() }));
            continue;
        };
        let query = Query { limit: SHOWN_MAX - list.found.len(), ..query.clone() };
        let (mut listed, next) = store.keys.list_some(&query, LOOKED_AT_MAX, from).await?;
        onward.looked_at = onward.looked_at.saturating_add(listed.looked_at);
        *foreign = foreign.saturating_add(listed.foreign);
        listed.foreign = *foreign;
        if !listed.found.is_empty() {
            list.unknown.extend(left_out(&listed));
        } else if let Err(why) = store.check_known(&listed).await {
            list.unknown.push(sentence(&why.to_string()));
        }
        list.found.extend(listed.found);
        *on = next;
    }
    list.looked_at = onward.looked_at;
    if onward.stores.iter().any(Option::is_some) {
        list.next = Some(serde_json::to_string(&onward).map_err(|e| Error::new("the page has no end").caused_by(e))?);
    }
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
        let is_known = self.unknown.is_empty();
        if self.found.is_empty() && !is_asked && self.next.is_none() && is_known {
            let more = html! { "The first message of a key makes its record. " a href="/send" { "Send a sample" } "." };
            return text::empty("No key has been claimed yet", &more);
        }
        let read = text::counted(self.looked_at, "record", "records");
        if self.found.is_empty() {
            let headline = match self.next {
                Some(_) => format!("None among the first {read}"),
                None if !is_known => "Not all records are known".to_owned(),
                None if self.is_later => "None among the rest".to_owned(),
                None if self.state.is_some() => "No such key in this state".to_owned(),
                None => "No such key".to_owned(),
            };
            let all = html! { @if is_known { "All " (read) " were read." } };
            let more = self.read_on().unwrap_or(all);
            return text::empty(&headline, &html! { @for one in &self.unknown { (one) " " } (more) });
        }
        html! {
            (table("Keys", &COLUMNS, self.found.iter().map(row)))
            @for one in &self.unknown { p .soft { (one) } }
            @if let Some(more) = self.read_on() { p .soft { "These are among the first " (read) ". " (more) } }
        }
    }
}

impl KeyList {
    /// The way to the next page, where not all records were read.
    fn read_on(&self) -> Option<Markup> {
        let fields = [("text", &self.text), ("consumer", &self.consumer), ("state", &self.state), ("from", &self.next)];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        let query: Vec<_> = fields.map(|(name, value)| format!("{name}={}", text::encoded(value))).collect();
        self.next.is_some().then(|| {
            html! {
                "There are more: " a rel="next" href={ "/keys?" (query.join("&")) } { "read on" } ", or give the key in full, with its consumer. "
                code { "claimant list" } " reads them all."
            }
        })
    }
}

fn row(found: &Found) -> Vec<Markup> {
    vec![
        text::key(found.id.as_str()),
        of_record(found.state.as_str()),
        text::count(u64::from(runs(&found.record))),
        text::time(found.record.updated_at.as_millis()),
        html! { (found.record.error_of_end().unwrap_or_default()) },
    ]
}
