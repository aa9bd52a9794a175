//! What a store does depends on no time but the request's.

use std::time::Duration;

use claimant_core::limits::TIME_MAX_MS;
use claimant_core::{MemoryStore, Timestamp};

use super::examiner::{Examiner, Finding, ensure};
use super::rules::rules;
use super::scene::fresh_id;
use super::windows::fences;
use crate::clock::TEST_EPOCH;
use crate::player::Player;
use crate::script::Step;

pub(super) async fn check(examiner: &mut Examiner) {
    for batched in [false, true] {
        let company = if batched { ", batched" } else { "" };
        for (name, epoch) in epochs() {
            for rule in rules().into_iter().chain(fences()) {
                let finding = same_as_reference(examiner, epoch, &rule.steps, batched).await;
                // What is wrong at the time of all other checks, too, is no matter of the clock.
                let always =
                    finding.is_err() && same_as_reference(examiner, TEST_EPOCH, &rule.steps, batched).await.is_err();
                examiner.hold(if always { 1 } else { 9 }, format!("{} {name}{company}", rule.name), finding);
            }
        }
    }
}

/// Far from any real clock: what a store does must depend on nothing but the request.
fn epochs() -> [(&'static str, Timestamp); 3] {
    [
        ("at the beginning of time", Timestamp::from_millis(0)),
        ("in the year 2030", Timestamp::from_millis(1_893_456_000_000)),
        ("at the end of time", Timestamp::from_millis(TIME_MAX_MS).minus(Duration::from_millis(24 * 3_600_000))),
    ]
}

async fn same_as_reference(examiner: &Examiner, epoch: Timestamp, steps: &[Step], batched: bool) -> Finding {
    let id = fresh_id("epoch");
    let reference = MemoryStore::new();
    let wanted = Player::new(&reference, id.clone(), false).at(epoch).play(steps).await?;
    let seen = Player::new(examiner.store.as_ref(), id, batched).at(epoch).play(steps).await?;
    ensure(seen == wanted, || format!("expected {wanted:?}, saw {seen:?}"))
}
