//! The Lambda runtime API of one execution environment.
//!
//! A process asks for the next event, which may take for ever, and answers it by the event's request id. Only the
//! current event can be answered, and only once: anything else is refused as Lambda refuses it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::invocation::Invocation;
use crate::clock::wall_clock_ms;
use crate::endpoint;
use crate::sync::lock;

/// The largest response, in bytes, as Lambda has it: 6 MB and a little for its envelope.
pub(super) const RESPONSE_BYTES_MAX: usize = 6 * 1024 * 1024 + 100;

/// How much of a response that is too large is still read, so that the process gets its answer and not a reset.
const RESPONSE_READ_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The longest type of an error, in bytes; the rest is cut off. Functions choose it, and it is kept with each message of the batch.
const ERROR_TYPE_BYTES_MAX: usize = 256;

const ERROR_TYPE_HEADER: &str = "lambda-runtime-function-error-type";

/// One event on its way to a process.
pub(super) struct Event {
    pub(super) request_id: String,
    pub(super) payload: Bytes,
    pub(super) timeout: Duration,
    /// Notified when the process has asked for the event; the timeout runs from then.
    pub(super) taken: oneshot::Sender<()>,
    /// Gets what the process answered.
    pub(super) answer: oneshot::Sender<Invocation>,
}

/// The running API. Dropping it ends it.
pub(super) struct RuntimeApi {
    pub(super) address: SocketAddr,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) init_error: oneshot::Receiver<Invocation>,
    // Ended by its drop.
    _server: JoinSet<()>,
}

struct Shared {
    function_arn: String,
    events: tokio::sync::Mutex<mpsc::Receiver<Event>>,
    current: Mutex<Option<Current>>,
    init_error: Mutex<Option<oneshot::Sender<Invocation>>>,
}

struct Current {
    request_id: String,
    answer: oneshot::Sender<Invocation>,
}

impl RuntimeApi {
    /// Listens on a free port of 127.0.0.1.
    pub(super) async fn start(function_arn: String) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (events, receiver) = mpsc::channel(1);
        let (init_sender, init_error) = oneshot::channel();
        let shared = Arc::new(Shared {
            function_arn,
            events: tokio::sync::Mutex::new(receiver),
            current: Mutex::default(),
            init_error: Mutex::new(Some(init_sender)),
        });
        let routes = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(init_error_report))
            .layer(DefaultBodyLimit::disable())
            .with_state(shared);
        let mut server = JoinSet::new();
        // OK because axum's server never returns: it waits out errors of the socket.
        server
            .spawn(async move { drop(endpoint::serve("runtime API", listener, routes, std::future::pending()).await) });
        Ok(Self { address, events, init_error, _server: server })
    }
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
    let Some(event) = shared.events.lock().await.recv().await else {
        return refusal(StatusCode::GONE, "ShuttingDown", "the execution environment is ending");
    };
    let deadline_ms = wall_clock_ms() + u64::try_from(event.timeout.as_millis()).unwrap_or(u64::MAX / 2);
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("lambda-runtime-aws-request-id", event.request_id.clone()),
        ("lambda-runtime-deadline-ms", deadline_ms.to_string()),
        ("lambda-runtime-invoked-function-arn", shared.function_arn.clone()),
        ("lambda-runtime-trace-id", trace_id()),
    ];
    *lock(&shared.current) = Some(Current { request_id: event.request_id, answer: event.answer });
    // OK to fail: the caller has stopped waiting, and the process is about to be killed.
    let _ = event.taken.send(());
    (headers, Body::from(event.payload)).into_response()
}

