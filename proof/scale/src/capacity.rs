//! The capacity of tables: their partitions, how they grow, and what is throttled.

use std::collections::BTreeMap;

use claimant_simulated::dynamo::{Access, Admission, Throttle};
use md5::{Digest, Md5};

use crate::bucket::Bucket;
use crate::case::TableSpec;
use crate::partition::Partition;

/// What holds for all tables.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Write units of a partition in a second.
    pub partition_writes: u64,
    /// Read units of a partition in a second.
    pub partition_reads: u64,
    /// Write units of a table in a second, beyond which the account's quota throttles.
    pub quota: u64,
    /// For how many minutes a partition's load has to be close to its limit until it is split, and a table's load to last until twice
    /// of it is its limit.
    pub grows_after_min: u64,
    /// For how many seconds a partition holds units that were not used.
    pub partition_holds_s: u64,
}

impl Rules {
    fn partition(&self, now_ms: u64) -> Partition {
        Partition::new((self.partition_writes, self.partition_reads), self.partition_holds_s, now_ms)
    }
}

const MINUTE_MS: u64 = 60_000;

/// One table.
#[derive(Debug)]
struct Table {
    rules: Rules,
    /// By the first hash of each.
    partitions: BTreeMap<u64, Partition>,
    writes: Bucket,
    reads: Bucket,
    /// The minute that is not over yet.
    minute: u64,
    /// Write units, and minutes, since the limit was last looked at.
    load: (u64, u64),
}

impl Table {
    fn new(rules: &Rules, spec: &TableSpec) -> Self {
        let count = u64::from(spec.partitions);
        let first = |index: u64| (u128::from(index) * (1 << 64) / u128::from(count)) as u64;
        let units = spec.units.min(rules.quota);
        Self {
            partitions: (0..count).map(|index| (first(index), rules.partition(0))).collect(),
            writes: Bucket::new(units, 1, 0),
            reads: Bucket::new(units * 3, 1, 0),
            rules: rules.clone(),
            minute: 0,
            load: (0, 0),
        }
    }

    fn admit(&mut self, hash: u64, access: Access, now_ms: u64) -> Result<(), Throttle> {
        self.pass_time(now_ms);
        let table = match access {
            Access::Write => &mut self.writes,
            Access::Read => &mut self.reads,
        };
        if !table.has_one(now_ms) {
            let is_quota = self.writes.per_s() >= self.rules.quota;
            return Err(if is_quota { Throttle::Quota } else { Throttle::OnDemand });
        }
        // OK because the first partition begins at 0.
        let (_, partition) = self.partitions.range_mut(..=hash).next_back().ok_or(Throttle::OnDemand)?;
        if !partition.has_one(access, now_ms) {
            return Err(Throttle::OnDemand);
        }
        partition.take_one(access, hash);
        table.take_one();
        self.load.0 += u64::from(access == Access::Write);
        Ok(())
    }

    /// Ends the minutes that are over.
    fn pass_time(&mut self, now_ms: u64) {
        while (self.minute + 1) * MINUTE_MS <= now_ms {
            self.minute += 1;
            let after = self.rules.grows_after_min;
            let minutes = self.partitions.iter_mut().map(|(from, partition)| (*from, partition.end_minute()));
            let hot: Vec<_> = minutes.filter(|(_, minutes)| *minutes >= after).collect();
            hot.iter().for_each(|(from, _)| self.split(*from, now_ms));
            self.load.1 += 1;
            if self.load.1 == self.rules.grows_after_min {
                self.grow(now_ms);
            }
        }
    }

    /// Makes twice the load of the last minutes its limit, if that is more, with as many partitions as that needs.
    fn grow(&mut self, now_ms: u64) {
        let (units, minutes) = std::mem::take(&mut self.load);
        let twice = (2 * units / (60 * minutes)).min(self.rules.quota);
        if twice > self.writes.per_s() {
            self.writes.set_rate(twice, now_ms);
            self.reads.set_rate(twice * 3, now_ms);
            while let Some((from, half)) = self.too_wide(twice) {
                self.partitions.insert(from, self.rules.partition(now_ms));
                self.partitions.insert(from + half, self.rules.partition(now_ms));
            }
        }
    }

    /// Returns a partition whose part of the keys is half as much again as it could take of so many units a second, and half of how wide
    /// it is: those that were split for their heat are only about as wide as each other.
    fn too_wide(&self, units: u64) -> Option<(u64, u64)> {
        let ends = self.partitions.keys().skip(1).map(|from| u128::from(*from)).chain([1 << 64]);
        let mut widths = self.partitions.keys().zip(ends).map(|(from, end)| (*from, end - u128::from(*from)));
        let most = u128::from(self.rules.partition_writes) << 64;
        let (from, width) = widths.find(|(_, width)| width * u128::from(units) > most / 2 * 3)?;
        // OK because half of what is at most 2^64 wide fits.
        Some((from, (width / 2) as u64))
    }

