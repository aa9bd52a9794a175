//! The tests of the kit.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod careless;
mod messages;
mod mixed;
mod scenarios;
mod texts;
