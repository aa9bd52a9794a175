//! Who uses a limit in a process, and whose turn is next: of batches that have a message ready, the one whose last call was longest ago begins
//! first, or the one that is looked at first would have each call. They claim in the same order, and together no more than can start soon. A
//! worker's turns have an order of their own (`worker`).

use std::time::Duration;

use tokio::time::Instant;

/// So long a turn is left to each of those that come first.
const LEFT: Duration = Duration::from_millis(5);

#[derive(Debug)]
struct User {
    number: u64,
    /// The number of its last call among all, or of its beginning.
    served: u64,
    /// How much before its call it claims a key.
    ahead: Duration,
    has: Has,
}

/// What a batch has that waits for the limit, or will soon.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Has {
    /// Whether it could claim more, but for the limit.
    pub(crate) could_claim: bool,
    /// Claims on their way for the first time: a store that is silent may leave others for long, which delay no other one.
    pub(crate) asked_first: usize,
    /// What is claimed, and has all but its call.
    pub(crate) ready: usize,
}

#[derive(Debug, Default)]
pub(crate) struct LimitUsers {
    users: Vec<User>,
    counted: u64,
    /// When a call ended.
    freed_at: Option<Instant>,
    /// When one of them had less that is claimed, or a call ended: others may claim since.
    room_at: Option<Instant>,
}

impl LimitUsers {
    /// Adds one that claims its keys so much before their calls; returns its number.
    pub(crate) fn enter(&mut self, ahead: Duration) -> u64 {
        self.counted += 1;
        self.users.push(User { number: self.counted, served: self.counted, ahead, has: Has::default() });
        self.counted
    }

    pub(crate) fn leave(&mut self, number: u64) {
        self.users.retain(|user| user.number != number);
    }

    /// Returns whether there is one at most.
    pub(crate) fn is_last(&self) -> bool {
        self.users.len() <= 1
    }

