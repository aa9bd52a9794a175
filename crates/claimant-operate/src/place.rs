//! What there is to work on: stores, queues and functions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::timeout::TimeoutConfig;
use claimant_core::{Error, SecretUrl};
use serde::Deserialize;

use crate::aws::{is_same_queue, name_of_arn};
use crate::queue::Queue;

/// How long SQS may take to begin its answer: it receives for a second at most, and takes a mebibyte over a slow line.
const SQS_MAX: Duration = Duration::from_secs(20);

/// Whose credentials are used, where a target is not local.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// The profile of the AWS configuration; as the environment says where `None`.
    pub profile: Option<String>,
    /// The Region; as the environment or the profile says where `None`.
    pub region: Option<String>,
}

impl Account {
    pub(crate) async fn aws(&self) -> Result<SdkConfig, Error> {
        claimant_aws::config_of(self.profile.as_deref(), self.region.as_deref()).await
    }
}

/// A store, by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// A lock table, by the name or ARN of its DynamoDB table, or by those of several, separated by commas.
    Table(String),
    /// PostgreSQL, MySQL or Redis.
    Url {
        /// Its URL, which may hold a password and is never shown.
        url: SecretUrl,
        /// The prefix of the keys in Redis, where functions have set another than the default one.
        prefix: Option<String>,
    },
}

/// Returns the URL of a queue of the same account and Region: a dead-letter queue is one, and every place that it serves.
#[must_use]
pub fn sibling(url: &str, name: &str) -> String {
    let start = url.rfind('/').map_or(0, |slash| slash + 1);
    format!("{}{name}", &url[..start])
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its logical id in the template; the name where that is not known.
    pub logical_id: String,
    /// The name of its program, of a local cloud.
    #[serde(default)]
    pub binary: Option<String>,
    /// The names of the queues that it reads.
    pub queues: Vec<String>,
    /// The table of its records, where its variables name one; of several all of them, separated by commas.
    pub table: Option<String>,
    /// The tables that had its records before, where they are still to be moved.
    #[serde(default)]
    pub table_before: Option<String>,
    /// The name of the queue that it copies what it gives up on to, where its variables name one.
    #[serde(default)]
    pub dead_letter_queue: Option<String>,
    /// The URL of that queue, of a deployed function: it may be of another account than the queue that is read.
    #[serde(default)]
    pub dead_letter_queue_url: Option<String>,
    /// The log group in CloudWatch, of a deployed function.
    #[serde(default)]
    pub log_group: Option<String>,
    /// Whether it runs: a local cloud can be of some functions of its template.
    #[serde(default = "yes")]
    pub runs: bool,
}

const fn yes() -> bool {
    true
}

impl Function {
    /// Returns whether it copies what it gives up on to the queue at this URL.
    pub(crate) fn copies_to(&self, url: &str) -> bool {
        match &self.dead_letter_queue_url {
            Some(own) => is_same_queue(own, url),
            None => self.dead_letter_queue.as_deref() == Some(name_of_arn(url)),
        }
    }
}

/// What a place was found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A local cloud, of a template.
    Template {
        /// The template's path, as the cloud's command was given it.
        path: String,
        /// The directory that it is in, wherever a command is typed, if that is known.
        directory: Option<PathBuf>,
    },
    /// A deployed stack.
    Stack {
        /// Its name.
        name: String,
        /// The account of its functions, if that is known.
        account: Option<String>,
    },
    /// Names and URLs, one by one.
    Named,
}

/// What a target holds.
#[derive(Debug, Clone)]
pub struct Place {
    /// What it is, for people: `the local cloud of template.yaml`.
    pub name: String,
    /// What it was found by.
    pub origin: Origin,
    /// The stores; of a local cloud the tables that functions name as their lock table, if any does.
    pub stores: Vec<StoreAddress>,
    /// The queues and dead-letter queues.
    pub queues: Vec<Queue>,
    /// The functions.
    pub functions: Vec<Function>,
    /// What belongs to it and could not be asked, for people.
    pub left_out: Vec<String>,
    /// The control endpoint, of a local cloud.
    pub(crate) control: Option<String>,
    pub(crate) other_tables: Vec<String>,
    pub(crate) aws: SdkConfig,
    pub(crate) endpoints: BTreeMap<String, String>,
}

impl Place {
    /// Returns a place of an account, with nothing in it yet.
    pub(crate) async fn in_account(name: String, account: &Account) -> Result<Self, Error> {
        Ok(Self::of(name, account.aws().await?))
    }

    /// Returns a place of this configuration, with nothing in it yet.
    pub(crate) const fn of(name: String, aws: SdkConfig) -> Self {
        Self {
            name,
            origin: Origin::Named,
            stores: Vec::new(),
            queues: Vec::new(),
            functions: Vec::new(),
            left_out: Vec::new(),
            control: None,
            other_tables: Vec::new(),
            aws,
            endpoints: BTreeMap::new(),
        }
    }

