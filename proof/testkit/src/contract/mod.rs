//! The contract of a store, as checks that any store can be held to.
//!
//! Most stores are held to it by [`check_two`], with two instances; [`Findings`] can be printed.
//!
//! Every check has a name and belongs to one of the numbered clauses of [`Store`]. Times are those of the year 2100 and
//! are given with each call, so a check waits for nothing; a store that has its server delete old records must count
//! their age from the request's `now`.
//!
//! | module | holds |
//! | --- | --- |
//! | `examiner` | what was checked, and what came of it |
//! | `plain` | whether the store works at all, before any clause |
//! | `scene` | a fresh key, a request for it, a call |
//! | `rules`, `windows` | scripts with what each step must show: clauses 1 and 4 to 9 |
//! | `clocks` | the same scripts at other times: clause 9 |
//! | `races` | many claimants at once: clauses 2, 3, 5 and 7 |
//! | `stale` | whoever does not hold the claim writes nothing: clauses 3 and 6 |
//! | `batches` | many keys in one call: clauses 1 and 2 |
//! | `keys` | keys that look alike: clause 10 |
//! | `hurry` | calls with hardly any time: clause 11 |
//! | `dropped` | calls that are dropped on their way: clause 12 |
//! | `silence` | secrets, and a server that cannot be reached: clauses 11 and 13 |
//! | `values` | records read back exactly: clause 1 |
//! | `reference` | everything else that the memory store does, in scripts and in random calls: clause 1 |
//! | `agreement` | two stores, or two ways of asking one, give the same answers to the same random calls |
//! | `operating` | what operators ask of a store: clauses 14 to 17 |
//! | `together` | many claims completed in one transaction: clauses 18 and 19 |
//! | `transactional` | a claim completed with what its handler wrote: clause 20 |
//! | `effects` | what is written in a transaction |
//! | `watched` | a bound on every call: one that does not end breaks the check that made it |
//! | `two` | two instances of a store, as two processes have |
//! | `trips` | how many requests the common calls take |

mod agreement;
mod batches;
mod clocks;
mod dropped;
mod effects;
mod examiner;
mod hurry;
mod keys;
mod operating;
mod plain;
mod races;
mod reference;
mod rule;
mod rules;
mod scene;
mod silence;
mod stale;
mod together;
mod transactional;
mod trips;
mod two;
mod values;
mod watched;
mod windows;

use std::sync::Arc;

use claimant_core::{BatchTransactional, Records, Store, Transactional};

use examiner::Examiner;
use two::Two;

pub use agreement::{Side, agree};
pub use effects::Effects;
pub use examiner::{Broken, CLAUSES, Findings, STORE_CLAUSES};
pub use reference::SEED_VARIABLE;
pub use trips::{Trips, trips};

/// Holds a store to every clause of the [`Store`] contract. Uses fresh keys, so a store in use can be given. Where its records outlive the
/// process, [`check_two`] finds more.
///
/// Needs a Tokio runtime with its clock; on one with several threads, races are real. Gives what was checked.
///
/// # Panics
/// At the first check that does not hold, naming it and its clause.
pub async fn check(store: Arc<dyn Store>) -> Findings {
    let (mut examiner, _) = Examiner::of(store, true);
    examine(&mut examiner).await;
    examiner.findings
}

/// As [`check`], of two instances with the same records, each with connections of its own: as two environments that Lambda runs. Each call
/// meets one of them, drawn by a fixed seed, so that a lock, or anything known of a key, that is in the process alone shows.
///
/// # Panics
/// As [`check`].
pub async fn check_two(one: Arc<dyn Store>, other: Arc<dyn Store>) -> Findings {
    check(Arc::new(Two::new(one, other))).await
}

/// As [`check_two`], but goes on after a check that does not hold.
pub async fn survey_two(one: Arc<dyn Store>, other: Arc<dyn Store>) -> Findings {
    survey(Arc::new(Two::new(one, other))).await
}

