//! Requests that fail, and answers that are lost.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_sqs::config::interceptors::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sqs::error::BoxError;
use claimant_operate::dead::{Edit, PROBLEMS_MAX};

use super::*;

/// Fails each request of an action: it is not sent, or its answer is lost.
#[derive(Debug)]
struct Fails {
    action: &'static str,
    sent: bool,
    /// Whether such a request is on its way. One at a time is.
    under_way: AtomicBool,
}

impl Fails {
    fn new(action: &'static str, sent: bool) -> Self {
        Self { action, sent, under_way: AtomicBool::new(false) }
    }
}

impl Intercept for Fails {
    fn name(&self) -> &'static str {
        "fails"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let target = context.request().headers().get("x-amz-target");
        let hit = target.is_some_and(|target| target.ends_with(self.action));
        self.under_way.store(hit, Ordering::SeqCst);
        if hit && !self.sent { Err("not sent".into()) } else { Ok(()) }
    }

    fn read_before_deserialization(
        &self,
        _: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if self.under_way.load(Ordering::SeqCst) { Err("the answer is lost".into()) } else { Ok(()) }
    }
}

#[tokio::test]
async fn a_letter_is_deleted_only_once_its_copy_is_confirmed() {
    // What fails, whether it was sent, and then: the letters here, the copies there, and what is said of those that stayed.
    for (action, sent, here, there, copied) in [
        ("SendMessageBatch", false, 3, 0, None),
        ("SendMessageBatch", true, 3, 3, None),
        ("DeleteMessageBatch", false, 3, 3, Some(true)),
        ("DeleteMessageBatch", true, 0, 3, Some(true)),
    ] {
        let mut local = Local::start().await;
        for n in 0..3 {
            local.copied("dead", "no", &n.to_string(), "");
        }
        let config = local
            .client
            .config()
            .to_builder()
            .retry_config(RetryConfig::disabled())
            .interceptor(Fails::new(action, sent))
            .build();
        local.client = Client::from_conf(config);
        let queue = local.open("dead").await;
        let report = queue.redrive(&Selection::default(), None, &Edit::None, ALL, &mut go_on).await.unwrap();
        assert_eq!((report.progress.done, report.problem_count), (0, 3), "{action} {sent}: {report:?}");
        for problem in &report.problems {
            assert_eq!(problem.copied, copied, "{action} {sent}: {problem:?}");
            assert!(copied.is_none() || problem.why.contains("it was sent to orders"), "{problem:?}");
        }
        assert_eq!((local.depth("dead"), local.depth("orders")), ((here, 0), (there, 0)), "{action} {sent}");

        let left = queue.discard(&Selection::default(), ALL, None, &mut go_on).await.unwrap();
        let fails = action == "DeleteMessageBatch";
        assert_eq!(left.problem_count, if fails { here } else { 0 }, "{action} {sent}: {left:?}");
    }
}

/// More letters than a report has reasons for.
#[tokio::test]
async fn a_letter_that_stays_is_counted_once_after_a_look_too() {
    const LETTERS: usize = PROBLEMS_MAX + 50;
    let mut local = Local::start().await;
    for n in 0..LETTERS {
        local.copied("dead", "no", &n.to_string(), "");
    }
    let fails = Fails::new("DeleteMessageBatch", false);
    let config = local.client.config().to_builder().retry_config(RetryConfig::disabled()).interceptor(fails).build();
    local.client = Client::from_conf(config);
    let queue = local.open("dead").await;
    let dry_run = Bounds { dry_run: true, ..ALL };
    let look = queue.discard(&Selection::default(), dry_run, None, &mut go_on).await.unwrap();
    assert_eq!(look.progress.done, LETTERS);
    let report = queue.discard(&Selection::default(), ALL, None, &mut go_on).await.unwrap().after(look);
    assert_eq!((report.problem_count, report.problems.len(), report.progress.done), (LETTERS, PROBLEMS_MAX, 0));
}

/// A file on a disk that is full after one write.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0 += 1;
        if self.0 > 1 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

#[tokio::test]
async fn an_act_that_fails_midway_says_what_it_has_done() {
    let local = Local::start().await;
    for n in 0..15 {
        local.copied("dead", "no", &n.to_string(), "");
    }
    let queue = local.open("dead").await;
    let mut full = Full(0);
    let report = queue.discard(&Selection::default(), ALL, Some(&mut full), &mut go_on).await.unwrap();
    assert_eq!((report.progress.done, report.unseen.any(), local.depth("dead")), (10, true, (5, 0)));
    assert!(report.failed.as_ref().is_some_and(|why| why.contains("could not be saved")), "{report:?}");
    // Nothing was done this time.
    queue.discard(&Selection::default(), ALL, Some(&mut full), &mut go_on).await.unwrap_err();
    assert_eq!(local.depth("dead"), (5, 0));
}

#[tokio::test]
async fn a_queue_that_cannot_be_read_is_an_error_that_names_the_permission() {
    let mut local = Local::start().await;
    local.copied("dead", "no", "x", "");
    let config = local
        .client
        .config()
        .to_builder()
        .retry_config(RetryConfig::disabled())
        .interceptor(Fails::new("ReceiveMessage", false))
        .build();
    local.client = Client::from_conf(config);
    let queue = local.open("dead").await;
    let error = queue.read(&Selection::default(), 10, &mut |_| (), &mut go_on).await.unwrap_err();
    assert!(error.to_string().starts_with("the dead-letter queue dead cannot be read"), "{error}");
    assert_eq!(local.depth("dead"), (1, 0));
}
