//! Turns of suspects. The sequences of an invocation run side by side; what an earlier owner may have died of runs while no other sequence has
//! a message claimed, as if there were one consumer: in the time that is reserved for it, the others claim nothing.

use std::cmp::Reverse;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::admission;

/// By what suspects are sorted: those that are suspected least come first.
pub(crate) type Suspicion = (u32, Reverse<u32>, Option<String>, Option<Reverse<String>>);

/// The time that is reserved for the suspects of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reserved {
    /// From when on it is theirs: what others have claimed has ended by then.
    pub(crate) from: Instant,
    /// From when on others claim nothing at the earliest, however long that takes.
    pub(crate) earliest: Instant,
    /// Until when they can start: later no handler fits any more.
    pub(crate) by: Instant,
}

impl Reserved {
    /// Returns the part of it in which what was claimed just before, and is `expected` to take so long, should still run.
    pub(crate) fn while_in_hand(self, expected: Duration) -> Self {
        Self { by: self.by.min(self.from + admission::in_hand_for(expected)), ..self }
    }

    /// Returns whether others may claim nothing now that is `expected` to take so long.
    fn excludes(&self, expected: Duration) -> bool {
        let now = Instant::now();
        self.earliest <= now && self.from <= now + expected && now < self.by
    }
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

/// What the others know of a sequence.
#[derive(Debug, PartialEq, Eq)]
enum Doing {
    /// It waits for no turn; with the time of its suspects, if it has some that could run.
    Does(Activity, Option<Reserved>),
    /// It waits for the turn of so many suspects, and claims nothing meanwhile: the suspicion of the one that would start, and their time.
    Waits { suspicion: Suspicion, suspects: usize, reserved: Reserved },
}

impl Doing {
    fn reserved(&self) -> Option<Reserved> {
        match self {
            Self::Does(_, reserved) => *reserved,
            Self::Waits { reserved, .. } => Some(*reserved),
        }
    }
}

/// Who works, and who waits.
#[derive(Debug, Default)]
struct State {
    /// By number; those that have ended, too.
    sequences: Vec<Doing>,
    /// The sequence whose suspects have their turn.
    turn: Option<usize>,
}

impl State {
    /// Returns whether the next turn is this sequence's, and it can begin.
    fn is_next(&self, number: usize) -> bool {
        let (now, sequences) = (Instant::now(), &self.sequences);
        let has_the_time = |doing: &Doing| matches!(doing, Doing::Waits { reserved, .. } if reserved.from <= now);
        let have_the_time = sequences.iter().any(has_the_time);
        let is_waited_for = |doing: &Doing| match doing {
            Doing::Does(Activity::InHand, _) => true,
            Doing::Does(Activity::Working, _) => !have_the_time,
            Doing::Does(Activity::Resting, _) | Doing::Waits { .. } => false,
        };
        let waiting = sequences.iter().enumerate().filter_map(|(of, doing)| match doing {
            Doing::Waits { suspicion, .. } => Some((suspicion, of)),
            Doing::Does(..) => None,
        });
        let next = waiting.min().map(|(_, of)| of);
        self.turn.is_none() && next == Some(number) && !sequences.iter().any(is_waited_for)
    }

    /// Returns until when at most this sequence may claim nothing, as far as is known, that is `expected` to take so long, since suspects of
    /// others have the time; `None` where it may.
    fn yields_until(&self, number: usize, expected: Duration) -> Option<Instant> {
        if self.turn.is_some_and(|turn| turn != number) {
            return Some(Instant::now() + TURN_LOOK);
        }
        let others = self.sequences.iter().enumerate().filter(|(other, _)| *other != number);
        others
            .filter_map(|(_, doing)| doing.reserved())
            .filter(|reserved| reserved.excludes(expected))
            .map(|reserved| reserved.by)
            .min()
    }
}

/// After how long others look whether a turn still lasts, though its end is said to them.
const TURN_LOOK: Duration = Duration::from_secs(60);

/// The turns of an invocation.
#[derive(Debug)]
pub(crate) struct SuspectTurns(watch::Sender<State>);

impl SuspectTurns {
    pub(crate) fn new() -> Self {
        Self(watch::channel(State::default()).0)
    }

    /// Adds a sequence: as one that has something in hand, until it says what it does.
    pub(crate) fn enter(&self) -> Entrant<'_> {
        let mut number = 0;
        self.0.send_modify(|state| {
            number = state.sequences.len();
            state.sequences.push(Doing::Does(Activity::InHand, None));
        });
        Entrant { turns: &self.0, number }
    }
}

