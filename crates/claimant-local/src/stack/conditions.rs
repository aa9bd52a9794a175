//! CloudFormation's conditions, and the resources that are left out by them.

use std::collections::BTreeSet;

use super::resolve::pseudo_parameter;
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
    let why = why_false(template, condition);
    Some(LeftOut::new(id, resource, format!("its condition {condition} {why}")))
}

fn why_false(template: &Template<'_>, condition: &str) -> String {
    let names = template.names_of(condition);
    let pseudo = names.iter().filter_map(|name| Some(format!("{name} is {}", pseudo_parameter(name)?)));
    let pseudo: Vec<_> = pseudo.collect();
    let here = if pseudo.is_empty() { String::new() } else { format!(" here, where {}", pseudo.join(", ")) };
    let parameters: Vec<_> = names.into_iter().filter(|name| template.parameter(name).is_some()).collect();
    let is_empty = |name: &&&str| template.reference(name, 0).is_ok_and(|value| value.is_empty());
    let empties: Vec<&str> = parameters.iter().filter(is_empty).copied().collect();
    let (because, named) = match (empties.as_slice(), parameters.len()) {
        ([], 0) if here.is_empty() => return "is never true".to_owned(),
        ([], 0) => return format!("is false{here}"),
        ([], _) => ("is false with the values of", parameters),
        (_, _) => ("is false without a value of", empties),
    };
    let options: Vec<_> = named.iter().map(|name| format!("--parameter {name}=…")).collect();
    let (named, options) = (named.join(", "), options.join(" "));
    // Where the account or the Region has a say, perhaps no value is enough.
    let advice =
        if here.is_empty() { format!("give {options} to include it") } else { format!("{options} may include it") };
    format!("{because} {named}{here}: {advice}")
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
        let condition = condition.ok_or_else(missing)?;
        let (is_secret, known_before) = (self.secret.get(), self.unknown.borrow().len());
        let is_within = self.in_condition.replace(true);
        let holds = self.holds(condition, depth + 1);
        self.in_condition.set(is_within);
        // What is chosen by a secret is none, and what is chosen by a stand-in is no stand-in.
        self.secret.set(is_secret);
        for why in self.unknown.borrow_mut().split_off(known_before) {
            let why = format!("{why}: a stand-in for it decides the condition");
            self.findings.not_run(condition.line, &format!("Conditions.{name}"), "value", why);
        }
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

    /// What a condition, with those it is made of, refers to.
    fn names_of<'t>(&'t self, condition: &'t str) -> BTreeSet<&'t str> {
        let (mut names, mut seen, mut others) = (BTreeSet::new(), BTreeSet::new(), vec![condition]);
        while let Some(condition) = others.pop() {
            if let Some(node) = self.under("Conditions", condition).filter(|_| seen.insert(condition)) {
                add_names(node, &mut names, &mut others);
            }
        }
        names
    }
}

/// Adds what a value refers to, and the conditions that it is made of.
fn add_names<'t>(value: &'t Node, names: &mut BTreeSet<&'t str>, conditions: &mut Vec<&'t str>) {
    match call(value) {
        Some(("Ref", argument)) => names.extend(argument.as_text()),
        Some(("Condition", argument)) => conditions.extend(argument.as_text()),
        Some((function, argument)) => {
            if function == "Sub" {
                let text = argument.items().first().unwrap_or(argument).as_text().unwrap_or_default();
                let variables = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
                names.extend(variables.map(|(name, _)| name.trim()));
            }
            add_names(argument, names, conditions);
        }
        None => {
            let values = value.entries().iter().map(|(_, value)| value);
            value.items().iter().chain(values).for_each(|part| add_names(part, names, conditions));
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
