//! Consumers, ready for invocations.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use claimant_aws::Later;
use claimant_aws::intake::{Api, Mapping};
use claimant_aws::signed;
use claimant_core::limits::LEASE_MAX_MS;
use claimant_core::{
    Clock, Consumers, Error, ErrorKind, HandlerThreads, InvocationTime, Message, NoQueue, Report, Router, RouterReport,
    SystemClock,
};
use serde_json::value::RawValue;
use tokio::runtime::Builder;
use tokio::time::Instant;

use crate::deadline::Deadlines;
use crate::direct::{self, NotDone};
use crate::event::{self, Batch};
use crate::flush::Flusher;
use crate::mapping::{MappingCheck, Pending};
use crate::observe::Observer;
use crate::queue::{SqsAccess, SqsQueue};
use crate::response::{self, Response};
use crate::schedules::Schedules;
use crate::settings::Settings;
use crate::{letter, logging, mapping, queue, visibility};

/// The part of an invocation reserved for what follows the report: visibility changes, and the check of the mapping.
const AFTER_REPORT_MS: u64 = 300;

/// No invocation lasts longer.
const INVOCATION_MAX: Duration = Duration::from_millis(LEASE_MAX_MS);

/// One consumer, or several behind [`Routes`](claimant_core::Routes), ready for any number of invocations at once. [`run`](crate::run) drives it; so can
/// a function that calls the Lambda runtime itself, such as one with `tower` layers around its `service_fn`. Tests that set the time take
/// [`with_aws`](Self::with_aws), whose handlers run on the test's own threads.
///
/// ```no_run
/// # mod claimant {
/// #     pub use claimant_core::{Consumer, Context, HandlerError};
/// #     pub mod lambda { pub use claimant_lambda::*; }
/// #     pub mod memory { pub use claimant_core::MemoryStore; }
/// #     pub fn variables() -> claimant_core::Variables { claimant_core::Variables::from_env() }
/// # }
/// use claimant::lambda::{QueueBatch, Service, Settings};
/// use lambda_runtime::{Error, LambdaEvent, service_fn};
/// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
/// # async fn confirm(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), Error> {
///     let settings = Settings::from_variables(claimant::variables())?;
///     # let table = MemoryStore::new();
///     let service = &Service::new(&settings, Consumer::new("order-confirmation", table, confirm)).await?;
///     lambda_runtime::run(service_fn(move |event: LambdaEvent<QueueBatch>| async move {
///         // Handlers that never return have blocked too many threads for good: Lambda starts a fresh process.
///         if service.are_threads_exhausted() {
///             std::process::exit(1);
///         }
///         let LambdaEvent { payload: QueueBatch(batch), context } = event;
///         Ok::<_, Error>(service.invoke(batch, context.deadline, &context.invoked_function_arn).await?)
///     }))
///     .await
/// }
/// ```
///
/// Invocations share only what belongs to the process: its clients, how long handlers took, and what is known of the
/// event source mapping. Claims, schedules and reports are each invocation's own.
pub struct Service {
    router: Router,
    threads: Option<HandlerThreads>,
    deadlines: Deadlines,
    margin: Duration,
    access: SqsAccess,
    mapping: Option<MappingCheck>,
    /// Whose intake an open breaker pauses: the AWS configuration, and the role that switches it on again.
    pauses: Option<(SdkConfig, String)>,
    clock: Arc<dyn Clock>,
    observer: Observer,
    flusher: Flusher,
}

impl Service {
    /// Creates a service for these consumers, with AWS as the environment says. As with [`run`](crate::run), handlers run on threads of
    /// their own, and [logs and the panic hook](crate::init_logs) are set up. Logs a warning for each consumer whose records end with the process.
    ///
    /// # Errors
    /// When settings of a consumer or the routes are not usable: one error with every fault. When an endpoint that is set for AWS is no
    /// URL, or the program was built with `panic = "abort"`.
    pub async fn new(settings: &Settings, consumers: impl Into<Consumers>) -> Result<Self, Error> {
        logging::init();
        let config = if settings.asks_aws() { Some(claimant_aws::config().await?) } else { None };
        let service = Self::with_aws(settings, consumers, config)?;
        for consumer in service.router.without_lasting_records() {
            tracing::warn!(
                %consumer,
                "its records are in the memory of this process, which is for tests: in any other one, messages that are done run again"
            );
        }
        // However many handlers block their threads, the report is returned in time.
        Ok(service.handlers_on_own_threads())
    }

