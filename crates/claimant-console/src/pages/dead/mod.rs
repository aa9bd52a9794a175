//! `/dead`: dead letters by their cause; `/dead/GROUP`: those of one cause, sent back, edited, discarded.
//!
//! | module | holds |
//! | --- | --- |
//! | `groups` | `/dead`: the causes, queue by queue |
//! | `group` | `/dead/GROUP`: reads the letters of one cause, or one of them that is edited |
//! | `cause` | draws them |
//! | `letters` | letters as the pages have them |
//! | `acts` | `POST /dead/redrive` and `/dead/discard` |

mod acts;
mod cause;
mod group;
mod groups;
mod letters;

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;

use crate::console::Console;

pub(super) use letters::{LOOK_COSTS, LOOKS_MAX, not_among, outcome, path};

/// Returns the routes of these pages.
pub(crate) fn routes() -> Router<Console> {
    // An address that only does something is opened by who loads a page anew.
    let causes = || get(|| async { Redirect::to("/dead") });
    Router::new()
        .route("/dead", get(groups::show))
        .route("/dead/{group}", get(group::show))
        .route(letters::REDRIVE, causes().post(acts::redrive))
        .route(letters::DISCARD, causes().post(acts::discard))
}
