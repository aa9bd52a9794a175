//! The claim protocol, model-checked: every interleaving of workers, store, queue, clocks and faults in small worlds, with
//! the production decisions of `claimant_core::protocol` making every decision.
//!
//! | module | holds |
//! | --- | --- |
//! | [`values`] | records, requests and claims as small numbers |
//! | [`rules`], [`clause`] | the production decisions, asked by number; branches that can be switched off |
//! | [`conditions`] | the lock table's conditional writes as data, checked against the real ones |
//! | [`config`], [`configurations`] | what a world is made of, and the worlds that are explored |
//! | [`state`], [`store`], [`answers`], [`steps`], [`moves`] | a state, and every step from it |
//! | [`drain`], [`properties`], [`checked`] | what must hold; the model as the checker takes it |
//! | [`explore`], [`ablation`], [`words`] | exploring a world, with a clause less, and telling what was found |
//!
//! What is modelled and what is not, and what was found: `docs/reliability.md`.

pub mod ablation;
pub mod answers;
pub mod checked;
pub mod clause;
pub mod conditions;
pub mod config;
pub mod configurations;
pub mod drain;
pub mod explore;
pub mod moves;
pub mod properties;
pub mod rules;
pub mod state;
pub mod steps;
pub mod store;
pub mod values;
pub mod words;
