//! A workspace and a template of one's own, which say less than those of this repository, or something else.

use std::collections::BTreeMap;
use std::fs;

use claimant_local::stack::Stack;

use crate::{claimant_new, root, workspace, written};

/// A template of one's own that has what consumers share, and functions of another kind.
#[test]
fn a_function_counts_on_nothing_that_the_template_does_not_say() {
    let own = fs::read_to_string("templates/project/template.yaml.in").unwrap();
    let (before, after) = own.split_once("Globals:").unwrap();
    let (ours, after) = after.split_once("\nResources:").unwrap();
    let of_another_kind = "\n  Function: {Handler: app.handler, Runtime: python3.13, Timeout: 300}\n";
    let without_table = ours.split_once("    Environment:").unwrap().0;
    let (one, several) = ("CLAIMANT_TABLE: !Ref LockTable", "CLAIMANT_TABLE: !Sub '${LockTable},locks-2'");
    let of_several = ours.replace(one, several);
    let in_vpc = format!("{ours}    VpcConfig: {{SubnetIds: [subnet-1], SecurityGroupIds: [sg-1]}}\n");
    for (globals, lines) in
        [(ours, 0), (&*in_vpc, 0), (without_table, 1), (&*of_several, 1), (of_another_kind, 7), ("", 7)]
    {
        let workspace = workspace();
        let template = workspace.path().join("template.yaml");
        let globals = if globals.is_empty() { String::new() } else { format!("Globals:{globals}") };
        fs::write(&template, format!("{before}{globals}\nResources:{after}")).unwrap();
        fs::remove_dir_all(workspace.path().join("infra")).unwrap();
        written(workspace.path(), "welcome", &[]);
        let stack = Stack::load(&template, &BTreeMap::new()).unwrap();
        let function = &stack.functions[0];
        assert_eq!(
            (function.timeout.as_secs(), &*function.environment["CLAIMANT_TABLE"]),
            (30, "LockTable"),
            "{globals}"
        );
        let text = fs::read_to_string(&template).unwrap();
        let section = text.split_once("  WelcomeFunction:").unwrap().1.split_once("  WelcomeLogs:").unwrap().0;
        let own =
            ["Handler:", "Runtime:", "Architectures:", "MemorySize:", "Timeout:", "LogFormat:", "CLAIMANT_TABLE:"];
        assert_eq!(own.iter().filter(|key| section.contains(*key)).count(), lines, "{section}");
        let role = text.split_once("  WelcomeRole:").unwrap().1.split_once("  WelcomeAlarms:").unwrap().0;
        assert_eq!(role.contains("- ec2:CreateNetworkInterface\n"), globals.contains("VpcConfig"), "{role}");
        let (system, _) = claimant_doctor::read(&template, &Default::default()).unwrap();
        let found = claimant_doctor::run(&system).findings;
        assert!(found.is_empty(), "{globals}: {found:#?}");
        assert!(workspace.path().join("infra/alarms.yaml").is_file());
    }
    let workspace = workspace();
    let template = workspace.path().join("template.yaml");
    let moving = ours.replace(one, &format!("{several}\n        CLAIMANT_TABLE_BEFORE: !Ref LockTable"));
    fs::write(&template, format!("{before}Globals:{moving}\nResources:{after}")).unwrap();
    let output = claimant_new(workspace.path(), "welcome", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("Globals have CLAIMANT_TABLE_BEFORE"), "{errors}");
    fs::copy(root().join("template.yaml"), &template).unwrap();
    fs::write(workspace.path().join("infra/alarms.yaml"), "Resources: {}\n").unwrap();
    let output = claimant_new(workspace.path(), "welcome", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("infra/alarms.yaml is not claimant's"), "{errors}");
}

#[test]
fn a_package_in_the_workspace_s_manifest_is_not_its_members() {
    let workspace = workspace();
    let manifest = workspace.path().join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let moved = text.replace("[workspace.package]", "[package]").replace("[workspace.dependencies]", "[dependencies]");
    fs::write(&manifest, moved).unwrap();
    let output = claimant_new(workspace.path(), "welcome", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    for wanted in ["[workspace.package] has no `edition`", "[workspace.dependencies] has no `claimant`"] {
        assert!(errors.contains(wanted), "{wanted} in {errors}");
    }
    fs::write(&manifest, text.replace("[workspace.lints.", "[workspace.metadata.")).unwrap();
    written(workspace.path(), "welcome", &[]);
    let member = fs::read_to_string(workspace.path().join("functions/welcome/Cargo.toml")).unwrap();
    assert!(!member.contains("[lints]"), "{member}");
}
