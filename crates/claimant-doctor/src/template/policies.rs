//! Policy documents: what they allow, and to whom.

use super::part::Part;
use super::resources::{Resources, reference};
use crate::fact::Fact;
use crate::rights::{LEADING_KEYS, QueuePolicy, Statement, Target, decided, matches};

/// What is done with the key of a queue or a table.
const USES: [&str; 2] = ["kms:decrypt", "kms:generatedatakey"];

/// What has rights here: its `Arn` is the resource of a policy, and nothing else of it is.
const HERE: [&str; 6] = [
    "AWS::IAM::Role",
    "AWS::SQS::Queue",
    "AWS::DynamoDB::Table",
    "AWS::DynamoDB::GlobalTable",
    "AWS::Serverless::SimpleTable",
    "AWS::KMS::Key",
];

/// What a role's policy allows and denies; one that cannot be read may do either with anything.
pub(super) fn statements(resources: &Resources<'_>, document: &Part<'_>) -> Vec<Statement> {
    match document.at("Statement").items() {
        Fact::Known(parts) => parts.iter().flat_map(|part| effects(resources, part)).collect(),
        Fact::Unknown => vec![Statement::unreadable(), Statement::denying()],
    }
}

/// What a statement allows or denies; both where its effect is not known.
fn effects(resources: &Resources<'_>, part: &Part<'_>) -> Vec<Statement> {
    let read = || statement(resources, part);
    let denying = || read().map_or_else(Statement::denying, |read| Statement { denies: true, ..read });
    match part.at("Effect").literal().known().and_then(Option::as_deref) {
        Some("Allow") => vec![read().unwrap_or_else(Statement::unreadable)],
        Some("Deny") => vec![denying()],
        _ => vec![Statement::unreadable(), denying()],
    }
}

/// What a statement is about; nothing if it cannot be read.
fn statement(resources: &Resources<'_>, part: &Part<'_>) -> Option<Statement> {
    let has = |key| part.at(key).is_given() != Fact::Known(false);
    if has("NotAction") || has("NotResource") {
        return None;
    }
    let actions = texts(&part.at("Action"))?;
    if actions.iter().any(|action| action.contains("${")) {
        return None;
    }
    let targets = part.at("Resource").items();
    let targets = targets.known()?.iter().filter_map(|target| self::target(resources, target)).collect();
    let actions = actions.iter().map(|action| action.to_ascii_lowercase()).collect();
    let condition = part.at("Condition");
    Some(Statement { denies: false, actions, targets, keys: leading_keys(&condition), certain: holds(&condition) })
}

/// Whether a condition is known to hold for what Lambda and claimant do: it is about nothing but what policies for them are kept to.
fn holds(condition: &Part<'_>) -> bool {
    const FOR_THEM: [&str; 5] =
        [LEADING_KEYS, "lambda:FunctionArn", "iam:PassedToService", "aws:ResourceAccount", "aws:SecureTransport"];
    let is_for_them = |key: &str| FOR_THEM.iter().any(|one| one.eq_ignore_ascii_case(key));
    let all_are = |of: &Part<'_>| of.entries().known().is_some_and(|keys| keys.iter().all(|(key, _)| is_for_them(key)));
    condition.entries().known().is_some_and(|operators| operators.iter().all(|(_, of)| all_are(of)))
}

/// The keys that a statement is kept to; none where it is not, or where they cannot be read.
fn leading_keys(condition: &Part<'_>) -> Vec<String> {
    let Fact::Known(operators) = condition.entries() else { return Vec::new() };
    let compares = |name: &str| name.contains("String") && !name.contains("Not");
    let keys = operators.iter().filter(|(name, _)| compares(name)).map(|(_, of)| texts(&of.at(LEADING_KEYS)));
    let keys: Vec<_> = keys.flatten().flatten().collect();
    if keys.iter().any(|key| key.contains("${")) { Vec::new() } else { keys }
}

fn texts(part: &Part<'_>) -> Option<Vec<String>> {
    part.items().known()?.iter().map(|item| item.text().known().cloned().flatten()).collect()
}

/// What a statement is about; nothing if it can be nothing that has rights.
fn target(resources: &Resources<'_>, part: &Part<'_>) -> Option<Target> {
    let Fact::Known(Some(text)) = part.text() else { return Some(Target::Other) };
    if text == "*" {
        return Some(Target::Any);
    }
    let is_here = |id: &str| resources.get(id).is_some_and(|resource| HERE.contains(&resource.kind.as_str()));
    match reference(&text) {
        // IAM takes no name, URL or id; and a stream is not its table.
        Some((id, attribute)) if is_here(id) => (attribute == "Arn").then(|| Target::Here(id.to_owned())),
        // An output of a nested stack or a custom resource can be any ARN.
        _ => Some(Target::Named(text)),
    }
}

