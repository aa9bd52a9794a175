//! The file of a template: what it is called, and how it is read.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use crate::{Node, parse};

/// What a template is called, the first choice first: as AWS SAM CLI looks for it.
const NAMES: [&str; 3] = ["template.yaml", "template.yml", "template.json"];

/// What a template is called where there is none yet.
pub const NAME: &str = NAMES[0];

/// What to give where something else than a template was given.
const WHAT_TO_GIVE: &str = "give the path of an AWS SAM or CloudFormation template, as `cdk synth` writes them (cdk.out/STACK.template.json) \
    and `serverless package` does (.serverless/cloudformation-template-update-stack.json); what Terraform or Pulumi deployed is looked at \
    by `claimant doctor --function NAME`";

/// The longest template, in bytes: CloudFormation takes none that is longer.
pub(crate) const TEXT_BYTES_MAX: usize = 1_048_576;

/// Returns the name of the template in a directory, if there is one by any of SAM's names.
pub fn found_in(directory: &Path) -> Option<&'static str> {
    NAMES.into_iter().find(|name| directory.join(name).is_file())
}

/// Returns the name of the template in the working directory, or what it would be called.
pub fn name_here() -> &'static str {
    found_in(Path::new("")).unwrap_or(NAME)
}

/// Reads the template at a path.
///
/// # Errors
/// The file cannot be read, or as for [`read_text`]; in words that say how to fix it.
pub fn read(path: &Path) -> Result<Node, String> {
    let place = path.display().to_string();
    let mut text = String::new();
    // One byte more tells a template that is too long; a device that never ends is one, too.
    let read = File::open(path).and_then(|file| file.take(TEXT_BYTES_MAX as u64 + 1).read_to_string(&mut text));
    read.map_err(|e| {
        let fix = match e.kind() {
            ErrorKind::InvalidData => "save it as UTF-8",
            ErrorKind::IsADirectory => WHAT_TO_GIVE,
            _ => "check that it exists and may be read, or give the path of another one",
        };
        format!("cannot read the template {place}: {e}: {fix}")
    })?;
    read_text(&place, &text)
}

/// Reads a template from its text; `place` is what it is called in errors.
///
/// # Errors
/// It is too long, is neither YAML nor JSON, or has no resources.
pub fn read_text(place: &str, text: &str) -> Result<Node, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!(
            "{place} has more than {TEXT_BYTES_MAX} bytes, which CloudFormation refuses: split it into several templates"
        ));
    }
    let root = parse(text).map_err(|e| format!("{place}:{}: this cannot be read: {}", e.line, e.what))?;
    match root.get("Resources").is_some_and(Node::is_map) {
        true => Ok(root),
        false => Err(format!("{place} has no `Resources`: {WHAT_TO_GIVE}")),
    }
}
