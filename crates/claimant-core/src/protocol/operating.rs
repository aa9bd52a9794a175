//! The decision on what an operator does to a record.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::claiming::interruptions_of;
use super::errors::{runs, set_aside};
use crate::claim::OwnerToken;
use crate::clock::Timestamp;
use crate::key::{InvalidValue, RecordId};
use crate::record::{NOTE_MAX_BYTES, Record, Status, bounded, note_room};

/// What an operator does to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// Lets work run again that was abandoned, parked or rejected.
    Release,
    /// As [`Release`](Self::Release), and the count of attempts starts again.
    Reset,
    /// Ends the window of the key: its next message runs as if there had been none before.
    Forget,
    /// Says that the work is done: its messages are duplicates from now on.
    Resolve,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Release, Self::Reset, Self::Forget, Self::Resolve];

    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Reset => "reset",
            Self::Forget => "forget",
            Self::Resolve => "resolve",
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Act {
    type Err = InvalidValue;

    fn from_str(word: &str) -> Result<Self, InvalidValue> {
        let known = Self::ALL.into_iter().find(|act| act.as_str() == word);
        known.ok_or_else(|| InvalidValue("an act is one of release, reset, forget, resolve".into()))
    }
}

/// One attempt to operate on one record.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The record.
    pub id: RecordId,
    /// What to do.
    pub act: Act,
    /// A fresh token, drawn for this attempt: an earlier owner has then lost its claim, and a write whose answer was lost is
    /// recognised.
    pub owner: OwnerToken,
    /// The time at the operator.
    pub now: Timestamp,
    /// By how much the operator's clock and those of owners may differ (ε), as in [`ClaimPolicy`](super::ClaimPolicy).
    pub skew: Duration,
    /// Whether to do it although a lease is live, or the key completed. Work can then run twice, and at the same time.
    pub force: bool,
    /// Who does it. Control characters become spaces, here and in `why`.
    pub by: String,
    /// Why.
    pub why: String,
}

impl Operation {
    /// Returns what the record says of the operation: when, who, what and why, in at most [`NOTE_MAX_BYTES`] bytes, and fewer
    /// beside a long record id.
    #[must_use]
    pub fn note(&self) -> String {
        note(&self.id, self.now, (&self.by, self.act.as_str(), &self.why))
    }
}

/// Returns what a record says of what was done to it: when, by whom, what and why.
pub(crate) fn note(id: &RecordId, now: Timestamp, (by, what, why): (&str, &str, &str)) -> String {
    let mut note = format!("{} {} {what}", now.to_utc(), by.trim());
    if !why.trim().is_empty() {
        note.push_str(": ");
        note.push_str(why.trim());
    }
    let clean: String = note.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    bounded(&clean, note_room(id).min(NOTE_MAX_BYTES)).to_owned()
}

/// Why an operation is refused. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperateRefusal {
    /// There is no record of the key, or its window is over: its next message runs as it is.
    Absent,
    /// Another owner works on it; unless the operation is forced.
    Live {
        /// The end of the owner's lease as far as it is known now, and the clock-skew margin.
        until: Timestamp,
    },
    /// The key is completed. Only [`Act::Forget`] can be forced then.
    Completed,
}

/// The decision on an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperateDecision {
    /// Write this record if what was seen is still there.
    Write(Box<Record>),
    /// The record shows that an earlier write of the same operation applied and its answer was lost.
    AlreadyWritten,
    /// The record is already as the operation would leave it.
    NothingToDo,
    /// Write nothing.
    Refuse(OperateRefusal),
}

