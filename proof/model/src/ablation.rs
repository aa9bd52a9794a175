//! What each clause is for: without it, something that is promised breaks, and the shortest way there is the reason.

use claimant_core::Abandoned;
use stateright::{Checker as _, HasDiscoveries, Model as _};

use crate::checked::Checked;
use crate::clause::{Branch, Clause};
use crate::conditions::{Kind, Term};
use crate::config::{Clocks, Config, Finish, Form};
use crate::words::trace;

/// States that a world has at most, counting those met again.
pub const STATES_MAX: usize = 3_000_000;

/// One clause, and what breaks without it.
pub struct Ablation {
    /// What is switched off.
    pub clause: Clause,
    /// The world in which its lack is looked for.
    pub world: fn() -> Config,
    /// What breaks, or why nothing does.
    pub breaks: Breaks,
}

/// What breaks without a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaks {
    /// The promise of this name.
    Promise(&'static [&'static str]),
    /// Nothing, for this reason.
    Nothing(&'static str),
}

/// What was found: the promise, the number of steps, and the steps in words.
#[derive(Debug)]
pub struct Counterexample {
    /// The promise that breaks.
    pub promise: &'static str,
    /// How many steps lead there.
    pub steps: usize,
    /// The steps.
    pub trace: String,
}

impl Ablation {
    /// The world without the clause. A branch is looked at where the decision is all there is, a condition's term on the
    /// lock table.
    #[must_use]
    pub fn config(&self) -> Config {
        let world = (self.world)();
        let form = match (world.form, self.clause) {
            (Form::Atomic | Form::Conditional, Clause::Branch(_)) => Form::Atomic,
            (Form::Atomic | Form::Conditional, Clause::Term(..)) => Form::Conditional,
            (other, _) => other,
        };
        Config { off: Some(self.clause), form, drained: false, ..world }
    }

    /// The shortest way to a broken promise, if there is one.
    ///
    /// # Panics
    /// When none was found in [`STATES_MAX`] states and there are more.
    #[must_use]
    pub fn counterexample(&self) -> Option<Counterexample> {
        let only = match self.breaks {
            Breaks::Promise(promise) => Some(promise),
            Breaks::Nothing(_) => None,
        };
        let model = Checked { config: self.config(), only, sights: &[] };
        // One thread: breadth first is then the shortest way.
        let checker = model.clone().checker().threads(1).target_state_count(STATES_MAX);
        let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let found = checker.discoveries().into_iter();
        let whole = checker.state_count() < STATES_MAX;
        assert!(whole || found.len() > 0, "{:?}: the world is too large to say that nothing breaks", self.clause);
        let (promise, path) = found.min_by_key(|(_, path)| path.clone().into_actions().len())?;
        let steps = path.clone().into_actions().len();
        Some(Counterexample { promise, steps, trace: trace(&model, path) })
    }
}

/// Every clause.
pub const ABLATIONS: &[Ablation] = &[
    branch(Branch::OwnClaim, plain, &["own writes"]),
    branch(Branch::Skew, plain, &["S11"]),
    branch(Branch::LeaseEnd, plain, &["S11"]),
    branch(Branch::LiveLease, plain, &["S11"]),
    needless(
        Clause::Branch(Branch::LiveInWindow),
        windows,
        "a record in progress has its window reckoned from the end of its lease and the margin, so a window that is over says that no lease is live",
    ),
    branch(Branch::WindowAfterLease, short_window, &["S11"]),
    branch(Branch::WindowOver, windows, &["windows end"]),
    branch(Branch::WindowOpen, plain, &["S5"]),
    branch(Branch::Conflict, conflicts, &["S10"]),
    branch(Branch::Completed, plain, &["S5"]),
    branch(Branch::ParkAbandoned, parking, &["at most once"]),
    branch(Branch::RerunAbandoned, plain, &["L1"]),
    branch(Branch::FailedClaimed, retries, &["L1"]),
    branch(Branch::RejectedSame, rejects, &["rejected once"]),
    branch(Branch::RejectedOther, rejects, &["L1"]),
    branch(Branch::Parked, parking, &["at most once"]),
    branch(Branch::Fence, retries, &["S1"]),
    branch(Branch::FenceOverWindows, windows, &["S1"]),
    branch(Branch::Attempts, windows, &["attempts"]),
    branch(Branch::SettleOwner, windows, &["S3"]),
    branch(Branch::SettleFence, retries, &["S3"]),
    branch(Branch::SettleOwnWrite, retries, &["own writes"]),
    branch(Branch::SettleOtherEnding, parking, &["S4"]),
    branch(Branch::SettleInProgress, parking, &["S3"]),
    branch(Branch::SettleGone, windows, &["S4"]),
    branch(Branch::RenewInProgress, renewals, &["S5"]),
    branch(Branch::RenewOwner, renewals_and_windows, &["S3"]),
    branch(Branch::RenewFence, renewals, &["S3"]),
    branch(Branch::RenewLater, renewals, &["leases grow"]),
    branch(Branch::RenewOwnWrite, renewals, &["own writes"]),
    term(Kind::Insert, Term::Absent, batched, &["S1"]),
    term(Kind::Claim, Term::Absent, jumping, &["S5"]),
    term(Kind::Claim, Term::SamePayload, conflicts, &["S10"]),
    term(Kind::Claim, Term::WindowOpen, windows, &["attempts"]),
    term(Kind::Claim, Term::Failed, plain, &["S5"]),
    term(Kind::Claim, Term::InProgress, jumping, &["S5"]),
    term(Kind::Claim, Term::LeaseOver, plain, &["one decision"]),
    needless(
        Clause::Term(Kind::Claim, Term::AnotherOwner),
        jumping,
        "the lease that a request asks for ends no earlier than the request's own time, so it never looks over to the same request sent again; and here no try lands after another one of its claim was settled",
    ),
    term(Kind::Replace, Term::SeenStatus, parking, &["S5"]),
    term(Kind::Replace, Term::SeenOwner, windows, &["S1", "S5", "one decision"]),
    term(Kind::Replace, Term::SeenFence, optimistic, &["S1", "S2", "S5", "exactly once"]),
    term(Kind::Replace, Term::SeenLease, parking_renewals, &["one decision"]),
    term(Kind::Create, Term::Absent, optimistic, &["exactly once"]),
    term(Kind::Renew, Term::InProgress, renewals, &["S5"]),
    term(Kind::Renew, Term::SameOwner, renewals_and_windows, &["S3"]),
    term(Kind::Renew, Term::SameFence, renewals, &["S3"]),
    term(Kind::Renew, Term::EarlierLease, renewals, &["leases grow"]),
    term(Kind::Settle, Term::InProgress, plain, &["S2"]),
    term(Kind::Settle, Term::SameOwner, windows, &["S3"]),
    term(Kind::Settle, Term::SameFence, retries, &["S3"]),
];