/// As [`check`], but goes on after a check that does not hold: gives all that are broken. Of a store that does not work at all it says that
/// alone.
pub async fn survey(store: Arc<dyn Store>) -> Findings {
    let (mut examiner, _) = Examiner::of(store, false);
    examine(&mut examiner).await;
    examiner.findings
}

/// Holds a store to what the [`Records`] contract adds: clauses 14 to 17. Uses fresh keys.
///
/// # Panics
/// As [`check`].
pub async fn check_records(store: Arc<dyn Records>) -> Findings {
    let (mut examiner, store) = Examiner::of(store, true);
    operating::check(&mut examiner, store.as_ref()).await;
    examiner.findings
}

/// As [`check_records`], but goes on after a check that does not hold.
pub async fn survey_records(store: Arc<dyn Records>) -> Findings {
    let (mut examiner, store) = Examiner::of(store, false);
    operating::check(&mut examiner, store.as_ref()).await;
    examiner.findings
}

/// Holds a store to what the [`BatchTransactional`] contract adds: clauses 18 and 19. Uses fresh keys, and writes in its transactions.
///
/// # Panics
/// As [`check`].
pub async fn check_transactions<S: BatchTransactional>(
    store: Arc<S>,
    effects: &impl Effects<S::Transaction>,
) -> Findings {
    let (mut examiner, store) = Examiner::of(store, true);
    together::check(&mut examiner, store.as_ref(), effects).await;
    examiner.findings
}

/// As [`check_transactions`], but goes on after a check that does not hold.
pub async fn survey_transactions<S: BatchTransactional>(
    store: Arc<S>,
    effects: &impl Effects<S::Transaction>,
) -> Findings {
    let (mut examiner, store) = Examiner::of(store, false);
    together::check(&mut examiner, store.as_ref(), effects).await;
    examiner.findings
}

/// Holds a store to what the [`Transactional`] contract adds, clause 20. Uses fresh keys, and writes in its transactions.
///
/// # Panics
/// As [`check`].
pub async fn check_transactional<S: Transactional>(store: Arc<S>, effects: &impl Effects<S::Transaction>) -> Findings {
    let (mut examiner, store) = Examiner::of(store, true);
    transactional::check(&mut examiner, store.as_ref(), effects).await;
    examiner.findings
}

/// As [`check_transactional`], but goes on after a check that does not hold.
pub async fn survey_transactional<S: Transactional>(store: Arc<S>, effects: &impl Effects<S::Transaction>) -> Findings {
    let (mut examiner, store) = Examiner::of(store, false);
    transactional::check(&mut examiner, store.as_ref(), effects).await;
    examiner.findings
}

/// Holds a store whose server cannot be reached to clauses 11 and 13: each call ends in time, says so, and tells nothing
/// of keys, payloads and these words, such as a password of its URL. Give it an address where no server listens or none answers, and a
/// runtime whose clock is paused: how long a call takes is measured by that, to the millisecond, and by the machine's, to some seconds.
///
/// # Panics
/// At the first check that does not hold, naming it and its clause.
pub async fn check_unreachable(store: Arc<dyn Store>, hidden: &[&str]) -> Findings {
    let (mut examiner, _) = Examiner::of(store, true);
    silence::unreachable(&mut examiner, hidden).await;
    examiner.findings
}

/// What does not work at all is held to no clause. Clause 1 comes last: what breaks another clause most often breaks it too, and is named best
/// by the other.
async fn examine(examiner: &mut Examiner) {
    if !plain::check(examiner).await {
        return;
    }
    keys::check(examiner).await;
    races::check(examiner).await;
    stale::check(examiner).await;
    rules::check(examiner).await;
    clocks::check(examiner).await;
    hurry::check(examiner).await;
    dropped::check(examiner).await;
    silence::check(examiner).await;
    values::check(examiner).await;
    batches::check(examiner).await;
    reference::check(examiner).await;
}
