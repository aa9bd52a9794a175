//! Where a function's records are, as its template says.

use claimant_doctor::fact::Fact;
use claimant_doctor::model::{Function, Link, System, Table};

use crate::noting::Noting;
use crate::plan::Store;

/// Where records are.
#[derive(Debug, Clone, PartialEq)]
pub enum Records {
    /// One or more tables of DynamoDB.
    Tables(Tables),
    /// PostgreSQL, MySQL or Redis.
    Instance,
}

/// The lock table, or the several that are one.
#[derive(Debug, Clone, PartialEq)]
pub struct Tables {
    /// Their names, as far as those are known.
    pub names: Vec<String>,
    /// How all of them are paid.
    pub store: Store,
    /// Write units a second that all of them take at most, if they are on demand with a maximum.
    pub most_writes: Option<f64>,
    /// Whether they have point-in-time recovery.
    pub recovery: bool,
    /// In how many Regions each is.
    pub replicas: f64,
    /// Whether they are of the class for infrequent access.
    pub infrequent: bool,
    /// Whether records are moved there from tables before.
    pub moving: bool,
}

impl Tables {
    /// Returns how many there are.
    pub fn count(&self) -> f64 {
        // OK because there are 16 at most.
        self.names.len().max(1) as f64
    }
}

/// Returns where the records of a function are; `is_shared` if another queue of it has its own there, too.
pub(crate) fn records(system: &System, function: &Function, is_shared: bool, noting: &mut Noting) -> Records {
    let found: Vec<_> = system
        .tables
        .iter()
        .filter(|table| system.consumers_of(table).any(|one| one.place == function.place))
        .collect();
    let named = function.environment.get("CLAIMANT_TABLE").and_then(Fact::known);
    let names: Vec<_> = named.into_iter().flat_map(Link::each).map(|link| link.text().to_owned()).collect();
    if found.is_empty() && function.has_records_elsewhere() {
        return Records::Instance;
    }
    let before = function.environment.get("CLAIMANT_TABLE_BEFORE");
    let before = before.map_or(Fact::Known(None), |before| before.clone().map(Some));
    let moving = noting.or_unset("CLAIMANT_TABLE_BEFORE", &before).is_some();
    let Some(first) = found.first() else {
        noting.note("its table: on demand, with point-in-time recovery, in one Region");
        let store = Store::OnDemand;
        return Records::Tables(Tables {
            names,
            store,
            most_writes: None,
            recovery: true,
            replicas: 1.0,
            infrequent: false,
            moving,
        });
    };
    let id = &first.place.id;
    if found.len() < names.len() || found.iter().any(|other| !are_alike(first, other)) {
        noting.note(format!("all of its {} tables: as {id}", names.len()));
    }
    // OK because these are small numbers.
    let replicas = noting.or("Replicas", &first.replicas, 1).max(1) as f64;
    if replicas > 1.0 {
        noting.note(format!("{replicas} replicas: each Region has these prices, for its writes and its storage"));
    }
    let store = store(first, names.len(), noting);
    if matches!(store, Store::Fixed { .. }) && (is_shared || system.consumers_of(first).count() > 1) {
        noting.note(format!(
            "the capacity of {id}, and what another BillingMode saves: all of it for this one, though others use it"
        ));
    }
    let mut most = || noting.or_unset("MaxWriteRequestUnits", &first.capacity.most_write_units);
    let most = if store == Store::OnDemand { most() } else { None };
    Records::Tables(Tables {
        // OK because these are small numbers.
        most_writes: most.map(|most| most as f64 * names.len().max(1) as f64),
        names,
        store,
        recovery: noting.or("point-in-time recovery", &first.recovery, false),
        replicas,
        infrequent: noting.or("infrequent access", &first.infrequent, false),
        moving,
    })
}

fn are_alike(one: &Table, other: &Table) -> bool {
    let capacity = |table: &Table| {
        let capacity = &table.capacity;
        (capacity.provisioned, capacity.fixed, capacity.units, capacity.most_write_units)
    };
    let (replicas, infrequent) = (one.replicas == other.replicas, one.infrequent == other.infrequent);
    capacity(one) == capacity(other) && one.recovery == other.recovery && replicas && infrequent
}

/// How so many tables like this one are paid.
fn store(table: &Table, count: usize, noting: &mut Noting) -> Store {
    let capacity = &table.capacity;
    if !noting.or("provisioned capacity", &capacity.provisioned, false) {
        return Store::OnDemand;
    }
    match (&capacity.fixed, &capacity.units) {
        (Fact::Known(false), _) => Store::Provisioned,
        (Fact::Known(true), Fact::Known((reads, writes))) => {
            let all = |each: &u64| *each as f64 * count as f64;
            Store::Fixed { writes: all(writes), reads: all(reads) }
        }
        (Fact::Known(true), Fact::Unknown) => {
            noting.note("its capacity: as if it scaled, with alarms; nothing scales it, and its units are not known (--parameter)");
            Store::Provisioned
        }
        (Fact::Unknown, _) => {
            noting.note("its capacity: scales with the load");
            Store::Provisioned
        }
    }
}
