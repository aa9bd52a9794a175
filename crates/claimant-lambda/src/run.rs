//! Handles invocations until the runtime ends the function.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use claimant_core::limits::BLOCKED_MAX;
use claimant_core::{Consumers, Error, ErrorKind, Variables};
use futures_util::future::BoxFuture;
use lambda_runtime::{Context, Diagnostic, LambdaEvent, service_fn};
use serde_json::value::RawValue;
use tokio::time::sleep;

use crate::direct::{self, Incoming};
use crate::logging;
use crate::response::Response;
use crate::service::Service;
use crate::settings::Settings;
use crate::wire::QueueBatch;

/// When the first request for work is out, and there is nothing to do but wait: then certificates are read, clients made, and the handlers'
/// threads started. A message that comes sooner does so itself.
const PREPARE_AFTER: Duration = Duration::from_millis(1);

/// Runs one consumer, or several behind [`Routes`](claimant_core::Routes), as a Lambda function until the runtime ends it: the
/// last call in `main`. One thread is enough for it (`#[tokio::main(flavor = "current_thread")]`), and costs the least: handlers have
/// their own. Reads its [`Settings`] from these variables; a program whose parts have all read their own passes a reader
/// that refuses unknown ones.
///
/// Sets up logs as Lambda's variables say, unless the function has a `tracing` subscriber already. On Lambda Managed
/// Instances (`AWS_LAMBDA_MAX_CONCURRENCY`) several invocations run in this process at once, elsewhere one after the
/// other.
///
/// # Errors
/// Of the kind [`Invalid`](ErrorKind::Invalid) when the settings of the environment or of a consumer are not usable, the program was built with
/// `panic = "abort"`, or the process was not started by Lambda or an imitation of it; [`Unavailable`](ErrorKind::Unavailable) when Lambda's runtime is gone.
pub async fn run(variables: Variables, consumers: impl Into<Consumers>) -> Result<(), Error> {
    on_batches(variables, consumers.into()).await
}

/// In a box, so that Lambda's client and all that an invocation awaits is compiled here, and not in each function.
fn on_batches(variables: Variables, consumers: Consumers) -> BoxFuture<'static, Result<(), Error>> {
    Box::pin(async move {
        let function = Function::start(variables, consumers).await?;
        let invoke = service_fn(move |event: LambdaEvent<QueueBatch>| {
            function.handle(|service| async move { invoke(&service, event.payload.0, &event.context).await })
        });
        lambda_runtime::run_concurrent(invoke).await.map_err(ended)
    })
}

/// Runs consumers as [`run`] does; and an event that is no batch of a queue is one message, whose payload is the whole event, as
/// Step Functions, EventBridge Scheduler or `sam remote invoke` send it. Its result is the response, its failure an error of the
/// invocation.
///
/// # Errors
/// As for [`run`].
pub async fn run_with_direct_events(variables: Variables, consumers: impl Into<Consumers>) -> Result<(), Error> {
    on_any_events(variables, consumers.into()).await
}

/// In a box, as [`on_batches`].
fn on_any_events(variables: Variables, consumers: Consumers) -> BoxFuture<'static, Result<(), Error>> {
    Box::pin(async move {
        let function = Function::start(variables, consumers).await?;
        let invoke = service_fn(move |event: LambdaEvent<Box<RawValue>>| {
            function.handle(|service| async move {
                let LambdaEvent { payload, context } = event;
                match direct::read(payload).map_err(diagnostic)? {
                    Incoming::Batch(batch) => {
                        let response = invoke(&service, batch, &context).await?;
                        serde_json::value::to_raw_value(&response)
                            .map(Response)
                            .map_err(|e| diagnostic(Error::new("the response cannot be written as JSON").caused_by(e)))
                    }
                    Incoming::Payload(payload) => {
                        let done = service.invoke_directly(&payload, &context.request_id, context.deadline).await;
                        done.map_err(|not_done| Diagnostic {
                            error_type: format!("claimant::{}", not_done.outcome()),
                            error_message: not_done.to_string(),
                        })
                    }
                }
            })
        });
        lambda_runtime::run_concurrent(invoke).await.map_err(ended)
    })
}

async fn invoke(
    service: &Service,
    event: SqsEvent,
    context: &Context,
) -> Result<Response<SqsBatchResponse>, Diagnostic> {
    service.invoke(event, context.deadline, &context.invoked_function_arn).await.map_err(diagnostic)
}

/// A function that has started.
#[derive(Clone)]
struct Function {
    service: Arc<Service>,
    invocations: Arc<AtomicUsize>,
}

