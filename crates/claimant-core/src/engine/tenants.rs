//! Tenants: how much each has in hand in this process, and whose turn is next among what waits.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::identity::Tenant;

/// Less than this part of its share is little.
const LITTLE: usize = 4;

/// What each tenant has in hand, in all invocations of an engine.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    /// From their claims to the ends of their handlers.
    claimed: Arc<Counts>,
    /// From the starts of their handlers.
    running: Arc<Counts>,
}

/// A message that a tenant has in hand; dropped, it has not any more.
#[derive(Debug)]
pub(crate) struct InHand {
    claimed: Counted,
    _running: Option<Counted>,
}

impl Tenants {
    /// Counts a message of this tenant whose key is being claimed.
    pub(crate) fn hold(&self, tenant: &Tenant) -> Box<InHand> {
        Box::new(InHand { claimed: Counted::new(&self.claimed, tenant), _running: None })
    }

    /// Counts that its handler is started.
    pub(crate) fn start(&self, in_hand: &mut InHand) {
        in_hand._running = Some(Counted::new(&self.running, &in_hand.claimed.tenant));
    }
}

/// How many messages each tenant has.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<HashMap<Tenant, usize>>);

impl Counts {
    fn all(&self) -> MutexGuard<'_, HashMap<Tenant, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the place of the one with the fewest, the first of several; who is no tenant has none.
    fn least<'a>(&self, order: impl Iterator<Item = &'a Option<Tenant>>) -> Option<usize> {
        let counts = self.all();
        let mut least = None;
        for (place, tenant) in order.enumerate() {
            let count = tenant.as_ref().and_then(|tenant| counts.get(tenant)).copied().unwrap_or(0);
            if least.is_none_or(|(_, fewest)| count < fewest) {
                least = Some((place, count));
            }
            // So only those are looked at that have some, and one more.
            if count == 0 {
                break;
            }
        }
        least.map(|(place, _)| place)
    }
}

/// One of a tenant's, until it is dropped.
#[derive(Debug)]
struct Counted {
    counts: Arc<Counts>,
    tenant: Tenant,
}

impl Counted {
    fn new(counts: &Arc<Counts>, tenant: &Tenant) -> Self {
        *counts.all().entry(Arc::clone(tenant)).or_default() += 1;
        Self { counts: Arc::clone(counts), tenant: Arc::clone(tenant) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.counts.all();
        if let Some(count) = counts.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.tenant);
            }
        }
    }
}

/// What waits, by tenants: the next one is of the tenant with the fewest, and among equals of the one whose last turn was longest
/// ago. What has no tenant is one queue.
#[derive(Debug)]
pub(crate) struct TenantQueue<W> {
    /// Those that cannot wait, whose ever they are.
    first: VecDeque<W>,
    waiting: HashMap<Option<Tenant>, VecDeque<W>>,
    /// Who has something waiting, by turns.
    order: VecDeque<Option<Tenant>>,
    len: usize,
}

/// Where the next one is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At {
    First,
    Turn(usize),
}