const fn branch(branch: Branch, world: fn() -> Config, promise: &'static [&'static str]) -> Ablation {
    Ablation { clause: Clause::Branch(branch), world, breaks: Breaks::Promise(promise) }
}

const fn term(kind: Kind, term: Term, world: fn() -> Config, promise: &'static [&'static str]) -> Ablation {
    Ablation { clause: Clause::Term(kind, term), world, breaks: Breaks::Promise(promise) }
}

const fn needless(clause: Clause, world: fn() -> Config, why: &'static str) -> Ablation {
    Ablation { clause, world, breaks: Breaks::Nothing(why) }
}

fn plain() -> Config {
    Config { receives: 2, ticks: 3, losses: 1, ..Config::new("plain") }
}

fn retries() -> Config {
    Config { finishes: &[Finish::Ok, Finish::Fail], losses: 2, ticks: 2, ..Config::new("retries, two losses") }
}

fn rejects() -> Config {
    Config { finishes: &[Finish::Reject], ticks: 1, ..Config::new("rejections") }
}

fn conflicts() -> Config {
    Config {
        finishes: &[Finish::Ok, Finish::Fail],
        payloads: &[0, 1],
        ticks: 1,
        receives: 1,
        ..Config::new("two payloads")
    }
}

fn jumping() -> Config {
    let clocks = Clocks::Jumping(&[1, 9]);
    Config { clocks, stops: false, losses: 1, ticks: 2, ..Config::new("jumping clocks") }
}

fn parking() -> Config {
    let finishes = &[Finish::Ok, Finish::Cut { acted: true }];
    let abandoned = Abandoned::Park;
    Config { abandoned, finishes, stops: false, deaths: 1, ticks: 3, ..Config::new("at most once") }
}

fn parking_renewals() -> Config {
    Config { renewed: true, ..parking() }
}

fn windows() -> Config {
    let finishes = &[Finish::Ok, Finish::Fail];
    let world = Config::new("windows that end");
    Config { finishes, window: 1, ttl: true, attempts: true, stops: false, ticks: 4, ..world }
}

fn short_window() -> Config {
    Config { window: 1, lease: 3, ttl: true, receives: 2, ..Config::new("a window shorter than a lease") }
}

fn renewals() -> Config {
    let finishes = &[Finish::Ok, Finish::Fail];
    Config { finishes, renewed: true, losses: 2, ticks: 2, receives: 2, ..Config::new("renewed leases") }
}

fn renewals_and_windows() -> Config {
    Config {
        renewed: true,
        window: 1,
        ttl: true,
        losses: 1,
        receives: 2,
        ..Config::new("renewed leases, windows that end")
    }
}

fn batched() -> Config {
    Config { form: Form::Batched, losses: 1, ticks: 2, receives: 2, ..Config::new("batched claims") }
}

fn optimistic() -> Config {
    let finishes = &[Finish::Ok, Finish::Fail];
    Config {
        form: Form::Optimistic,
        finishes,
        stops: false,
        losses: 2,
        ticks: 1,
        ..Config::new("optimistic transactions")
    }
}
