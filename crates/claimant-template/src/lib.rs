//! Templates of CloudFormation and AWS SAM as a tree whose values know their line.
//!
//! | module | holds |
//! | --- | --- |
//! | `file` | a template's file: its names, how it is read, and what is said where it cannot be |
//! | `yaml` | YAML and JSON, with CloudFormation's functions as nodes |
//! | `dialect` | what AWS's parsers read otherwise than YAML 1.2 |
//! | `loops` | `Fn::ForEach` |
//! | `filter`, `rule` | the filters of an event source mapping, and what their rules mean |
//! | `parameter` | what the value of a parameter must be |
//! | `transform` | macros of a whole template, AWS SAM's among them |

mod dialect;
mod file;
mod filter;
mod loops;
mod parameter;
mod rule;
mod transform;
mod yaml;

pub use file::{NAME, found_in, name_here, read, read_text};
pub use filter::{Fault, Filter};
pub use loops::{LOOP, written_out};
pub use parameter::Demands;
pub use transform::{Macro, SAM, macros, refused, refuses_sam};
pub use yaml::{Kind, Node, Unreadable, parse};
