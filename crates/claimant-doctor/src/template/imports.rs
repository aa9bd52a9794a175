//! What stacks give each other: exports, and outputs that another one asks for.

use std::collections::BTreeMap;

use claimant_template::{Kind, Node};

use super::scope::{HOLE, Scope};

/// Which template has what others can refer to, by the key among the outputs; nothing where several have it.
pub(super) type Owners = BTreeMap<String, Option<usize>>;

/// What an export is called among the outputs.
pub(super) fn export(name: &str) -> String {
    format!("!ImportValue {name}")
}

/// What an output is called among the outputs that the stack of this name gives to any other one.
pub(super) fn given(stack: &str, name: &str) -> String {
    format!("!GetStackOutput {stack} {name}")
}

/// What an output of a stack is called among the outputs, for the one that it is in.
pub(super) fn output(stack: &str, name: &str) -> String {
    format!("${{{stack}.Outputs.{name}}}")
}

impl Scope {
    /// What an import is called among the outputs.
    fn imported_key(&self, function: &str, argument: &Node, depth: u32) -> Option<String> {
        let of = |key| self.literal(argument.get(key)?, depth);
        match function {
            "ImportValue" => Some(export(&self.literal(argument, depth)?)),
            // An output of another Region is none of these templates', and by a role it is that of another account.
            "GetStackOutput" => {
                let is_here = argument.get("RoleArn").is_none()
                    && (argument.get("Region").is_none()
                        || of("Region").is_some_and(|it| self.pseudo.get("Region") == Some(&it)));
                Some(given(&of("StackName")?, &of("OutputName")?)).filter(|_| is_here)
            }
            _ => None,
        }
    }

    /// The text that is imported, if what exports it was read.
    pub(super) fn imported(&self, function: &str, argument: &Node, depth: u32) -> Option<String> {
        self.outputs.borrow().get(&self.imported_key(function, argument, depth)?).cloned()
    }

    /// Adds what is imported anywhere in a value.
    pub(super) fn imports(&self, node: &Node, found: &mut Vec<String>) {
        match &node.kind {
            Kind::Call(function, argument) => {
                found.extend(self.imported_key(function, argument, 0));
                self.imports(argument, found);
            }
            Kind::List(items) => items.iter().for_each(|item| self.imports(item, found)),
            Kind::Map(entries) => entries.iter().for_each(|(_, value)| self.imports(value, found)),
            Kind::Null | Kind::Text(_) => {}
        }
    }

    /// The name of the export that an output is, in a stack that is called so.
    pub(super) fn exported(&self, output: &Node, stack: &str) -> Option<String> {
        let name = output.get("Export")?.get("Name")?;
        let name = self.aside(|| self.text(name, 0));
        // CloudFormation makes the names of nested stacks.
        let own = if self.within.depth == 0 { stack } else { HOLE };
        Some(name.replace(&format!("${{@{}StackName}}", self.within.prefix), own)).filter(|name| !name.contains("${"))
    }
}
