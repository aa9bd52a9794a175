//! The faults that act, and the latest that ended. Pure: time is an argument.

use serde::Serialize;

use super::spec::{Act, FaultSpec, Target, When};
use crate::Error;

/// Faults that act at the same time at most.
pub const ACTIVE_MAX: usize = 100;
/// Faults that are listed after their end: the latest.
pub const ENDED_MAX: usize = 50;

/// A fault, while it acts and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Its number, from 1.
    pub id: u64,
    /// What was asked for, with its defaults.
    #[serde(flatten)]
    pub spec: FaultSpec,
    /// What it does, in words.
    pub does: String,
    /// When it was switched on, in milliseconds since 1970.
    pub began_ms: u64,
    /// Until when it acts, where that is a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// How often it has acted.
    pub acted: u32,
    /// When it ended; none while it acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
}

impl Fault {
    /// Returns whether it acts no more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ended_ms.is_some()
    }

    /// Returns whether it freezes processes of this function.
    pub(super) fn freezes(&self, function: &str) -> bool {
        self.spec.act == Act::Freeze && self.spec.function.as_deref() == Some(function)
    }

    /// Returns how often it will still act at most, where that is a number.
    #[must_use]
    pub fn left(&self) -> Option<u32> {
        self.spec.times.map(|times| times.saturating_sub(self.acted))
    }
}

/// What a fault's last act did to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Acted {
    pub(super) id: u64,
    pub(super) is_over: bool,
}

/// The faults, the oldest first.
#[derive(Debug, Default)]
pub(super) struct List {
    faults: Vec<Fault>,
    last: u64,
}

impl List {
    /// Switches a checked fault on.
    pub(super) fn begin(&mut self, now_ms: u64, spec: FaultSpec) -> Result<Fault, Error> {
        if self.active().count() >= ACTIVE_MAX {
            return Err(Error::new(format!("{ACTIVE_MAX} faults act already: end some first")));
        }
        self.last += 1;
        let until_ms = spec.seconds.map(|seconds| now_ms + u64::from(seconds) * 1_000);
        let does = spec.does();
        let fault = Fault { id: self.last, spec, does, began_ms: now_ms, until_ms, acted: 0, ended_ms: None };
        self.faults.push(fault.clone());
        Ok(fault)
    }

    /// Has the first fault act that does this to such requests, if there is one.
    pub(super) fn act(&mut self, now_ms: u64, act: Act, target: Target) -> Option<Acted> {
        let meets = |fault: &&Fault| is_active(fault, now_ms) && fault.spec.meets(act, target);
        let id = self.faults.iter().find(meets)?.id;
        self.act_of(now_ms, id)
    }

    /// Has this fault act; `None` where it is over.
    pub(super) fn act_of(&mut self, now_ms: u64, id: u64) -> Option<Acted> {
        let fault = self.faults.iter_mut().find(|fault| fault.id == id && is_active(fault, now_ms))?;
        fault.acted += 1;
        let is_over = fault.left() == Some(0);
        if is_over {
            self.end(now_ms, id);
        }
        Some(Acted { id, is_over })
    }

    /// Ends a fault; `None` where there is none of this number, and whether it acted until now.
    pub(super) fn end(&mut self, now_ms: u64, id: u64) -> Option<(Fault, bool)> {
        let fault = self.faults.iter_mut().find(|fault| fault.id == id)?;
        let acted = fault.ended_ms.is_none();
        fault.ended_ms.get_or_insert(now_ms);
        let fault = fault.clone();
        let excess = self.faults.iter().filter(|fault| fault.is_over()).count().saturating_sub(ENDED_MAX);
        let mut excess = excess;
        self.faults.retain(|fault| {
            let drop = fault.is_over() && excess > 0;
            excess -= usize::from(drop);
            !drop
        });
        Some((fault, acted))
    }

    pub(super) fn get(&self, id: u64) -> Option<&Fault> {
        self.faults.iter().find(|fault| fault.id == id)
    }

    /// All, the newest first.
    pub(super) fn all(&self) -> Vec<Fault> {
        self.faults.iter().rev().cloned().collect()
    }

    pub(super) fn active(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter().filter(|fault| !fault.is_over())
    }
}

fn is_active(fault: &Fault, now_ms: u64) -> bool {
    !fault.is_over() && fault.until_ms.is_none_or(|until_ms| now_ms < until_ms)
}

/// Returns whether a fault waits for a process to do something.
pub(super) fn waits(spec: &FaultSpec) -> bool {
    matches!(spec.act, Act::Kill | Act::Freeze) && spec.when != Some(When::Now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(list: &mut List, act: Act, of: Target, times: Option<u32>, seconds: Option<u32>) -> u64 {
        let spec = FaultSpec { of: Some(of), times, seconds, ..FaultSpec::new(act) };
        list.begin(1_000, spec.checked(&[]).unwrap()).unwrap().id
    }

    #[test]
    fn a_fault_acts_as_often_and_as_long_as_asked_for() {
        let mut list = List::default();
        let id = begin(&mut list, Act::Lose, Target::Claims, Some(2), None);
        assert_eq!(list.act(1_000, Act::Lose, Target::Settlements), None);
        assert_eq!(list.act(1_000, Act::Lose, Target::Claims), Some(Acted { id, is_over: false }));
        assert_eq!(list.act(9_999, Act::Lose, Target::Claims), Some(Acted { id, is_over: true }));
        assert_eq!(list.act(9_999, Act::Lose, Target::Claims), None);
        assert_eq!((list.all()[0].acted, list.all()[0].ended_ms), (2, Some(9_999)));

        let id = begin(&mut list, Act::Cut, Target::Table, None, Some(2));
        for target in [Target::Reads, Target::Claims, Target::Settlements, Target::Table] {
            assert_eq!(list.act(2_999, Act::Cut, target), Some(Acted { id, is_over: false }));
        }
        assert_eq!(list.act(3_000, Act::Cut, Target::Table), None);
        assert_eq!(list.act(2_999, Act::Cut, Target::Mail), None);
        assert_eq!(list.end(3_000, id).map(|(fault, acted)| (fault.acted, acted)), Some((4, true)));
        assert_eq!(list.end(3_001, id).map(|(fault, acted)| (fault.ended_ms, acted)), Some((Some(3_000), false)));
        assert_eq!(list.end(3_000, 99), None);
    }

    #[test]
    fn faults_are_bounded_in_number() {
        let mut list = List::default();
        for _ in 0..ACTIVE_MAX {
            begin(&mut list, Act::Refuse, Target::Mail, Some(1), None);
        }
        let spec = FaultSpec { of: Some(Target::Mail), ..FaultSpec::new(Act::Refuse) };
        assert!(list.begin(0, spec).is_err());
        (1..=ACTIVE_MAX as u64).for_each(|id| drop(list.end(0, id)));
        assert_eq!((list.all().len(), list.active().count()), (ENDED_MAX, 0));
        assert_eq!(list.all()[0].id, ACTIVE_MAX as u64);
    }
}
