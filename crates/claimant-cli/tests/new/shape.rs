//! The templates keep up with the repository's own `template.yaml`: what is added has the shape of what is there.

use std::fs;

use serde_yaml_ng::Value;

use crate::{root, workspace, written};

fn yaml(path: &std::path::Path) -> Value {
    serde_yaml_ng::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A function's resources and outputs as text, in the order of the template, its own name for `NAME` and what is said of it
/// in words left out.
fn shape(template: &Value, resources: &str, name: &str) -> Vec<String> {
    let mut shapes = Vec::new();
    for (section, depth) in [("Resources", 4), ("Outputs", 1)] {
        for (id, resource) in template[section].as_mapping().unwrap() {
            let id = id.as_str().unwrap();
            let Some(kind) = id.strip_prefix(resources) else { continue };
            let mut resource = resource.clone();
            blank(&mut resource, depth);
            let text = serde_yaml_ng::to_string(&resource).unwrap();
            shapes.push(format!("{kind}:\n{}", text.replace(resources, "RESOURCE").replace(name, "NAME")));
        }
    }
    shapes
}

/// Blanks out what each function says in its own words.
fn blank(value: &mut Value, depth: u32) {
    let Some(map) = value.as_mapping_mut() else { return };
    for (key, value) in map.iter_mut() {
        match key.as_str() {
            Some("Description" | "Consequence") => *value = Value::Null,
            _ if depth > 0 => blank(value, depth - 1),
            _ => {}
        }
    }
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
    ] {
        let [section, key] = path;
        assert_eq!(theirs[section][key], ours[section][key], "{path:?}");
    }
    assert_eq!(theirs["Parameters"]["AlarmTopicArn"], ours["Parameters"]["AlarmTopicArn"]);
}
