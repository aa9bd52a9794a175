//! Whoever does not hold the claim writes nothing, and what is completed stays so.

use claimant_core::protocol::Ending;

use super::examiner::{Examiner, Finding, ensure};
use super::scene::fresh_id;
use crate::player::Player;
use crate::script::{
    LEASE_MS, SKEW_MS, Step, WINDOW_MS, claim, done, endings, failed, parked, rejected, renew, settle,
};

pub(super) async fn check(examiner: &mut Examiner) {
    for batched in [false, true] {
        let company = if batched { ", batched" } else { "" };
        for (way, steps) in ways_to_lose() {
            for (late, step) in late_calls() {
                // A settlement in one request, but a renewal has none.
                if batched && matches!(step, Step::Renew { .. }) {
                    continue;
                }
                let seen = Seen::of(examiner, &steps, &step, batched).await;
                let finding = seen.and_then(|seen| seen.is_unchanged().and_then(|()| seen.is_answered("lost")));
                examiner.hold(3, format!("{late} by an owner {way}{company}"), finding);
            }
        }
        for (what, step, answer) in after_completion() {
            let steps = [claim("a", 0).step(), settle("a", Ending::Completed { result: Some("7".into()) }, 5)];
            let seen = Seen::of(examiner, &steps, &step, batched).await;
            let unchanged = seen.as_ref().map_err(Clone::clone).and_then(Seen::is_unchanged);
            examiner.hold(6, format!("{what} leaves a completed record as it is{company}"), unchanged);
            // What is done is the owner's own ending, tried again.
            let clause = if answer == "done" { 4 } else { 6 };
            let answered = seen.and_then(|seen| seen.is_answered(answer));
            examiner.hold(clause, format!("the answer to {what} of a completed record{company}"), answered);
        }
    }
}

/// How `a` came to hold nothing.
fn ways_to_lose() -> Vec<(&'static str, Vec<Step>)> {
    let a = || claim("a", 0).step();
    let taken = || claim("b", LEASE_MS + SKEW_MS + 1).step();
    let forged = |owner, fence| Step::Forge { who: "a", owner, fence };
    vec![
        ("of a record that never was", vec![forged("a", 1)]),
        ("whose lease was taken over", vec![a(), taken()]),
        ("whose successor completed", vec![a(), taken(), settle("b", Ending::Completed { result: None }, 1_800)]),
        ("whose successor failed", vec![a(), taken(), settle("b", failed(), 1_800)]),
        ("whose successor released", vec![a(), taken(), settle("b", Ending::Released, 1_800)]),
        ("whose successor rejected", vec![a(), taken(), settle("b", rejected(), 1_800)]),
        ("whose successor parked", vec![a(), taken(), settle("b", parked(), 1_800)]),
        ("whose key was claimed after its window", vec![a(), claim("b", 2 * WINDOW_MS).payload("p2").step()]),
        ("with another token", vec![claim("b", 0).step(), forged("a", 1)]),
        ("with an earlier fence", vec![a(), settle("a", failed(), 5), claim("a", 6).step(), forged("a", 1)]),
        ("with a later fence", vec![a(), forged("a", 2)]),
    ]
}

fn late_calls() -> Vec<(String, Step)> {
    let mut all: Vec<_> = endings().into_iter().map(|e| (format!("{e:?}"), settle("a", e, 1_900))).collect();
    all.push(("a renewal".into(), renew("a", 1_900, 200_000)));
    all
}

/// What must not change a completed record, with the answer that it must have.
fn after_completion() -> Vec<(&'static str, Step, &'static str)> {
    let completed = "refused: Completed { result: Some(\"7\") }";
    vec![
        ("a claim", claim("b", 6).step(), completed),
        ("a claim by its own owner", claim("a", 6).step(), completed),
        ("a claim with another message", claim("b", 6).message("m2").step(), completed),
        ("a claim long after the lease", claim("b", WINDOW_MS - 1).step(), completed),
        ("a claim that parks", claim("b", 9_000).parking().step(), completed),
        ("a claim with another payload", claim("b", 6).payload("p2").step(), "refused: Conflict"),
        ("a claim by the key alone", claim("b", 6).payload("p2").by_key_alone().step(), completed),
        ("a claim from the past", claim("b", 0).step(), completed),
        ("a late failure", settle("a", failed(), 6), "lost"),
        ("a late rejection", settle("a", rejected(), 6), "lost"),
        ("a late release", settle("a", Ending::Released, 6), "lost"),
        ("late parking", settle("a", parked(), 6), "lost"),
        ("a second completion", settle("a", done(), 6), "done"),
        ("a late renewal", renew("a", 6, 50_000), "lost"),
    ]
}

/// What one more step came to.
struct Seen {
    answer: String,
    /// The record before it, and after it.
    records: [String; 2],
}

impl Seen {
    /// Plays these steps, and then this one.
    async fn of(examiner: &Examiner, steps: &[Step], step: &Step, batched: bool) -> Result<Self, String> {
        let mut player = Player::new(examiner.store.as_ref(), fresh_id("stale"), batched);
        let before = player.play(steps).await?.pop().unwrap_or_default();
        let answer = player.step(step).await?;
        Ok(Self { answer, records: [before, player.step(&Step::Look).await?] })
    }

    fn is_answered(&self, wanted: &str) -> Finding {
        ensure(self.answer == wanted, || format!("answered {:?}, not {wanted:?}", self.answer))
    }

    fn is_unchanged(&self) -> Finding {
        let [before, after] = &self.records;
        ensure(before == after, || format!("answered {:?}; the record was {before}, and is {after}", self.answer))
    }
}
