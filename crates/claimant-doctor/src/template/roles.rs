//! What the roles of a template may do.

use std::collections::BTreeMap;

use super::part::Part;
use super::policies;
use super::queues::QUEUE;
use super::resources::{Resource, Resources, hole, reference};
use crate::fact::Fact;
use crate::model::Link;
use crate::rights::{Rights, Statement, Target};

/// Policies of AWS that say nothing about queues, keys or tables.
const ELSEWHERE: [&str; 9] = [
    "AWSLambdaBasicExecutionRole",
    "AWSLambdaVPCAccessExecutionRole",
    "AWSXRayDaemonWriteAccess",
    "AWSXrayWriteOnlyAccess",
    "CloudWatchLambdaInsightsExecutionRolePolicy",
    "AmazonS3ReadOnlyAccess",
    "AmazonS3FullAccess",
    "AmazonSNSFullAccess",
    "AmazonSESFullAccess",
];

/// Policies of AWS that do, with what they allow on everything.
const KNOWN: [(&str, &[&str]); 6] = [
    ("AWSLambdaSQSQueueExecutionRole", &["sqs:receivemessage", "sqs:deletemessage", "sqs:getqueueattributes"]),
    ("AmazonSQSFullAccess", &["sqs:*"]),
    ("AmazonSQSReadOnlyAccess", &["sqs:getqueueattributes"]),
    ("AmazonDynamoDBFullAccess", &["dynamodb:*", "lambda:listeventsourcemappings"]),
    ("AdministratorAccess", &["*"]),
    ("PowerUserAccess", &["sqs:*", "kms:*", "dynamodb:*", "lambda:*", "scheduler:*"]),
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
    /// By role: what is attached to it from outside. Nothing for a role where something cannot be read.
    attached: BTreeMap<String, Option<Vec<Statement>>>,
    /// Whether something is attached to a role that is not known.
    any: bool,
}

impl<'r, 's> Roles<'r, 's> {
    /// What is not read, where that is not all, can attach something to any role.
    pub(super) fn new(resources: &'r Resources<'s>, is_whole: bool) -> Self {
        let mut roles = Self { resources, attached: BTreeMap::new(), any: !is_whole };
        for policy in resources.of(&["AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"]) {
            roles.attach(policy);
        }
        // Connectors of SAM add rights of their own.
        roles.any |= resources
            .all
            .iter()
            .any(|resource| resource.kind == "AWS::Serverless::Connector" || resource.node.get("Connectors").is_some());
        roles
    }

    fn attach(&mut self, policy: &Resource<'s>) {
        let properties = policy.properties();
        let parts = match policy.kind.as_str() {
            "AWS::IAM::RolePolicy" => Fact::Known(vec![properties.at("RoleName")]),
            _ => properties.at("Roles").items(),
        };
        let Fact::Known(parts) = parts else {
            self.any = true;
            return;
        };
        for part in parts {
            match self.resources.link(&part, &["AWS::IAM::Role"]) {
                Fact::Known(Some(link)) => {
                    let role = self.resources.get(link.text());
                    // What is not certain to be there is not known to allow anything.
                    let certain = role.is_some_and(|role| policy.is_there_with(role));
                    let document = properties.at("PolicyDocument").unpacked();
                    let statements = policies::statements(self.resources, &document);
                    let known = self.attached.entry(link.text().to_owned()).or_insert_with(|| Some(Vec::new()));
                    match (known, statements) {
                        (Some(known), Some(statements)) => {
                            let may_be_there = |one: Statement| Statement { certain: certain && one.certain, ..one };
                            known.extend(statements.into_iter().map(may_be_there));
                        }
                        (known, _) => *known = None,
                    }
                }
                // A role that SAM makes, or one from elsewhere.
                _ => self.any = true,
            }
        }
    }

    /// What a function may do that has these properties.
    pub(super) fn of(&self, function: &Resource<'s>, properties: &Part<'s>) -> Rights {
        let role = properties.at("Role");
        if role.is_given() == Fact::Known(false) && function.kind == "AWS::Serverless::Function" {
            return self.made_by_sam(function, properties);
        }
        match self.resources.link(&role, &["AWS::IAM::Role"]) {
            Fact::Known(Some(link)) => match self.resources.get(link.text()) {
                Some(role) => self.of_role(role),
                None => Rights::Unknown,
            },
            _ => Rights::Unknown,
        }
    }

