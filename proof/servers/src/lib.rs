//! Redis, PostgreSQL, MariaDB, DynamoDB Local and an OpenTelemetry collector for tests. Each server listens on 127.0.0.1, keeps its data in a temporary
//! directory, and ends, data and all, with the value that holds it; and with its process, however that ends. Beside them a
//! relay, which can stand before any server and fails as a rule says.
//!
//! | module | holds |
//! | --- | --- |
//! | `programs` | how each server is started |
//! | `guard` | a server's process, which cannot outlive the one that started it |
//! | `collector` | the collector, and the spans that it was sent |
//! | [`relay`] | the relay |

mod collector;
mod guard;
mod programs;
pub mod relay;

pub use collector::{CollectedSpan, Collector};
pub use guard::Server;
pub use programs::{dynamodb_local, mariadb, postgres, redis, repository};
