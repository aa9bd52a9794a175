//! A whole cloud from a template, without a message to work on.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use claimant_local::cloud::{Binaries, Cloud, CloudConfig, Ports};
use claimant_local::sqs::NewMessage;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::support::{Logs, build, http, until};

/// The queue comes before its dead-letter queue on purpose.
const TEMPLATE: &str = "
Transform: AWS::Serverless-2016-10-31
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: orders
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 3}
  Dead:
    Type: AWS::SQS::Queue
    Properties: {QueueName: dead}
  Locks:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: locks
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      TimeToLiveSpecification: {AttributeName: expires_at, Enabled: true}
  Greeter:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: greeter}}
    Properties: {Handler: bootstrap, Runtime: provided.al2023, Timeout: 3}
  Waver:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: waver}}
    Properties: {Handler: bootstrap, Runtime: provided.al2023, Timeout: 3}
";

/// A directory with the template and a file in place of each binary.
fn stage() -> (TempDir, CloudConfig) {
    use std::os::unix::fs::OpenOptionsExt as _;
    let stage = tempfile::tempdir().unwrap();
    fs::write(stage.path().join("template.yaml"), TEMPLATE).unwrap();
    for binary in ["greeter", "waver"] {
        let options = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(stage.path().join(binary));
        options.unwrap();
    }
    let config = CloudConfig::new(stage.path().join("template.yaml"), stage.path());
    (stage, config)
}

async fn fault(config: CloudConfig) -> String {
    let started = Cloud::start(config).await;
    started.err().expect("this cloud cannot start").to_string()
}

#[tokio::test]
async fn everything_in_the_template_is_there_and_gone_after_the_stop() {
    let (_stage, config) = stage();
    let cloud = Cloud::start(config).await.unwrap();
    let endpoints = cloud.endpoints().clone();
    assert!(cloud.function("Greeter").is_some() && cloud.function("waver").is_some());
    assert_eq!(cloud.dynamodb().items("locks").unwrap(), []);
    let variables = cloud.variables();
    assert!(variables.contains(&("AWS_ENDPOINT_URL_SQS".into(), endpoints.sqs.clone())));
    assert!(variables.contains(&("GATEWAY_URL".into(), endpoints.gateway.clone())));

    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .http_client(claimant_aws::http_client())
        .endpoint_url(&endpoints.sqs)
        .build();
    let answer = aws_sdk_sqs::Client::from_conf(config).get_queue_url().queue_name("orders").send().await.unwrap();
    assert_eq!(answer.queue_url(), Some(cloud.sqs().queue_url("orders").as_str()));

    cloud.stop().await;
    for url in [endpoints.dynamodb, endpoints.sqs, endpoints.ses, endpoints.scheduler, endpoints.gateway] {
        let address = url.trim_start_matches("http://").to_owned();
        TcpListener::bind(&address).await.expect("the port is free again");
    }
}

#[tokio::test]
async fn dead_letters_do_not_count_as_work_left() {
    let (_stage, config) = stage();
    let cloud = Cloud::start(config).await.unwrap();
    assert!(cloud.drained().unwrap());
    cloud.sqs().send("dead", NewMessage::new("x")).unwrap();
    assert!(cloud.drained().unwrap());
    cloud.sqs().send("orders", NewMessage::new("x")).unwrap();
    assert!(!cloud.drained().unwrap());
    cloud.stop().await;
}

#[tokio::test]
async fn functions_can_be_chosen() {
    let (stage, config) = stage();
    fs::remove_file(stage.path().join("waver")).unwrap();
    let cloud = Cloud::start(CloudConfig { only: vec!["greeter".into()], ..config.clone() }).await.unwrap();
    assert!(cloud.function("Greeter").is_some() && cloud.function("Waver").is_none());
    cloud.stop().await;

    let all = fault(config.clone()).await;
    assert!(all.contains("cargo build -p waver"), "{all}");
    let unknown = fault(CloudConfig { only: vec!["nobody".into()], ..config }).await;
    assert!(unknown.contains("no function nobody") && unknown.contains("Greeter, Waver"), "{unknown}");
}

