//! The control endpoint: what a cloud holds, and its log lines.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::control::Control;
use claimant_local::faults::Faults;
use claimant_local::journal::Journal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::support::http;

/// A connection on which this path was asked for.
async fn ask(address: &str, path: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    BufReader::new(stream)
}

async fn whole(address: &str, path: &str) -> String {
    http::asked(address, &format!("GET {path}"), "", "").await
}

/// The status and the JSON of an answer.
async fn call(address: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    call_from(address, method, path, ("", body)).await
}

/// The same of a request with these lines in its head.
async fn call_from(address: &str, method: &str, path: &str, (more, body): (&str, &str)) -> (u16, Value) {
    http::json(&http::asked(address, &format!("{method} {path}"), more, body).await)
}

/// The next line of the answer that is a JSON object.
async fn next_line(answer: &mut BufReader<TcpStream>) -> Option<Value> {
    loop {
        let mut line = String::new();
        if answer.read_line(&mut line).await.expect("it answers in text") == 0 {
            return None;
        }
        if let Ok(value @ Value::Object(_)) = serde_json::from_str(&line) {
            return Some(value);
        }
    }
}

#[tokio::test]
async fn a_cloud_is_described_and_its_lines_are_passed_on_until_it_stops() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (stop, stopped) = oneshot::channel::<()>();
    let control = Control::new(&Faults::default(), &Journal::off());
    let served = tokio::spawn(control.clone().serve(listener, async { drop(stopped.await) }));

    assert!(whole(&address, "/_claimant/cloud").await.starts_with("HTTP/1.1 503 "), "it is not ready");
    control.set_description(json!({"tables": ["LockTable"]}));
    assert!(whole(&address, "/_claimant/cloud").await.ends_with("{\"tables\":[\"LockTable\"]}"));

    let shown = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let shown = Arc::clone(&shown);
        control.observe(Arc::new(move |function, line| shown.lock().unwrap().push(format!("{function}: {line}"))))
    };
    sink("f", "no one reads this one");
    let mut reader = ask(&address, "/_claimant/logs").await;
    // The head of the answer comes once the reader is there.
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).await.unwrap();
    }
    sink("f", "batch done");
    let line = next_line(&mut reader).await.unwrap();
    // By the cloud's clock: that of whoever reads it may differ. Later than 2023, in milliseconds.
    let has_time = line["at_ms"].as_u64().is_some_and(|at_ms| at_ms > 1_700_000_000_000);
    assert!(has_time && (&line["function"], &line["line"]) == (&json!("f"), &json!("batch done")), "{line}");
    assert_eq!(*shown.lock().unwrap(), ["f: no one reads this one", "f: batch done"]);

    stop.send(()).unwrap();
    assert_eq!(next_line(&mut reader).await, None);
    served.await.unwrap().unwrap();
}

/// Serves the control endpoint of a cloud in which nothing is, until the test ends; returns its address.
async fn served() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let control = Control::new(&Faults::default(), &Journal::off());
    tokio::spawn(control.serve(listener, std::future::pending()));
    address
}

