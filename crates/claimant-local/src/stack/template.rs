//! The template as read, with the parameters of this run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::findings::Findings;
use super::yaml::Node;

/// The types of a function: SAM's and CloudFormation's.
pub(super) const FUNCTION_TYPES: &[&str] = &["AWS::Serverless::Function", "AWS::Lambda::Function"];

/// References within references at most; deeper means they go round in a circle.
pub(super) const REFERENCE_DEPTH_MAX: u32 = 32;

/// How much is evaluated of one template, at most: each value and each [`STEP_BYTES`] of text are a step. References that
/// each have ten others are more than any time within ten lines.
const STEPS_MAX: usize = 1_000_000;

/// So many bytes of a text are a step.
pub(super) const STEP_BYTES: usize = 64;

/// A template with the parameters of this run.
pub(super) struct Template<'a> {
    pub(super) root: Node,
    pub(super) parameters: &'a BTreeMap<String, String>,
    pub(super) findings: &'a Findings,
    /// Why values of the evaluation that is under way are stand-ins; see [`Template::evaluate`].
    pub(super) unknown: RefCell<Vec<String>>,
    /// Whether the evaluation that is under way has the value of a parameter with `NoEcho`.
    pub(super) secret: Cell<bool>,
    /// Whether the evaluation that is under way is of a condition, which may not refer to resources: their conditions could refer to it.
    pub(super) in_condition: Cell<bool>,
    /// What was evaluated so far; see [`Template::count_steps`].
    pub(super) steps: Cell<usize>,
}

impl<'a> Template<'a> {
    /// Also checks that every parameter given is one the template has.
    pub(super) fn new(root: Node, parameters: &'a BTreeMap<String, String>, findings: &'a Findings) -> Self {
        let template = Self {
            root,
            parameters,
            findings,
            unknown: RefCell::default(),
            secret: Cell::default(),
            in_condition: Cell::default(),
            steps: Cell::default(),
        };
        for name in parameters.keys() {
            if template.parameter(name).is_none() {
                findings.fault(
                    1,
                    format!("parameter {name} was given, but is not under `Parameters`: remove it or correct its name"),
                );
            }
        }
        template
    }

    /// The value under `key` under the top-level `part`.
    pub(super) fn under(&self, part: &str, key: &str) -> Option<&Node> {
        self.root.get(part)?.get(key)
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&Node> {
        self.under("Parameters", name)
    }

    pub(super) fn resource(&self, logical_id: &str) -> Option<&Node> {
        self.under("Resources", logical_id)
    }

    /// Where a resource stands; the first line for none.
    pub(super) fn line_of(&self, logical_id: &str) -> usize {
        self.resource(logical_id).map_or(1, |resource| resource.line)
    }

    /// Every resource, in the template's order, whatever its condition.
    pub(super) fn all_resources(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.root.get("Resources").map_or(&[][..], Node::entries).iter().map(|(id, resource)| (&**id, resource))
    }

    /// Whether mappings of the function may be of an alias or a version of it.
    pub(super) fn has_aliases(&self, function_id: &str) -> bool {
        let are_made = ["AWS::Lambda::Alias", "AWS::Lambda::Version"];
        let own = self.resource(function_id).and_then(|function| function.get("Properties"));
        let places = [own, self.under("Globals", "Function")];
        places.into_iter().flatten().any(|place| place.get("AutoPublishAlias").is_some())
            || self.all_resources().any(|(_, resource)| type_of(resource).is_some_and(|kind| are_made.contains(&kind)))
    }

    /// Counts what is evaluated.
    ///
    /// # Errors
    /// When it is more than any template of the field needs.
    pub(super) fn count_steps(&self, steps: usize) -> Result<(), String> {
        let counted = self.steps.get().saturating_add(steps);
        self.steps.set(counted);
        if counted > STEPS_MAX {
            return Err("is too much to evaluate: let references have fewer references".to_owned());
        }
        Ok(())
    }

    /// Says why the evaluation that is under way has a stand-in.
    pub(super) fn is_unknown(&self, why: String) {
        self.unknown.borrow_mut().push(why);
    }
}

/// The type of a resource.
pub(super) fn type_of(resource: &Node) -> Option<&str> {
    resource.get("Type")?.as_text()
}

/// The name of the condition under which a resource is there.
pub(super) fn condition_of(resource: &Node) -> Option<&str> {
    resource.get("Condition")?.as_text()
}
