//! What the roles of a template may do.

use std::collections::BTreeMap;

use super::events::source;
use super::part::Part;
use super::policies;
use super::queues::QUEUE;
use super::resources::{Resource, Resources, hole, reference};
use crate::fact::{self, Fact};
use crate::model::{Link, Scheduler};
use crate::rights::{Rights, Statement, Target};

pub(super) const ROLE: &[&str] = &["AWS::IAM::Role"];

/// How the services begin that act at a schedule's time, and that run functions; behind it, partitions differ.
const SCHEDULER: &str = "scheduler.";
const LAMBDA: &str = "lambda.";

/// Where the services are named that may assume a role.
const TRUST: &str = "AssumeRolePolicyDocument";

/// The policy of AWS that SAM attaches to each role that it makes of a function.
const BASIC: &str = "AWSLambdaBasicExecutionRole";

/// Policies of AWS that say nothing about queues, keys, tables or a function's logs.
const ELSEWHERE: [&str; 7] = [
    "AWSXRayDaemonWriteAccess",
    "AWSXrayWriteOnlyAccess",
    "AmazonS3ReadOnlyAccess",
    "AmazonS3FullAccess",
    "AmazonSNSFullAccess",
    "AmazonSESFullAccess",
    // Its right to write logs is to those of Lambda Insights.
    "CloudWatchLambdaInsightsExecutionRolePolicy",
];

/// Policies of AWS that do, with what they allow on everything.
const KNOWN: [(&str, &[&str]); 8] = [
    (
        "AWSLambdaSQSQueueExecutionRole",
        &["sqs:receivemessage", "sqs:deletemessage", "sqs:getqueueattributes", "logs:putlogevents"],
    ),
    (BASIC, &["logs:putlogevents"]),
    ("AWSLambdaVPCAccessExecutionRole", &["logs:putlogevents"]),
    ("AmazonSQSFullAccess", &["sqs:*"]),
    ("AmazonSQSReadOnlyAccess", &["sqs:getqueueattributes"]),
    ("AmazonDynamoDBFullAccess", &["dynamodb:*", "lambda:listeventsourcemappings"]),
    ("AdministratorAccess", &["*"]),
    ("PowerUserAccess", &["sqs:*", "kms:*", "dynamodb:*", "lambda:*", "scheduler:*", "logs:*"]),
];

/// SAM's policy templates about queues, keys and tables: what they allow, and the parameter that names on what.
const SAM: [(&str, &str, &[&str]); 9] = [
    (
        "SQSPollerPolicy",
        "QueueName",
        &["sqs:changemessagevisibility", "sqs:deletemessage", "sqs:getqueueattributes", "sqs:receivemessage"],
    ),
    ("SQSSendMessagePolicy", "QueueName", &["sqs:sendmessage"]),
    ("KMSDecryptPolicy", "KeyId", &["kms:decrypt"]),
    ("KMSEncryptPolicy", "KeyId", &["kms:encrypt"]),
    ("KMSEncryptPolicy_v2", "KeyId", &["kms:encrypt", "kms:generatedatakey"]),
    (
        "DynamoDBCrudPolicy",
        "TableName",
        &[
            "dynamodb:getitem",
            "dynamodb:deleteitem",
            "dynamodb:putitem",
            "dynamodb:scan",
            "dynamodb:query",
            "dynamodb:updateitem",
            "dynamodb:batchwriteitem",
            "dynamodb:batchgetitem",
            "dynamodb:describetable",
            "dynamodb:conditioncheckitem",
        ],
    ),
    ("DynamoDBReadPolicy", "TableName", &["dynamodb:getitem", "dynamodb:batchgetitem"]),
    ("DynamoDBWritePolicy", "TableName", &["dynamodb:putitem", "dynamodb:updateitem"]),
    ("DynamoDBReconfigurePolicy", "TableName", &["dynamodb:updatetable"]),
];

/// What a template says of its roles.
pub(super) struct Roles<'r, 's> {
    resources: &'r Resources<'s>,
    /// By role: what is attached to it from outside.
    attached: BTreeMap<String, Vec<Statement>>,
    /// What may be attached to any role, since the one that it is attached to is not known.
    anywhere: Vec<Statement>,
}

