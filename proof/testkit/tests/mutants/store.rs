//! A store in memory with one bug.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use claimant_core::protocol::{
    self, ClaimRequest, Decision, Ending, Refusal, RenewDecision, Renewal, SettleDecision, Settlement,
};
use claimant_core::{
    BatchedClaim, BoxFuture, Call, Claim, ClaimAnswer, OwnerToken, Record, RecordId, Renewed, Settled, Status, Store,
    StoreError, StoreErrorKind, Timestamp,
};
use claimant_test::faulty::stale_copy;
use tokio::sync::{MutexGuard, OwnedMutexGuard};
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::bug::Bug;

/// How often a lock that is taken is tried again.
const LOCK_TRIED_EVERY: Duration = Duration::from_millis(100);

/// Less time than this is none: the call then fails before it applies.
const HURRY: Duration = Duration::from_millis(1);

pub(crate) struct Mutant {
    pub(crate) bug: Bug,
    state: Arc<Mutex<State>>,
    /// Held by one call of this instance at a time, where a bug has such a lock.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    records: HashMap<String, Record>,
    latest: Timestamp,
    locked: HashSet<String>,
    locks: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
    answers: VecDeque<ClaimAnswer>,
}

impl Mutant {
    pub(crate) fn new(bug: Bug) -> Self {
        Self { bug, state: Arc::default(), turn: tokio::sync::Mutex::default() }
    }

    /// Another instance with the same records.
    pub(crate) fn another(&self) -> Self {
        Self { state: Arc::clone(&self.state), ..Self::new(self.bug) }
    }

