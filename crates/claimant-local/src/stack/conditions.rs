//! CloudFormation's conditions, and the resources that are left out by them.

use std::collections::BTreeSet;

use serde_yaml_ng::Value;

use super::LeftOut;
use super::resolve::{REFERENCE_DEPTH_MAX, intrinsic};
use super::template::Template;

/// Conditions of one !And or !Or.
const OPERANDS: std::ops::RangeInclusive<usize> = 2..=10;

/// The functions that a condition leaves out, in the template's order.
pub(super) fn left_out(template: &Template<'_>) -> Vec<LeftOut> {
    let functions = template
        .all_resources()
        .filter(|(_, resource)| resource.get("Type").and_then(Value::as_str) == Some("AWS::Serverless::Function"));
    functions.filter_map(|(id, resource)| left_out_function(template, id, resource)).collect()
}

fn left_out_function(template: &Template<'_>, id: &str, resource: &Value) -> Option<LeftOut> {
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

/// The name of the condition under which a resource is there.
pub(super) fn condition_of(resource: &Value) -> Option<&str> {
    resource.get("Condition")?.as_str()
}

impl LeftOut {
    fn new(id: &str, resource: &Value, why: String) -> Self {
        let properties = resource.get("Metadata").and_then(|metadata| metadata.get("BuildProperties"));
        let binary = properties.and_then(|properties| properties.get("Binary")).and_then(Value::as_str);
        Self { logical_id: id.to_owned(), binary: binary.map(str::to_owned), why }
    }
}

impl<'a> Template<'a> {
    /// Whether the condition of this name holds, or why that cannot be said and how to mend it.
    pub(super) fn condition(&self, name: &str) -> Result<bool, String> {
        self.named_condition(name, 0)
    }

    fn named_condition(&self, name: &str, depth: u32) -> Result<bool, String> {
        let condition = self.root.get("Conditions").and_then(|conditions| conditions.get(name));
        let missing =
            || format!("names the condition {name}, which is not under `Conditions`: add it or correct its name");
        self.holds(condition.ok_or_else(missing)?, depth + 1)
    }

    fn holds(&self, condition: &Value, depth: u32) -> Result<bool, String> {
        if depth > REFERENCE_DEPTH_MAX {
            return Err("has a condition that refers to itself in a circle: break the circle".to_owned());
        }
        let (function, argument) =
            call(condition).ok_or("has a condition that is no function: write !Equals [a, b]")?;
        let operands = argument.as_sequence().map_or(&[][..], Vec::as_slice);
        match (function.as_str(), operands) {
            ("Condition", _) => {
                let name = argument.as_str().ok_or("has a !Condition without a name: write !Condition HasDatabase")?;
                self.named_condition(name, depth)
            }
            ("Equals", [left, right]) => Ok(self.text(left)? == self.text(right)?),
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
    fn parameters_of<'t>(&'t self, condition: &str, depth: u32, found: &mut BTreeSet<&'a str>) {
        let condition = self.root.get("Conditions").and_then(|conditions| conditions.get(condition));
        if let Some(condition) = condition.filter(|_| depth <= REFERENCE_DEPTH_MAX) {
            self.parameters_in(condition, depth + 1, found);
        }
    }

    fn parameters_in(&self, value: &'a Value, depth: u32, found: &mut BTreeSet<&'a str>) {
        match call(value) {
            Some((function, argument)) if function == "Ref" => {
                found.extend(argument.as_str().filter(|name| self.parameter(name).is_some()));
            }
            Some((function, argument)) if function == "Condition" => {
                if let Some(name) = argument.as_str() {
                    self.parameters_of(name, depth, found);
                }
            }
            Some((_, Value::Sequence(operands))) => {
                operands.iter().for_each(|operand| self.parameters_in(operand, depth, found));
            }
            _ => {}
        }
    }
}

/// The function that a condition is, and its argument; `Condition` has no `Fn::` in its long form.
fn call(value: &Value) -> Option<(String, &Value)> {
    let long = value.as_mapping().filter(|map| map.len() == 1).and_then(|map| map.get("Condition"));
    long.map(|name| ("Condition".to_owned(), name)).or_else(|| intrinsic(value))
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
