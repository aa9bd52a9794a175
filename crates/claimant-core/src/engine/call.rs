//! A call of a batch handler: one round for all of its items; in a transaction more, since what fails is rolled back for all of
//! them.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use super::after::returned;
use super::context::BatchContext;
use super::renewal::renew_late;
use super::round::{RoundEnd, round};
use super::run::{HandlerReturn, Ran, RunEnd};
use super::settling::{Pending, SettleResult, open_spans, prepare};
use super::spans;
use super::work::{Claimed, add};
use crate::backoff;
use crate::batch::AnyBatchHandler;
use crate::batch_transactions::AnyBatchTransactions;
use crate::claim::Claim;
use crate::error::Chain;
use crate::failure::Failure;
use crate::invocation_time::{answered, time_until};
use crate::options::Lease;
use crate::payload::Payload;
use crate::protocol::breaker::Health;
use crate::store::{Renewed, Settled};
use crate::transaction::{AnyTransaction, TRANSACTION_KEPT, TransactionSlot};

/// What a call came to for one of its items.
pub(crate) enum AfterCall {
    Ran(Ran),
    /// It was completed in the call's transaction, or it is known why not.
    Settled(SettleResult),
}

/// A call that has ended.
pub(crate) struct CallRan {
    pub(crate) items: Vec<AfterCall>,
    /// The longest of its rounds.
    pub(crate) longest: Duration,
    /// How long all of it took.
    pub(crate) took: Duration,
}

/// What is to be run again, after it was rolled back.
enum Again {
    /// In one transaction: what had no part in the failure.
    Together(Vec<Claimed>),
    /// Each in a transaction of its own, since it is not known what failed.
    Alone(Vec<Claimed>),
}

/// Calls the handler for these claims.
pub(crate) async fn call<'a>(cx: BatchContext<'a>, handler: &'a AnyBatchHandler, claimed: Vec<Claimed>) -> CallRan {
    let start = Instant::now();
    let ran = CallRan { items: Vec::with_capacity(claimed.len()), longest: Duration::ZERO, took: Duration::ZERO };
    let mut call = BatchCall { cx, handler, ran };
    match &handler.transactions {
        None => call.once(claimed).await,
        Some(store) => call.in_transactions(store.as_ref(), claimed).await,
    }
    CallRan { took: start.elapsed(), ..call.ran }
}

struct BatchCall<'a> {
    cx: BatchContext<'a>,
    handler: &'a AnyBatchHandler,
    ran: CallRan,
}

