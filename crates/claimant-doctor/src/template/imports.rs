//! What stacks give each other: exports, and outputs that another one asks for.

use std::collections::BTreeMap;

use claimant_template::{Kind, Node};

use super::scope::{ACCOUNT, Scope};

/// Which template has what others can refer to, by the key among the outputs; nothing where several have it.
pub(super) type Owners = BTreeMap<String, Option<usize>>;

/// What an export is called among the outputs.
pub(super) fn export(name: &str) -> String {
    format!("!ImportValue {name}")
}

/// What an output of a stack is called among the outputs.
pub(super) fn output(stack: &str, name: &str) -> String {
    format!("${{{stack}.Outputs.{name}}}")
}

impl Scope {
    /// What an import is called among the outputs.
    fn imported_key(&self, function: &str, argument: &Node, depth: u32) -> Option<String> {
        if function == "ImportValue" {
            return Some(export(&self.literal(argument, depth)?));
        }
        let of = |key| self.literal(argument.get(key).filter(|_| function == "GetStackOutput")?, depth);
        // An output of another Region or account is none of these templates'.
        let is_elsewhere = |key, own| of(key).zip(self.pseudo.get(own)).is_some_and(|(there, here)| there != *here);
        let key = output(&of("StackName")?, &of("OutputName")?);
        (!is_elsewhere("Region", "Region") && !is_elsewhere("Account", ACCOUNT)).then_some(key)
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

    /// The name of the export that an output is.
    pub(super) fn exported(&self, output: &Node) -> Option<String> {
        self.literal(output.get("Export")?.get("Name")?, 0)
    }
}
