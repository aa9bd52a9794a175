//! Handles invocations until the runtime ends the function.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lambda_events::event::sqs::SqsEvent;
use claimant_core::limits::BLOCKED_MAX;
use claimant_core::{Consumer, Error, ErrorKind, Variables};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};

use crate::logging;
use crate::service::Service;
use crate::settings::Settings;

/// Runs a consumer as a Lambda function until the runtime ends it: the last call in `main`. Reads its [`Settings`] from these
/// variables; a program whose parts have all read their own passes a reader that refuses unknown ones.
///
/// Sets up logs as Lambda's variables say, unless the function has a `tracing` subscriber already. On Lambda Managed
/// Instances (`AWS_LAMBDA_MAX_CONCURRENCY`) several invocations run in this process at once, elsewhere one after the
/// other.
///
/// # Errors
/// Of the kind [`Invalid`](ErrorKind::Invalid) when the settings of the environment or of the consumer are not usable, or the
/// process was not started by Lambda or an imitation of it; [`Unavailable`](ErrorKind::Unavailable) when Lambda's runtime is gone.
pub async fn run<T>(variables: Variables, consumer: Consumer<T>) -> Result<(), Error>
where
    T: Send + 'static,
{
    logging::init();
    let settings = Settings::from_variables(variables)?;
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_none() {
        return Err(Error::invalid(
            "there is no Lambda runtime here (AWS_LAMBDA_RUNTIME_API is not set): start the function with `claimant local`, \
             `cargo lambda watch` or on Lambda, not by itself",
        ));
    }
    // Handlers have threads of their own: however many of them block theirs, the report is returned in time.
    let service = Arc::new(Service::new(&settings, consumer).await?.handlers_on_own_threads()?);
    let invocations = Arc::new(AtomicUsize::new(0));
    let invoke = service_fn(move |event: LambdaEvent<SqsEvent>| {
        let (service, in_flight) = (Arc::clone(&service), InFlight::start(&invocations));
        async move {
            let LambdaEvent { payload, context } = event;
            if service.are_threads_exhausted() {
                return Err(diagnostic(threads_exhausted(&in_flight)));
            }
            service.invoke(payload, context.deadline, &context.invoked_function_arn).await.map_err(diagnostic)
        }
    });
    lambda_runtime::run_concurrent(invoke)
        .await
        .map_err(|e| Error::new("the Lambda runtime ended").of_kind(ErrorKind::Unavailable).caused_by(e))
}

/// An invocation that is in flight in this process.
struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    fn start(all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(all))
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
        "{BLOCKED_MAX} or more handlers of this process never returned and block their threads for good: this process takes no \
         more messages. Give what they wait for a time limit, or the consumer a timeout"
    ));
    if in_flight.is_alone() {
        tracing::error!("{error}; the process ends");
        std::process::exit(1);
    }
    error
}

fn diagnostic(error: Error) -> Diagnostic {
    Diagnostic { error_type: "claimant::Error".to_owned(), error_message: error.to_string() }
}
