//! The model of a template: SAM, CloudFormation, or what `cdk synth` writes.
//!
//! | module | holds |
//! | --- | --- |
//! | `scope` | CloudFormation's functions, as far as the template alone says what they come to |
//! | `parameters` | parameters, and their values |
//! | `part` | a place in a template, and its value |
//! | `resources` | the resources, and what refers to them |
//! | `options` | what is known beside the template, and why it cannot be read |
//! | `nested` | stacks that a template includes |
//! | `imports` | exports and outputs of other stacks |
//! | `together` | templates that are given together, and import from each other |
//! | `arns` | what is known of the ARN of a function, an alias or a version |
//! | `globals` | what SAM makes of a function's properties and of those that are global |
//! | `keys`, `policies` | keys of KMS, and what policies say |
//! | `database` | where the URL of a database leads |
//! | `events` | what of a function's events is a mapping |
//! | `queues`, `functions`, `mappings`, `tables`, `roles`, `watching` | what the model has of each |

mod arns;
mod database;
mod events;
mod functions;
mod globals;
mod imports;
mod keys;
mod mappings;
mod nested;
mod options;
mod parameters;
mod part;
mod policies;
mod queues;
mod resources;
mod roles;
mod scope;
mod tables;
mod together;
mod watching;

use std::collections::BTreeSet;
use std::path::Path;

use crate::checks;
use crate::fact::Fact;
use crate::finding::Report;
use crate::model::{Home, System};
pub use options::{Error, Options};
use resources::Resources;

/// Reads a template and those that it includes by a path; returns with it what was not looked at, and why.
///
/// # Errors
/// The file cannot be read, is too long, is neither YAML nor JSON, or has no resources; or it has no parameter of a name that a value is
/// given for, or forbids the value of one; or it, or one that is certain to be included, has resources of AWS SAM and no macro for them.
pub fn read(path: &Path, options: &Options) -> Result<(System, Vec<String>), Error> {
    read_as_one(&[path], options)
}

/// Reads several templates, as [`read`] does each, as one system: in it each id has the name of its template's file in front, where there are
/// several.
///
/// # Errors
/// As for [`read`]; a parameter has to be in one of them.
pub fn read_as_one(paths: &[impl AsRef<Path>], options: &Options) -> Result<(System, Vec<String>), Error> {
    let (system, not_looked_at, _) = read_groups(paths, together::all, options)?.remove(0);
    Ok((system, not_looked_at))
}

/// Reads several templates, as [`read`] does each; a parameter has to be in one of them. Those that import from each other are one system,
/// in which each id has the name of its template's file in front.
///
/// # Errors
/// As for [`read`].
pub fn read_all(paths: &[impl AsRef<Path>], options: &Options) -> Result<Vec<(System, Vec<String>)>, Error> {
    let read = read_groups(paths, together::importing, options)?.into_iter();
    Ok(read.map(|(system, not_looked_at, _)| (system, not_looked_at)).collect())
}

/// A system, what was not looked at, and the parameters without a value.
type Group = (System, Vec<String>, BTreeSet<String>);

fn read_groups(paths: &[impl AsRef<Path>], groups: together::Groups, options: &Options) -> Result<Vec<Group>, Error> {
    let paths: Vec<_> = paths.iter().map(AsRef::as_ref).collect();
    let group = |(paths, read): (Vec<&Path>, nested::Read)| {
        let (system, not_looked_at) = system(&paths, &read, options);
        (system, not_looked_at, nested::unvalued(&read))
    };
    Ok(together::read(&paths, groups, options)?.into_iter().map(group).collect())
}

/// Reads several templates, as [`read_all`] does, and runs the checks on them.
///
/// # Errors
/// As for [`read`].
pub fn examine_all(paths: &[impl AsRef<Path>], options: &Options) -> Result<Report, Error> {
    let mut report = Report::default();
    for (system, not_looked_at, unvalued) in read_groups(paths, together::importing, options)? {
        report.add(checks::run(&system));
        report.not_looked_at.extend(not_looked_at);
        report.unvalued.extend(unvalued);
    }
    Ok(report)
}

fn system(paths: &[&Path], read: &nested::Read, options: &Options) -> (System, Vec<String>) {
    let nested::Read { scopes, not_looked_at } = read;
    let (is_whole, mut not_looked_at) = (not_looked_at.is_empty(), not_looked_at.clone());
    let resources = Resources::new(scopes);
    let mappings = mappings::mappings(&resources);
    not_looked_at.extend(mappings::unread(&resources));
    if mappings.is_empty() {
        let known = if not_looked_at.is_empty() { "" } else { " that is known here" };
        let verb = if paths.len() == 1 { "has" } else { "have" };
        let paths = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        not_looked_at.push(format!("any consumer: {paths} {verb} no event source mapping from a queue{known}"));
    }
    not_looked_at.extend(scopes.iter().filter_map(nested::refused));
    not_looked_at.extend(scopes.iter().flat_map(nested::uncompared));
    not_looked_at.extend(resources.all.iter().flat_map(resources::Resource::wrongly_accepted));
    let roles = roles::Roles::new(&resources, is_whole);
    let alarms = watching::alarms(&resources);
    let system = System {
        queues: queues::queues(&resources),
        functions: functions::functions(&resources, &roles),
        mappings,
        mappings_elsewhere: Vec::new(),
        tables: tables::tables(&resources),
        alarms: if is_whole { alarms } else { Fact::Unknown },
        home: Home {
            region: options.region.clone().into(),
            account: options.account.clone().into(),
            ..Home::default()
        },
        database_connections: tables::connections(&resources),
        history: None,
        watching: watching::watching(&resources),
    };
    not_looked_at.extend(resources.unplaced());
    (system, not_looked_at)
}
