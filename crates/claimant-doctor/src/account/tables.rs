//! The lock tables.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::answers::{Account, Asker, Refused, Service, text};
use super::names::place;
use crate::environment::{TABLE, TABLE_BEFORE};
use crate::fact::Fact;
use crate::model::{Access, Capacity, Key, Link, System, Table};

/// What names a function's lock tables, and those that its records are moved from; with whether they are lock tables.
const NAMED_BY: [(&str, bool); 2] = [(TABLE, true), (TABLE_BEFORE, false)];

/// Adds the lock tables of all functions, and those that had the records before; returns which were asked for. A table's id is its name; its
/// ARN if it is another account's.
pub(super) async fn read<A: Account>(asker: &Asker<'_, A>, system: &mut System) -> BTreeSet<String> {
    let mut names = BTreeMap::new();
    for function in system.functions.iter().filter(|function| !function.has_records_elsewhere()) {
        for (variable, is_lock_table) in NAMED_BY {
            let links = function.environment.get(variable).and_then(Fact::known).into_iter().flat_map(Link::each);
            for name in links.map(Link::text).filter(|name| !name.is_empty()) {
                *names.entry(name.to_owned()).or_default() |= is_lock_table;
            }
        }
    }
    let asked = names.keys().cloned().collect();
    let mut with_keys = Vec::new();
    for (name, is_lock_table) in names {
        match table(asker, &name, is_lock_table).await {
            Ok(Some(table)) => {
                with_keys.extend(table.access.key.known().is_some_and(Option::is_some).then_some(name));
                system.tables.push(table);
            }
            Ok(None) => {}
            // One of another account has its ARN here.
            Err(_) if !name.starts_with("arn:") => system.home.gone.tables.push(place(&name)),
            Err(refused) => asker.note(refused.to_string()),
        }
    }
    if !with_keys.is_empty() {
        let tables = with_keys.join(", ");
        asker.note(format!(
            "whether roles may use the KMS keys of {tables}: neither whose they are nor their policies are asked for (check 18)"
        ));
    }
    asked
}

/// A table; what checks of lock tables alone look at is not asked for otherwise.
async fn table<A: Account>(asker: &Asker<'_, A>, name: &str, is_lock_table: bool) -> Result<Option<Table>, Refused> {
    let get = async |operation| asker.get(Service::DynamoDb, operation, json!({"TableName": name})).await;
    let of_lock_table = async |operation| if is_lock_table { get(operation).await } else { None };
    let Some(answer) = described(asker, name).await? else { return Ok(None) };
    let found = &answer["Table"];
    let ttl = of_lock_table("DescribeTimeToLive").await;
    let backups = of_lock_table("DescribeContinuousBackups").await;
    let insights = of_lock_table("DescribeContributorInsights").await;
    let has_policy = has_policy(asker, text(found, "TableArn").unwrap_or(name)).await;
    let is_fixed = text(&found["BillingModeSummary"], "BillingMode") != Some("PAY_PER_REQUEST");
    let others = other_regions(found);
    if is_lock_table && !others.is_empty() {
        let others = others.join(", ");
        asker.note(format!(
            "the replicas of {name} in {others}: what protects them is asked for in this Region only (check 25)"
        ));
    }
    let recovery = |answer: Value| {
        let status = &answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"];
        text(status, "PointInTimeRecoveryStatus") == Some("ENABLED")
    };
    Ok(Some(Table {
        place: place(name),
        key: key(found).into(),
        ttl: ttl.map(|answer| ttl_of(&answer["TimeToLiveDescription"])).into(),
        recovery: backups.map(recovery).into(),
        // The policies of its stack are not seen from here.
        protected: if found["DeletionProtectionEnabled"] == true { Fact::Known(true) } else { Fact::Unknown },
        access: Access { has_policy, key: Fact::Known(key_of(found)) },
        capacity: Capacity {
            provisioned: Fact::Known(is_fixed),
            // Whether something scales it is another service's knowledge.
            fixed: if is_fixed { Fact::Unknown } else { Fact::Known(false) },
            units: Fact::Unknown,
            // None is left out, or -1.
            most_write_units: Fact::Known(found["OnDemandThroughput"]["MaxWriteRequestUnits"].as_u64()),
            warm_write_units: found["WarmThroughput"]["WriteUnitsPerSecond"].as_u64().into(),
            insights: insights.map(|answer| text(&answer, "ContributorInsightsStatus") == Some("ENABLED")).into(),
        },
        eventual_replicas: Fact::Known(!others.is_empty() && text(found, "MultiRegionConsistency") != Some("STRONG")),
        replicas: Fact::Unknown,
        infrequent: Fact::Unknown,
    }))
}

/// Asks for the table itself.
pub(super) async fn described<A: Account>(asker: &Asker<'_, A>, name: &str) -> Result<Option<Value>, Refused> {
    asker.find(Service::DynamoDb, "DescribeTable", json!({"TableName": name})).await
}

/// The other Regions that a global table is in.
fn other_regions(found: &Value) -> Vec<&str> {
    let own = text(found, "TableArn").and_then(|arn| arn.split(':').nth(3));
    let replicas = found["Replicas"].as_array().into_iter().flatten();
    replicas.filter_map(|replica| text(replica, "RegionName")).filter(|region| Some(*region) != own).collect()
}

/// Whether the table with this ARN has a policy of its own, or that is not known.
async fn has_policy<A: Account>(asker: &Asker<'_, A>, arn: &str) -> bool {
    match asker.ask(Service::DynamoDb, "GetResourcePolicy", json!({"ResourceArn": arn})).await {
        Ok(_) => true,
        Err(refused) if refused.code.starts_with("PolicyNotFound") => false,
        Err(refused) => {
            asker.note(refused.to_string());
            true
        }
    }
}

/// The table's key, which may be AWS's own; nothing where DynamoDB has it.
fn key_of(found: &Value) -> Option<Key> {
    let key = text(&found["SSEDescription"], "KMSMasterKeyArn")?;
    Some(Key::Own { link: Link::Elsewhere(key.to_owned()), by_iam_only: Fact::Unknown })
}

/// The attributes of the table's primary key with their types.
fn key(found: &Value) -> Option<Vec<String>> {
    let definitions = found["AttributeDefinitions"].as_array()?;
    let of = |key: &Value| {
        let name = text(key, "AttributeName")?;
        let definition = definitions.iter().find(|one| text(one, "AttributeName") == Some(name))?;
        Some(format!("{name} {}", text(definition, "AttributeType")?))
    };
    found["KeySchema"].as_array()?.iter().map(of).collect()
}

fn ttl_of(found: &Value) -> Option<String> {
    let is_on = matches!(text(found, "TimeToLiveStatus"), Some("ENABLED" | "ENABLING"));
    text(found, "AttributeName").filter(|_| is_on).map(str::to_owned)
}
