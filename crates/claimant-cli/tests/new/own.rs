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
    let lock_table = after.split_once("  LockTable:").unwrap().1.split_once("\n\n").unwrap().0;
    let after = &format!("\n  LockTable2:{lock_table}\n{after}");
    let of_another_kind = "\n  Function: {Handler: app.handler, Runtime: python3.13, Timeout: 300}\n";
    let without_table = ours.split_once("    Environment:").unwrap().0;
    let one = "CLAIMANT_TABLE: !Ref LockTable";
    let with = |tables: &str| ours.replace(one, &format!("CLAIMANT_TABLE: {tables}"));
    let (two, joined) =
        (with("!Sub '${LockTable},${LockTable2}'"), with("!Join [',', [!Ref LockTable, !Ref LockTable2]]"));
    let by_arn = with("!GetAtt LockTable.Arn");
    let by_arns = with("!Join [',', [!GetAtt [LockTable, Arn], !Sub '${LockTable2.Arn}']]");
    let (of_another, of_a_parameter) = (with("!Sub '${LockTable},locks-2'"), with("!Ref AlarmTopicArn"));
    let in_vpc = format!("{ours}    VpcConfig: {{SubnetIds: [subnet-1], SecurityGroupIds: [sg-1]}}\n");
    let (traced, untraced) = (format!("{ours}    Tracing: Active\n"), format!("{ours}    Tracing: PassThrough\n"));
    let sends = "    DeadLetterQueue: {Type: SQS, TargetArn: arn:aws:sqs:eu-west-1:123456789012:late}\n";
    let sends = format!("{ours}{sends}    EventInvokeConfig: {{MaximumRetryAttempts: 1}}\n");
    let destination = "{OnFailure: {Type: SNS, Destination: arn:aws:sns:eu-west-1:123456789012:late}}";
    let files = "[{Arn: arn:aws:elasticfilesystem:eu-west-1:123456789012:access-point/a, LocalMountPath: /mnt/a}]";
    let mounts =
        format!("{ours}    EventInvokeConfig: {{DestinationConfig: {destination}}}\n    FileSystemConfigs: {files}\n");
    let of_roles = "    PermissionsBoundary: arn:aws:iam::123456789012:policy/all\n    RolePath: /functions/\n";
    let of_roles = format!("{ours}{of_roles}    AssumeRolePolicyDocument: {{Version: '2012-10-17', Statement: []}}\n");
    let (own_store, both) = ("LockTable", "LockTable,LockTable2");
    for (globals, lines, tables) in [
        (ours, 0, own_store),
        (&*in_vpc, 0, own_store),
        (&*traced, 0, own_store),
        (&*untraced, 0, own_store),
        (&*sends, 0, own_store),
        (&*mounts, 0, own_store),
        (&*of_roles, 0, own_store),
        (&*two, 0, both),
        (&*joined, 0, both),
        (&*by_arn, 0, own_store),
        (&*by_arns, 0, both),
        (&*of_another, 1, own_store),
        (&*of_a_parameter, 1, own_store),
        (without_table, 1, own_store),
        (of_another_kind, 7, own_store),
        ("", 7, own_store),
    ] {
        let workspace = workspace();
        let template = workspace.path().join("template.yaml");
        let globals = if globals.is_empty() { String::new() } else { format!("Globals:{globals}") };
        fs::write(&template, format!("{before}{globals}\nResources:{after}")).unwrap();
        fs::remove_dir_all(workspace.path().join("infra")).unwrap();
        let said = written(workspace.path(), "welcome", &[]);
        let has_own_store = globals.contains("locks-2") || globals.contains("CLAIMANT_TABLE: !Ref AlarmTopicArn");
        assert_eq!(said.contains("a store of its own"), has_own_store, "{said}");
        for (what, needed, asked) in [
            (
                "DeadLetterQueue",
                "WelcomeRole, or once to ConsumerPolicy, sqs:SendMessage on the queue",
                globals.contains("DeadLetterQueue"),
            ),
            ("EventInvokeConfig", "and for a bucket s3:ListBucket on it", globals.contains("DestinationConfig")),
            (
                "FileSystemConfigs",
                "ConsumerPolicy, what a policy of the file system",
                globals.contains("FileSystemConfigs"),
            ),
        ] {
            let is_said = said.contains(&format!("Globals have {what},")) && said.contains(needed);
            assert_eq!(is_said, asked, "{what}: {said}");
        }
        for (what, property) in [
            ("PermissionsBoundary", "PermissionsBoundary"),
            ("RolePath", "Path"),
            ("AssumeRolePolicyDocument", "AssumeRolePolicyDocument"),
        ] {
            let is_said = said.contains(&format!("Globals have {what}, which SAM gives only to roles"))
                && said.contains(&format!("give WelcomeRole the same, as its {property}."));
            assert_eq!(is_said, globals.contains(what), "{what}: {said}");
        }
        let stack = Stack::load(&template, &BTreeMap::new()).unwrap();
        let function = &stack.functions[0];
        let named = function.environment["CLAIMANT_TABLE"].split(',').map(|table| table.rsplit('/').next().unwrap());
        let named = named.collect::<Vec<_>>().join(",");
        assert_eq!((function.timeout.as_secs(), &*named), (30, tables), "{globals}");
        let text = fs::read_to_string(&template).unwrap();
        let section = text.split_once("  WelcomeFunction:").unwrap().1.split_once("  WelcomeLogs:").unwrap().0;
        let own =
            ["Handler:", "Runtime:", "Architectures:", "MemorySize:", "Timeout:", "LogFormat:", "CLAIMANT_TABLE:"];
        assert_eq!(own.iter().filter(|key| section.contains(*key)).count(), lines, "{section}");
        let role = text.split_once("  WelcomeRole:").unwrap().1.split_once("  WelcomeAlarms:").unwrap().0;
        assert_eq!(role.contains("- ec2:CreateNetworkInterface\n"), globals.contains("VpcConfig"), "{role}");
        assert_eq!(role.contains("[xray:PutTraceSegments, "), globals.contains("Tracing: Active"), "{role}");
        let arns = "Resource: [!GetAtt LockTable.Arn, !GetAtt LockTable2.Arn]\n";
        assert_eq!(role.contains(arns), tables == both, "{role}");
        let (system, _) = claimant_doctor::read(&template, &Default::default()).unwrap();
        let found = claimant_doctor::run(&system).findings;
        assert!(found.is_empty(), "{globals}: {found:#?}");
        assert!(workspace.path().join("infra/alarms.yaml").is_file());
    }
    let workspace = workspace();
    let template = workspace.path().join("template.yaml");
    let moving = ours.replace(one, &format!("{one}\n        CLAIMANT_TABLE_BEFORE: !Ref LockTable2"));
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

