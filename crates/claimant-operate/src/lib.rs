//! What the person on call needs: a library that the command `claimant` only calls.
//!
//! | module | holds |
//! | --- | --- |
//! | [`dead`] | dead letters: read, grouped, sent back, discarded |
//! | [`demo`] | a demonstration on a local cloud with the sample functions |
//! | [`effects`] | what the functions of a local cloud have done, and how often |
//! | [`faults`] | faults on purpose, in a local cloud |
//! | [`depths`] | how many messages queues hold |
//! | [`intake`] | event source mappings: paused and resumed |
//! | [`keys`] | records of keys: inspected, listed, released, reset, forgotten, resolved |
//! | [`log_lines`] | the functions' log lines, as they come |
//! | [`logs`] | what the functions of an account have logged |
//! | [`open`] | opens the stores of a target |
//! | [`pauses`] | event source mappings that breakers have paused |
//! | [`send`] | messages for trying things out: samples, in every envelope, in bulk, out of order |
//! | `send_request`, `attribute` | one request that sends messages; attributes of messages, as a local cloud shows them |
//! | [`switch`] | several event source mappings paused or resumed together |
//! | [`target`] | what the commands work on: a local cloud, a deployed stack, or a table and queues by their names |
//! | `tables` | the lock tables of a place: those that functions name, and the one that is chosen |
//! | `server` | whether requests about a queue go to the server that its URL names |
//! | `place`, `queue`, `stack` | what there is to work on; a queue, and what it is called; a deployed stack |
//! | [`text`] | which characters of messages and keys make what is shown say something else, and how a key is shown; whether two texts differ in their line ends alone |
//! | `whereabouts` | in which stack, account and Region something is |
//! | `lambda`, `http`, `aws` | requests to Lambda, and to a control endpoint; what errors of the SDKs mean to a person |

mod attribute;
mod aws;
pub mod dead;
pub mod demo;
pub mod depths;
pub mod effects;
pub mod faults;
mod http;
pub mod intake;
pub mod keys;
mod lambda;
pub mod log_lines;
pub mod logs;
pub mod open;
pub mod pauses;
mod place;
mod queue;
pub mod send;
mod send_request;
mod server;
mod stack;
pub mod switch;
mod tables;
pub mod target;
pub mod text;
mod whereabouts;
