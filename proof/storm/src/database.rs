//! The DynamoDB behind the line: the local cloud's own, or Amazon's DynamoDB Local; and what stands in it at the end.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::error::DisplayErrorContext;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use claimant_local::Error;
use claimant_local::stack::{KeyKind, REGION, TableSpec};
use claimant_servers::Server;

/// One item of a table.
pub(crate) struct Item(HashMap<String, AttributeValue>);

/// A database, looked at past the line.
pub(crate) struct Database {
    client: Client,
    /// `127.0.0.1:port`.
    pub(crate) address: String,
    /// Ends with this value.
    _server: Option<Server>,
}

impl Item {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_s().ok().map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_n().ok()?.parse().ok()
    }
}

impl Database {
    /// The one that listens at this address (`127.0.0.1:port`).
    pub(crate) fn at(address: &str) -> Self {
        Self { client: client(address), address: address.to_owned(), _server: None }
    }

    /// Starts a DynamoDB Local of the storm's own, with these tables. It ends with the value, and with the process.
    pub(crate) async fn local(tables: &[TableSpec]) -> Result<Self, Error> {
        let failed = |e| Error::new("DynamoDB Local did not start").caused_by(e);
        let server = claimant_servers::dynamodb_local().map_err(failed)?;
        let database = Self { client: client(&server.address), address: server.address.clone(), _server: Some(server) };
        for table in tables {
            database.create(table).await?;
        }
        Ok(database)
    }

    /// Everything in a table.
    pub(crate) async fn items(&self, table: &str) -> Result<Vec<Item>, Error> {
        let (mut items, mut start) = (Vec::new(), None);
        loop {
            let scan = self.client.scan().table_name(table).consistent_read(true).set_exclusive_start_key(start);
            let page = scan.send().await.map_err(|e| refused(table, "could not be read", &DisplayErrorContext(e)))?;
            items.extend(page.items.unwrap_or_default().into_iter().map(Item));
            start = page.last_evaluated_key.filter(|key| !key.is_empty());
            if start.is_none() {
                return Ok(items);
            }
        }
    }

    async fn create(&self, table: &TableSpec) -> Result<(), Error> {
        let failed = |cause: &dyn std::fmt::Display| refused(&table.name, "could not be made", cause);
        let mut request = self.client.create_table().table_name(&table.name).billing_mode(BillingMode::PayPerRequest);
        let keys = [(Some(&table.partition_key), KeyType::Hash), (table.sort_key.as_ref(), KeyType::Range)];
        for (key, key_type) in keys {
            let Some(key) = key else { continue };
            let kind = match key.kind {
                KeyKind::S => ScalarAttributeType::S,
                KeyKind::N => ScalarAttributeType::N,
                KeyKind::B => ScalarAttributeType::B,
            };
            let element = KeySchemaElement::builder().attribute_name(&key.name).key_type(key_type).build();
            let attribute = AttributeDefinition::builder().attribute_name(&key.name).attribute_type(kind).build();
            request = request.key_schema(element.map_err(|e| failed(&e))?);
            request = request.attribute_definitions(attribute.map_err(|e| failed(&e))?);
        }
        request.send().await.map(drop).map_err(|e| failed(&DisplayErrorContext(e)))
    }
}

fn client(address: &str) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(REGION))
        .credentials_provider(Credentials::new("local", "local", None, None, "storm"))
        .http_client(claimant_aws::http_client())
        .endpoint_url(format!("http://{address}"));
    Client::from_conf(config.build())
}

fn refused(table: &str, what: &str, cause: &dyn std::fmt::Display) -> Error {
    Error::new(format!("table {table} {what}: {cause}"))
}
