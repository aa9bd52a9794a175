//! Policy documents: what they allow, and to whom.

use super::part::Part;
use super::resources::{Resources, hole};
use crate::fact::Fact;
use crate::rights::{QueuePolicy, Statement, Target, matches};

/// What a role's policy allows; nothing if it cannot be read whole, or denies something.
pub(super) fn statements(resources: &Resources<'_>, document: &Part<'_>) -> Option<Vec<Statement>> {
    document.at("Statement").items().known()?.iter().map(|part| statement(resources, part)).collect()
}

fn statement(resources: &Resources<'_>, part: &Part<'_>) -> Option<Statement> {
    let has = |key| part.at(key).is_given() != Fact::Known(false);
    if has("NotAction") || has("NotResource") || part.at("Effect").literal() != Fact::Known(Some("Allow".to_owned())) {
        return None;
    }
    let actions = texts(&part.at("Action"))?;
    if actions.iter().any(|action| action.contains("${")) {
        return None;
    }
    let targets = part.at("Resource").items();
    let targets = targets.known()?.iter().map(|target| self::target(resources, target)).collect();
    let actions = actions.iter().map(|action| action.to_ascii_lowercase()).collect();
    Some(Statement { actions, targets, keys: leading_keys(&part.at("Condition")), certain: true })
}

/// The keys that a statement is kept to; none where it is not, or where they cannot be read.
fn leading_keys(condition: &Part<'_>) -> Vec<String> {
    let Fact::Known(operators) = condition.entries() else { return Vec::new() };
    let compares = |name: &str| name.contains("String") && !name.contains("Not");
    let keys = operators.iter().filter(|(name, _)| compares(name)).map(|(_, of)| texts(&of.at("dynamodb:LeadingKeys")));
    let keys: Vec<_> = keys.flatten().flatten().collect();
    if keys.iter().any(|key| key.contains("${")) { Vec::new() } else { keys }
}

fn texts(part: &Part<'_>) -> Option<Vec<String>> {
    part.items().known()?.iter().map(|item| item.text().known().cloned().flatten()).collect()
}

fn target(resources: &Resources<'_>, part: &Part<'_>) -> Target {
    let Fact::Known(Some(text)) = part.text() else { return Target::Other };
    if text == "*" {
        return Target::Any;
    }
    // The resource of a queue, a table, a key; what is within it, such as an index, is another one.
    match hole(&text) {
        Some(id) if resources.get(id).is_some() => Target::Here(id.to_owned()),
        _ => Target::Other,
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

/// The account that a principal names by its number.
fn account(principal: &Part<'_>) -> Option<String> {
    let text = principal.literal().known()?.clone()?;
    let account = if text.starts_with("arn:") { text.split(':').nth(4)?.to_owned() } else { text };
    (account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit())).then_some(account)
}

/// Whether a key's policy grants only to the account itself, so that policies of IAM decide.
pub(super) fn is_left_to_iam(policy: &Part<'_>) -> Fact<bool> {
    // The default of a key without a policy.
    if policy.is_given() == Fact::Known(false) {
        return Fact::Known(true);
    }
    let statements = policy.at("Statement").items();
    let Fact::Known(statements) = statements else { return Fact::Unknown };
    let (mut all, mut any) = (true, false);
    for statement in &statements {
        let principal = statement.at("Principal");
        let Fact::Known(entries) = principal.entries() else { return Fact::Unknown };
        for (kind, who) in entries {
            let Some(who) = texts(&who) else { return Fact::Unknown };
            // Services other than Lambda's poller, which uses the function's role, do not matter here.
            let is_account = who.iter().all(|one| one.ends_with(":root"));
            all &= &*kind == "Service" || is_account;
            any |= &*kind == "AWS" && is_account;
        }
    }
    if all && any { Fact::Known(true) } else { Fact::Unknown }
}