/// A sequence, until it ends.
#[derive(Debug)]
pub(crate) struct Entrant<'a> {
    turns: &'a watch::Sender<State>,
    number: usize,
}

impl Entrant<'_> {
    /// Says what it does now, and which time is reserved for its suspects. Not to be called while it waits for its turn.
    pub(crate) fn does(&self, activity: Activity, reserved: Option<Reserved>) {
        self.turns.send_if_modified(|state| {
            let does = Doing::Does(activity, reserved);
            let is_new = state.sequences[self.number] != does;
            state.sequences[self.number] = does;
            is_new
        });
    }

    /// Waits until its suspects have their turn: no other one has, none of those that wait is less suspicious, and no other sequence works
    /// or, from when on suspects have the time, has anything in hand. Until the turn ends no other sequence claims anything. Not longer
    /// than they can start.
    ///
    /// Returns how many suspects there are with those of others that wait, its own included.
    pub(crate) async fn turn(&self, (suspicion, suspects): (Suspicion, usize), reserved: Reserved) -> usize {
        self.turns.send_modify(|state| {
            self.leave(state);
            state.sequences[self.number] = Doing::Waits { suspicion, suspects, reserved };
        });
        let mut changes = self.turns.subscribe();
        // The channel cannot be closed: its sender is borrowed.
        let from = reserved.from.min(reserved.by);
        let mut came = timeout_at(from, changes.wait_for(|state| state.is_next(self.number))).await.is_ok();
        if !came {
            // From now on they have the time, which no sequence that waits has seen yet.
            self.turns.send_modify(|_| ());
            came = timeout_at(reserved.by, changes.wait_for(|state| state.is_next(self.number))).await.is_ok();
        }
        let mut all = 0;
        self.turns.send_modify(|state| {
            let suspects = |doing: &Doing| if let Doing::Waits { suspects, .. } = doing { *suspects } else { 0 };
            all = state.sequences.iter().map(suspects).sum();
            state.sequences[self.number] = Doing::Does(Activity::InHand, None);
            state.turn = if came { Some(self.number) } else { state.turn };
        });
        all
    }

    /// Ends its turn, if it has one: others may claim again.
    pub(crate) fn end_turn(&self) {
        self.turns.send_if_modified(|state| self.leave(state));
    }

    /// Returns whether it must claim nothing that is `expected` to take so long, since suspects of others have the time.
    pub(crate) fn must_yield(&self, expected: Duration) -> bool {
        self.turns.borrow().yields_until(self.number, expected).is_some()
    }

    /// Waits until it may claim such again. Cancel safe.
    pub(crate) async fn freed(&self, expected: Duration) {
        let mut changes = self.turns.subscribe();
        loop {
            let until = changes.borrow_and_update().yields_until(self.number, expected);
            let Some(until) = until else { return };
            let _ = timeout_at(until, changes.changed()).await;
        }
    }

    /// Ends its turn, and keeps no time for its suspects until it says so again; returns whether that changes anything.
    fn leave(&self, state: &mut State) -> bool {
        let had = state.turn.take_if(|turn| *turn == self.number).is_some();
        match &mut state.sequences[self.number] {
            Doing::Does(_, reserved) => reserved.take().is_some() || had,
            Doing::Waits { .. } => had,
        }
    }
}

