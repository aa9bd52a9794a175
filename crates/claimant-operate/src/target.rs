//! What the commands work on, and what is there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use aws_config::{Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::credential_fn::provide_credentials_fn;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_credential_types::provider::error::CredentialsError;
use claimant_aws::endpoints::Endpoints;
use claimant_core::{Error, ErrorKind};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::time::timeout;

pub use crate::aws::is_same_queue;
pub use crate::place::{Account, Function, Origin, Place, StoreAddress, sibling};
pub use crate::queue::Queue;
use crate::server::check_endpoint;
pub use crate::server::is_of_account;
use crate::{http, stack};

/// Where a local cloud says what it holds, under the address of its control endpoint.
const CLOUD_PATH: &str = "/_claimant/cloud";

/// How long a local cloud may take to say that. It knows it.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A running local cloud, by the address of its control endpoint.
    Local(String),
    /// What the functions of a deployed CloudFormation stack use, by the stack's name.
    Stack(String),
    /// A store and queues of an account, or of the endpoints that the environment names, one by one.
    Named {
        /// The table or database that holds the records.
        store: Option<StoreAddress>,
        /// The URLs of the queues.
        queues: Vec<String>,
    },
}

impl Target {
    /// Finds out what the target holds.
    ///
    /// # Errors
    /// When it gives no answer, or is not what it is said to be; or a queue's URL is of another server than SQS is asked at.
    pub async fn open(&self, account: &Account) -> Result<Place, Error> {
        self.found(account).await
    }

    /// In a box, so that this is compiled here, and not in each program that opens a place.
    fn found<'a>(&'a self, account: &'a Account) -> BoxFuture<'a, Result<Place, Error>> {
        Box::pin(async move {
            match self {
                Self::Local(control) => local(control).await,
                Self::Stack(name) => stack::open(name, account).await,
                Self::Named { store, queues } => {
                    let is_of_aws = !queues.is_empty() || !matches!(store, Some(StoreAddress::Url { .. }));
                    let aws = match account.aws().await {
                        Err(error) if !is_of_aws => refusing(&error),
                        aws => aws?,
                    };
                    queues.iter().try_for_each(|url| check_endpoint(url, &aws))?;
                    let mut place = Place::of("what was named".to_owned(), aws);
                    place.stores = store.iter().cloned().collect();
                    place.queues = queues.iter().map(Queue::at).collect();
                    Ok(place)
                }
            }
        })
    }
}

/// What a local cloud says of itself.
#[derive(Deserialize)]
struct Cloud {
    template: String,
    #[serde(default)]
    directory: Option<PathBuf>,
    variables: BTreeMap<String, String>,
    tables: Vec<String>,
    queues: Vec<Queue>,
    functions: Vec<Function>,
}

async fn local(control: &str) -> Result<Place, Error> {
    let control = control.trim_end_matches('/');
    let url = format!("{control}{CLOUD_PATH}");
    let answer = timeout(ANSWER_MAX, http::get(&url)).await.map_err(|_| {
        let seconds = ANSWER_MAX.as_secs();
        Error::new(format!(
            "the local cloud at {control} gave no answer within {seconds} s: is its process stopped, or the machine busy?"
        ))
        .of_kind(ErrorKind::Unavailable)
    })?;
    let answer = answer.map_err(|e| {
        let why = "there is no local cloud at this address: `claimant local` prints that of its control endpoint";
        Error::new(why).of_kind(e.kind()).caused_by(e)
    })?;
    let cloud: Cloud = serde_json::from_slice(&answer)
        .map_err(|e| Error::new(format!("{control} is no control endpoint of a local cloud")).caused_by(e))?;
    let region = cloud.variables.get("AWS_REGION").cloned().unwrap_or_else(|| "us-east-1".to_owned());
    // What functions name is a lock table if all of it is there; where they name none, each table may be one.
    let named = Place::lock_tables(&cloud.functions);
    let is_none_named = named.is_empty();
    let used: Vec<_> = named.into_iter().filter(|table| Place::is_among(table, &cloud.tables)).collect();
    let others: Vec<_> = cloud.tables.into_iter().filter(|table| !used.contains(table)).collect();
    let (used, others) = if is_none_named { (others, used) } else { (used, others) };
    let services = cloud
        .variables
        .iter()
        .filter_map(|(name, url)| Some((name.strip_prefix("AWS_ENDPOINT_URL_")?.to_owned(), url.clone())));
    let endpoints: BTreeMap<_, _> = services.collect();
    // It does not check them.
    let credentials = Credentials::new("local", "local", None, None, "local cloud");
    Ok(Place {
        name: format!("the local cloud of {}", cloud.template),
        origin: Origin::Template { path: cloud.template, directory: cloud.directory },
        stores: used.into_iter().map(StoreAddress::Table).collect(),
        other_tables: others,
        control: Some(control.to_owned()),
        aws: claimant_aws::config_at(region, Endpoints(endpoints.clone()), credentials).await,
        endpoints,
        queues: cloud.queues,
        functions: cloud.functions,
        left_out: Vec::new(),
    })
}

/// Returns a configuration with which each request ends in this error. A database alone has none.
fn refusing(error: &Error) -> SdkConfig {
    let why = error.to_string();
    let credentials = provide_credentials_fn(move || {
        let why = why.clone();
        async move { Err(CredentialsError::invalid_configuration(why)) }
    });
    // Any Region: without one, requests are refused for that.
    let config = SdkConfig::builder().region(Region::from_static("us-east-1"));
    config.credentials_provider(SharedCredentialsProvider::new(credentials)).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As one whose process was stopped: connections are made, and no more.
    #[tokio::test(start_paused = true)]
    async fn a_cloud_that_does_not_answer_is_not_waited_for_without_end() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let control = format!("http://{}", silent.local_addr().unwrap());
        let Err(error) = Target::Local(control.clone()).open(&Account::default()).await else { panic!("it is open") };
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains(&format!("{control} gave no answer within 10 s")), "{error}");
    }
}
