//! Integration tests, one binary: each AWS SDK is linked once.
//!
//! Those marked `ignore` need services; `make test` runs them.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod agreement;
mod breakers;
mod claims;
mod cloud;
mod console;
mod contract;
mod cost;
mod demo;
mod downstream;
mod inbox;
mod incidents;
mod kill;
mod lambda;
mod lambda_round;
mod lock_table;
mod model;
mod moving;
mod outages;
mod producer;
mod redis;
mod scheduler;
mod sql;
mod template;
mod transactions;
