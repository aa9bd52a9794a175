//! What is sent in a storm, when, and what must become of it: the same seed gives the same.

use std::time::Duration;

use claimant_local::workload::{Fate, Piece, Plan, Planned};
use fastrand::Rng;
use serde_json::{Value, json};

/// Copies of one message at most.
const COPIES_MAX: u32 = 5;
/// One piece of work in this many is refused.
const PIECES_PER_REFUSED: u32 = 12;
/// One broken body for this many pieces.
const PIECES_PER_BROKEN: u32 = 15;
/// One piece of work in this many ends the process that runs it, each time.
const PIECES_PER_DEADLY: u32 = 20;
/// What good work beside them takes: a batch of ten, one after the other, fits into an invocation.
const POISON_MS: u64 = 300;
/// How many customers the changes of points are shared out to.
const CUSTOMERS: u32 = 12;
/// Half of the copies come within this time of the first one, while it is worked on or hardly done.
const CLOSE: Duration = Duration::from_millis(1_500);
/// What a change of points earns, and the next one of the same customer redeems: booked out of order, it would be refused.
const EARNED: i64 = 100;

/// A function that the storm is let loose on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Orders,
    Payments,
    GiftCards,
    Loyalty,
    /// The tests' worker, whose messages can abort its process: leased, with effects that know no keys.
    Poison,
}

/// How much is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Pieces of work for each function; at least 1.
    pub(crate) pieces: u32,
    /// Everything is sent within this time.
    pub(crate) within: Duration,
}

impl Target {
    pub(crate) const ALL: [Self; 5] = [Self::Orders, Self::Payments, Self::GiftCards, Self::Loyalty, Self::Poison];

    /// The function, by its binary.
    pub(crate) fn function(self) -> &'static str {
        match self {
            Self::Orders => "order-confirmation",
            Self::Payments => "payment",
            Self::GiftCards => "gift-card",
            Self::Loyalty => "loyalty",
            Self::Poison => "poison-worker",
        }
    }

    /// The name of its consumer.
    pub(crate) fn consumer(self) -> &'static str {
        match self {
            Self::Poison => "poison",
            _ => self.function(),
        }
    }

    /// Whether its effects are repeated where a process dies between effect and completion: their systems know no keys.
    pub(crate) fn repeats(self) -> bool {
        matches!(self, Self::Orders | Self::Poison)
    }

    /// Whether its dead letters are moved back: a message that was dead-lettered has lost its place in its group, so that is
    /// for standard queues.
    pub(crate) fn is_redriven(self) -> bool {
        self != Self::Loyalty
    }

    /// The plan of this seed. Every body holds secrets, which start with `secret`, in fields that are no keys.
    pub(crate) fn plan(self, extent: Extent, secret: &str, random: &mut Rng) -> Plan {
        // Of one customer, what comes first is sent first: pieces are made in the order of their first copies.
        let spacing = extent.within / (extent.pieces + 1);
        let pieces: Vec<_> = (0..extent.pieces)
            .map(|i| {
                let piece = self.piece(i, &format!("{secret}{i}"), random);
                let mut times = times(spacing * i, extent.within, random);
                if piece.fate == Fate::Deadly {
                    times.truncate(1);
                }
                (piece, times)
            })
            .collect();
        let broken = (0..(extent.pieces / PIECES_PER_BROKEN).max(3)).map(|i| Planned {
            at: spacing * random.u32(..extent.pieces),
            body: self.broken(i, &format!("{secret}b{i}")),
            // In a group with good ones, which it must not hold up.
            group: customer(i),
        });
        let broken = broken.collect();
        Plan::new(pieces, broken)
    }

    fn piece(self, i: u32, secret: &str, random: &mut Rng) -> Piece {
        let refused = i % PIECES_PER_REFUSED == 7 && self != Self::Poison;
        let deadly = i % PIECES_PER_DEADLY == 7 && self == Self::Poison;
        let cents = 500 + random.u32(..20_000);
        let name = ["slow", "flaky", "unavailable", "ord", "ord", "ord"][random.usize(..6)];
        let (key, group, mut body, effect) = match self {
            Self::Orders => {
                let key = format!("ord-{i}");
                // The local part is a secret, but for what makes the mailbox slow or refuse once.
                let to = if refused { secret.to_owned() } else { format!("{name}-{secret}@example.com") };
                let items = json!([{ "sku": secret, "quantity": 1, "unit_price_cents": cents }]);
                let body = json!({ "order_id": key, "customer_email": to, "items": items, "currency": "EUR" });
                (key.clone(), key, body, to)
            }
            Self::Payments => {
                let key = format!("{}-{i}", if refused { "declined" } else { name });
                let body = json!({ "order_id": key, "amount_cents": cents, "currency": "EUR" });
                (key.clone(), key, body, format!("{cents} EUR"))
            }
            Self::GiftCards => {
                let key = format!("ord-{i}");
                let cents = if refused { 0 } else { cents };
                let body = json!({
                    "order_id": key, "card_id": format!("card-{i}"), "recipient": secret,
                    "amount_cents": cents, "currency": "EUR",
                });
                (key.clone(), key, body, format!("{cents} EUR"))
            }
            Self::Loyalty => {
                let key = format!("chg-{i}");
                // One refused does not count in its customer's turns, so it has a customer of its own.
                let group = if refused { "customer-poor".to_owned() } else { customer(i) };
                let earns = (i / CUSTOMERS).is_multiple_of(2);
                let points = if earns && !refused { EARNED } else { -EARNED };
                let body = json!({ "change_id": key, "customer_id": group, "points": points });
                (key, group, body, format!("{points} points"))
            }
            Self::Poison => {
                let key = format!("work-{i}");
                (
                    key.clone(),
                    key.clone(),
                    json!({ "id": key, "kills": deadly, "takes_ms": POISON_MS }),
                    "done".to_owned(),
                )
            }
        };
        body["note"] = Value::from(secret);
        let fate = match (refused, deadly) {
            (true, _) => Fate::Refused,
            (_, true) => Fate::Deadly,
            _ => Fate::Done,
        };
        Piece { key, group, body: body.to_string(), effect, fate, copies: 1 }
    }

    /// Each kind in turn: no JSON, an object without a key, and one whose field is of the wrong type and holds the secret.
    fn broken(self, i: u32, secret: &str) -> String {
        let field = match self {
            Self::Orders => "items",
            Self::Payments | Self::GiftCards => "amount_cents",
            Self::Loyalty => "points",
            Self::Poison => "kills",
        };
        match i % 3 {
            0 => format!("{secret}: this is not JSON"),
            1 => json!({ "note": secret }).to_string(),
            _ => {
                let id = format!("broken-{i}");
                json!({ "order_id": id, "change_id": id, "customer_id": "c", "currency": "EUR", "card_id": id,
                    "recipient": secret, "customer_email": secret, (field): secret })
                .to_string()
            }
        }
    }
}

