//! The simulation: claimant's whole runtime on virtual time, under faults drawn from a seed, and a checker of what happened.
//!
//! `Service::invoke`, the engine, the lock table and the SDK's clients are the real ones. What stands behind the SDK's HTTP
//! connector, DynamoDB and SQS, is simulated, and so are Lambda, its processes and their clocks. Used for checking alone.
//!
//! | module | holds |
//! | --- | --- |
//! | [`scenario`], [`limited`], [`fault`], [`draw`] | a run as data, its limit, what goes wrong in it, and how a seed becomes one |
//! | [`run`], [`world`], [`history`] | one run, what its processes share, and what happened in it |
//! | [`cloud`], [`delivery`], [`event`] | producer, operator and event source mapping; one invocation; messages as events |
//! | [`process`], [`threads`] | processes that are killed and stopped; threads that handlers block |
//! | [`handler`], [`work`] | the consumers, and what their handlers do |
//! | [`operator`] | operators, who act on keys beside the consumers |
//! | [`payloads`] | payloads that messages only point to |
//! | [`intake_api`] | what lets messages in, and what switches it on again |
//! | [`wire`], [`calls`], [`queue_api`] | requests on their way, with their fates; what they want |
//! | [`sqs`] | the queue; the store is that of `claimant-simulated` |
//! | [`reads`] | what reads of the store see that are not strongly consistent |
//! | [`timeline`], [`entities`], [`check`], [`expected`] | the history by its entities, and the rules that it must keep |
//! | [`coverage`] | how often each fault occurred |
//! | [`mutant`], [`bent`] | runtimes that are wrong on purpose |
//! | [`judge`], [`shrink`] | many runs on all cores; a failing one made small |

pub mod bent;
pub mod calls;
pub mod check;
pub mod cloud;
pub mod coverage;
pub mod delivery;
pub mod draw;
pub mod entities;
pub mod event;
pub mod expected;
pub mod fault;
pub mod handler;
pub mod history;
pub mod intake_api;
pub mod judge;
pub mod limited;
pub mod mutant;
pub mod operator;
pub mod payloads;
pub mod process;
pub mod queue_api;
pub mod reads;
pub mod run;
pub mod scenario;
pub mod shrink;
pub mod sqs;
pub mod threads;
pub mod timeline;
pub mod wire;
pub mod work;
pub mod world;
