//! Turns of suspects. The sequences of an invocation run side by side; what an earlier owner may have died of runs while no other sequence has
//! a message claimed, as if there were one consumer: in the time that is kept for it, the others claim nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// By what suspects are sorted: those that are suspected least come first.
pub(crate) type Suspicion = (u32, Reverse<u32>, Option<String>, Option<Reverse<String>>);

/// The suspects of a sequence that waits for their turn.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    /// Of the one that would start.
    pub(crate) suspicion: Suspicion,
    pub(crate) suspects: usize,
    /// From when on they have the time: what others have claimed has ended by then.
    pub(crate) from: Instant,
    /// From when on others claim nothing at the earliest, however long that takes.
    pub(crate) earliest: Instant,
}

/// What a sequence does that waits for no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// It has messages claimed, or on their way to their outcomes.
    InHand,
    /// It has none, and may claim some at any time.
    Working,
    /// It has none, and claims none: its breaker is open, or others have the time.
    Resting,
}

/// Who works, and who waits.
#[derive(Debug, Default)]
struct State {
    /// How many sequences do not rest, and wait for no turn.
    working: usize,
    /// How many of those have something in hand.
    in_hand: usize,
    /// By the sequence's number.
    waiting: BTreeMap<usize, Waiting>,
    /// The sequence whose suspects have their turn.
    turn: Option<usize>,
    /// How many sequences there were.
    sequences: usize,
}

impl State {
    /// Returns whether the next turn is this sequence's, and it can begin.
    fn is_next(&self, number: usize) -> bool {
        let now = Instant::now();
        let have_the_time = self.waiting.values().any(|waiting| waiting.from <= now);
        let others = if have_the_time { self.in_hand } else { self.working };
        let next = self.waiting.iter().min_by_key(|(_, waiting)| &waiting.suspicion);
        self.turn.is_none() && others == 0 && next.is_some_and(|(next, _)| *next == number)
    }

    /// Returns whether suspects of others have the time in which a handler of this sequence would run that is `expected` to take so long.
    fn is_held_up(&self, number: usize, expected: Duration) -> bool {
        if self.turn.is_none() && self.waiting.is_empty() {
            return false;
        }
        let now = Instant::now();
        let have_the_time = |waiting: &Waiting| waiting.earliest <= now && waiting.from <= now + expected;
        self.turn.is_some_and(|turn| turn != number)
            || self.waiting.iter().any(|(other, waiting)| *other != number && have_the_time(waiting))
    }
}

/// The turns of an invocation.
#[derive(Debug)]
pub(crate) struct Turns(watch::Sender<State>);

impl Turns {
    pub(crate) fn new() -> Self {
        Self(watch::channel(State::default()).0)
    }

    /// Adds a sequence: as one that has something in hand, until it says what it does.
    pub(crate) fn enter(&self) -> Entrant<'_> {
        let mut number = 0;
        self.0.send_modify(|state| {
            number = state.sequences;
            state.sequences += 1;
            state.working += 1;
            state.in_hand += 1;
        });
        Entrant { turns: &self.0, number, works: AtomicBool::new(true), in_hand: AtomicBool::new(true) }
    }
}

/// A sequence, until it ends.
#[derive(Debug)]
pub(crate) struct Entrant<'a> {
    turns: &'a watch::Sender<State>,
    number: usize,
    works: AtomicBool,
    in_hand: AtomicBool,
}

impl Entrant<'_> {
    /// Says what it does now. Not to be called while it waits for its turn.
    pub(crate) fn does(&self, activity: Activity) {
        let (works, in_hand) = (activity != Activity::Resting, activity == Activity::InHand);
        // At nearly each call.
        if (self.works.load(Ordering::Relaxed), self.in_hand.load(Ordering::Relaxed)) != (works, in_hand) {
            self.set(works, in_hand, |_| ());
        }
    }

    /// Sets that, and what else changes with it.
    fn set(&self, works: bool, in_hand: bool, change: impl FnOnce(&mut State)) {
        let (worked, had) = (self.works.swap(works, Ordering::Relaxed), self.in_hand.swap(in_hand, Ordering::Relaxed));
        self.turns.send_modify(|state| {
            state.working = state.working + usize::from(works) - usize::from(worked);
            state.in_hand = state.in_hand + usize::from(in_hand) - usize::from(had);
            change(state);
        });
    }

    /// Waits until its suspects have their turn: no other one has, none of those that wait is less suspicious, and no other sequence works
    /// or, from when on suspects have the time, has anything in hand. Until the turn ends no other sequence claims anything. Not longer
    /// than `by`, when no handler fits any more.
    ///
    /// Returns how many suspects there are with those of others, its own included.
    pub(crate) async fn turn(&self, waiting: Waiting, by: Instant) -> usize {
        let from = waiting.from.min(by);
        self.set(false, false, |state| {
            self.leave(state);
            state.waiting.insert(self.number, waiting);
        });
        let mut changes = self.turns.subscribe();
        // The channel cannot be closed: its sender is borrowed.
        let mut came = timeout_at(from, changes.wait_for(|state| state.is_next(self.number))).await.is_ok();
        if !came {
            // From now on they have the time, which no sequence that waits has seen yet.
            self.turns.send_modify(|_| ());
            came = timeout_at(by, changes.wait_for(|state| state.is_next(self.number))).await.is_ok();
        }
        let mut all = 0;
        self.set(true, true, |state| {
            all = state.waiting.values().map(|waiting| waiting.suspects).sum();
            state.waiting.remove(&self.number);
            state.turn = if came { Some(self.number) } else { state.turn };
        });
        all
    }

    /// Ends its turn, if it has one: others may claim again.
    pub(crate) fn end_turn(&self) {
        self.turns.send_if_modified(|state| self.leave(state));
    }

    /// Returns whether it must claim nothing that is `expected` to take so long, since suspects of others have the time.
    pub(crate) fn is_held_up(&self, expected: Duration) -> bool {
        self.turns.borrow().is_held_up(self.number, expected)
    }

    /// Waits until it may claim such again, and not longer than `by`. Cancel safe.
    pub(crate) async fn freed(&self, expected: Duration, by: Instant) {
        let mut changes = self.turns.subscribe();
        let _ = timeout_at(by, changes.wait_for(|state| !state.is_held_up(self.number, expected))).await;
    }

    /// Ends its turn; returns whether it had one.
    fn leave(&self, state: &mut State) -> bool {
        let had = state.turn == Some(self.number);
        state.turn = state.turn.filter(|_| !had);
        had
    }
}