impl Function {
    async fn start(variables: Variables, consumers: Consumers) -> Result<Self, Error> {
        logging::init();
        let settings = Settings::from_variables(variables)?;
        if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_none() {
            return Err(Error::invalid(
                "there is no Lambda runtime here (AWS_LAMBDA_RUNTIME_API is not set): start the function with `claimant local`, \
                 `cargo lambda watch` or on Lambda, not by itself",
            ));
        }
        let service = Arc::new(Service::new(&settings, consumers).await?);
        let prepared = Arc::clone(&service);
        tokio::spawn(async move {
            sleep(PREPARE_AFTER).await;
            claimant_aws::prepare();
            // OK to fail: the first message tries again, and its invocation says so.
            let _ = prepared.start_threads();
        });
        Ok(Self { service, invocations: Arc::default() })
    }

    /// Handles an event by this work, unless the process takes no more messages.
    fn handle<T, F, W>(&self, work: W) -> impl Future<Output = Result<T, Diagnostic>> + use<T, F, W>
    where
        F: Future<Output = Result<T, Diagnostic>>,
        W: FnOnce(Arc<Service>) -> F,
    {
        let (service, in_flight) = (Arc::clone(&self.service), InFlight::start(&self.invocations));
        async move {
            in_flight.check(&service)?;
            work(service).await
        }
    }
}

/// An invocation that is in flight in this process.
struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    fn start(all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(all))
    }

    /// Returns an error where the process takes no more messages.
    fn check(&self, service: &Service) -> Result<(), Diagnostic> {
        if service.are_threads_exhausted() { Err(diagnostic(threads_exhausted(self))) } else { Ok(()) }
    }

    fn is_alone(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 1
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Ends the process, so that Lambda starts a fresh one; while other invocations are in flight, returns why this one fails.
///
/// An invocation that is refused here has claimed nothing: its messages come back after the queue's visibility timeout, at
/// the cost of a receive. There is no better moment: a process that ends after its response and before it has asked for the
/// next event fails the invocation that it has just finished, and once it has asked, an event may be on its way.
fn threads_exhausted(in_flight: &InFlight) -> Error {
    let error = Error::new(format!(
        "{BLOCKED_MAX} or more handlers of this process never returned and block their threads for good, or tasks that they spawned block \
         all: this process takes no more messages. Give what they wait for a time limit, or the consumer a timeout"
    ));
    if in_flight.is_alone() {
        tracing::error!("{error}; the process ends");
        std::process::exit(1);
    }
    error
}

fn ended(error: lambda_runtime::Error) -> Error {
    Error::new("the Lambda runtime ended").of_kind(ErrorKind::Unavailable).caused_by(error)
}

fn diagnostic(error: Error) -> Diagnostic {
    Diagnostic { error_type: "claimant::Error".to_owned(), error_message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use claimant_core::limits::THREADS_MAX;
    use claimant_core::{Clock as _, Consumer, HandlerError, MemoryStore, SystemClock};
    use serde_json::json;

    use super::*;
    use crate::child;

    const REFUSED: &str = "beside another invocation: refused";

    /// Each further message would lose a receive. In a process of its own, this test once more.
    #[tokio::test]
    async fn a_process_whose_threads_are_blocked_ends_once_an_invocation_is_alone() {
        let test = "run::tests::a_process_whose_threads_are_blocked_ends_once_an_invocation_is_alone";
        let Some(ended) = child::ended(test) else { return be_blocked().await };
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.code() == Some(1) && said.contains(REFUSED), "{:?}: {said}", ended.status);
    }

    async fn be_blocked() {
        let handler = |_: usize, _: claimant_core::Context| async {
            std::thread::sleep(Duration::from_secs(60));
            Ok::<_, HandlerError>(())
        };
        let consumer = Consumer::new("c", MemoryStore::new(), handler).key(|n| n).concurrency(THREADS_MAX);
        let settings = Variables::new([("CLAIMANT_METRICS", "off"), ("CLAIMANT_MAPPING_CHECK", "off")]);
        let settings = Settings::from_variables(settings).unwrap();
        let service = Service::with_aws(&settings, consumer.timeout(Duration::from_millis(500)), None).unwrap();
        let service = Arc::new(service.handlers_on_own_threads());
        let (function, mut sent) = (Function { service, invocations: Arc::default() }, 0..usize::MAX);
        while !function.service.are_threads_exhausted() {
            let record = |n: usize| json!({ "messageId": n.to_string(), "body": n.to_string() });
            let records: Vec<_> = sent.by_ref().take(THREADS_MAX).map(record).collect();
            let event = serde_json::from_value(json!({ "Records": records })).unwrap();
            let deadline = SystemClock.now().plus(Duration::from_secs(60)).as_millis();
            let invoke =
                |service: Arc<Service>| async move { service.invoke(event, deadline, "").await.map_err(diagnostic) };
            assert!(function.handle(invoke).await.is_ok());
        }
        let other = InFlight::start(&function.invocations);
        if is_refused(&function).await {
            println!("{REFUSED}");
        }
        drop(other);
        is_refused(&function).await;
    }

    async fn is_refused(function: &Function) -> bool {
        let handled: Result<(), _> = function.handle(|_| async { panic!("it was handled") }).await;
        handled.is_err()
    }
}
