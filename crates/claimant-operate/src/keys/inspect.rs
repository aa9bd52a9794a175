//! One record, in words.

use claimant_core::protocol::{
    Abandoned, Act, ClaimPolicy, ClaimRequest, Conflicts, Decision, Likely, OperateDecision, OperateRefusal, Refusal,
    decide, runs,
};
use claimant_core::{Error, Fingerprint, MessageId, OwnerToken, Record, RecordId, State, Timestamp};

use super::access::Keys;
use super::act::Order;
use super::beside::Beside;
use super::times::{ahead, span, when};

/// What is known of a key.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The record.
    pub id: RecordId,
    /// What is there, if anything.
    pub record: Option<Record>,
    /// What that means now; `None` where there is no record.
    pub state: Option<State>,
    /// The time at which all of this holds.
    pub now: Timestamp,
    /// What would become of the key's next message, by the decision that functions make.
    pub next: Vec<Forecast>,
    /// What each act would do without force.
    pub acts: Vec<Possible>,
}

/// What would happen in one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// What comes.
    pub case: &'static str,
    /// What becomes of it: the outcome's word where it is not run, else `runs`.
    pub outcome: &'static str,
    /// The same in a sentence.
    pub says: String,
}

/// What one act would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Possible {
    /// The act.
    pub act: Act,
    /// Whether it would change the record.
    pub writes: bool,
    /// What it would do, or why it would not.
    pub says: String,
}

impl Inspection {
    /// Returns the key's state in one sentence.
    #[must_use]
    pub fn headline(&self) -> String {
        let beside = Beside::of(&self.id);
        if beside == Some(Beside::Breaker) {
            return self.of_breaker();
        }
        let (Some(record), Some(state)) = (&self.record, self.state) else {
            return "There is no record: no message of this key was worked on, or its window is over and it was deleted."
                .to_owned();
        };
        let ago = |time: Timestamp| span(self.now.since(time).as_secs());
        let when = |time: Timestamp| when(time, self.now);
        let run = runs(record);
        if let Some(beside) = beside {
            return self.of_limit(record, (beside, state));
        }
        match state {
            State::Running => {
                let since = match ahead(record.updated_at, self.now) {
                    Some(ahead) => format!(", by a clock that is {ahead} ahead of this machine's"),
                    None => format!(" since {}", ago(record.updated_at)),
                };
                let ends_in = span(record.lease_until.since(self.now).as_secs());
                format!("Run {run} is under way{since}; its lease ends in {ends_in}.")
            }
            State::Stuck => format!(
                "Run {run} began {} and did not end: its lease was over {} ago, so its owner died, its handler did not stop when \
                 cancelled, or the store gave no answer when it was claimed or ended.",
                when(record.updated_at),
                ago(record.lease_until)
            ),
            State::Completed => {
                format!("Done {}, in run {run}.", when(record.completed_at.unwrap_or(record.updated_at)))
            }
            State::Failed if run == 0 => {
                format!("Not run yet, claimable at once; written {}.", when(record.updated_at))
            }
            State::Failed => format!("Run {run} failed {}; it may run again at once.", when(record.updated_at)),
            State::Rejected if run < record.attempts => {
                format!("Run {run} was the last that its consumer allows: rejected {}.", when(record.updated_at))
            }
            State::Rejected => format!("Run {run} failed for good {}.", when(record.updated_at)),
            State::Parked => format!(
                "Parked {}: run {run} did not end, its work may be done, and a person has to decide.",
                when(record.updated_at)
            ),
            State::Over => "Its window is over: it counts as absent, and the store deletes it.".into(),
        }
    }
}

impl Inspection {
    /// Returns whether it is of work: it is not what processes share a breaker or a limit by, which needs no one in any state.
    #[must_use]
    pub fn is_of_work(&self) -> bool {
        Beside::of(&self.id).is_none()
    }

    /// Returns the headline of a breaker.
    fn of_breaker(&self) -> String {
        let ago = |time: Timestamp| span(self.now.since(time).as_secs());
        match (&self.record, self.state) {
            (Some(record), Some(State::Running)) => format!(
                "The breaker is open, or a process of {} probes: written {}, and probed again when its lease ends, in {}.",
                record.message_id,
                when(record.updated_at, self.now),
                span(record.lease_until.since(self.now).as_secs())
            ),
            (Some(record), Some(State::Stuck)) => format!(
                "The breaker is half open: the next message that comes is a probe. None has come for {}, or its process died.",
                ago(record.lease_until)
            ),
            _ => "The breaker is closed.".into(),
        }
    }

