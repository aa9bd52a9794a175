//! One invocation after the other through `Service::invoke`, on local SQS: what is reported, and what SQS is asked.

mod again;
mod dead_letters;
mod letter_attributes;
mod mapping;
mod pause;
mod report;
mod routes;
mod telemetry;
mod threads;
mod together;
mod visibility;
pub(crate) mod world;
