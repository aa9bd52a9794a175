//! What is sent to a function, and what must become of it: the same seed gives the same.

use std::time::Duration;

/// Pieces of work for one function at most: as many as the mailbox keeps mails.
pub const COUNT_MAX: u32 = 10_000;

/// The number of the first piece on an empty lock table.
const FIRST_NUMBER: u64 = 1_001;
/// No piece of work has this number or a higher one; so numbers never overflow.
const NUMBER_MAX: u64 = 1_000_000_000_000;
/// One broken body for this many pieces, and at least one of each kind.
const PIECES_PER_BROKEN: u32 = 15;
/// Between the first copies of two pieces, at most.
const SPACING_MAX: Duration = Duration::from_millis(25);
/// From the first copy of the first piece to that of the last, at most.
const SPREAD_MAX: Duration = Duration::from_secs(30);
/// How deep the nested broken body goes: past what JSON parsers follow.
const NESTED_DEPTH: usize = 5_000;

/// How much is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// Pieces of work: 1 to [`COUNT_MAX`], cut to that.
    pub(super) count: u32,
    /// Decides everything random.
    pub(super) seed: u64,
    /// The number of the first piece.
    pub(super) first: u64,
}

/// What must become of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It has its effect once.
    Done,
    /// It has none, and every copy is dead-lettered.
    Refused,
    /// It has its effect once at most; where it is not known to be done, every copy is dead-lettered.
    InDoubt,
    /// Its handler ends the process, each time, until the queue gives up: it has no effect, and every copy is dead-lettered.
    Deadly,
}

/// How soon a second copy comes after the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Some at once, some late, some both.
    Usual,
    /// Some at once, some also late.
    AtOnce,
    /// While the first one waits for its late answer.
    MeanWhile,
}

/// A piece of work, which has its effect once at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its idempotency key.
    pub key: String,
    /// What it must stay in order with, where the queue is FIFO.
    pub group: String,
    /// The body of its message.
    pub body: String,
    /// What its effect must be: an address, an amount.
    pub effect: String,
    /// What must become of it.
    pub fate: Fate,
    /// How many times the message is sent.
    pub copies: u32,
}

/// One message to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// When, from the start of the run.
    pub at: Duration,
    /// Its body.
    pub body: String,
    /// Its group, where the queue is FIFO.
    pub group: String,
}

/// Pieces of work, broken bodies, and the messages that carry them in the order of sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In the order of their first copies.
    pub pieces: Vec<Piece>,
    /// Each different from every other.
    pub broken: Vec<String>,
    /// In the order of sending.
    pub messages: Vec<Planned>,
}

impl Plan {
    /// Returns the plan of these pieces, each sent at these times, and of these broken messages. The copies are counted here.
    #[must_use]
    pub fn new(pieces: impl IntoIterator<Item = (Piece, Vec<Duration>)>, broken: Vec<Planned>) -> Self {
        let mut plan = Self {
            pieces: Vec::new(),
            broken: broken.iter().map(|message| message.body.clone()).collect(),
            messages: Vec::new(),
        };
        for (mut piece, times) in pieces {
            piece.copies = u32::try_from(times.len()).expect("a few copies");
            let copy = |at| Planned { at, body: piece.body.clone(), group: piece.group.clone() };
            plan.messages.extend(times.into_iter().map(copy));
            plan.pieces.push(piece);
        }
        plan.messages.extend(broken);
        plan.messages.sort_by_key(|message| message.at);
        plan
    }
}

impl Request {
    /// A request whose numbers go on where these keys end: one used before would rightly be taken for a duplicate.
    pub(super) fn after<'a>(keys: impl Iterator<Item = &'a str>, count: u32, seed: u64) -> Self {
        let number = |key: &str| key.rsplit_once('-')?.1.parse().ok().filter(|number| *number < NUMBER_MAX);
        let highest = keys.filter_map(number).max();
        let first = highest.map_or(FIRST_NUMBER, |highest: u64| (highest + 1).max(FIRST_NUMBER));
        Self { count: count.clamp(1, COUNT_MAX), seed, first }
    }

    /// A plan of pieces made by `piece` from their place and their number; every third is sent more than once. `broken` has
    /// the bodies that are broken in ways of this function's own; two that no function can read come with them.
    pub(super) fn plan(
        self,
        mut piece: impl FnMut(u32, u64, &mut Random) -> (Piece, Repeat),
        broken: &[fn(u64) -> String],
    ) -> Plan {
        let mut random = Random::new(self.seed);
        let spacing = SPACING_MAX.min(SPREAD_MAX / self.count);
        let pieces: Vec<_> = (0..self.count)
            .map(|i| {
                let (piece, repeat) = piece(i, self.first + u64::from(i), &mut random);
                (piece, times(spacing * i, (i % 3 == 1).then_some(repeat), &mut random))
            })
            .collect();
        let kinds: Vec<_> = [not_json as fn(u64) -> String, nested].into_iter().chain(broken.iter().copied()).collect();
        let at_least = u32::try_from(kinds.len()).expect("a few kinds");
        let ways = (0_u64..).zip(kinds.iter().cycle()).take((self.count / PIECES_PER_BROKEN).max(at_least) as usize);
        let broken = ways.map(|(number, way)| {
            let at = spacing * random.below(self.count);
            Planned { at, body: way(self.first + number), group: "broken".to_owned() }
        });
        let broken = broken.collect();
        Plan::new(pieces, broken)
    }
}

