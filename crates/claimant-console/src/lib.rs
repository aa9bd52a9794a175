//! The console: what happens to each message, seen in a browser on loopback.
//!
//! | module | holds |
//! | --- | --- |
//! | `console` | [`Console`]: what all pages share |
//! | [`source`] | [`Source`](source::Source): what a page can know, of a local cloud or a deployed stack |
//! | `server` | the routes, and how they are served |
//! | `guard` | who may ask: only pages of this console, under a name of this machine |
//! | `ask`, `fields` | a request: its query, and whether it wants JSON |
//! | `act`, `once` | a request to do something, by a form or JSON, and what becomes of it, once for each form |
//! | `done` | what an act has done |
//! | `answer`, `refused` | a page, or what an act has done, as HTML or JSON, and errors as both |
//! | `history`, `sampling` | the last minutes, sampled, for the plot |
//! | `demo` | the demonstration, under way or as it went last |
//! | `live` | server-sent events: something changed |
//! | `assets` | the style sheet, htmx, the icon |
//! | [`timeline`] | what happened to a message, step by step and in a few sentences |
//! | `ui` | the parts that all pages use |
//! | `pages` | the pages, one module for each |
//! | `kept`, `sync` | what is kept for the page after this one; locks of plain data |
//!
//! # A page
//!
//! A page is one struct that is either serialised (`Accept: application/json`) or drawn (`answer::Page`). An act is a `POST` of a form
//! or of JSON; it answers 303 to the page that shows what became of it, or JSON (`done::Done`). Acts go through
//! `claimant-operate`, so a page does nothing that a command cannot do.
//!
//! Nothing of a message is ever HTML: `maud` escapes what it is given, and no page marks text of a message as markup.

mod act;
mod answer;
mod ask;
mod assets;
mod console;
mod demo;
mod done;
mod fields;
mod guard;
mod history;
mod kept;
mod live;
mod once;
mod pages;
mod refused;
mod sampling;
mod server;
pub mod source;
mod sync;
pub mod timeline;
mod ui;

pub use console::Console;
pub use server::{bind, serve};
