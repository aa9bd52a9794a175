//! Payments for `payment`: the gateway loses some answers, is not available at first, answers late, or declines.

use serde_json::json;

use super::plan::{Fate, Piece, Plan, Random, Repeat, Request};
use super::sample::{Effect, Look, Sample, Seen};
use crate::cloud::Services;
use crate::gateway::{Charge, Order};
use crate::stack::FunctionSpec;

/// The variable that says whether the gateway knows keys.
const DEDUPLICATES_VARIABLE: &str = "GATEWAY_DEDUPLICATES";
/// One payment of each difficult kind for this many, where there are as many.
const PAYMENTS_PER_KIND: u32 = 20;
/// One late answer for this many payments. A multiple of 3, so that those are among the repeated ones.
const PAYMENTS_PER_SLOW: u32 = 60;

/// The sample for `payment`.
pub(super) struct Payments;

impl Sample for Payments {
    fn function(&self) -> &'static str {
        "payment"
    }

    fn effects(&self) -> &'static str {
        "charges"
    }

    fn all_well(&self, function: &FunctionSpec) -> &'static str {
        if deduplicates(function) {
            "Every payment was charged exactly once, and no declined one."
        } else {
            "No payment was charged twice; those in doubt are parked."
        }
    }

    fn plan(&self, request: Request, function: &FunctionSpec) -> Plan {
        let in_doubt = if deduplicates(function) { Fate::Done } else { Fate::InDoubt };
        request.plan(|i, number, random| payment(i, number, in_doubt, random), &[other_fields])
    }

    fn look<'a>(&'a self, services: &'a Services, _: &'a FunctionSpec) -> Look<'a> {
        Box::pin(async move { Ok(charges(services)) })
    }
}

/// Every charge, whichever function made it.
pub(super) fn charges(services: &Services) -> Seen {
    let charges = services.gateway.charges().into_iter().map(|charge| {
        let Charge { order: Order { amount_cents, currency, reference }, key, .. } = charge;
        // The gateway that knows no keys has only the reference.
        Effect { key: key.unwrap_or(reference), what: format!("{amount_cents} {currency}") }
    });
    Seen { effects: charges.collect(), tries: services.gateway.requests(), ..Seen::default() }
}

fn deduplicates(function: &FunctionSpec) -> bool {
    function.environment.get(DEDUPLICATES_VARIABLE).is_none_or(|value| value != "no")
}

/// `in_doubt` is the fate of a payment whose first answer is lost or says nothing.
fn payment(i: u32, number: u64, in_doubt: Fate, random: &mut Random) -> (Piece, Repeat) {
    let (name, fate, repeat) = match i % PAYMENTS_PER_KIND {
        _ if i % PAYMENTS_PER_SLOW == 1 => ("slow", Fate::Done, Repeat::MeanWhile),
        4 | 10 => ("flaky", in_doubt, Repeat::Usual),
        7 => ("unavailable", in_doubt, Repeat::Usual),
        13 => ("declined", Fate::Refused, Repeat::Usual),
        _ => ("ord", Fate::Done, Repeat::Usual),
    };
    let (key, amount_cents) = (format!("{name}-{number}"), 500 + random.below(20_000));
    let body = json!({ "order_id": key, "amount_cents": amount_cents, "currency": "EUR" }).to_string();
    (Piece { group: key.clone(), key, body, effect: format!("{amount_cents} EUR"), fate, copies: 1 }, repeat)
}

fn other_fields(number: u64) -> String {
    json!({ "order_id": format!("ord-{number}"), "amount": "12.50 EUR" }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payments_have_every_kind_of_answer() {
        for in_doubt in [Fate::Done, Fate::InDoubt] {
            let request = Request::after(std::iter::empty(), 60, 7);
            let plan = request.plan(|i, number, random| payment(i, number, in_doubt, random), &[]);
            let of =
                |name: &str, fate| plan.pieces.iter().filter(|p| p.key.starts_with(name) && p.fate == fate).count();
            assert_eq!((of("flaky", in_doubt), of("unavailable", in_doubt)), (6, 3));
            assert_eq!((of("declined", Fate::Refused), of("slow", Fate::Done), of("ord", Fate::Done)), (3, 1, 47));
        }
    }
}
