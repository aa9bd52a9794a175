//! The resources of a template and of those nested in it, and what refers to them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use claimant_template::Node;

use super::part::Part;
use super::scope::{ACCOUNT, HOLE, Scope};
use crate::catalog::Check;
use crate::fact::Fact;
use crate::model::{Link, Place};
use crate::place::{METADATA, counts_for_nothing};

/// What stands for the stack's Region where that is not given.
const REGION: &str = "${@Region}";

/// What can be referred to by its name, with the property that has it, and the service in its ARN.
const NAMED: [(&str, &str, &str); 9] = [
    ("AWS::SQS::Queue", "QueueName", "sqs"),
    ("AWS::Serverless::Function", "FunctionName", "lambda"),
    ("AWS::Lambda::Function", "FunctionName", "lambda"),
    ("AWS::DynamoDB::Table", "TableName", "dynamodb"),
    ("AWS::DynamoDB::GlobalTable", "TableName", "dynamodb"),
    ("AWS::Serverless::SimpleTable", "TableName", "dynamodb"),
    ("AWS::Logs::LogGroup", "LogGroupName", "logs"),
    ("AWS::IAM::Role", "RoleName", "iam"),
    ("AWS::KMS::Alias", "AliasName", "kms"),
];

/// A resource that may be there.
pub(super) struct Resource<'s> {
    pub(super) scope: &'s Scope,
    /// With the stacks that it is nested in.
    pub(super) id: Arc<str>,
    pub(super) kind: String,
    pub(super) node: &'s Node,
    pub(super) certain: bool,
    /// Its condition, if that is not known.
    condition: Option<Arc<str>>,
}

/// All resources that may be there.
pub(super) struct Resources<'s> {
    pub(super) all: Vec<Resource<'s>>,
    /// By the property that names it and the name, as far as that is known; where several have one name, conditions leave one of them.
    names: BTreeMap<(&'static str, String), Vec<Arc<str>>>,
    kinds: BTreeMap<Arc<str>, String>,
    /// ARNs and URLs with the name of one of these, and an account and a Region that may be the stack's.
    unplaced: RefCell<BTreeMap<String, Unplaced>>,
}

/// What a text may lead to, and the options that tell whether it does.
struct Unplaced {
    id: Arc<str>,
    options: Vec<&'static str>,
}

impl<'s> Resource<'s> {
    pub(super) fn properties(&self) -> Part<'s> {
        self.part().at("Properties")
    }

    pub(super) fn part(&self) -> Part<'s> {
        Part::new(self.scope, self.node)
    }

    pub(super) fn place(&self) -> Place {
        self.place_at(self.node.line)
    }

    /// The place of something within this resource.
    pub(super) fn place_at(&self, line: usize) -> Place {
        Place {
            file: Some(Arc::clone(&self.scope.file)),
            line,
            id: Arc::clone(&self.id),
            accepted: Arc::new(self.accepted()),
            certain: self.certain,
            condition: self.condition.clone(),
        }
    }

    fn accepted(&self) -> BTreeMap<String, String> {
        let accepted = self.part().under(&["Metadata", METADATA]).entries();
        let entries = accepted.known().into_iter().flatten();
        let reason = |part: &Part<'_>| part.literal().known().cloned().flatten().filter(|text| !text.trim().is_empty());
        entries.filter_map(|(name, part)| Some((Check::named(name)?.name.to_owned(), reason(part)?))).collect()
    }

    /// Accepted findings that no check can have, or that have no reason.
    pub(super) fn wrongly_accepted(&self) -> Vec<String> {
        let given = self.part().under(&["Metadata", METADATA]);
        // A text, a list, or what a macro adds counts for nothing as a whole.
        let count = given.entries().known().map_or(usize::from(given.is_given() != Fact::Known(false)), Vec::len);
        if count == self.accepted().len() {
            return Vec::new();
        }
        vec![format!("{}:{}: {}: {}", self.scope.file, self.node.line, self.id, counts_for_nothing())]
    }
}