/// Decides what an operation makes of a record, from the record seen (if any).
///
/// Without force it takes nothing from a live owner, and nothing back that was completed. What it writes has the next fence and
/// the operation's own owner token, so that no claim from before it can be renewed or settled.
#[must_use]
pub fn operate(seen: Option<&Record>, operation: &Operation) -> OperateDecision {
    let Some(seen) = seen else { return OperateDecision::Refuse(OperateRefusal::Absent) };
    if seen.owner == operation.owner {
        return OperateDecision::AlreadyWritten;
    }
    let until = seen.lease_until.plus(operation.skew);
    let live = seen.status == Status::InProgress && operation.now <= until;
    if !live && seen.expires_at_s.saturating_mul(1_000) < operation.now.as_millis() {
        return OperateDecision::Refuse(OperateRefusal::Absent);
    }
    if live && !operation.force {
        return OperateDecision::Refuse(OperateRefusal::Live { until });
    }
    let attempts = if operation.act == Act::Reset || seen.status == Status::Rejected { 0 } else { seen.attempts };
    let changed = match (operation.act, seen.status) {
        (Act::Resolve, Status::Completed) | (Act::Release, Status::Failed) => None,
        (Act::Reset, Status::Failed) if seen.attempts == 0 => None,
        (Act::Release | Act::Reset, Status::Completed) => {
            return OperateDecision::Refuse(OperateRefusal::Completed);
        }
        (Act::Forget, Status::Completed) if !operation.force => {
            return OperateDecision::Refuse(OperateRefusal::Completed);
        }
        (Act::Forget, _) => Some(forgotten(seen, operation)),
        // A claim that rejected it for want of attempts is no longer known by its error.
        (Act::Resolve, _) => Some(Record {
            status: Status::Completed,
            attempts: runs(seen),
            completed_at: Some(operation.now),
            result: None,
            error: None,
            ..seen.clone()
        }),
        // Why it failed stays on the record.
        (Act::Release | Act::Reset, Status::Failed | Status::Rejected) => {
            Some(Record { status: Status::Failed, attempts, ..seen.clone() })
        }
        // Who claims it next takes it over.
        (Act::Release | Act::Reset, Status::InProgress | Status::Parked) => {
            let error = Some(set_aside(interruptions_of(seen).max(1)));
            Some(Record { status: Status::Failed, attempts, error, ..seen.clone() })
        }
    };
    let Some(changed) = changed else { return OperateDecision::NothingToDo };
    OperateDecision::Write(Box::new(Record {
        owner: operation.owner.clone(),
        fence: seen.fence.next(),
        updated_at: operation.now,
        expires_at_s: if operation.act == Act::Forget { changed.expires_at_s } else { window_end(seen, operation) },
        note: Some(operation.note()),
        ..changed
    }))
}

/// Returns a record that counts as absent at once, also to a claimant whose clock is behind by the margin. Its fence goes on for
/// as long as its store keeps it.
fn forgotten(seen: &Record, operation: &Operation) -> Record {
    Record {
        status: Status::Failed,
        attempts: 0,
        completed_at: None,
        expires_at_s: (operation.now.minus(operation.skew).as_millis() / 1_000).saturating_sub(1),
        result: None,
        error: None,
        ..seen.clone()
    }
}

