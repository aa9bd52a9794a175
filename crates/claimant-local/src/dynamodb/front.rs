//! What stands before the engine's own server, which answers every client.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use tokio::net::TcpListener;

use super::look::{Look, look, texts};
use crate::endpoint;
use crate::faults::{Act, Faults, Target};
use crate::journal::{Journal, Text, What};

/// The largest request that is looked at: more than DynamoDB takes.
const REQUEST_MAX_BYTES: usize = 32 * 1024 * 1024;

const OPERATION_HEADER: &str = "x-amz-target";

/// What the engine answers where it does not have an operation.
const UNKNOWN: &[u8] = br#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#;

/// The latest messages of a record that a fault is told of. Of a key that is too coarse, all of them have one.
const TOLD_OF_RECORD_MAX: usize = 100;

/// How the headers begin that let pages of other origins ask.
const CORS: &str = "access-control-";

/// Carries requests to the engine.
#[derive(Clone)]
struct Engine {
    client: Client<HttpConnector, Body>,
    address: SocketAddr,
    observed: Option<Observed>,
}

/// What is done with requests on their way.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// Learns which message asks for which record.
    pub(super) journal: Journal,
    /// What goes wrong on purpose.
    pub(super) faults: Faults,
}

/// Returns a listener for the engine, at an address that no web page finds: a random one of 127.0.0.0/8, or where the system
/// has only 127.0.0.1, a free port of that.
pub(super) async fn hidden_listener() -> std::io::Result<TcpListener> {
    let [a, b, c, ..] = uuid::Uuid::new_v4().into_bytes();
    // 1 to 254: neither a network's address nor a broadcast's.
    let part = |byte: u8| byte % 254 + 1;
    match TcpListener::bind((Ipv4Addr::new(127, part(a), part(b), part(c)), 0)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await,
    }
}

/// Returns what answers on the endpoint: every request goes on to the engine at `address`.
pub(super) fn router(address: SocketAddr, observed: Option<Observed>) -> Router {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    Router::new().fallback(answer).with_state(Engine { client, address, observed })
}

async fn answer(State(engine): State<Engine>, request: Request) -> Response {
    let Some(Observed { journal, faults }) = &engine.observed else { return forward(&engine, request).await };
    let (head, body) = request.into_parts();
    // What cannot be read is the sender's own affair: its connection is closed.
    let Ok(body) = to_bytes(body, REQUEST_MAX_BYTES).await else { return endpoint::no_answer() };
    let Look { target, ties } = look(operation(&head.headers), &body);
    ties.iter().for_each(|(message, record)| journal.tie(message, record));
    let note = |did| note(journal, did, target, &ties, &body);
    if faults.acts(target, Act::Cut) {
        note("cut");
        return endpoint::no_answer();
    }
    if faults.acts(target, Act::Throttle) {
        note("throttle");
        return refusal(
            StatusCode::BAD_REQUEST,
            "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
            "a fault throttles this request",
        );
    }
    let answer = forward(&engine, Request::from_parts(head, Body::from(body.clone()))).await;
    if !faults.acts(target, Act::Lose) {
        return answer;
    }
    note("lose");
    endpoint::no_answer()
}

/// Notes what a fault did to a request: of the messages that claim, or of the latest that have asked for the records that it names.
fn note(journal: &Journal, did: &'static str, target: Target, ties: &[(String, String)], request: &[u8]) {
    let of = match target {
        Target::Claims => "claims",
        Target::Settlements => "settlements",
        Target::Reads => "reads",
        _ => return,
    };
    let messages: BTreeSet<Text> = match target {
        Target::Claims => ties.iter().map(|(message, _)| message.as_str().into()).collect(),
        _ => texts(request).iter().flat_map(|record| journal.messages_of(record, TOLD_OF_RECORD_MAX).0).collect(),
    };
    if !messages.is_empty() {
        let messages = messages.into_iter().collect();
        journal.note(|| What::TableFault { did, of, messages }, |event| event);
    }
}

async fn forward(engine: &Engine, mut request: Request) -> Response {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri = Uri::builder().scheme("http").authority(engine.address.to_string()).path_and_query(path).build();
    *request.uri_mut() = uri.expect("an address and a path that was one make a URI");
    let operation = operation(request.headers()).to_owned();
    match engine.client.request(request).await {
        // Others are passed on as they come: one that cancels a transaction can hold a hundred items.
        Ok(response)
            if response.status() == StatusCode::BAD_REQUEST
                && response.body().size_hint().exact() == Some(UNKNOWN.len() as u64) =>
        {
            let (head, body) = response.into_parts();
            match to_bytes(Body::new(body), UNKNOWN.len()).await {
                // AWS, which has the operation, would say more.
                Ok(body) if body == UNKNOWN && !operation.is_empty() => {
                    let why = format!("the local DynamoDB has no {operation}");
                    refusal(StatusCode::BAD_REQUEST, "com.amazon.coral.service#UnknownOperationException", &why)
                }
                Ok(body) => without_cors(Response::from_parts(head, Body::from(body))),
                Err(_) => endpoint::no_answer(),
            }
        }
        Ok(response) => without_cors(response.map(Body::new)),
        // The SDKs try again on this.
        Err(_) => refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            "com.amazonaws.dynamodb.v20120810#InternalServerError",
            "the embedded DynamoDB did not answer",
        ),
    }
}

/// Removes what lets every page read the engine's answers, and send what only a program may.
fn without_cors(mut response: Response) -> Response {
    let names: Vec<_> = response.headers().keys().filter(|name| name.as_str().starts_with(CORS)).cloned().collect();
    names.iter().for_each(|name| drop(response.headers_mut().remove(name)));
    response
}

/// Returns the name of the operation that a request asks for; empty where it names none.
fn operation(headers: &HeaderMap) -> &str {
    let operation = headers.get(OPERATION_HEADER).and_then(|operation| operation.to_str().ok());
    operation.and_then(|operation| operation.rsplit_once('.')).map_or("", |(_, name)| name)
}

fn refusal(status: StatusCode, kind: &str, message: &str) -> Response {
    (status, axum::Json(json!({ "__type": kind, "message": message }))).into_response()
}
