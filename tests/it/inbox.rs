//! The inbox on PostgreSQL: what it takes in, how it is worked off, and what people do with it.

mod attempts;
mod bodies;
mod breaker;
mod connections;
mod crashes;
mod intake;
mod limit;
mod operate;
mod order;
mod retried;
mod world;
