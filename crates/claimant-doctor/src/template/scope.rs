//! CloudFormation's functions, evaluated as far as the template alone says what they come to.
//!
//! What only AWS knows stays in texts as a hole: `${Orders.Arn}` for an attribute of a resource, `${@Region}` for a pseudo
//! parameter, `${@Nested>StackName}` for one that each stack has of its own, `${?}` for anything else. What has a value that cannot be
//! known at all is [`Fact::Unknown`].

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use claimant_template::{Kind, Node};

use crate::fact::{self, Fact};

/// References within references at most; deeper means they go round in a circle.
const DEPTH_MAX: u32 = 32;

/// Evaluations of one template at most.
const STEPS_MAX: usize = 1_000_000;

/// The longest text that is kept; a longer one is unknown.
const TEXT_MAX: usize = 16_384;

/// What cannot be known of a text.
pub(super) const HOLE: &str = "${?}";

/// The pseudo parameter that has the account of the stack.
pub(super) const ACCOUNT: &str = "AccountId";

/// What stacks give out that were read, by the hole that it is otherwise, such as `${Queues.Outputs.Arn}`, and what they export; all scopes share it.
pub(super) type Outputs = Rc<RefCell<BTreeMap<String, String>>>;

/// The stacks that a template is nested in.
pub(super) struct Within {
    /// The logical ids of the stacks that it is nested in, each with [`WITHIN`](crate::model::WITHIN) behind it; in front of them its
    /// template's name, where others import from it.
    pub(super) prefix: String,
    /// Whether those stacks are certain to be there: no condition of theirs is unknown.
    pub(super) certain: bool,
    /// How many stacks it is nested in.
    pub(super) depth: usize,
}

/// A template with the values of its parameters.
pub(super) struct Scope {
    /// The template's path.
    pub(super) file: Arc<str>,
    pub(super) within: Within,
    /// With its loops written out.
    pub(super) root: Node,
    /// The loops that cannot be, and why.
    pub(super) loops_left: Vec<String>,
    /// Those that are given; the others have their defaults.
    pub(super) parameters: BTreeMap<String, Fact<Node>>,
    /// `Region` and [`ACCOUNT`], if given.
    pub(super) pseudo: BTreeMap<&'static str, String>,
    pub(super) outputs: Outputs,
    pub(super) steps: Cell<usize>,
    /// The parameters that were asked for, may be shown, and have neither a value nor a default.
    pub(super) unvalued: RefCell<BTreeSet<String>>,
}

/// A text of the template's own.
pub(super) fn text(line: usize, text: String) -> Fact<Node> {
    if text.len() > TEXT_MAX { Fact::Unknown } else { Fact::Known(Node::text(line, text)) }
}

/// The text that a value is; a hole for what is not known.
fn text_in(value: &Fact<Node>) -> String {
    value.known().and_then(Node::as_text).map_or_else(|| HOLE.to_owned(), str::to_owned)
}

impl Scope {
    /// The value with its functions evaluated, though not what is within it.
    pub(super) fn evaluate(&self, node: &Node, depth: u32) -> Fact<Node> {
        self.steps.set(self.steps.get() + 1);
        if depth > DEPTH_MAX || self.steps.get() > STEPS_MAX {
            return Fact::Unknown;
        }
        match &node.kind {
            Kind::Call(function, argument) => {
                let value = self.call(function, argument, depth + 1);
                value.map(|value| if value.kind == Kind::Null { value } else { value.at(node.line) })
            }
            Kind::Text(text) if text.contains("{{resolve:") => Fact::Unknown,
            _ => Fact::Known(node.clone()),
        }
    }

    /// The text of a single value; a hole for what is not known.
    pub(super) fn text(&self, node: &Node, depth: u32) -> String {
        text_in(&self.evaluate(node, depth))
    }

    /// The text of a single value without a hole.
    pub(super) fn literal(&self, node: &Node, depth: u32) -> Option<String> {
        Some(self.text(node, depth)).filter(|text| !text.contains("${"))
    }

