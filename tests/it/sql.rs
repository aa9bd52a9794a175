//! PostgreSQL and MariaDB as stores: what goes wrong, whose locks are in the way, and what a call costs.

mod batches;
mod cut;
mod faults;
mod lists;
mod locks;
mod many;
mod migrations;
mod passing;
mod policies;
mod settings;
mod silence;
mod tls;
mod transactions;
mod urls;
mod world;
