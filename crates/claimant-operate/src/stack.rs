//! A deployed stack: its functions, as CloudFormation lists them, and the queues and tables that they use.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_sqs::types::QueueAttributeName;
use claimant_aws::is_standard_queue_arn;
use claimant_aws::mapping::EventSourceMapping;
use claimant_core::error::Chain;
use claimant_core::{Error, ErrorKind};
use claimant_doctor::account::{Aws, Refused, StackParts, StackResource, parts_of_stack};
use futures_util::future::join_all;
use serde_json::Value;

use crate::aws::{answered, failed, is_refusal, is_same_queue, name_of_arn, no_answer, queue_path, queue_url};
use crate::intake::is_of;
use crate::lambda::{Function as Found, Lambda, sign_in};
use crate::place::{Account, Function, Origin, Place, StoreAddress};
use crate::queue::Queue;

/// The variable by which a function of ours knows its table.
pub(crate) const TABLE_VARIABLE: &str = "CLAIMANT_TABLE";
/// The variable with the tables that had its records before.
pub(crate) const BEFORE_VARIABLE: &str = "CLAIMANT_TABLE_BEFORE";
/// The variable with the URL of the queue that a function copies what it gives up on to.
const DEAD_LETTER_VARIABLE: &str = "CLAIMANT_DEAD_LETTER_QUEUE_URL";
/// The variable with the ARN of the queue for what a function's schedules could not send.
const UNSENT_VARIABLE: &str = "CLAIMANT_SCHEDULE_DEAD_LETTER_ARN";
/// Mappings of an account that are looked at.
const MAPPINGS_MAX: usize = 10_000;
/// Functions that are asked for at once.
const REQUESTS: usize = 8;

/// Returns what the functions of a stack use. Nested stacks have names of their own. A queue that is not there or may not be asked is left
/// out, with a word of why.
///
/// # Errors
/// When there is no such stack, it has no function of its own, a permission is missing, or no answer comes.
pub(crate) async fn open(stack: &str, account: &Account) -> Result<Place, Error> {
    let mut place = Place::in_account(format!("the stack {stack}"), account).await?;
    let StackParts { functions: listed, queues: of_stack, nested } = list(&place, stack).await?;
    let lambda = Lambda::new(place.aws());
    let functions = read(&lambda, listed).await?;
    if functions.is_empty() {
        return Err(no_function(stack, &nested));
    }
    let account = functions.iter().find_map(|(_, function)| function.account()).map(str::to_owned);
    place.origin = Origin::Stack { name: stack.to_owned(), account };
    let sources = sources(&lambda).await?;
    if sources.len() >= MAPPINGS_MAX {
        place
            .left_out
            .push(format!("only the first {MAPPINGS_MAX} event source mappings of the account were looked at"));
    }
    let mut queues = Queues { sqs: place.sqs(), found: BTreeMap::new(), left_out: Vec::new() };
    for (StackResource { logical_id, id: name }, function) in functions {
        let named = |variable| function.variable(variable).map(str::to_owned);
        let (table, table_before) = (named(TABLE_VARIABLE), named(BEFORE_VARIABLE));
        let (mut reads, mut read_urls) = (Vec::new(), Vec::new());
        let own = sources.iter().filter(|(of, _)| is_of(of, &name)).map(|(_, queue)| queue);
        for arn in own.collect::<BTreeSet<_>>() {
            reads.push(name_of_arn(arn).to_owned());
            read_urls.extend(queues.add(arn, &name).await?);
        }
        if let Some(arn) = named(UNSENT_VARIABLE).filter(|arn| !arn.is_empty()) {
            let of = format!("{UNSENT_VARIABLE} of {name} names {}", name_of_arn(&arn));
            let region = place.aws().region().map(AsRef::as_ref);
            match why_not_unsent(&arn, region, &sources) {
                Some(why) => queues.left_out.push(format!("{of}, which is left out: {why}")),
                None => queues.add_unsent(&arn, &of, &read_urls).await?,
            }
        }
        let copies_to = named(DEAD_LETTER_VARIABLE).filter(|url| !url.is_empty());
        let dead_letter_queue = copies_to.clone().map(|url| queues.keep(Queue::at(url)).name.clone());
        let log_group = Some(function.log_group().map_or_else(|| format!("/aws/lambda/{name}"), str::to_owned));
        place.functions.push(Function {
            name,
            logical_id,
            binary: None,
            queues: reads,
            table,
            table_before,
            dead_letter_queue,
            dead_letter_queue_url: copies_to,
            log_group,
            runs: true,
        });
    }
    place.stores = Place::lock_tables(&place.functions).into_iter().map(StoreAddress::Table).collect();
    place.queues = queues.found.into_values().collect();
    for queue in &mut place.queues {
        let own = of_stack.iter().find(|own| queue.is_called(&own.id));
        queue.logical_id = own.map(|own| own.logical_id.clone());
    }
    place.left_out.extend(queues.left_out);
    Ok(place)
}

