//! A template's parameters.

use claimant_template::{Kind, Node};

use super::scope::{HOLE, Scope, text};
use crate::fact::Fact;

/// How the type of a parameter begins whose value is in Systems Manager.
const IN_SYSTEMS_MANAGER: &str = "AWS::SSM::Parameter::Value<";

/// The type of a parameter.
fn kind(parameter: &Node) -> &str {
    parameter.get("Type").and_then(Node::as_text).unwrap_or_default()
}

/// Whether the value of a parameter is in Systems Manager: what it is given is a name.
pub(super) fn is_elsewhere(parameter: &Node) -> bool {
    kind(parameter).starts_with(IN_SYSTEMS_MANAGER)
}

/// Whether the value of a parameter is to be shown to no one.
fn is_secret(parameter: &Node) -> bool {
    parameter.get("NoEcho").and_then(Node::as_text).is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

impl Scope {
    /// What is read here of which no answer depends on parameters.
    pub(super) fn aside<T>(&self, read: impl FnOnce() -> T) -> T {
        let unvalued = self.unvalued.borrow().clone();
        let value = read();
        self.unvalued.replace(unvalued);
        value
    }

    /// What a parameter is given; `AWS::NoValue` gives nothing.
    pub(super) fn given(&self, parameter: &str) -> Option<&Fact<Node>> {
        self.parameters.get(parameter).filter(|given| given.known().is_none_or(|node| node.kind != Kind::Null))
    }

    /// The value of a parameter, as it is referred to.
    pub(super) fn value_of(&self, id: &str, parameter: &Node, line: usize, depth: u32) -> Fact<Node> {
        // What is given is where the value is.
        if is_elsewhere(parameter) {
            return Fact::Unknown;
        }
        let kind = kind(parameter);
        let value = match (self.given(id), parameter.get("Default")) {
            (Some(given), _) => given.clone(),
            (None, Some(default)) => self.literal(default, depth + 1).map_or(Fact::Unknown, |value| text(line, value)),
            (None, None) => {
                if !is_secret(parameter) {
                    self.unvalued.borrow_mut().insert(id.to_owned());
                }
                Fact::Unknown
            }
        };
        let is_list = kind == "CommaDelimitedList" || kind.contains("List<");
        let items = value.known().and_then(Node::as_text).filter(|_| is_list);
        match items {
            None => value,
            // What is not known can have commas.
            Some(items) if items.contains(HOLE) => Fact::Unknown,
            Some(items) => {
                let items = items.split(',').map(|item| Node::text(line, item.trim()));
                Fact::Known(Node::list(line, items.collect()))
            }
        }
    }
}
