//! Changes of points for `loyalty`, each customer's in their order: a customer earns before redeeming, and some want to
//! redeem more than there is.

use std::collections::BTreeMap;

use serde_json::json;

use super::plan::{Fate, Piece, Plan, Random, Repeat, Request};
use super::sample::{Effect, Look, Sample, Seen, variable_of};
use crate::cloud::Services;
use crate::stack::FunctionSpec;

/// How many customers the changes are shared out to.
const CUSTOMERS: u64 = 8;
/// Every so many of a customer's changes redeems what the one before it earned.
const CHANGES_PER_REDEMPTION: u64 = 3;
/// One change in this many asks for more than there is.
const CHANGES_PER_REFUSED: u32 = 20;

const EARNED: i64 = 100;
const TOO_MANY: i64 = 1_000_000;

/// The variable that names where a function keeps them.
const KEPT_IN: &str = "LOYALTY_TABLE";

/// The sample for `loyalty`.
pub(super) struct Loyalty;

impl Sample for Loyalty {
    fn function(&self) -> &'static str {
        "loyalty"
    }

    fn effects(&self) -> &'static str {
        "bookings"
    }

    fn kept_in(&self) -> &'static [&'static str] {
        &[KEPT_IN]
    }

    fn all_well(&self, _: &FunctionSpec) -> &'static str {
        "Every change of points was booked exactly once, in its customer's order."
    }

    fn plan(&self, request: Request, _: &FunctionSpec) -> Plan {
        let first = request.first;
        request.plan(|i, number, random| change(i, number, first, random), &[other_fields])
    }

    /// Every change's entry; and what is wrong with a balance that is not the sum of its entries.
    fn look<'a>(&'a self, services: &'a Services, function: &'a FunctionSpec) -> Look<'a> {
        Box::pin(async move {
            let items = services.dynamodb.items(variable_of(function, KEPT_IN)?)?;
            let (mut effects, mut missing) = (Vec::new(), BTreeMap::new());
            for item in &items {
                let (Some(customer), Some(entry)) = (item.text("customer_id"), item.text("entry")) else { continue };
                let points = item.number("points").unwrap_or_default();
                let change = entry.strip_prefix("change#");
                *missing.entry(customer.to_owned()).or_insert(0) += if change.is_some() { points } else { -points };
                if let Some(key) = change {
                    effects.push(Effect { key: key.to_owned(), what: format!("{points} points") });
                }
            }
            for (customer, points) in missing.into_iter().filter(|(_, points)| *points != 0) {
                effects.push(Effect { key: customer, what: format!("a balance that lacks {points} points") });
            }
            let tries = effects.len() as u64;
            Ok(Seen { effects, tries, ..Seen::default() })
        })
    }
}

fn change(i: u32, number: u64, first: u64, _: &mut Random) -> (Piece, Repeat) {
    let place = number - first;
    // The first number tells the customers of one run from those of the next on the same data.
    let group = format!("customer-{first}-{}", place % CUSTOMERS);
    let redeems = (place / CUSTOMERS) % CHANGES_PER_REDEMPTION == CHANGES_PER_REDEMPTION - 1;
    let (fate, points) = match (i % CHANGES_PER_REFUSED, redeems) {
        (11, _) => (Fate::Refused, -TOO_MANY),
        (_, true) => (Fate::Done, -EARNED / 2),
        (_, false) => (Fate::Done, EARNED),
    };
    let key = format!("chg-{number}");
    let body = json!({ "change_id": key, "customer_id": group, "points": points }).to_string();
    (Piece { group, key, body, effect: format!("{points} points"), fate, copies: 1 }, Repeat::Usual)
}

fn other_fields(number: u64) -> String {
    json!({ "change_id": format!("chg-{number}"), "customer_id": "ada", "points": "many" }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn customers_never_redeem_more_than_they_earned_but_where_they_are_refused() {
        let request = Request::after(std::iter::empty(), 100, 7);
        let plan = request.plan(|i, number, random| change(i, number, request.first, random), &[]);
        let mut balances = BTreeMap::new();
        for piece in plan.pieces.iter().filter(|piece| piece.fate == Fate::Done) {
            let points: i64 = piece.effect.strip_suffix(" points").unwrap().parse().unwrap();
            let balance = balances.entry(&piece.group).or_insert(0);
            *balance += points;
            assert!(*balance >= 0, "{piece:?}");
        }
        assert_eq!(
            (balances.len() as u64, plan.pieces.iter().filter(|p| p.fate == Fate::Refused).count()),
            (CUSTOMERS, 5)
        );
    }
}
