//! What SAM makes of a function's own properties and of those of `Globals`.

use claimant_template::{Kind, Node};

use super::part::{MACRO, Part};
use super::resources::Resource;

/// What `Globals` are for.
const OF_SAM: &str = "AWS::Serverless::Function";

/// The properties of a function, with those that are global where it is one of SAM's.
pub(super) fn properties<'s>(function: &Resource<'s>) -> Part<'s> {
    match (global(function), function.node.get("Properties")) {
        (Some(global), Some(own)) => Part::new(function.scope, &merged(&global, own)),
        (Some(global), None) => Part::new(function.scope, &global),
        (None, _) => function.properties(),
    }
}

/// The properties that are global, without those that the function says to ignore.
fn global(function: &Resource<'_>) -> Option<Node> {
    let global = function.scope.root.get("Globals")?.get("Function").filter(|_| function.kind == OF_SAM)?;
    let Some(ignored) = function.node.get("IgnoreGlobals") else { return Some(global.clone()) };
    if ignored.as_text() == Some("*") {
        return None;
    }
    let is_ignored = |key: &str| ignored.items().iter().any(|one| one.as_text() == Some(key));
    let entries = global.entries().iter().filter(|(key, _)| !is_ignored(key)).cloned();
    Some(Node { line: global.line, kind: Kind::Map(entries.collect()) })
}

/// Mappings that are written out in both are one, and so are lists, with the global items first. Anything else that the function has takes the
/// place of what is global: `AWS::NoValue`, too, and a function of CloudFormation, whatever it comes to.
fn merged(global: &Node, own: &Node) -> Node {
    let of_all = match (&global.kind, &own.kind) {
        (Kind::Map(of_all), Kind::Map(_)) => of_all,
        (Kind::List(first), Kind::List(then)) => {
            return Node { line: own.line, kind: Kind::List(first.iter().chain(&**then).cloned().collect()) };
        }
        _ => return own.clone(),
    };
    // What a macro adds goes before what is global.
    if own.get(MACRO).is_some() {
        return own.clone();
    }
    let shared = of_all.iter().map(|(key, value)| {
        let value = own.get(key).map_or_else(|| value.clone(), |own| merged(value, own));
        (key.clone(), value)
    });
    let others = own.entries().iter().filter(|(key, _)| global.get(key).is_none()).cloned();
    Node { line: own.line, kind: Kind::Map(shared.chain(others).collect()) }
}