/// What a queue's own policy lets in. What cannot be read counts as principals that are let in.
pub(super) fn of_queue(document: &Part<'_>) -> QueuePolicy {
    let Fact::Known(statements) = document.at("Statement").items() else {
        return QueuePolicy { admits_principals: true, ..QueuePolicy::default() };
    };
    let mut policy = QueuePolicy::default();
    for statement in statements {
        if statement.at("Effect").literal() == Fact::Known(Some("Deny".to_owned())) {
            continue;
        }
        let principals = statement.at("Principal").at("AWS").items();
        let services = statement.at("Principal").at("Service").is_given() == Fact::Known(true);
        let only_services = services && principals.known().is_some_and(Vec::is_empty);
        policy.admits_principals |= !only_services;
        let receives = texts(&statement.at("Action")).is_some_and(|actions| {
            actions.iter().any(|action| matches(&action.to_ascii_lowercase(), "sqs:receivemessage"))
        });
        if receives {
            policy.receivers.extend(principals.known().into_iter().flatten().filter_map(account));
        }
    }
    policy
}

/// Whether a role may be assumed by a service whose name begins so. A condition is taken to hold: it keeps the service to an account.
pub(super) fn trusts(document: &Part<'_>, service: &str) -> Fact<bool> {
    let Fact::Known(statements) = document.at("Statement").items() else { return Fact::Unknown };
    let about_it = |statement: &Part<'_>| {
        let (effect, principal) = (statement.at("Effect").literal(), statement.at("Principal"));
        let read = texts(&statement.at("Action")).zip(texts(&principal.at("Service")));
        let (Fact::Known(Some(effect)), Some((actions, services))) = (effect, read) else {
            return Some((false, false));
        };
        let assumes = actions.iter().any(|action| matches(&action.to_ascii_lowercase(), "sts:assumerole"));
        let is_it = services.iter().any(|one| one.starts_with(service));
        // `*` instead of principals is whoever it is, and so is `AWS: '*'`.
        let is_anybody = texts(&principal.at("AWS")).is_some_and(|all| all.iter().any(|one| one == "*"));
        let is_open = is_anybody || principal.is_map() != Fact::Known(true);
        let may_be_it = is_open || services.iter().any(|one| one.starts_with("${"));
        (assumes && (is_it || may_be_it)).then_some((effect != "Allow", is_it))
    };
    decided(statements.iter().filter_map(about_it))
}

/// The account that a principal names by its number.
fn account(principal: &Part<'_>) -> Option<String> {
    let text = principal.literal().known()?.clone()?;
    let account = if text.starts_with("arn:") { text.split(':').nth(4)?.to_owned() } else { text };
    (account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit())).then_some(account)
}

/// Whether a key's policy grants only to the account itself, and the use of the key, so that policies of IAM decide.
pub(super) fn is_left_to_iam(policy: &Part<'_>) -> Fact<bool> {
    // The default of a key without a policy.
    if policy.is_given() == Fact::Known(false) {
        return Fact::Known(true);
    }
    let statements = policy.at("Statement").items();
    let Fact::Known(statements) = statements else { return Fact::Unknown };
    let (mut all, mut any) = (true, false);
    for statement in &statements {
        let Fact::Known(entries) = statement.at("Principal").entries() else { return Fact::Unknown };
        if entries.is_empty() || statement.at("Effect").literal() != Fact::Known(Some("Allow".to_owned())) {
            return Fact::Unknown;
        }
        let actions: Vec<_> = texts(&statement.at("Action")).into_iter().flatten().collect();
        let has = |used: &&str| actions.iter().any(|action| matches(&action.to_ascii_lowercase(), used));
        // What the account is not granted, its policies cannot grant.
        let is_of_use = USES.iter().all(has) && holds(&statement.at("Condition"));
        for (kind, who) in entries {
            let Some(who) = texts(&who) else { return Fact::Unknown };
            // Services other than Lambda's poller, which uses the function's role, do not matter here.
            let is_account = who.iter().all(|one| one.ends_with(":root"));
            all &= &*kind == "Service" || is_account;
            any |= &*kind == "AWS" && is_account && is_of_use;
        }
    }
    if all && any { Fact::Known(true) } else { Fact::Unknown }
}
