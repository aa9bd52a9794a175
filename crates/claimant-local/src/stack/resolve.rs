//! CloudFormation's functions for single values, with local names, account and Region.

use serde_yaml_ng::Value;

use super::conditions::condition_of;
use super::template::Template;
use super::{ACCOUNT_ID, REGION, SQS_URL_PLACEHOLDER};

/// References within references at most; deeper means they go round in a circle.
pub(super) const REFERENCE_DEPTH_MAX: u32 = 16;

/// Which resource types have a local counterpart that can be referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Queue,
    Table,
    Function,
}

impl Kind {
    fn of(type_name: &str) -> Option<Self> {
        match type_name {
            "AWS::SQS::Queue" => Some(Self::Queue),
            "AWS::DynamoDB::Table" | "AWS::Serverless::SimpleTable" => Some(Self::Table),
            "AWS::Serverless::Function" => Some(Self::Function),
            _ => None,
        }
    }

    fn name_property(self) -> &'static str {
        match self {
            Self::Queue => "QueueName",
            Self::Table => "TableName",
            Self::Function => "FunctionName",
        }
    }
}

/// The local ARN of a queue.
pub(super) fn queue_arn(name: &str) -> String {
    format!("arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}")
}

/// The name in the ARN of a local queue.
pub(super) fn queue_name(arn: &str) -> Option<&str> {
    arn.strip_prefix(&queue_arn(""))
}

/// The function a value is a call of, without `!` or `Fn::`, and its argument.
pub(super) fn intrinsic(value: &Value) -> Option<(String, &Value)> {
    match value {
        Value::Tagged(tagged) => {
            let tag = tagged.tag.to_string();
            Some((tag.trim_start_matches('!').to_owned(), &tagged.value))
        }
        Value::Mapping(map) if map.len() == 1 => {
            let (key, argument) = map.iter().next()?;
            match key.as_str()? {
                "Ref" => Some(("Ref".to_owned(), argument)),
                key => Some((key.strip_prefix("Fn::")?.to_owned(), argument)),
            }
        }
        _ => None,
    }
}