    fn split(&mut self, from: u64, now_ms: u64) {
        let at = self.partitions.get(&from).and_then(|partition| partition.split_at(from));
        let Some(at) = at.filter(|at| !self.partitions.contains_key(at)) else { return };
        self.partitions.insert(from, self.rules.partition(now_ms));
        self.partitions.insert(at, self.rules.partition(now_ms));
    }
}

/// What was admitted and throttled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Write units that were taken.
    pub writes: u64,
    /// Read units that were taken.
    pub reads: u64,
    /// Writes and reads that were throttled for want of capacity.
    pub throttled: u64,
    /// Those that the account's quota throttled.
    pub over_quota: u64,
}

/// The tables of a run, at a time.
#[derive(Debug)]
pub struct Capacity {
    tables: BTreeMap<String, Table>,
    now_ms: u64,
    counts: Counts,
}

impl Capacity {
    /// Returns the capacity of these tables, at time 0.
    #[must_use]
    pub fn new(rules: &Rules, tables: &[(String, TableSpec)]) -> Self {
        let tables = tables.iter().map(|(name, spec)| (name.clone(), Table::new(rules, spec))).collect();
        Self { tables, now_ms: 0, counts: Counts::default() }
    }

    /// Returns the same, for a request at this time.
    pub fn at(&mut self, now_ms: u64) -> &mut Self {
        self.now_ms = now_ms;
        self
    }

    /// Returns what was admitted and throttled so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns how many partitions there are by now.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.tables.values().map(|table| table.partitions.len()).sum()
    }
}

impl Admission for Capacity {
    fn admit(&mut self, table: &str, id: &str, access: Access) -> Result<(), Throttle> {
        let now_ms = self.now_ms;
        let table = self.tables.get_mut(table).unwrap_or_else(|| panic!("there is no table {table:?}"));
        let admitted = table.admit(hash(id), access, now_ms);
        match (admitted, access) {
            (Ok(()), Access::Write) => self.counts.writes += 1,
            (Ok(()), Access::Read) => self.counts.reads += 1,
            (Err(throttle), _) => {
                self.counts.throttled += 1;
                self.counts.over_quota += u64::from(throttle == Throttle::Quota);
            }
        }
        admitted
    }
}

/// Hashes a key as its place among the partitions.
fn hash(id: &str) -> u64 {
    let digest = Md5::digest(id.as_bytes());
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(spec: TableSpec, quota: u64) -> Capacity {
        let rules =
            Rules { partition_writes: 100, partition_reads: 300, quota, grows_after_min: 2, partition_holds_s: 1 };
        Capacity::new(&rules, &[("locks".to_owned(), spec)])
    }

    /// Asks for so many writes in each second, spread over it and over all keys; how many of them were admitted in each.
    fn writes(capacity: &mut Capacity, seconds: std::ops::Range<u64>, each: u64) -> Vec<u64> {
        let second = |second: u64| {
            let before = capacity.counts().writes;
            for n in 0..each {
                let at = capacity.at(second * 1_000 + n * 1_000 / each);
                // OK because most are throttled.
                let _ = at.admit("locks", &format!("{second}-{n}"), Access::Write);
            }
            capacity.counts().writes - before
        };
        seconds.map(second).collect()
    }

    #[test]
    fn a_table_under_load_takes_twice_as_much_after_a_while_and_no_more_than_its_quota() {
        let spec = TableSpec { units: 400, partitions: 4 };
        let mut table = capacity(spec, 1_000);
        let taken = writes(&mut table, 0..121, 2_000);
        assert!(taken[0] > 750 && taken[1..120].iter().all(|taken| (395..=405).contains(taken)), "{taken:?}");
        assert_eq!(table.partitions(), 8);
        let taken = writes(&mut table, 121..240, 2_000);
        assert!(taken[2..].iter().take(110).all(|taken| (750..=810).contains(taken)), "{taken:?}");
        assert_eq!(table.counts().over_quota, 0);
        let taken = writes(&mut table, 240..300, 2_000);
        assert!(taken[2..].iter().all(|taken| (950..=1_010).contains(taken)), "{taken:?}");
        assert!(table.counts().over_quota > 0);
    }

    #[test]
    fn a_partition_that_one_key_heats_gives_the_key_one_of_its_own_and_no_more_units() {
        let spec = TableSpec { units: 400, partitions: 4 };
        let mut table = capacity(spec, 1_000);
        let mut minute = |minute: u64| {
            let before = table.counts().writes;
            for n in 0..12_000 {
                let _ = table.at(minute * 60_000 + n * 5).admit("locks", "hot", Access::Write);
            }
            (table.counts().writes - before, table.partitions())
        };
        let seen: Vec<_> = (0..8).map(&mut minute).collect();
        assert!(seen[1..].iter().all(|(taken, _)| (6_000..=6_100).contains(taken)), "{seen:?}");
        assert_eq!((seen[1].1, seen[7].1), (4, 5), "{seen:?}");
    }
}
