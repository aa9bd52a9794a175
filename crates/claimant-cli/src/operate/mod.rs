//! The commands of the person on call.
//!
//! | module | holds |
//! | --- | --- |
//! | `dead` | dead letters: listed, grouped, shown, sent back, discarded |
//! | `intake` | event source mappings: paused and resumed |
//! | `list`, `inspect` | keys by their state; one key in words |
//! | `act` | `release`, `reset`, `forget`, `resolve` |
//! | `tail` | outcomes as they happen |
//! | `options`, `parse` | the options that all of them have, and the values of options |
//! | `confirm` | questions before something is written |
//! | `table` | tables and ages as text, and text that cannot harm a terminal |

pub(crate) mod act;
pub(crate) mod confirm;
pub(crate) mod dead;
pub(crate) mod inspect;
pub(crate) mod intake;
pub(crate) mod list;
pub(crate) mod options;
pub(crate) mod parse;
pub(crate) mod table;
pub(crate) mod tail;

use claimant_core::{Error, RecordId, State};
use claimant_operate::open::OpenStore;

/// Returns whether work in this state waits for a person, or for a message that may not come again.
pub(crate) const fn needs_a_person(state: State) -> bool {
    matches!(state, State::Stuck | State::Parked | State::Rejected | State::Failed)
}

/// Returns the first of these records that is there, with its store; the first id and the first store where none is.
///
/// # Errors
/// When a store gave no answer, or there is neither an id nor a store.
async fn find<'a>(stores: &'a [OpenStore], ids: &[RecordId]) -> Result<(RecordId, &'a OpenStore), Error> {
    let mut at = (ids.first().cloned(), 0);
    for (index, store) in stores.iter().enumerate() {
        if let Some((id, _)) = store.keys.first(ids).await? {
            at = (Some(id), index);
            break;
        }
    }
    match (at.0, stores.get(at.1)) {
        (Some(id), Some(store)) => Ok((id, store)),
        _ => Err(Error::invalid("there is no store of records")),
    }
}
