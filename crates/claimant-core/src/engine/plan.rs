//! Which messages of a batch run side by side, and which one after the other.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

/// What decides a message's lane.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LaneKey<'a, K> {
    /// Messages of one ordered group: in order, and none after a failure.
    Group(&'a str),
    /// Messages of one key: the later ones follow the first.
    Work(K),
}

/// Messages that run one after the other, by their index in the batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) ordered: bool,
    pub(crate) indexes: Vec<usize>,
}

/// Sorts the messages into lanes, in the order in which each lane's first message came.
pub(crate) fn lanes<'a, K: Hash + Eq>(messages: impl Iterator<Item = LaneKey<'a, K>>) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut lane_of: HashMap<LaneKey<'a, K>, usize> = HashMap::new();
    for (index, key) in messages.enumerate() {
        let ordered = matches!(key, LaneKey::Group(_));
        let lane = *lane_of.entry(key).or_insert_with(|| {
            lanes.push(Lane { ordered, indexes: Vec::new() });
            lanes.len() - 1
        });
        lanes[lane].indexes.push(index);
    }
    lanes
}

/// Puts the lanes in front whose messages were received most, each by the one that was received most: nearest to the
/// dead-letter queue, and in a lane it cannot have its turn before those in front of it. Else they stay as they are.
pub(crate) fn by_receives(lanes: &mut [Lane], receive_count: impl Fn(usize) -> u32) {
    lanes.sort_by_cached_key(|lane| Reverse(lane.indexes.iter().map(|index| receive_count(*index)).max()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_go_by_their_most_received_message() {
        let lane = |indexes: &[usize]| Lane { ordered: true, indexes: indexes.to_vec() };
        let receives = [1, 3, 2, 4, 1, 3];
        let mut lanes = vec![lane(&[0]), lane(&[1]), lane(&[2, 3]), lane(&[4]), lane(&[5])];
        by_receives(&mut lanes, |index| receives[index]);
        assert_eq!(lanes, [lane(&[2, 3]), lane(&[1]), lane(&[5]), lane(&[0]), lane(&[4])]);
    }

    #[test]
    fn one_lane_for_each_group_or_key_in_order() {
        use LaneKey::{Group, Work};
        let batch = [Work(1), Group("a"), Work(2), Group("b"), Work(1), Group("a")];
        let planned = lanes(batch.into_iter());
        let lane = |ordered, indexes: &[usize]| Lane { ordered, indexes: indexes.to_vec() };
        assert_eq!(planned, [lane(false, &[0, 4]), lane(true, &[1, 5]), lane(false, &[2]), lane(true, &[3])]);
        assert!(lanes::<u8>(std::iter::empty()).is_empty());
    }
}
