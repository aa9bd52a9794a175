//! The decisions of a breaker, as pure functions: of what calls came to lately, and of the record that all processes share.
//!
//! That record is the one of a key. Open is a claim of it that nobody settles: it ends with its lease. Whoever is granted the next
//! claim probes, and nobody else meanwhile. Closed is a key that can be claimed and was not abandoned.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::limits::{
    BREAKER_LEASE_MAX_MS, BREAKER_OPEN_MAX_MS, BREAKER_PAUSE_MAX_MS, BREAKER_PAUSE_MIN_MS, BREAKER_PROBES,
    BREAKER_WINDOW_S,
};
use crate::record::{Record, Status};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// It opens when so many
    pub(crate) failures: u32,
    /// of so many calls have failed; 64 at most.
    pub(crate) of: u32,
    /// How long it is open before it is probed for the first time.
    pub(crate) open_for: Duration,
}

impl Rules {
    /// Returns for how long it is open that was opened, or failed a probe, for the `attempt`th time (from 1): twice as long each time.
    pub(crate) fn open_for(&self, attempt: u32) -> Duration {
        self.open_for.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1))).min(self.longest())
    }

    /// Returns for how long it is open at most until it is probed again: a minute, or what is set where that is longer.
    fn longest(&self) -> Duration {
        self.open_for.max(Duration::from_millis(BREAKER_OPEN_MAX_MS))
    }

    /// Returns for how long whoever probes has the record, for each message: as long as its turn and its run are expected to take, so that no
    /// other process probes beside it. For the run not longer than it may be open, since where the probe dies, or fails, nothing is tried
    /// before that is over.
    pub(crate) fn probe_for(&self, expected: Expected) -> Duration {
        self.open_for.max(expected.turn + expected.run.min(self.longest()))
    }
}

/// How long the message of a probe takes at most, as far as is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// Until its turn comes within the limit of what its handler calls; zero without one.
    pub(crate) turn: Duration,
    pub(crate) run: Duration,
}

/// Returns for how long the intake is paused by whoever opened it, or failed a probe, for the `attempt`th time. Not at the first time: most
/// outages are over before a pause could be.
pub(crate) fn pause_for(attempt: u32) -> Option<Duration> {
    let doubled = 2_u64.saturating_pow(attempt.checked_sub(2)?);
    Some(Duration::from_millis(BREAKER_PAUSE_MIN_MS.saturating_mul(doubled).min(BREAKER_PAUSE_MAX_MS)))
}

/// Returns for how long the record is kept after its lease, whose end with the margin is `end`: as ever, or for as long after the intake's
/// return. So it tells that return to all who read it.
pub(crate) fn window(end: Timestamp, back: Option<Timestamp>) -> Duration {
    Duration::from_secs(BREAKER_WINDOW_S) + back.map_or(Duration::ZERO, |back| back.since(end))
}

/// Returns when an intake comes back that is paused, as the record tells.
pub(crate) fn back(record: &Record, skew: Duration) -> Option<Timestamp> {
    let back =
        Timestamp::from_millis(record.expires_at_s.saturating_mul(1_000)).minus(Duration::from_secs(BREAKER_WINDOW_S));
    // Without a pause it is the lease's end, rounded up.
    let end = record.lease_until.plus(skew).plus(Duration::from_secs(1));
    (record.status == Status::InProgress && back >= end).then_some(back)
}

/// What the last calls came to: a bit for each, the last one lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Calls(u64);

impl Calls {
    /// Returns these calls with one more.
    fn and(self, failed: bool) -> Self {
        Self(self.0 << 1 | u64::from(failed))
    }

    /// Returns how many of the last `of` have failed.
    fn failures(self, of: u32) -> u32 {
        (self.0 & (u64::MAX >> (64 - of.clamp(1, 64)))).count_ones()
    }
}

/// What a process knows of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Messages are run.
    Closed(Calls),
    /// None is run before this time; then the record is to be read.
    Open { until: Timestamp },
    /// This process has the claim, and runs messages one after the other; so many calls were answered. With the last answer that it wants it
    /// runs none, until its claim is seen to be released.
    Probing { answered: u32 },
}

impl Known {
    pub(crate) const CLOSED: Self = Self::Closed(Calls(0));