impl<W> TenantQueue<W> {
    pub(crate) fn new() -> Self {
        Self { first: VecDeque::new(), waiting: HashMap::new(), order: VecDeque::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts it behind what its tenant has waiting; if it is a tenant's and its last receive, behind those that cannot wait.
    pub(crate) fn push(&mut self, tenant: Option<Tenant>, is_last: bool, work: W) {
        if tenant.is_some() && is_last {
            self.len += 1;
            self.first.push_back(work);
        } else {
            self.queue(tenant).push_back(work);
        }
    }

    /// Puts it in front of what its tenant has waiting.
    pub(crate) fn push_front(&mut self, tenant: Option<Tenant>, work: W) {
        self.queue(tenant).push_front(work);
    }

    fn queue(&mut self, tenant: Option<Tenant>) -> &mut VecDeque<W> {
        self.len += 1;
        if !self.waiting.contains_key(&tenant) {
            self.order.push_back(tenant.clone());
        }
        self.waiting.entry(tenant).or_default()
    }

    fn next(&self, counts: &Counts) -> Option<At> {
        if !self.first.is_empty() {
            return Some(At::First);
        }
        counts.least(self.order.iter()).map(At::Turn)
    }

    /// Returns where the next one is to be claimed.
    pub(crate) fn next_claim(&self, tenants: &Tenants) -> Option<At> {
        self.next(&tenants.claimed)
    }

    /// Returns where the next one is to be started.
    pub(crate) fn next_start(&self, tenants: &Tenants) -> Option<At> {
        self.next(&tenants.running)
    }

    /// Returns whether the next one to be claimed is of a tenant that has far less in hand than the others: slots would go to them.
    pub(crate) fn next_has_little(&self, tenants: &Tenants) -> bool {
        let Some(At::Turn(turn)) = self.next_claim(tenants) else { return false };
        let Some(tenant) = self.order.get(turn).and_then(Option::as_ref) else { return false };
        let counts = tenants.claimed.all();
        let (all, own) = (counts.values().sum::<usize>(), counts.get(tenant).copied());
        let share = all / (counts.len() + usize::from(own.is_none()));
        own.unwrap_or(0) < share.div_ceil(LITTLE)
    }

    /// Returns the one at a place that was just returned.
    pub(crate) fn get(&self, place: At) -> Option<&W> {
        match place {
            At::First => self.first.front(),
            At::Turn(turn) => self.waiting.get(self.order.get(turn)?)?.front(),
        }
    }

    /// Returns the one at a place that was just returned.
    pub(crate) fn get_mut(&mut self, place: At) -> Option<&mut W> {
        match place {
            At::First => self.first.front_mut(),
            At::Turn(turn) => self.waiting.get_mut(self.order.get(turn)?)?.front_mut(),
        }
    }

    /// Takes the one at a place that was just returned.
    pub(crate) fn take(&mut self, place: At) -> Option<W> {
        match place {
            At::First => {
                let work = self.first.pop_front()?;
                self.len -= 1;
                Some(work)
            }
            At::Turn(turn) => self.take_turn(turn, VecDeque::pop_front),
        }
    }

    /// Takes the last of who is last, of what can wait.
    pub(crate) fn take_last(&mut self) -> Option<W> {
        self.take_turn(self.order.len().checked_sub(1)?, VecDeque::pop_back)
    }

    fn take_turn(&mut self, turn: usize, which: fn(&mut VecDeque<W>) -> Option<W>) -> Option<W> {
        let tenant = self.order.remove(turn)?;
        let queue = self.waiting.get_mut(&tenant)?;
        let work = which(queue)?;
        self.len -= 1;
        if queue.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.order.push_back(tenant);
        }
        Some(work)
    }

    /// Returns all, in no order.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = W> {
        self.first.into_iter().chain(self.waiting.into_values().flatten())
    }

