//! The control endpoint over HTTP.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use axum::{Json, Router, middleware};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::service::{Control, LogLine};
use super::{management, stacks};
use crate::{Error, endpoint};

impl Control {
    /// Serves on `listener` until `shutdown` resolves and the requests under way are answered; readers of log lines are
    /// told that there are no more.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        let stopped = self.stopped.clone();
        let stop = async move {
            shutdown.await;
            stopped.send_replace(true);
        };
        endpoint::serve("control endpoint", listener, router(self), stop).await
    }
}

fn router(control: Control) -> Router {
    let lambda = management::router(Arc::clone(&control.functions));
    let cloudformation = stacks::router(Arc::clone(&control.functions));
    Router::new()
        .route("/_claimant/cloud", get(cloud))
        .route("/_claimant/effects", get(effects))
        .route("/_claimant/messages/{id}", get(message))
        .route("/_claimant/logs", get(logs))
        .route("/_claimant/faults", get(faults).post(begin_fault).delete(end_faults))
        .route("/_claimant/faults/{id}", delete(end_fault))
        .merge(lambda)
        .merge(cloudformation)
        .layer(middleware::from_fn(endpoint::own_pages_change))
        .with_state(control)
}

async fn faults(State(control): State<Control>) -> Response {
    Json(json!({ "faults": control.faults.all() })).into_response()
}

async fn begin_fault(State(control): State<Control>, body: Bytes) -> Response {
    let spec = serde_json::from_slice(&body).map_err(|e| format!("the request is no fault: {e}"));
    match spec.and_then(|spec| control.faults.begin(spec).map_err(|e| e.to_string())) {
        Ok(fault) => (StatusCode::CREATED, Json(fault)).into_response(),
        Err(why) => (StatusCode::BAD_REQUEST, Json(json!({ "error": why }))).into_response(),
    }
}

async fn end_faults(State(control): State<Control>) -> Response {
    Json(json!({ "faults": control.faults.end_all() })).into_response()
}

async fn end_fault(State(control): State<Control>, Path(id): Path<u64>) -> Response {
    match control.faults.end(id) {
        Ok(fault) => Json(fault).into_response(),
        Err(why) => (StatusCode::NOT_FOUND, Json(json!({ "error": why.to_string() }))).into_response(),
    }
}

async fn cloud(State(control): State<Control>) -> Response {
    match control.description.get() {
        Some(description) => Json(description).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the cloud is not ready yet").into_response(),
    }
}

async fn effects(State(control): State<Control>) -> Response {
    match control.effects.get() {
        Some(read) => Json(read().await).into_response(),
        None => (StatusCode::NOT_FOUND, "this cloud does not say what its functions have done").into_response(),
    }
}

/// A message as it was sent.
async fn message(State(control): State<Control>, Path(id): Path<String>) -> Response {
    let Some(body) = control.journal.body(&id) else {
        let why = "there is no message of this id, or its body is no longer kept";
        return (StatusCode::NOT_FOUND, Json(json!({ "error": why }))).into_response();
    };
    let events = control.journal.of_message(&id);
    let queue = events.iter().find_map(|event| event.queue.clone());
    let group = events.iter().find_map(|event| event.group());
    let attributes = control.journal.attributes(&id).and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let attributes = attributes.unwrap_or_else(|| json!({}));
    Json(json!({ "queue": queue, "group": group, "body": body, "attributes": attributes })).into_response()
}

async fn logs(State(control): State<Control>) -> Response {
    let reader = Reader { lines: control.lines.subscribe(), stopped: control.stopped.subscribe() };
    let lines = stream::unfold(reader, |mut reader| async move {
        let line = reader.next().await?;
        Some((Ok::<_, Infallible>(line), reader))
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

/// Who reads log lines.
struct Reader {
    lines: Receiver<LogLine>,
    stopped: watch::Receiver<bool>,
}

impl Reader {
    /// The next line; none once the cloud stops.
    async fn next(&mut self) -> Option<Bytes> {
        let value = tokio::select! {
            biased;
            received = self.lines.recv() => match received {
                Ok(LogLine { at_ms, function, line }) => {
                    json!({ "at_ms": at_ms, "function": &*function, "line": &*line })
                }
                Err(RecvError::Lagged(missed)) => json!({ "missed": missed }),
                Err(RecvError::Closed) => return None,
            },
            // An error means that the endpoint is gone.
            _ = self.stopped.wait_for(|stopped| *stopped) => return None,
        };
        Some(Bytes::from(format!("{value}\n")))
    }
}