    fn call(&self, function: &str, argument: &Node, depth: u32) -> Fact<Node> {
        let line = argument.line;
        match function {
            "Ref" => self.literal(argument, depth).map_or(Fact::Unknown, |id| self.referred(&id, line, depth)),
            "GetAtt" => self.attribute(argument, depth),
            "Sub" => self.substitute(argument, depth),
            "Join" => self.join(argument, depth),
            "If" => self.choose(argument, depth),
            "Select" => self.select(argument, depth).unwrap_or_default(),
            "Split" => self.split(argument, depth).into(),
            "FindInMap" => self.find_in_map(argument, depth).unwrap_or_default(),
            _ => self.imported(function, argument, depth).map_or(Fact::Unknown, |value| text(line, value)),
        }
    }

    fn referred(&self, id: &str, line: usize, depth: u32) -> Fact<Node> {
        if let Some(name) = id.strip_prefix("AWS::") {
            return match name {
                "NoValue" => Fact::Known(Node { line, kind: Kind::Null }),
                "NotificationARNs" => Fact::Unknown,
                "StackName" | "StackId" => text(line, format!("${{@{}{name}}}", self.within.prefix)),
                name => text(line, self.pseudo.get(name).cloned().unwrap_or_else(|| format!("${{@{name}}}"))),
            };
        }
        let Some(parameter) = self.root.get("Parameters").and_then(|parameters| parameters.get(id)) else {
            return text(line, format!("${{{}{id}}}", self.within.prefix));
        };
        self.value_of(id, parameter, line, depth)
    }

    fn attribute(&self, argument: &Node, depth: u32) -> Fact<Node> {
        let path = match argument.items() {
            [] => self.literal(argument, depth),
            parts => {
                parts.iter().map(|part| self.literal(part, depth)).collect::<Option<Vec<_>>>().map(|p| p.join("."))
            }
        };
        path.map_or(Fact::Unknown, |path| text(argument.line, self.of_resource(&path)))
    }

    /// What only AWS knows of a resource, as a hole; of a stack that was read, what that gives out.
    fn of_resource(&self, path: &str) -> String {
        let hole = format!("${{{}{path}}}", self.within.prefix);
        self.outputs.borrow().get(&hole).cloned().unwrap_or(hole)
    }

    fn join(&self, argument: &Node, depth: u32) -> Fact<Node> {
        let [delimiter, parts] = argument.items() else { return Fact::Unknown };
        let (Some(delimiter), Fact::Known(parts)) = (self.literal(delimiter, depth), self.evaluate(parts, depth))
        else {
            return Fact::Unknown;
        };
        let parts: Vec<_> = self.items(&parts, depth).map(|(_, part)| text_in(&part)).collect();
        text(argument.line, parts.join(&delimiter))
    }

    fn choose(&self, argument: &Node, depth: u32) -> Fact<Node> {
        let [condition, then, otherwise] = argument.items() else { return Fact::Unknown };
        match condition.as_text().and_then(|name| self.condition(name, depth)) {
            Some(true) => self.evaluate(then, depth),
            Some(false) => self.evaluate(otherwise, depth),
            None => {
                let (then, otherwise) = (self.evaluate(then, depth), self.evaluate(otherwise, depth));
                match (then.known().and_then(Node::as_text), otherwise.known().and_then(Node::as_text)) {
                    (Some(one), Some(other)) if one == other => then,
                    _ => Fact::Unknown,
                }
            }
        }
    }

    fn select(&self, argument: &Node, depth: u32) -> Option<Fact<Node>> {
        let [index, list] = argument.items() else { return None };
        let mut left: usize = self.literal(index, depth)?.parse().ok()?;
        let list = self.evaluate(list, depth);
        for (item, value) in self.items(list.known()?, depth) {
            // One that may be `AWS::NoValue` may not count.
            let may_be_nothing = value == Fact::Unknown && matches!(&item.kind, Kind::Call(name, _) if &**name == "If");
            if left == 0 || may_be_nothing {
                return Some(value);
            }
            left -= 1;
        }
        None
    }