/// The queues of a stack, by their accounts and names: a variable can have a URL with another host than SQS's answer has.
struct Queues {
    sqs: aws_sdk_sqs::Client,
    found: BTreeMap<String, Queue>,
    left_out: Vec<String>,
}

impl Queues {
    /// Keeps a queue, unless it is known; returns what is known.
    fn keep(&mut self, queue: Queue) -> &mut Queue {
        let path = queue_path(&queue.url).unwrap_or(&queue.url).to_owned();
        self.found.entry(path).or_insert(queue)
    }

    /// Adds the queue that a mapping of the function names, and its dead-letter queue; returns the URL of the first, unless it is left out.
    async fn add(&mut self, arn: &str, function: &str) -> Result<Option<String>, Error> {
        let of = format!("an event source mapping of {function} names {}", name_of_arn(arn));
        let found = queue(&self.sqs, arn).await;
        let Some(queue) = self.known(found, &of)? else { return Ok(None) };
        let url = queue.url.clone();
        let dead_arn = dead_letter_arn(&self.sqs, &queue).await;
        let dead_arn = self.known(dead_arn, &format!("the dead-letter queue of {}", queue.name))?.flatten();
        let Some(dead_arn) = dead_arn else {
            self.keep(queue);
            return Ok(Some(url));
        };
        let name = name_of_arn(&dead_arn).to_owned();
        let found = self::queue(&self.sqs, &dead_arn).await;
        if let Some(dead) = self.known(found, &format!("{} has the dead-letter queue {name}", queue.name))? {
            self.keep(dead);
        }
        self.keep(queue).dead_letter_queue = Some(name);
        Ok(Some(url))
    }

    /// Adds the queue for what schedules of a function, which reads the queues at these URLs, could not send.
    async fn add_unsent(&mut self, arn: &str, of: &str, reads: &[String]) -> Result<(), Error> {
        let found = queue(&self.sqs, arn).await;
        if let Some(unsent) = self.known(found, of)? {
            self.keep_unsent(unsent, reads);
        }
        Ok(())
    }

    fn keep_unsent(&mut self, unsent: Queue, reads: &[String]) {
        let unsent = self.keep(unsent);
        unsent.is_dead_letter_queue = true;
        let url = unsent.url.clone();
        let is_read = |queue: &&mut Queue| reads.iter().any(|read| is_same_queue(read, &queue.url));
        for read in self.found.values_mut().filter(is_read) {
            if !read.unsent.contains(&url) {
                read.unsent.push(url.clone());
            }
        }
    }

    /// Returns what was found. What is not there, or may not be asked, is left out, with a word of it; where no answer comes, nothing is
    /// known of the others either.
    fn known<T>(&mut self, found: Result<T, Error>, what: &str) -> Result<Option<T>, Error> {
        match found {
            Err(error) if is_refusal(&error) => {
                self.left_out.push(format!("{what}, which is left out: {}", Chain(&error)));
                Ok(None)
            }
            found => found.map(Some),
        }
    }
}

/// Returns why this is not taken for the ARN of a queue for what schedules could not send: there may be none, or its messages are at work.
fn why_not_unsent(arn: &str, region: Option<&str>, sources: &[(String, String)]) -> Option<String> {
    if !is_standard_queue_arn(arn) {
        return Some("that is not the ARN of a standard queue".to_owned());
    }
    let its_region = arn.split(':').nth(3).unwrap_or_default();
    if region.is_some_and(|region| region != its_region) {
        return Some(format!("it is in {its_region}"));
    }
    let (reader, _) = sources.iter().find(|(_, queue)| queue == arn)?;
    Some(format!("{reader} reads it, so its messages are at work"))
}

/// What to look at where a stack is not what is meant.
const DOUBT: &str = "Are the stack's name, the account and the Region right?";

