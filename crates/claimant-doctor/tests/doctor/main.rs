//! The checks, on templates and on a scripted account. One program for all of it: each would link the doctor once more.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod account;
mod cdk;
mod output;
mod own_templates;
mod public;
mod templates;
mod unknown;
