//! Units that come back by the second.

/// Thousandths of a unit: what comes back in a millisecond is a whole number of them.
const PARTS: u64 = 1_000;

/// A token bucket, full at first.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    per_s: u64,
    most: u64,
    level: u64,
    at_ms: u64,
}

impl Bucket {
    /// Returns a bucket that gets so many units a second, and holds those of so many seconds.
    pub(crate) fn new(per_s: u64, held_s: u64, now_ms: u64) -> Self {
        let most = per_s * held_s.max(1) * PARTS;
        Self { per_s, most, level: most, at_ms: now_ms }
    }

    pub(crate) fn per_s(&self) -> u64 {
        self.per_s
    }

    /// Gives it another rate from now on, and no units for it.
    pub(crate) fn set_rate(&mut self, per_s: u64, now_ms: u64) {
        self.refill(now_ms);
        (self.per_s, self.most) = (per_s, self.most.max(per_s * PARTS));
    }

    /// Returns whether a unit is there.
    pub(crate) fn has_one(&mut self, now_ms: u64) -> bool {
        self.refill(now_ms);
        self.level >= PARTS
    }

    pub(crate) fn take_one(&mut self) {
        self.level -= PARTS;
    }

    fn refill(&mut self, now_ms: u64) {
        self.level = (self.level + (now_ms - self.at_ms) * self.per_s).min(self.most);
        self.at_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_come_back_by_the_millisecond_and_are_held_for_a_while() {
        let taken = |bucket: &mut Bucket, now_ms| {
            std::iter::from_fn(|| bucket.has_one(now_ms).then(|| bucket.take_one())).count()
        };
        let mut bucket = Bucket::new(100, 1, 0);
        assert_eq!([0, 0, 9, 10, 510, 9_000].map(|now| taken(&mut bucket, now)), [100, 0, 0, 1, 50, 100]);
        let mut bucket = Bucket::new(100, 300, 0);
        assert_eq!([0, 1_000].map(|now| taken(&mut bucket, now)), [30_000, 100]);
        let mut bucket = Bucket::new(100, 1, 0);
        taken(&mut bucket, 0);
        bucket.set_rate(200, 0);
        assert_eq!([0, 500, 9_000].map(|now| taken(&mut bucket, now)), [0, 100, 200]);
    }
}