    /// Creates a service as [`new`](Self::new) does, with this AWS configuration, without setting up logs and the panic hook, and
    /// with handlers on the caller's threads. Without a configuration, visibility stays as it is, rejected messages go to the dead-letter queue by redrive, the mapping is not
    /// checked, and nothing is deleted ahead of the report: neither payloads of messages that are done, nor these before one runs again that may
    /// have ended its process.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_aws(
        settings: &Settings,
        consumers: impl Into<Consumers>,
        config: Option<&SdkConfig>,
    ) -> Result<Self, Error> {
        check_panics(cfg!(panic = "abort"))?;
        let router = Router::new(consumers, settings.concurrency)?.log_claims(settings.log_messages);
        Ok(Self {
            router: match settings.max_receive_count {
                Some(receives) => router.receives_max(receives),
                None => router,
            },
            threads: None,
            deadlines: Deadlines::new(settings.local_timeout),
            margin: settings.margin,
            access: SqsAccess {
                // Whatever is switched off: messages are deleted ahead of the report where something is at stake.
                client: config.cloned().map(|config| Later::new(move || queue::client(&config))),
                may_hide: settings.change_visibility,
                dead_letters: settings.dead_letter_queue_url.clone().map(letter::DeadLetterQueue::new),
                schedules: settings.scheduler.again.as_ref().zip(config).map(|(of, config)| Schedules::new(of, config)),
            },
            mapping: config.and_then(|config| MappingCheck::new(settings.mapping_check, config)),
            pauses: config.cloned().zip(settings.scheduler.resume_role_arn.clone()),
            clock: Arc::new(SystemClock),
            observer: Observer::new(settings),
            flusher: Flusher::default(),
        })
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.router = self.router.clock(Arc::clone(&clock));
        self.clock = clock;
        self
    }

    /// Runs handlers on these threads, see [`Engine::handlers_on`](claimant_core::Engine::handlers_on).
    #[must_use]
    pub fn handlers_on(mut self, threads: HandlerThreads) -> Self {
        self.router = self.router.handlers_on(threads.clone());
        self.threads = Some(threads);
        self
    }

    /// Runs handlers on threads of their own: one for each message that is handled at once, and at most
    /// [`THREADS_MAX`](claimant_core::limits::THREADS_MAX), and one more. They are replaced when handlers block them. The first ones
    /// are started by [`start_threads`](Self::start_threads), or by the first invocation.
    #[must_use]
    pub fn handlers_on_own_threads(self) -> Self {
        let at_once = self.router.concurrency();
        let make = |count: usize| {
            let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
            Builder::new_multi_thread().worker_threads(count.max(cores)).thread_name("handler").enable_all().build()
        };
        self.handlers_on(HandlerThreads::later(at_once, make))
    }

    /// Starts the handlers' threads, unless they are there.
    ///
    /// # Errors
    /// When they cannot be started.
    pub fn start_threads(&self) -> Result<(), Error> {
        self.threads.as_ref().map_or(Ok(()), HandlerThreads::start)
    }

    /// Returns whether handlers have blocked so many threads for good that the process should end, see
    /// [`HandlerThreads::are_exhausted`].
    #[must_use]
    pub fn are_threads_exhausted(&self) -> bool {
        self.threads.as_ref().is_some_and(HandlerThreads::are_exhausted)
    }

    /// Passes metric records to `sink`, a line of JSON for each batch, instead of writing them to standard output. Where metrics were off, the
    /// log loses its line of each batch: it is in the record. Where `sink` panics, the log has the line.
    #[must_use]
    pub fn metrics(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.observer.sink = Some(Arc::new(sink));
        self
    }

    /// Handles one invocation: the event's records in, a partial batch response out, which the function has to return to Lambda, before
    /// the deadline (in milliseconds since the epoch, as the runtime passes it). `function_arn` is the ARN that was invoked, or empty.
    ///
    /// Cancel safe: dropping the future cancels the handlers. Their claims end with their leases, nothing is reported, and what was received comes back.
    ///
    /// # Errors
    /// When a record has no usable message id, when no threads can be started for the handlers, or when
    /// `CLAIMANT_MAPPING_CHECK=refuse` and messages failed that the event source mapping may delete. The whole batch then fails and nothing is deleted.
    pub async fn invoke(
        &self,
        event: SqsEvent,
        deadline_ms: u64,
        function_arn: &str,
    ) -> Result<Response<SqsBatchResponse>, Error> {
        let batch = event::batch(event)?;
        self.start_threads()?;
        let (time, respond_by) = self.times(deadline_ms, self.after_report());
        let reports = self.router.process(&batch.messages, time, &self.queue(&batch, function_arn)).await;
        self.show(&reports);
        let report = reports.all();
        let within = respond_by.saturating_duration_since(Instant::now());
        let pending = self.check_mapping(&batch, report, function_arn, within);
        let (allowed, ()) =
            tokio::join!(self.allowed(report, pending, within), self.change_visibility(&batch, report, within));
        self.flusher.flush(self.router.spans(), respond_by.saturating_duration_since(Instant::now())).await;
        allowed.map(|()| response::response(report))
    }

    /// Handles one invocation whose event is a payload without a queue around it, and so without a receive count: its result, or
    /// `null`. `request_id` is the invocation's, and the message's id: the same where Lambda itself tries an asynchronous invocation again.
    ///
    /// Cancel safe: dropping the future cancels the handler, whose claim ends with its lease.
    ///
    /// # Errors
    /// When the work is not done: a caller can try again what is not `rejected`, `conflict` or `parked`.
    pub async fn invoke_directly(
        &self,
        event: &RawValue,
        request_id: &str,
        deadline_ms: u64,
    ) -> Result<Response<Box<RawValue>>, NotDone> {
        let message = Message::new(request_id, event.get()).map_err(Error::from)?.with_receive_count(0);
        self.start_threads()?;
        let (time, respond_by) = self.times(deadline_ms, Duration::ZERO);
        let reports = self.router.process(&[message], time, &NoQueue).await;
        self.show(&reports);
        self.flusher.flush(self.router.spans(), respond_by.saturating_duration_since(Instant::now())).await;
        direct::response(reports.all())
    }

    /// Shows what became of a batch for each consumer.
    fn show(&self, reports: &RouterReport) {
        let now = self.router.now();
        reports.consumers().for_each(|(name, report)| self.observer.show(report, name.as_str(), now));
    }

    /// Returns the engine's time, which ends `after_report` before the invocation's response is due, and when that is.
    fn times(&self, deadline_ms: u64, after_report: Duration) -> (InvocationTime, Instant) {
        let now = self.router.now();
        let deadline = self.deadlines.of(deadline_ms, now);
        // The wall clock is read once, as in the engine: a jump of it must not cut the report off, or hold it back.
        let respond_by = Instant::now() + deadline.minus(self.margin).since(now).min(INVOCATION_MAX);
        (InvocationTime::new(now, deadline, self.margin + after_report), respond_by)
    }

    /// Returns how much time is reserved for what follows the report.
    fn after_report(&self) -> Duration {
        let follows = self.access.hiding().is_some() || self.mapping.as_ref().is_some_and(MappingCheck::refuses);
        Duration::from_millis(if follows { AFTER_REPORT_MS } else { 0 })
    }

    fn queue<'a>(&'a self, batch: &'a Batch, function: &'a str) -> SqsQueue<'a> {
        SqsQueue::new(batch, &self.access, self.intake(batch, function))
    }

    /// Returns the event source mapping, where an open breaker is to pause it, and there is an API to do so.
    fn intake<'a>(&'a self, batch: &'a Batch, function: &'a str) -> Option<Mapping<'a>> {
        let (config, role) = self.pauses.as_ref()?;
        let has_api = mapping::is_on_lambda(function) || signed::Service::LAMBDA.set_endpoint(config).is_some();
        let queue = &batch.source.as_ref().filter(|_| has_api)?.arn;
        let clock = self.clock.as_ref();
        Some(Mapping::new(Api { config, near: function, clock }, function, queue, role))
    }

    /// Starts to check whether the mapping deletes failures, if there are any.
    fn check_mapping(&self, batch: &Batch, report: &Report, function: &str, within: Duration) -> Option<Pending> {
        let failed = *report.failures().first()?;
        let pair = (function, batch.source.as_ref()?.arn.as_str());
        self.mapping.as_ref()?.start(pair, failed.as_str(), within, &self.clock)
    }

    /// Returns an error if this report must not be given to the mapping, which would delete the failures.
    async fn allowed(&self, report: &Report, pending: Option<Pending>, within: Duration) -> Result<(), Error> {
        let failed = report.failures().len();
        let refuses = self.mapping.as_ref().is_some_and(MappingCheck::refuses);
        let (true, Some(mut pending)) = (refuses && failed > 0, pending) else { return Ok(()) };
        match pending.fault(within).await {
            None => Ok(()),
            Some(why) => Err(Error::new(format!(
                "{failed} of {} messages failed, and {why}. The whole batch is failed, so that nothing is deleted \
                 (CLAIMANT_MAPPING_CHECK=refuse); completed messages are redelivered and skipped as duplicates",
                report.entries().len()
            ))
            .of_kind(ErrorKind::Refused)),
        }
    }

    async fn change_visibility(&self, batch: &Batch, report: &Report, within: Duration) {
        if let Some(client) = self.access.hiding() {
            visibility::change(client, batch, report, within).await;
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("router", &self.router).finish_non_exhaustive()
    }
}

