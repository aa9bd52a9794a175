//! Who uses a limit in a process, and whose turn is next: of batches and workers that have a message ready, those that waited longest begin
//! first, or the one that is looked at first would have each call.

use std::time::Duration;

use tokio::time::Instant;

/// So long a turn is left to each of those that come first.
const LEFT: Duration = Duration::from_millis(5);

#[derive(Debug)]
struct User {
    number: u64,
    /// The number of its last call among all, or of its beginning.
    served: u64,
    /// Whether a message of it is ready for its call.
    is_ready: bool,
}

#[derive(Debug, Default)]
pub(crate) struct LimitUsers {
    users: Vec<User>,
    counted: u64,
    /// When a call ended.
    freed_at: Option<Instant>,
}

impl LimitUsers {
    /// Adds one; returns its number.
    pub(crate) fn enter(&mut self) -> u64 {
        self.counted += 1;
        self.users.push(User { number: self.counted, served: self.counted, is_ready: false });
        self.counted
    }

    pub(crate) fn leave(&mut self, number: u64) {
        self.users.retain(|user| user.number != number);
    }

    /// Returns whether there is one at most.
    pub(crate) fn is_last(&self) -> bool {
        self.users.len() <= 1
    }

    /// Says whether a message of this one is ready for its call.
    pub(crate) fn ready(&mut self, number: u64, is_ready: bool) {
        if let Some(user) = self.user(number) {
            user.is_ready = is_ready;
        }
    }

    fn user(&mut self, number: u64) -> Option<&mut User> {
        self.users.iter_mut().find(|user| user.number == number)
    }

    /// Says that a call of this one has begun.
    pub(crate) fn began(&mut self, number: u64) {
        self.counted += 1;
        let served = self.counted;
        if let Some(user) = self.user(number) {
            user.served = served;
        }
    }

    /// Says that a call has ended.
    pub(crate) fn freed(&mut self) {
        self.freed_at = Some(Instant::now());
    }

    /// Returns when this one has its turn, where a call can begin `at` this time: then, or a little later for each that comes first.
    pub(crate) fn turn_at(&self, at: Instant, number: u64) -> Instant {
        let served = self.users.iter().find(|user| user.number == number).map_or(0, |user| user.served);
        let first = self.users.iter().filter(|user| user.is_ready && user.served < served).count();
        // OK because there are few.
        if first == 0 { at } else { self.freed_at.map_or(at, |freed| at.max(freed)) + LEFT * first as u32 }
    }
}
