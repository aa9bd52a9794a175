//! The contract suite itself: a store that keeps the contract passes, and one with a bug is caught by the clause that
//! forbids it.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod bug;
mod distort;
mod many;
mod records;
mod store;
mod together;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use claimant_core::MemoryStore;
use claimant_testkit::batch_ledger::BatchLedger;
use claimant_testkit::contract;

use bug::Bug;
use store::Mutant;

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_store_keeps_the_contract() {
    let findings = contract::check(Arc::new(MemoryStore::new())).await;
    let operated = contract::check_records(Arc::new(MemoryStore::new())).await;
    let ledger = Arc::new(BatchLedger::default());
    let together = contract::check_transactions(ledger.clone(), &together::Entries::of(&ledger)).await;
    let store = Arc::new(together::Slipping::new(together::Slip::None));
    let transactional = contract::check_transactional(store.clone(), store.as_ref()).await;
    for clause in 1..=contract::CLAUSES.len() {
        let held = [&findings, &operated, &together, &transactional].map(|findings| findings.held(clause));
        assert!(held.into_iter().any(|held| held > 0), "clause {clause} has no check");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_without_a_bug_keeps_the_contract() {
    contract::check(Arc::new(Mutant::new(Bug::None))).await;
}

/// Each bug that breaks one of these clauses is caught by it.
async fn caught_by(clauses: RangeInclusive<usize>) {
    let mut missed = Vec::new();
    for (clause, bug) in Bug::ALL.iter().filter(|(clause, _)| clauses.contains(clause)) {
        let findings = contract::survey(Arc::new(Mutant::new(*bug))).await;
        let broken: BTreeSet<_> = findings.broken().iter().filter_map(|broken| broken.clause).collect();
        if !broken.contains(clause) {
            missed.push(format!("{bug:?} is caught by clauses {broken:?}, not by {clause}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

// Side by side, as the whole suite is run for each bug.

#[tokio::test(start_paused = true)]
async fn what_is_written_wrongly_is_caught() {
    caught_by(1..=1).await;
}

#[tokio::test(start_paused = true)]
async fn lost_races_and_missing_guards_are_caught() {
    caught_by(2..=4).await;
}

#[tokio::test(start_paused = true)]
async fn wrong_fences_leases_and_windows_are_caught() {
    caught_by(5..=9).await;
}

#[tokio::test(start_paused = true)]
async fn confused_keys_and_bad_manners_are_caught() {
    caught_by(10..=13).await;
}

/// It is not said to break a clause, which would be the one that is checked first, whatever is wrong.
#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_work_is_said_not_to() {
    let begins = "the store does not work: a key is claimed, renewed, completed and read: ";
    for (bug, seen) in [
        (Bug::Unreachable, "`claim`: the store gave no answer: "),
        (Bug::Panics, "of `claim`, which was given 20s: it panicked"),
        (Bug::ReadsNothing, "`get`: there is no record"),
        (Bug::ReadPanics, "of `get`, which was given 20s: it panicked"),
        (Bug::ClaimHangs, "of `claim`, which was given 20s: it had not ended after 30s"),
        (Bug::TakesItsTime, "its calls took 79.99"),
    ] {
        let findings = contract::survey(Arc::new(Mutant::new(bug))).await;
        let [broken] = findings.broken() else { panic!("{bug:?}: {findings}") };
        assert!(broken.to_string().starts_with(&format!("{begins}{seen}")), "{bug:?}: {broken}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_keys_are_not_shown_whole() {
    let findings = contract::survey(Arc::new(Mutant::new(Bug::CutsKeys))).await;
    assert!(
        !findings.broken().is_empty() && findings.broken().iter().all(|broken| broken.seen.len() < 600),
        "{findings}"
    );
}

/// One that takes its turns by a lock in the process keeps the contract alone, and not beside another instance.
#[tokio::test(start_paused = true)]
async fn a_lock_in_the_process_is_caught_by_a_second_instance() {
    let instances = |bug| {
        let one = Mutant::new(bug);
        let other = one.another();
        (Arc::new(one), Arc::new(other))
    };
    let (one, other) = instances(Bug::None);
    contract::check_two(one, other).await;
    let (one, other) = instances(Bug::LocksInItsProcess);
    contract::check(one.clone()).await;
    let findings = contract::survey_two(one, other).await;
    assert!(findings.broken().iter().any(|broken| broken.clause == Some(2)), "{findings}");
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "clause 10 (Keys are bytes) of the store contract is broken: keys are told apart by case: ")]
async fn the_first_break_is_named() {
    contract::check(Arc::new(Mutant::new(Bug::FoldsCase))).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(
    expected = "clause 2 (Atomic) of the store contract is broken: two calls with the same keys, in opposite orders: of `claim_all`, which was \
                given 20s: it had not ended after 30s"
)]
async fn and_a_call_that_never_ends() {
    contract::check(Arc::new(Mutant::new(Bug::LocksInTheOrderOfTheCall))).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(
    expected = "clause 11 (Bounded) of the store contract is broken: calls with all the time there is: of `claim`, which was given \
                18446744073709551615.999999999s: it panicked"
)]
async fn and_a_call_that_panics() {
    contract::check(Arc::new(Mutant::new(Bug::OverflowsTime))).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "of `claim`, which was given 20s: it panicked")]
async fn and_one_whose_requests_are_counted() {
    contract::trips(Arc::new(Mutant::new(Bug::Panics))).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "clause 4 (Own writes)")]
async fn an_own_ending_that_is_lost_is_told_as_such() {
    contract::check(Arc::new(Mutant::new(Bug::LosesOwnEnding))).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "clause 1 (One decision)")]
async fn and_a_field_that_is_not_kept() {
    contract::check(Arc::new(Mutant::new(Bug::ForgetsCreation))).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "clause 5 (Fences grow)")]
async fn and_a_fence_that_stays() {
    contract::check(Arc::new(Mutant::new(Bug::FenceStays))).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_reached_says_so() {
    let findings = contract::check_unreachable(Arc::new(Mutant::new(Bug::Unreachable)), &["pa55-w0rd"]).await;
    assert!(findings.held(11) > 0 && findings.held(13) > 0, "{findings}");
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "clause 13 (Silent)")]
async fn and_tells_no_key() {
    contract::check_unreachable(Arc::new(Mutant::new(Bug::UnreachableAndTells)), &[]).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "clause 13 (Silent)")]
async fn nor_its_password() {
    contract::check_unreachable(Arc::new(Mutant::new(Bug::UnreachableAndTellsPassword)), &["pa55-w0rd"]).await;
}

/// A paused clock stands still meanwhile.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "it blocks a thread")]
async fn and_blocks_no_thread() {
    contract::check_unreachable(Arc::new(Mutant::new(Bug::SleepsInAThread)), &[]).await;
}
