//! Between the SDK's clients and the simulated DynamoDB: a request arrives, whether its sender still waits or not.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use claimant_simulated::dynamo::{Answer, Dynamo};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::capacity::Capacity;
use crate::case::Case;

/// DynamoDB, for all processes.
#[derive(Clone)]
pub(crate) struct Wire {
    start: Instant,
    service: Arc<Mutex<Service>>,
}

/// The tables' items and their capacity.
pub(crate) struct Service {
    pub(crate) items: Dynamo,
    pub(crate) capacity: Capacity,
    pub(crate) requests: u64,
}

impl Wire {
    pub(crate) fn new(start: Instant, capacity: Capacity) -> Self {
        let service = Service { items: Dynamo::default(), capacity, requests: 0 };
        Self { start, service: Arc::new(Mutex::new(service)) }
    }

    pub(crate) fn service(&self) -> MutexGuard<'_, Service> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, operation: &str, body: &Value) -> Answer {
        let mut service = self.service();
        let Service { items, capacity, requests } = &mut *service;
        *requests += 1;
        // OK because no run lasts 500 million years.
        items.call_within(capacity.at(self.start.elapsed().as_millis() as u64), operation, body)
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl HttpClient for Wire {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body: Value = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default();
        let (sender, answer) = oneshot::channel();
        let (wire, there, back) = (self.clone(), way(), way());
        tokio::spawn(async move {
            sleep(there).await;
            let answer = wire.serve(&operation, &body);
            sleep(back).await;
            // OK because the sender of the request may have given up.
            let _ = sender.send(answer);
        });
        HttpConnectorFuture::new(async move {
            let none = |_| ConnectorError::other("the simulation has ended".into(), None);
            let Answer { status, body, .. } = answer.await.map_err(none)?;
            let status = status.try_into().map_err(|_| ConnectorError::other("no status".into(), None))?;
            Ok(HttpResponse::new(status, SdkBody::from(body.to_string())))
        })
    }
}

fn way() -> Duration {
    let (least, most) = Case::WAY_MS;
    Duration::from_millis(fastrand::u64(least..=most))
}