impl<'r, 's> Roles<'r, 's> {
    /// What is not read, where that is not all, can attach something to any role.
    pub(super) fn new(resources: &'r Resources<'s>, is_whole: bool) -> Self {
        let mut roles = Self { resources, attached: BTreeMap::new(), anywhere: Vec::new() };
        for policy in resources.of(&["AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"]) {
            roles.attach(policy);
        }
        // Connectors of SAM add rights of their own.
        let connects = |resource: &Resource<'_>| {
            resource.kind == "AWS::Serverless::Connector" || resource.node.get("Connectors").is_some()
        };
        if !is_whole || resources.all.iter().any(connects) {
            roles.anywhere.push(Statement::unreadable());
        }
        roles
    }

    fn attach(&mut self, policy: &Resource<'s>) {
        let properties = policy.properties();
        let roles = match policy.kind.as_str() {
            "AWS::IAM::RolePolicy" => properties.at("RoleName"),
            _ => properties.at("Roles"),
        };
        let statements = policies::statements(self.resources, &properties.at("PolicyDocument").unpacked());
        // What is not certain to be there is not known to allow anything.
        let there = |certain: bool| {
            statements.iter().cloned().map(move |one| Statement { certain: certain && one.certain, ..one })
        };
        for part in items(&roles) {
            match self.resources.link(&part, ROLE) {
                Fact::Known(Some(link)) => {
                    let role = self.resources.get(link.text());
                    let certain = role.is_some_and(|role| policy.place().is_there_with(&role.place()));
                    self.attached.entry(link.text().to_owned()).or_default().extend(there(certain));
                }
                // A role that SAM makes, or one from elsewhere.
                _ => self.anywhere.extend(there(false)),
            }
        }
    }

    /// What a function may do that has these properties.
    pub(super) fn of(&self, function: &Resource<'s>, properties: &Part<'s>) -> Rights {
        let role = properties.at("Role");
        if is_made_by_sam(function, &role) {
            return self.made_by_sam(function, properties);
        }
        self.role(&role).map_or(Rights::Unknown, |role| self.of_role(role))
    }

    /// Whether Lambda may assume the role of a function that has these properties.
    pub(super) fn are_assumable(&self, function: &Resource<'s>, properties: &Part<'s>) -> Fact<bool> {
        let role = properties.at("Role");
        let (trust, is_made) = match self.role(&role) {
            Some(role) => (role.properties().at(TRUST), false),
            None if is_made_by_sam(function, &role) => (properties.at(TRUST), true),
            None => return Fact::Unknown,
        };
        match trust.is_given() {
            // As SAM makes it; CloudFormation makes no role without.
            Fact::Known(false) => is_made.then_some(true).into(),
            _ => policies::trusts(&trust.unpacked(), LAMBDA),
        }
    }

    /// A role that a variable names, if it is described here.
    pub(super) fn scheduler(&self, role: &Part<'s>) -> Option<Scheduler> {
        let role = self.role(role)?;
        let is_trusting = policies::trusts(&role.properties().at(TRUST).unpacked(), SCHEDULER);
        Some(Scheduler { place: role.place(), is_trusting, rights: self.of_role(role) })
    }

    fn role(&self, role: &Part<'s>) -> Option<&Resource<'s>> {
        let Fact::Known(Some(link)) = self.resources.link(role, ROLE) else { return None };
        self.resources.get(link.text())
    }

    fn of_role(&self, role: &Resource<'s>) -> Rights {
        let properties = role.properties();
        let mut statements = self.whatever_else(&properties);
        statements.extend(of_each(&properties.at("Policies"), |policy| {
            policies::statements(self.resources, &policy.at("PolicyDocument").unpacked())
        }));
        statements.extend(of_each(&properties.at("ManagedPolicyArns"), |policy| self.managed(policy)));
        statements.extend(self.attached.get(&*role.id).into_iter().flatten().cloned());
        Rights::Stated(statements)
    }

    /// What may be attached to the role that is not known here, and what a permissions boundary may take away, of a role with these
    /// properties, or of a function that SAM makes one for.
    fn whatever_else(&self, properties: &Part<'_>) -> Vec<Statement> {
        let bounded = properties.at("PermissionsBoundary").is_given() != Fact::Known(false);
        self.anywhere.iter().cloned().chain(bounded.then(Statement::denying)).collect()
    }

    fn made_by_sam(&self, function: &Resource<'s>, properties: &Part<'s>) -> Rights {
        let mut statements = self.whatever_else(properties);
        statements.extend(of_aws(BASIC));
        // SAM attaches it to the role of a function with an event that reads a queue.
        let events = function.properties().at("Events").entries().map(|events| {
            let each = events.iter().map(|(_, event)| source(event).known().map(Option::is_none));
            fact::all(each).map(|none| !none)
        });
        match events.known().copied().flatten() {
            Some(true) => statements.extend(of_aws(KNOWN[0].0)),
            Some(false) => {}
            None => statements.push(Statement::unreadable()),
        }
        // What it gives a role for asynchronous invocations.
        let destination = |when| properties.under(&["EventInvokeConfig", "DestinationConfig", when]);
        let sends = [
            (properties.at("DeadLetterQueue"), "TargetArn"),
            (destination("OnSuccess"), "Destination"),
            (destination("OnFailure"), "Destination"),
        ];
        for (part, arn) in sends {
            match part.at("Type").text_is("SQS", "") {
                Fact::Known(true) => statements.push(self.may_send(&part.at(arn))),
                Fact::Known(false) => {}
                Fact::Unknown => statements.push(Statement::unreadable()),
            }
        }
        statements.extend(of_each(&properties.at("Policies"), |policy| self.of_sam(policy)));
        Rights::Stated(statements)
    }

    fn may_send(&self, queue: &Part<'s>) -> Statement {
        let target = match self.resources.link(queue, QUEUE) {
            Fact::Known(Some(Link::Here(id))) => Target::Here(id),
            _ => Target::Other,
        };
        Statement::allowing(&["sqs:sendmessage"], Some(target))
    }

    /// What an entry of SAM's `Policies` allows: a name, a policy template or a document.
    fn of_sam(&self, policy: &Part<'s>) -> Vec<Statement> {
        if policy.text().known().is_some() {
            return self.managed(policy);
        }
        if policy.at("Statement").is_given() != Fact::Known(false) {
            return policies::statements(self.resources, policy);
        }
        self.of_template(policy).unwrap_or_else(|| vec![Statement::unreadable()])
    }

    /// What a policy template of SAM allows, if it is known.
    fn of_template(&self, policy: &Part<'s>) -> Option<Vec<Statement>> {
        let entries = policy.entries();
        let [(name, parameters)] = entries.known()?.as_slice() else { return None };
        match SAM.iter().find(|(known, ..)| *known == &**name) {
            Some((_, parameter, actions)) => {
                let target = parameters.at(parameter).text().known().cloned().flatten()?;
                let target = match reference(&target) {
                    Some((id, attribute)) if self.resources.get(id).is_some() => {
                        // The policy puts it into an ARN, as a name: the URL that a queue's `Ref` is makes none.
                        let names = attribute == *parameter || (attribute.is_empty() && *parameter != "QueueName");
                        names.then(|| Target::Here(id.to_owned()))
                    }
                    _ if target == "*" => Some(Target::Any),
                    _ => Some(Target::Other),
                };
                Some(vec![Statement::allowing(actions, target)])
            }
            // The others are about other services.
            None if name.ends_with("Policy")
                && !["SQS", "KMS", "DynamoDB"].iter().any(|known| name.starts_with(known)) =>
            {
                Some(Vec::new())
            }
            None => None,
        }
    }

    fn managed(&self, policy: &Part<'_>) -> Vec<Statement> {
        let Some(text) = policy.text().known().cloned().flatten() else { return vec![Statement::unreadable()] };
        match hole(&text).map(|id| self.resources.get(id).filter(|policy| policy.kind == "AWS::IAM::ManagedPolicy")) {
            Some(Some(policy)) => {
                policies::statements(self.resources, &policy.properties().at("PolicyDocument").unpacked())
            }
            Some(None) => vec![Statement::unreadable()],
            None => of_aws(text.rsplit('/').next().unwrap_or_default()),
        }
    }
}

/// Whether SAM makes the role of a function that has this one.
fn is_made_by_sam(function: &Resource<'_>, role: &Part<'_>) -> bool {
    role.is_given() == Fact::Known(false) && function.kind == "AWS::Serverless::Function"
}

/// What each item of a list allows and denies.
fn of_each<'s>(list: &Part<'s>, of: impl Fn(&Part<'s>) -> Vec<Statement>) -> Vec<Statement> {
    items(list).iter().flat_map(of).collect()
}

/// The items of a list; one that is not known where the list is not.
fn items<'s>(list: &Part<'s>) -> Vec<Part<'s>> {
    match list.items() {
        Fact::Known(items) => items,
        Fact::Unknown => vec![list.clone()],
    }
}

/// What a managed policy of AWS allows. One that is not known here denies nothing.
fn of_aws(name: &str) -> Vec<Statement> {
    if ELSEWHERE.contains(&name) {
        return Vec::new();
    }
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    vec![known.map_or_else(Statement::unreadable, |(_, actions)| Statement::allowing(actions, Some(Target::Any)))]
}
