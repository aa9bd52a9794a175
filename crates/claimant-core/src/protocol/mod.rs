//! The claim protocol, as pure functions of what was seen.
//!
//! Nothing else in claimant decides who may work on a key. A store reads or conditionally writes a record and
//! calls [`decide`] or [`settle`] on what it saw; the record it then writes is the one given back here, guarded so
//! that the write applies only if what was seen is still there.

pub(crate) mod breaker;
mod claiming;
mod errors;
mod kept;
mod operating;
pub(crate) mod plan;
mod policy;
pub(crate) mod rate;
mod settling;
mod slot;
pub(crate) mod slots;
mod turn;

pub use claiming::{ClaimRequest, Decision, Likely, Refusal, claim_of, decide, fresh_claim, held};
pub use errors::{interruptions_in, kept_in, runs, set_aside};
pub(crate) use errors::{rejected_before, too_often};
pub use operating::{Act, OperateDecision, OperateRefusal, Operation, operate};
pub use policy::{ABANDONED, Abandoned, ClaimPolicy, Conflicts, expiry, window_end};
pub use settling::{Ending, RenewDecision, Renewal, SettleDecision, Settlement, renew, settle};

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Fence;
    use crate::claim::{Claim, OwnerToken};
    use crate::clock::Timestamp;
    use crate::fingerprint::Fingerprint;
    use crate::key::{ConsumerName, Key, MessageId, RecordId};
    use crate::record::{ERROR_MAX_BYTES, Record, Status};

    fn s(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    /// A minute's window and a second's margin; at `now` seconds, with a lease of ten.
    fn request(owner: &str, message: &str, now: u64) -> ClaimRequest {
        ClaimRequest {
            id: RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new("k").unwrap()),
            owner: OwnerToken::from_stored(owner),
            message_id: MessageId::new(message).unwrap(),
            fingerprint: Fingerprint::of_bytes(b"p"),
            now: s(now),
            lease_until: s(now + 10),
            policy: ClaimPolicy {
                window: Duration::from_secs(60),
                skew: Duration::from_secs(1),
                ..ClaimPolicy::default()
            },
            likely: Likely::New,
        }
    }

    /// What the first claim, at 100 s, writes: its window begins when its lease and the margin are over.
    fn first() -> Record {
        Record {
            status: Status::InProgress,
            owner: OwnerToken::from_stored("a"),
            fence: Fence::FIRST,
            lease_until: s(110),
            attempts: 1,
            message_id: MessageId::new("m").unwrap(),
            fingerprint: Fingerprint::of_bytes(b"p"),
            created_at: s(100),
            updated_at: s(100),
            completed_at: None,
            expires_at_s: 171,
            result: None,
            error: None,
            note: None,
        }
    }

    fn claim() -> Claim {
        claim_of(request("a", "m", 100).id, &first(), 0)
    }

    fn granted(seen: Option<&Record>, request: &ClaimRequest) -> (Record, u32) {
        match decide(seen, request) {
            Decision::Grant { next, interruptions } => (next, interruptions),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_claim_writes_every_field() {
        assert_eq!(granted(None, &request("a", "m", 100)), (first(), 0));
        // Taken over, with another message, when lease and margin are over.
        let later = Record {
            owner: OwnerToken::from_stored("b"),
            fence: Fence::new(2),
            lease_until: s(122),
            attempts: 2,
            message_id: MessageId::new("n").unwrap(),
            updated_at: s(112),
            expires_at_s: 183,
            ..first()
        };
        assert_eq!(granted(Some(&first()), &request("b", "n", 112)), (later, 1));
        // After its window it counts as absent, but for its fence.
        let over = Record {
            owner: OwnerToken::from_stored("b"),
            fence: Fence::new(2),
            lease_until: s(182),
            created_at: s(172),
            updated_at: s(172),
            expires_at_s: 243,
            ..first()
        };
        assert_eq!(granted(Some(&first()), &request("b", "m", 172)), (over, 1));
        // The error stays until the claim ends, whatever it says.
        let failed = Record { status: Status::Failed, error: Some("no luck".into()), expires_at_s: 165, ..first() };
        let (next, interruptions) = granted(Some(&failed), &request("b", "m", 106));
        assert_eq!((&next.error, next.attempts, next.created_at, interruptions), (&failed.error, 2, s(100), 0));
    }

    #[test]
    fn what_is_parked_when_it_is_found_abandoned_says_why_and_keeps_all_but_its_window() {
        let mut request = request("b", "n", 112);
        request.policy.abandoned = Abandoned::Park;
        let error = Some(ABANDONED.to_owned());
        let parked = Record { status: Status::Parked, error, updated_at: s(112), expires_at_s: 172, ..first() };
        assert_eq!(decide(Some(&first()), &request), Decision::Park { next: parked });
    }

    #[test]
    fn each_takeover_of_work_that_was_set_aside_counts_until_a_run_of_it_ended() {
        let end = |seen: &Record, interruptions, ending, now| {
            let claim = claim_of(request("a", "m", 0).id, seen, interruptions);
            let settlement = Settlement { ending, now: s(now), policy: request("a", "m", 0).policy };
            match settle(Some(seen), &claim, &settlement) {
                SettleDecision::Write(next) => *next,
                other => panic!("{other:?}"),
            }
        };
        let set_aside =
            |seen: &Record, interruptions, now| end(seen, interruptions, Ending::SetAside { interruptions }, now);
        let (taken, once) = granted(Some(&first()), &request("b", "m", 112));
        let (its_turn, still_once) = granted(Some(&set_aside(&taken, once, 112)), &request("c", "m", 113));
        let (taken, twice) = granted(Some(&its_turn), &request("d", "m", 125));
        assert_eq!((once, still_once, twice), (1, 1, 2));
        // Its answer lost, too, and nothing known of what another try of it had decided.
        let claim = held(request("c", "m", 113).id, &its_turn, None);
        assert_eq!((claim.interruptions, claim.attempt), (1, 2));
        let (its_turn, interruptions) = granted(Some(&set_aside(&taken, twice, 125)), &request("e", "m", 126));
        assert_eq!((interruptions, its_turn.attempts), (2, 3));
        let rows = [(Ending::Failed { error: "no luck".into() }, Some("no luck")), (Ending::Released, None)];
        for (ending, error) in rows {
            let ended = end(&its_turn, interruptions, ending, 127);
            assert_eq!(ended.error.as_deref(), error);
            assert_eq!(granted(Some(&ended), &request("f", "m", 128)).1, 0);
        }
        assert_eq!(end(&its_turn, interruptions, Ending::Completed { result: None }, 127).error, None);
    }

    #[test]
    fn a_claim_knows_the_error_of_the_last_run_and_one_too_many_says_it() {
        let last = |error: &str| {
            let failed = Record { status: Status::Failed, error: Some(error.into()), ..first() };
            let (next, interruptions) = granted(Some(&failed), &request("b", "m", 112));
            claim_of(request("b", "m", 112).id, &next, interruptions)
        };
        for (error, wanted) in [
            ("no luck", "it was claimed 2 times before, which is as often as it may; the last error: no luck"),
            // Owners that died have left none.
            (
                &set_aside(3),
                "it was claimed 2 times before, which is as often as it may; owners that may not have finished it: 3",
            ),
        ] {
            let too_many = too_often(2, &last(error));
            assert_eq!(too_many, wanted);
            // Of a key that is redriven and whose owners die, it is still the last.
            assert_eq!(last(&too_many).last_error, last(error).last_error);
            for (status, runs_before) in [(Status::Rejected, 2), (Status::Failed, 3)] {
                let record = Record { status, attempts: 3, error: Some(too_many.clone()), ..first() };
                assert_eq!(runs(&record), runs_before);
            }
        }
        // An owner that died after it.
        let failed = Record { error: Some("no luck".into()), ..first() };
        let (next, interruptions) = granted(Some(&failed), &request("b", "m", 112));
        let too_many = too_often(1, &claim_of(request("b", "m", 112).id, &next, interruptions));
        let wanted = "may; owners that may not have finished it: 1; the last error: no luck";
        assert!(too_many.ends_with(wanted), "{too_many}");
        // Nor is it known whether one died where the answer was lost to a claim of work that failed.
        let retried = Record { status: Status::Failed, ..failed };
        let (next, interruptions) = granted(Some(&retried), &request("b", "m", 112));
        let too_many = too_often(1, &held(request("b", "m", 112).id, &next, None));
        assert!(interruptions == 0 && too_many.ends_with(wanted), "{too_many}");
        // As long as a record has room for, and no longer.
        let too_many = too_often(2, &last(&"x".repeat(ERROR_MAX_BYTES)));
        let kept = Ending::Rejected { error: too_many.clone() }.error().unwrap().into_owned();
        assert!(too_many.ends_with('x') && kept.len() == ERROR_MAX_BYTES && kept.ends_with("x…"), "{kept}");
        let rejected = Record { status: Status::Rejected, attempts: 3, error: Some(kept), ..first() };
        assert_eq!(runs(&rejected), 2);
        for other in ["it was claimed", "it was claimed often", "it was claimed 2 times before, which is often"] {
            let rejected = Record { status: Status::Rejected, error: Some(other.into()), ..first() };
            assert_eq!((runs(&rejected), last(other).last_error.as_deref()), (1, Some(other)));
        }
    }

    #[test]
    fn a_claim_whose_answer_was_lost_is_taken_over_unless_it_is_known_not_to_be() {
        let (first_claim, again) = (request("a", "m", 100), request("b", "m", 112));
        let taken = decide(Some(&first()), &again);
        let failed = Record { status: Status::Failed, ..first() };
        let retried = decide(Some(&failed), &again);
        let over = |seen: &Record, wanted: Option<&Decision>| held(again.id.clone(), seen, wanted).is_taken_over();
        let (Decision::Grant { next: abandoned, .. }, Decision::Grant { next: tried_again, .. }) = (&taken, &retried)
        else {
            panic!("{taken:?}, {retried:?}");
        };
        assert!(over(abandoned, Some(&taken)) && over(abandoned, None));
        assert!(!over(tried_again, Some(&retried)), "it is known to have failed");
        // What a blind claim wanted says nothing of what another call wrote.
        assert!(over(tried_again, Some(&decide(None, &again))) && over(tried_again, None));
        let fresh = fresh_claim(&first_claim);
        assert!(!over(&fresh, Some(&decide(None, &first_claim))) && !over(&fresh, None));
    }

    #[test]
    fn a_settlement_writes_every_field() {
        let ended = |status| Record { status, updated_at: s(105), expires_at_s: 165, ..first() };
        let error = || "no luck".to_owned();
        let rows = [
            (
                Ending::Completed { result: Some("1".into()) },
                Record { completed_at: Some(s(105)), result: Some("1".into()), ..ended(Status::Completed) },
            ),
            (Ending::Failed { error: error() }, Record { error: Some(error()), ..ended(Status::Failed) }),
            (Ending::Rejected { error: error() }, Record { error: Some(error()), ..ended(Status::Rejected) }),
            (Ending::Released, Record { attempts: 0, ..ended(Status::Failed) }),
            (Ending::Parked { error: error() }, Record { error: Some(error()), ..ended(Status::Parked) }),
        ];
        for (ending, wanted) in rows {
            let settlement = Settlement { ending, now: s(105), policy: request("a", "m", 100).policy };
            let decision = settle(Some(&first()), &claim(), &settlement);
            assert_eq!(decision, SettleDecision::Write(Box::new(wanted.clone())));
            assert_eq!(settle(Some(&wanted), &claim(), &settlement), SettleDecision::AlreadySettled);
            assert_eq!(settle(None, &claim(), &settlement), SettleDecision::Lost);
        }
    }

    #[test]
    fn a_renewal_writes_every_field() {
        let renewal = Renewal { lease_until: s(115), now: s(105), policy: request("a", "m", 100).policy };
        let wanted = Record { lease_until: s(115), updated_at: s(105), expires_at_s: 176, ..first() };
        assert_eq!(renew(Some(&first()), &claim(), &renewal), RenewDecision::Write(Box::new(wanted.clone())));
        assert_eq!(renew(Some(&wanted), &claim(), &renewal), RenewDecision::AlreadyLonger);
        assert_eq!(renew(None, &claim(), &renewal), RenewDecision::Lost);
    }
}