    /// Returns the directory of the template of a local cloud, if that is known.
    #[must_use]
    pub fn template_directory(&self) -> Option<&Path> {
        if let Origin::Template { directory, .. } = &self.origin { directory.as_deref() } else { None }
    }

    /// Returns the configuration for clients of AWS's services; of a local cloud, with its endpoints.
    #[must_use]
    pub fn aws(&self) -> &SdkConfig {
        &self.aws
    }

    /// Returns the address of a service in a local cloud, by its name in the SDK's variables: `SQS` of
    /// `AWS_ENDPOINT_URL_SQS`.
    #[must_use]
    pub fn endpoint(&self, service: &str) -> Option<&str> {
        self.endpoints.get(service).map(String::as_str)
    }

    /// Returns a client of SQS, which waits for each answer for 20 s at most. To sign in, as a person does, takes none of that time.
    #[must_use]
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        let timeouts = self.aws.timeout_config().map_or_else(TimeoutConfig::builder, TimeoutConfig::to_builder);
        let timeouts = timeouts.read_timeout(SQS_MAX).build();
        aws_sdk_sqs::Client::from_conf(aws_sdk_sqs::config::Builder::from(&self.aws).timeout_config(timeouts).build())
    }

    /// Returns a client of DynamoDB.
    #[must_use]
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        aws_sdk_dynamodb::Client::new(&self.aws)
    }

    /// Returns the queue [that is called so](Queue::is_called).
    #[must_use]
    pub fn queue(&self, called: &str) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.is_called(called))
    }

    /// Returns the function of this name or logical id, or the only one whose program has this name.
    #[must_use]
    pub fn function(&self, called: &str) -> Option<&Function> {
        let named = self.functions.iter().find(|function| function.name == called || function.logical_id == called);
        let mut programs = self.functions.iter().filter(|function| function.binary.as_deref() == Some(called));
        named.or_else(|| programs.next().filter(|_| programs.next().is_none()))
    }

    /// Returns whether it is a local cloud: nothing of it is anybody's work.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.control.is_some()
    }

    /// Returns the queue that messages for this queue or function go to, also by the queue's name in the template where that is known: no
    /// part of a name is taken for it. Without a name, the only one that is no dead-letter queue.
    ///
    /// # Errors
    /// When there is none, or several are meant.
    pub fn queue_for(&self, called: Option<&str>) -> Result<&Queue, Error> {
        let dead: Vec<_> = self.dead_letter_queues().into_iter().map(|queue| queue.name.as_str()).collect();
        let queues: Vec<_> = self.queues.iter().filter(|queue| !dead.contains(&queue.name.as_str())).collect();
        let names = || queues.iter().map(|queue| queue.name.as_str()).collect::<Vec<_>>().join(", ");
        let Some(called) = called else {
            return match queues.as_slice() {
                [only] => Ok(only),
                [] => Err(Error::invalid(format!("{} has no queue", self.name))),
                _ => Err(Error::invalid(format!("say which queue is meant: {} has {}", self.name, names()))),
            };
        };
        let of_function = || match self.function(called)?.queues.as_slice() {
            [only] => self.queue(only),
            _ => None,
        };
        let of_template = || self.queues.iter().find(|queue| queue.is_of(called));
        self.queue(called).or_else(of_function).or_else(of_template).ok_or_else(|| {
            let functions = self.functions.iter().filter(|function| function.queues.len() == 1);
            let functions: Vec<_> = functions.map(|function| function.logical_id.as_str()).collect();
            let functions = if functions.is_empty() { "none".to_owned() } else { functions.join(", ") };
            Error::invalid(format!(
                "{} has no queue {called}, nor a function of that name with one queue: it has the queues {}; the functions: {functions}",
                self.name,
                names()
            ))
        })
    }

    /// Returns the dead-letter queues, each once: those that queues have, those that functions copy to, and what is known to be one.
    #[must_use]
    pub fn dead_letter_queues(&self) -> Vec<&Queue> {
        let of_functions = self.functions.iter().map(|function| &function.dead_letter_queue);
        let named: Vec<_> =
            self.queues.iter().map(|queue| &queue.dead_letter_queue).chain(of_functions).flatten().collect();
        self.queues.iter().filter(|queue| queue.is_dead_letter_queue || named.contains(&&queue.name)).collect()
    }

    /// Returns whether a function of it has what waits for long sent to its queue again by schedules.
    #[must_use]
    pub fn has_schedules(&self) -> bool {
        self.queues.iter().any(|queue| !queue.unsent.is_empty())
    }

    /// Returns the names of the dead-letter queues of a queue: its own first, then those that functions which read it copy to, and those of
    /// their schedules.
    #[must_use]
    pub fn dead_letter_queues_of<'a>(&'a self, queue: &'a Queue) -> Vec<&'a str> {
        let own = queue.dead_letter_queue.as_deref();
        let others: BTreeSet<_> =
            self.readers(queue).filter_map(|function| function.dead_letter_queue.as_deref()).collect();
        let others = &others | &queue.unsent.iter().map(|url| name_of_arn(url)).collect();
        own.into_iter().chain(others.into_iter().filter(|name| Some(*name) != own)).collect()
    }

    /// Returns the URLs of the dead-letter queues of a queue, each once: its own is in its account; what a function copies to is where its
    /// variable says; and what its schedules leave their requests in.
    #[must_use]
    pub fn dead_letter_queue_urls_of(&self, queue: &Queue) -> Vec<String> {
        let here = |name: &String| sibling(&queue.url, name);
        let of_functions = self.readers(queue).filter_map(|function| {
            function.dead_letter_queue_url.clone().or_else(|| function.dead_letter_queue.as_ref().map(here))
        });
        let mut urls: Vec<String> = Vec::new();
        let unsent = queue.unsent.iter().filter_map(|url| Some(self.queue(url)?.url.clone()));
        for url in queue.dead_letter_queue.as_ref().map(here).into_iter().chain(of_functions).chain(unsent) {
            if !urls.iter().any(|known| is_same_queue(known, &url)) {
                urls.push(url);
            }
        }
        urls
    }

    fn readers<'a>(&'a self, queue: &'a Queue) -> impl Iterator<Item = &'a Function> {
        self.functions.iter().filter(|function| function.queues.contains(&queue.name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sibling_is_in_the_same_account() {
        assert_eq!(
            sibling("https://sqs.eu-west-1.amazonaws.com/1/orders", "dead"),
            "https://sqs.eu-west-1.amazonaws.com/1/dead"
        );
    }

    /// Else a command waits without end for a queue whose answer does not come.
    #[tokio::test]
    async fn sqs_is_waited_for_for_a_time() {
        let place = Place::in_account("what was named".to_owned(), &Account::default()).await.unwrap();
        let (of_all, client) = (place.aws().timeout_config().unwrap().connect_timeout(), place.sqs());
        let timeouts = client.config().timeout_config().unwrap();
        assert_eq!((timeouts.read_timeout(), timeouts.connect_timeout()), (Some(SQS_MAX), of_all));
    }

    /// As of a function that reads a queue of another account, where dead-letter queues can have the same name.
    #[tokio::test]
    async fn what_a_function_copies_to_is_where_its_variable_says() {
        let [orders, own, copies] = ["2/orders", "2/orders-dead", "1/orders-dead"]
            .map(|path| format!("https://sqs.eu-west-1.amazonaws.com/{path}"));
        let mut place = Place::in_account("what was named".to_owned(), &Account::default()).await.unwrap();
        let function =
            json!({"name": "worker", "logical_id": "worker", "queues": ["orders"], "dead_letter_queue": "orders-dead"});
        place.functions = vec![serde_json::from_value(function).unwrap()];
        for (is_own, url, all) in [
            (true, Some(&copies), vec![&own, &copies]),
            (false, Some(&copies), vec![&copies]),
            (true, Some(&own), vec![&own]),
            // Of a local cloud the name alone is known.
            (false, None, vec![&own]),
        ] {
            let dead_letter_queue = is_own.then(|| "orders-dead".to_owned());
            let queue = Queue { dead_letter_queue, ..Queue::at(orders.as_str()) };
            place.functions[0].dead_letter_queue_url = url.cloned();
            assert_eq!(place.dead_letter_queue_urls_of(&queue), all.into_iter().cloned().collect::<Vec<_>>());
            let is_copied_to = [&own, &copies].map(|dead| place.functions[0].copies_to(dead));
            assert_eq!(is_copied_to, [&own, &copies].map(|dead| url.is_none_or(|url| url == dead)));
        }
    }

    #[tokio::test]
    async fn what_schedules_could_not_send_is_in_the_queue_of_that_account() {
        let [orders, others, unsent] = ["2/orders", "1/unsent", "2/unsent"]
            .map(|path| Queue::at(format!("https://sqs.eu-west-1.amazonaws.com/{path}")));
        let mut place = Place::in_account("what was named".to_owned(), &Account::default()).await.unwrap();
        let orders = Queue { unsent: vec![unsent.url.clone()], ..orders };
        place.queues = vec![others, unsent.clone(), orders.clone()];
        assert_eq!(place.dead_letter_queue_urls_of(&orders), [unsent.url]);
        assert_eq!(place.dead_letter_queues_of(&orders), ["unsent"]);
    }
}