impl<'s> Resources<'s> {
    pub(super) fn new(scopes: &'s [Scope]) -> Self {
        let (all, names, kinds) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let mut found = Self { all, names, kinds, unplaced: RefCell::default() };
        for scope in scopes {
            for (id, node) in scope.root.get("Resources").map_or(&[][..], Node::entries) {
                let Some(kind) = node.get("Type").and_then(Node::as_text) else { continue };
                let condition = node.get("Condition").and_then(Node::as_text);
                let holds = condition.map_or(Some(true), |name| scope.condition(name, 0));
                if holds == Some(false) {
                    continue;
                }
                let id: Arc<str> = format!("{}{id}", scope.within.prefix).into();
                let certain = scope.within.certain && holds.is_some();
                let condition = condition.filter(|_| holds.is_none()).map(Arc::from);
                let resource = Resource { scope, id: Arc::clone(&id), kind: kind.to_owned(), node, certain, condition };
                found.note_name(&resource);
                found.kinds.insert(id, kind.to_owned());
                found.all.push(resource);
            }
        }
        found
    }

    fn note_name(&mut self, resource: &Resource<'_>) {
        let Some(property) = named_by(&resource.kind) else { return };
        if let Fact::Known(Some(name)) = resource.properties().at(property).text()
            && !name.contains("${?}")
        {
            self.names.entry((property, name)).or_default().push(Arc::clone(&resource.id));
        }
    }

    /// Those of one of the types.
    pub(super) fn of<'r>(&'r self, kinds: &'r [&'r str]) -> impl Iterator<Item = &'r Resource<'s>> {
        self.all.iter().filter(move |resource| kinds.contains(&resource.kind.as_str()))
    }

    pub(super) fn get(&self, id: &str) -> Option<&Resource<'s>> {
        self.all.iter().find(|resource| &*resource.id == id)
    }

    /// What a value leads to, among resources of these types; nothing if there is no value.
    pub(super) fn link(&self, part: &Part<'_>, kinds: &[&str]) -> Fact<Option<Link>> {
        match part.text() {
            Fact::Known(None) => Fact::Known(None),
            Fact::Known(Some(text)) => self.led_to(&text, kinds).map(Some),
            Fact::Unknown => Fact::Unknown,
        }
    }

    /// Whether a value is an ARN, if that is known; a reference to a queue, which is one of these types, can be its URL or its name.
    pub(super) fn is_arn(&self, part: &Part<'_>, queue: &[&str]) -> Fact<bool> {
        let Fact::Known(Some(text)) = part.text() else { return Fact::Unknown };
        let is_queue = |id: &str| self.kinds.get(id).is_some_and(|kind| queue.contains(&kind.as_str()));
        match reference(&text) {
            Some((id, attribute)) if is_queue(id) => Fact::Known(attribute == "Arn"),
            _ if text.starts_with("arn:") => Fact::Known(true),
            _ if text.starts_with("https://") => Fact::Known(false),
            _ => Fact::Unknown,
        }
    }

    /// What a value leads to that has to be a queue's name; nothing if it is a URL or an ARN, which names no queue.
    pub(super) fn queue_named(&self, part: &Part<'_>, queue: &[&str]) -> Fact<Option<Link>> {
        let Fact::Known(text) = part.text() else { return Fact::Unknown };
        let Some(text) = text.filter(|text| last_part(text) == text) else { return Fact::Known(None) };
        let is_queue = |id: &str| self.kinds.get(id).is_some_and(|kind| queue.contains(&kind.as_str()));
        match reference(&text) {
            Some((id, attribute)) if is_queue(id) && attribute != "QueueName" => Fact::Known(None),
            _ => self.led_to(&text, queue).map(Some),
        }
    }

    fn pseudo(&self, name: &str) -> Option<&String> {
        self.all.first().and_then(|one| one.scope.pseudo.get(name))
    }

    /// Notes an ARN or a URL that is not known to be of the stack's account and Region, and has the name of a resource.
    fn note_unplaced(&self, text: &str, id: &Arc<str>) {
        let (account, region, regions) = (self.pseudo(ACCOUNT), self.pseudo("Region"), regions_in(text));
        let is_of = |given: &String| text.split([':', '/', '.']).any(|part| part == given);
        let needs_region = !regions.iter().any(|one| one.is_empty() || *one == REGION);
        if !(text.starts_with("arn:") || text.starts_with("https://sqs."))
            || text.contains(HOLE)
            || !account.is_none_or(is_of)
            || needs_region && !region.is_none_or(is_of)
        {
            return;
        }
        let options = [(account.is_none(), "--account ID"), (needs_region && region.is_none(), "--region NAME")];
        let options: Vec<_> =
            options.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, option)| option).collect();
        if !options.is_empty() {
            self.unplaced.borrow_mut().insert(text.to_owned(), Unplaced { id: Arc::clone(id), options });
        }
    }

    /// What to give so that more is known, once everything is read.
    pub(super) fn unplaced(&self) -> Option<String> {
        let unplaced = self.unplaced.borrow();
        let options: BTreeSet<_> = unplaced.values().flat_map(|one| &one.options).copied().collect();
        let options = options.into_iter().collect::<Vec<_>>().join(" and ");
        let (text, Unplaced { id, .. }) = unplaced.first_key_value()?;
        let others = match unplaced.len() - 1 {
            0 => String::new(),
            others => format!(", and {others} more like it"),
        };
        let file = &self.all.first()?.scope.file;
        let text = text.replace("${@", "${AWS::");
        Some(format!("{file}: whether {text} is {id}{others}: claimant doctor takes {options}"))
    }

    /// Whether an ARN or a URL is of the stack's account, and not known to be of another Region; one that has the account written out
    /// can be of each Region, and has to be known to be of the stack's.
    fn is_own(&self, text: &str) -> bool {
        let pseudo = |name| self.pseudo(name);
        let has = |account: &String| text.split([':', '/']).any(|part| part == account);
        let own = pseudo("Region");
        let regions = regions_in(text);
        let is_here = regions.iter().any(|one| one.is_empty() || *one == own.map_or(REGION, String::as_str));
        let may_be_here = is_here || own.is_none() || regions.iter().any(|one| one.contains("${"));
        text.contains("${@AccountId}") && may_be_here || pseudo(ACCOUNT).is_some_and(has) && is_here
    }

    /// What an ARN, a URL, a name or a reference leads to.
    pub(super) fn led_to(&self, text: &str, kinds: &[&str]) -> Fact<Link> {
        let last = last_part(text);
        let can_be_it = |kind: &str| kinds.contains(&kind) && !is_of_another_service(text, kind);
        if let Some(id) = hole(last) {
            return match self.kinds.get(id) {
                Some(kind) if can_be_it(kind) => Fact::Known(Link::Here(id.to_owned())),
                _ => Fact::Unknown,
            };
        }
        // A literal Region or account can be another than the stack's.
        let may_be_here = text == last || self.is_own(text);
        let mut known = kinds.iter().filter(|kind| can_be_it(kind));
        let named = known.find_map(|kind| self.names.get(&(named_by(kind)?, last.to_owned())));
        match named.map(Vec::as_slice) {
            Some([id]) if may_be_here => Fact::Known(Link::Here(id.to_string())),
            Some([id]) => {
                self.note_unplaced(text, id);
                Fact::Unknown
            }
            Some(_) => Fact::Unknown,
            None if last.contains("${") => Fact::Unknown,
            None => Fact::Known(Link::Elsewhere(text.to_owned())),
        }
    }
}