impl BatchCall<'_> {
    async fn once(&mut self, claimed: Vec<Claimed>) {
        let (mut members, payloads) = self.renew_late(claimed).await;
        if !members.is_empty() {
            let (round, took) = self.round(&mut members, payloads, &TransactionSlot::default()).await;
            self.end_all(members, round.of_each(), took);
        }
    }

    async fn in_transactions(&mut self, store: &dyn AnyBatchTransactions, claimed: Vec<Claimed>) {
        let (mut groups, mut together) = (VecDeque::from([claimed]), true);
        while let Some(group) = groups.pop_front() {
            match self.in_transaction(store, group).await {
                Again::Together(again) if !again.is_empty() && mem::take(&mut together) => groups.push_back(again),
                Again::Together(again) | Again::Alone(again) => {
                    groups.extend(again.into_iter().map(|claimed| vec![claimed]));
                }
            }
            if !self.cx.fits() {
                let late = mem::take(&mut groups).into_iter().flatten();
                late.for_each(|claimed| self.end(claimed.without_payload(), RunEnd::NoTime, Duration::ZERO));
            }
        }
    }

    /// Calls the handler for these claims in one transaction, and commits it if all of it is done; returns what is to be run again.
    async fn in_transaction(&mut self, store: &dyn AnyBatchTransactions, group: Vec<Claimed>) -> Again {
        let Some(transaction) = begin(self.cx, store).await else {
            let none = group.into_iter().map(Claimed::without_payload);
            none.for_each(|member| self.end(member, RunEnd::NoTransaction, Duration::ZERO));
            return Again::Together(Vec::new());
        };
        // Only now, since beginning it takes a while in which leases are not renewed.
        let (mut members, payloads) = self.renew_late(group).await;
        if members.is_empty() {
            roll_back(self.cx, store, transaction).await;
            return Again::Together(Vec::new());
        }
        let home = TransactionSlot::of(Some(transaction));
        let (mut round, took) = self.round(&mut members, payloads, &home).await;
        match (round.end, home.take()) {
            (RunEnd::Returned(Ok(results)), Some(transaction)) if results.iter().all(Result::is_ok) => {
                return self.commit(store, transaction, (members, results), took).await;
            }
            (RunEnd::Returned(Ok(_)), None) => round.end = RunEnd::Returned(Err(Failure::retry(TRANSACTION_KEPT))),
            (end, transaction) => {
                round.end = end;
                if let Some(transaction) = transaction {
                    roll_back(self.cx, store, transaction).await;
                }
            }
        }
        self.rolled_back(members, round, took)
    }

    /// Ends what failed by itself; returns the rest of the items.
    fn rolled_back(&mut self, members: Vec<Claimed<()>>, round: RoundEnd, took: Duration) -> Again {
        if members.len() > 1 && matches!(round.end, RunEnd::Returned(Err(_)) | RunEnd::Panicked) {
            tracing::warn!(consumer = %self.cx.name(), items = members.len(), "a call failed and was rolled back: each of its items is tried by itself");
            return Again::Alone(members.into_iter().filter_map(|member| self.again(member, took)).collect());
        }
        let mut rest = Vec::new();
        for (member, end) in members.into_iter().zip(round.of_each()) {
            match end {
                RunEnd::Returned(Ok(_)) => rest.extend(self.again(member, took)),
                end => self.end(member, end, took),
            }
        }
        Again::Together(rest)
    }

    /// Completes all items in their transaction; returns those that were rolled back.
    async fn commit(
        &mut self,
        store: &dyn AnyBatchTransactions,
        transaction: AnyTransaction,
        (members, results): (Vec<Claimed<()>>, Vec<HandlerReturn>),
        took: Duration,
    ) -> Again {
        let (cx, start, items) = (self.cx, Instant::now(), members.len());
        let now = cx.now();
        let unsettled = members.into_iter().zip(results).map(|(mut member, result)| {
            add(&mut member.work.delivery.details.handle, took);
            prepare(cx, returned(cx, member, result), now)
        });
        let (claims, all_pending): (Vec<Claim>, Vec<Pending>) = unsettled.unzip();
        let completions = claims.into_iter().zip(all_pending.iter().map(Pending::settlement)).collect();
        let (within, call) = cx.store_call(cx.time.return_by);
        let steps = open_spans(cx, &all_pending);
        let settled = timeout(within, store.commit(transaction, completions, call)).await.unwrap_or_default();
        // The store bounds its own calls and answers each; this is for one that does not.
        let none = std::iter::repeat_with(|| Settled::given_up(within));
        let settled = settled.into_iter().chain(none);
        let mut answers: Vec<_> = all_pending.into_iter().zip(settled).collect();
        resolve(cx, store, &mut answers).await;
        spans::end_all(&steps, answers.iter().map(|(_, settled)| settled), spans::settled);
        let mut again = Vec::new();
        for (pending, settled) in answers {
            match settled {
                Settled::Aborted { claim, failure } if items > 1 => {
                    tracing::warn!(consumer = %cx.name(), items, error = %failure.why, "the commit of a call was refused: each of its items is tried by itself");
                    again.extend(self.again(pending.into_claimed(claim), Duration::ZERO));
                }
                settled => self.ran.items.push(AfterCall::Settled(pending.settled(settled, start.elapsed()))),
            }
        }
        Again::Alone(again)
    }

    /// Returns an item that is to be run again, with a fresh payload: the first went to the handler.
    fn again(&mut self, mut member: Claimed<()>, took: Duration) -> Option<Claimed> {
        let cx = self.cx;
        match cx.shared.consumer.reader.read(cx.name(), &member.work.delivery.message) {
            Ok((_, payload)) => {
                add(&mut member.work.delivery.details.handle, took);
                Some(member.with(payload))
            }
            Err(rejection) => {
                let why = format!("its body was decoded before, and not again: {rejection}");
                self.end(member, RunEnd::Returned(Err(Failure::retry(why))), took);
                None
            }
        }
    }

    /// Renews leases that came late, and ends what has lost its own.
    async fn renew_late(&mut self, claimed: Vec<Claimed>) -> (Vec<Claimed<()>>, Vec<Payload>) {
        let (cx, split) = (self.cx, claimed.into_iter().map(Claimed::split));
        let Lease::Renewed(lease) = cx.options().lease else { return split.unzip() };
        let renewals = join_all(split.map(|(mut member, payload)| async move {
            let renewed = renew_late(&cx, &member.work.delivery, &mut member.claim, lease).await;
            (member, payload, renewed)
        }));
        let (mut members, mut payloads) = (Vec::new(), Vec::new());
        for (member, payload, renewed) in renewals.await {
            match renewed {
                Renewed::Lost => self.end(member, RunEnd::LeaseLostUnstarted, Duration::ZERO),
                Renewed::Held => {
                    members.push(member);
                    payloads.push(payload);
                }
            }
        }
        (members, payloads)
    }

    async fn round(
        &mut self,
        members: &mut [Claimed<()>],
        payloads: Vec<Payload>,
        home: &TransactionSlot,
    ) -> (RoundEnd, Duration) {
        let start = Instant::now();
        let end = round(self.cx, self.handler, members, payloads, home).await;
        let took = start.elapsed();
        self.ran.longest = self.ran.longest.max(took);
        let seen = end.end.health(self.cx, |breaker, returned| match returned {
            Ok(results) => Health::of_most(results.iter().map(|result| breaker.health(result))),
            failed => breaker.health(failed),
        });
        end.end.teach(self.cx, took, seen);
        (end, took)
    }

    fn end_all(&mut self, members: Vec<Claimed<()>>, ends: Vec<RunEnd>, took: Duration) {
        members.into_iter().zip(ends).for_each(|(member, end)| self.end(member, end, took));
    }

    fn end(&mut self, claimed: Claimed<()>, end: RunEnd, took: Duration) {
        self.ran.items.push(AfterCall::Ran(Ran::new(self.cx, claimed, end, took)));
    }
}

