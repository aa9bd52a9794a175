//! Licences, sources, and which crate may use which, by `deny.toml`. It is what cargo-deny checks of the same file, without the
//! minutes of processor time in which a fresh clone would build that; `make package` runs cargo-deny itself.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use spdx::{Expression, ParseMode};

/// The one registry that dependencies come from.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What `deny.toml` says. A setting that is not known here is an error, since nothing would hold it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    #[serde(rename = "graph")]
    _graph: Graph,
    licenses: Licenses,
    bans: Bans,
    #[serde(rename = "sources")]
    _sources: Sources,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Graph {
    #[serde(rename = "all-features")]
    _all_features: True,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    #[serde(rename = "multiple-versions")]
    _multiple_versions: Warn,
    #[serde(rename = "wildcards")]
    _wildcards: Deny,
    #[serde(rename = "allow-wildcard-paths")]
    _allow_wildcard_paths: True,
    deny: Vec<Banned>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
    /// Those that may use it.
    #[serde(default)]
    wrappers: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Deny,
    #[serde(rename = "unknown-git")]
    _unknown_git: Deny,
}

/// The one value that is held.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Deny {
    Deny,
}

/// The one value that is held, by nothing: what only warns is not shown.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Warn {
    Warn,
}

/// The one value that is held.
#[derive(Debug, Deserialize)]
#[serde(try_from = "bool")]
struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value { Ok(Self) } else { Err("only `true` is held") }
    }
}

/// What `cargo metadata` says of the packages and of what each is built with.
#[derive(Debug, Deserialize)]
pub struct Graphed {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    license: Option<String>,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

/// Returns what breaks a rule, a line each.
#[must_use]
pub fn faults(rules: &Rules, graph: &Graphed) -> Vec<String> {
    let mut faults = Vec::new();
    for package in &graph.packages {
        let name = &package.name;
        if let Some(source) = package.source.as_ref().filter(|source| *source != CRATES_IO) {
            faults.push(format!("{name} comes from {source}: all dependencies come from crates.io"));
        }
        if let Err(reason) = rules.licenses.allows(package.license.as_deref()) {
            faults.push(format!("{name}: {reason}"));
        }
        for wanted in package.dependencies.iter().filter(|wanted| wanted.req == "*" && wanted.path.is_none()) {
            faults.push(format!("{name} takes any version of {}", wanted.name));
        }
    }
    let names: BTreeMap<_, _> = graph.packages.iter().map(|package| (&package.id, &package.name)).collect();
    let edges = graph.resolve.nodes.iter().flat_map(|node| node.dependencies.iter().map(move |used| (&node.id, used)));
    let edges: BTreeSet<_> = edges.map(|(user, used)| (names[user], names[used])).collect();
    for (user, used) in &edges {
        let bans = rules.bans.deny.iter().filter(|banned| banned.name == **used && !banned.wrappers.contains(user));
        faults.extend(bans.map(|banned| format!("{user} uses {used}, which only {:?} may", banned.wrappers)));
    }
    for Banned { name, wrappers } in
        rules.bans.deny.iter().filter(|banned| names.values().any(|name| **name == banned.name))
    {
        let idle = wrappers.iter().filter(|user| !edges.contains(&(*user, name)));
        faults.extend(idle.map(|user| format!("{user} may use {name}, and does not: take it off deny.toml")));
    }
    faults
}

impl Licenses {
    /// Says why these terms will not do.
    fn allows(&self, license: Option<&str>) -> Result<(), String> {
        let license = license.ok_or("it names no licence")?;
        let terms = Expression::parse_mode(license, ParseMode::LAX).map_err(|e| format!("{license}: {}", e.reason))?;
        let allowed = terms.evaluate(|asked| self.allow.contains(&asked.to_string()));
        if allowed { Ok(()) } else { Err(format!("the licence {license} is not among those of deny.toml")) }
    }
}