    /// Returns the headline of a limit, or of a record that its processes share it by.
    fn of_limit(&self, record: &Record, (beside, state): (Beside, State)) -> String {
        let (by, ends_in) = (&record.message_id, span(record.lease_until.since(self.now).as_secs()));
        match (beside, state) {
            (Beside::Plan, State::Running) => {
                format!("What the processes of a limit go by: {by}; its lease ends in {ends_in} unless it is renewed.")
            }
            (Beside::Plan, State::Completed) => {
                "A limit under which nothing starts, since its plan counts as done.".into()
            }
            (Beside::Plan, _) => "The plan of a limit that no process goes by.".into(),
            (Beside::Mark, State::Running) => format!("A process of {by} says that it has no slot, for {ends_in}."),
            (Beside::Mark, _) => "No process says that it has no slot.".into(),
            (Beside::Slot, State::Completed) => {
                "A slot of a limit that no process can take, since it counts as done.".into()
            }
            (Beside::Slot, State::Running) => {
                format!("A slot of a limit, held by {by}; its lease ends in {ends_in} unless it is renewed.")
            }
            (Beside::Slot, _) => "A slot of a limit that no process holds.".into(),
            (_, State::Completed) => "What an operator has set for this limit: see claimant limit.".into(),
            (_, _) => "A limit that is as the functions set it.".into(),
        }
    }
}

impl Keys {
    /// Returns what is known of a record, and what would come next.
    ///
    /// # Errors
    /// When the store did not give an answer.
    pub async fn inspect(&self, id: &RecordId) -> Result<Inspection, Error> {
        self.explain(id, self.get(id).await?)
    }

    /// Returns what is known of a key with this record, as [`inspect`](Self::inspect) does.
    pub(crate) fn explain(&self, id: &RecordId, record: Option<Record>) -> Result<Inspection, Error> {
        let (now, skew) = self.now();
        let owner = OwnerToken::draw()?;
        let state = record.as_ref().map(|record| State::of(record, now, skew));
        let next = match Beside::of(id) {
            Some(Beside::Breaker) => vec![behind_breaker(state)],
            Some(_) => vec![behind_limit()],
            None => forecasts(self, id, record.as_ref(), &owner)?,
        };
        let acts = Act::ALL.map(|act| self.possible(id, act, &owner, record.as_ref())).into();
        Ok(Inspection { id: id.clone(), record, state, now, next, acts })
    }

    fn possible(&self, id: &RecordId, act: Act, owner: &OwnerToken, seen: Option<&Record>) -> Possible {
        let order = Order { id: id.clone(), act, by: String::new(), why: String::new(), force: false, dry_run: true };
        let decision = self.decision(&order, owner, seen);
        let writes = matches!(decision, OperateDecision::Write(_));
        let beside = Beside::of(id);
        let says = match decision {
            OperateDecision::Write(_) => match (beside, act) {
                (Some(beside), _) => beside.becomes(act).into(),
                (None, Act::Release) => "the work may run again".into(),
                (None, Act::Reset) => "the work may run again, and its attempts are counted from 0".into(),
                (None, Act::Forget) => "the next message runs as if there had been none before".into(),
                (None, Act::Resolve) => "counts as done: its messages are duplicates from now on".into(),
            },
            OperateDecision::NothingToDo | OperateDecision::AlreadyWritten => "nothing to do: it is so already".into(),
            OperateDecision::Refuse(OperateRefusal::Absent) => "nothing to do: there is no record of it".into(),
            OperateDecision::Refuse(OperateRefusal::Live { until }) => match beside {
                Some(beside) => format!("refused until {}, unless it is forced: {}", until.to_utc(), beside.is_live()),
                None => format!("refused until {}: an owner works on it", until.to_utc()),
            },
            OperateDecision::Refuse(OperateRefusal::Completed) => {
                format!("refused: {}", beside.map_or("it is done", Beside::is_completed))
            }
        };
        Possible { act, writes, says }
    }
}

