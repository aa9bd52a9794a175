//! The pages, one module for each.

mod dead;
mod demo;
mod doctor;
mod effects;
mod faults;
mod key;
mod key_now;
mod keys;
mod local_only;
mod mappings;
mod message;
mod messages;
mod outcomes;
mod overview;
mod send;
mod sending;
mod trace;
mod two;

use axum::Router;

use crate::console::Console;

/// Returns the routes of all pages.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .merge(overview::routes())
        .merge(mappings::routes())
        .merge(messages::routes())
        .merge(message::routes())
        .merge(keys::routes())
        .merge(key::routes())
        .merge(dead::routes())
        .merge(demo::routes())
        .merge(effects::routes())
        .merge(send::routes())
        .merge(faults::routes())
        .merge(doctor::routes())
}
