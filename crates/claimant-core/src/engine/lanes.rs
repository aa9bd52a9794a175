//! Lanes: which messages of a batch run side by side, and which one after the other: within a FIFO group and within a key, and who follows whom.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use super::fetching::Unread;
use super::reading::Arrival;
use super::work::{Answer, Delivery, Work};
use crate::fingerprint::Fingerprint;
use crate::identity::Identity;
use crate::key::{Key, RecordId};
use crate::payload::Payload;
use crate::protocol::Conflicts;
use crate::report::Details;

/// What decides a message's lane.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LaneKey<'a, K> {
    /// Messages of one ordered group: in order, and none after a failure.
    Group(&'a str),
    /// Messages of one key: the later ones follow the first.
    Work(K),
}

/// A lane to be: messages that run one after the other, by their index in the batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) ordered: bool,
    pub(crate) indexes: Vec<usize>,
}

/// Sorts the messages into lanes, in the order in which each lane's first message came.
pub(crate) fn planned<'a, K: Hash + Eq>(messages: impl Iterator<Item = LaneKey<'a, K>>) -> Vec<Planned> {
    let mut lanes: Vec<Planned> = Vec::new();
    let mut lane_of: HashMap<LaneKey<'a, K>, usize> = HashMap::new();
    for (index, key) in messages.enumerate() {
        let ordered = matches!(key, LaneKey::Group(_));
        let lane = *lane_of.entry(key).or_insert_with(|| {
            lanes.push(Planned { ordered, indexes: Vec::new() });
            lanes.len() - 1
        });
        lanes[lane].indexes.push(index);
    }
    lanes
}

/// Puts the lanes in front whose messages were received most, each by the one that was received most: nearest to the
/// dead-letter queue, and in a lane it cannot have its turn before those in front of it. Else they stay as they are.
fn by_receives(lanes: &mut [Planned], receive_count: impl Fn(usize) -> u32) {
    lanes.sort_by_cached_key(|lane| Reverse(lane.indexes.iter().map(|index| receive_count(*index)).max()));
}

/// What two messages share where the later one follows the earlier one.
type SameWork = (RecordId, Option<Fingerprint>);

/// A lane: its messages that had no turn yet, and what its earlier ones got.
struct Lane {
    ordered: bool,
    blocked: bool,
    waiting: VecDeque<Arrival>,
    /// The work that the lane is at, where a later message may follow it.
    leading: Option<SameWork>,
    leaders: HashMap<SameWork, Answer>,
}

/// The next message of a lane, and what it needs.
pub(crate) enum Next {
    /// A claim.
    Claim(Work),
    /// Nothing: there is no work to be read in it, for this reason.
    Unread(Delivery, Unread),
    /// What an earlier message of the same work got.
    Follow { delivery: Delivery, record: RecordId, key: Key, leader: Answer },
    /// To be tried again: an earlier message of its ordered group did not succeed.
    Blocked(Delivery),
}

/// The lanes of a batch. Of each, one message at a time is on its way.
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// Lanes that may go on to their next message.
    advancing: VecDeque<usize>,
    conflicts: Conflicts,
}

impl Lanes {
    pub(crate) fn new(arrivals: Vec<Arrival>, conflicts: Conflicts) -> Self {
        let mut planned = planned(arrivals.iter().enumerate().map(|(at, arrival)| {
            match (arrival.message.ordered_group(), &arrival.content) {
                (Some(group), _) => LaneKey::Group(group),
                (None, Ok((identity, _))) => LaneKey::Work(Ok(&identity.record_id)),
                // Each undecodable event is alone: it has no key to share.
                (None, Err(_)) => LaneKey::Work(Err(at)),
            }
        }));
        by_receives(&mut planned, |index| arrivals[index].message.receive_count());
        let mut lane_of = vec![0; arrivals.len()];
        for (number, lane) in planned.iter().enumerate() {
            lane.indexes.iter().for_each(|index| lane_of[*index] = number);
        }
        let lane = |lane: Planned| Lane {
            ordered: lane.ordered,
            blocked: false,
            waiting: VecDeque::with_capacity(lane.indexes.len()),
            leading: None,
            leaders: HashMap::new(),
        };
        let mut lanes: Vec<_> = planned.into_iter().map(lane).collect();
        for (arrival, lane) in arrivals.into_iter().zip(lane_of) {
            lanes[lane].waiting.push_back(arrival);
        }
        Self { advancing: (0..lanes.len()).collect(), lanes, conflicts }
    }

