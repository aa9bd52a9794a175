//! What the commands work on, and what is there.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use claimant_core::{Error, SecretUrl};
use serde::Deserialize;

use crate::http;

/// Where a local cloud says what it holds, under the address of its control endpoint.
const CLOUD_PATH: &str = "/_claimant/cloud";

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A running local cloud, by the address of its control endpoint.
    Local(String),
    /// A store and queues of an account, or of the endpoints that the environment names, one by one.
    Named {
        /// The table or database that holds the records.
        store: Option<StoreAddress>,
        /// The URLs of the queues.
        queues: Vec<String>,
    },
}

/// Whose credentials are used, where a target is not local.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// The profile of the AWS configuration; as the environment says where `None`.
    pub profile: Option<String>,
    /// The Region; as the environment or the profile says where `None`.
    pub region: Option<String>,
}

/// A store, by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// A DynamoDB table, by its name or ARN.
    Table(String),
    /// PostgreSQL, MySQL or Redis, by its URL, which may hold a password and is never shown.
    Url(SecretUrl),
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// The name of its dead-letter queue, where it is known and there is one.
    pub dead_letter_queue: Option<String>,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its logical id in the template; the name where that is not known.
    pub logical_id: String,
    /// The names of the queues that it reads.
    pub queues: Vec<String>,
    /// The table of its records, where its variables name one.
    pub table: Option<String>,
}

/// What a target holds.
#[derive(Debug, Clone)]
pub struct Place {
    /// What it is, for people: `the local cloud of template.yaml`.
    pub name: String,
    /// The stores; those that functions use come first.
    pub stores: Vec<StoreAddress>,
    /// The queues and dead-letter queues.
    pub queues: Vec<Queue>,
    /// The functions.
    pub functions: Vec<Function>,
    aws: SdkConfig,
    endpoints: BTreeMap<String, String>,
}

impl Target {
    /// Finds out what the target holds.
    ///
    /// # Errors
    /// When it gives no answer, or is not what it is said to be.
    pub async fn open(&self, account: &Account) -> Result<Place, Error> {
        match self {
            Self::Local(control) => local(control).await,
            Self::Named { store, queues } => {
                let queue = |url: &String| {
                    let name = url.rsplit('/').next().unwrap_or(url).to_owned();
                    Queue { name, url: url.clone(), dead_letter_queue: None }
                };
                Ok(Place {
                    name: "what was named".to_owned(),
                    stores: store.iter().cloned().collect(),
                    queues: queues.iter().map(queue).collect(),
                    functions: Vec::new(),
                    aws: claimant_aws::config_of(account.profile.as_deref(), account.region.as_deref()).await,
                    endpoints: BTreeMap::new(),
                })
            }
        }
    }
}

impl Place {
    /// Returns the configuration for clients of AWS's services. [`endpoint`](Self::endpoint) comes before it.
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

    /// Returns a client of SQS.
    #[must_use]
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        let config = aws_sdk_sqs::config::Builder::from(&self.aws);
        aws_sdk_sqs::Client::from_conf(config.set_endpoint(self.endpoint("SQS")).build())
    }

    /// Returns a client of DynamoDB.
    #[must_use]
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let config = aws_sdk_dynamodb::config::Builder::from(&self.aws);
        aws_sdk_dynamodb::Client::from_conf(config.set_endpoint(self.endpoint("DYNAMODB")).build())
    }

    /// Returns the queue of this name or URL.
    #[must_use]
    pub fn queue(&self, called: &str) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.name == called || queue.url == called)
    }

    /// Returns the function of this name or logical id.
    #[must_use]
    pub fn function(&self, called: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == called || function.logical_id == called)
    }

    /// Returns the queues that are the dead-letter queue of another, each once.
    #[must_use]
    pub fn dead_letter_queues(&self) -> Vec<&Queue> {
        let named: Vec<_> = self.queues.iter().filter_map(|queue| queue.dead_letter_queue.as_deref()).collect();
        self.queues.iter().filter(|queue| named.contains(&queue.name.as_str())).collect()
    }
}

/// An address that wins over the environment's, where there is one.
trait SetEndpoint {
    fn set_endpoint(self, url: Option<&str>) -> Self;
}

impl SetEndpoint for aws_sdk_sqs::config::Builder {
    fn set_endpoint(mut self, url: Option<&str>) -> Self {
        if let Some(url) = url {
            self.set_endpoint_url(Some(url.to_owned()));
        }
        self
    }
}

impl SetEndpoint for aws_sdk_dynamodb::config::Builder {
    fn set_endpoint(mut self, url: Option<&str>) -> Self {
        if let Some(url) = url {
            self.set_endpoint_url(Some(url.to_owned()));
        }
        self
    }
}

/// What a local cloud says of itself.
#[derive(Deserialize)]
struct Cloud {
    template: String,
    variables: BTreeMap<String, String>,
    tables: Vec<String>,
    queues: Vec<Queue>,
    functions: Vec<Function>,
}

async fn local(control: &str) -> Result<Place, Error> {
    let control = control.trim_end_matches('/');
    let answer = http::get(&format!("{control}{CLOUD_PATH}")).await;
    let answer = answer.map_err(|e| {
        let why = "there is no local cloud at this address: `claimant local` prints that of its control endpoint";
        Error::new(why).of_kind(e.kind()).caused_by(e)
    })?;
    let cloud: Cloud = serde_json::from_slice(&answer)
        .map_err(|e| Error::new(format!("{control} is no control endpoint of a local cloud")).caused_by(e))?;
    let region = cloud.variables.get("AWS_REGION").cloned().unwrap_or_else(|| "us-east-1".to_owned());
    let used = |table: &String| cloud.functions.iter().any(|function| function.table.as_ref() == Some(table));
    let (first, others): (Vec<_>, Vec<_>) = cloud.tables.iter().cloned().partition(used);
    let services = cloud
        .variables
        .iter()
        .filter_map(|(name, url)| Some((name.strip_prefix("AWS_ENDPOINT_URL_")?.to_owned(), url.clone())));
    Ok(Place {
        name: format!("the local cloud of {}", cloud.template),
        stores: first.into_iter().chain(others).map(StoreAddress::Table).collect(),
        endpoints: services.collect(),
        queues: cloud.queues,
        functions: cloud.functions,
        aws: local_aws(region).await,
    })
}

/// Credentials that the local endpoints do not check, and none of the environment's.
async fn local_aws(region: String) -> SdkConfig {
    let credentials = Credentials::new("local", "local", None, None, "local cloud");
    let config = claimant_aws::config_of(None, Some(&region)).await.into_builder();
    config.credentials_provider(aws_credential_types::provider::SharedCredentialsProvider::new(credentials)).build()
}