    /// Returns all, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &W> {
        self.first.iter().chain(self.waiting.values().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Option<Tenant> {
        (!name.is_empty()).then(|| name.into())
    }

    /// What waits, each by the letter of its tenant and its number; a digit has none.
    fn turns(waiting: &[&'static str]) -> TenantQueue<&'static str> {
        let mut turns = TenantQueue::new();
        for work in waiting {
            turns.push(tenant(work.trim_end_matches(char::is_numeric)), false, *work);
        }
        turns
    }

    fn pop(turns: &mut TenantQueue<&'static str>, tenants: &Tenants) -> Option<&'static str> {
        turns.take(turns.next_claim(tenants)?)
    }

    fn rest(mut turns: TenantQueue<&'static str>, tenants: &Tenants) -> String {
        let all: Vec<_> = std::iter::from_fn(|| pop(&mut turns, tenants)).collect();
        assert_eq!((turns.len(), turns.order.len(), turns.waiting.len()), (0, 0, 0));
        all.join(" ")
    }

    #[test]
    fn tenants_take_turns_and_each_keeps_its_order() {
        let tenants = Tenants::default();
        assert_eq!(rest(turns(&["a1", "a2", "a3", "a4", "b1", "b2", "c1"]), &tenants), "a1 b1 c1 a2 b2 a3 a4");
        assert_eq!(rest(turns(&["1", "2", "3"]), &tenants), "1 2 3");
        assert_eq!(rest(turns(&["a1", "a2", "1", "2"]), &tenants), "a1 1 a2 2");
        let mut again = turns(&["a1", "b1", "a2"]);
        assert_eq!(pop(&mut again, &tenants), Some("a1"));
        again.push_front(tenant("a"), "a1");
        again.push(tenant("b"), true, "b9");
        again.push(tenant("b"), true, "b8");
        assert_eq!((again.len(), again.iter().count()), (5, 5));
        assert_eq!(rest(again, &tenants), "b9 b8 b1 a1 a2");
    }

    #[test]
    fn who_has_the_fewest_is_next() {
        let tenants = Tenants::default();
        let (slow, quick): (Tenant, Tenant) = ("a".into(), "b".into());
        let mut in_hand: Vec<_> = (0..3).map(|_| tenants.hold(&slow)).collect();
        let one = tenants.hold(&quick);
        assert_eq!(rest(turns(&["a1", "b1", "b2"]), &tenants), "b1 b2 a1");
        assert_eq!(rest(turns(&["a1", "b1", "c1"]), &tenants), "c1 b1 a1");
        assert!(turns(&["c1"]).next_has_little(&tenants) && !turns(&["b1"]).next_has_little(&tenants));
        // None of them runs.
        let started = |turns: &TenantQueue<_>| matches!(turns.next_start(&tenants), Some(At::Turn(turn)) if turn == 1);
        assert!(!started(&turns(&["a1", "b1"])));
        tenants.start(&mut in_hand[0]);
        assert!(started(&turns(&["a1", "b1"])));
        drop(in_hand);
        assert_eq!(rest(turns(&["b1", "a1"]), &tenants), "a1 b1");
        drop(one);
        assert!(tenants.claimed.all().is_empty() && tenants.running.all().is_empty());
    }

    #[test]
    fn the_last_of_the_last_is_for_probes() {
        let mut waiting = turns(&["a1", "a2", "b1", "b2"]);
        assert_eq!((waiting.take_last(), waiting.take_last(), waiting.len()), (Some("b2"), Some("b1"), 2));
        assert_eq!(TenantQueue::<u8>::new().take_last(), None);
    }

    #[test]
    fn nothing_is_lost_and_no_tenant_is_more_than_a_turn_ahead() {
        let tenants = Tenants::default();
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let mut waiting = TenantQueue::new();
            let mut left: HashMap<&str, usize> = HashMap::new();
            let count = random.usize(1..60);
            for number in 0..count {
                let name = ["a", "a", "a", "b", "c"][random.usize(0..5)];
                *left.entry(name).or_default() += 1;
                waiting.push(tenant(name), false, (name, number));
            }
            let (mut had, mut in_hand, mut seen) = (HashMap::new(), Vec::new(), Vec::new());
            while let Some(place) = waiting.next_claim(&tenants) {
                let (name, number) = waiting.take(place).unwrap();
                in_hand.push(tenants.hold(&name.into()));
                *left.get_mut(name).unwrap() -= 1;
                *had.entry(name).or_insert(0) += 1;
                // Whoever still waits has had at most one turn less.
                for (other, rest) in &left {
                    let behind = had.get(other).copied().unwrap_or(0) + 1 < had[name];
                    assert!(*rest == 0 || !behind, "{other} waits behind {name}");
                }
                seen.push((name, number));
            }
            assert_eq!((seen.len(), waiting.len()), (count, 0));
            for name in ["a", "b", "c"] {
                let own: Vec<_> = seen.iter().filter(|(of, _)| *of == name).map(|(_, number)| *number).collect();
                assert!(own.is_sorted(), "{own:?}");
            }
        }
        assert!(tenants.claimed.all().is_empty());
    }
}
