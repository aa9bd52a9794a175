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

/// What a template is called, the first choice first: as AWS SAM CLI looks for it.
const NAMES: [&str; 3] = ["template.yaml", "template.yml", "template.json"];

/// Returns the name of the template in a directory: `template.yaml`, where there is only another one of SAM's names, that.
pub fn name_in(directory: &std::path::Path) -> &'static str {
    NAMES.into_iter().find(|name| directory.join(name).is_file()).unwrap_or(NAMES[0])
}

/// The longest template, in bytes: CloudFormation takes none that is longer.
pub const TEXT_BYTES_MAX: usize = 1_048_576;
