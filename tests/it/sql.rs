//! PostgreSQL and MariaDB as stores: what goes wrong, whose locks are in the way, and what a call costs.

mod cut;
mod faults;
mod locks;
mod many;
mod transactions;
mod world;
