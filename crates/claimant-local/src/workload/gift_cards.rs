//! Orders for `gift-card`: some of an amount that no card may have.

use std::collections::BTreeMap;

use serde_json::json;

use super::plan::{Fate, Piece, Plan, Random, Repeat, Request};
use super::sample::{Effect, Look, Sample, Seen, variable_of};
use crate::cloud::Services;
use crate::stack::FunctionSpec;

/// One order in this many is refused.
const ORDERS_PER_REFUSED: u32 = 20;

/// The variables that name where a function keeps them.
const CARDS: &str = "GIFT_CARD_TABLE";
const LEDGER: &str = "GIFT_CARD_LEDGER_TABLE";

/// The sample for `gift-card`.
pub(super) struct GiftCards;

impl Sample for GiftCards {
    fn function(&self) -> &'static str {
        "gift-card"
    }

    fn effects(&self) -> &'static str {
        "cards"
    }

    fn kept_in(&self) -> &'static [&'static str] {
        &[CARDS, LEDGER]
    }

    fn all_well(&self, _: &FunctionSpec) -> &'static str {
        "Every order got exactly one gift card, with its entry in the ledger."
    }

    fn plan(&self, request: Request, _: &FunctionSpec) -> Plan {
        request.plan(order, &[other_fields])
    }

    /// Every card, with the amount that the ledger says of its order; and every entry without a card.
    fn look<'a>(&'a self, services: &'a Services, function: &'a FunctionSpec) -> Look<'a> {
        Box::pin(async move {
            let cards = services.dynamodb.items(variable_of(function, CARDS)?)?;
            let ledger = services.dynamodb.items(variable_of(function, LEDGER)?)?;
            let names = |item: &crate::dynamodb::Item| {
                Some((item.text("order_id")?.to_owned(), item.text("card_id")?.to_owned()))
            };
            let entry = |item: &crate::dynamodb::Item| Some((names(item)?, item.number("amount_cents")));
            let mut entries: BTreeMap<_, _> = ledger.iter().filter_map(entry).collect();
            let mut effects = Vec::new();
            for (order, card) in cards.iter().filter_map(names) {
                let cents = entries.remove(&(order.clone(), card)).flatten();
                let what = cents.map_or_else(|| "a card without an entry".to_owned(), |cents| format!("{cents} EUR"));
                effects.push(Effect { key: order, what });
            }
            let without = "an entry without a card";
            effects.extend(entries.into_keys().map(|(order, _)| Effect { key: order, what: without.to_owned() }));
            let tries = effects.len() as u64;
            Ok(Seen { effects, tries, ..Seen::default() })
        })
    }
}

fn order(i: u32, number: u64, random: &mut Random) -> (Piece, Repeat) {
    let refused = i % ORDERS_PER_REFUSED == 7;
    let (fate, amount_cents) = if refused { (Fate::Refused, 0) } else { (Fate::Done, 1_000 * (1 + random.below(10))) };
    let key = format!("ord-{number}");
    let body = json!({
        "order_id": key,
        "card_id": format!("card-{number}"),
        "recipient": format!("friend-{number}@example.com"),
        "amount_cents": amount_cents,
        "currency": "EUR",
    });
    let effect = format!("{amount_cents} EUR");
    (Piece { group: key.clone(), key, body: body.to_string(), effect, fate, copies: 1 }, Repeat::Usual)
}

fn other_fields(number: u64) -> String {
    json!({ "order_id": format!("ord-{number}"), "card": { "amount": 10 } }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_orders_are_refused() {
        let plan = Request::after(std::iter::empty(), 60, 7).plan(order, &[]);
        assert_eq!(plan.pieces.iter().filter(|piece| piece.fate == Fate::Refused).count(), 3);
    }
}