async fn response(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Body) -> Response {
    let body = axum::body::to_bytes(body, RESPONSE_READ_BYTES_MAX).await;
    let size = body.as_ref().map_or(RESPONSE_READ_BYTES_MAX, Bytes::len);
    match body {
        Ok(body) if size <= RESPONSE_BYTES_MAX => answer(&shared, &id, Invocation::Response(body.to_vec())),
        _ => {
            let message = format!("a response of {size} bytes is over the limit of {RESPONSE_BYTES_MAX} bytes");
            let too_large = Invocation::FunctionError {
                kind: "Function.ResponseSizeTooLarge".to_owned(),
                message: message.clone(),
            };
            let accepted = answer(&shared, &id, too_large);
            if accepted.status().is_success() {
                return refusal(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", &message);
            }
            accepted
        }
    }
}

async fn error(State(shared): State<Arc<Shared>>, Path(id): Path<String>, headers: HeaderMap, body: Body) -> Response {
    let report = error_report(&headers, body).await;
    answer(&shared, &id, report)
}

async fn init_error_report(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Body) -> Response {
    let report = error_report(&headers, body).await;
    let sender = lock(&shared.init_error).take();
    match sender.map(|sender| sender.send(report)) {
        Some(Ok(())) => accepted(),
        _ => refusal(StatusCode::FORBIDDEN, "InvalidStateTransition", "an init error was reported already"),
    }
}

fn answer(shared: &Shared, id: &str, result: Invocation) -> Response {
    let current = lock(&shared.current).take_if(|current| current.request_id == id);
    match current.map(|current| current.answer.send(result)) {
        Some(Ok(())) => accepted(),
        _ => refusal(StatusCode::BAD_REQUEST, "InvalidRequestID", "this request id is not the current invocation's"),
    }
}

async fn error_report(headers: &HeaderMap, body: Body) -> Invocation {
    let body = axum::body::to_bytes(body, RESPONSE_BYTES_MAX).await.unwrap_or_default();
    let report: Value = serde_json::from_slice(&body).unwrap_or_default();
    let field = |name: &str| report.get(name).and_then(Value::as_str).map(str::to_owned);
    let header = || headers.get(ERROR_TYPE_HEADER)?.to_str().ok().map(str::to_owned);
    let kind = field("errorType").or_else(header).unwrap_or_else(|| "Unhandled".to_owned());
    Invocation::FunctionError {
        kind: kind[..kind.floor_char_boundary(ERROR_TYPE_BYTES_MAX)].to_owned(),
        message: field("errorMessage").unwrap_or_else(|| "the function reported an error without a message".to_owned()),
    }
}

fn accepted() -> Response {
    (StatusCode::ACCEPTED, axum::Json(json!({"status": "OK"}))).into_response()
}

fn refusal(status: StatusCode, kind: &str, message: &str) -> Response {
    let body = json!({"errorType": kind, "errorMessage": message});
    (status, axum::Json(body)).into_response()
}

/// A header of X-Ray's form, never sampled.
fn trace_id() -> String {
    let (root, parent) = (Uuid::new_v4().simple().to_string(), Uuid::new_v4().simple().to_string());
    let seconds = wall_clock_ms() / 1_000;
    format!("Root=1-{seconds:08x}-{};Parent={};Sampled=0", &root[..24], &parent[..16])
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn the_type_of_an_error_is_cut_where_it_is_long() {
        let kind = format!("x{}", "ü".repeat(1_000_000));
        let body = Body::from(json!({ "errorType": kind, "errorMessage": "" }).to_string());
        let Invocation::FunctionError { kind, .. } = error_report(&HeaderMap::new(), body).await else {
            panic!("it is an error")
        };
        assert_eq!(kind.len(), 255, "no character is cut");
    }

    #[tokio::test]
    async fn events_are_for_callers_on_this_machine() {
        let api = RuntimeApi::start("arn".to_owned()).await.unwrap();
        for (host, expected) in [("evil.example", "HTTP/1.1 403"), ("127.0.0.1", "HTTP/1.1 400")] {
            let mut stream = TcpStream::connect(api.address).await.unwrap();
            let head = format!(
                "POST /2018-06-01/runtime/invocation/x/response HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(expected), "{host}: {answer}");
        }
    }
}
