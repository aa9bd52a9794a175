//! The tables of a template, and its databases as far as they limit connections.

use super::keys;
use super::part::Part;
use super::resources::{Resource, Resources};
use crate::fact::{self, Fact};
use crate::model::{Access, Capacity, Key, Table};

pub(super) const TABLE: &[&str] =
    &["AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable", "AWS::Serverless::SimpleTable"];

/// What a target scales that scales a table's writes.
const OF_WRITES: &str = "dynamodb:table:WriteCapacityUnits";

/// What has the maximum of a table, and of a global one, that is on demand.
const MAXIMUM: [&str; 2] = ["OnDemandThroughput", "WriteOnDemandThroughputSettings"];

const PARAMETER_GROUPS: &[&str] = &["AWS::RDS::DBParameterGroup", "AWS::RDS::DBClusterParameterGroup"];

pub(super) fn tables(resources: &Resources<'_>) -> Vec<Table> {
    resources.of(TABLE).map(|resource| table(resources, resource)).collect()
}

fn table(resources: &Resources<'_>, resource: &Resource<'_>) -> Table {
    let properties = resource.properties();
    let is_global = resource.kind == TABLE[1];
    let is_simple = resource.kind == TABLE[2];
    // A global table says it for each replica.
    let replicas = if is_global { properties.at("Replicas").items() } else { Fact::Known(vec![properties.clone()]) };
    let each = |is_so: fn(&Part<'_>) -> Fact<bool>| all_are(&replicas, is_so);
    let protection = each(|replica| replica.at("DeletionProtectionEnabled").boolean_or(false));
    let recovery = each(|replica| {
        replica.under(&["PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"]).boolean_or(false)
    });
    let provisioned = if is_simple {
        properties.at("ProvisionedThroughput").is_given()
    } else {
        properties.at("BillingMode").text_is("PROVISIONED", "PROVISIONED")
    };
    // A global table that is provisioned has to scale; others may by a target of this template.
    let scales = if is_global { Fact::Known(true) } else { scales(resources, resource) };
    let retained = fact::all(["DeletionPolicy", "UpdateReplacePolicy"].map(|policy| retains(resource, policy)));
    Table {
        place: resource.place(),
        key: if is_simple { simple_key(&properties) } else { key(&properties).into() },
        ttl: ttl(&properties.at("TimeToLiveSpecification")),
        recovery,
        protected: match (retained, protection) {
            (Some(true), _) | (_, Fact::Known(true)) => Fact::Known(true),
            (Some(false), Fact::Known(false)) => Fact::Known(false),
            _ => Fact::Unknown,
        },
        access: Access {
            has_policy: each(|replica| replica.at("ResourcePolicy").is_given().map(|given| !given))
                != Fact::Known(true),
            key: key_of(resources, resource, &replicas),
        },
        capacity: Capacity {
            units: units(&properties.at("ProvisionedThroughput")),
            most_write_units: most(&properties.under(&[MAXIMUM[usize::from(is_global)], "MaxWriteRequestUnits"])),
            ..capacity(provisioned, scales)
        },
        eventual_replicas: if is_global { eventual(&properties) } else { Fact::Known(false) },
        infrequent: infrequent(&replicas),
        replicas: number_of(&replicas),
    }
}

/// Whether the table is kept by this policy, if that is known.
fn retains(resource: &Resource<'_>, policy: &str) -> Option<bool> {
    let policy = resource.part().at(policy).literal();
    policy.known().map(|policy| matches!(policy.as_deref(), Some("Retain" | "RetainExceptOnCreate")))
}

type Replicas<'s> = Fact<Vec<Part<'s>>>;

/// Not known where there is one that may be `AWS::NoValue`.
fn number_of(replicas: &Replicas<'_>) -> Fact<u64> {
    let all = replicas.known().filter(|all| all.iter().all(|replica| replica.is_given() == Fact::Known(true)));
    // OK because a template cannot have that many.
    all.map(|all| all.len() as u64).into()
}

/// Not known where there is none, which AWS refuses.
fn all_are<'s>(replicas: &Replicas<'s>, is_so: impl Fn(&Part<'s>) -> Fact<bool>) -> Fact<bool> {
    let some = replicas.known().filter(|all| !all.is_empty());
    let each = some.map(|all| all.iter().map(|replica| is_so(replica).known().copied()));
    each.and_then(fact::all).into()
}

/// Not known where replicas are of different classes.
fn infrequent(replicas: &Replicas<'_>) -> Fact<bool> {
    let is = |part: &Part<'_>| part.at("TableClass").text_is("STANDARD_INFREQUENT_ACCESS", "STANDARD");
    match (all_are(replicas, is), all_are(replicas, |part| is(part).map(|is| !is))) {
        (Fact::Known(true), _) => Fact::Known(true),
        (_, Fact::Known(true)) => Fact::Known(false),
        _ => Fact::Unknown,
    }
}

/// The key of the table in the stack's Region.
fn key_of(resources: &Resources<'_>, table: &Resource<'_>, replicas: &Replicas<'_>) -> Fact<Option<Key>> {
    let encryption = table.properties().at("SSESpecification");
    match encryption.at("SSEEnabled").boolean_or(false) {
        Fact::Known(true) => {}
        Fact::Known(false) => return Fact::Known(None),
        Fact::Unknown => return Fact::Unknown,
    }
    let Some(here) = replicas.known().and_then(|all| here(table, all)) else { return Fact::Unknown };
    let name = here.under(&["SSESpecification", "KMSMasterKeyId"]);
    match name.is_given() {
        Fact::Known(false) => Fact::Known(Some(Key::Default)),
        _ => keys::key(resources, &name, "alias/aws/dynamodb"),
    }
}

/// The replica in the stack's Region, as far as that is known.
fn here<'r, 's>(table: &Resource<'s>, replicas: &'r [Part<'s>]) -> Option<&'r Part<'s>> {
    let own = table.scope.pseudo.get("Region").map_or("${@Region}", String::as_str);
    let is_here = |replica: &&Part<'s>| replica.at("Region").text().known().cloned().flatten().as_deref() == Some(own);
    match replicas {
        [only] => Some(only),
        several => several.iter().find(is_here),
    }
}

/// The key's attributes with their types, in the order of the key.
fn key(properties: &Part<'_>) -> Option<Vec<String>> {
    let text = |part: Part<'_>| part.literal().known().cloned().flatten();
    let (schema, definitions) = (properties.at("KeySchema").items(), properties.at("AttributeDefinitions").items());
    let mut types = Vec::new();
    for definition in definitions.known()? {
        types.push((text(definition.at("AttributeName"))?, text(definition.at("AttributeType"))?));
    }
    let of = |attribute: &Part<'_>| {
        let name = text(attribute.at("AttributeName"))?;
        let kind = &types.iter().find(|(known, _)| *known == name)?.1;
        Some(format!("{name} {kind}"))
    };
    schema.known()?.iter().map(of).collect()
}

fn simple_key(properties: &Part<'_>) -> Fact<Vec<String>> {
    let key = properties.at("PrimaryKey");
    let (name, kind) = (key.at("Name").literal(), key.at("Type").literal());
    let (Fact::Known(name), Fact::Known(kind)) = (name, kind) else { return Fact::Unknown };
    let kind = match kind.as_deref() {
        None | Some("String") => "S",
        Some("Number") => "N",
        Some(_) => "B",
    };
    Fact::Known(vec![format!("{} {kind}", name.as_deref().unwrap_or("id"))])
}

fn ttl(specification: &Part<'_>) -> Fact<Option<String>> {
    match specification.at("Enabled").boolean_or(false) {
        Fact::Known(true) => specification.at("AttributeName").literal(),
        Fact::Known(false) => Fact::Known(None),
        Fact::Unknown => Fact::Unknown,
    }
}

/// Whether the capacity is provisioned, and whether nothing scales it then.
fn capacity(provisioned: Fact<bool>, scales: Fact<bool>) -> Capacity {
    let fixed = match provisioned {
        Fact::Known(true) => scales.map(|scales| !scales),
        other => other,
    };
    Capacity { provisioned, fixed, ..Capacity::default() }
}

/// The read and the write units of a provisioned throughput.
fn units(throughput: &Part<'_>) -> Fact<(u64, u64)> {
    let of = |name| throughput.at(name).number().known().copied().flatten();
    of("ReadCapacityUnits").zip(of("WriteCapacityUnits")).into()
}

/// A maximum; -1 takes one away.
fn most(units: &Part<'_>) -> Fact<Option<u64>> {
    if units.text_is("-1", "") == Fact::Known(true) { Fact::Known(None) } else { units.number() }
}

/// Whether a target of this template scales the table's writes.
fn scales(resources: &Resources<'_>, table: &Resource<'_>) -> Fact<bool> {
    let mut scales = Fact::Known(false);
    for target in resources.of(&["AWS::ApplicationAutoScaling::ScalableTarget"]) {
        let is_it = is_target(resources, &target.properties(), &table.id);
        match is_it {
            Fact::Known(true) if target.place().is_there_with(&table.place()) => return Fact::Known(true),
            Fact::Known(false) => {}
            _ => scales = Fact::Unknown,
        }
    }
    scales
}

fn is_target(resources: &Resources<'_>, target: &Part<'_>, table: &str) -> Fact<bool> {
    // No stack is made with a target that lacks its dimension.
    let is_of_writes = target.at("ScalableDimension").text_is(OF_WRITES, OF_WRITES);
    match (target.at("ServiceNamespace").text_is("dynamodb", ""), is_of_writes) {
        (Fact::Known(true), Fact::Known(true)) => {}
        (Fact::Known(false), _) | (_, Fact::Known(false)) => return Fact::Known(false),
        _ => return Fact::Unknown,
    }
    let Fact::Known(id) = target.at("ResourceId").text() else { return Fact::Unknown };
    let id = id.unwrap_or_default();
    match id.strip_prefix("table/") {
        // A table's index has a target of its own.
        Some(name) if !name.contains("/index/") => resources.led_to(name, TABLE).map(|link| link.is(table)),
        None if id.starts_with("${") => Fact::Unknown,
        _ => Fact::Known(false),
    }
}

fn eventual(properties: &Part<'_>) -> Fact<bool> {
    let strong = properties.at("MultiRegionConsistency").text_is("STRONG", "EVENTUAL");
    match (properties.at("Replicas").has_items(2), strong) {
        (Fact::Known(false), _) | (_, Fact::Known(true)) => Fact::Known(false),
        (Fact::Known(true), Fact::Known(false)) => Fact::Known(true),
        _ => Fact::Unknown,
    }
}

/// The least `max_connections` that the template sets.
pub(super) fn connections(resources: &Resources<'_>) -> Fact<Option<u64>> {
    let mut least = None;
    for group in resources.of(PARAMETER_GROUPS) {
        match group.properties().under(&["Parameters", "max_connections"]).number() {
            Fact::Known(Some(set)) => least = Some(least.map_or(set, |least: u64| least.min(set))),
            Fact::Known(None) => {}
            Fact::Unknown => return Fact::Unknown,
        }
    }
    Fact::Known(least)
}