#[tokio::test]
async fn faults_are_switched_on_listed_and_ended_over_http() {
    let (address, path) = (served().await, "/_claimant/faults");

    assert_eq!(call(&address, "GET", path, "").await, (200, json!({"faults": []})));
    let (status, fault) = call(&address, "POST", path, r#"{"act": "lose", "of": "claims", "times": 3}"#).await;
    assert_eq!((status, &fault["id"], &fault["does"]), (201, &json!(1), &json!("loses the answers to claims")));
    assert_eq!((&fault["times"], &fault["acted"], fault.get("ended_ms")), (&json!(3), &json!(0), None));
    for (body, wanted) in [
        ("{", "no fault"),
        (r#"{"act": "lose"}"#, "give table"),
        (r#"{"act": "kill", "function": "f"}"#, "there is none"),
    ] {
        let (status, answer) = call(&address, "POST", path, body).await;
        assert!(status == 400 && answer["error"].as_str().unwrap().contains(wanted), "{body}: {answer}");
    }
    let (status, ended) = call(&address, "DELETE", "/_claimant/faults/1", "").await;
    assert!(status == 200 && ended["ended_ms"].is_number(), "{ended}");
    assert_eq!(call(&address, "DELETE", "/_claimant/faults/2", "").await.0, 404);
    // Lambda's API has paths of many versions.
    for path in ["/2015-03-31/functions/f/policy", "/2019-09-30/functions/f/concurrency", "/2021-10-31/functions/f/url"]
    {
        let (status, answer) = call(&address, "GET", path, "").await;
        let why = answer["message"].as_str().unwrap();
        assert!(status == 404 && why.contains(path) && why.contains("it has ListFunctions"), "{answer}");
    }
    assert_eq!(call(&address, "DELETE", path, "").await, (200, json!({"faults": []})));
    assert_eq!(call(&address, "GET", path, "").await.1["faults"][0]["id"], 1);
}

/// A cloud of this template, with these values of its parameters.
async fn cloud_of(template: &str, given: &[(&str, &str)]) -> Cloud {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("template.yaml"), template).unwrap();
    let mut config = CloudConfig {
        parameters: given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..CloudConfig::new(directory.path().join("template.yaml"), directory.path())
    };
    config.binaries.wait = true;
    Cloud::start(config).await.unwrap()
}

/// What CloudFormation shows to no one.
#[tokio::test]
async fn the_values_of_parameters_without_echo_are_the_functions_alone() {
    let template = "
Transform: AWS::Serverless-2016-10-31
Parameters:
  DatabaseUrl: {Type: String, NoEcho: true}
  Pin: {Type: String, NoEcho: 'true', Default: ''}
  Prefix: {Type: String, Default: shop}
Conditions: {HasDatabase: !Not [!Equals [!Ref DatabaseUrl, '']]}
Globals: {Function: {Environment: {Variables: {PIN: !Ref Pin}}}}
Resources:
  Worker:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: worker}}
    Properties:
      Handler: bootstrap
      Environment:
        Variables:
          DATABASE_URL: !Ref DatabaseUrl
          BOTH: !Sub '${Prefix}${DatabaseUrl}${Pin}'
          PREFIX: !If [HasDatabase, !Ref Prefix, none]
          BESIDE: !Sub 'https://u:${Pin}@${Other.Endpoint.Address}/${DatabaseUrl}'
          HOST: !Sub '${Prefix}.${Other.Endpoint.Address}'
          CLAIMANT_TABLE: !Ref Pin
          CLAIMANT_TABLE_BEFORE: !Ref Pin
          CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref DatabaseUrl
          CLAIMANT_SCHEDULE_DEAD_LETTER_ARN: !Sub 'arn:aws:sqs:us-east-1:000000000000:${Pin}'
  Other: {Type: AWS::RDS::DBInstance}
";
    let cloud = cloud_of(template, &[("DatabaseUrl", "postgres://u:s3cret@h/5678"), ("Pin", "1234")]).await;
    let address = cloud.endpoints().control.trim_start_matches("http://").to_owned();
    let wanted = json!({
        "BESIDE": "****", "BOTH": "****", "CLAIMANT_DEAD_LETTER_QUEUE_URL": "****", "CLAIMANT_SCHEDULE_DEAD_LETTER_ARN": "****",
        "CLAIMANT_TABLE": "****", "CLAIMANT_TABLE_BEFORE": "****", "DATABASE_URL": "****", "HOST": "shop.Other.Endpoint.Address",
        "PIN": "****", "PREFIX": "shop",
    });
    let functions = "/2015-03-31/functions";
    for (path, at) in [
        (functions.to_owned(), "/Functions/0"),
        (format!("{functions}/Worker"), "/Configuration"),
        (format!("{functions}/Worker/configuration"), ""),
    ] {
        let (_, answer) = call(&address, "GET", &path, "").await;
        assert_eq!(answer.pointer(&format!("{at}/Environment/Variables")), Some(&wanted), "{path}");
    }
    let described = whole(&address, "/_claimant/cloud").await;
    assert!(!["s3cret", "1234", "5678"].iter().any(|secret| described.contains(secret)), "{described}");
    let pairs = |pairs: Vec<(String, String)>| json!(BTreeMap::from_iter(pairs));
    assert_eq!(pairs(cloud.shown_function_variables()), wanted);
    assert_eq!(pairs(cloud.function_variables())["DATABASE_URL"], "postgres://u:s3cret@h/5678");
    let [beside, host, database] = &cloud.stack().not_run_lines("t.yaml")[..] else { panic!("three lines") };
    assert!(database.contains("AWS::RDS::DBInstance Other"), "{database}");
    assert!(beside.contains("Variables.BESIDE") && beside.contains("which is not shown"), "{beside}");
    assert!(!beside.contains("s3cret") && !beside.contains("1234"), "{beside}");
    assert!(host.contains("`shop.Other.Endpoint.Address` stands in for it"), "{host}");
    cloud.stop().await;
}

