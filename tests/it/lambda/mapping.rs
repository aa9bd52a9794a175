//! Strict start (fault 34), against an endpoint that stands for Lambda's API.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant::lambda::Service;
use claimant::memory::MemoryStore;
use claimant::{Clock, Consumer, SystemClock};
use claimant_testkit::logs::Logs;
use claimant_tests::wire::Wire;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::world::{aws, body, event, failures, settings, work};

const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:orders:live";
const QUEUE: &str = "arn:aws:sqs:us-east-1:123456789012:orders";
const REPORTS: &str =
    r#"{"EventSourceMappings":[{"State":"Enabled","FunctionResponseTypes":["ReportBatchItemFailures"]}]}"#;
const DELETES: &str = r#"{"EventSourceMappings":[{"State":"Enabled","FunctionResponseTypes":[]}]}"#;
const NOT_FOUND: &str = r#"{"EventSourceMappings":[]}"#;

/// Stands for Lambda's API: always the same answer, once it is let answer at all.
#[derive(Clone)]
struct Api {
    requests: Arc<Mutex<Vec<String>>>,
    answer: Arc<Mutex<(u16, &'static str)>>,
    open: watch::Sender<bool>,
}

impl Api {
    /// The API, and the address it listens on.
    async fn start(status: u16, answer: &'static str) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let api = Self {
            requests: Arc::default(),
            answer: Arc::new(Mutex::new((status, answer))),
            open: watch::channel(true).0,
        };
        let served = api.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().serve(stream));
            }
        });
        (api, address)
    }

    async fn serve(self, mut stream: TcpStream) {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).await.unwrap_or(0) == 0 {
                return;
            }
            request.push(byte[0]);
        }
        self.requests.lock().unwrap().push(String::from_utf8(request).unwrap());
        self.open.subscribe().wait_for(|open| *open).await.unwrap();
        let (status, body) = *self.answer.lock().unwrap();
        let answer =
            format!("HTTP/1.1 {status} .\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn service(mode: &str, address: &str) -> Service {
    let variables = [("CLAIMANT_MAPPING_CHECK", mode), ("CLAIMANT_VISIBILITY", "off"), ("CLAIMANT_METRICS", "off")];
    let consumer = Consumer::new("c", MemoryStore::new(), work).key(|w| &w.id);
    Service::with_aws(&settings(&variables), consumer, Some(&aws(address, Wire::default()).await)).unwrap()
}

/// A message whose question waits for two fifths of the longest wait, and one whose question does not wait.
const WAITS: &str = "m2";
const AT_ONCE: &str = "aA";

/// How long a request may take to arrive; nothing is decided by how long it took.
const PATIENCE: Duration = Duration::from_secs(60);

async fn invoke(service: &Service, action: &str) -> Result<Vec<String>, String> {
    invoke_with(service, WAITS, action).await
}

/// An invocation with two messages, of which the second asks for `action`: the ids reported failed, or the error.
async fn invoke_with(service: &Service, second: &str, action: &str) -> Result<Vec<String>, String> {
    let record = |id: &str, body: String| json!({ "messageId": id, "body": body, "eventSourceARN": QUEUE });
    let event = event(vec![record("m1", body("a", "ok")), record(second, body("b", action))]);
    let deadline = SystemClock.now().plus(Duration::from_secs(60)).as_millis();
    let response = service.invoke(event, deadline, FUNCTION).await.map_err(|error| error.to_string())?;
    Ok(failures(&response.0).into_iter().map(str::to_owned).collect())
}