impl Drop for Entrant<'_> {
    fn drop(&mut self) {
        self.turns.send_modify(|state| {
            self.leave(state);
            state.sequences[self.number] = Doing::Does(Activity::Resting, None);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::array;

    use tokio::time::timeout;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(1);

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Suspects that have the time after so many seconds, and can start for a hundred.
    fn reserved(from_s: u64) -> Reserved {
        let now = Instant::now();
        Reserved { from: now + s(from_s), earliest: now + s(from_s), by: now + s(100) }
    }

    fn suspects(attempt: u32, suspects: usize) -> (Suspicion, usize) {
        ((attempt, Reverse(1), None, None), suspects)
    }

    #[tokio::test(start_paused = true)]
    async fn the_least_suspicious_has_its_turn_while_no_other_sequence_works() {
        let turns = SuspectTurns::new();
        let [first, second, third] = array::from_fn(|_| turns.enter());
        let mut first_turn = Box::pin(first.turn(suspects(2, 3), reserved(50)));
        let mut third_turn = Box::pin(third.turn(suspects(1, 1), reserved(50)));
        assert!(timeout(MOMENT, &mut first_turn).await.is_err(), "two others work");
        assert!(timeout(MOMENT, &mut third_turn).await.is_err(), "another one works");
        second.does(Activity::Working, None);
        assert!(timeout(MOMENT, &mut third_turn).await.is_err(), "it can claim at any time");
        drop(second);
        assert!(timeout(MOMENT, &mut first_turn).await.is_err(), "the other one is less suspicious");
        assert_eq!(timeout(MOMENT, third_turn).await, Ok(4));
        assert!(timeout(MOMENT, &mut first_turn).await.is_err(), "the other one has its turn");
        third.does(Activity::Working, None);
        assert!(timeout(MOMENT, &mut first_turn).await.is_err(), "it has its turn until that ends");
        assert_eq!(
            timeout(MOMENT, third.turn(suspects(3, 1), reserved(50))).await.ok(),
            None,
            "now it is more suspicious"
        );
        assert_eq!(timeout(MOMENT, first_turn).await, Ok(4));
        drop(third);
        drop(first);
        let state = turns.0.borrow();
        let ended = Doing::Does(Activity::Resting, None);
        assert!(state.turn.is_none() && state.sequences.iter().all(|doing| *doing == ended), "{state:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn once_suspects_have_the_time_others_claim_nothing_until_their_turn_ends() {
        let turns = SuspectTurns::new();
        let [suspicious, other] = array::from_fn(|_| turns.enter());
        let reserved = Reserved { earliest: Instant::now() + s(20), ..reserved(50) };
        let mut turn = Box::pin(suspicious.turn(suspects(1, 1), reserved));
        assert!(timeout(MOMENT, &mut turn).await.is_err());
        assert!(!other.must_yield(s(60)), "at first others may take as long as they do");
        assert!(timeout(s(30), &mut turn).await.is_err());
        assert_eq!([10, 25].map(|takes| other.must_yield(s(takes))), [false, true], "what ends by then may begin");
        assert!(timeout(s(25), &mut turn).await.is_err(), "something is in hand");
        other.does(Activity::Working, None);
        assert_eq!(timeout(MOMENT, turn).await, Ok(1), "it has nothing in hand any more");
        let mut freed = Box::pin(other.freed(s(0)));
        assert!(timeout(MOMENT, &mut freed).await.is_err() && other.must_yield(s(0)));
        suspicious.end_turn();
        assert!(timeout(MOMENT, freed).await.is_ok() && !other.must_yield(s(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sequence_that_rests_keeps_no_suspects_from_their_turn() {
        let turns = SuspectTurns::new();
        let [suspicious, other] = array::from_fn(|_| turns.enter());
        other.does(Activity::Resting, None);
        assert_eq!(timeout(MOMENT, suspicious.turn(suspects(1, 1), reserved(50))).await, Ok(1));
        assert!(other.must_yield(Duration::ZERO));
        drop(suspicious);
        assert!(!other.must_yield(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_not_waited_for_beyond_its_time() {
        let turns = SuspectTurns::new();
        let [first, second] = array::from_fn(|_| turns.enter());
        let start = Instant::now();
        first.turn(suspects(1, 1), Reserved { by: start + s(2), ..reserved(1) }).await;
        assert_eq!(start.elapsed(), s(2));
        assert!(turns.0.borrow().turn.is_none() && !second.must_yield(s(0)));
    }

    /// While its own messages run, too: else others would have claimed until it waits for the turn.
    #[tokio::test(start_paused = true)]
    async fn the_time_of_suspects_is_known_before_they_wait_for_it_and_ends_when_none_can_start() {
        let turns = SuspectTurns::new();
        let [suspicious, other] = array::from_fn(|_| turns.enter());
        suspicious.does(Activity::InHand, Some(Reserved { earliest: Instant::now(), ..reserved(50) }));
        assert!(timeout(s(45), other.freed(s(0))).await.is_ok() && !other.must_yield(s(0)));
        assert!(other.must_yield(s(60)) && !suspicious.must_yield(s(60)));
        tokio::time::sleep(s(50)).await;
        let start = Instant::now();
        assert!(timeout(s(10), other.freed(s(0))).await.is_err() && other.must_yield(s(0)));
        other.freed(s(0)).await;
        assert!(start.elapsed() >= s(49), "nothing else has said so");
    }
}
