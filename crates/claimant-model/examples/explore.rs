//! scratch
#![allow(clippy::unwrap_used)]
use claimant_model::conditions::{Kind, Term};
use claimant_model::config::*;
use claimant_model::configurations::small;
use claimant_model::rules::{Branch, Clause};
use claimant_model::words::trace;
use stateright::{Checker, HasDiscoveries, Model};
fn main() {
    use Branch::*;
    let b = [OwnClaim, Skew, LeaseEnd, LiveLease, LiveInWindow, WindowOver, WindowOpen, Conflict, Completed, ParkAbandoned, RerunAbandoned, FailedClaimed, RejectedSame, RejectedOther, Parked, Fence, FenceOverWindows, Attempts, WindowAfterLease, SettleOwner, SettleFence, SettleOwnWrite, SettleOtherEnding, SettleInProgress, SettleGone, RenewInProgress, RenewOwner, RenewFence, RenewLater, RenewOwnWrite].map(Clause::Branch);
    let t = [(Kind::Insert, Term::Absent), (Kind::Claim, Term::Absent), (Kind::Claim, Term::SamePayload), (Kind::Claim, Term::WindowOpen), (Kind::Claim, Term::Failed), (Kind::Claim, Term::InProgress), (Kind::Claim, Term::LeaseOver), (Kind::Claim, Term::AnotherOwner), (Kind::Replace, Term::SeenStatus), (Kind::Replace, Term::SeenOwner), (Kind::Replace, Term::SeenFence), (Kind::Replace, Term::SeenLease), (Kind::Create, Term::Absent), (Kind::Renew, Term::InProgress), (Kind::Renew, Term::SameOwner), (Kind::Renew, Term::SameFence), (Kind::Renew, Term::EarlierLease), (Kind::Settle, Term::InProgress), (Kind::Settle, Term::SameOwner), (Kind::Settle, Term::SameFence)].map(|(k, t)| Clause::Term(k, t));
    let filter = std::env::args().nth(1).unwrap_or_default();
    let limit: usize = std::env::args().nth(2).map_or(1_000_000, |n| n.parse().unwrap());
    for clause in b.into_iter().chain(t) {
        let label = format!("{clause:?}");
        if !label.contains(&filter) { continue; }
        println!("== {label}");
        for mut model in small() {
            model.sights = &[];
            model.config.off = Some(clause);
            if matches!(clause, Clause::Branch(_)) && model.config.form == Form::Conditional { model.config.form = Form::Atomic; }
            if matches!(clause, Clause::Term(..)) && model.config.form == Form::Atomic { model.config.form = Form::Conditional; }
            let checker = model.clone().checker().target_state_count(limit).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
            let mut found: Vec<_> = checker.discoveries().into_iter().map(|(n, p)| (p.into_actions().len(), n)).collect();
            found.sort();
            if found.is_empty() { continue; }
            println!("   {}: {:?}", model.config.name, found);
            if filter.len() > 3 { for (_, n) in found { println!("{n}\n{}", trace(&model, checker.discovery(n).unwrap())); } }
        }
    }
}
