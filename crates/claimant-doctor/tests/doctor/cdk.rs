//! What `cdk synth` writes, cut down: functions by an alias or a version.

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
