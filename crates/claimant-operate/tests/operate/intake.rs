//! Pausing and resuming, in the local cloud.

use std::future::pending;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use claimant_aws::intake::{Api, Mapping as BreakersMapping};
use claimant_core::ErrorKind;
use claimant_core::intake::pause as pause_by;
use claimant_core::{Clock as _, SystemClock};
use claimant_operate::intake::{Change, Intake, Mapping};
use claimant_operate::switch::switch;
use serde_json::{Value, json};

/// Functions whose programs are never built: their mappings are there all the same.
const TEMPLATE: &str = "
Transform: AWS::Serverless-2016-10-31
Globals: {Function: {Handler: bootstrap, Runtime: provided.al2023, Timeout: 3}}
Resources:
  Orders: {Type: AWS::SQS::Queue}
  Payments: {Type: AWS::SQS::Queue}
  Confirm:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: confirm}}
    Properties:
      Events:
        Orders:
          Type: SQS
          Properties: {Queue: !GetAtt Orders.Arn, FunctionResponseTypes: [ReportBatchItemFailures]}
  Charge:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: charge}}
    Properties:
      Events:
        Payments: {Type: SQS, Properties: {Queue: !GetAtt Payments.Arn, Enabled: false}}
";

const LONG: Duration = Duration::from_secs(60);

fn shown(mapping: &Mapping) -> (&str, &str, &str, bool) {
    (&mapping.function, &mapping.queue, &mapping.state, mapping.reports_failures)
}

#[tokio::test(flavor = "multi_thread")]
async fn mappings_are_paused_and_resumed() {
    let (_directory, cloud, place) = super::open(TEMPLATE).await;
    let intake = Intake::of(&place);

    let all = intake.list_in(&place).await.unwrap();
    let [confirm, charge] = &all[..] else { panic!("{all:?}") };
    let confirm = intake.settled(confirm, LONG, pending()).await.unwrap();
    assert_eq!(shown(&confirm), ("Confirm", "Orders", "Enabled", true));
    assert_eq!(shown(charge), ("Charge", "Payments", "Disabled", false));

    let pause = Change { enabled: Some(false), ..Change::default() };
    let paused = intake.change(&confirm, pause).await.unwrap();
    let paused = intake.settled(&paused, LONG, pending()).await.unwrap();
    assert_eq!(shown(&paused), ("Confirm", "Orders", "Disabled", true));
    assert_eq!(intake.change(&paused, pause).await.unwrap(), paused);
    let resume = Change { enabled: Some(true), reports_failures: Some(true) };
    for mapping in [&paused, charge] {
        let resumed = intake.change(mapping, resume).await.unwrap();
        let resumed = intake.settled(&resumed, LONG, pending()).await.unwrap();
        assert_eq!((resumed.state.as_str(), resumed.reports_failures), ("Enabled", true));
    }

    // Listed before the others were changed: what Lambda has now decides.
    for (listed, enabled, state) in [(&paused, false, "Disabled"), (&confirm, true, "Enabled")] {
        let change = Change { enabled: Some(enabled), ..Change::default() };
        let all = switch(&intake, vec![listed.clone()], change, LONG, pending()).await;
        let now = intake.list("Confirm").await.unwrap().remove(0);
        assert_eq!((all[0].is_changed(), shown(&now)), (true, ("Confirm", "Orders", state, true)), "{all:?}");
        assert_eq!(all[0].mapping, now);
    }
    let of_charge = intake.list("Charge").await.unwrap();
    assert_eq!(of_charge.iter().map(shown).collect::<Vec<_>>(), [("Charge", "Payments", "Enabled", true)]);
    assert!(intake.list("None").await.unwrap().is_empty());

    // A breaker has paused it, and a schedule is to switch it on.
    let arn = |service: &str, name: &str| format!("arn:aws:{service}:us-east-1:000000000000:{name}");
    let (function, queue, role) = (arn("lambda", "function:Confirm"), arn("sqs", "Orders"), arn("iam", "role/resume"));
    let role = role.replace("us-east-1", "");
    let api = Api { config: place.aws(), near: &function, clock: &SystemClock };
    let until = SystemClock.now().plus(Duration::from_secs(600));
    pause_by(&BreakersMapping::new(api, &function, &queue, &role), until, "breaker mail of confirm").await.unwrap();
    let paused = intake.list("Confirm").await.unwrap().remove(0);
    let back = intake.comes_back(&paused).await.unwrap().unwrap();
    assert!(back.to_string().ends_with("Z (breaker mail of confirm)"), "{back}");
    assert_eq!(intake.keep_off(&paused).await.unwrap().len(), 1);
    assert_eq!((intake.comes_back(&paused).await.unwrap(), paused.is_on()), (None, false));

    let gone = Mapping { id: "none".to_owned(), ..paused };
    let error = intake.change(&gone, resume).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("Confirm and Orders cannot be changed: it is not there"), "{error}");
    cloud.stop().await;
}

/// The status and the body of an answer.
async fn call(url: &str, request: &'static str) -> (u16, Value) {
    let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    let answer = answer.await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

/// The SDKs differ in the slash before the query and in what they percent-encode; all ask for pages of their own size.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_any_sdk_are_answered() {
    let (_directory, cloud, place) = super::open(TEMPLATE).await;
    let url = place.endpoint("LAMBDA").unwrap();
    for (request, field, path) in [
        ("/2015-03-31/functions?MaxItems=1", "/Functions/0/FunctionName", "Confirm"),
        ("/2015-03-31/functions/?Marker=1&MaxItems=1", "/Functions/0/FunctionName", "Charge"),
        ("/2015-03-31/functions?MaxItems=1", "/NextMarker", "1"),
        ("/2015-03-31/functions/Charge", "/Configuration/FunctionName", "Charge"),
        ("/2015-03-31/functions/Charge/configuration", "/FunctionName", "Charge"),
        ("/2015-03-31/event-source-mappings/?Marker=1", "/EventSourceMappings/0/State", "Disabled"),
        (
            "/2015-03-31/event-source-mappings?EventSourceArn=arn%3Aaws%3Asqs%3Aus-east-1%3A000000000000%3APayments&MaxItems=9",
            "/EventSourceMappings/0/FunctionArn",
            "arn:aws:lambda:us-east-1:000000000000:function:Charge",
        ),
        (
            "/2017-03-31/tags/arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3ACharge",
            "/Tags/aws:cloudformation:logical-id",
            "Charge",
        ),
        (
            "/2017-03-31/tags/arn:aws:lambda:us-east-1:000000000000:function:Confirm",
            "/Tags/aws:cloudformation:stack-name",
            "local",
        ),
    ] {
        let (status, answer) = call(url, request).await;
        assert_eq!((status, answer.pointer(field)), (200, Some(&json!(path))), "{request}: {answer}");
    }
    let (status, answer) = call(url, "/2015-03-31/functions?Marker=1").await;
    assert_eq!((status, &answer["NextMarker"]), (200, &Value::Null), "the last page");
    cloud.stop().await;
}
