//! What a template's resources are called here: names, URLs and ARNs.

use super::spec::SQS_URL_PLACEHOLDER;
use super::template::{Template, condition_of, type_of};
use super::yaml::Node;
use crate::arn::{self, ACCOUNT_ID, REGION};
use crate::sqs::settings::{FIFO_SUFFIX, NAME_LENGTH_MAX};

/// Which resource types have a local counterpart that can be referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Queue,
    Table,
    Function,
    Alias,
    Version,
    Role,
    Bucket,
}

/// The one version of a function here.
const LATEST: &str = "$LATEST";

/// The shortest name that DynamoDB takes.
const TABLE_NAME_LENGTH_MIN: usize = 3;

/// How SAM goes on, after a function's id, in the ids of what it makes of it; with the id of an event for what it makes of that.
const MADE_OF_FUNCTION: [&str; 6] = ["Role", "Version", "Alias", "Url", "DeploymentGroup", "EventInvokeConfig"];

/// A resource that is there locally.
pub(super) struct Known {
    kind: Kind,
    name: String,
}

/// What an id refers to.
pub(super) enum Referred {
    Known(Known),
    /// A resource that only AWS has; why its values are not known.
    Unknown(String),
}

impl Kind {
    fn of(type_name: &str) -> Option<Self> {
        match type_name {
            "AWS::SQS::Queue" => Some(Self::Queue),
            "AWS::DynamoDB::Table" | "AWS::DynamoDB::GlobalTable" | "AWS::Serverless::SimpleTable" => Some(Self::Table),
            "AWS::Serverless::Function" | "AWS::Lambda::Function" => Some(Self::Function),
            "AWS::Lambda::Alias" => Some(Self::Alias),
            "AWS::Lambda::Version" => Some(Self::Version),
            "AWS::IAM::Role" => Some(Self::Role),
            "AWS::S3::Bucket" => Some(Self::Bucket),
            _ => None,
        }
    }

    fn name_property(self) -> &'static str {
        match self {
            Self::Queue => "QueueName",
            Self::Table => "TableName",
            Self::Function | Self::Alias | Self::Version => "FunctionName",
            Self::Role => "RoleName",
            Self::Bucket => "BucketName",
        }
    }
}

impl Known {
    /// What `!Ref` gives.
    pub(super) fn reference(&self) -> String {
        match self.kind {
            Kind::Queue => format!("{SQS_URL_PLACEHOLDER}/{ACCOUNT_ID}/{}", self.name),
            Kind::Alias | Kind::Version => arn::of_function(&self.name),
            Kind::Table | Kind::Function | Kind::Role | Kind::Bucket => self.name.clone(),
        }
    }

    /// What `!GetAtt` gives, if it is known.
    pub(super) fn attribute(&self, attribute: &str) -> Option<String> {
        let name = &self.name;
        match (self.kind, attribute) {
            (Kind::Queue, "Arn") => Some(arn::of_queue(name)),
            (Kind::Queue, "QueueName") => Some(name.clone()),
            (Kind::Queue, "QueueUrl") => Some(self.reference()),
            (Kind::Table, "Arn") => Some(arn::of_table(name)),
            (Kind::Function, "Arn") => Some(arn::of_function(name)),
            (Kind::Alias, "AliasArn") | (Kind::Version, "FunctionArn") => Some(self.reference()),
            (Kind::Version, "Version") => Some(LATEST.to_owned()),
            // Nothing here checks permissions; a role is something that a setting names.
            (Kind::Role, "Arn") => Some(arn::of_role(name)),
            (Kind::Bucket, "Arn") => Some(arn::of_bucket(name)),
            _ => None,
        }
    }
}

pub(super) fn pseudo_parameter(id: &str) -> Option<String> {
    Some(match id {
        "AWS::Region" => REGION.to_owned(),
        "AWS::AccountId" => ACCOUNT_ID.to_owned(),
        "AWS::Partition" => "aws".to_owned(),
        "AWS::StackName" => "local".to_owned(),
        // Parts of its UUID are taken for names that are unique.
        "AWS::StackId" => {
            format!("arn:aws:cloudformation:{REGION}:{ACCOUNT_ID}:stack/local/00000000-0000-0000-0000-000000000000")
        }
        "AWS::URLSuffix" => "amazonaws.com".to_owned(),
        _ => return None,
    })
}

