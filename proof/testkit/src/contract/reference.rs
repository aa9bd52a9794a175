//! What the memory store does, in scripts and in random calls, the store must do.

use claimant_core::protocol::{Abandoned, Ending, Likely};
use claimant_core::{Conflicts, MemoryStore, Store};
use fastrand::Rng;
use futures_util::stream::{self, StreamExt as _};

use super::examiner::{Examiner, Finding, ensure};
use super::scene::{fresh_id, play};
use crate::player::Player;
use crate::script::{
    ClaimStep, LEASE_MS, SKEW_MS, Step, WINDOW_MS, claim, done, endings, failed, parked, rejected, renew, settle,
};

/// The environment variable that names the seed of the random calls, to play those of another run again.
pub const SEED_VARIABLE: &str = "CLAIMANT_CONTRACT_SEED";

/// How many scripts are played at once, each on a key of its own: most of their time they wait for the store.
const SIDE_BY_SIDE: usize = 8;

/// How many random sequences are played, and how long each is.
const SEQUENCES: u64 = 12;
const SEQUENCE_STEPS: usize = 40;

/// The most by which a random sequence's clock goes on or, less often, back.
pub(super) const STRIDE_MAX_MS: u64 = 40_000;

/// When a lease that began at 0 was over, in a state that has none; and around the end of that lease, and of a renewed one.
const ENDED_MS: [u64; 1] = [OVER_MS + 1];
const HELD_MS: [u64; 2] = [OVER_MS, OVER_MS + 1];
const RENEWED_MS: [u64; 4] = [OVER_MS, OVER_MS + 1, 9_500, 9_501];

const OVER_MS: u64 = LEASE_MS + SKEW_MS;

/// Around the end of the window.
const WINDOWS_MS: [u64; 3] = [WINDOW_MS + 1_000, WINDOW_MS + 2_001, WINDOW_MS + 12_000];

pub(super) const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

pub(super) async fn check(examiner: &mut Examiner) {
    let store = examiner.store.clone();
    for batched in [false, true] {
        let company = if batched { ", batched" } else { "" };
        let mut findings = stream::iter(variations().into_iter().map(|(name, steps)| {
            let store = store.clone();
            async move { (name, same(store.as_ref(), &steps, batched).await) }
        }))
        .buffered(SIDE_BY_SIDE);
        while let Some((name, finding)) = findings.next().await {
            examiner.hold(1, format!("{name}{company}"), finding);
        }
    }
    let seed = seed();
    println!("random calls with {SEED_VARIABLE}={seed}");
    for n in 0..SEQUENCES {
        let finding = random(store.as_ref(), Random::with_seed(seed.wrapping_add(n))).await;
        examiner.hold(1, format!("random calls, sequence {n} with {SEED_VARIABLE}={seed}"), finding);
    }
}

async fn same(store: &dyn Store, steps: &[Step], batched: bool) -> Finding {
    let wanted = play(&MemoryStore::new(), "variation", steps, false).await?;
    let seen = play(store, "variation", steps, batched).await?;
    ensure(seen == wanted, || format!("expected {wanted:?}, saw {seen:?}"))
}

/// Every reachable state of a record, each followed by every kind of claim.
fn variations() -> Vec<(String, Vec<Step>)> {
    let a = || claim("a", 0).step();
    let (ended, held, renewed): (&[u64], &[u64], &[u64]) = (&ENDED_MS, &HELD_MS, &RENEWED_MS);
    let states: [(&str, Vec<Step>, &[u64]); 9] = [
        ("absent", vec![], ended),
        ("in progress", vec![a()], held),
        ("completed", vec![a(), settle("a", done(), 10)], ended),
        ("failed", vec![a(), settle("a", failed(), 10)], ended),
        ("rejected", vec![a(), settle("a", rejected(), 10)], ended),
        ("parked", vec![a(), settle("a", parked(), 10)], ended),
        ("released", vec![a(), settle("a", Ending::Released, 10)], ended),
        (
            "failed twice",
            vec![a(), settle("a", failed(), 10), claim("a2", 11).step(), settle("a2", failed(), 12)],
            ended,
        ),
        ("renewed", vec![a(), renew("a", 10, 9_000)], renewed),
    ];
    let mut all = Vec::new();
    for (state, steps, leases) in &states {
        for at in [20].into_iter().chain(leases.iter().copied()).chain(WINDOWS_MS) {
            for (message, payload, abandoned, conflicts) in [
                ("m1", "p1", Abandoned::Rerun, Conflicts::Reject),
                ("m2", "p1", Abandoned::Rerun, Conflicts::Reject),
                ("m1", "p2", Abandoned::Rerun, Conflicts::Reject),
                ("m1", "p2", Abandoned::Rerun, Conflicts::Ignore),
                ("m2", "p2/1", Abandoned::Rerun, Conflicts::Reject),
                ("m1", "p1", Abandoned::Park, Conflicts::Reject),
            ] {
                let last = ClaimStep { message, payload, abandoned, conflicts, ..claim("z", at) };
                let name = format!("{state}, then at {at} {message} {payload} {abandoned:?} {conflicts:?}");
                all.push((name, steps.iter().cloned().chain([last.step()]).collect()));
            }
        }
    }
    all
}

