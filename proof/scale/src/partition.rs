//! One partition: its units, and its heat.

use claimant_simulated::dynamo::Access;

use crate::bucket::Bucket;

/// How many of the latest keys tell where a partition is split.
const RECENT: usize = 64;

/// A range of hashes, up to the beginning of the next partition.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    writes: Bucket,
    reads: Bucket,
    /// Write units of this minute.
    used: u64,
    /// Minutes in a row in which it was close to its limit.
    hot: u64,
    recent: Vec<u64>,
    next: usize,
}

impl Partition {
    /// Returns a partition of this many write and read units a second, which holds those of so many seconds.
    pub(crate) fn new((writes, reads): (u64, u64), held_s: u64, now_ms: u64) -> Self {
        let (writes, reads) = (Bucket::new(writes, held_s, now_ms), Bucket::new(reads, held_s, now_ms));
        Self { writes, reads, used: 0, hot: 0, recent: Vec::new(), next: 0 }
    }

    pub(crate) fn has_one(&mut self, access: Access, now_ms: u64) -> bool {
        match access {
            Access::Write => self.writes.has_one(now_ms),
            Access::Read => self.reads.has_one(now_ms),
        }
    }

    pub(crate) fn take_one(&mut self, access: Access, hash: u64) {
        match access {
            Access::Read => self.reads.take_one(),
            Access::Write => {
                self.writes.take_one();
                self.used += 1;
                match self.recent.get_mut(self.next) {
                    Some(old) => *old = hash,
                    None => self.recent.push(hash),
                }
                self.next = (self.next + 1) % RECENT;
            }
        }
    }

    /// Ends a minute; returns for how many in a row it has had four fifths of what it can take.
    pub(crate) fn end_minute(&mut self) -> u64 {
        self.hot = if self.used * 5 >= self.writes.per_s() * 60 * 4 { self.hot + 1 } else { 0 };
        self.used = 0;
        self.hot
    }

    /// Returns where it is split so that each side gets half of the latest writes, or a hot key a side of its own: the first hash of
    /// the second side. `None` where it has one key only.
    pub(crate) fn split_at(&self, from: u64) -> Option<u64> {
        let mut recent = self.recent.clone();
        recent.sort_unstable();
        let middle = *recent.get(recent.len() / 2)?;
        let alone = recent.iter().all(|hash| *hash == middle);
        match middle {
            _ if alone && middle == from => None,
            _ if recent.first() == Some(&middle) && middle == from => middle.checked_add(1),
            _ => Some(middle).filter(|at| *at > from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(hashes: &[u64], from: u64) -> Option<u64> {
        let mut partition = Partition::new((1_000, 3_000), 1, 0);
        hashes.iter().for_each(|hash| partition.take_one(Access::Write, *hash));
        partition.split_at(from)
    }

    #[test]
    fn a_partition_is_split_by_its_load_and_a_hot_key_gets_one_of_its_own() {
        assert_eq!(split(&[1, 5, 9, 7], 0), Some(7));
        assert_eq!(split(&[7, 7, 7, 1, 9], 0), Some(7), "the hot key and what is above");
        assert_eq!(split(&[7, 7, 7, 9], 7), Some(8), "the hot key alone");
        assert_eq!(split(&[7, 7, 7], 7), None);
        assert_eq!(split(&[], 0), None);
        // Only the latest count.
        let old = [[1; RECENT], [9; RECENT]].concat();
        assert_eq!(split(&old, 0), Some(9));
    }

    #[test]
    fn heat_is_four_fifths_of_the_limit_minute_by_minute() {
        let mut partition = Partition::new((10, 30), 60, 0);
        let mut now_ms = 0;
        let mut minute = |writes: u64| {
            now_ms += 60_000;
            assert!(partition.has_one(Access::Write, now_ms));
            (0..writes).for_each(|hash| partition.take_one(Access::Write, hash));
            partition.end_minute()
        };
        assert_eq!([480, 600, 479, 500].map(&mut minute), [1, 2, 0, 1]);
    }
}
