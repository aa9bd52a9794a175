//! A deployed stack: its functions, by the tag that CloudFormation gives them, and the queues and tables that they use.

use std::collections::BTreeMap;

use aws_sdk_lambda::types::FunctionConfiguration;
use aws_sdk_sqs::types::QueueAttributeName;
use claimant_core::Error;
use futures_util::future::try_join_all;
use serde_json::Value;

use crate::aws::failed;
use crate::place::{Account, Function, Place, Queue, StoreAddress};

/// The tag of everything that CloudFormation makes.
const STACK_TAG: &str = "aws:cloudformation:stack-name";
/// The tag with the resource's name in the template.
const LOGICAL_ID_TAG: &str = "aws:cloudformation:logical-id";
/// The variable by which a function of ours knows its table.
const TABLE_VARIABLE: &str = "CLAIMANT_TABLE";
/// The variable with the tables that had its records before.
const BEFORE_VARIABLE: &str = "CLAIMANT_TABLE_BEFORE";
/// Functions of an account that are looked at.
const FUNCTIONS_MAX: usize = 5_000;
/// Functions whose tags are asked for at once.
const REQUESTS: usize = 8;

/// Returns what the functions of a stack use. Nested stacks have names of their own.
///
/// # Errors
/// When there is no function of such a stack, a permission is missing, or no answer comes.
pub(crate) async fn open(stack: &str, account: &Account) -> Result<Place, Error> {
    let mut place = Place::in_account(format!("the stack {stack}"), account).await;
    let lambda = aws_sdk_lambda::Client::new(place.aws());
    let sqs = place.sqs();
    let mut queues = BTreeMap::new();
    for (function, logical_id) in functions_of(&lambda, stack).await? {
        let name = function.function_name().unwrap_or_default().to_owned();
        let variables = function.environment().and_then(|environment| environment.variables());
        let named = |variable| variables.and_then(|variables| variables.get(variable)).cloned();
        let (table, table_before) = (named(TABLE_VARIABLE), named(BEFORE_VARIABLE));
        let mut reads = Vec::new();
        for arn in sources(&lambda, &name).await? {
            let queue = queue(&sqs, &arn).await?;
            reads.push(queue.name.clone());
            if let Some(arn) = dead_letter_arn(&sqs, &queue).await? {
                let dead = self::queue(&sqs, &arn).await?;
                queues.insert(queue.url.clone(), Queue { dead_letter_queue: Some(dead.name.clone()), ..queue });
                queues.entry(dead.url.clone()).or_insert(dead);
            } else {
                queues.entry(queue.url.clone()).or_insert(queue);
            }
        }
        let group = function.logging_config().and_then(|logging| logging.log_group()).map(str::to_owned);
        let log_group = Some(group.unwrap_or_else(|| format!("/aws/lambda/{name}")));
        place.functions.push(Function { name, logical_id, queues: reads, table, table_before, log_group });
    }
    place.stores = Place::lock_tables(&place.functions).into_iter().map(StoreAddress::Table).collect();
    place.queues = queues.into_values().collect();
    if place.functions.is_empty() {
        return Err(Error::invalid(format!(
            "no function here belongs to the stack {stack}. Are the stack's name, the account and the Region right?"
        )));
    }
    Ok(place)
}

/// The functions of the stack, each with its name in the template.
async fn functions_of(
    lambda: &aws_sdk_lambda::Client,
    stack: &str,
) -> Result<Vec<(FunctionConfiguration, String)>, Error> {
    let (mut all, mut marker) = (Vec::new(), None);
    loop {
        let page = lambda.list_functions().set_marker(marker).send().await;
        let page = page.map_err(|e| failed("the functions cannot be listed", "lambda:ListFunctions", &e))?;
        all.extend(page.functions.unwrap_or_default());
        marker = page.next_marker.filter(|marker| !marker.is_empty());
        if marker.is_none() || all.len() >= FUNCTIONS_MAX {
            break;
        }
    }
    let mut own = Vec::new();
    for some in all.chunks(REQUESTS) {
        let tags = some.iter().map(async |function| {
            let arn = function.function_arn().unwrap_or_default();
            let answer = lambda.list_tags().resource(arn).send().await;
            let tags = answer.map_err(|e| failed("the tags of functions cannot be read", "lambda:ListTags", &e))?;
            Ok::<_, Error>(tags.tags.unwrap_or_default())
        });
        for (function, tags) in some.iter().zip(try_join_all(tags).await?) {
            if tags.get(STACK_TAG).is_some_and(|name| name == stack) {
                let named = || function.function_name().unwrap_or_default().to_owned();
                own.push((function.clone(), tags.get(LOGICAL_ID_TAG).cloned().unwrap_or_else(named)));
            }
        }
    }
    Ok(own)
}

/// The ARNs of the queues that a function reads.
async fn sources(lambda: &aws_sdk_lambda::Client, function: &str) -> Result<Vec<String>, Error> {
    let mappings = lambda.list_event_source_mappings().function_name(function).send().await;
    let what = format!("the event source mappings of {function} cannot be listed");
    let mappings = mappings.map_err(|e| failed(&what, "lambda:ListEventSourceMappings", &e))?;
    let arns = mappings.event_source_mappings().iter().filter_map(|mapping| mapping.event_source_arn());
    Ok(arns.filter(|arn| arn.contains(":sqs:")).map(str::to_owned).collect())
}

/// The queue with this ARN, its dead-letter queue unknown.
async fn queue(sqs: &aws_sdk_sqs::Client, arn: &str) -> Result<Queue, Error> {
    let mut parts = arn.rsplit(':');
    let (name, account) = (parts.next().unwrap_or(arn), parts.next());
    let url = sqs.get_queue_url().queue_name(name).set_queue_owner_aws_account_id(account.map(str::to_owned));
    let what = format!("the queue {name} cannot be found");
    let url = url.send().await.map_err(|e| failed(&what, "sqs:GetQueueUrl", &e))?;
    Ok(Queue { name: name.to_owned(), url: url.queue_url.unwrap_or_default(), dead_letter_queue: None })
}

async fn dead_letter_arn(sqs: &aws_sdk_sqs::Client, queue: &Queue) -> Result<Option<String>, Error> {
    let request = sqs.get_queue_attributes().queue_url(&queue.url).attribute_names(QueueAttributeName::RedrivePolicy);
    let what = format!("the redrive policy of {} cannot be read", queue.name);
    let answer = request.send().await.map_err(|e| failed(&what, "sqs:GetQueueAttributes", &e))?;
    let policy = answer.attributes().and_then(|attributes| attributes.get(&QueueAttributeName::RedrivePolicy));
    let policy = policy.and_then(|policy| serde_json::from_str::<Value>(policy).ok());
    Ok(policy.and_then(|policy| policy["deadLetterTargetArn"].as_str().map(str::to_owned)))
}
