//! The control endpoint: what a running cloud holds, and its functions' log lines as they come.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /_claimant/cloud` | JSON: the template, the variables for clients, tables, queues, functions |
//! | `/2015-03-31/event-source-mappings…`, `/2015-03-31/functions…` | Lambda's own API: functions and mappings listed, a mapping paused, resumed, or made to report failures |
//! | `POST /` | CloudFormation's own API: the functions of the stack `local`, which is the whole template |
//! | `GET /_claimant/faults`, `POST /_claimant/faults`, `DELETE /_claimant/faults`, `DELETE /_claimant/faults/ID` | faults listed, switched on, ended: all or one |
//! | `GET /_claimant/messages/ID` | JSON: the queue, the group, the body and the attributes of a message, as it was sent, while its body is kept |
//! | `GET /_claimant/effects` | JSON: mails, charges, and what the sample functions keep in tables, each with the keys that have more than one |
//! | `GET /_claimant/logs` | a JSON object `{"at_ms", "function", "line"}` in a line of its own for each log line, until the cloud stops; `{"missed": n}` where the reader is too slow |

mod describe;
mod http;
mod management;
mod service;
mod stacks;

pub use describe::describe;
pub use management::Managed;
pub use service::{Control, KEPT_LINES_MAX};
