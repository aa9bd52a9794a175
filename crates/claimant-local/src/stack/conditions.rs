//! CloudFormation's conditions, and the resources that are left out by them.

use std::collections::BTreeSet;

use super::spec::LeftOut;
use super::template::{FUNCTION_TYPES, REFERENCE_DEPTH_MAX, Template, condition_of, type_of};
use super::yaml::{Kind, Node};

/// Conditions of one !And or !Or.
const OPERANDS: std::ops::RangeInclusive<usize> = 2..=10;

/// The functions that a condition leaves out, in the template's order.
pub(super) fn left_out(template: &Template<'_>) -> Vec<LeftOut> {
    let functions = template
        .all_resources()
        .filter(|(_, resource)| type_of(resource).is_some_and(|kind| FUNCTION_TYPES.contains(&kind)));
    functions.filter_map(|(id, resource)| left_out_function(template, id, resource)).collect()
}

fn left_out_function(template: &Template<'_>, id: &str, resource: &Node) -> Option<LeftOut> {
    let condition = condition_of(resource)?;
    // What is wrong with a condition was recorded when its resource was read.
    if template.condition(condition).unwrap_or(true) {
        return None;
    }
    let mut parameters = BTreeSet::new();
    template.parameters_of(condition, 0, &mut parameters);
    let is_empty = |name: &&&str| template.reference(name, 0).is_ok_and(|value| value.is_empty());
    let empties: Vec<&str> = parameters.iter().filter(is_empty).copied().collect();
    let (because, named) = match (empties.as_slice(), parameters.len()) {
        ([], 0) => return Some(LeftOut::new(id, resource, format!("its condition {condition} is never true"))),
        ([], _) => ("is false with the values of", parameters.into_iter().collect()),
        (_, _) => ("is false without a value of", empties),
    };
    let options: Vec<_> = named.iter().map(|name| format!("--parameter {name}=…")).collect();
    let (named, options) = (named.join(", "), options.join(" "));
    Some(LeftOut::new(
        id,
        resource,
        format!("its condition {condition} {because} {named}: give {options} to include it"),
    ))
}

impl LeftOut {
    fn new(id: &str, resource: &Node, why: String) -> Self {
        let properties = resource.get("Metadata").and_then(|metadata| metadata.get("BuildProperties"));
        let binary = properties.and_then(|properties| properties.get("Binary")).and_then(Node::as_text);
        Self { logical_id: id.to_owned(), binary: binary.map(str::to_owned), why }
    }
}

impl Template<'_> {
    /// Returns whether the condition of this name holds. An error says what is wrong and how to fix it.
    pub(super) fn condition(&self, name: &str) -> Result<bool, String> {
        self.condition_at(name, 0)
    }

    /// As [`condition`](Self::condition), within an evaluation of this depth.
    pub(super) fn condition_at(&self, name: &str, depth: u32) -> Result<bool, String> {
        let condition = self.root.get("Conditions").and_then(|conditions| conditions.get(name));
        let missing =
            || format!("names the condition {name}, which is not under `Conditions`: add it or correct its name");
        let is_secret = self.secret.get();
        let holds = self.holds(condition.ok_or_else(missing)?, depth + 1);
        // What is chosen by a secret is none.
        self.secret.set(is_secret);
        holds
    }

    fn holds(&self, condition: &Node, depth: u32) -> Result<bool, String> {
        if depth > REFERENCE_DEPTH_MAX {
            return Err("has a condition that refers to itself in a circle: break the circle".to_owned());
        }
        self.count_steps(1)?;
        let (function, argument) =
            call(condition).ok_or("has a condition that is no function: write !Equals [a, b]")?;
        let operands = argument.items();
        match (function, operands) {
            ("Condition", _) => {
                let name = argument.as_text().ok_or("has a !Condition without a name: write !Condition HasDatabase")?;
                self.condition_at(name, depth)
            }
            ("Equals", [left, right]) => Ok(self.text(left, depth)? == self.text(right, depth)?),
            ("Not", [operand]) => Ok(!self.holds(operand, depth + 1)?),
            ("And" | "Or", _) if OPERANDS.contains(&operands.len()) => {
                // All are looked at, so that what is wrong with one is said whatever the others are.
                let each: Result<Vec<_>, _> = operands.iter().map(|operand| self.holds(operand, depth + 1)).collect();
                let mut each = each?.into_iter();
                Ok(if function == "And" { each.all(|holds| holds) } else { each.any(|holds| holds) })
            }
            ("Equals" | "Not" | "And" | "Or", _) => Err(format!(
                "has a condition with a wrong number of operands for !{function}: !Equals takes 2, !Not 1, !And and !Or 2 to 10"
            )),
            _ => Err(format!("has a condition that uses !{function}: use !Equals, !Not, !And, !Or or !Condition")),
        }
    }

    /// The parameters that a condition is made of.
    fn parameters_of<'t>(&'t self, condition: &str, depth: u32, found: &mut BTreeSet<&'t str>) {
        let condition = self.root.get("Conditions").and_then(|conditions| conditions.get(condition));
        if let Some(condition) = condition.filter(|_| depth <= REFERENCE_DEPTH_MAX) {
            self.parameters_in(condition, depth + 1, found);
        }
    }

    fn parameters_in<'t>(&'t self, value: &'t Node, depth: u32, found: &mut BTreeSet<&'t str>) {
        match call(value) {
            Some(("Ref", argument)) => {
                found.extend(argument.as_text().filter(|name| self.parameter(name).is_some()));
            }
            Some(("Condition", argument)) => {
                if let Some(name) = argument.as_text() {
                    self.parameters_of(name, depth, found);
                }
            }
            Some((_, argument)) => {
                argument.items().iter().for_each(|operand| self.parameters_in(operand, depth, found))
            }
            None => {}
        }
    }
}

/// The function that a condition is, and its argument; `Condition` has no `Fn::` in its long form.
fn call(node: &Node) -> Option<(&str, &Node)> {
    match &node.kind {
        Kind::Call(function, argument) => Some((function, argument)),
        Kind::Map(entries) => match &**entries {
            [(key, name)] if &**key == "Condition" => Some(("Condition", name)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
