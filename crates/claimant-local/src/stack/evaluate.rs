//! CloudFormation's functions, evaluated with local names, account and Region.
//!
//! What only AWS knows, such as another stack's exports, has a stand-in, and [`Template::unknown`] says why: the reader
//! decides what that means.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::resolve::{Referred, pseudo_parameter};
use super::template::{REFERENCE_DEPTH_MAX, STEP_BYTES, Template};
use super::yaml::{Kind, Node};
use crate::arn::{ACCOUNT_ID, REGION};

const CIRCLE: &str = "refers to itself in a circle: break the circle";

/// Lists and mappings within each other at most, once evaluated.
const JSON_DEPTH_MAX: u32 = 100;

impl Template<'_> {
    /// The value itself with functions evaluated, though not what is within it; `AWS::NoValue` is null. An error says
    /// what is wrong and how to fix it.
    pub(super) fn evaluate(&self, node: &Node, depth: u32) -> Result<Node, String> {
        if depth > REFERENCE_DEPTH_MAX {
            return Err(CIRCLE.to_owned());
        }
        self.count_steps(1)?;
        match &node.kind {
            Kind::Call(function, argument) => Ok(self.call(function, argument, depth + 1)?.at(node.line)),
            Kind::Text(text) if text.contains("{{resolve:") => {
                self.is_unknown("is a dynamic reference, which only AWS resolves".to_owned());
                Ok(node.clone())
            }
            _ => Ok(node.clone()),
        }
    }

    /// The text of a single value.
    pub(super) fn text(&self, node: &Node, depth: u32) -> Result<String, String> {
        let value = self.evaluate(node, depth)?;
        let text = value.as_text().ok_or("must be a single value: a text, a number, true or false")?;
        self.count_steps(text.len() / STEP_BYTES)?;
        Ok(text.to_owned())
    }

    /// The texts of a list of single values.
    pub(super) fn texts(&self, node: &Node) -> Result<Vec<String>, String> {
        self.list(node, 0)?.iter().map(|item| self.text(item, 0)).collect()
    }

    /// The value with everything within it evaluated, as JSON.
    pub(super) fn json(&self, node: &Node) -> Result<Value, String> {
        self.json_at(node, 0)
    }

    fn json_at(&self, node: &Node, within: u32) -> Result<Value, String> {
        // A mapping's value can hold another, and that one this.
        if within > JSON_DEPTH_MAX {
            return Err(CIRCLE.to_owned());
        }
        let node = self.evaluate(node, 0)?;
        Ok(match &node.kind {
            Kind::Null => Value::Null,
            Kind::Text(text) => match serde_json::from_str(text) {
                Ok(value @ (Value::Bool(_) | Value::Number(_))) => value,
                _ => Value::String(text.to_string()),
            },
            Kind::List(items) => {
                let items = items.iter().map(|item| self.json_at(item, within + 1));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Kind::Map(entries) => {
                let entries =
                    entries.iter().map(|(key, value)| Ok((key.to_string(), self.json_at(value, within + 1)?)));
                Value::Object(entries.collect::<Result<_, String>>()?)
            }
            Kind::Call(..) => return Err(CIRCLE.to_owned()),
        })
    }

    fn call(&self, function: &str, argument: &Node, depth: u32) -> Result<Node, String> {
        let text = |text: String| Node::text(argument.line, text);
        match function {
            "Ref" => self.referred(&self.text(argument, depth)?, argument.line, depth),
            "GetAtt" => self.attribute(&self.path(argument, depth)?, depth).map(text),
            "Sub" => self.substitute(argument, depth).map(text),
            "Join" => self.join(argument, depth).map(text),
            "If" => self.choose(argument, depth),
            "Select" => self.select(argument, depth),
            "Split" => self.split(argument, depth),
            "FindInMap" => self.find_in_map(argument, depth),
            "Base64" => Ok(text(STANDARD.encode(self.text(argument, depth)?))),
            "GetAZs" => {
                Ok(Node::list(argument.line, ["a", "b", "c"].map(|zone| text(format!("{REGION}{zone}"))).into()))
            }
            "ImportValue" => {
                let name = self.text(argument, depth)?;
                self.is_unknown(format!("is the export {name} of another stack (!ImportValue)"));
                Ok(text(name))
            }
            other => {
                self.is_unknown(format!("uses !{other}, which is not evaluated here"));
                Ok(text(other.to_owned()))
            }
        }
    }

    /// What `!Ref` of this parameter or resource is.
    fn referred(&self, id: &str, line: usize, depth: u32) -> Result<Node, String> {
        match id {
            "AWS::NoValue" => return Ok(Node { line, kind: Kind::Null }),
            "AWS::NotificationARNs" => return Ok(Node::list(line, Vec::new())),
            _ => {}
        }
        let text = self.reference(id, depth)?;
        let kind = self.parameter(id).and_then(|parameter| parameter.get("Type")).and_then(Node::as_text);
        let is_list = kind.is_some_and(|kind| kind == "CommaDelimitedList" || kind.contains("List<"));
        // Unlike `Fn::Split`, CloudFormation takes the spaces off.
        Ok(if is_list { list_of(text.split(',').map(str::trim), line) } else { Node::text(line, text) })
    }

    /// What `!Ref` of this parameter or resource is, as text.
    pub(super) fn reference(&self, id: &str, depth: u32) -> Result<String, String> {
        if let Some(value) = pseudo_parameter(id) {
            return Ok(value);
        }
        let Some(parameter) = self.parameter(id) else {
            return match self.find(id, depth)? {
                Referred::Known(known) => Ok(known.reference()),
                Referred::Unknown(why) => {
                    self.is_unknown(why);
                    Ok(id.to_owned())
                }
            };
        };
        if parameter.get("NoEcho").and_then(Node::as_text).is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            self.secret.set(true);
        }
        if let Some(given) = self.parameters.get(id) {
            return Ok(given.clone());
        }
        let kind = parameter.get("Type").and_then(Node::as_text).unwrap_or_default();
        if kind.starts_with("AWS::SSM::Parameter::Value") {
            self.is_unknown(format!("is the SSM parameter that {id} names: give --parameter {id}=…"));
        }
        let default = parameter.get("Default").ok_or_else(|| {
            format!(
                "needs parameter {id}, which has no value: give it a `Default`, or a value for this run \
                 (--parameter {id}=…)"
            )
        })?;
        self.text(default, depth + 1)
    }

    fn attribute(&self, path: &str, depth: u32) -> Result<String, String> {
        let (id, attribute) = path
            .split_once('.')
            .ok_or_else(|| format!("!GetAtt {path} names no attribute: write !GetAtt {path}.Arn"))?;
        let why = match self.find(id, depth)? {
            Referred::Known(known) => match known.attribute(attribute) {
                Some(value) => return Ok(value),
                // Only a queue has a URL.
                None if known.attribute("QueueUrl").is_some() => {
                    return Err(format!(
                        "!GetAtt {path} names no attribute of a queue: there are Arn, QueueName and QueueUrl"
                    ));
                }
                None => format!("!GetAtt {path} has no local value"),
            },
            Referred::Unknown(why) => why,
        };
        self.is_unknown(why);
        Ok(match attribute {
            "Arn" => format!("arn:aws:local:{REGION}:{ACCOUNT_ID}:{id}"),
            _ => path.to_owned(),
        })
    }

    fn path(&self, argument: &Node, depth: u32) -> Result<String, String> {
        if argument.items().is_empty() {
            return self.text(argument, depth);
        }
        let parts: Result<Vec<_>, _> = argument.items().iter().map(|part| self.text(part, depth)).collect();
        Ok(parts?.join("."))
    }

    /// The items of a list, each as it is written; those that are `AWS::NoValue` are left out.
    fn list(&self, node: &Node, depth: u32) -> Result<Vec<Node>, String> {
        let list = self.evaluate(node, depth)?;
        let Kind::List(items) = &list.kind else {
            return Err("has a function whose argument must be a list".to_owned());
        };
        let items: Result<Vec<_>, _> = items.iter().map(|item| self.evaluate(item, depth)).collect();
        Ok(items?.into_iter().filter(|item| item.kind != Kind::Null).collect())
    }

    fn join(&self, argument: &Node, depth: u32) -> Result<String, String> {
        let [delimiter, parts] = argument.items() else {
            return Err("!Join takes a delimiter and a list: write !Join [\"-\", [a, b]]".to_owned());
        };
        let delimiter = self.text(delimiter, depth)?;
        let parts = self.list(parts, depth)?;
        let parts: Result<Vec<_>, _> = parts.iter().map(|part| self.text(part, depth)).collect();
        Ok(parts?.join(&delimiter))
    }

    fn choose(&self, argument: &Node, depth: u32) -> Result<Node, String> {
        let [condition, then, otherwise] = argument.items() else {
            return Err("!If takes a condition and two values: write !If [HasDatabase, a, b]".to_owned());
        };
        let name = condition.as_text().ok_or("!If names no condition: write !If [HasDatabase, a, b]")?;
        self.evaluate(if self.condition_at(name, depth)? { then } else { otherwise }, depth)
    }

    fn select(&self, argument: &Node, depth: u32) -> Result<Node, String> {
        let [index, list] = argument.items() else {
            return Err("!Select takes an index and a list: write !Select [0, [a, b]]".to_owned());
        };
        let index = self.text(index, depth)?;
        let items = self.list(list, depth)?;
        let item = index.parse().ok().and_then(|index: usize| items.get(index));
        let count = items.len();
        self.evaluate(item.ok_or_else(|| format!("!Select has no item {index} in a list of {count}"))?, depth)
    }

    fn split(&self, argument: &Node, depth: u32) -> Result<Node, String> {
        let [delimiter, text] = argument.items() else {
            return Err("!Split takes a delimiter and a text: write !Split [\",\", \"a,b\"]".to_owned());
        };
        let (text, delimiter) = (self.text(text, depth)?, self.text(delimiter, depth)?);
        let parts = list_of(text.split(&delimiter), argument.line);
        self.count_steps(parts.items().len())?;
        Ok(parts)
    }

    fn find_in_map(&self, argument: &Node, depth: u32) -> Result<Node, String> {
        let [map, first, second, rest @ ..] = argument.items() else {
            return Err(
                "!FindInMap takes a mapping's name and two keys: write !FindInMap [Sizes, eu-west-1, small]".to_owned()
            );
        };
        let keys = [map, first, second].map(|key| self.text(key, depth));
        let [map, first, second] = keys;
        let (map, first, second) = (map?, first?, second?);
        let mappings = self.root.get("Mappings");
        let found = mappings.and_then(|mappings| mappings.get(&map)?.get(&first)?.get(&second));
        let default = rest.first().and_then(|options| options.get("DefaultValue"));
        let found = found.or(default).ok_or_else(|| {
            format!("!FindInMap finds nothing under Mappings.{map}.{first}.{second}: add it, or correct the keys")
        })?;
        self.evaluate(found, depth)
    }

    fn substitute(&self, argument: &Node, depth: u32) -> Result<String, String> {
        let (text, variables) = match (argument.as_text(), argument.items()) {
            (Some(text), _) => (text, None),
            (None, [text, variables]) if variables.is_map() => (text.as_text().unwrap_or_default(), Some(variables)),
            _ => return Err("!Sub takes a text, or a list of a text and a mapping".to_owned()),
        };
        if text.contains("{{resolve:") {
            self.is_unknown("is a dynamic reference, which only AWS resolves".to_owned());
        }
        let mut result = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, tail) =
                after.split_once('}').ok_or_else(|| format!("!Sub `{text}` has `${{` without `}}`: close it"))?;
            let value = self.variable(name.trim(), variables, depth)?;
            self.count_steps(1 + (before.len() + value.len()) / STEP_BYTES)?;
            result.push_str(before);
            result.push_str(&value);
            rest = tail;
        }
        result.push_str(rest);
        Ok(result)
    }

    fn variable(&self, name: &str, variables: Option<&Node>, depth: u32) -> Result<String, String> {
        if let Some(literal) = name.strip_prefix('!') {
            return Ok(format!("${{{literal}}}"));
        }
        match variables.and_then(|variables| variables.get(name)) {
            Some(value) => self.text(value, depth),
            None if name.contains('.') => self.attribute(name, depth),
            None => self.reference(name, depth),
        }
    }
}

fn list_of<'a>(parts: impl Iterator<Item = &'a str>, line: usize) -> Node {
    Node::list(line, parts.map(|part| Node::text(line, part)).collect())
}
