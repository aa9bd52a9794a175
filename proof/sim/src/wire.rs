//! The wire between the SDK's clients and the simulated cloud: each request has its way, and its fate.
//!
//! A request goes its way apart from its sender: once asked, it arrives, or does not, whether its sender lives or not.

use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use claimant_simulated::dynamo;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::calls::LOCKS;
use crate::history::{Event, InvocationNo, RequestNo};
use crate::intake_api;
use crate::mutant::Mutant;
use crate::process;
use crate::queue_api;
use crate::scenario::{Fate, Fault};
use crate::world::World;

/// The shortest and the longest way of a request, one way, in microseconds.
const WAY_US: (u64, u64) = (500, 8_000);

/// An HTTP client of the simulated cloud.
#[derive(Clone)]
pub struct Wire {
    /// The cloud.
    pub world: World,
    /// Whether it is an operator's.
    pub of_operator: bool,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wire")
    }
}

impl HttpClient for Wire {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

/// A request on its way.
struct Sent {
    request: RequestNo,
    invocation: Option<InvocationNo>,
    operation: String,
    body: Value,
    fate: Option<Fate>,
    of_store: bool,
}

/// What comes back; `None` is silence.
type Back = Option<Result<(u16, Value), &'static str>>;

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        if let Some(answer) = intake_api::ask(&self.world, &request) {
            return intake_answer(answer);
        }
        let mut body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default();
        let (service, operation) = match (target.split_once('.'), schedule_name(request.uri())) {
            (Some(named), _) => named,
            (None, Some(name)) => {
                body["Name"] = json!(name);
                ("Scheduler", if request.method() == "POST" { "CreateSchedule" } else { "GetSchedule" })
            }
            (None, None) => return self.list_mappings(),
        };
        let sent = self.ask(service.starts_with("DynamoDB"), operation, body);
        let (number, of_store, world) = (sent.request, sent.of_store, self.world.clone());
        let (sender, answer) = oneshot::channel();
        tokio::spawn(travel(self.world.clone(), sent, sender));
        HttpConnectorFuture::new(async move {
            let mut waiting = Waiting { world, request: number, of_store, waits: true };
            let back: Back = answer.await.unwrap_or_default();
            match back {
                Some(Ok((status, body))) => {
                    waiting.waits = false;
                    waiting.note(Event::Answered { request: number, good: status == 200 });
                    response(status, &body)
                }
                Some(Err(why)) => Err(ConnectorError::io(why.into())),
                None => std::future::pending().await,
            }
        })
    }
}

impl Wire {
    fn ask(&self, of_store: bool, operation: &str, mut body: Value) -> Sent {
        let invocation = process::current().filter(|_| !self.of_operator);
        let mut state = self.world.state();
        let state_ref = &mut *state;
        let request = if of_store { state_ref.next_store_request() } else { state_ref.next_queue_request() };
        let calls = if of_store { state_ref.owners.calls(operation, &body) } else { Vec::new() };
        drop(state);
        let fate = self.world.fate(of_store, request).or_else(|| self.fate_of_read(operation));
        let operation = operation.to_owned();
        self.world.note(if of_store {
            let (operation, of_operator) = (operation.clone(), self.of_operator);
            Event::Asked { request, invocation, operation, calls, fate, of_operator }
        } else {
            Event::QueueAsked { request, invocation, operation: operation.clone(), fate }
        });
        match self.world.mutant {
            Some(Mutant::ActsUnguarded) if self.of_operator => body["ConditionExpression"] = Value::Null,
            Some(mutant) => mutant.bend_request(&operation, &mut body),
            None => {}
        }
        Sent { request, invocation, operation, body, fate, of_store }
    }

    /// What is to happen to this request if it reads many records: too few do to be met by chance.
    fn fate_of_read(&self, operation: &str) -> Option<Fate> {
        let reads = |asked: &str| asked == "BatchGetItem";
        if !reads(operation) {
            return None;
        }
        let state = self.world.state();
        let earlier = state.history.events.iter().filter(|(_, event)| match event {
            Event::Asked { operation, .. } => reads(operation),
            _ => false,
        });
        let number = earlier.count() as u32;
        drop(state);
        self.world.fault_of(|fault| match *fault {
            Fault::Read { nth, unread } if nth == number => Some(Fate::PartlyThrottled(unread)),
            _ => None,
        })
    }

    /// What Lambda's API says of the event source mapping.
    fn list_mappings(&self) -> HttpConnectorFuture {
        let reports = self.world.scenario.function.mapping_reports.unwrap_or(true);
        let types = if reports { json!(["ReportBatchItemFailures"]) } else { json!([]) };
        let body = json!({ "EventSourceMappings": [{ "State": "Enabled", "FunctionResponseTypes": types }] });
        HttpConnectorFuture::new(async move {
            sleep(Duration::from_millis(20)).await;
            response(200, &body)
        })
    }
}

/// The name of the schedule that this address is of.
fn schedule_name(uri: &str) -> Option<&str> {
    uri.split_once("/schedules/")?.1.split('?').next()
}