    pub(crate) const fn is_closed(self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

/// What a run says of the system that it calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It has answered.
    Answered,
    /// It is away, or gave no answer in time.
    Away,
    /// Nothing.
    Unknown,
}

impl Health {
    /// Returns what most of these say that say anything.
    pub(crate) fn of_most(each: impl Iterator<Item = Self>) -> Self {
        let (mut away, mut answered) = (0, 0);
        for health in each {
            away += usize::from(health == Self::Away);
            answered += usize::from(health == Self::Answered);
        }
        match (away, answered) {
            (0, 0) => Self::Unknown,
            _ if away >= answered => Self::Away,
            _ => Self::Answered,
        }
    }
}

/// What is to be done about the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// To claim it.
    Open,
    /// To release the claim.
    Close,
    /// To renew the claim.
    OpenAgain,
}

/// Decides what a run changes that began under what is known.
pub(crate) fn observe(known: Known, seen: Health, rules: &Rules, now: Timestamp) -> (Known, Effect) {
    let open = Known::Open { until: now.plus(rules.open_for) };
    match (known, seen) {
        (_, Health::Unknown) | (Known::Open { .. }, _) => (known, Effect::Nothing),
        (Known::Closed(calls), seen) => {
            let calls = calls.and(seen == Health::Away);
            let opens = calls.failures(rules.of) >= rules.failures;
            if opens { (open, Effect::Open) } else { (Known::Closed(calls), Effect::Nothing) }
        }
        (Known::Probing { .. }, Health::Away) => (open, Effect::OpenAgain),
        (Known::Probing { answered }, Health::Answered) => {
            let answered = answered + 1;
            let effect = if answered >= BREAKER_PROBES { Effect::Close } else { Effect::Nothing };
            (Known::Probing { answered }, effect)
        }
    }
}

/// What a record says of its breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Closed,
    /// Until this time at least.
    Open {
        until: Timestamp,
    },
    /// Whoever is granted a claim of it now probes.
    HalfOpen,
    /// Its lease ends at this time, later than that of any breaker: by a clock that is far off. Each process probes by itself.
    Implausible {
        until: Timestamp,
    },
}