#[tokio::test]
async fn a_function_whose_condition_is_false_is_left_out() {
    let (stage, config) = stage();
    let template = TEMPLATE.replace("  Waver:\n", "  Waver:\n    Condition: Waves\n");
    let condition =
        "\nParameters: {Sea: {Type: String, Default: \"\"}}\nConditions: {Waves: !Not [!Equals [!Ref Sea, \"\"]]}";
    fs::write(stage.path().join("template.yaml"), template + condition).unwrap();
    let cloud = Cloud::start(config.clone()).await.unwrap();
    assert!(cloud.function("greeter").is_some() && cloud.function("waver").is_none());
    cloud.stop().await;
    for name in ["waver", "Waver"] {
        let chosen = fault(CloudConfig { only: vec![name.into()], ..config.clone() }).await;
        assert!(chosen.contains("Waver is left out") && chosen.contains("--parameter Sea=…"), "{chosen}");
    }
    let parameters = [("Sea".to_owned(), "north".to_owned())].into();
    let cloud = Cloud::start(CloudConfig { parameters, only: vec!["waver".into()], ..config }).await.unwrap();
    assert!(cloud.function("waver").is_some());
    cloud.stop().await;
}

#[tokio::test]
async fn tables_are_kept_where_a_directory_is_given() {
    let (stage, config) = stage();
    let config = CloudConfig { data: Some(stage.path().join("data")), ..config };
    for _ in 0..2 {
        Cloud::start(config.clone()).await.unwrap().stop().await;
    }
    assert!(Path::new(&stage.path().join("data/dynamodb.sqlite")).is_file());
}

#[tokio::test]
async fn endpoints_answer_who_calls_this_machine_by_a_name_of_its_own() {
    let (_stage, config) = stage();
    let cloud = Cloud::start(config).await.unwrap();
    let endpoints = cloud.endpoints().clone();
    for url in [endpoints.dynamodb, endpoints.sqs, endpoints.ses, endpoints.scheduler, endpoints.gateway] {
        let address = url.trim_start_matches("http://");
        for headers in [
            "host: evil.example\r\n",
            "host: 127.0.0.1.evil.example:80\r\n",
            "host: localhost\r\norigin: https://evil.example\r\n",
        ] {
            let answer = http::asked(address, "GET /", headers, "").await;
            assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("evil.example"), "{headers}: {answer}");
        }
        for headers in
            ["host: localhost\r\n", "host: 127.0.0.1:1\r\norigin: http://localhost:3000\r\n", "host: [::1]\r\n"]
        {
            let answer = http::asked(address, "GET /", headers, "").await;
            assert!(http::parts(&answer).0 != 403, "{headers}: {answer}");
        }
    }
    cloud.stop().await;
}

#[tokio::test]
async fn a_data_directory_is_for_one_cloud_at_a_time() {
    let (stage, config) = stage();
    let config = CloudConfig { data: Some(stage.path().join("data")), ..config };
    let first = Cloud::start(config.clone()).await.unwrap();
    let refused = fault(config.clone()).await;
    let holder = format!("in use by process {}", std::process::id());
    assert!(refused.contains(&holder) && refused.contains("--data"), "{refused}");
    first.stop().await;
    Cloud::start(config).await.unwrap().stop().await;
}

const FIFO_TEMPLATE: &str = "
Resources:
  Steps:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: steps.fifo
      FifoQueue: true
      DeduplicationScope: messageGroup
      FifoThroughputLimit: perMessageGroupId
      MaximumMessageSize: 1024
      RedriveAllowPolicy: {redrivePermission: denyAll}
";

