//! What `cdk synth` writes, cut down: functions by an alias or a version, and ARNs that are written out.

use std::fs;
use std::path::PathBuf;

use claimant_doctor::{Level, Options, Report, read_all, run};

/// `alias.addEventSource(new SqsEventSource(queue))`.
const BY_ALIAS: &str =
    r#"{"Fn::Join": ["", [{"Fn::Select": [6, {"Fn::Split": [":", {"Ref": "Live848578DF"}]}]}, ":live"]]}"#;

/// A queue that hides messages for too short a time, and its function.
fn stack(function_name: &str) -> String {
    format!(
        r#"{{"Resources": {{
  "Q63C6E3AB": {{"Type": "AWS::SQS::Queue", "Properties": {{"VisibilityTimeout": 10}}}},
  "WorkBF636A8B": {{"Type": "AWS::Lambda::Function", "Properties": {{"Runtime": "provided.al2023", "Timeout": 30}}}},
  "WorkCurrentVersion918A": {{"Type": "AWS::Lambda::Version", "Properties": {{"FunctionName": {{"Ref": "WorkBF636A8B"}}}}}},
  "Live848578DF": {{"Type": "AWS::Lambda::Alias", "Properties": {{"Name": "live", "FunctionName": {{"Ref": "WorkBF636A8B"}},
      "FunctionVersion": {{"Fn::GetAtt": ["WorkCurrentVersion918A", "Version"]}}}}}},
  "Mapping": {{"Type": "AWS::Lambda::EventSourceMapping", "Properties": {{"FunctionName": {function_name},
      "EventSourceArn": {{"Fn::GetAtt": ["Q63C6E3AB", "Arn"]}}}}}}
}}}}"#
    )
}

struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> (Self, Vec<PathBuf>) {
        let directory = tempfile::tempdir().unwrap();
        let write = |(name, text): &(&str, &str)| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let paths = files.iter().map(write).collect();
        (Self(directory), paths)
    }

    /// A line without the directory.
    fn shown(&self, line: &str) -> String {
        line.replace(&format!("{}/", self.0.path().display()), "")
    }
}

/// How many systems these templates are, what is reported of them, and what not looked at.
fn examined(files: &[(&str, &str)], options: &Options) -> (usize, Report, Vec<String>) {
    let (files, paths) = Files::new(files);
    let read = read_all(&paths, options).unwrap();
    let (count, mut report, mut lines) = (read.len(), Report::default(), Vec::new());
    for (system, not_looked_at) in read {
        report.add(run(&system));
        lines.extend(not_looked_at.iter().map(|line| files.shown(line)));
    }
    (count, report, lines)
}

/// The ids that the visibility timeout of a queue is wrong for.
fn too_short(report: &Report) -> Vec<&str> {
    let found = report.findings.iter().filter(|found| found.check.number == 1 && found.level == Level::Error);
    found.map(|found| &*found.place.id).collect()
}

