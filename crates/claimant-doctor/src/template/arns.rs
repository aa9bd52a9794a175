//! The ARN of a function, an alias or a version, which is a hole as a whole, and of which parts are known.

use claimant_template::Node;

use super::functions::FUNCTION;
use super::mappings::ALIASES;
use super::resources::reference;
use super::scope::{HOLE, Scope};

impl Scope {
    /// The ARN that a hole stands for, with its function's name, so that it can be taken apart.
    pub(super) fn arn(&self, text: &str, depth: u32) -> Option<String> {
        let (id, attribute) = reference(text)?;
        let resource = self.root.get("Resources")?.get(id.strip_prefix(&*self.within.prefix)?)?;
        let kind = resource.get("Type")?.as_text()?;
        let property = |name| resource.get("Properties")?.get(name).map(|value: &Node| self.text(value, depth + 1));
        let of_function = || {
            let named = property("FunctionName")?;
            let whole = self.arn(&named, depth + 1).unwrap_or(named);
            let name = if whole.starts_with("arn:") { whole.split(':').nth(6)? } else { &whole };
            // Not of the form `account:function:name`.
            Some(name.to_owned()).filter(|name| !name.contains(':'))
        };
        let name = match attribute {
            "Arn" if FUNCTION.contains(&kind) => format!("${{{id}}}"),
            "" | "AliasArn" if kind == ALIASES[0] => format!("{}:{}", of_function()?, property("Name")?),
            "" | "FunctionArn" if kind == ALIASES[1] => format!("{}:{HOLE}", of_function()?),
            _ => return None,
        };
        Some(format!("arn:${{@Partition}}:lambda:${{@Region}}:${{@AccountId}}:function:{name}"))
    }
}