    fn of_role(&self, role: &Resource<'s>) -> Rights {
        let properties = role.properties();
        let mut gathered = Gathered::new(!self.any, &properties);
        let (inline, managed) = (properties.at("Policies").items(), properties.at("ManagedPolicyArns").items());
        match inline {
            Fact::Known(inline) => {
                for policy in inline {
                    gathered.add(policies::statements(self.resources, &policy.at("PolicyDocument").unpacked()));
                }
            }
            Fact::Unknown => gathered.complete = false,
        }
        match managed {
            Fact::Known(managed) => managed.iter().for_each(|policy| gathered.add(self.managed(policy))),
            Fact::Unknown => gathered.complete = false,
        }
        if let Some(attached) = self.attached.get(&*role.id) {
            gathered.add(attached.clone());
        }
        gathered.rights()
    }

    fn made_by_sam(&self, function: &Resource<'s>, properties: &Part<'s>) -> Rights {
        let mut gathered = Gathered::new(!self.any, properties);
        // SAM attaches it to the role of a function with an SQS event.
        let events = function.properties().at("Events").entries();
        let is_sqs = |part: &Part<'_>| part.at("Type").literal() == Fact::Known(Some("SQS".to_owned()));
        match events {
            Fact::Known(events) if events.iter().any(|(_, event)| is_sqs(event)) => gathered.add(of_aws(KNOWN[0].0)),
            Fact::Known(_) => {}
            Fact::Unknown => gathered.complete = false,
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
                Fact::Known(true) => gathered.allowed.push(self.may_send(&part.at(arn))),
                Fact::Known(false) => {}
                Fact::Unknown => gathered.complete = false,
            }
        }
        match properties.at("Policies").items() {
            Fact::Known(policies) => policies.iter().for_each(|policy| gathered.add(self.of_sam(policy))),
            Fact::Unknown => gathered.complete = false,
        }
        gathered.rights()
    }

    fn may_send(&self, queue: &Part<'s>) -> Statement {
        let target = match self.resources.link(queue, QUEUE) {
            Fact::Known(Some(Link::Here(id))) => Target::Here(id),
            _ => Target::Other,
        };
        Statement {
            actions: vec!["sqs:sendmessage".to_owned()],
            targets: vec![target],
            keys: Vec::new(),
            certain: true,
        }
    }

    /// What an entry of SAM's `Policies` allows: a name, a policy template or a document.
    fn of_sam(&self, policy: &Part<'s>) -> Option<Vec<Statement>> {
        if policy.text().known().is_some() {
            return self.managed(policy);
        }
        if policy.at("Statement").is_given() != Fact::Known(false) {
            return policies::statements(self.resources, policy);
        }
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
                let actions = actions.iter().map(|action| (*action).to_owned()).collect();
                Some(vec![Statement {
                    actions,
                    targets: target.into_iter().collect(),
                    keys: Vec::new(),
                    certain: true,
                }])
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

    fn managed(&self, policy: &Part<'_>) -> Option<Vec<Statement>> {
        let text = policy.text().known()?.clone()?;
        if let Some(id) = hole(&text) {
            let policy = self.resources.get(id).filter(|policy| policy.kind == "AWS::IAM::ManagedPolicy")?;
            return policies::statements(self.resources, &policy.properties().at("PolicyDocument").unpacked());
        }
        of_aws(text.rsplit('/').next()?)
    }
}

/// What a managed policy of AWS allows, if it is known.
fn of_aws(name: &str) -> Option<Vec<Statement>> {
    if ELSEWHERE.contains(&name) {
        return Some(Vec::new());
    }
    let (_, actions) = KNOWN.iter().find(|(known, _)| *known == name)?;
    let actions = actions.iter().map(|action| (*action).to_owned()).collect();
    Some(vec![Statement { actions, targets: vec![Target::Any], keys: Vec::new(), certain: true }])
}

/// Statements that are gathered from several policies.
struct Gathered {
    allowed: Vec<Statement>,
    complete: bool,
    bounded: bool,
}

impl Gathered {
    /// None yet, for a role with these properties, or of a function that SAM makes one for.
    fn new(complete: bool, properties: &Part<'_>) -> Self {
        let bounded = properties.at("PermissionsBoundary").is_given() != Fact::Known(false);
        Self { allowed: Vec::new(), complete, bounded }
    }

    fn add(&mut self, statements: Option<Vec<Statement>>) {
        match statements {
            Some(statements) => self.allowed.extend(statements),
            None => self.complete = false,
        }
    }

    fn rights(self) -> Rights {
        let Self { allowed, complete, bounded } = self;
        Rights::Stated { allowed, complete, bounded }
    }
}