#[tokio::test]
async fn the_variables_that_are_shown_are_those_that_a_command_gets() {
    let template = "
Transform: AWS::Serverless-2016-10-31
Globals: {Function: {Handler: bootstrap, Runtime: provided.al2023}}
Parameters: {One: {Type: String, NoEcho: true}, Two: {Type: String, NoEcho: true}}
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties: {Environment: {Variables: {DIFFERS: !Ref One, AGREED: !Ref One, PLAIN: x}}}
  G:
    Type: AWS::Serverless::Function
    Properties: {Environment: {Variables: {DIFFERS: !Ref Two, AGREED: s3cret, PLAIN: x}}}
";
    let cloud = cloud_of(template, &[("One", "s3cret"), ("Two", "other")]).await;
    let pairs = |pairs: [(&str, &str); 2]| pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(cloud.function_variables(), pairs([("AGREED", "s3cret"), ("PLAIN", "x")]));
    assert_eq!(cloud.shown_function_variables(), pairs([("AGREED", "****"), ("PLAIN", "x")]));
    cloud.stop().await;
}

/// A form of a page on another port reaches the endpoint, whatever its content is said to be.
#[tokio::test]
async fn pages_of_other_ports_change_nothing() {
    let (address, path) = (served().await, "/_claimant/faults");
    let begin = async |origin: &str| {
        let head = format!("Origin: {origin}\r\nContent-Type: text/plain\r\n");
        call_from(&address, "POST", path, (&head, r#"{"act": "lose", "of": "claims"}"#)).await
    };
    for other in ["http://localhost:3000", "http://127.0.0.1:3000"] {
        let (status, refused) = begin(other).await;
        assert!(status == 403 && refused["message"].as_str().unwrap().contains(other), "{refused}");
    }
    assert_eq!(call(&address, "GET", path, "").await.1, json!({"faults": []}));
    assert_eq!(begin(&format!("http://{address}")).await.0, 201);
}

/// AWS takes a function's name for the one that the mapping calls from then on.
#[tokio::test]
async fn a_mapping_keeps_its_function() {
    let template = "
Transform: AWS::Serverless-2016-10-31
Resources:
  Orders: {Type: AWS::SQS::Queue}
  Worker:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: worker}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Events: {Orders: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn}}}
";
    let cloud = cloud_of(template, &[]).await;
    let address = cloud.endpoints().control.trim_start_matches("http://").to_owned();
    let mappings = "/2015-03-31/event-source-mappings";
    let all = call(&address, "GET", mappings, "").await.1;
    let (id, arn) = (&all["EventSourceMappings"][0]["UUID"], &all["EventSourceMappings"][0]["FunctionArn"]);
    let path = format!("{mappings}/{}", id.as_str().unwrap());
    let partial = json!("000000000000:function:Worker:live");
    for (function, status) in
        [(&json!("Worker"), 202), (arn, 202), (&partial, 202), (&json!("Worker2"), 400), (&json!(1), 400)]
    {
        let update = json!({"UUID": id, "FunctionName": function, "Enabled": false});
        let (answered, answer) = call(&address, "PUT", &path, &update.to_string()).await;
        assert_eq!(answered, status, "{function}: {answer}");
        let is_named = answer["message"].as_str().is_some_and(|why| why.contains("cannot change FunctionName"));
        assert_eq!(is_named, status == 400, "{function}: {answer}");
    }
    cloud.stop().await;
}