    /// Returns whether a lane may go on to its next message.
    pub(crate) fn can_advance(&self) -> bool {
        !self.advancing.is_empty()
    }

    /// Returns the next message of a lane that may go on.
    pub(crate) fn advance(&mut self) -> Option<Next> {
        while let Some(number) = self.advancing.pop_front() {
            let lane = &mut self.lanes[number];
            let Some(Arrival { index, event, message, content }) = lane.waiting.pop_front() else { continue };
            let details = Details { receive_count: message.receive_count(), ..Details::default() };
            let delivery = Delivery { index, event, lane: number, message, details, waited: None };
            return Some(match content {
                _ if lane.blocked => Next::Blocked(delivery),
                Err(unread) => Next::Unread(delivery, unread),
                Ok((identity, payload)) => lane.lead_or_follow(delivery, identity, payload, self.conflicts),
            });
        }
        None
    }

    /// Returns whether a lane has more messages behind its current one.
    pub(crate) fn has_more(&self, number: usize) -> bool {
        !self.lanes[number].waiting.is_empty()
    }

    /// Records the answer to a lane's current event: later ones of the same work get it too.
    pub(crate) fn answered(&mut self, number: usize, answer: &Answer) {
        let lane = &mut self.lanes[number];
        if let Some(work) = lane.leading.take() {
            lane.leaders.insert(work, answer.clone());
        }
    }

    /// Lets a lane go on behind its current event. Once one has failed, an ordered lane is blocked.
    pub(crate) fn go_on(&mut self, number: usize, failed: bool) {
        let lane = &mut self.lanes[number];
        lane.blocked |= lane.ordered && failed;
        // Not at once: a lane can have thousands of messages that need no claim, and this would call itself for each.
        self.advancing.push_back(number);
    }
}

impl Lane {
    fn lead_or_follow(
        &mut self,
        delivery: Delivery,
        identity: Identity,
        payload: Payload,
        conflicts: Conflicts,
    ) -> Next {
        if !self.waiting.is_empty() || !self.leaders.is_empty() {
            let compared = (conflicts != Conflicts::Ignore).then_some(identity.fingerprint);
            let work = (identity.record_id.clone(), compared);
            if let Some(leader) = self.leaders.get(&work) {
                let (leader, Identity { record_id: record, key, .. }) = (leader.clone(), identity);
                return Next::Follow { delivery, record, key, leader };
            }
            self.leading = Some(work);
        }
        Next::Claim(Work { delivery, identity, payload, its_turn: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_go_by_their_most_received_message() {
        let lane = |indexes: &[usize]| Planned { ordered: true, indexes: indexes.to_vec() };
        let receives = [1, 3, 2, 4, 1, 3];
        let mut lanes = vec![lane(&[0]), lane(&[1]), lane(&[2, 3]), lane(&[4]), lane(&[5])];
        by_receives(&mut lanes, |index| receives[index]);
        assert_eq!(lanes, [lane(&[2, 3]), lane(&[1]), lane(&[5]), lane(&[0]), lane(&[4])]);
    }

    #[test]
    fn one_lane_for_each_group_or_key_in_order() {
        use LaneKey::{Group, Work};
        let batch = [Work(1), Group("a"), Work(2), Group("b"), Work(1), Group("a")];
        let lanes = planned(batch.into_iter());
        let lane = |ordered, indexes: &[usize]| Planned { ordered, indexes: indexes.to_vec() };
        assert_eq!(lanes, [lane(false, &[0, 4]), lane(true, &[1, 5]), lane(false, &[2]), lane(true, &[3])]);
        assert!(planned::<u8>(std::iter::empty()).is_empty());
    }
}
