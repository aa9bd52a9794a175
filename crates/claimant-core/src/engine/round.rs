//! One round of a batch handler: it is called once for its items, cancelled in time, all their leases renewed meanwhile.

use futures_util::future::join_all;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::context::BatchContext;
use super::renewal;
use super::run::{Cut, RunEnd, cancellation, context, supervise};
use super::spans::{self, AnyStep};
use super::work::Claimed;
use crate::batch::{AnyBatchHandler, CallResult, Item, Items};
use crate::options::Lease;
use crate::payload::Payload;
use crate::spans::Step;
use crate::transaction::TransactionSlot;

/// How a round ended.
pub(crate) struct RoundEnd {
    pub(crate) end: RunEnd<CallResult>,
    /// Whose lease was lost.
    lost: Vec<bool>,
}

impl RoundEnd {
    /// Returns how the round ended for each item.
    pub(crate) fn of_each(self) -> Vec<RunEnd> {
        let Self { end, lost } = self;
        let each = |of_one: &dyn Fn(bool) -> RunEnd| lost.iter().map(|lost| of_one(*lost)).collect();
        match end {
            RunEnd::Returned(Ok(results)) => results.into_iter().map(RunEnd::Returned).collect(),
            RunEnd::Returned(Err(failure)) => each(&|_| RunEnd::Returned(Err(failure.clone()))),
            RunEnd::Panicked => each(&|_| RunEnd::Panicked),
            RunEnd::Cancelled(Cut::LeaseLost) => {
                each(&|lost| RunEnd::Cancelled(if lost { Cut::LeaseLost } else { Cut::NeighbourLost }))
            }
            RunEnd::Cancelled(cut) => each(&|_| RunEnd::Cancelled(cut)),
            RunEnd::LeaseLostUnstarted => each(&|lost| if lost { RunEnd::LeaseLostUnstarted } else { RunEnd::NoTime }),
            RunEnd::StillRunning(cut) => each(&|_| RunEnd::StillRunning(cut)),
            RunEnd::NeverStarted => each(&|_| RunEnd::NeverStarted),
            RunEnd::NoTime => each(&|_| RunEnd::NoTime),
            RunEnd::NoTransaction => each(&|_| RunEnd::NoTransaction),
        }
    }
}

/// Calls the handler for these items, with the transaction in `home`.
pub(crate) async fn round(
    cx: BatchContext<'_>,
    handler: &AnyBatchHandler,
    members: &mut [Claimed<()>],
    payloads: Vec<Payload>,
    home: &TransactionSlot,
) -> RoundEnd {
    let (began, mut lost) = (Instant::now(), vec![false; members.len()]);
    let (cancel_at, cut) = cancellation(cx);
    let item = |(member, payload): (&Claimed<()>, Payload)| Item {
        payload,
        cx: context(cx, &member.work, (member.claim.fence, member.claim.attempt), cancel_at),
    };
    let items = Items::new(members.iter().zip(payloads).map(item).collect());
    let (steps, span) = open_spans(cx, members);
    // At `ERROR`, as `run::span`.
    let logs = spans::within(&span, || tracing::error_span!("call", consumer = %cx.name(), items = items.len()));
    let run = spans::run_within(&span, Box::pin(handler.start(items, home).instrument(logs)));
    let end = supervise(cx, run, (cancel_at, cut), renewal::until_any_lost(&cx, members, &mut lost)).await;
    end_spans(&steps, &span, &end);
    if let Lease::Renewed(lease) = cx.options().lease {
        join_all(members.iter().map(|member| renewal::stay_hidden(&cx, &member.work.delivery, began, lease))).await;
    }
    RoundEnd { end, lost }
}

/// Opens the span of each item, and that of the call: of an only item the same.
fn open_spans(cx: BatchContext<'_>, members: &[Claimed<()>]) -> (Vec<AnyStep>, AnyStep) {
    let step = |member: &Claimed<()>| Step::Handle { attempt: member.claim.attempt };
    let steps = spans::open_all(cx, members.iter().map(|member| (&member.work.delivery, step(member))));
    let call = match (&steps[..], cx.part.spans()) {
        ([], _) | (_, None) => AnyStep::NONE,
        ([only], _) => only.clone(),
        (several, Some(spans)) => {
            let identities: Vec<_> = several.iter().filter_map(|step| step.tell(|step| step.identity())).collect();
            spans.call(cx.name(), &identities)
        }
    };
    (steps, call)
}

fn end_spans(steps: &[AnyStep], call: &AnyStep, end: &RunEnd<CallResult>) {
    let of_call = end.word(spans::returned);
    if let RunEnd::Returned(Ok(results)) = end {
        spans::end_all(steps, results, spans::returned);
    }
    // Those that have ended already stay as they are.
    steps.iter().chain([call]).for_each(|span| spans::end(span, of_call));
}
