//! Taking in: the store of a consumer that runs nothing and keeps the messages.
//!
//! A claim costs nothing and keeps nobody out; that a key is there once is said by the database when its row is stored.

use std::collections::HashMap;
use std::time::Duration;

use claimant_core::protocol::{self, ClaimRequest, Decision, Ending, Renewal, Settlement};
use claimant_core::{
    AnyTransaction, Call, Claim, ClaimAnswer, HandlerError, Message, Record, RecordId, Renewed, Settled, Store,
    StoreError, StoreFuture, Transactional,
};
use futures_util::future::join_all;
use sqlx::PgPool;
use tokio::time::Instant;

use crate::limits::EVENT_TYPE_MAX_BYTES;
use crate::link::{self, end_of};
use crate::offer;
use crate::trouble;

/// How often a row is offered anew where no answer came.
const ROUNDS_MAX: u32 = 4;

/// The base of the waits before that.
const RETRY_BASE_MS: u64 = 12;

/// The inbox as a store: what [`Inbox::intake`](crate::Inbox::intake) gives its consumer.
#[derive(Debug, Clone)]
pub(crate) struct Intake {
    pub(crate) pool: PgPool,
}

/// A message on its way into the inbox.
#[derive(Debug)]
pub(crate) struct Slip {
    pub(crate) request: ClaimRequest,
    pub(crate) page: Option<Page>,
}

/// What is kept of a message beside its key and its fingerprint.
pub(crate) struct Page {
    pub(crate) group: Option<String>,
    pub(crate) event_type: String,
    pub(crate) body: String,
    pub(crate) trace: Option<String>,
}

// Bodies never reach a log.
impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Page").field("body_bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// Notes what is to be kept.
pub(crate) fn note(event_type: &str, message: &Message, slip: &mut Slip) -> Result<(), HandlerError> {
    if !(1..=EVENT_TYPE_MAX_BYTES).contains(&event_type.len()) {
        return Err(HandlerError::terminal(format!(
            "the event type has {} bytes; 1 to {EVENT_TYPE_MAX_BYTES} are allowed",
            event_type.len()
        )));
    }
    slip.page = Some(Page {
        group: message.ordered_group.clone(),
        event_type: event_type.to_owned(),
        body: message.body.clone(),
        trace: message.trace.clone(),
    });
    Ok(())
}

impl Intake {
    /// Stores these messages by one statement; where somebody's lock is in the way, each by its own. An error where it is not
    /// known whether it is stored.
    async fn take_in(&self, slips: &[(Slip, Settlement)], call: Call<'_>) -> Vec<Result<Settled, StoreError>> {
        let until = end_of(call.within);
        match self.shown(slips, until, call).await {
            Ok(records) => slips.iter().map(|(slip, _)| Ok(settled(slip, &records))).collect(),
            Err(error) if trouble::passes(&error) && slips.len() > 1 && Instant::now() < until => {
                join_all(slips.iter().map(|slip| self.take_in_one(slip, until, call))).await
            }
            Err(error) => slips.iter().map(|_| Err(StoreError::new(error.kind(), error.to_string()))).collect(),
        }
    }

    async fn take_in_one(
        &self,
        slip: &(Slip, Settlement),
        until: Instant,
        call: Call<'_>,
    ) -> Result<Settled, StoreError> {
        let records = self.shown(std::slice::from_ref(slip), until, call).await?;
        Ok(settled(&slip.0, &records))
    }

    /// The committed rows of these messages, by their record ids: those that this stored, and those that were there.
    async fn shown(
        &self,
        slips: &[(Slip, Settlement)],
        until: Instant,
        call: Call<'_>,
    ) -> Result<HashMap<Vec<u8>, Record>, StoreError> {
        let mut round = 0;
        loop {
            call.meter.request();
            let answer = link::rows(&self.pool, until, "storing messages", offer::offer(slips)).await;
            let trouble = match answer.and_then(|rows| offer::records(&rows)) {
                Ok(records)
                    if slips.iter().all(|(slip, _)| records.contains_key(slip.request.id.as_str().as_bytes())) =>
                {
                    return Ok(records);
                }
                // Somebody else's row came in between: the next statement sees it.
                Ok(_) => None,
                Err(error) if trouble::passes(&error) => Some(error),
                Err(error) => return Err(error),
            };
            round += 1;
            let wait = Duration::from_millis(RETRY_BASE_MS << round);
            if round == ROUNDS_MAX || Instant::now() + wait >= until {
                return Err(trouble.unwrap_or_else(|| trouble::no_answer("storing messages")));
            }
            tokio::time::sleep(wait).await;
        }
    }
}

/// What the row that is there says of this message.
fn settled(slip: &Slip, records: &HashMap<Vec<u8>, Record>) -> Settled {
    let Some(record) = records.get(slip.request.id.as_str().as_bytes()) else { return Settled::Lost };
    match protocol::decide(Some(record), &slip.request) {
        _ if record.owner == slip.request.owner => Settled::Done,
        Decision::Refuse(refusal) => Settled::Refused(refusal),
        // A row is final: it lets nobody claim its key.
        Decision::Grant { .. } | Decision::Park { .. } | Decision::Held => Settled::Lost,
    }
}

impl Store for Intake {
    fn claim<'a>(&'a self, request: &'a ClaimRequest, _: Call<'a>) -> StoreFuture<'a, Result<ClaimAnswer, StoreError>> {
        let mut claim = protocol::claim_of(request.id.clone(), &protocol::fresh_claim(request), false);
        claim.transaction = Some(AnyTransaction::new(Slip { request: request.clone(), page: None }));
        Box::pin(std::future::ready(Ok(ClaimAnswer::Granted(claim))))
    }

    /// There is nothing to renew: nobody is kept out.
    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        _: Call<'a>,
    ) -> StoreFuture<'a, Result<Renewed, StoreError>> {
        claim.lease_until = claim.lease_until.max(renewal.lease_until);
        Box::pin(std::future::ready(Ok(Renewed::Held)))
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> StoreFuture<'a, Settled> {
        let settling = self.settle_all(vec![(claim, settlement.clone())], call);
        Box::pin(async move { settling.await.pop().unwrap_or(Settled::Lost) })
    }

    fn settle_all<'a>(
        &'a self,
        settlements: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> StoreFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            // What was not to be stored left nothing behind: its ending is there by itself.
            let mut answers: Vec<Settled> = settlements.iter().map(|_| Settled::Done).collect();
            let (mut claims, mut slips) = (Vec::new(), Vec::new());
            for (place, (mut claim, settlement)) in settlements.into_iter().enumerate() {
                if !matches!(settlement.ending, Ending::Completed { .. }) {
                    continue;
                }
                match claim.transaction.take().and_then(AnyTransaction::unpack::<Slip>) {
                    Some(slip) if slip.page.is_some() => {
                        claims.push((place, claim));
                        slips.push((slip, settlement));
                    }
                    _ => answers[place] = Settled::Lost,
                }
            }
            if !slips.is_empty() {
                let taken_in = self.take_in(&slips, call).await;
                for (((place, claim), (slip, _)), answer) in claims.into_iter().zip(slips).zip(taken_in) {
                    answers[place] = answer.unwrap_or_else(|error| {
                        Settled::unknown(Claim { transaction: Some(AnyTransaction::new(slip)), ..claim }, error)
                    });
                }
            }
            answers
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> StoreFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            call.meter.request();
            let rows = link::rows(&self.pool, end_of(call.within), "reading a message", offer::look(id)).await?;
            Ok(offer::records(&rows)?.into_values().next())
        })
    }
}

impl Transactional for Intake {
    type Transaction = Slip;
}