/// Checks that a panic ends the run of one message, and not the process: the messages beside it would run again, or be parked.
fn check_panics(abort: bool) -> Result<(), Error> {
    if !abort {
        return Ok(());
    }
    Err(Error::invalid(
        "this program was built with `panic = \"abort\"`: one handler that panics would end the process, and with it the work on all other \
         messages. Write `panic = \"unwind\"` under the profile that it is built with ([profile.release] for a function) in the workspace's \
         Cargo.toml, and build it again without CARGO_PROFILE_RELEASE_PANIC or the like: where nothing is written, \
         `cargo lambda build --release` takes \"abort\"",
    ))
}

#[cfg(test)]
mod tests {
    use claimant_core::{Consumer, Context, HandlerError, MemoryStore, Variables};

    use super::*;
    use crate::child;

    /// Cargo builds tests with unwinding, whatever the profile says.
    #[test]
    fn a_program_whose_panics_abort_does_not_start() {
        check_panics(cfg!(panic = "abort")).unwrap();
        let error = check_panics(true).unwrap_err();
        let says = error.to_string();
        assert!(
            error.kind() == ErrorKind::Invalid && says.contains("`panic = \"unwind\"` under the profile"),
            "{says}"
        );
    }

    /// Alone on the runtime's one thread, as in a function of one's own. In a process of its own, since it sets up logs.
    #[tokio::test]
    async fn by_new_alone_the_report_is_returned_while_a_handler_blocks_its_thread() {
        let test = "service::tests::by_new_alone_the_report_is_returned_while_a_handler_blocks_its_thread";
        if let Some(ended) = child::ended(test) {
            let said = String::from_utf8_lossy(&ended.stdout);
            let warned = said.contains("its records are in the memory of this process");
            return assert!(ended.status.success() && said.contains(r#""stuck":1"#) && warned, "{said}");
        }
        let blocks = |_: u64, _: Context| async {
            std::thread::sleep(Duration::from_secs(5));
            Ok::<_, HandlerError>(())
        };
        let settings = [("CLAIMANT_VISIBILITY", "off"), ("CLAIMANT_MAPPING_CHECK", "off")];
        let settings = Settings::from_variables(Variables::new(settings)).unwrap();
        let consumer = Consumer::new("c", MemoryStore::new(), blocks).timeout(Duration::from_secs(1));
        let service = Service::new(&settings, consumer).await.unwrap();
        let event = serde_json::json!({ "Records": [{ "messageId": "m-1", "body": "1" }] });
        let deadline = SystemClock.now().plus(Duration::from_secs(3)).as_millis();
        let _ = service.invoke(serde_json::from_value(event).unwrap(), deadline, "").await.unwrap();
    }

    /// An end of the process would take all messages of its batches along, again and again.
    #[tokio::test]
    async fn where_nothing_can_be_written_only_the_lines_are_lost() {
        const WELL: i32 = 7;
        let test = "service::tests::where_nothing_can_be_written_only_the_lines_are_lost";
        if let Some(status) = child::ended_unheard(test) {
            return assert_eq!(status.code(), Some(WELL), "{status:?}");
        }
        let handler = |n: u64, _: Context| async move {
            tracing::warn!("a line of the handler's own");
            if n == 1 { panic!("and a panic") } else { Ok::<_, HandlerError>(()) }
        };
        let settings = [("CLAIMANT_VISIBILITY", "off"), ("CLAIMANT_MAPPING_CHECK", "off")];
        let settings = Settings::from_variables(Variables::new(settings)).unwrap();
        let service = Service::new(&settings, Consumer::new("c", MemoryStore::new(), handler)).await.unwrap();
        let records = ["1", "2"].map(|n| serde_json::json!({ "messageId": n, "body": n }));
        let event = serde_json::from_value(serde_json::json!({ "Records": records })).unwrap();
        let deadline = SystemClock.now().plus(Duration::from_secs(10)).as_millis();
        let response = service.invoke(event, deadline, "").await.unwrap();
        let failed: Vec<_> = response.0.batch_item_failures.iter().map(|one| one.item_identifier.as_str()).collect();
        std::process::exit(if failed == ["1"] { WELL } else { 1 });
    }

    /// Whatever the advice otherwise is, it would not help.
    #[tokio::test]
    async fn where_the_deadline_was_over_before_the_messages_came_a_clock_is_named() {
        let test = "service::tests::where_the_deadline_was_over_before_the_messages_came_a_clock_is_named";
        if let Some(ended) = child::ended(test) {
            let said = String::from_utf8_lossy(&ended.stdout);
            let lines = |of: &str| said.lines().filter(|line| line.contains(of)).count();
            let wanted =
                [("clock may be ahead", 1), ("late_ms=360", 1), ("had no turn, since its invocation had no time", 1)];
            assert!(wanted.iter().all(|(of, count)| lines(of) == *count), "{said}");
            return assert_eq!((lines("longer timeout"), lines("timeout must exceed")), (0, 0), "{said}");
        }
        let handler = |_: u64, _: Context| async { Ok::<_, HandlerError>(()) };
        let settings = [("CLAIMANT_VISIBILITY", "off"), ("CLAIMANT_MAPPING_CHECK", "off")];
        let settings = Settings::from_variables(Variables::new(settings)).unwrap();
        let service = Service::new(&settings, Consumer::new("c", MemoryStore::new(), handler)).await.unwrap();
        let receives = serde_json::json!({ "ApproximateReceiveCount": "4" });
        let record = serde_json::json!({ "messageId": "m-1", "body": "1", "attributes": receives });
        let event = serde_json::from_value(serde_json::json!({ "Records": [record] })).unwrap();
        let deadline = SystemClock.now().minus(Duration::from_secs(3_600)).as_millis();
        let _ = service.invoke(event, deadline, "").await.unwrap();
    }
}
