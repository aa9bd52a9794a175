//! A key that can have two records, one in the clear and one that is hashed: which one a page is of, and what it says of the other.

use claimant_core::{Error, RecordId, State};
use claimant_operate::keys::Keys;
use claimant_operate::open::{Located, Meant, OpenStore, find, find_meant};
use claimant_operate::text::typed;
use maud::{Markup, html};
use serde::Serialize;
use serde_json::json;

use crate::done::Done;
use crate::ui::badge::{Tone, shape};
use crate::ui::text;

/// The field that says that the record of this very id is meant, though the key has a hashed one, too; of a page in its address.
pub(super) const EXACT: &str = "exact";

/// Finds the record of a page, and the key's other one. A page that is to be of this very id stays of it, also where that has no record.
pub(super) async fn shown<'a>(
    stores: &'a [OpenStore],
    key: &str,
    is_exact: bool,
) -> Result<(Located<'a>, Option<Located<'a>>), Error> {
    let Meant { first, other } = find_meant(stores, &Keys::ids(key, None)?).await?;
    if !is_exact || first.id.as_str() == key {
        return Ok((first, other));
    }
    let own = find(stores, &RecordId::from_stored(key)?).await?;
    Ok((own, Some(first).filter(Located::counts)))
}

/// Returns the path of the page that is of this very id.
pub(super) fn exactly(id: &str) -> String {
    format!("{}?{EXACT}=true", text::path("/keys/", id))
}

/// Returns that an act is refused, since the key has two records, of these names; `see` is the page of the one in the clear.
pub(super) fn refused(key: &str, meant: &Meant<'_>, named: &str, see: String) -> Done {
    let records: Vec<_> = meant.all().map(|one| one.id.as_str()).collect();
    let value = json!({
        "record": key, "outcome": "refused", "why": "two_records", "before": null, "after": null, "records": records,
    });
    let says = format!(
        "{}: refused: the key has two records, {named}. Look at both, and act on the page of the one that is meant; a program does so with \
         {EXACT}=true.",
        typed(key)
    );
    Done::refused(says, see, value)
}

/// The key's hashed record, beside the page's own.
#[derive(Serialize)]
pub(super) struct Other {
    record: String,
    state: &'static str,
}

impl Other {
    /// Returns it; `None` where there is no record.
    pub(super) fn of(located: &Located<'_>) -> Option<Self> {
        Some(Self { record: located.id.as_str().to_owned(), state: located.state()?.as_str() })
    }

    /// Draws that the key has it beside a record in this state, or alone.
    pub(super) fn notice(&self, own: Option<State>) -> Markup {
        let (has, more) = match own {
            None | Some(State::Over) => {
                ("The record of the key is hashed: ", " What is said and done here is not of that one.")
            }
            Some(_) => (
                "The key has another record, which is hashed: ",
                " .hashed_keys() was added to its consumer or removed: functions go by the one that they write now, and not by the other, \
                 which is left from before. What is said and done here is of this one alone.",
            ),
        };
        html! {
            p .notice {
                (shape(Tone::Warn))
                span { (has) (text::key(&self.record)) ", " (self.state) "." (more) }
            }
        }
    }
}