/// What the user's own resources ask for: the command cannot know them.
#[test]
fn the_rights_that_only_the_user_can_give_are_said() {
    let ours = fs::read_to_string(root().join("template.yaml")).unwrap();
    let own = "{SSEEnabled: true, SSEType: KMS, KMSMasterKeyId: !Ref Key}";
    let key = &format!("SSESpecification: {own}");
    let may_be_own = format!("SSESpecification: !If [HasDashboards, {own}, {{SSEEnabled: true}}]");
    let of_aws = key.replace("!Ref Key", "alias/aws/dynamodb");
    let off = key.replace("SSEEnabled: true", "SSEEnabled: false");
    let plain = "SSESpecification:\n        SSEEnabled: true";
    let (lock_table, recovery) = ("  LockTable:\n    Type: AWS::DynamoDB::Table\n", "      PointInTimeRecovery");
    let global = lock_table.replace("::Table", "::GlobalTable");
    let replicas = format!("      Replicas: [{{Region: eu-west-1}}, {{Region: eu-north-1, {key}}}]\n{recovery}");
    let one = "        CLAIMANT_TABLE: !Ref LockTable\n";
    let role = |what: &str| format!("{one}        CLAIMANT_{what}_ROLE_ARN: !GetAtt Timer.Arn\n");
    let sealed = "LockTable is encrypted with a key of yours, or may be: before you deploy, add to WelcomeRole, or once to ConsumerPolicy, kms:Decrypt";
    for (changes, wanted) in [
        (&[(one, one)][..], None),
        (&[(plain, key)], Some(sealed)),
        (&[(plain, &may_be_own)], Some(sealed)),
        (&[(plain, &of_aws)], None),
        (&[(plain, &off)], None),
        (&[(lock_table, &global), (recovery, &replicas)], Some(sealed)),
        (
            &[(one, &role("RESUME"))],
            Some("have CLAIMANT_RESUME_ROLE_ARN, and so has the new function: add to WelcomeRole"),
        ),
        (&[(one, &role("SCHEDULE"))], Some("ConsumerPolicy, what claimant's docs/outcomes.md has for it")),
    ] {
        let workspace = workspace();
        let text = changes.iter().fold(ours.clone(), |text, (before, after)| text.replacen(before, after, 1));
        fs::write(workspace.path().join("template.yaml"), text).unwrap();
        let said = written(workspace.path(), "welcome", &["--dry-run"]);
        assert_eq!(said.contains("add to WelcomeRole"), wanted.is_some(), "{said}");
        assert!(wanted.is_none_or(|wanted| said.contains(wanted)), "{wanted:?} in {said}");
    }
}

#[test]
fn a_package_in_the_workspace_s_manifest_is_not_its_members() {
    let workspace = workspace();
    let manifest = workspace.path().join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    for (table, own, wanted) in [
        ("[workspace.package]", "[package]", "[workspace.package] has no `edition`"),
        ("[workspace.dependencies]", "[dependencies]", "[workspace.dependencies] has no `claimant`"),
    ] {
        fs::write(&manifest, text.replace(table, own)).unwrap();
        let output = claimant_new(workspace.path(), "welcome", &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(wanted), "{wanted} in {errors}");
    }
    fs::write(&manifest, text.replace("[workspace.lints.", "[workspace.metadata.")).unwrap();
    written(workspace.path(), "welcome", &[]);
    let member = fs::read_to_string(workspace.path().join("functions/welcome/Cargo.toml")).unwrap();
    assert!(!member.contains("[lints]"), "{member}");
}