/// What comes of a request about the intake.
fn intake_answer(answer: oneshot::Receiver<Result<(u16, &'static str, Value), &'static str>>) -> HttpConnectorFuture {
    HttpConnectorFuture::new(async move {
        match answer.await {
            Ok(Ok((status, code, body))) => response(status, &body).map(|mut response| {
                response.headers_mut().insert("x-amzn-errortype", code);
                response
            }),
            Ok(Err(why)) => Err(ConnectorError::io(why.into())),
            Err(_) => std::future::pending().await,
        }
    })
}

fn response(status: u16, body: &Value) -> Result<HttpResponse, ConnectorError> {
    let status = status.try_into().map_err(|_| ConnectorError::other("no status".into(), None))?;
    Ok(HttpResponse::new(status, SdkBody::from(body.to_string())))
}

/// A sender who waits for an answer; notes if it gives up.
struct Waiting {
    world: World,
    request: RequestNo,
    of_store: bool,
    waits: bool,
}

impl Waiting {
    fn note(&self, event: Event) {
        if self.of_store {
            self.world.note(event);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.waits {
            self.note(Event::Unanswered { request: self.request });
        }
    }
}

async fn travel(world: World, mut sent: Sent, sender: oneshot::Sender<Back>) {
    let (least, most) = WAY_US;
    let way = |which: u64| {
        let random = world.random(which + u64::from(sent.of_store) * 2, sent.request);
        Duration::from_micros(least + random % (most - least))
    };
    let (there, back) = (way(1), way(2));
    sleep(there).await;
    let answer = match sent.fate {
        Some(Fate::Lost) => Some(Err("simulated: the request was lost")),
        Some(Fate::Silence) => None,
        Some(Fate::Throttled) => Some(Ok(throttled(sent.of_store))),
        Some(Fate::AnswerLost) => {
            arrive(&world, &mut sent, &sender);
            Some(Err("simulated: the answer was lost"))
        }
        Some(Fate::AnswerSilence) => {
            arrive(&world, &mut sent, &sender);
            None
        }
        Some(Fate::Error) => {
            arrive(&world, &mut sent, &sender);
            Some(Ok((500, dynamo::error("InternalServerError", "simulated"))))
        }
        Some(Fate::Late(ms)) => {
            sleep(Duration::from_millis(ms)).await;
            Some(Ok(arrive(&world, &mut sent, &sender)))
        }
        Some(Fate::Slow(ms)) => {
            let answer = arrive(&world, &mut sent, &sender);
            sleep(Duration::from_millis(ms)).await;
            Some(Ok(answer))
        }
        Some(Fate::PartlyThrottled(_)) | None => Some(Ok(arrive(&world, &mut sent, &sender))),
    };
    sleep(back).await;
    // OK because the receiver may have given up.
    let _ = sender.send(answer);
}

/// Carries the request out.
fn arrive(world: &World, sent: &mut Sent, sender: &oneshot::Sender<Back>) -> (u16, Value) {
    let refused = if let Some(Fate::PartlyThrottled(bits)) = sent.fate { bits } else { 0 };
    if !sent.of_store {
        return queue_api::serve_some(world, sent.invocation, &sent.operation, &sent.body, refused);
    }
    world.note(Event::Arrived { request: sent.request, abandoned: sender.is_closed() });
    match sent.operation.as_str() {
        "BatchExecuteStatement" if refused > 0 => {
            let kept = keep_some(&mut sent.body["Statements"], refused).0;
            if !kept.contains(&true) {
                return (200, with_throttled(json!({}), &kept));
            }
            let answer = world.serve(sent.request, &sent.operation, &sent.body);
            (answer.status, with_throttled(answer.body, &kept))
        }
        "BatchGetItem" if refused > 0 => {
            let (kept, unread) = keep_some(&mut sent.body["RequestItems"][LOCKS]["Keys"], refused);
            if !kept.contains(&true) {
                return throttled(true);
            }
            let mut answer = world.serve(sent.request, &sent.operation, &sent.body);
            if !unread.is_empty() {
                answer.body["UnprocessedKeys"] = json!({ LOCKS: { "Keys": unread } });
            }
            (answer.status, answer.body)
        }
        _ => {
            let answer = world.serve(sent.request, &sent.operation, &sent.body);
            (answer.status, answer.body)
        }
    }
}

fn throttled(of_store: bool) -> (u16, Value) {
    let code = if of_store { "ProvisionedThroughputExceededException" } else { "ThrottlingException" };
    (400, dynamo::error(code, "too many requests"))
}

/// Whether this place of a request for many is refused.
pub(crate) const fn is_refused(bits: u32, place: usize) -> bool {
    bits >> (place % 32) & 1 == 1
}

/// Takes out what is refused; tells for each if it was kept, and returns what was not.
fn keep_some(many: &mut Value, bits: u32) -> (Vec<bool>, Vec<Value>) {
    let Some(many) = many.as_array_mut() else { return (Vec::new(), Vec::new()) };
    let kept: Vec<bool> = (0..many.len()).map(|place| !is_refused(bits, place)).collect();
    let mut out = Vec::new();
    for (one, kept) in std::mem::take(many).into_iter().zip(&kept) {
        if *kept { many.push(one) } else { out.push(one) }
    }
    (kept, out)
}

/// Puts the answers of throttled statements in their places.
fn with_throttled(mut body: Value, kept: &[bool]) -> Value {
    let throttled = json!({ "Error": { "Code": "ThrottlingError", "Message": "too many requests" } });
    let answered = body["Responses"].as_array().cloned().unwrap_or_default();
    let mut answered = answered.into_iter();
    let all = kept.iter().map(|kept| kept.then(|| answered.next()).flatten().unwrap_or_else(|| throttled.clone()));
    body["Responses"] = all.collect();
    body
}