#[tokio::test]
async fn attributes_of_a_queue_in_the_template_are_those_of_the_queue() {
    let (stage, config) = stage();
    fs::write(stage.path().join("template.yaml"), FIFO_TEMPLATE).unwrap();
    let cloud = Cloud::start(config).await.unwrap();
    let sqs = cloud.sqs();
    let send = |body: &str, group: &str| {
        let ids = (Some(group.to_owned()), Some("same".to_owned()));
        sqs.send("steps.fifo", NewMessage { group_id: ids.0, deduplication_id: ids.1, ..NewMessage::new(body) })
    };
    send("a", "g").unwrap();
    send("b", "h").unwrap();
    let bodies: Vec<String> = sqs.messages("steps.fifo").unwrap().into_iter().map(|message| message.body).collect();
    assert_eq!(bodies, ["a", "b"], "two groups may use the same deduplication id");
    let large = send(&"x".repeat(1_025), "i").unwrap_err().to_string();
    assert!(large.contains("shorter than 1024 bytes"), "{large}");
    cloud.stop().await;
}

#[tokio::test]
async fn a_taken_port_is_named_with_its_option() {
    let (_stage, config) = stage();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let table = [
        (Ports { dynamodb: port, ..Ports::default() }, "--dynamodb-port"),
        (Ports { sqs: port, ..Ports::default() }, "--sqs-port"),
        (Ports { ses: port, ..Ports::default() }, "--ses-port"),
        (Ports { scheduler: port, ..Ports::default() }, "--scheduler-port"),
        (Ports { gateway: port, ..Ports::default() }, "--gateway-port"),
        (Ports { control: port, ..Ports::default() }, "--control-port"),
    ];
    for (ports, option) in table {
        let fault = fault(CloudConfig { ports, ..config.clone() }).await;
        assert!(fault.contains(option) && fault.contains(&port.to_string()), "{fault}");
    }
}

const FIELD_TEMPLATE: &str = "
Transform: AWS::Serverless-2016-10-31
Globals: {Function: {Runtime: provided.al2023, Handler: bootstrap, Timeout: 3}}
Resources:
  Orders: {Type: AWS::SQS::Queue}
  Kept: {Type: AWS::SQS::Queue}
  Worker:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: worker/
      Events: {Orders: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn, FunctionResponseTypes: [ReportBatchItemFailures]}}}
  Web:
    Type: AWS::Serverless::Function
    Properties: {Runtime: nodejs22.x, CodeUri: web/}
";

/// A template as one finds it: a program in its `CodeUri`, and a function that cannot run here.
fn field(builds: bool) -> (TempDir, Logs, CloudConfig) {
    let (stage, logs) = (tempfile::tempdir().unwrap(), Logs::default());
    fs::write(stage.path().join("template.yaml"), FIELD_TEMPLATE).unwrap();
    fs::create_dir(stage.path().join("worker")).unwrap();
    if builds {
        build(&stage.path().join("worker/bootstrap"), 1);
    }
    let mut config = CloudConfig {
        logs: logs.sink_of_all(),
        ..CloudConfig::new(stage.path().join("template.yaml"), stage.path().join("nowhere"))
    };
    (config.binaries.search, config.binaries.watch) = (true, true);
    (stage, logs, config)
}

#[tokio::test]
async fn a_new_build_is_picked_up_and_queues_and_ports_stay() {
    let (stage, logs, config) = field(true);
    let cloud = Cloud::start(config).await.unwrap();
    let [not_run] = cloud.stack().not_run.as_slice() else { panic!("one function is not run") };
    assert!(not_run.what == "Web" && not_run.why.contains("nodejs22.x"));
    cloud.sqs().send("Orders", NewMessage::new("one")).unwrap();
    logs.until("got one", 1).await;
    cloud.sqs().send("Kept", NewMessage::new("kept")).unwrap();
    let endpoints = cloud.endpoints().clone();

    build(&stage.path().join("worker/bootstrap"), 2);
    logs.until("claimant: runs the new build ", 1).await;
    cloud.sqs().send("Orders", NewMessage::new("two")).unwrap();
    logs.until("got two", 1).await;
    assert_eq!(logs.until("build ", 2).await, ["1", "2"]);
    until("both are done", || cloud.mapping_counters("Worker").succeeded == 2).await;
    assert_eq!(cloud.sqs().messages("Kept").unwrap().len(), 1);
    assert_eq!(cloud.endpoints().sqs, endpoints.sqs);

    fs::write(stage.path().join("template.yaml"), format!("{FIELD_TEMPLATE}# changed\n")).unwrap();
    let template = stage.path().join("template.yaml");
    logs.until(&format!("{} has changed: start", template.display()), 1).await;
    cloud.stop().await;
}

