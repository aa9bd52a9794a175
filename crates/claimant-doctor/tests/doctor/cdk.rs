//! What `cdk synth` writes, cut down: functions by an alias or a version, ARNs that are written out, and stacks that import from each other.

use std::fs;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use claimant_doctor::fact::Fact;
use claimant_doctor::model::Link;
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
    let whether = "App.template.json: whether arn:${AWS::Partition}:sqs:eu-west-1:111122223333:orders is Q63C6E3AB: claimant doctor takes";
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
    assert!(
        lines[0].contains(" is Q63C6E3AB, and 1 more like it: claimant doctor takes --account ID and --region NAME"),
        "{lines:?}"
    );
}

/// A topic and a queue of one name.
#[test]
fn an_arn_of_another_service_is_no_queue() {
    let queue = r#""Q63C6E3AB": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "orders", "#;
    for topic in [
        r#""arn:aws:sns:eu-west-1:111122223333:orders""#,
        r#"{"Fn::Sub": "arn:aws:sns:eu-west-1:1:${Q63C6E3AB.QueueName}"}"#,
    ] {
        let variables = format!(r#""Timeout": 30, "Environment": {{"Variables": {{"TOPIC": {topic}}}}}"#);
        let template = stack(BY_ALIAS)
            .replace(r#""Q63C6E3AB": {"Type": "AWS::SQS::Queue", "Properties": {"#, queue)
            .replace(r#""Timeout": 30"#, &variables);
        let (_files, paths) = Files::new(&[("App.template.json", &template)]);
        let (system, lines) = read_all(&paths, &Options::default()).unwrap().remove(0);
        assert_eq!(lines, [""; 0], "{topic}");
        let leads = &system.functions[0].environment.variables["TOPIC"];
        assert!(!matches!(leads, Fact::Known(Link::Here(_))), "{topic}: {leads:?}");
    }
}

/// A queue in one stack, its function in another, as CDK writes them; `export` for the first, `source` in the second.
fn two(export: &str, source: &str) -> (String, String) {
    let base = format!(
        r#"{{"Resources": {{"Q63C6E3AB": {{"Type": "AWS::SQS::Queue", "Properties": {{"VisibilityTimeout": 10}}}}}},
 "Outputs": {{"ExportsOutputQArn": {{"Value": {{"Fn::GetAtt": ["Q63C6E3AB", "Arn"]}} {export}}}}}}}"#
    );
    let app = stack(BY_ALIAS).replace(r#"{"Fn::GetAtt": ["Q63C6E3AB", "Arn"]}"#, source);
    // Of the same id, and another one.
    (base, app.replace(r#""VisibilityTimeout": 10"#, r#""VisibilityTimeout": 300"#))
}

/// A name that an export has from its stack's.
const OF_ITS_STACK: &str = r#", "Export": {"Name": {"Fn::Sub": "${AWS::StackName}-Arn"}}"#;

#[test]
fn stacks_that_are_given_together_import_from_each_other() {
    let export = r#", "Export": {"Name": "Base:ExportsOutputQArn"}"#;
    let import = r#"{"Fn::ImportValue": "Base:ExportsOutputQArn"}"#;
    let output = |rest: &str| {
        format!(r#"{{"Fn::GetStackOutput": {{"StackName": "Base", "OutputName": "ExportsOutputQArn"{rest}}}}}"#)
    };
    let region = Options { region: Some("eu-west-1".to_owned()), ..Options::default() };
    for (export, source, options, is_one) in [
        (export, import.to_owned(), &Options::default(), true),
        (OF_ITS_STACK, import.replace("Base:ExportsOutputQArn", "Base-Arn"), &Options::default(), true),
        (OF_ITS_STACK, import.replace("Base:ExportsOutputQArn", "Other-Arn"), &Options::default(), false),
        ("", output(""), &Options::default(), true),
        ("", output(r#", "Region": "eu-west-1""#), &region, true),
        ("", output(r#", "Region": "us-east-1""#), &region, false),
        // Of a Region that may be another one, and by a role, which is another account's.
        ("", output(r#", "Region": "us-east-1""#), &Options::default(), false),
        ("", output(r#", "RoleArn": "arn:aws:iam::444455556666:role/reads""#), &region, false),
        ("", import.to_owned(), &Options::default(), false),
        (export, r#"{"Fn::ImportValue": "Other"}"#.to_owned(), &Options::default(), false),
        ("", output("").replace("Base", "Other"), &Options::default(), false),
    ] {
        let (base, app) = two(export, &source);
        let files = [("Base.template.json", base.as_str()), ("App.template.json", app.as_str())];
        for files in [files, [files[1], files[0]]] {
            let (count, report, lines) = examined(&files, options);
            assert_eq!(count, if is_one { 1 } else { 2 }, "{source}");
            assert_eq!(too_short(&report), if is_one { vec!["Base>Q63C6E3AB"] } else { vec![] }, "{source}");
            assert_eq!(lines.is_empty(), is_one, "{source}: {lines:?}");
        }
    }
}

/// As a pattern of the shell names it, and a person beside it.
#[test]
fn a_template_that_is_given_twice_is_read_once() {
    let (base, app) = two(r#", "Export": {"Name": "Arn"}"#, r#"{"Fn::ImportValue": "Arn"}"#);
    let (files, mut paths) = Files::new(&[("Base.template.json", &base), ("App.template.json", &app)]);
    paths.push(paths[0].clone());
    paths.push(files.0.path().join(".").join("App.template.json"));
    let read = read_all(&paths, &Options::default()).unwrap();
    let [(system, lines)] = &read[..] else { panic!("{} systems", read.len()) };
    assert_eq!((too_short(&run(system)), &lines[..]), (vec!["Base>Q63C6E3AB"], &[][..]));
}

/// `--template <(cdk synth …)`: a pipe has its text once.
#[test]
fn templates_that_come_by_pipes_import_from_each_other() {
    let (base, app) = two(r#", "Export": {"Name": "Arn"}"#, r#"{"Fn::ImportValue": "Arn"}"#);
    let piped = |text: &str| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        reader
    };
    let pipes = [piped(&base), piped(&app)];
    let paths = pipes.each_ref().map(|pipe| format!("/dev/fd/{}", pipe.as_raw_fd()));
    let read = read_all(&paths, &Options::default()).unwrap();
    let [(system, lines)] = &read[..] else { panic!("{} systems", read.len()) };
    assert_eq!(too_short(&run(system)), [format!("{}>Q63C6E3AB", pipes[0].as_raw_fd())]);
    assert_eq!(lines, &[""; 0]);
}

/// Five stacks within each other, in one template that others import from and in one by itself; and no name of a nested stack is its outer
/// one's.
#[test]
fn stacks_are_nested_as_deep_where_templates_are_read_together() {
    let includes = |next: &str, outputs: &str| {
        let next = format!(r#"{{"Type": "AWS::CloudFormation::Stack", "Properties": {{"TemplateURL": "{next}"}}}}"#);
        format!(r#"{{"Resources": {{"Next": {next}}}, "Outputs": {{{outputs}}}}}"#)
    };
    let export = |name: &str| format!(r#""Arn": {{"Value": "x", "Export": {{"Name": {name}}}}}"#);
    let (_, app) = two("", r#"{"Fn::ImportValue": "Base-Arn"}"#);
    let last = r#"{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}"#;
    let of_stack = r#"{"Fn::Sub": "${AWS::StackName}-Arn"}"#;
    let inner = |outputs: &str| {
        ["2", "3", "4", "5"].map(|next| includes(&format!("{next}.json"), if next == "2" { outputs } else { "" }))
    };
    for (base, outputs, count) in [(export(r#""Base-Arn""#), String::new(), 1), (String::new(), export(of_stack), 2)] {
        let (base, inner) = (includes("1.json", &base), inner(&outputs));
        let files = [
            ("Base.json", &*base),
            ("1.json", &*inner[0]),
            ("2.json", &*inner[1]),
            ("3.json", &*inner[2]),
            ("4.json", &*inner[3]),
            ("5.json", last),
            ("App.json", &*app),
        ];
        let (files, paths) = Files::new(&files);
        let read = read_all(&[&paths[0], &paths[6]], &Options::default()).unwrap();
        assert_eq!(read.len(), count);
        let lines: Vec<_> = read.iter().flat_map(|(_, lines)| lines).map(|line| files.shown(line)).collect();
        assert!(!lines.iter().any(|line| line.contains("within each other")), "{lines:?}");
    }
}

/// Ids that have a file's path in front stand for names that AWS would take.
#[test]
fn a_variable_that_is_imported_has_no_fault_for_the_name_of_its_file() {
    let (base, app) = two(r#", "Export": {"Name": "Arn"}"#, r#"{"Fn::ImportValue": "Arn"}"#);
    let variables = r#""Timeout": 30, "Environment": {"Variables": {"CLAIMANT_TABLE": "locks", "CLAIMANT_SCHEDULE_ROLE_ARN": "arn:aws:iam::111122223333:role/r",
        "CLAIMANT_SCHEDULE_DEAD_LETTER_ARN": {"Fn::ImportValue": "Arn"}}}"#;
    let app = app.replace(r#""Timeout": 30"#, variables);
    for base_name in ["base/template.json", "My base.json"] {
        let files = [(base_name, &*base), ("work/template.json", &*app)];
        let (count, report, _) = examined(&files, &Options::default());
        assert_eq!(count, 1, "{base_name}");
        assert!(report.findings.iter().all(|one| one.check.number != 37), "{base_name}: {report:#?}");
    }
}

/// SAM's files are all called the same, and one may pass on what it imports.
#[test]
fn what_is_imported_is_passed_on_and_nothing_is_known_of_an_export_that_two_have() {
    let export = r#", "Export": {"Name": "Arn"}"#;
    let (base, app) = two(export, r#"{"Fn::ImportValue": "Passed"}"#);
    let pass =
        r#"{"Resources": {}, "Outputs": {"Arn": {"Value": {"Fn::ImportValue": "Arn"}, "Export": {"Name": "Passed"}}}}"#;
    let files = [("work/template.json", &*app), ("pass/template.json", pass), ("base/template.json", &*base)];
    let (count, report, lines) = examined(&files, &Options::default());
    assert_eq!((count, lines), (1, vec![]));
    let found = too_short(&report);
    assert!(matches!(found[..], [id] if id.ends_with("base/template_json>Q63C6E3AB")), "{found:?}");
    let with_another = [files[0], files[1], files[2], ("other/template.json", &*base)];
    let (count, report, _) = examined(&with_another, &Options::default());
    assert_eq!((count, too_short(&report)), (3, vec![]), "the two that pass on and import");
}