impl Template<'_> {
    /// The name of a queue, table, function or bucket: its name property, or else its logical id. An error says what is wrong.
    pub(super) fn physical_name(&self, logical_id: &str) -> Result<String, String> {
        match self.find(logical_id, 0)? {
            Referred::Known(known) => Ok(known.name),
            Referred::Unknown(why) => Err(why),
        }
    }

    /// The resource of this id; an error if there is none, or if it is left out.
    pub(super) fn find(&self, id: &str, depth: u32) -> Result<Referred, String> {
        if self.in_condition.get() {
            return Err(format!(
                "has a condition that refers to {id}, which is no parameter: a condition takes nothing of resources"
            ));
        }
        for (made, kind) in [(".Alias", Kind::Alias), (".Version", Kind::Version)] {
            if let Some(function) = id.strip_suffix(made) {
                return self.published(kind, function, depth);
            }
        }
        let Some(resource) = self.resource(id) else {
            return match self.maker_of(id) {
                Some(maker) => Ok(Referred::Unknown(format!("refers to {id}, which SAM makes for {maker}"))),
                None => Err(format!(
                    "refers to {id}, which is neither a parameter nor a resource: correct the name or add it"
                )),
            };
        };
        if let Some(condition) = condition_of(resource).filter(|name| self.condition(name) == Ok(false)) {
            return Err(format!(
                "refers to {id}, which is left out, since its condition {condition} is false: give this resource the same condition"
            ));
        }
        let type_name = type_of(resource).unwrap_or("no type");
        let Some(kind) = Kind::of(type_name) else {
            let why = match type_name {
                "AWS::Lambda::EventSourceMapping" => "whose id is made when it starts",
                _ => "which is not run here",
            };
            return Ok(Referred::Unknown(format!("refers to {id} ({type_name}), {why}")));
        };
        let properties = resource.get("Properties");
        if matches!(kind, Kind::Alias | Kind::Version) {
            return self.qualified(kind, id, properties, depth);
        }
        let given = properties.and_then(|properties| properties.get(kind.name_property()));
        // Said where the resource itself is read.
        let (name, is_known) = self.unsaid(|| given.map(|name| self.evaluate(name, depth + 1)).transpose());
        let name = match name?.as_ref().and_then(Node::as_text).filter(|_| is_known) {
            Some(name) => name.to_owned(),
            None => self.default_name(kind, id, properties, depth),
        };
        Ok(Referred::Known(Known { kind, name }))
    }

    /// An alias or a version: the function's name, and its own.
    fn qualified(&self, kind: Kind, id: &str, properties: Option<&Node>, depth: u32) -> Result<Referred, String> {
        let text = |key: &str| {
            let value = properties.and_then(|properties| properties.get(key));
            self.text(value.ok_or_else(|| format!("refers to {id}, which has no {key}: give it one"))?, depth + 1)
        };
        let of = text(kind.name_property())?;
        // Whatever an alias is called, calls to it reach its function.
        let qualifier = if kind == Kind::Alias { self.unsaid(|| text("Name")).0? } else { LATEST.to_owned() };
        Ok(Referred::Known(Known { kind, name: format!("{}:{qualifier}", arn::function_name(&of)) }))
    }

    /// What SAM makes of a function with `AutoPublishAlias`.
    fn published(&self, kind: Kind, function: &str, depth: u32) -> Result<Referred, String> {
        let own = self.resource(function).and_then(|function| function.get("Properties"));
        let places = [own, self.under("Globals", "Function")].into_iter().flatten();
        let alias = places.filter(|_| kind == Kind::Alias).find_map(|place| place.get("AutoPublishAlias"));
        // Whatever it is called, calls to it reach its function.
        let (qualifier, _) = self.unsaid(|| alias.and_then(|name| self.text(name, depth + 1).ok()));
        let qualifier = qualifier.unwrap_or_else(|| LATEST.to_owned());
        Ok(match self.find(function, depth)? {
            Referred::Known(of) => Referred::Known(Known { kind, name: format!("{}:{qualifier}", of.name) }),
            unknown => unknown,
        })
    }

    /// Evaluates something without saying what of it only AWS knows; returns whether that is nothing.
    fn unsaid<T>(&self, evaluate: impl FnOnce() -> T) -> (T, bool) {
        let before = self.unknown.borrow().len();
        let value = evaluate();
        let is_known = self.unknown.borrow().len() == before;
        self.unknown.borrow_mut().truncate(before);
        (value, is_known)
    }

    /// The resource for which SAM makes one of this id, such as `ConfirmRole` for `Confirm`.
    fn maker_of(&self, id: &str) -> Option<&str> {
        let makes = |(maker, resource): &(&str, &Node)| {
            let (Some(kind), Some(rest)) = (type_of(resource), id.strip_prefix(maker)) else { return false };
            match kind {
                "AWS::Serverless::Function" => {}
                // They become one resource, of their own id.
                "AWS::Serverless::SimpleTable" | "AWS::Serverless::Application" => return false,
                _ => return kind.starts_with("AWS::Serverless::"),
            }
            let events = resource.get("Properties").and_then(|properties| properties.get("Events"));
            let events = events.map_or(&[][..], Node::entries).iter().map(|(event, _)| &**event);
            MADE_OF_FUNCTION.into_iter().chain(events).any(|made| rest.starts_with(made))
        };
        self.all_resources().find(makes).map(|(maker, _)| maker).or_else(|| {
            // An API's implicit resources have fixed names.
            id.starts_with("Serverless").then_some("the template's API events")
        })
    }

    /// SQS refuses a FIFO queue whose name lacks the suffix, so a queue named by default gets it. Of an id that is too long for a name
    /// the end is taken, which has CDK's hash. S3 takes no capitals.
    fn default_name(&self, kind: Kind, id: &str, properties: Option<&Node>, depth: u32) -> String {
        let fifo = properties
            .and_then(|properties| properties.get("FifoQueue"))
            .and_then(|flag| self.text(flag, depth + 1).ok())
            .is_some_and(|flag| flag.eq_ignore_ascii_case("true"));
        let tail = |max: usize| &id[id.ceil_char_boundary(id.len().saturating_sub(max))..];
        match kind {
            Kind::Queue if fifo => format!("{}{FIFO_SUFFIX}", tail(NAME_LENGTH_MAX - FIFO_SUFFIX.len())),
            Kind::Queue => tail(NAME_LENGTH_MAX).to_owned(),
            Kind::Bucket => id.to_ascii_lowercase(),
            // As AWS puts the stack's name in front; alone it is too short for a name.
            Kind::Table if id.len() < TABLE_NAME_LENGTH_MIN => format!("local-{id}"),
            _ => id.to_owned(),
        }
    }
}