/// What a stack has.
async fn list(place: &Place, stack: &str) -> Result<StackParts, Error> {
    let what = format!("the stack {stack} cannot be read");
    sign_in(place.aws(), &what).await?;
    parts_of_stack(&Aws::new(place.aws()), stack).await.map_err(|refused| not_listed(&what, &refused))
}

/// Returns what to do with a stack that has no function.
fn no_function(stack: &str, nested: &[String]) -> Error {
    Error::invalid(match nested.join(", ") {
        none if none.is_empty() => format!("the stack {stack} has no function. {DOUBT}"),
        names => format!("the stack {stack} has no function of its own. Give a stack that is nested in it: {names}"),
    })
}

/// Returns why a stack cannot be read.
fn not_listed(what: &str, refused: &Refused) -> Error {
    let said = |rest: &str| rest.split_once(") ").map_or_else(String::new, |(_, said)| said.to_owned());
    match refused.code.split_once(" (status ") {
        // So CloudFormation says of a stack that is not there.
        Some(("ValidationError", rest)) => Error::invalid(format!("{what}: {}. {DOUBT}", said(rest))),
        Some((code, rest)) if !code.contains(' ') => {
            answered(what, "cloudformation:ListStackResources", code, &said(rest))
        }
        _ => no_answer(what, refused),
    }
}

/// What Lambda says of functions. One that is gone meanwhile is of the stack no more.
async fn read(lambda: &Lambda, listed: Vec<StackResource>) -> Result<Vec<(StackResource, Found)>, Error> {
    let (mut listed, mut read) = (listed.into_iter(), Vec::new());
    loop {
        let some: Vec<_> = listed.by_ref().take(REQUESTS).collect();
        if some.is_empty() {
            return Ok(read);
        }
        let found = join_all(some.iter().map(|function| lambda.get_function(&function.id))).await;
        for (function, found) in some.into_iter().zip(found) {
            match found {
                Err(error) if error.kind() == ErrorKind::Invalid => {}
                found => read.push((function, found?)),
            }
        }
    }
}

/// The ARNs of functions, and of the queues that they read.
async fn sources(lambda: &Lambda) -> Result<Vec<(String, String)>, Error> {
    let source = |mapping: EventSourceMapping| {
        let queue = mapping.queue_arn()?.to_owned();
        Some((mapping.function_arn?, queue))
    };
    lambda.list_mappings(source, MAPPINGS_MAX).await
}

/// The queue with this ARN, its dead-letter queue unknown.
async fn queue(sqs: &aws_sdk_sqs::Client, arn: &str) -> Result<Queue, Error> {
    Ok(Queue { name: name_of_arn(arn).to_owned(), ..Queue::at(queue_url(sqs, arn).await?) })
}

async fn dead_letter_arn(sqs: &aws_sdk_sqs::Client, queue: &Queue) -> Result<Option<String>, Error> {
    let request = sqs.get_queue_attributes().queue_url(&queue.url).attribute_names(QueueAttributeName::RedrivePolicy);
    let what = format!("the redrive policy of {} cannot be read", queue.name);
    let answer = request.send().await.map_err(|e| failed(&what, "sqs:GetQueueAttributes", &e))?;
    let policy = answer.attributes().and_then(|attributes| attributes.get(&QueueAttributeName::RedrivePolicy));
    let policy = policy.and_then(|policy| serde_json::from_str::<Value>(policy).ok());
    Ok(policy.and_then(|policy| policy["deadLetterTargetArn"].as_str().map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of another account can have the same names.
    #[test]
    fn what_schedules_could_not_send_is_of_the_queues_that_their_function_reads() {
        let config = aws_sdk_sqs::Config::builder().behavior_version(aws_config::BehaviorVersion::latest()).build();
        let sqs = aws_sdk_sqs::Client::from_conf(config);
        let mut queues = Queues { sqs, found: BTreeMap::new(), left_out: Vec::new() };
        let at = |path: &str| format!("https://sqs.eu-west-1.amazonaws.com/{path}");
        for path in ["1/orders", "2/orders"] {
            queues.keep(Queue::at(at(path)));
        }
        for account in ["1", "2", "1"] {
            queues.keep_unsent(Queue::at(at(&format!("{account}/unsent"))), &[at("1/orders")]);
        }
        assert_eq!(queues.found["1/orders"].unsent, ["1/unsent", "2/unsent"].map(at));
        assert!(queues.found["2/orders"].unsent.is_empty());
        assert!(["1/unsent", "2/unsent"].iter().all(|path| queues.found[*path].is_dead_letter_queue));
    }
}
