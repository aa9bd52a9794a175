//! The whole local cloud, from one template: endpoints, tables, queues, functions and event source mappings.
//!
//! | module | holds |
//! | --- | --- |
//! | `config` | [`CloudConfig`]: what a cloud is started from |
//! | `start` | everything that can fail, before the first message moves |
//! | `programs` | where the program of each function is |
//! | `missing` | why a function has no program, and how to get one |
//! | `environment` | the variables of functions, and of the clients of a cloud |
//! | `running` | [`Cloud`]: a cloud that runs, and how it stops |
//! | `services` | what is behind the endpoints |
//! | `servers` | the servers of the endpoints |
//! | `view` | [`View`]: what a page sees of a cloud |
//! | `builds` | new builds of the functions, and changes of the template, while it runs |

mod builds;
mod config;
pub(crate) mod environment;
mod missing;
mod programs;
mod running;
mod servers;
mod services;
mod start;
mod view;

pub use config::{Binaries, CloudConfig, Delays, Endpoints, Ports, cannot_listen};
pub use running::{Cloud, STOP_ENDPOINTS_MAX, STOP_FUNCTIONS_MAX, STOP_MAPPINGS_MAX};
pub(crate) use services::Services;
pub use start::{CONCURRENCY_DEFAULT, CONCURRENCY_MAX};
pub use view::{FunctionView, View};