impl Drop for Entrant<'_> {
    fn drop(&mut self) {
        self.set(false, false, |state| {
            self.leave(state);
            state.waiting.remove(&self.number);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::array;

    use tokio::time::timeout;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(1);

    /// Suspects that have the time after so many seconds.
    fn waiting(attempt: u32, suspects: usize, from_s: u64) -> Waiting {
        let from = Instant::now() + Duration::from_secs(from_s);
        Waiting { suspicion: (attempt, Reverse(1), None, None), suspects, from, earliest: from }
    }

    fn by() -> Instant {
        Instant::now() + Duration::from_secs(100)
    }

    #[tokio::test(start_paused = true)]
    async fn the_least_suspicious_has_its_turn_while_no_other_sequence_works() {
        let turns = Turns::new();
        let [first, second, third] = array::from_fn(|_| turns.enter());
        let mut first_turn = Box::pin(first.turn(waiting(2, 3, 50), by()));
        let mut third_turn = Box::pin(third.turn(waiting(1, 1, 50), by()));
        assert!(timeout(MOMENT, &mut first_turn).await.is_err(), "two others work");
        assert!(timeout(MOMENT, &mut third_turn).await.is_err(), "another one works");
        second.does(Activity::Working);
        assert!(timeout(MOMENT, &mut third_turn).await.is_err(), "it can claim at any time");
        drop(second);
        assert!(timeout(MOMENT, &mut first_turn).await.is_err(), "the other one is less suspicious");
        assert_eq!(timeout(MOMENT, third_turn).await, Ok(4));
        assert!(timeout(MOMENT, &mut first_turn).await.is_err(), "the other one has its turn");
        third.does(Activity::Working);
        assert!(timeout(MOMENT, &mut first_turn).await.is_err(), "it has its turn until that ends");
        assert_eq!(timeout(MOMENT, third.turn(waiting(3, 1, 50), by())).await.ok(), None, "now it is more suspicious");
        assert_eq!(timeout(MOMENT, first_turn).await, Ok(4));
        drop(third);
        drop(first);
        let state = turns.0.borrow();
        assert_eq!((state.working, state.in_hand, state.waiting.len(), state.turn), (0, 0, 0, None));
    }

    #[tokio::test(start_paused = true)]
    async fn once_suspects_have_the_time_others_claim_nothing_until_their_turn_ends() {
        let turns = Turns::new();
        let [suspicious, other] = array::from_fn(|_| turns.enter());
        let s = Duration::from_secs;
        let mut turn =
            Box::pin(suspicious.turn(Waiting { earliest: Instant::now() + s(20), ..waiting(1, 1, 50) }, by()));
        assert!(timeout(MOMENT, &mut turn).await.is_err());
        assert!(!other.is_held_up(s(60)), "at first others may take as long as they do");
        assert!(timeout(s(30), &mut turn).await.is_err());
        assert_eq!([10, 25].map(|takes| other.is_held_up(s(takes))), [false, true], "what ends by then may begin");
        assert!(timeout(s(25), &mut turn).await.is_err(), "something is in hand");
        other.does(Activity::Working);
        assert_eq!(timeout(MOMENT, turn).await, Ok(1), "it has nothing in hand any more");
        let mut freed = Box::pin(other.freed(s(0), by()));
        assert!(timeout(MOMENT, &mut freed).await.is_err() && other.is_held_up(s(0)));
        suspicious.end_turn();
        assert!(timeout(MOMENT, freed).await.is_ok() && !other.is_held_up(s(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sequence_that_rests_keeps_no_suspects_from_their_turn() {
        let turns = Turns::new();
        let [suspicious, other] = array::from_fn(|_| turns.enter());
        other.does(Activity::Resting);
        assert_eq!(timeout(MOMENT, suspicious.turn(waiting(1, 1, 50), by())).await, Ok(1));
        assert!(other.is_held_up(Duration::ZERO));
        drop(suspicious);
        assert!(!other.is_held_up(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_not_waited_for_beyond_its_time() {
        let turns = Turns::new();
        let [first, second] = array::from_fn(|_| turns.enter());
        let start = Instant::now();
        first.turn(waiting(1, 1, 1), start + Duration::from_secs(2)).await;
        assert_eq!(start.elapsed().as_secs(), 2);
        assert_eq!((turns.0.borrow().working, second.is_held_up(Duration::ZERO)), (2, false));
    }
}
