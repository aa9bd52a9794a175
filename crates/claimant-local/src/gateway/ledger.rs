//! What is charged, without a network: one decision for each request.

use std::collections::{HashMap, HashSet};

use super::charge::{Charge, Order};

/// Charges made at most; then every new one is refused with 503. None is forgotten, since it would be made twice.
pub const CHARGES_MAX: usize = 100_000;
/// `unavailable…` references remembered as refused once; past it all are forgotten, and refused once more.
const UNAVAILABLE_MAX: usize = 100_000;

/// Every charge, and who asked for it.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    charges: Vec<Charge>,
    /// Indexes in `charges`.
    by_key: HashMap<String, usize>,
    /// Charges of each reference.
    by_reference: HashMap<String, u32>,
    refused_once: HashSet<String>,
    requests: u64,
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The receipt.
    Receipt(Charge),
    /// The receipt, later.
    Late(Charge),
    /// It was charged, and the connection closes without an answer.
    AnswerLost,
    Declined,
    Unavailable,
    /// The key belongs to another charge.
    OtherCharge,
    Full,
}

impl Verdict {
    /// Whether the answer is a receipt, now or later.
    pub(super) fn is_receipt(&self) -> bool {
        matches!(self, Self::Receipt(_) | Self::Late(_))
    }

    /// The verdict in a word.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Receipt(charge) if charge.requests > 1 => "repeated",
            Self::Receipt(_) | Self::Late(_) => "charged",
            Self::AnswerLost => "answer_lost",
            Self::Declined => "declined",
            Self::Unavailable => "unavailable",
            Self::OtherCharge => "key_reused",
            Self::Full => "full",
        }
    }
}

impl Ledger {
    pub(super) fn charges(&self) -> &[Charge] {
        &self.charges
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Counts a request and decides it; without a key, each one is a charge of its own.
    pub(super) fn decide(&mut self, order: Order, key: Option<String>) -> Verdict {
        self.requests += 1;
        let earlier = key.as_ref().and_then(|key| self.by_key.get(key)).and_then(|index| self.charges.get_mut(*index));
        if let Some(charge) = earlier {
            if charge.order != order {
                return Verdict::OtherCharge;
            }
            charge.requests += 1;
            return Verdict::Receipt(charge.clone());
        }
        if order.reference.starts_with("declined") {
            return Verdict::Declined;
        }
        if order.reference.starts_with("unavailable") && self.refuse_first(&order.reference) {
            return Verdict::Unavailable;
        }
        if self.charges.len() >= CHARGES_MAX {
            return Verdict::Full;
        }
        let so_far = self.by_reference.entry(order.reference.clone()).or_default();
        *so_far += 1;
        let first = *so_far == 1;
        let charge = self.charge(order, key);
        match charge.order.reference.as_str() {
            reference if reference.starts_with("flaky") && first => Verdict::AnswerLost,
            reference if reference.starts_with("slow") && first => Verdict::Late(charge),
            _ => Verdict::Receipt(charge),
        }
    }

    fn charge(&mut self, order: Order, key: Option<String>) -> Charge {
        let charge_id = format!("ch_{}", uuid::Uuid::new_v4().simple());
        if let Some(key) = &key {
            self.by_key.insert(key.clone(), self.charges.len());
        }
        let charge = Charge { charge_id, order, key, requests: 1 };
        self.charges.push(charge.clone());
        charge
    }

    /// True the first time a reference is seen.
    fn refuse_first(&mut self, reference: &str) -> bool {
        if self.refused_once.len() >= UNAVAILABLE_MAX {
            self.refused_once.clear();
        }
        self.refused_once.insert(reference.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(reference: &str, amount_cents: u64) -> Order {
        Order { amount_cents, currency: "EUR".into(), reference: reference.into() }
    }

    fn word(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Receipt(_) => "receipt",
            Verdict::Late(_) => "late",
            Verdict::AnswerLost => "lost",
            Verdict::Declined => "declined",
            Verdict::Unavailable => "unavailable",
            Verdict::OtherCharge => "other",
            Verdict::Full => "full",
        }
    }

    #[test]
    fn the_reference_decides_and_a_key_charges_once() {
        // (reference, what three requests with one key get, charges; what three without a key get, charges)
        let table = [
            ("ord-1", "receipt receipt receipt", 1, "receipt receipt receipt", 3),
            ("flaky-1", "lost receipt receipt", 1, "lost receipt receipt", 3),
            ("slow-1", "late receipt receipt", 1, "late receipt receipt", 3),
            ("unavailable-1", "unavailable receipt receipt", 1, "unavailable receipt receipt", 2),
            ("declined-1", "declined declined declined", 0, "declined declined declined", 0),
        ];
        for (reference, keyed, charged, keyless, charged_keyless) in table {
            for (key, expected, charges) in [(Some("k".to_owned()), keyed, charged), (None, keyless, charged_keyless)] {
                let mut ledger = Ledger::default();
                let seen: Vec<_> = (0..3).map(|_| word(&ledger.decide(order(reference, 1), key.clone()))).collect();
                assert_eq!(seen.join(" "), expected, "{reference} {key:?}");
                assert_eq!((ledger.charges().len(), ledger.requests()), (charges, 3), "{reference} {key:?}");
            }
        }
    }

    #[test]
    fn a_key_belongs_to_its_charge_and_repeats_its_receipt() {
        let mut ledger = Ledger::default();
        let key = || Some("k".to_owned());
        let Verdict::Receipt(first) = ledger.decide(order("ord-1", 5), key()) else { panic!("charged") };
        let Verdict::Receipt(again) = ledger.decide(order("ord-1", 5), key()) else { panic!("the receipt") };
        assert_eq!((again.requests, &again.charge_id), (2, &first.charge_id));
        assert_eq!(ledger.decide(order("ord-1", 6), key()), Verdict::OtherCharge);
        assert_eq!(ledger.charges().len(), 1);
    }

    #[test]
    fn a_full_ledger_refuses_and_forgets_nothing() {
        let mut ledger = Ledger::default();
        for n in 0..CHARGES_MAX {
            ledger.decide(order("ord-1", 1), Some(n.to_string()));
        }
        assert_eq!(ledger.decide(order("ord-1", 1), Some("one more".into())), Verdict::Full);
        assert!(matches!(ledger.decide(order("ord-1", 1), Some("0".into())), Verdict::Receipt(_)));
        assert_eq!(ledger.charges().len(), CHARGES_MAX);
    }
}
