//! The templates keep up with the repository's own `template.yaml`: what is added has the shape of what is there.

use std::fs;

use claimant_template::{Kind, Node, parse};

use crate::{root, workspace, written};

fn yaml(path: &std::path::Path) -> Node {
    parse(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A value as lines that each begin with `start`, a line's end and its indent; what is under the keys of `left_out` is not there.
fn text(node: &Node, start: &str, left_out: &[&str]) -> String {
    let within = format!("{start}  ");
    match &node.kind {
        Kind::Null => "null".to_owned(),
        Kind::Text(text) => text.to_string(),
        Kind::Call(name, argument) => format!("!{name} {}", text(argument, start, left_out)),
        Kind::List(items) => items.iter().map(|item| format!("{start}- {}", text(item, &within, left_out))).collect(),
        Kind::Map(entries) => {
            let value = |key, node| if left_out.contains(&key) { String::new() } else { text(node, &within, left_out) };
            entries.iter().map(|(key, node)| format!("{start}{key}: {}", value(&**key, node))).collect()
        }
    }
}

/// A function's resources and outputs as text, in the order of the template, its own name for `NAME` and what is said of it
/// in words left out.
fn shape(template: &Node, resources: &str, name: &str) -> Vec<String> {
    let mut shapes = Vec::new();
    for section in ["Resources", "Outputs"] {
        for (id, resource) in template.get(section).unwrap().entries() {
            let Some(kind) = id.strip_prefix(resources) else { continue };
            let text = text(resource, "\n", &["Description", "Consequence"]);
            shapes.push(format!("{kind}:{}\n", text.replace(resources, "RESOURCE").replace(name, "NAME")));
        }
    }
    shapes
}

#[test]
fn a_consumer_has_the_shape_of_those_that_are_there() {
    let workspace = workspace();
    written(workspace.path(), "order-packing", &[]);
    let template = yaml(&workspace.path().join("template.yaml"));
    // `payment` has nothing of its own but two variables, and a breaker that pauses its mapping.
    let own = [
        "GATEWAY_",
        "claimant-breaker#*",
        "CLAIMANT_RESUME_ROLE_ARN",
        "- PausesOnOutage",
        "- !GetAtt RESOURCEResumeRole.Arn",
        "- !Ref AWS::NoValue",
    ];
    let shared = |line: &&str| !own.iter().any(|own| line.contains(own));
    let payment = shape(&template, "Payment", "payment");
    let payment: Vec<_> = payment
        .iter()
        .filter(|text| !["PausePolicy:", "ResumeRole:", "ResumePolicy:"].iter().any(|own| text.starts_with(own)))
        .map(|text| text.lines().filter(shared).collect::<Vec<_>>().join("\n") + "\n")
        .collect();
    let added = shape(&template, "OrderPacking", "order-packing");
    assert_eq!(added.len(), 7 + 3, "{added:?}");
    assert_eq!(added, payment);
}

#[test]
fn a_project_shares_what_this_repository_shares() {
    let here = tempfile::TempDir::new().unwrap();
    written(here.path(), "welcome", &["--project"]);
    let (ours, theirs) = (yaml(&root().join("template.yaml")), yaml(&here.path().join("welcome/template.yaml")));
    for path in [
        ["Globals", "Function"],
        ["Resources", "LockTable"],
        ["Resources", "ConsumerPolicy"],
        ["Outputs", "LockTableName"],
        ["Parameters", "AlarmTopicArn"],
    ] {
        let [section, key] = path;
        let value = |template: &Node| text(template.get(section).unwrap().get(key).unwrap(), "\n", &[]);
        assert_eq!(value(&theirs), value(&ours), "{path:?}");
    }
}