    fn get(&self, number: u64) -> Option<&User> {
        self.users.iter().find(|user| user.number == number)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut User> {
        self.users.iter_mut().find(|user| user.number == number)
    }

    /// Returns whether others than this one could claim more, or begin.
    fn others_wait(&self, number: u64) -> bool {
        self.users.iter().any(|user| user.number != number && (user.has.could_claim || user.has.ready > 0))
    }

    /// Says what this one has. Returns whether that leaves room for others that wait for it.
    pub(crate) fn has(&mut self, number: u64, has: Has) -> bool {
        let Some(user) = self.get_mut(number) else { return false };
        let before = std::mem::replace(&mut user.has, has);
        let leaves_room = has.asked_first + has.ready < before.asked_first + before.ready;
        if leaves_room {
            self.room_at = Some(Instant::now());
        }
        leaves_room && self.others_wait(number)
    }

    /// Says that this one claims so many keys.
    pub(crate) fn claims(&mut self, number: u64, keys: usize) {
        if let Some(user) = self.get_mut(number) {
            user.has.asked_first += keys;
        }
    }

    /// Says that a call of this one has begun; where it `goes_on`, for one more item. Returns whether others wait for that.
    pub(crate) fn began(&mut self, number: u64, goes_on: bool) -> bool {
        self.counted += u64::from(!goes_on);
        let counted = self.counted;
        let Some(user) = self.get_mut(number) else { return false };
        user.has.ready = user.has.ready.saturating_sub(1);
        if !goes_on {
            user.served = counted;
        }
        self.room_at = Some(Instant::now());
        self.others_wait(number)
    }

    /// Says that a call has ended.
    pub(crate) fn freed(&mut self) {
        self.freed_at = Some(Instant::now());
        self.room_at = self.freed_at;
    }

    /// Returns those that come before one that had its last call then.
    fn before(&self, served: u64) -> impl Iterator<Item = &User> {
        self.users.iter().filter(move |user| user.served < served)
    }

    /// Returns when this one has its turn, where a call can begin `at` this time: then, or a little later for each that comes first.
    pub(crate) fn turn_at(&self, at: Instant, number: u64) -> Instant {
        let served = self.get(number).map_or(0, |user| user.served);
        left_to(self.before(served).filter(|user| user.has.ready > 0).count(), at, self.freed_at)
    }

    /// Returns when this one may claim a key, where a call can begin `at` this time: as long before as it claims ahead, or as any in front of
    /// it does that claims less far ahead; and a little later for each of those.
    pub(crate) fn claim_at(&self, at: Instant, number: u64) -> Instant {
        let Some(own) = self.get(number) else { return at };
        let first = || self.before(own.served).filter(|user| user.has.could_claim);
        let ahead = first().map(|user| user.ahead).fold(own.ahead, Duration::min);
        left_to(first().count(), at.checked_sub(ahead).unwrap_or(at), self.room_at)
    }

    /// Returns how many claims of others have their calls before what this one claims now. Not those of one that claims further ahead and
    /// whose turn is later: they can wait.
    pub(crate) fn claimed_first(&self, number: u64) -> usize {
        let Some(own) = self.get(number) else { return 0 };
        let others = self.users.iter().filter(|user| user.number != number);
        let first = others.filter(|user| user.ahead <= own.ahead || user.served < own.served);
        first.map(|user| user.has.asked_first + user.has.ready).sum()
    }
}

/// Returns when one has its turn that could have it `at` this time, and has it since then, where so many come first.
fn left_to(first: usize, at: Instant, since: Option<Instant>) -> Instant {
    // OK because there are few.
    if first == 0 { at } else { since.map_or(at, |since| at.max(since)) + LEFT * first as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What users have, as they entered: the first one has waited longest.
    fn users(of: &[(u64, bool, usize, usize)]) -> LimitUsers {
        let mut users = LimitUsers::default();
        for (ahead_ms, could_claim, asked_first, ready) in of {
            let number = users.enter(Duration::from_millis(*ahead_ms));
            users.has(number, Has { could_claim: *could_claim, asked_first: *asked_first, ready: *ready });
        }
        users
    }

    #[test]
    fn whoever_waited_longest_claims_and_begins_first_and_delays_others_only_for_what_it_can() {
        let nothing = (0, false, 0, 0);
        // Two users (how far it claims ahead, whether it could claim, claims on their way, ready); of each, in milliseconds: how much after the
        // call can begin it has its turn, and may claim; and how many claims of the other one come first.
        let rows = [
            ([nothing, nothing], [(0, 0, 0), (0, 0, 0)]),
            ([(0, true, 0, 0), (0, true, 0, 0)], [(0, 0, 0), (0, 5, 0)]),
            ([(500, true, 0, 0), (500, true, 0, 0)], [(0, -500, 0), (0, -495, 0)]),
            // One that claims ahead waits for one that does not, and not the other way round.
            ([(0, true, 0, 0), (500, true, 0, 0)], [(0, 0, 0), (0, 5, 0)]),
            ([(500, true, 0, 0), (0, true, 0, 0)], [(0, -500, 0), (0, 5, 0)]),
            // What waits for its own handlers can neither claim nor begin.
            ([(0, false, 0, 0), (500, true, 0, 1)], [(0, 0, 0), (0, -500, 0)]),
            // Claims come first, but for what is ahead of a turn that is later.
            ([(0, false, 1, 0), (0, true, 0, 0)], [(0, 0, 0), (0, 0, 1)]),
            ([(0, true, 0, 0), (0, false, 1, 1)], [(0, 0, 2), (0, 5, 0)]),
            ([(0, true, 0, 0), (500, false, 1, 1)], [(0, 0, 0), (0, 5, 0)]),
            ([(500, false, 0, 3), (0, true, 0, 0)], [(0, -500, 0), (5, 0, 3)]),
            ([(500, true, 0, 2), (500, true, 0, 1)], [(0, -500, 1), (5, -495, 2)]),
        ];
        let at = Instant::now() + Duration::from_secs(10);
        let after = |when: Instant| match when.checked_duration_since(at) {
            Some(later) => i64::try_from(later.as_millis()).unwrap(),
            None => -i64::try_from((at - when).as_millis()).unwrap(),
        };
        for (of, wanted) in rows {
            let users = users(&of);
            let asked = |number| {
                (after(users.turn_at(at, number)), after(users.claim_at(at, number)), users.claimed_first(number))
            };
            assert_eq!([1, 2].map(asked), wanted, "{of:?}");
        }
    }

    #[test]
    fn a_turn_goes_to_the_back_and_is_told_to_all_that_could_have_the_next_one() {
        for (other, waits) in [((0, true, 0, 0), true), ((0, false, 0, 1), true), ((0, false, 1, 0), false)] {
            let mut users = users(&[(0, false, 0, 2), other]);
            assert!(!users.has(1, Has { ready: 2, ..Has::default() }), "it has as much as before");
            assert_eq!(users.began(1, false), waits, "{other:?}");
            assert_eq!(users.claimed_first(2), 1);
            let at = Instant::now() + Duration::from_secs(10);
            assert_eq!(users.turn_at(at, 2), at, "its turn is next");
            assert_eq!(users.has(1, Has::default()), waits, "{other:?}");
            users.leave(2);
            assert!(users.is_last() && !users.began(1, false));
        }
    }
}
