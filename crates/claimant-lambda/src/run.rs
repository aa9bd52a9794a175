//! The function's life: invocations until the runtime ends it.

use std::sync::Arc;

use aws_lambda_events::event::sqs::SqsEvent;
use claimant_core::{Consumer, Error, Settings};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use tokio::runtime::Builder;

use crate::logging;
use crate::service::Service;

/// Runs a consumer as a Lambda function until the runtime ends it: the one call in `main`.
///
/// Sets up logs by Lambda's variables, unless the function has a `tracing` subscriber already. On Lambda Managed
/// Instances (`AWS_LAMBDA_MAX_CONCURRENCY`) several invocations run in this process at once, elsewhere one after the
/// other.
///
/// # Errors
/// When the consumer's settings are not usable, or there is no Lambda runtime to talk to.
pub async fn run<T>(settings: &Settings, consumer: Consumer<T>) -> Result<(), Error>
where
    T: for<'de> serde::Deserialize<'de> + Send + 'static,
{
    logging::init();
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_none() {
        return Err(Error::new(
            "there is no Lambda runtime here (AWS_LAMBDA_RUNTIME_API is not set): start the function with `claimant local`, \
             `cargo lambda watch` or on Lambda, not by itself",
        ));
    }
    // Handlers have threads of their own: however many of them block theirs, the report is back in time.
    let handlers = Builder::new_multi_thread().thread_name("handler").enable_all().build();
    let handlers = handlers.map_err(|e| Error::new("no threads can be started for the handlers").caused_by(e))?;
    let service = Arc::new(Service::new(settings, consumer).await?.handlers_on(handlers.handle().clone()));
    let invoke = service_fn(move |event: LambdaEvent<SqsEvent>| {
        let service = Arc::clone(&service);
        async move {
            let LambdaEvent { payload, context } = event;
            service.invoke(payload, context.deadline, &context.invoked_function_arn).await.map_err(diagnostic)
        }
    });
    let ended = lambda_runtime::run_concurrent(invoke).await;
    handlers.shutdown_background();
    ended.map_err(|e| Error::new("the Lambda runtime ended").caused_by(e))
}

fn diagnostic(error: Error) -> Diagnostic {
    Diagnostic { error_type: "claimant::Error".to_owned(), error_message: error.to_string() }
}