/// The property that names what is of a type.
fn named_by(kind: &str) -> Option<&'static str> {
    NAMED.iter().find(|(named, ..)| *named == kind).map(|(_, property, _)| *property)
}

/// Whether a text is the ARN of something of another service than what is of this type, such as of a topic with the name of a queue.
fn is_of_another_service(text: &str, kind: &str) -> bool {
    let found = text.strip_prefix("arn:").and_then(|rest| rest.split(':').nth(1)).filter(|found| !found.contains("${"));
    let own = NAMED.iter().find(|(named, ..)| *named == kind);
    found.zip(own).is_some_and(|(found, (.., own))| found != *own)
}

/// The Region of an ARN, which is empty where it has none; of a URL the parts of its host, one of which it is.
fn regions_in(text: &str) -> Vec<&str> {
    match text.strip_prefix("https://").and_then(|url| url.split('/').next()) {
        Some(host) => host.split('.').collect(),
        None => text.split(':').nth(3).into_iter().collect(),
    }
}

/// The name in an ARN or a URL, or the whole text.
pub(super) fn last_part(text: &str) -> &str {
    let is_arn = text.starts_with("arn:");
    let is_url = text.starts_with("https://");
    match (is_arn, is_url) {
        (true, _) => text.rsplit([':', '/']).next().unwrap_or(text),
        (_, true) => text.rsplit('/').next().unwrap_or(text),
        _ => text,
    }
}

/// The id in a text that is one hole, such as `${Orders.Arn}`.
pub(super) fn hole(text: &str) -> Option<&str> {
    reference(text).map(|(id, _)| id)
}

/// The id and the attribute in a text that is one hole; a `Ref` has no attribute.
pub(super) fn reference(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("${")?.strip_suffix('}')?;
    if inner.contains("${") || inner.starts_with(['@', '?']) {
        return None;
    }
    Some(inner.split_once('.').unwrap_or((inner, "")))
}
