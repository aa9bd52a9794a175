//! Lambda on this machine: function binaries as processes behind the Lambda runtime API.
//!
//! Each execution environment is one process with a runtime API of its own on loopback. It takes one event at a time,
//! has until a real deadline to answer, and is killed, with everything it started, when it does not.
//!
//! | module | holds |
//! | --- | --- |
//! | `function` | [`Function`]: what callers hold |
//! | `config`, `invocation` | what a function is made of; what becomes of an invocation, and the counters |
//! | `pool` | the environments of one function: started when needed, used again, replaced |
//! | `program` | the file that the processes are started from, and when a new build of it counts |
//! | `environment` | one process: start, one invocation at a time, the end |
//! | `api` | the runtime API the process speaks to |
//! | `processes` | those that have not been reaped, and signals to them |
//! | `logs` | its output, line by line |
//! | `notes` | what a process writes into the [journal](crate::journal) |
//!
//! Not imitated, on purpose: memory limits, freezing between invocations, extensions, SnapStart, response streaming.

mod api;
mod config;
mod environment;
mod function;
mod invocation;
mod logs;
mod notes;
mod pool;
mod processes;
mod program;

pub use config::{CONCURRENCY_MAX, FunctionConfig};
pub use function::Function;
pub(crate) use invocation::Call;
pub use invocation::{EVENT_BYTES_MAX, FunctionCounters, Invocation};
pub use logs::LogSink;
pub(crate) use program::FOREIGN;
pub use program::Places;
