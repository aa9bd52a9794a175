//! Things that are kept for the page after this one.

use std::collections::VecDeque;

/// The latest things of a kind, each by its number.
pub(crate) struct Kept<T> {
    last: u64,
    max: usize,
    items: VecDeque<(u64, T)>,
}

impl<T> Kept<T> {
    /// Returns nothing yet, and room for so many; numbers are above `after`.
    pub(crate) const fn new(after: u64, max: usize) -> Self {
        Self { last: after, max, items: VecDeque::new() }
    }

    /// Keeps this; returns its number. The oldest one makes room.
    pub(crate) fn keep(&mut self, item: T) -> u64 {
        self.last += 1;
        if self.items.len() == self.max {
            self.items.pop_front();
        }
        self.items.push_back((self.last, item));
        self.last
    }

    /// Returns what has this number, unless newer ones took its room.
    pub(crate) fn get(&mut self, number: u64) -> Option<&mut T> {
        self.items.iter_mut().find(|(known, _)| *known == number).map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_by_number() {
        let mut kept = Kept::new(10, 2);
        assert_eq!([kept.keep('a'), kept.keep('b'), kept.keep('c')], [11, 12, 13]);
        assert_eq!([11, 12, 13, 14].map(|number| kept.get(number).copied()), [None, Some('b'), Some('c'), None]);
    }
}