#[test]
fn a_mapping_names_its_function_by_an_alias_or_a_version() {
    let of_arn = |arn: &str| format!(r#"{{"Fn::Select": ["6", {{"Fn::Split": [":", {arn}]}}]}}"#);
    let through_arn = stack(BY_ALIAS).replace(
        r#""Name": "live", "FunctionName": {"Ref": "WorkBF636A8B"}"#,
        r#""Name": "live", "FunctionName": {"Fn::GetAtt": ["WorkBF636A8B", "Arn"]}"#,
    );
    for (template, invokes) in [
        (stack(BY_ALIAS), "WorkBF636A8B:live"),
        (through_arn, "WorkBF636A8B:live"),
        (
            stack(
                r#"{"Fn::Join": ["", [{"Ref": "WorkBF636A8B"}, ":", {"Fn::GetAtt": ["WorkCurrentVersion918A", "Version"]}]]}"#,
            ),
            "WorkBF636A8B",
        ),
        (stack(&of_arn(r#"{"Ref": "WorkCurrentVersion918A"}"#)), "WorkBF636A8B"),
        (stack(&of_arn(r#"{"Fn::GetAtt": ["WorkCurrentVersion918A", "FunctionArn"]}"#)), "WorkBF636A8B"),
        (stack(&of_arn(r#"{"Fn::GetAtt": ["WorkBF636A8B", "Arn"]}"#)), "WorkBF636A8B"),
    ] {
        let (_files, paths) = Files::new(&[("App.template.json", &template)]);
        let (system, not_looked_at) = read_all(&paths, &Options::default()).unwrap().remove(0);
        assert_eq!(not_looked_at, [""; 0]);
        assert_eq!(system.mappings[0].invokes.text(), invokes, "{template}");
        assert_eq!(too_short(&run(&system)), ["Q63C6E3AB"], "{template}");
    }
    // Parts of an ARN that are no function's name, what is no ARN, and an alias of itself.
    let circle = stack(BY_ALIAS).replace(r#"{"Ref": "WorkBF636A8B"}"#, r#"{"Ref": "Live848578DF"}"#);
    for template in [
        stack(&of_arn(r#"{"Fn::GetAtt": ["Q63C6E3AB", "Arn"]}"#)),
        stack(&of_arn(r#"{"Ref": "WorkBF636A8B"}"#)),
        stack(&BY_ALIAS.replace("[6,", "[5,")),
        stack(&BY_ALIAS.replace("\":\"", "\"-\"")),
        circle,
    ] {
        let (_, report, _) = examined(&[("App.template.json", &template)], &Options::default());
        assert_eq!((report.tallies[&1].found, report.tallies[&1].unknown), (0, 1), "{template}");
    }
}

/// `env: {account, region}` of a stack, and a queue found by its ARN.
#[test]
fn an_arn_that_may_be_of_the_template_says_what_to_give() {
    let by_name = r#""Q63C6E3AB": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "orders", "#;
    let template = stack(r#"{"Ref": "WorkBF636A8B"}"#)
        .replace(r#""Q63C6E3AB": {"Type": "AWS::SQS::Queue", "Properties": {"#, by_name)
        .replace(r#"{"Fn::GetAtt": ["Q63C6E3AB", "Arn"]}"#, r#"ARN"#);
    let arn = |of: &str| {
        template.replace(
            "ARN",
            &format!(r#"{{"Fn::Join": ["", ["arn:", {{"Ref": "AWS::Partition"}}, ":sqs:{of}:orders"]]}}"#),
        )
    };
    let given = |account: Option<&str>, region: Option<&str>| Options {
        account: account.map(str::to_owned),
        region: region.map(str::to_owned),
        ..Options::default()
    };
    const OWN: (Option<&str>, Option<&str>) = (Some("111122223333"), Some("eu-west-1"));
    let whether =
        "App.template.json: whether arn:${AWS::Partition}:sqs:eu-west-1:111122223333:orders is Q63C6E3AB: give";
    for (account, region, wanted) in [
        (None, None, Some("--account ID and --region NAME")),
        (OWN.0, None, Some("--region NAME")),
        (None, OWN.1, Some("--account ID")),
        (Some("444455556666"), None, None),
        (None, Some("us-east-1"), None),
        (OWN.0, Some("us-east-1"), None),
        (OWN.0, OWN.1, None),
    ] {
        let options = given(account, region);
        let (_, report, lines) = examined(&[("App.template.json", &arn("eu-west-1:111122223333"))], &options);
        assert_eq!(lines, wanted.map(|options| format!("{whether} {options}")).as_slice(), "{account:?} {region:?}");
        assert_eq!(!too_short(&report).is_empty(), (account, region) == OWN, "{account:?} {region:?}");
    }
    let mut dead = arn("eu-west-1:111122223333");
    dead = dead.replace(
        r#""QueueName": "orders", "#,
        r#""QueueName": "orders", "RedrivePolicy": {"maxReceiveCount": 5, "deadLetterTargetArn": "arn:aws:sqs:eu-west-1:111122223333:orders"}, "#,
    );
    let (_, _, lines) = examined(&[("App.template.json", &dead)], &Options::default());
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains(" is Q63C6E3AB, and 1 more like it: give --account ID and --region NAME"), "{lines:?}");
}
