//! `claimant doctor` as people call it: on templates, and on an account that a server on loopback plays.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::aws::{CLOSE, Server};
use crate::deployed::resources;
use serde_json::{Value, json};

fn doctor(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
    command.arg("doctor").args(args).envs(variables.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn template(name: &str, content: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).unwrap();
    path
}

const SLOW: &str = "Transform: AWS::Serverless-2016-10-31
Resources:
  Orders: {Type: AWS::SQS::Queue}
  Work:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 60
      Events: {Q: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn, ScalingConfig: {MaximumConcurrency: 2}}}}
";

#[test]
fn exit_codes_and_forms() {
    let slow = template("slow.yaml", SLOW);
    let slow = slow.to_str().unwrap();
    let output = doctor(&["--template", slow], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let shown = text(&output.stdout);
    assert!(shown.contains("slow.yaml:3: error: Orders (visibility-below-timeout, check 1)"), "{shown}");
    assert!(
        shown.contains("VisibilityTimeout: 360 on Orders") && shown.lines().all(|line| line.len() <= 120),
        "{shown}"
    );
    let output = doctor(&["--template", slow, "--level", "error", "--json"], &[]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), found["findings"].as_array().unwrap().len()), (Some(1), 1));
    let output = doctor(&["--template", slow, "--level", "error", "--skip", "visibility-below-timeout"], &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = doctor(&["--template", slow, "--format", "sarif"], &[]);
    let sarif: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "visibility-below-timeout");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../template.yaml");
    let output = doctor(&["--template", own.to_str().unwrap(), "--level", "note"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    for (wrong, says) in [
        (&["--template", "/none/there.yaml"][..], "check that it exists"),
        (&["--skip", "no-such-check"], "no such check: there are visibility-below-timeout, visibility-six-times, "),
        (&["--history"], "give --stack NAME or --function NAME"),
        (&["--template", slow, "--stack", "shop"], "cannot be used with"),
        (&["--stack", "shop", "--account", "123456789012"], "cannot be used with"),
        (&["--stack", "shop", "--parameter", "A=b"], "cannot be used with"),
        (&["--template", slow, "--profile", "operations"], "--profile is about what is deployed"),
        (&["--template", slow, "--parameter", "A=b"], "slow.yaml has no parameter A"),
        (&["--template", slow, "--parameter", "A=b", "--parameter", "A=c"], "--parameter A=… is given twice"),
        (&["--stack", "shop", "--format", "sarif"], "--format sarif is about files"),
        (&["--template", slow, "--account", "1234"], "an account has 12 digits"),
    ] {
        let output = doctor(wrong, &[]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(text(&output.stderr).contains(says), "{wrong:?}: {}", text(&output.stderr));
    }
}

/// Where an answer may depend on one: most parameters are of no interest here, and one with `NoEcho` is not for a command line.
#[test]
fn parameters_whose_values_would_tell_more_are_named() {
    let (head, resources) = SLOW.split_once("Resources:\n").unwrap();
    let parameters = "Parameters:
  Stage: {Type: String, AllowedValues: [dev, prod]}
  Name: {Type: String}
  Token: {Type: String}
  Exported: {Type: String}
  Imported: {Type: String}
  DatabaseUrl: {Type: String, NoEcho: true}
Conditions: {IsProd: !Equals [!Ref Stage, prod]}
Outputs: {Name: {Value: !Ref Name, Export: {Name: !Sub '${Exported}-name'}}}
Resources:
";
    let hidden = "Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: !If [IsProd, 10, 360]}}";
    let topic =
        "Topic: {Type: AWS::SNS::Topic, Properties: {TopicName: !ImportValue {'Fn::Sub': '${Imported}-topic'}}}";
    let resources = resources.replace("Orders: {Type: AWS::SQS::Queue}", &format!("{hidden}\n  {topic}"));
    let variables = "Environment: {Variables: {TOKEN: !Ref Token, CLAIMANT_DATABASE_URL: !Ref DatabaseUrl}}";
    let resources = resources.replace("Timeout: 60", &format!("Timeout: 60\n      {variables}"));
    let [staged, other] = ["staged.yaml", "staged-too.yaml"].map(|name| {
        let path = template(name, &[head, parameters, &resources].concat());
        path.to_str().unwrap().to_owned()
    });
    let line = "not known: may depend on parameters without a value: give --parameter Stage=… (dev or prod)\n";
    let both = [&*staged, "--template", &*other];
    for (given, is_named) in [(&both[..1], true), (&both, true), (&[&*staged, "--parameter", "Stage=prod"], false)] {
        let shown = text(&doctor(&[&["--template"], given].concat(), &[]).stdout);
        assert_eq!((shown.contains(line), shown.contains("not known: ")), (is_named, is_named), "{shown}");
        assert_eq!(shown.contains("check 1)"), !is_named, "{shown}");
    }
}

/// A value is for those that have the parameter, and the worst of all is first.
#[test]
fn several_templates_are_one_report() {
    let notes = template(
        "notes.yaml",
        &SLOW.replace("{Type: AWS::SQS::Queue}", "{Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 360}}"),
    );
    let timed = SLOW.replace("Timeout: 60", "Timeout: !Ref Seconds");
    let timed = template("timed.yaml", &format!("Parameters: {{Seconds: {{Type: Number}}}}\n{timed}"));
    let [notes, timed] = [&notes, &timed].map(|path| path.to_str().unwrap());
    let output = doctor(&["--template", notes, "--template", timed, "--parameter", "Seconds=60", "--json"], &[]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let levels: Vec<_> =
        found["findings"].as_array().unwrap().iter().map(|one| one["level"].as_str().unwrap()).collect();
    let [first, rest @ ..] = &*levels else { panic!("{output:?}") };
    assert!(*first == "error" && rest.iter().all(|level| *level == "warning") && rest.len() > 2, "{levels:?}");
}

/// A function whose mapping reports no failures; nothing else may be read.
fn shop(request: &str) -> (u16, String) {
    let queue = "arn:aws:sqs:eu-west-1:123456789012:orders";
    let answer = if request.contains("Action=ListStackResources") {
        let member = "<member><ResourceType>AWS::Lambda::Function</ResourceType><PhysicalResourceId>worker</PhysicalResourceId></member>";
        let all = format!("<StackResourceSummaries>{member}</StackResourceSummaries>");
        return (200, format!("<A><ListStackResourcesResult>{all}</ListStackResourcesResult></A>"));
    } else if request.starts_with("GET /2015-03-31/functions/worker ") {
        json!({"Configuration": {
            "FunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:worker",
            "Timeout": 30,
            "Architectures": ["arm64"],
            "Environment": {"Variables": {"CLAIMANT_TABLE": "locks", "PASSWORD": "hidden"}},
        }})
    } else if request.starts_with("GET /2015-03-31/event-source-mappings ") {
        let function = "arn:aws:lambda:eu-west-1:123456789012:function:worker";
        let mapping = json!({"UUID": "m-1", "EventSourceArn": queue, "FunctionArn": function, "BatchSize": 10, "State": "Enabled"});
        json!({ "EventSourceMappings": [mapping] })
    } else {
        return (403, json!({"__type": "AccessDeniedException", "message": "not you"}).to_string());
    };
    (200, answer.to_string())
}

#[test]
fn a_stack_is_examined_with_signed_requests_and_what_is_refused_is_said() {
    let server = Server::start(shop);
    let output = doctor(&["--stack", "shop", "--history"], &server.variables());
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}{}", text(&output.stderr));
    assert!(shown.contains("error: worker (orders, m-1) (no-partial-batch-response, check 3)"), "{shown}");
    for refused in
        ["GetQueueUrl of orders", "DescribeTable of locks", "DescribeAlarms of this account", "GetMetricData"]
    {
        assert!(shown.contains(refused), "{refused} is not said to be refused: {shown}");
    }
    assert!(shown.contains("lack the permission") && !shown.contains("hidden") && !shown.contains("s3cret"), "{shown}");
    let requests = server.requests.lock().unwrap();
    for (what, service) in [
        ("Action=ListStackResources", "eu-west-1/cloudformation/"),
        ("GET /2015-03-31/functions/worker", "eu-west-1/lambda/"),
        ("AmazonSQS.GetQueueUrl", "eu-west-1/sqs/"),
        ("DynamoDB_20120810.DescribeTable", "eu-west-1/dynamodb/"),
        ("GraniteServiceVersion20100801.GetMetricData", "eu-west-1/monitoring/"),
    ] {
        let request = requests.iter().find(|request| request.contains(what)).unwrap_or_else(|| panic!("no {what}"));
        assert!(request.contains("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") && request.contains(service), "{request}");
    }
}

/// Answers as [`shop`] does, of a function that accepts what is found of its mapping.
pub(crate) fn accepts(request: &str) -> (u16, String) {
    if request.contains("Action=ListStackResources") {
        let of_sam = [("AWS::Lambda::Function", "worker"), ("AWS::Lambda::EventSourceMapping", "m-1")];
        let (status, answer) = resources(&of_sam, "");
        return (status, answer.replace(">M-1<", ">WorkerReads<"));
    }
    if !request.contains("Action=DescribeStackResource&") {
        return shop(request);
    }
    let metadata = "{&quot;claimant-doctor&quot;:{&quot;no-partial-batch-response&quot;:&quot;one each&quot;}}";
    let detail = format!("<StackResourceDetail><Metadata>{metadata}</Metadata></StackResourceDetail>");
    (200, format!("<A><DescribeStackResourceResult>{detail}</DescribeStackResourceResult></A>"))
}

#[test]
fn what_a_stack_accepts_is_no_finding() {
    let server = Server::start(accepts);
    let output = doctor(&["--stack", "shop"], &server.variables());
    let shown = text(&output.stdout);
    assert!(!shown.contains("no-partial-batch-response") && shown.contains(" 1 accepted"), "{shown}");
}

#[test]
fn without_any_right_the_exit_code_is_2() {
    let server = Server::start(|request| match request.starts_with("GET ") {
        true => (403, json!({"__type": "AccessDeniedException", "message": "not you"}).to_string()),
        false => (403, "<E><Error><Code>AccessDenied</Code><Message>not you</Message></Error></E>".to_owned()),
    });
    for args in [["--stack", "shop"], ["--function", "worker"]] {
        let output = doctor(&args, &server.variables());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains("lack the permission"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_stack_without_a_function_is_exit_code_2() {
    const NOTHING: &str = "<A><ListStackResourcesResult><StackResourceSummaries/></ListStackResourcesResult></A>";
    let server = Server::start(|_| (200, NOTHING.to_owned()));
    for format in ["text", "json"] {
        let output = doctor(&["--stack", "shop-queues", "--format", format], &server.variables());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let errors = text(&output.stderr);
        assert!(errors.contains("ListStackResources of shop-queues: there is no function in it"), "{errors}");
    }
}

/// A stack of many functions is more than Lambda and IAM answer at once.
#[test]
fn a_request_that_is_throttled_or_not_answered_is_sent_again() {
    static TRIES: AtomicUsize = AtomicUsize::new(0);
    let server = Server::start(|request| {
        if !request.contains("Action=ListStackResources") {
            return shop(request);
        }
        match TRIES.fetch_add(1, Ordering::Relaxed) {
            0 => CLOSE,
            1 => (400, "<E><Error><Code>Throttling</Code><Message>Rate exceeded</Message></Error></E>".to_owned()),
            _ => shop(request),
        }
    });
    let output = doctor(&["--stack", "shop"], &server.variables());
    assert_eq!((output.status.code(), TRIES.load(Ordering::Relaxed)), (Some(1), 3), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("no-partial-batch-response") && !shown.contains("Throttling"), "{shown}");
}
