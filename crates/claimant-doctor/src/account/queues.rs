//! Queues, and the dead-letter queues that they lead to.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::answers::{Account, Asker, Refused, Service, text};
use super::names::{here, name_of, place};
use crate::environment::DEAD_LETTER_QUEUE;
use crate::fact::Fact;
use crate::model::{Key, Link, Queue, Redrive, RedriveAllow, System};
use crate::rights::QueuePolicy;

/// Adds the queues of all mappings, and their dead-letter queues; returns which were asked for. A queue's id is its ARN.
pub(super) async fn read<A: Account>(asker: &Asker<'_, A>, system: &mut System) -> BTreeSet<String> {
    let mut open: Vec<String> =
        system.mappings.iter().filter_map(|mapping| Some(mapping.queue.known()?.text().to_owned())).collect();
    // A dead-letter queue that only the function knows.
    let named = system.functions.iter().filter_map(|function| function.environment.get(DEAD_LETTER_QUEUE)?.known());
    for link in named {
        // It would be asked for here, where another one can have its name.
        match system.home.region.known().is_some_and(|region| link.text().split(':').nth(3) == Some(region)) {
            true => open.push(link.text().to_owned()),
            false => asker.note(format!("the queue {}: it is in another Region than its function", link.text())),
        }
    }
    // All others are dead-letter queues, where SQS puts messages without any role.
    let of_roles: BTreeSet<String> = open.iter().cloned().collect();
    let (mut seen, mut with_keys) = (BTreeSet::new(), BTreeSet::new());
    while let Some(arn) = open.pop() {
        if !seen.insert(arn.clone()) {
            continue;
        }
        let queue = match queue(asker, &arn).await {
            Ok(Some(queue)) => queue,
            Ok(None) => continue,
            Err(refused) if system.home.has(&arn) => {
                system.home.gone.queues.push((place(&arn), refused.may_be_hidden()));
                continue;
            }
            Err(refused) => {
                asker.note(refused.to_string());
                continue;
            }
        };
        if matches!(queue.key, Fact::Known(Some(Key::Own { .. }))) && of_roles.contains(&arn) {
            with_keys.insert(arn);
        }
        if let Some(Some(redrive)) = queue.redrive.known()
            && let Some(target) = redrive.target.known()
        {
            open.push(target.text().to_owned());
        }
        system.queues.push(queue);
    }
    if !with_keys.is_empty() {
        let queues = with_keys.into_iter().collect::<Vec<_>>().join(", ");
        asker
            .note(format!("whether roles may use the keys of {queues}: policies of keys are not asked for (check 19)"));
    }
    // What cannot be read is not described here.
    let known: BTreeSet<String> = system.queues.iter().map(|queue| queue.place.id.to_string()).collect();
    for mapping in &mut system.mappings {
        if let Fact::Known(Link::Here(arn)) = &mapping.queue
            && !known.contains(arn)
        {
            mapping.queue = Fact::Known(Link::Elsewhere(arn.clone()));
        }
    }
    seen
}

async fn queue<A: Account>(asker: &Asker<'_, A>, arn: &str) -> Result<Option<Queue>, Refused> {
    let url = url_of(asker, name_of(arn), arn.split(':').nth(4).unwrap_or_default()).await?;
    let Some(url) = url.as_ref().and_then(|url| text(url, "QueueUrl")) else { return Ok(None) };
    let input = json!({"QueueUrl": url, "AttributeNames": ["All"]});
    let answer = asker.find(Service::Sqs, "GetQueueAttributes", input).await?;
    Ok(answer.map(|answer| described(arn, &answer["Attributes"])))
}

/// Asks for the URL of a queue.
pub(super) async fn url_of<A: Account>(
    asker: &Asker<'_, A>,
    name: &str,
    account: &str,
) -> Result<Option<Value>, Refused> {
    let input = json!({"QueueName": name, "QueueOwnerAWSAccountId": account});
    asker.find(Service::Sqs, "GetQueueUrl", input).await
}

fn described(arn: &str, found: &Value) -> Queue {
    let number = |key: &str| text(found, key).and_then(|text| text.parse::<u64>().ok());
    let document = |key: &str| text(found, key).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let group = |key: &str, wanted: &str| text(found, key) == Some(wanted);
    Queue {
        place: place(arn),
        name: Fact::Known(name_of(arn).to_owned()),
        fifo: Fact::Known(text(found, "FifoQueue") == Some("true")),
        visibility_s: number("VisibilityTimeout").into(),
        retention_s: number("MessageRetentionPeriod").into(),
        redrive: Fact::Known(document("RedrivePolicy").map(|policy| redrive(&policy))),
        allows: Fact::Known(document("RedriveAllowPolicy").map_or(RedriveAllow::All, |policy| allows(&policy))),
        key: Fact::Known(text(found, "KmsMasterKeyId").filter(|key| !key.is_empty()).map(key)),
        policy: document("Policy").map_or_else(QueuePolicy::default, |document| policy(&document)),
        by_group: Fact::Known((
            group("DeduplicationScope", "messageGroup"),
            group("FifoThroughputLimit", "perMessageGroupId"),
        )),
    }
}

fn redrive(policy: &Value) -> Redrive {
    let receives = &policy["maxReceiveCount"];
    let receives = receives.as_u64().or_else(|| receives.as_str()?.parse().ok());
    let target = text(policy, "deadLetterTargetArn").map(here).into();
    Redrive { target, by_arn: Fact::Known(true), receives: receives.into() }
}

fn allows(policy: &Value) -> RedriveAllow {
    match text(policy, "redrivePermission") {
        Some("denyAll") => RedriveAllow::None,
        Some("byQueue") => {
            let queues = policy["sourceQueueArns"].as_array().into_iter().flatten();
            RedriveAllow::Only(queues.filter_map(Value::as_str).map(here).collect())
        }
        _ => RedriveAllow::All,
    }
}

fn key(id: &str) -> Key {
    if id.ends_with("alias/aws/sqs") {
        return Key::Default;
    }
    // Its policy is not asked for: it may admit the role.
    Key::Own { link: Link::Elsewhere(id.to_owned()), by_iam_only: Fact::Unknown }
}

fn policy(document: &Value) -> QueuePolicy {
    let one_or_many = |value: &Value| match value {
        Value::Array(items) => items.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    };
    let mut policy = QueuePolicy::default();
    for statement in one_or_many(&document["Statement"]) {
        if statement["Effect"] != "Allow" {
            continue;
        }
        let principals = one_or_many(&statement["Principal"]["AWS"]);
        policy.admits_principals |= !principals.is_empty() || statement["Principal"] == "*";
        let receives = one_or_many(&statement["Action"])
            .iter()
            .filter_map(Value::as_str)
            .any(|action| crate::rights::matches(&action.to_ascii_lowercase(), "sqs:receivemessage"));
        if receives {
            let accounts = principals.iter().filter_map(Value::as_str);
            let accounts = accounts.map(|principal| principal.split(':').nth(4).unwrap_or(principal));
            policy.receivers.extend(accounts.filter(|account| account.len() == 12).map(str::to_owned));
        }
    }
    policy
}