/// A sequence of random calls on two keys, each answered as the reference answers it and followed by a look.
async fn random(store: &dyn Store, mut random: Random) -> Finding {
    let reference = MemoryStore::new();
    let ids = [fresh_id("random"), fresh_id("random")];
    let mut players = ids.map(|id| {
        let ours = Player::new(store, id.clone(), false);
        (ours, Player::new(&reference, id, false))
    });
    let mut now = STRIDE_MAX_MS;
    let mut history = Vec::new();
    for n in 0..SEQUENCE_STEPS {
        let key = random.below(2);
        let (ours, theirs) = &mut players[key];
        now = random.later(now);
        let step = random.step(now, |who| theirs.has(who));
        ours.batched = random.below(3) == 0;
        history.push(format!("{n}: key {key}, in one request {}: {step:?}", ours.batched));
        for step in [step, Step::Look] {
            let (seen, wanted) = (ours.step(&step).await?, theirs.step(&step).await?);
            ensure(seen == wanted, || format!("expected {wanted:?}, saw {seen:?}, after\n  {}", history.join("\n  ")))?;
        }
    }
    Ok(())
}

/// The seed that the environment names, or a fresh one.
pub(super) fn seed() -> u64 {
    let named = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
    named.unwrap_or_else(|| {
        let token = super::scene::token();
        u64::from_str_radix(&token.as_str()[..16], 16).expect("a token is hexadecimal")
    })
}

/// Draws calls: the same ones for the same seed.
pub(super) struct Random(Rng);

impl Random {
    pub(super) fn with_seed(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// Mostly within a lease, at times beyond it, and seldom beyond a window.
    fn stride(&mut self) -> u64 {
        let most = self.pick(&[50, 50, 2 * (LEASE_MS + SKEW_MS), STRIDE_MAX_MS]);
        self.0.u64(..most)
    }

    /// A call that can be made: settlements and renewals only by those that were granted a claim, if long ago.
    pub(super) fn step(&mut self, now: u64, has: impl Fn(&str) -> bool) -> Step {
        let who = self.pick(&NAMES);
        match self.below(8) {
            0..3 if has(who) => settle(who, self.ending(), now),
            3 if has(who) => renew(who, now, now + self.0.u64(..4_000)),
            4 => Step::Forge { who, owner: self.pick(&NAMES), fence: 1 + self.0.u64(..4) },
            _ => self.claim(who, now).step(),
        }
    }

    /// Any ending there is.
    pub(super) fn ending(&mut self) -> Ending {
        let set_aside = Ending::SetAside { interruptions: 2 };
        self.pick(&[&endings()[..], &[set_aside]].concat())
    }

    pub(super) fn claim(&mut self, who: &'static str, now: u64) -> ClaimStep {
        ClaimStep {
            who,
            message: self.pick(&["m1", "m1", "m2"]),
            payload: self.pick(&["p1", "p1", "p1", "p2", "p2/1"]),
            at: now,
            until: now + self.pick(&[1, LEASE_MS, 30_000]),
            abandoned: self.pick(&[Abandoned::Rerun, Abandoned::Rerun, Abandoned::Park]),
            conflicts: self.pick(&[Conflicts::Reject, Conflicts::Ignore]),
            likely: self.pick(&[Likely::New, Likely::Known, Likely::Done]),
        }
    }

    /// The clock's next time: mostly on, now and then back.
    pub(super) fn later(&mut self, now: u64) -> u64 {
        if self.below(4) == 0 { now.saturating_sub(self.stride()) } else { now + self.stride() }
    }
}
