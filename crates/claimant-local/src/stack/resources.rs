//! Tables and buckets of a template.

use super::section::{Section, physical_name};
use super::spec::{KeyKind, KeySpec, TableSpec};
use super::template::Template;

/// The properties of a table that are read, and after them those of which there is nothing to see here.
const TABLE_PROPERTIES: [&str; 21] = [
    "TableName",
    "KeySchema",
    "PrimaryKey",
    "AttributeDefinitions",
    "TimeToLiveSpecification",
    "BillingMode",
    "ProvisionedThroughput",
    "OnDemandThroughput",
    "WarmThroughput",
    "WriteProvisionedThroughputSettings",
    "WriteOnDemandThroughputSettings",
    "ReadProvisionedThroughputSettings",
    "ReadOnDemandThroughputSettings",
    "TableClass",
    "DeletionProtectionEnabled",
    "PointInTimeRecoverySpecification",
    "ContributorInsightsSpecification",
    "SSESpecification",
    "ResourcePolicy",
    "Replicas",
    "Tags",
];

pub(super) fn tables(template: &Template<'_>) -> Vec<TableSpec> {
    let read =
        template.resources(&["AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable", "AWS::Serverless::SimpleTable"]);
    read.filter_map(|(id, table)| {
        let name = physical_name(template, id, &table, "TableName")?;
        let properties = table.section("Properties");
        properties.note_others(&[&TABLE_PROPERTIES]);
        let (partition_key, sort_key) = if properties.section("KeySchema").is_given() {
            full_key(&properties)?
        } else if table.section("Type").text()? == "AWS::Serverless::SimpleTable" {
            (simple_key(&properties.section("PrimaryKey"))?, None)
        } else {
            let schema = properties.section("KeySchema");
            match schema.is_missing() {
                true => schema.fault("is missing: give the table's key attributes"),
                false => table.not_run("table", "only AWS knows its key"),
            }
            return None;
        };
        Some(TableSpec {
            logical_id: id.to_owned(),
            name,
            partition_key,
            sort_key,
            ttl_attribute: ttl_attribute(&properties.section("TimeToLiveSpecification")),
        })
    })
    .collect()
}

/// Buckets, by their names. Events from them are not sent here.
pub(super) fn buckets(template: &Template<'_>) -> Vec<String> {
    let read = template.resources(&["AWS::S3::Bucket"]);
    read.filter_map(|(id, bucket)| {
        let notifications = bucket.section("Properties").section("NotificationConfiguration");
        if notifications.is_given() {
            notifications.not_run("S3 notifications", "nothing is sent when an object changes");
        }
        physical_name(template, id, &bucket, "BucketName")
    })
    .collect()
}

fn full_key(properties: &Section<'_>) -> Option<(KeySpec, Option<KeySpec>)> {
    let definitions = properties.section("AttributeDefinitions");
    let kinds: Vec<(String, KeyKind)> = definitions
        .items()
        .iter()
        .filter_map(|item| {
            let name = item.section("AttributeName").required_text("name the attribute")?;
            let kind = item.section("AttributeType");
            match kind.required_text("give S, N or B")?.as_str() {
                "S" => Some((name, KeyKind::S)),
                "N" => Some((name, KeyKind::N)),
                "B" => Some((name, KeyKind::B)),
                other => {
                    kind.fault(format!("must be S, N or B, not `{other}`"));
                    None
                }
            }
        })
        .collect();
    for name in unused(properties, &kinds) {
        definitions.fault(format!(
            "defines `{name}`, which no key and no index has: remove it, as DynamoDB refuses the table"
        ));
    }
    let schema = properties.section("KeySchema");
    let (mut partition, mut sort) = (None, None);
    for item in schema.items() {
        let name = item.section("AttributeName").required_text("name the attribute")?;
        let role = item.section("KeyType").required_text("give HASH or RANGE")?;
        let Some((_, kind)) = kinds.iter().find(|(defined, _)| *defined == name) else {
            definitions.fault(format!("does not define the key attribute `{name}`: add it with its type"));
            return None;
        };
        let key = KeySpec { name, kind: *kind };
        let slot = match role.as_str() {
            "HASH" => &mut partition,
            "RANGE" => &mut sort,
            other => {
                item.fault(format!("KeyType must be HASH or RANGE, not `{other}`"));
                return None;
            }
        };
        if slot.replace(key).is_some() {
            item.fault(format!("is a second {role} key: a table has one HASH and at most one RANGE key"));
        }
    }
    if partition.is_none() {
        schema.fault("has no HASH key: add the partition key");
    }
    Some((partition?, sort))
}

/// The attributes that are defined, and in no key of the table and its indexes; none where not all keys are known.
fn unused<'a>(properties: &Section<'_>, defined: &'a [(String, KeyKind)]) -> Vec<&'a str> {
    let mut indexes = Vec::new();
    for (_, list) in properties.entries().into_iter().filter(|(name, _)| name.ends_with("SecondaryIndexes")) {
        let items = list.items();
        // Such as those of a macro.
        if items.is_empty() {
            return Vec::new();
        }
        indexes.extend(items);
    }
    let schemas = indexes.iter().chain([properties]).flat_map(|owner| owner.section("KeySchema").items());
    let Some(used) = schemas.map(|item| item.section("AttributeName").text()).collect::<Option<Vec<_>>>() else {
        return Vec::new();
    };
    defined.iter().map(|(name, _)| name.as_str()).filter(|name| !used.iter().any(|used| used == name)).collect()
}

/// SAM's default is a string attribute called `id`.
fn simple_key(key: &Section<'_>) -> Option<KeySpec> {
    let name = key.section("Name").text().unwrap_or_else(|| "id".to_owned());
    let type_name = key.section("Type").text().unwrap_or_else(|| "String".to_owned());
    let kind = match type_name.as_str() {
        "String" => KeyKind::S,
        "Number" => KeyKind::N,
        "Binary" => KeyKind::B,
        other => {
            key.fault(format!("Type must be String, Number or Binary, not `{other}`"));
            return None;
        }
    };
    Some(KeySpec { name, kind })
}

fn ttl_attribute(specification: &Section<'_>) -> Option<String> {
    if !specification.is_given() || specification.section("Enabled").boolean() != Some(true) {
        return None;
    }
    specification.section("AttributeName").required_text("name the attribute that holds the expiry time")
}
