//! The wire between an SDK client and its endpoint, failing as scripted: faults at the SDK's HTTP connector.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long a test waits for a request.
const PATIENCE: Duration = Duration::from_secs(20);

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// It arrives, and so does its answer.
    None,
    /// It never arrives.
    Request,
    /// It arrives and is carried out; its answer is lost.
    Answer,
    /// It never arrives, without an error.
    Silence,
    /// It arrives when [`Wire::go_on`] is called.
    Waits,
    /// It never arrives, and this status and body come back.
    Instead(u16, &'static str),
}

/// An HTTP client that counts requests and loses some. Clones share script and count.
#[derive(Debug, Clone)]
pub struct Wire {
    inner: SharedHttpClient,
    state: Arc<Mutex<State>>,
    waits: Arc<Notify>,
    goes_on: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    script: VecDeque<Loss>,
    /// How every request fares, if they all fare alike.
    all: Option<Loss>,
    requests: Vec<String>,
    tokens: Vec<String>,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            inner: claimant_aws::http_client(),
            state: Arc::default(),
            waits: Arc::default(),
            goes_on: Arc::default(),
        }
    }
}

impl Wire {
    /// The next requests fare like this, one after the other; those after them arrive.
    pub fn script(&self, losses: &[Loss]) {
        self.state.lock().expect("not poisoned").script.extend(losses);
    }

    /// From now on every request fares like this, or again as scripted.
    pub fn all(&self, loss: Option<Loss>) {
        self.state.lock().expect("not poisoned").all = loss;
    }

    /// From now on every request arrives.
    pub fn forget_script(&self) {
        self.state.lock().expect("not poisoned").script.clear();
    }

    /// Until a request waits.
    pub async fn until_waiting(&self) {
        timeout(PATIENCE, self.waits.notified()).await.expect("a request waits");
    }

    /// Lets a request that waits arrive.
    pub fn go_on(&self) {
        self.goes_on.notify_one();
    }

    /// The operations asked for since the last call of this; a read that may miss the last writes by a name of its own.
    #[must_use]
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().expect("not poisoned").requests)
    }

    /// The idempotency tokens of the transactions asked for since the last call of this.
    #[must_use]
    pub fn take_tokens(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().expect("not poisoned").tokens)
    }

    fn begin(&self, request: &HttpRequest) -> Loss {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let mut operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body: serde_json::Value =
            serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default();
        if may_miss_writes(&operation, &body) {
            operation.push_str(", eventually consistent");
        }
        let mut state = self.state.lock().expect("not poisoned");
        state.requests.push(operation);
        state.tokens.extend(body["ClientRequestToken"].as_str().map(str::to_owned));
        state.all.or_else(|| state.script.pop_front()).unwrap_or(Loss::None)
    }
}

/// Whether a request reads by keys, and not strongly consistently.
fn may_miss_writes(operation: &str, body: &serde_json::Value) -> bool {
    match operation {
        "GetItem" => body["ConsistentRead"] != true,
        "BatchGetItem" => {
            body["RequestItems"].as_object().into_iter().flatten().any(|(_, of)| of["ConsistentRead"] != true)
        }
        _ => false,
    }
}

impl HttpClient for Wire {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Connector { wire: self.clone(), inner })
    }
}

#[derive(Debug)]
struct Connector {
    wire: Wire,
    inner: SharedHttpConnector,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let inner = self.inner.clone();
        let lost = |what: &str| ConnectorError::io(what.into());
        match self.wire.begin(&request) {
            Loss::None => inner.call(request),
            Loss::Request => HttpConnectorFuture::ready(Err(lost("scripted: the request was lost"))),
            Loss::Silence => HttpConnectorFuture::new(std::future::pending()),
            Loss::Waits => {
                let wire = self.wire.clone();
                HttpConnectorFuture::new(async move {
                    wire.waits.notify_one();
                    wire.goes_on.notified().await;
                    inner.call(request).await
                })
            }
            Loss::Instead(status, body) => {
                let status = StatusCode::try_from(status).expect("scripts have real statuses");
                HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(body))))
            }
            Loss::Answer => HttpConnectorFuture::new(async move {
                let answer = inner.call(request).await?;
                drop(answer);
                Err(lost("scripted: the answer was lost"))
            }),
        }
    }
}