#[tokio::test]
async fn a_mapping_that_deletes_failures_gets_none() {
    let deletes = "lacks ReportBatchItemFailures";
    let may_not = "lacks a permission";
    // A pause of the intake needs it whatever the check is.
    let allow_it = "allow it lambda:ListEventSourceMappings (on resource *), or, without CLAIMANT_RESUME_ROLE_ARN, set";
    let no_answer = "gave no answer";
    let not_found = "no event source mapping of this function";
    // mode, status, answer, action, what is said, how many failed, or a part of the error
    let rows = [
        ("off", 200, DELETES, "fail", None, Ok(1)),
        ("warn", 200, REPORTS, "fail", None, Ok(1)),
        ("warn", 200, DELETES, "fail", Some(("ERROR", deletes)), Ok(1)),
        ("warn", 403, "{}", "fail", Some(("WARN", may_not)), Ok(1)),
        ("warn", 200, NOT_FOUND, "fail", Some(("INFO", not_found)), Ok(1)),
        ("refuse", 200, REPORTS, "fail", None, Ok(1)),
        ("refuse", 200, REPORTS, "ok", None, Ok(0)),
        ("refuse", 200, DELETES, "ok", None, Ok(0)),
        ("warn", 200, DELETES, "ok", None, Ok(0)),
        ("refuse", 200, DELETES, "fail", Some(("ERROR", deletes)), Err("1 of 2 messages failed, and the event source")),
        ("refuse", 200, NOT_FOUND, "fail", Some(("ERROR", not_found)), Err(not_found)),
        ("refuse", 403, "{}", "fail", Some(("ERROR", may_not)), Err(allow_it)),
        ("refuse", 500, "{}", "fail", Some(("ERROR", no_answer)), Err(no_answer)),
        ("refuse", 200, "<html>", "fail", Some(("ERROR", no_answer)), Err(no_answer)),
    ];
    for (mode, status, answer, action, said, wanted) in rows {
        let row = (mode, status, answer, action);
        let logs = Logs::record();
        let (api, address) = Api::start(status, answer).await;
        let service = service(mode, &address).await;
        // Only failures raise the question.
        let requests = usize::from(mode != "off" && action != "ok");
        // In `refuse` the batch would wait, in real time.
        let second = if mode == "warn" { WAITS } else { AT_ONCE };
        // Twice: the question is put once.
        for round in 0..2 {
            match (invoke_with(&service, second, action).await, &wanted) {
                (Ok(failures), Ok(wanted)) => assert_eq!(failures, vec![second; *wanted], "{row:?}"),
                (Err(error), Err(wanted)) => assert!(error.contains(wanted), "{row:?}: {error}"),
                (other, _) => panic!("{row:?}: {other:?}"),
            }
            if mode == "warn" {
                // In a fleet whose functions fail all at once, each asks at another moment of the next minute.
                assert!(round > 0 || api.requests().is_empty(), "{row:?}");
                pass_a_minute().await;
            }
            let start = std::time::Instant::now();
            while api.requests().len() < requests || said.is_some_and(|(_, said)| !logs.text().contains(said)) {
                assert!(start.elapsed() < PATIENCE, "{row:?}: {:?} {}", api.requests(), logs.text());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        assert_eq!(api.requests().len(), requests, "{row:?}");
        let text = logs.text();
        let lines: Vec<_> = text.lines().filter(|line| line.contains("event source mapping")).collect();
        assert_eq!(lines.len(), usize::from(said.is_some()), "{row:?}: {text}");
        assert!(
            said.is_none_or(|(level, said)| lines[0].contains(level) && lines[0].contains(said)),
            "{row:?}: {text}"
        );
    }
}

/// Lets the question's own wait pass, and the time until it may be put again.
async fn pass_a_minute() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(62)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn the_request_is_signed_and_names_function_and_queue() {
    let (api, address) = Api::start(200, REPORTS).await;
    invoke(&service("refuse", &address).await, "fail").await.unwrap();
    let request = api.requests().pop().unwrap().to_lowercase();
    let line = "get /2015-03-31/event-source-mappings?eventsourcearn=arn%3aaws%3asqs%3aus-east-1%3a123456789012%3aorders\
                &functionname=arn%3aaws%3alambda%3aus-east-1%3a123456789012%3afunction%3aorders%3alive http/1.1\r\n";
    assert!(request.starts_with(line), "{request}");
    assert!(request.contains("\r\nauthorization: aws4-hmac-sha256 credential=local/"), "{request}");
    assert!(request.contains("/us-east-1/lambda/aws4_request"), "{request}");
    assert!(request.contains("\r\nx-amz-date: "), "{request}");
}

/// Only a failure waits for the answer.
#[tokio::test]
async fn no_invocation_waits_for_the_answer_without_need() {
    let (api, address) = Api::start(200, REPORTS).await;
    api.open.send_replace(false);
    let warning = service("warn", &address).await;
    assert_eq!(invoke(&warning, "fail").await, Ok(vec!["m2".to_owned()]));

    let (reported, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let refusing = service("refuse", &address).await.metrics(move |_| reported.send(()).unwrap());
    assert_eq!(invoke(&refusing, "ok").await, Ok(vec![]));
    reports.recv().await.unwrap();
    let failing = async { invoke(&refusing, "other").await };
    let opening = async {
        // The report of the batch is there, and its answer is not.
        reports.recv().await.unwrap();
        tokio::task::yield_now().await;
        api.open.send_replace(true);
    };
    tokio::pin!(failing);
    tokio::select! {
        biased;
        answer = &mut failing => panic!("it did not wait: {answer:?}"),
        () = opening => {}
    }
    assert_eq!(failing.await, Ok(vec!["m2".to_owned()]));
}

/// A mapping that is mended is seen to be, a minute later.
#[tokio::test]
async fn a_refusal_ends_when_the_mapping_is_mended() {
    let (api, address) = Api::start(200, DELETES).await;
    let service = service("refuse", &address).await;
    invoke(&service, "fail").await.unwrap_err();
    *api.answer.lock().unwrap() = (200, REPORTS);
    invoke(&service, "fail").await.unwrap_err();
    pass_a_minute().await;
    for _ in 0..2 {
        assert_eq!(invoke(&service, "fail").await, Ok(vec!["m2".to_owned()]));
    }
    assert_eq!(api.requests().len(), 2);
}

#[tokio::test]
async fn outside_lambda_there_is_no_mapping_to_check() {
    let (api, address) = Api::start(200, DELETES).await;
    let mut config = aws(&address, Wire::default()).await.into_builder();
    config.set_endpoint_url(None);
    let consumer = Consumer::new("c", MemoryStore::new(), work).key(|w| &w.id);
    let variables = [("CLAIMANT_MAPPING_CHECK", "refuse"), ("CLAIMANT_METRICS", "off"), ("CLAIMANT_VISIBILITY", "off")];
    let service = Service::with_aws(&settings(&variables), consumer, Some(&config.build())).unwrap();
    let record = json!({ "messageId": "m1", "body": body("a", "fail"), "eventSourceARN": QUEUE });
    let deadline = SystemClock.now().plus(Duration::from_secs(60)).as_millis();
    for arn in ["", "function-arn", "arn:aws:lambda:us-east-1:000000000000:function:orders"] {
        let response = service.invoke(event(vec![record.clone()]), deadline, arn).await.unwrap();
        assert_eq!(failures(&response.0), ["m1"]);
    }
    assert!(api.requests().is_empty());
}
