//! What the commands work on, and what is there.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use claimant_aws::endpoints::Endpoints;
use claimant_core::Error;
use futures_util::future::BoxFuture;
use serde::Deserialize;

pub use crate::place::{Account, Function, Place, Queue, StoreAddress, sibling};
use crate::{http, stack};

/// Where a local cloud says what it holds, under the address of its control endpoint.
const CLOUD_PATH: &str = "/_claimant/cloud";

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
    /// When it gives no answer, or is not what it is said to be.
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
                    let mut place = Place::in_account("what was named".to_owned(), account).await?;
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
    // What functions name is a lock table if all of it is there; where none is, each table may be one.
    let named = Place::lock_tables(&cloud.functions).into_iter();
    let used: Vec<_> = named.filter(|table| Place::is_among(table, &cloud.tables)).collect();
    let others: Vec<_> = cloud.tables.into_iter().filter(|table| !used.contains(table)).collect();
    let (used, others) = if used.is_empty() { (others, used) } else { (used, others) };
    let services = cloud
        .variables
        .iter()
        .filter_map(|(name, url)| Some((name.strip_prefix("AWS_ENDPOINT_URL_")?.to_owned(), url.clone())));
    let endpoints: BTreeMap<_, _> = services.collect();
    Ok(Place {
        name: format!("the local cloud of {}", cloud.template),
        template: Some(cloud.template),
        stores: used.into_iter().map(StoreAddress::Table).collect(),
        other_tables: others,
        control: Some(control.to_owned()),
        aws: local_aws(region, Endpoints(endpoints.clone())).await?,
        endpoints,
        queues: cloud.queues,
        functions: cloud.functions,
        left_out: Vec::new(),
    })
}

/// The local endpoints; credentials that they do not check, and none of the environment's; nor the kinds of endpoints that a profile asks
/// for: with them the SDK refuses an endpoint that is named.
async fn local_aws(region: String, endpoints: Endpoints) -> Result<SdkConfig, Error> {
    let credentials = Credentials::new("local", "local", None, None, "local cloud");
    let config = claimant_aws::config_of(None, Some(&region)).await?.into_builder();
    let config = config.use_fips(false).use_dual_stack(false).service_config(endpoints);
    let credentials = aws_credential_types::provider::SharedCredentialsProvider::new(credentials);
    Ok(config.credentials_provider(credentials).build())
}
