//! Templates of CloudFormation and AWS SAM as a tree whose values know their line.
//!
//! | module | holds |
//! | --- | --- |
//! | `yaml` | YAML and JSON, with CloudFormation's functions as nodes |
//! | `dialect` | what AWS's parsers read otherwise than YAML 1.2 |
//! | `loops` | `Fn::ForEach` |
//! | `filter` | the filters of an event source mapping |
//! | `parameter` | what the value of a parameter must be |
//! | `transform` | macros of a whole template, AWS SAM's among them |

mod dialect;
mod filter;
mod loops;
mod parameter;
mod transform;
mod yaml;

pub use filter::Filter;
pub use loops::{LOOP, written_out};
pub use parameter::Demands;
pub use transform::{Macro, SAM, macros, refused, refuses_sam};
pub use yaml::{Kind, Node, Unreadable, parse};

/// What a template is called, the first choice first: as AWS SAM CLI looks for it.
const NAMES: [&str; 3] = ["template.yaml", "template.yml", "template.json"];

/// What a template is called where there is none yet.
pub const NAME: &str = NAMES[0];

/// Returns the name of the template in a directory, if there is one by any of SAM's names.
pub fn found_in(directory: &std::path::Path) -> Option<&'static str> {
    NAMES.into_iter().find(|name| directory.join(name).is_file())
}

/// Returns the name of the template in the working directory, or what it would be called.
pub fn name_here() -> &'static str {
    found_in(std::path::Path::new("")).unwrap_or(NAME)
}

/// What to give where something else than a template was given.
pub const WHAT_TO_GIVE: &str = "give the path of an AWS SAM or CloudFormation template, as `cdk synth` writes them (cdk.out/STACK.template.json) \
    and `serverless package` does (.serverless/cloudformation-template-update-stack.json); what Terraform or Pulumi deployed is looked at \
    by `claimant doctor --function NAME`";

/// The longest template, in bytes: CloudFormation takes none that is longer.
pub const TEXT_BYTES_MAX: usize = 1_048_576;