/// Returns what becomes of messages behind a breaker whose record is in this state.
fn behind_breaker(state: Option<State>) -> Forecast {
    let (outcome, says) = match state {
        Some(State::Running) => (
            "breaker_open",
            "waits in its invocation, and comes back later where the breaker has not closed by the end of that",
        ),
        Some(State::Stuck) => ("runs", "is the probe: runs, while others wait"),
        _ => ("runs", "runs"),
    };
    Forecast { case: "a message of a consumer with this breaker", outcome, says: says.into() }
}

/// Returns what becomes of messages that a limit holds back.
fn behind_limit() -> Forecast {
    let says = "runs once the limit allows it, or comes back later where that is after the end of its invocation";
    Forecast { case: "a message of a consumer with this limit", outcome: "runs", says: says.into() }
}

/// Decides on the messages that can come next as a function would.
fn forecasts(keys: &Keys, id: &RecordId, record: Option<&Record>, owner: &OwnerToken) -> Result<Vec<Forecast>, Error> {
    let (now, skew) = keys.now();
    let same = record.map_or_else(|| MessageId::new("of a message"), |record| Ok(record.message_id.clone()))?;
    let payload = record.map_or_else(|| Fingerprint::of_bytes(b""), |record| record.fingerprint);
    // Of the same rule, or they would not be compared.
    let other_payload = other_than(payload)?;
    let another = MessageId::new(if same.as_str() == "another" { "yet another" } else { "another" })?;
    let request = |message_id: &MessageId, fingerprint, abandoned| ClaimRequest {
        id: id.clone(),
        owner: owner.clone(),
        message_id: message_id.clone(),
        fingerprint,
        now,
        lease_until: now.plus(skew),
        policy: ClaimPolicy { abandoned, conflicts: Conflicts::Reject, skew, ..ClaimPolicy::default() },
        likely: Likely::Known,
    };
    let stuck = record.is_some_and(|record| State::of(record, now, skew) == State::Stuck);
    let mut cases = vec![
        ("the same message again", request(&same, payload, Abandoned::Rerun)),
        ("another message of this key, as after a redrive", request(&another, payload, Abandoned::Rerun)),
        ("a message of this key with another payload", request(&another, other_payload, Abandoned::Rerun)),
    ];
    if stuck {
        cases
            .insert(1, ("the same, at a consumer that parks abandoned work", request(&same, payload, Abandoned::Park)));
    }
    let forecast = |(case, request): (&'static str, ClaimRequest)| {
        let (outcome, says) = in_words(record, decide(record, &request));
        Forecast { case, outcome, says }
    };
    Ok(cases.into_iter().map(forecast).collect())
}

/// Returns a fingerprint of the same form and rule that differs.
fn other_than(fingerprint: Fingerprint) -> Result<Fingerprint, Error> {
    let mut stored = fingerprint.to_stored();
    if let Some(first) = stored.first_mut() {
        *first ^= 1;
    }
    Ok(Fingerprint::from_stored(&stored)?)
}

fn in_words(record: Option<&Record>, decision: Decision) -> (&'static str, String) {
    match decision {
        Decision::Grant { next, interruptions } => {
            let how = if interruptions > 0 {
                ", alone at the end of its batch, as an earlier owner may have died of it"
            } else {
                ""
            };
            ("runs", format!("runs, as attempt {}{how}", next.attempts))
        }
        Decision::Held => ("runs", "runs".into()),
        Decision::Park { .. } => ("parked", "is parked, and copied to the dead-letter queue".into()),
        Decision::Refuse(Refusal::Completed { .. }) => {
            ("duplicate", "is a duplicate: skipped, and deleted from its queue".into())
        }
        Decision::Refuse(Refusal::Busy { until, .. }) => {
            ("busy", format!("comes back later: the key is claimed, at least until {}", until.to_utc()))
        }
        Decision::Refuse(Refusal::Rejected { .. }) => {
            ("rejected", "is not run: this very message was rejected, and goes to the dead-letter queue".into())
        }
        Decision::Refuse(Refusal::Parked) => {
            ("parked", "is not run: the key is parked, and the message goes to the dead-letter queue".into())
        }
        Decision::Refuse(Refusal::Conflict) => {
            let of = record.map_or("", |record| if record.completed_at.is_some() { " that is done" } else { "" });
            (
                "conflict",
                format!(
                    "is not run: the key belongs to work{of} with another payload, and the message goes to the dead-letter queue \
                     (unless the consumer says that the key is all)"
                ),
            )
        }
    }
}
