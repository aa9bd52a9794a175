//! The spans of the steps that messages take. Where there are none, nothing is allocated.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::context::BatchContext;
use super::work::Delivery;
use crate::failure::{Failure, FailureKind};
use crate::handler::RunFuture;
use crate::protocol::Refusal;
use crate::spans::{Span, Step, StepSpan};
use crate::store::{BatchedClaim, ClaimAnswer, Settled, StoreError};

/// The span of a step, if there is one.
pub(crate) type AnyStep = Span<Arc<dyn StepSpan>>;

/// Opens the span of a step.
pub(crate) fn open(cx: BatchContext<'_>, delivery: &Delivery, step: Step) -> AnyStep {
    match cx.part.span(delivery.index) {
        Some(span) => span.step(cx.name(), step),
        None => AnyStep::NONE,
    }
}

/// Opens the spans of a step that several messages take together; none where there are none.
pub(crate) fn open_all<'b>(cx: BatchContext<'_>, steps: impl Iterator<Item = (&'b Delivery, Step)>) -> Vec<AnyStep> {
    if cx.part.spans().is_some() {
        steps.map(|(delivery, step)| open(cx, delivery, step)).collect()
    } else {
        Vec::new()
    }
}

/// Ends spans, each with what came of its step.
pub(crate) fn end_all<'b, R: 'b>(
    spans: &[AnyStep],
    results: impl IntoIterator<Item = &'b R>,
    say: impl Fn(&R) -> (&'static str, bool),
) {
    for (span, result) in spans.iter().zip(results) {
        end(span, say(result));
    }
}

/// Ends a span with what came of its step, in a word, and whether that failed.
pub(crate) fn end(span: &AnyStep, (word, failed): (&'static str, bool)) {
    span.tell(|span| span.end(word, failed));
}

/// Returns what came of a claim, and whether it failed.
pub(crate) fn claimed(answer: &Result<BatchedClaim, StoreError>) -> (&'static str, bool) {
    match answer {
        Ok(BatchedClaim::Answered(ClaimAnswer::Granted(claim))) if claim.is_taken_over() => ("taken_over", false),
        Ok(BatchedClaim::Answered(ClaimAnswer::Granted(_))) => ("granted", false),
        Ok(BatchedClaim::Answered(ClaimAnswer::Refused(refusal))) => match refusal {
            Refusal::Completed { .. } => ("completed", false),
            Refusal::Busy { .. } => ("busy", false),
            Refusal::Conflict => ("conflict", false),
            Refusal::Parked => ("parked", false),
            Refusal::Rejected { .. } => ("rejected", false),
        },
        Ok(BatchedClaim::ClaimAlone) => ("undecided", false),
        Err(_) => ("store_failed", true),
    }
}

/// Returns what came of a settlement, and whether it failed.
pub(crate) fn settled(settled: &Settled) -> (&'static str, bool) {
    match settled {
        Settled::Done => ("settled", false),
        Settled::Lost => ("lease_lost", true),
        Settled::Aborted { .. } => ("aborted", true),
        Settled::Refused(_) => ("refused", true),
        Settled::Unknown { .. } => ("settle_unknown", true),
    }
}

/// Returns what a handler returned, and whether that is a failure.
pub(crate) fn returned<R>(result: &Result<R, Failure>) -> (&'static str, bool) {
    match result {
        Ok(_) => ("returned", false),
        Err(failure) if matches!(failure.kind, FailureKind::Terminal) => ("rejected", true),
        Err(_) => ("failed", true),
    }
}

/// Runs this within a span, if there is one.
pub(crate) fn within<R>(span: &AnyStep, work: impl FnOnce() -> R) -> R {
    if span.is_none() {
        return work();
    }
    let (mut work, mut result) = (Some(work), None);
    span.tell(|span| {
        span.within(&mut || {
            if let Some(work) = work.take() {
                // What the work panics is not the system's.
                result = Some(catch_unwind(AssertUnwindSafe(work)));
            }
        });
    });
    // A system that runs nothing, or panics, loses no more than its span.
    let result = result.or_else(|| work.map(|work| Ok(work()))).expect("it ran within the span, or else here");
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Returns a handler's run that is polled within a span, if there is one.
pub(crate) fn run_within<R: 'static>(span: &AnyStep, run: RunFuture<R>) -> RunFuture<R> {
    match span.is_none() {
        false => Box::pin(Within { span: span.clone(), run }),
        true => run,
    }
}

/// A future that is polled within a span.
pub(crate) struct Within<F> {
    pub(crate) span: AnyStep,
    pub(crate) run: F,
}

impl<F: Future + Unpin> Future for Within<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { span, run } = &mut *self;
        within(span, || Pin::new(run).poll(cx))
    }
}