fn times(at: Duration, repeat: Option<Repeat>, random: &mut Random) -> Vec<Duration> {
    let Some(repeat) = repeat else { return vec![at] };
    let close = match repeat {
        Repeat::MeanWhile => at + Duration::from_millis(500),
        Repeat::Usual | Repeat::AtOnce => at + Duration::from_millis(u64::from(random.below(30))),
    };
    let late = at + Duration::from_millis(1_500 + u64::from(random.below(1_500)));
    match random.below(3) {
        0 if repeat == Repeat::Usual => vec![at, late],
        1 => vec![at, close, late],
        _ => vec![at, close],
    }
}

fn not_json(number: u64) -> String {
    format!("message {number}: this is not JSON")
}

fn nested(number: u64) -> String {
    let (open, close) = ("[".repeat(NESTED_DEPTH), "]".repeat(NESTED_DEPTH));
    format!(r#"{{"order_id":"nested-{number}","items":{open}{close}}}"#)
}

/// SplitMix64: small, and the same everywhere. Not for secrets.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is not 0. The bias is below 2⁻³², and nothing depends on it.
    pub fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.bits() % u64::from(bound)).expect("less than a u32")
    }

    /// A place in a list of this length, which is not 0.
    pub fn index(&mut self, len: usize) -> usize {
        let bound = u32::try_from(len).expect("a short list");
        usize::try_from(self.below(bound)).expect("less than len")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn request(count: u32, seed: u64) -> Request {
        Request::after(std::iter::empty(), count, seed)
    }

    fn plan(request: Request) -> Plan {
        let piece = |i, number, _: &mut Random| {
            let repeat = if i % 2 == 0 { Repeat::Usual } else { Repeat::MeanWhile };
            let key = format!("k-{number}");
            let [group, body] = [&key, &key].map(String::clone);
            (Piece { key, group, body, effect: String::new(), fate: Fate::Done, copies: 1 }, repeat)
        };
        request.plan(piece, &[|number| format!("own-{number}")])
    }

    #[test]
    fn shapes() {
        // (pieces asked for, sent more than once, broken)
        for (count, repeated, broken) in [(1, 0, 3), (2, 1, 3), (60, 20, 4), (300, 100, 20), (0, 0, 3)] {
            let plan = plan(request(count, 7));
            let sent_again = plan.pieces.iter().filter(|piece| piece.copies > 1).count();
            assert_eq!((plan.pieces.len(), sent_again), (count.max(1) as usize, repeated), "{count}");
            assert_eq!(plan.broken.iter().collect::<BTreeSet<_>>().len(), broken, "{count}: broken");
            let copies: u32 = plan.pieces.iter().map(|piece| piece.copies).sum();
            assert_eq!(plan.messages.len(), copies as usize + broken, "{count}: messages");
            assert!(plan.messages.is_sorted_by_key(|message| message.at));
            for piece in &plan.pieces {
                let sent = plan.messages.iter().filter(|message| message.body == piece.body);
                assert_eq!(sent.count(), piece.copies as usize, "{}", piece.key);
            }
        }
    }

    #[test]
    fn a_seed_decides_everything() {
        assert_eq!(plan(request(60, 1)), plan(request(60, 1)));
        assert_ne!(plan(request(60, 1)), plan(request(60, 2)));
    }

    #[test]
    fn numbers_go_on_where_the_lock_table_ends() {
        let table: [(&[&str], u64); 4] = [
            (&[], 1_001),
            (&["ord-1060", "flaky-1002"], 1_061),
            (&["x", "ord-7", "ord-"], 1_001),
            (&["ord-9999999999999"], 1_001),
        ];
        for (known, expected) in table {
            assert_eq!(Request::after(known.iter().copied(), 3, 1).first, expected, "{known:?}");
        }
    }
}