fn customer(i: u32) -> String {
    format!("customer-{}", i % CUSTOMERS)
}

/// When the copies of a message are sent, the first one at `first`.
fn times(first: Duration, within: Duration, random: &mut Rng) -> Vec<Duration> {
    let mut times = vec![first];
    for _ in 0..random.u32(..COPIES_MAX) {
        let left = within.saturating_sub(first);
        let later = if random.u32(..2) == 0 { left.min(CLOSE) } else { left };
        let later_ms = u32::try_from(later.as_millis()).unwrap_or(u32::MAX);
        times.push(first + Duration::from_millis(u64::from(random.u32(..later_ms.max(1)))));
    }
    times
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn plan(target: Target, seed: u64) -> Plan {
        let extent = Extent { pieces: 120, within: Duration::from_secs(30) };
        target.plan(extent, "hush-", &mut Rng::with_seed(seed))
    }

    #[test]
    fn plans_have_what_they_need() {
        for target in Target::ALL {
            let Plan { pieces, broken, messages } = plan(target, 7);
            assert_eq!((pieces.len(), broken.len()), (120, 8), "{target:?}");
            assert_eq!(broken.iter().collect::<BTreeSet<_>>().len(), 8, "{target:?}");
            let count = |fate| pieces.iter().filter(|piece| piece.fate == fate).count();
            let wanted = if target == Target::Poison { (0, 6) } else { (10, 0) };
            assert_eq!((count(Fate::Refused), count(Fate::Deadly)), wanted, "{target:?}");
            let copies: u32 = pieces.iter().map(|piece| piece.copies).sum();
            assert_eq!(messages.len(), copies as usize + 8, "{target:?}");
            assert!((1..=COPIES_MAX).all(|copies| pieces.iter().any(|piece| piece.copies == copies)), "{target:?}");
            assert!(messages.is_sorted_by_key(|m| m.at) && messages.iter().all(|m| m.at < Duration::from_secs(30)));
            assert!(messages.iter().all(|message| message.body.contains("hush-")), "{target:?}");
            assert!(pieces.iter().all(|p| !p.key.contains("hush-") && !p.group.contains("hush-")), "{target:?}");
            let keys: BTreeSet<_> = pieces.iter().map(|piece| &piece.key).collect();
            assert_eq!(keys.len(), 120, "{target:?}");
        }
    }

    #[test]
    fn a_seed_decides_everything() {
        assert_eq!(plan(Target::Loyalty, 1), plan(Target::Loyalty, 1));
        assert_ne!(plan(Target::Loyalty, 1), plan(Target::Loyalty, 2));
    }

    #[test]
    fn customers_redeem_what_they_earned_before() {
        let plan = plan(Target::Loyalty, 7);
        let mut sent = BTreeSet::new();
        let mut balances = BTreeMap::new();
        for message in &plan.messages {
            let Some(piece) = plan.pieces.iter().find(|piece| piece.body == message.body) else { continue };
            if !sent.insert(&piece.key) || piece.fate == Fate::Refused {
                continue;
            }
            let points: i64 = piece.effect.strip_suffix(" points").unwrap().parse().unwrap();
            let balance = balances.entry(&piece.group).or_insert(0);
            *balance += points;
            assert!(*balance >= 0, "{}", piece.key);
        }
    }
}