    /// The lock of a store whose every call has one in its process.
    async fn own_turn(&self) -> Option<MutexGuard<'_, ()>> {
        if self.is(Bug::LocksInItsProcess) { Some(self.turn().await) } else { None }
    }

    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// The locks of these keys, one after the other.
    pub(crate) async fn locks(&self, requests: &[ClaimRequest]) -> Vec<OwnedMutexGuard<()>> {
        let (mut names, mut held) = (HashSet::new(), Vec::new());
        for request in requests.iter().filter(|request| names.insert(request.id.as_str())) {
            let lock = self.with(|state| Arc::clone(state.locks.entry(request.id.as_str().into()).or_default()));
            held.push(lock.lock_owned().await);
            yield_now().await;
        }
        held
    }

    pub(crate) fn is(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap())
    }

    pub(crate) fn read(&self, id: &RecordId) -> Option<Record> {
        self.with(|state| state.records.get(&self.bug.name(id)).cloned())
    }

    pub(crate) fn write(&self, id: &RecordId, record: Record) {
        let record = self.bug.kept(record);
        self.with(|state| state.records.insert(self.bug.name(id), record));
    }

    /// Whether the call has time enough; else its error.
    pub(crate) async fn begin(&self, id: &RecordId, call: Call<'_>) -> Result<(), StoreError> {
        call.meter.request();
        let unreachable = |message: String| StoreError::new(StoreErrorKind::Unreachable, message);
        match self.bug {
            Bug::Panics => panic!("out of bounds"),
            Bug::Unreachable => return Err(unreachable("no server answers".into())),
            Bug::UnreachableAndTells => return Err(unreachable(format!("no server answers about {}", id.as_str()))),
            Bug::UnreachableAndTellsPassword => return Err(unreachable("no answer of user:pa55-w0rd@server".into())),
            Bug::SleepsInAThread => {
                let asleep = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_secs(6)));
                asleep.await.unwrap();
                return Err(unreachable("no server answers".into()));
            }
            Bug::TakesItsTime => sleep(call.within.saturating_sub(Duration::from_millis(1))).await,
            Bug::OverflowsTime => assert!(Instant::now().checked_add(call.within).is_some(), "overflow"),
            _ => {}
        }
        yield_now().await;
        if call.within >= HURRY {
            return Ok(());
        }
        let id = id.as_str();
        match self.bug {
            Bug::Hangs => std::future::pending().await,
            Bug::CallsItThrottled => Err(StoreError::new(StoreErrorKind::Throttled, "too many requests")),
            Bug::TellsKey => Err(unreachable(format!("no answer for {id}"))),
            Bug::TellsKeyInCause => {
                Err(unreachable("no answer".into()).caused_by(format!("UPDATE … WHERE id = '{id}'")))
            }
            _ => Err(StoreError::no_answer(call.within)),
        }
    }

    pub(crate) async fn claim_now(&self, request: &ClaimRequest, call: Call<'_>) -> Result<ClaimAnswer, StoreError> {
        if self.is(Bug::GuessesGranted) && call.within < HURRY {
            let record = protocol::fresh_claim(request);
            return Ok(ClaimAnswer::Granted(protocol::claim_of(request.id.clone(), &record, 0)));
        }
        if self.is(Bug::ClaimHangs) {
            std::future::pending::<()>().await;
        }
        self.begin(&request.id, call).await?;
        let name = self.bug.name(&request.id);
        if self.is(Bug::LeavesALock) || self.is(Bug::WaitsForItsLock) {
            while !self.with(|state| state.locked.insert(name.clone())) {
                if self.is(Bug::LeavesALock) {
                    return Err(StoreError::new(StoreErrorKind::Unreachable, "the record is locked"));
                }
                sleep(LOCK_TRIED_EVERY).await;
            }
            yield_now().await;
            self.with(|state| state.locked.remove(&name));
        }
        let _turn = self.own_turn().await;
        let seen = self.read(&request.id);
        if self.is(Bug::ReadsThenClaims) || self.is(Bug::LocksInItsProcess) {
            yield_now().await;
        }
        let answer = self.carry_out(request, seen.as_ref()).await;
        if self.is(Bug::MixesAnswers) {
            self.with(|state| state.answers.push_back(answer));
            yield_now().await;
            return Ok(self.with(|state| state.answers.pop_front()).unwrap());
        }
        yield_now().await;
        Ok(answer)
    }

    pub(crate) async fn carry_out(&self, request: &ClaimRequest, seen: Option<&Record>) -> ClaimAnswer {
        let grant = |record: &Record, over| {
            let mut claim = protocol::claim_of(request.id.clone(), record, over);
            claim.owner = request.owner.clone();
            claim.last_error = claim.last_error.filter(|_| !self.is(Bug::ForgetsLastErrors));
            ClaimAnswer::Granted(claim)
        };
        let busy = || ClaimAnswer::Refused(Refusal::Busy { until: request.lease_until, same_message: false });
        let latest = self.with(|state| {
            state.latest = state.latest.max(request.now);
            state.latest
        });
        match (self.bug.decide(seen, request, latest), seen) {
            (Decision::Held, _) if self.is(Bug::RefusesOwnClaim) => busy(),
            (Decision::Held, Some(seen))
                if self.is(Bug::RefusesOwnClaimAfterLease) && request.now > seen.lease_until =>
            {
                busy()
            }
            (Decision::Held, seen) => {
                let mut held = protocol::held(request.id.clone(), seen.unwrap(), None);
                match self.bug {
                    Bug::ForgetsTakeovers => held.interruptions = 0,
                    Bug::ForgetsLastErrorOfOwnClaim => held.last_error = None,
                    _ => {}
                }
                ClaimAnswer::Granted(held)
            }
            (Decision::Refuse(refusal), _) => ClaimAnswer::Refused(refusal),
            (Decision::Park { next }, _) => {
                if !self.is(Bug::ParksWithoutWriting) {
                    self.write(&request.id, next);
                }
                ClaimAnswer::Refused(Refusal::Parked)
            }
            (Decision::Grant { next, interruptions }, _) => {
                if self.is(Bug::WritesHalf) {
                    let half = Record { owner: OwnerToken::from_stored(""), ..next.clone() };
                    self.write(&request.id, half);
                    yield_now().await;
                }
                let answer = grant(&next, interruptions);
                self.write(&request.id, next);
                answer
            }
        }
    }

    pub(crate) async fn settle_now(&self, claim: Claim, settlement: &Settlement, call: Call<'_>) -> Settled {
        if self.is(Bug::GuessesLost) && call.within < HURRY {
            return Settled::Lost;
        }
        if let Err(error) = self.begin(&claim.id, call).await {
            let claim = (!self.is(Bug::KeepsClaims)).then_some(claim);
            return Settled::Unknown { claim, error };
        }
        if let (Bug::TellsResult, Some(result)) = (self.bug, settlement.ending.result().filter(|r| r.len() > 1_000_000))
        {
            let error = StoreError::new(StoreErrorKind::TooLarge, format!("too large: {result}"));
            return Settled::unknown(claim, error);
        }
        let _turn = self.own_turn().await;
        let mut seen = self.read(&claim.id);
        if self.is(Bug::ReadsThenSettles) {
            yield_now().await;
        }
        let claim = self.bug.guarded(claim, seen.as_ref());
        if let (Bug::OwnerReopens, Some(seen)) = (self.bug, &mut seen)
            && seen.status == Status::Completed
        {
            seen.status = Status::InProgress;
        }
        let settled = match protocol::settle(seen.as_ref(), &claim, settlement) {
            SettleDecision::Lost => Settled::Lost,
            SettleDecision::AlreadySettled if self.is(Bug::LosesOwnEnding) => Settled::Lost,
            SettleDecision::AlreadySettled => {
                let mut record = seen.unwrap();
                match self.bug {
                    Bug::ReleasesTwice => record.attempts -= settlement.ending.attempts_back().min(record.attempts),
                    Bug::RefreshesOwnEnding => record.updated_at = settlement.now,
                    _ => {}
                }
                self.write(&claim.id, record);
                Settled::Done
            }
            SettleDecision::Write(_) if self.is(Bug::ReleaseDeletes) && settlement.ending == Ending::Released => {
                self.with(|state| state.records.remove(&self.bug.name(&claim.id)));
                Settled::Done
            }
            SettleDecision::Write(next) => {
                self.write(&claim.id, *next);
                Settled::Done
            }
        };
        yield_now().await;
        settled
    }

    async fn renew_now(&self, claim: &mut Claim, renewal: Renewal, call: Call<'_>) -> Result<Renewed, StoreError> {
        self.begin(&claim.id, call).await?;
        let _turn = self.own_turn().await;
        let seen = self.read(&claim.id);
        if self.is(Bug::ReadsThenRenews) {
            yield_now().await;
        }
        let mut guarded = stale_copy(claim);
        let mut shown = seen.clone();
        match (self.bug, &mut shown) {
            (Bug::RenewsUnguarded, Some(shown)) => {
                (guarded.owner, guarded.fence) = (shown.owner.clone(), shown.fence);
            }
            (Bug::RenewsCompleted, Some(shown)) => shown.status = Status::InProgress,
            (Bug::ShortensLeases, Some(shown)) => shown.lease_until = Timestamp::from_millis(0),
            _ => {}
        }
        match protocol::renew(shown.as_ref(), &guarded, &renewal) {
            RenewDecision::Lost => return Ok(Renewed::Lost),
            RenewDecision::AlreadyLonger => claim.lease_until = shown.unwrap().lease_until,
            RenewDecision::Write(mut next) => {
                if self.is(Bug::RenewalKeepsExpiry) {
                    next.expires_at_s = seen.unwrap().expires_at_s;
                }
                claim.lease_until = next.lease_until;
                self.write(&claim.id, *next);
            }
        }
        if self.is(Bug::ShowsTheEndAskedFor) {
            claim.lease_until = renewal.lease_until;
        }
        yield_now().await;
        Ok(Renewed::Held)
    }
}

impl Store for Mutant {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(self.claim_now(request, call))
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(self.renew_now(claim, renewal, call))
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        Box::pin(self.claim_many(requests, call))
    }

    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(self.settle_many(settlements, call))
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(self.settle_now(claim, settlement, call))
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            self.begin(id, call).await?;
            assert!(!self.is(Bug::ReadPanics), "out of bounds");
            Ok(self.read(id).filter(|_| !self.is(Bug::ReadsNothing)))
        })
    }
}
