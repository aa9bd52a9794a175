//! Creates the table, for local use and tests. One that exists may be another application's: it is looked at, and left as it is.

use std::time::Duration;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TableStatus,
    TimeToLiveSpecification,
};
use claimant_core::{StoreError, StoreErrorKind};

use crate::error::store_error;
use crate::requests::Requests;
use crate::shape::is_lock_table;

/// How often the table's status is polled.
const POLLS_MAX: u32 = 120;

/// The time between two polls.
const POLL_MS: u64 = 500;

pub(crate) async fn create(requests: &Requests, table: &str) -> Result<(), StoreError> {
    let Requests { client, names, .. } = requests;
    let incomplete = |e| StoreError::new(StoreErrorKind::Other, "the table's definition is incomplete").caused_by(e);
    let key = KeySchemaElement::builder().attribute_name(&names.id).key_type(KeyType::Hash);
    let id = AttributeDefinition::builder().attribute_name(&names.id).attribute_type(ScalarAttributeType::S);
    let created = client
        .create_table()
        .table_name(table)
        .key_schema(key.build().map_err(incomplete)?)
        .attribute_definitions(id.build().map_err(incomplete)?)
        .billing_mode(BillingMode::PayPerRequest)
        .send()
        .await;
    match created {
        Ok(_) => wait_until_active(requests, table).await?,
        Err(e) if e.as_service_error().is_some_and(|e| e.is_resource_in_use_exception()) => {
            return wait_until_active(requests, table).await;
        }
        Err(e) => return Err(store_error("CreateTable", table, &e)),
    }
    let ttl = TimeToLiveSpecification::builder().attribute_name(&names.expires_at).enabled(true);
    client
        .update_time_to_live()
        .table_name(table)
        .time_to_live_specification(ttl.build().map_err(incomplete)?)
        .send()
        .await
        .map_err(|e| store_error("UpdateTimeToLive", table, &e))?;
    Ok(())
}

async fn wait_until_active(requests: &Requests, table: &str) -> Result<(), StoreError> {
    for _ in 0..POLLS_MAX {
        let described = requests.client.describe_table().table_name(table).send().await;
        let described = described.map_err(|e| store_error("DescribeTable", table, &e))?;
        if let Some(described) = described.table() {
            is_lock_table(table, described, &requests.names.id)?;
            if described.table_status() == Some(&TableStatus::Active) {
                return Ok(());
            }
        }
        tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
    }
    Err(StoreError::new(StoreErrorKind::Unreachable, format!("table {table:?} was not active after a minute")))
}