async fn begin(cx: BatchContext<'_>, store: &dyn AnyBatchTransactions) -> Option<AnyTransaction> {
    let (within, call) = cx.store_call(cx.time.cancel_at);
    match answered(within, store.begin(time_until(cx.time.return_by), call)).await {
        Ok(transaction) => Some(transaction),
        Err(error) => {
            tracing::warn!(consumer = %cx.name(), error = %Chain(&error), "the store gave a call no transaction");
            None
        }
    }
}

async fn roll_back(cx: BatchContext<'_>, store: &dyn AnyBatchTransactions, transaction: AnyTransaction) {
    let (within, call) = cx.store_call(cx.time.return_by);
    let _ = timeout(within, store.roll_back(transaction, call)).await;
}

/// Finds out what became of a commit without an answer, until the report is due.
async fn resolve(cx: BatchContext<'_>, store: &dyn AnyBatchTransactions, answers: &mut [(Pending, Settled)]) {
    let mut tries = 1;
    loop {
        let (mut asked, mut completions, mut id) = (Vec::new(), Vec::new(), None);
        for (at, (pending, settled)) in answers.iter_mut().enumerate() {
            if let Settled::Unknown { claim, error } = settled
                && error.kind().may_pass()
                && let Some(claim) = claim.take()
            {
                id.get_or_insert_with(|| pending.message_id().clone());
                asked.push(at);
                completions.push((claim, pending.settlement()));
            }
        }
        let Some(id) = id else { return };
        let Some(delay) = backoff::store_delay(tries, &id, time_until(cx.time.return_by)) else { return };
        sleep(delay).await;
        let (within, call) = cx.store_call(cx.time.return_by);
        let found = timeout(within, store.resolve(completions, call)).await.unwrap_or_default();
        for (at, found) in asked.into_iter().zip(found) {
            answers[at].1 = found;
        }
        tries += 1;
    }
}
