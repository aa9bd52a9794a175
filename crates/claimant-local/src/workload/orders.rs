//! Orders for `order-confirmation`: some addresses refuse their first mail, and some answer late.

use serde_json::{Value, json};

use super::plan::{Fate, Piece, Plan, Random, Repeat, Request};
use super::sample::{Effect, Look, Sample, Seen};
use crate::Error;
use crate::cloud::Services;
use crate::mailbox::{ACCEPTED_MAX, Accepted};
use crate::stack::FunctionSpec;

/// One address that refuses its first mail for this many orders, and at least one.
const ORDERS_PER_FLAKY: u32 = 20;
/// One address that answers late for this many orders, and at least one where there are two orders.
/// A multiple of 3, so that those orders are among the repeated ones.
const ORDERS_PER_SLOW: u32 = 60;

const CUSTOMERS: [&str; 8] = ["ada", "barbara", "edsger", "grace", "hedy", "katherine", "leslie", "radia"];
const GOODS: [(&str, u32); 6] = [
    ("tea-assam-250g", 890),
    ("tea-earl-grey-100g", 640),
    ("teapot-stoneware", 3_450),
    ("cup-porcelain", 1_250),
    ("strainer-steel", 720),
    ("honey-linden-500g", 1_080),
];

/// The sample for `order-confirmation`.
pub(super) struct Orders;

impl Sample for Orders {
    fn function(&self) -> &'static str {
        "order-confirmation"
    }

    fn effects(&self) -> &'static str {
        "mails"
    }

    fn all_well(&self, _: &FunctionSpec) -> &'static str {
        "Every order got exactly one mail."
    }

    fn plan(&self, request: Request, _: &FunctionSpec) -> Plan {
        request.plan(|i, number, random| order(i, number, request.count, random), &[other_fields, no_id])
    }

    fn look<'a>(&'a self, services: &'a Services, _: &'a FunctionSpec) -> Look<'a> {
        Box::pin(async move { mails(services) })
    }
}

/// Every mail, whichever function sent it.
///
/// # Errors
/// When more were sent than the mailbox can tell of.
pub(super) fn mails(services: &Services) -> Result<Seen, Error> {
    let Some(accepted) = services.mailbox.accepted() else {
        return Err(Error::new(format!(
            "the local mailbox tells of its first {ACCEPTED_MAX} mails only, and has accepted {}: restart the local cloud",
            services.mailbox.received()
        )));
    };
    let effects = accepted.into_iter().map(|Accepted { key, to }| Effect { key, what: to });
    Ok(Seen { effects: effects.collect(), tries: services.mailbox.attempts(), ..Seen::default() })
}

fn order(i: u32, number: u64, count: u32, random: &mut Random) -> (Piece, Repeat) {
    let (name, repeat) = match i {
        _ if i % ORDERS_PER_SLOW == 1 => ("slow", Repeat::MeanWhile),
        _ if i % ORDERS_PER_FLAKY == 5 || (i == 0 && count <= 5) => ("flaky", Repeat::AtOnce),
        _ => (CUSTOMERS[random.index(CUSTOMERS.len())], Repeat::Usual),
    };
    let (key, customer_email) = (format!("ord-{number}"), format!("{name}-{number}@example.com"));
    let items: Vec<_> = (0..1 + random.below(3)).map(|_| item(random)).collect();
    let body = body(&key, &customer_email, &items);
    (Piece { group: key.clone(), key, body, effect: customer_email, fate: Fate::Done, copies: 1 }, repeat)
}

fn item(random: &mut Random) -> Value {
    let (sku, unit_price_cents) = GOODS[random.index(GOODS.len())];
    json!({ "sku": sku, "quantity": 1 + random.below(4), "unit_price_cents": unit_price_cents })
}

fn body(order_id: &str, customer_email: &str, items: &[Value]) -> String {
    let order = json!({ "order_id": order_id, "customer_email": customer_email, "items": items, "currency": "EUR" });
    order.to_string()
}

fn other_fields(number: u64) -> String {
    json!({ "order_id": number, "customer": { "email": "ada@example.com" } }).to_string()
}

fn no_id(number: u64) -> String {
    body("", &format!("nobody-{number}@example.com"), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_whole_and_some_are_difficult() {
        // (orders, flaky, slow)
        for (count, flaky, slow) in [(1, 1, 0), (2, 1, 1), (60, 3, 1), (300, 15, 5)] {
            let request = Request::after(std::iter::empty(), count, 7);
            let plan = request.plan(|i, number, random| order(i, number, count, random), &[]);
            let of = |name| plan.pieces.iter().filter(|piece| piece.effect.starts_with(name)).count();
            assert_eq!((of("flaky"), of("slow")), (flaky, slow), "{count}");
            assert!(plan.pieces.iter().filter(|piece| piece.effect.starts_with("slow")).all(|piece| piece.copies > 1));
            for piece in &plan.pieces {
                let body: Value = serde_json::from_str(&piece.body).unwrap();
                assert_eq!((&body["order_id"], &body["customer_email"]), (&json!(piece.key), &json!(piece.effect)));
                assert!(body["items"][0]["unit_price_cents"].is_u64());
            }
        }
    }
}