/// Returns when a window as long as that of the record seen ends, in seconds, if it begins now.
fn window_end(seen: &Record, operation: &Operation) -> u64 {
    let began = match seen.status {
        Status::InProgress => seen.updated_at.max(seen.lease_until.plus(operation.skew)),
        _ => seen.updated_at,
    };
    // Windows are whole seconds, and their ends were rounded up.
    let window_s = seen.expires_at_s.saturating_mul(1_000).saturating_sub(began.as_millis()) / 1_000;
    operation.now.plus(Duration::from_secs(window_s)).as_secs_rounded_up()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fence;
    use crate::fingerprint::Fingerprint;
    use crate::key::{ConsumerName, Key, MessageId};
    use crate::protocol::{Abandoned, ClaimPolicy, ClaimRequest, Decision, Ending, SettleDecision, Settlement};
    use crate::protocol::{Likely, claim_of, decide, renew, settle, too_often};

    fn s(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn id() -> RecordId {
        RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new("k").unwrap())
    }

    fn operation(act: Act, now: u64) -> Operation {
        Operation {
            id: id(),
            act,
            owner: OwnerToken::from_stored("operator"),
            now: s(now),
            skew: Duration::from_secs(1),
            force: false,
            by: "ada\u{1b}[2J".into(),
            why: "the bank\nsays so".into(),
        }
    }

    fn policy() -> ClaimPolicy {
        ClaimPolicy {
            window: Duration::from_secs(60),
            skew: Duration::from_secs(1),
            abandoned: Abandoned::Park,
            ..ClaimPolicy::default()
        }
    }

    fn request(owner: &str, now: u64) -> ClaimRequest {
        ClaimRequest {
            id: id(),
            owner: OwnerToken::from_stored(owner),
            message_id: MessageId::new("m").unwrap(),
            fingerprint: Fingerprint::of_bytes(b"p"),
            now: s(now),
            lease_until: s(now + 10),
            policy: policy(),
            likely: Likely::Known,
        }
    }

    /// Claimed at 100 s until 110 s, for the third time, and settled at 105 s where it is.
    fn record(status: Status) -> Record {
        let ended = status != Status::InProgress;
        Record {
            status,
            owner: OwnerToken::from_stored("a"),
            fence: Fence::new(7),
            lease_until: s(110),
            attempts: 3,
            message_id: MessageId::new("m").unwrap(),
            fingerprint: Fingerprint::of_bytes(b"p"),
            created_at: s(50),
            updated_at: if ended { s(105) } else { s(100) },
            completed_at: (status == Status::Completed).then(|| s(105)),
            expires_at_s: if ended { 165 } else { 171 },
            result: (status == Status::Completed).then(|| "1".into()),
            error: (status == Status::Rejected).then(|| "no such order".into()),
            note: None,
        }
    }

    #[derive(Debug, PartialEq)]
    enum Is {
        /// Written with this status, these attempts and this error.
        Written(Status, u32, Option<String>),
        NothingToDo,
        Refused(OperateRefusal),
    }

    fn is(seen: &Record, operation: &Operation) -> Is {
        match operate(Some(seen), operation) {
            OperateDecision::Write(next) => {
                assert_eq!((next.fence, &next.owner), (seen.fence.next(), &operation.owner));
                assert_eq!((next.updated_at, next.created_at), (operation.now, seen.created_at));
                assert_eq!(next.note, Some(operation.note()));
                assert_eq!(next.completed_at.is_some(), next.status == Status::Completed);
                // A window of a minute stays one.
                let forgotten = operation.act == Act::Forget;
                assert_eq!(next.expires_at_s, if forgotten { 110 } else { 112 + 60 });
                assert_eq!(operate(Some(&next), operation), OperateDecision::AlreadyWritten);
                Is::Written(next.status, next.attempts, next.error)
            }
            OperateDecision::NothingToDo => Is::NothingToDo,
            OperateDecision::Refuse(refusal) => Is::Refused(refusal),
            OperateDecision::AlreadyWritten => panic!("by whom?"),
        }
    }

    #[test]
    fn what_an_act_makes_of_a_record() {
        use Act::{Forget, Release, Reset, Resolve};
        use Status::{Completed, Failed, InProgress, Parked, Rejected};
        let set_aside = || Some(set_aside(1));
        let why = || Some("no such order".to_owned());
        let failed = |attempts, error| Is::Written(Failed, attempts, error);
        let done = || Is::Written(Completed, 3, None);
        let rows = [
            (InProgress, [failed(3, set_aside()), failed(0, set_aside()), failed(0, None), done()]),
            (Parked, [failed(3, set_aside()), failed(0, set_aside()), failed(0, None), done()]),
            (Failed, [Is::NothingToDo, failed(0, None), failed(0, None), done()]),
            (Rejected, [failed(0, why()), failed(0, why()), failed(0, None), done()]),
            (
                Completed,
                [
                    Is::Refused(OperateRefusal::Completed),
                    Is::Refused(OperateRefusal::Completed),
                    Is::Refused(OperateRefusal::Completed),
                    Is::NothingToDo,
                ],
            ),
        ];
        for (status, wanted) in rows {
            for (act, wanted) in [Release, Reset, Forget, Resolve].into_iter().zip(wanted) {
                // One second after the lease and the margin.
                assert_eq!(is(&record(status), &operation(act, 112)), wanted, "{act} of {status}");
            }
        }
        // The claim that found no attempt left was no run.
        let claim = claim_of(id(), &record(Rejected), 0);
        let spent = Record { error: Some(too_often(2, &claim)), ..record(Rejected) };
        assert_eq!(is(&spent, &operation(Resolve, 112)), Is::Written(Completed, 2, None));
        let forced = Operation { force: true, ..operation(Forget, 112) };
        assert_eq!(is(&record(Completed), &forced), failed(0, None));
        let forced = Operation { force: true, ..operation(Release, 112) };
        assert_eq!(is(&record(Completed), &forced), Is::Refused(OperateRefusal::Completed));
    }

    #[test]
    fn a_live_lease_is_left_alone_unless_forced_and_a_record_whose_window_is_over_is_absent() {
        for act in Act::ALL {
            for now in [100, 111] {
                let refused = OperateDecision::Refuse(OperateRefusal::Live { until: s(111) });
                assert_eq!(operate(Some(&record(Status::InProgress)), &operation(act, now)), refused);
                let forced = Operation { force: true, ..operation(act, now) };
                let OperateDecision::Write(next) = operate(Some(&record(Status::InProgress)), &forced) else {
                    panic!("forced")
                };
                // The owner that was robbed of its claim can neither keep nor end it.
                let claim = claim_of(id(), &record(Status::InProgress), 0);
                let renewal = crate::protocol::Renewal { lease_until: s(200), now: s(now), policy: policy() };
                assert_eq!(renew(Some(&next), &claim, &renewal), crate::protocol::RenewDecision::Lost);
                let settlement =
                    Settlement { ending: Ending::Completed { result: None }, now: s(now), policy: policy() };
                assert_eq!(settle(Some(&next), &claim, &settlement), SettleDecision::Lost);
            }
            assert_eq!(operate(None, &operation(act, 1)), OperateDecision::Refuse(OperateRefusal::Absent));
            for status in Status::ALL {
                let over = operation(act, 172);
                assert_eq!(operate(Some(&record(status)), &over), OperateDecision::Refuse(OperateRefusal::Absent));
            }
        }
    }

    #[test]
    fn what_comes_next_is_what_the_act_is_for() {
        let after = |act, status, request: &ClaimRequest| {
            let OperateDecision::Write(next) = operate(Some(&record(status)), &operation(act, 112)) else {
                panic!("{act} of {status}")
            };
            decide(Some(&next), request)
        };
        for status in [Status::InProgress, Status::Parked] {
            let Decision::Grant { next, interruptions } = after(Act::Release, status, &request("b", 113)) else {
                panic!("released")
            };
            assert_eq!(interruptions, 1, "the earlier owner may have done it");
            assert_eq!((next.attempts, next.fence, next.note.is_some()), (4, Fence::new(9), true));
        }
        // A claimant whose clock is behind by the margin sees the window over as well, and another payload is no conflict.
        let other = ClaimRequest { fingerprint: Fingerprint::of_bytes(b"q"), ..request("b", 111) };
        let Decision::Grant { next, interruptions: 0 } = after(Act::Forget, Status::Rejected, &other) else {
            panic!("forgotten")
        };
        assert_eq!((next.attempts, next.fence, next.created_at), (1, Fence::new(9), s(111)));
        let done = after(Act::Resolve, Status::Parked, &request("b", 113));
        assert_eq!(done, Decision::Refuse(crate::protocol::Refusal::Completed { result: None }));
    }

    #[test]
    fn a_note_says_when_who_what_and_why_in_one_line() {
        let note = operation(Act::Release, 112).note();
        assert_eq!(note, "1970-01-01T00:01:52Z ada [2J release: the bank says so");
        let silent = Operation { why: " ".into(), by: "ada".into(), ..operation(Act::Forget, 112) };
        assert_eq!(silent.note(), "1970-01-01T00:01:52Z ada forget");
        let long = Operation { why: "ß".repeat(200), ..operation(Act::Release, 112) };
        assert!((NOTE_MAX_BYTES - 1..=NOTE_MAX_BYTES).contains(&long.note().len()));
    }
}