#[tokio::test]
async fn a_function_that_is_not_built_yet_starts_once_it_is() {
    let (stage, logs, mut config) = field(false);
    let refused = fault(config.clone()).await;
    assert!(refused.contains("function Worker has no binary at") && refused.contains("sam build"), "{refused}");
    let only = vec!["Web".to_owned()];
    assert!(
        fault(CloudConfig { only, ..config.clone() }).await.contains("Web is not run here: its runtime is nodejs22.x")
    );

    config.binaries.wait = true;
    let cloud = Cloud::start(config).await.unwrap();
    assert!(cloud.waiting()[0].contains("function Worker has no binary"), "{:?}", cloud.waiting());
    cloud.sqs().send("Orders", NewMessage::new("one")).unwrap();
    build(&stage.path().join("worker/bootstrap"), 1);
    logs.until("got one", 1).await;
    until("it is done", || cloud.mapping_counters("Worker").succeeded == 1).await;
    assert_eq!(cloud.sqs().counters("Orders").unwrap().received, 1);
    cloud.stop().await;
}

/// A program of this kind is left by `sam build` for arm64 on a machine of another architecture, or by a copy without its mode.
#[tokio::test]
async fn a_file_that_is_no_program_here_is_named_where_one_is_waited_for() {
    let (stage, _logs, mut config) = field(false);
    let program = stage.path().join("worker/bootstrap");
    let own = fs::read(std::env::current_exe().unwrap()).unwrap();
    let foreign = [&own[..18], &[!own[18]], &own[19..64]].concat();
    let machine = "build it for this machine: `sam build` builds for the function's `Architectures`";
    for (mode, content, why, how) in [
        (0o755, &foreign[..], "is for another architecture or system", machine),
        (0o644, b"#!/bin/sh\n", "is not an executable file", "make it executable with `chmod +x`"),
    ] {
        fs::write(&program, content).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        for only in [vec![], vec!["Worker".to_owned()]] {
            let refused = fault(CloudConfig { only, ..config.clone() }).await;
            assert!(refused.contains("function Worker has no binary") && refused.contains(how), "{refused}");
            assert!(refused.contains(&format!("worker/bootstrap {why}")), "{refused}");
        }
        let mut waits = config.clone();
        (waits.binaries.wait, waits.binaries.directory) = (true, None);
        let cloud = Cloud::start(waits).await.unwrap();
        let [waiting] = cloud.waiting() else { panic!("{why}: it waits for a program") };
        let there = format!("no binary at {} (the file there {why}): {how}", program.display());
        assert!(waiting.contains(&there) && waiting.contains("its messages wait"), "{waiting}");
        cloud.stop().await;
    }
    // `sam build` bundles no asset.
    let asset = FIELD_TEMPLATE.replace("  Worker:\n", "  Worker:\n    Metadata: {'aws:asset:path': asset.1}\n");
    fs::write(stage.path().join("template.yaml"), asset).unwrap();
    for (asset, advice) in [
        (None, "bundle it with `cdk synth`, or have it at Worker/bootstrap in a directory for --binaries"),
        (
            Some("asset.1/bootstrap"),
            "bundle it for this machine: `cdk synth` does so for the function's `architecture`, or ",
        ),
    ] {
        if let Some(asset) = asset {
            fs::create_dir(stage.path().join("asset.1")).unwrap();
            build(&stage.path().join(asset), 1);
            fs::write(stage.path().join(asset), &foreign).unwrap();
        }
        let refused = fault(config.clone()).await;
        assert!(refused.contains(advice) && !refused.contains("sam build"), "{refused}");
    }
    // As it is where it is named.
    fs::write(stage.path().join("Worker"), &foreign).unwrap();
    fs::set_permissions(stage.path().join("Worker"), fs::Permissions::from_mode(0o755)).unwrap();
    config.binaries = Binaries::in_directory(stage.path());
    let refused = fault(config).await;
    assert!(refused.contains("Worker (the file there is for another architecture or system)"), "{refused}");
}