/// Returns what a record says. What an operator made of it, whatever that is, closes the breaker.
pub(crate) fn shown(record: Option<&Record>, now: Timestamp, skew: Duration) -> Shown {
    let Some(record) = record.filter(|record| record.status == Status::InProgress) else { return Shown::Closed };
    let until = record.lease_until.plus(skew);
    if until.since(now) > Duration::from_millis(BREAKER_LEASE_MAX_MS).saturating_add(skew).saturating_add(skew) {
        Shown::Implausible { until }
    } else if now <= until {
        Shown::Open { until }
    } else if record.expires_at_s.saturating_mul(1_000) < now.as_millis() {
        Shown::Closed
    } else {
        Shown::HalfOpen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{Fence, OwnerToken};
    use crate::fingerprint::Fingerprint;
    use crate::key::MessageId;
    use crate::protocol::policy::{ClaimPolicy, expiry};

    const RULES: Rules = Rules { failures: 3, of: 5, open_for: Duration::from_secs(10) };
    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    /// What is known after these runs, `x` for a failure, `.` for an answer, `-` for nothing; and the last effect.
    fn after(mut known: Known, runs: &str) -> (Known, Effect) {
        let mut effect = Effect::Nothing;
        for run in runs.chars() {
            let seen = match run {
                'x' => Health::Away,
                '.' => Health::Answered,
                _ => Health::Unknown,
            };
            (known, effect) = observe(known, seen, &RULES, NOW);
        }
        (known, effect)
    }

    #[test]
    fn it_opens_after_so_many_failures_among_the_last_calls() {
        let open = Known::Open { until: NOW.plus(RULES.open_for) };
        for runs in ["xxx", "..x.x.x", "x-x--x", ".....xx..x"] {
            assert_eq!(after(Known::CLOSED, runs), (open, Effect::Open), "{runs}");
        }
        for runs in ["", "xx", "xx...x", "x.-.x..x", "x..-..x.."] {
            let (known, effect) = after(Known::CLOSED, runs);
            assert!(known.is_closed() && effect == Effect::Nothing, "{runs}");
        }
        let all = Rules { failures: 64, of: 64, ..RULES };
        let mut known = Known::CLOSED;
        for n in 1..=64 {
            known = observe(known, Health::Away, &all, NOW).0;
            assert_eq!(known.is_closed(), n < 64);
        }
    }

    #[test]
    fn probes_close_it_and_one_failure_opens_it_again() {
        let probing = Known::Probing { answered: 0 };
        assert_eq!(after(probing, "..").0, Known::Probing { answered: 2 });
        assert_eq!(after(probing, "-.-."), (Known::Probing { answered: 2 }, Effect::Nothing));
        assert_eq!(after(probing, "..."), (Known::Probing { answered: 3 }, Effect::Close));
        let open = Known::Open { until: NOW.plus(RULES.open_for) };
        for runs in ["x", "..x"] {
            assert_eq!(after(probing, runs), (open, Effect::OpenAgain), "{runs}");
        }
        // What ends late changes nothing.
        for runs in ["x", "....", "-"] {
            assert_eq!(after(open, runs), (open, Effect::Nothing));
        }
    }

    fn open_until(lease_until: Timestamp, expires_at_s: u64) -> Record {
        Record {
            status: Status::InProgress,
            owner: OwnerToken::from_stored("a"),
            fence: Fence::FIRST,
            lease_until,
            attempts: 1,
            message_id: MessageId::new("confirmation").unwrap(),
            fingerprint: Fingerprint::of_bytes(&[]),
            created_at: NOW,
            updated_at: NOW,
            completed_at: None,
            expires_at_s,
            result: None,
            error: None,
            note: None,
        }
    }

    #[test]
    fn what_a_record_says_ends_by_itself_whatever_clock_wrote_it() {
        let skew = Duration::from_secs(1);
        let at = |s: u64| Timestamp::from_millis(s * 1_000);
        assert_eq!(shown(None, NOW, skew), Shown::Closed);
        let record = open_until(at(1_010), 1_611);
        for (now, wanted) in [
            (1_000, Shown::Open { until: at(1_011) }),
            (1_011, Shown::Open { until: at(1_011) }),
            (1_012, Shown::HalfOpen),
            (1_611, Shown::HalfOpen),
            (1_612, Shown::Closed),
            // A quarter of an hour and both margins.
            (109, Shown::Open { until: at(1_011) }),
            (108, Shown::Implausible { until: at(1_011) }),
        ] {
            assert_eq!(shown(Some(&record), at(now), skew), wanted, "{now}");
        }
        for status in [Status::Completed, Status::Failed, Status::Rejected, Status::Parked] {
            let ended = Record { status, ..record.clone() };
            assert_eq!(shown(Some(&ended), at(1_000), skew), Shown::Closed, "{status:?}");
        }
    }

    #[test]
    fn a_record_tells_when_a_paused_intake_comes_back() {
        let (skew, at) = (Duration::from_secs(1), |ms: u64| Timestamp::from_millis(ms));
        // Whatever the lease, and wherever it ends within a second.
        for lease_ms in (0..3_000).step_by(250).chain([60_000, 359_000, 900_000]) {
            let lease_until = at(1_000_000 + lease_ms);
            let end = lease_until.plus(skew);
            let record = |paused| {
                let policy = ClaimPolicy { skew, window: window(end, paused), ..ClaimPolicy::default() };
                open_until(lease_until, expiry(at(1_000_000), lease_until, &policy))
            };
            assert_eq!(back(&record(None), skew), None, "{lease_ms}");
            let until = at(1_360_000);
            let wanted = (lease_ms < 359_000).then_some(until);
            assert_eq!(back(&record(Some(until)), skew), wanted, "{lease_ms}");
            assert_eq!(back(&Record { status: Status::Failed, ..record(Some(until)) }, skew), None);
        }
    }

    #[test]
    fn the_first_time_pauses_nothing_and_the_others_for_ever_longer() {
        let minutes = [0, 1, 2, 3, 4, u32::MAX].map(|attempt| pause_for(attempt).map(|pause| pause.as_secs() / 60));
        assert_eq!(minutes, [None, None, Some(6), Some(12), Some(12), Some(12)]);
    }

    #[test]
    fn it_is_open_for_longer_each_time_and_never_for_long() {
        let seconds: Vec<_> = [0, 1, 2, 3, 4, 5, u32::MAX].map(|n| RULES.open_for(n).as_secs()).to_vec();
        assert_eq!(seconds, [10, 10, 20, 40, 60, 60, 60]);
        let long = Rules { open_for: Duration::from_secs(300), ..RULES };
        assert_eq!((long.open_for(1).as_secs(), long.open_for(9).as_secs()), (300, 300));
    }
}