impl Template<'_> {
    /// The text of a single value, or why it has none and how to mend it.
    pub(super) fn text(&self, value: &Value) -> Result<String, String> {
        self.text_at(value, 0)
    }

    /// The name of a queue, table or function: its name property, or else its logical id.
    pub(super) fn physical_name(&self, logical_id: &str) -> Result<String, String> {
        self.named(logical_id, 0).map(|(_, name)| name)
    }

    fn text_at(&self, value: &Value, depth: u32) -> Result<String, String> {
        if depth > REFERENCE_DEPTH_MAX {
            return Err("refers to itself in a circle: break the circle".to_owned());
        }
        if let Some((function, argument)) = intrinsic(value) {
            return self.call(&function, argument, depth + 1);
        }
        match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(flag) => Ok(flag.to_string()),
            _ => Err("must be a single value: a text, a number, true or false".to_owned()),
        }
    }

    fn call(&self, function: &str, argument: &Value, depth: u32) -> Result<String, String> {
        match function {
            "Ref" => self.reference(&self.text_at(argument, depth)?, depth),
            "GetAtt" => match argument {
                Value::Sequence(parts) => {
                    let parts: Result<Vec<_>, _> = parts.iter().map(|part| self.text_at(part, depth)).collect();
                    self.attribute(&parts?.join("."), depth)
                }
                _ => self.attribute(&self.text_at(argument, depth)?, depth),
            },
            "Sub" => self.substitute(argument, depth),
            "Join" => self.join(argument, depth),
            other => Err(format!(
                "uses !{other}, which the local cloud does not evaluate: use !Ref, !GetAtt, !Sub or !Join, \
                 or a parameter with a default"
            )),
        }
    }

    /// What `!Ref` of this parameter or resource is.
    pub(super) fn reference(&self, id: &str, depth: u32) -> Result<String, String> {
        if let Some(value) = pseudo_parameter(id) {
            return Ok(value.to_owned());
        }
        if let Some(parameter) = self.parameter(id) {
            if let Some(given) = self.parameters.get(id) {
                return Ok(given.clone());
            }
            let default = parameter.get("Default").ok_or_else(|| {
                format!("needs parameter {id}, which has no value: give it a `Default`, or a value for this run")
            })?;
            return self.text_at(default, depth);
        }
        let (kind, name) = self.named(id, depth)?;
        Ok(match kind {
            Kind::Queue => format!("{SQS_URL_PLACEHOLDER}/{ACCOUNT_ID}/{name}"),
            Kind::Table | Kind::Function => name,
        })
    }

    fn attribute(&self, path: &str, depth: u32) -> Result<String, String> {
        let (id, attribute) = path
            .split_once('.')
            .ok_or_else(|| format!("!GetAtt {path} names no attribute: write !GetAtt {path}.Arn"))?;
        let (kind, name) = self.named(id, depth)?;
        match (kind, attribute) {
            (Kind::Queue, "Arn") => Ok(queue_arn(&name)),
            (Kind::Queue, "QueueName") => Ok(name),
            (Kind::Queue, "QueueUrl") => Ok(format!("{SQS_URL_PLACEHOLDER}/{ACCOUNT_ID}/{name}")),
            (Kind::Table, "Arn") => Ok(format!("arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{name}")),
            (Kind::Function, "Arn") => Ok(function_arn(&name)),
            _ => {
                Err(format!("!GetAtt {path} has no local value: use the attribute Arn, or a parameter with a default"))
            }
        }
    }

    fn named(&self, id: &str, depth: u32) -> Result<(Kind, String), String> {
        let resource = self.resource(id).ok_or_else(|| {
            format!("refers to {id}, which is neither a parameter nor a resource: correct the name or add it")
        })?;
        if let Some(condition) = condition_of(resource).filter(|name| self.condition(name) == Ok(false)) {
            return Err(format!(
                "refers to {id}, which is left out, since its condition {condition} is false: give this resource the same condition"
            ));
        }
        let type_name = resource.get("Type").and_then(Value::as_str).unwrap_or("no type");
        let kind = Kind::of(type_name).ok_or_else(|| {
            format!("refers to {id} ({type_name}), which has no local counterpart: use a parameter with a default")
        })?;
        let properties = resource.get("Properties");
        match properties.and_then(|properties| properties.get(kind.name_property())) {
            Some(name) => Ok((kind, self.text_at(name, depth + 1)?)),
            None => Ok((kind, self.default_name(kind, id, properties))),
        }
    }

    /// SQS refuses a FIFO queue whose name lacks the suffix, so a queue named by default gets it.
    fn default_name(&self, kind: Kind, id: &str, properties: Option<&Value>) -> String {
        let fifo = properties
            .and_then(|properties| properties.get("FifoQueue"))
            .and_then(|flag| self.text(flag).ok())
            .is_some_and(|flag| flag.eq_ignore_ascii_case("true"));
        match kind {
            Kind::Queue if fifo => format!("{id}.fifo"),
            _ => id.to_owned(),
        }
    }

    fn join(&self, argument: &Value, depth: u32) -> Result<String, String> {
        let Some([delimiter, Value::Sequence(parts)]) = argument.as_sequence().map(Vec::as_slice) else {
            return Err("!Join takes a delimiter and a list: write !Join [\"-\", [a, b]]".to_owned());
        };
        let delimiter = self.text_at(delimiter, depth)?;
        let parts: Result<Vec<_>, _> = parts.iter().map(|part| self.text_at(part, depth)).collect();
        Ok(parts?.join(&delimiter))
    }

    fn substitute(&self, argument: &Value, depth: u32) -> Result<String, String> {
        let (text, variables) = match argument {
            Value::String(text) => (text, None),
            Value::Sequence(parts) => match parts.as_slice() {
                [Value::String(text), variables @ Value::Mapping(_)] => (text, Some(variables)),
                _ => return Err("!Sub takes a text, or a list of a text and a mapping".to_owned()),
            },
            _ => return Err("!Sub takes a text, or a list of a text and a mapping".to_owned()),
        };
        let mut result = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            let (name, tail) =
                after.split_once('}').ok_or_else(|| format!("!Sub `{text}` has `${{` without `}}`: close it"))?;
            result.push_str(before);
            result.push_str(&self.variable(name.trim(), variables, depth)?);
            rest = tail;
        }
        result.push_str(rest);
        Ok(result)
    }

    fn variable(&self, name: &str, variables: Option<&Value>, depth: u32) -> Result<String, String> {
        if let Some(literal) = name.strip_prefix('!') {
            return Ok(format!("${{{literal}}}"));
        }
        match variables.and_then(|variables| variables.get(name)) {
            Some(value) => self.text_at(value, depth),
            None if name.contains('.') => self.attribute(name, depth),
            None => self.reference(name, depth),
        }
    }
}

/// The local ARN of a function.
pub(crate) fn function_arn(name: &str) -> String {
    format!("arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{name}")
}

fn pseudo_parameter(id: &str) -> Option<&'static str> {
    match id {
        "AWS::Region" => Some(REGION),
        "AWS::AccountId" => Some(ACCOUNT_ID),
        "AWS::Partition" => Some("aws"),
        "AWS::StackName" => Some("local"),
        "AWS::URLSuffix" => Some("amazonaws.com"),
        _ => None,
    }
}
