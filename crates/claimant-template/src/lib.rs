//! Templates of CloudFormation and AWS SAM as a tree whose values know their line.
//!
//! | module | holds |
//! | --- | --- |
//! | `yaml` | YAML and JSON, with CloudFormation's functions as nodes |
//! | `loops` | `Fn::ForEach` |

mod loops;
mod yaml;

pub use loops::{LOOP, written_out};
pub use yaml::{Kind, Node, Unreadable, parse};

/// The longest template, in bytes: CloudFormation takes none that is longer.
pub const TEXT_BYTES_MAX: usize = 1_048_576;