    /// The items of a list, each with what it comes to; CloudFormation leaves out `AWS::NoValue` before it joins or counts.
    fn items<'n>(&self, list: &'n Node, depth: u32) -> impl Iterator<Item = (&'n Node, Fact<Node>)> {
        let values = list.items().iter().map(move |item| (item, self.evaluate(item, depth)));
        values.filter(|(_, value)| value.known().is_none_or(|value| value.kind != Kind::Null))
    }

    /// The texts of a list, if all of them are known.
    pub(super) fn texts(&self, list: &Node) -> Option<Vec<String>> {
        let list = self.evaluate(list, 0);
        let list = list.known().filter(|list| matches!(list.kind, Kind::List(_)))?;
        let texts = self.items(list, 0).map(|(_, item)| Some(text_in(&item)).filter(|text| !text.contains("${")));
        texts.collect()
    }

    fn split(&self, argument: &Node, depth: u32) -> Option<Node> {
        let [delimiter, whole] = argument.items() else { return None };
        let (delimiter, whole) = (self.literal(delimiter, depth)?, self.text(whole, depth));
        let whole = match whole.contains("${") {
            true => self.arn(&whole, depth).filter(|_| delimiter == ":")?,
            false => whole,
        };
        let parts = whole.split(&delimiter).map(|part| Node::text(argument.line, part));
        Some(Node::list(argument.line, parts.collect()))
    }

    fn find_in_map(&self, argument: &Node, depth: u32) -> Option<Fact<Node>> {
        let [map, first, second, rest @ ..] = argument.items() else { return None };
        let [map, first, second] = [map, first, second].map(|key| self.literal(key, depth));
        let (map, first, second) = (map?, first?, second?);
        let found = self.root.get("Mappings").and_then(|maps| maps.get(&map)?.get(&first)?.get(&second));
        let default = rest.first().and_then(|options| options.get("DefaultValue"));
        Some(self.evaluate(found.or(default)?, depth))
    }

    fn substitute(&self, argument: &Node, depth: u32) -> Fact<Node> {
        let (whole, variables) = match (argument.as_text(), argument.items()) {
            (Some(whole), _) => (whole, None),
            (None, [whole, variables]) => (whole.as_text().unwrap_or(HOLE), Some(variables)),
            _ => return Fact::Unknown,
        };
        if whole.contains("{{resolve:") {
            return Fact::Unknown;
        }
        let mut result = String::new();
        let mut rest = whole;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, tail)) = after.split_once('}') else { return Fact::Unknown };
            result.push_str(before);
            result.push_str(&self.variable(name.trim(), variables, argument.line, depth));
            if result.len() > TEXT_MAX {
                return Fact::Unknown;
            }
            rest = tail;
        }
        result.push_str(rest);
        text(argument.line, result)
    }

    fn variable(&self, name: &str, variables: Option<&Node>, line: usize, depth: u32) -> String {
        if name.starts_with('!') || name == "?" {
            return HOLE.to_owned();
        }
        match variables.and_then(|variables| variables.get(name)) {
            Some(value) => self.text(value, depth),
            None if name.contains('.') => self.of_resource(name),
            None => text_in(&self.referred(name, line, depth)),
        }
    }

    /// Whether a condition holds; nothing if that cannot be known.
    pub(super) fn condition(&self, name: &str, depth: u32) -> Option<bool> {
        self.holds(self.root.get("Conditions")?.get(name)?, depth + 1)
    }

    fn holds(&self, condition: &Node, depth: u32) -> Option<bool> {
        self.steps.set(self.steps.get() + 1);
        if depth > DEPTH_MAX || self.steps.get() > STEPS_MAX {
            return None;
        }
        let (function, argument) = match &condition.kind {
            Kind::Call(function, argument) => (&**function, &**argument),
            Kind::Map(entries) => match &**entries {
                [(key, name)] if &**key == "Condition" => ("Condition", name),
                _ => return None,
            },
            _ => return None,
        };
        let operands = argument.items();
        let each = operands.iter().map(|operand| self.holds(operand, depth + 1));
        match (function, operands) {
            ("Condition", _) => self.condition(argument.as_text()?, depth),
            ("Equals", [left, right]) => {
                let (left, right) = (self.evaluate(left, depth), self.evaluate(right, depth));
                let (left, right) = (left.known()?.as_text()?.to_owned(), right.known()?.as_text()?.to_owned());
                match (left.contains("${"), right.contains("${")) {
                    (false, false) => Some(left == right),
                    _ => None,
                }
            }
            ("Not", [operand]) => self.holds(operand, depth + 1).map(|holds| !holds),
            ("And", _) => fact::all(each),
            // It holds unless all of them do not.
            ("Or", _) => fact::all(each.map(|holds| holds.map(|holds| !holds))).map(|none| !none),
            _ => None,
        }
    }
}
