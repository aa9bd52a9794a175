//! The messages of a sample workload: the same seed gives the same ones.

use std::time::Duration;

use serde_json::{Value, json};

/// Orders of one workload at most: as many as the mailbox keeps mails.
pub const ORDERS_MAX: u32 = 10_000;

/// The number of the first order on an empty lock table.
const FIRST_NUMBER: u64 = 1_001;
/// No order of a workload has this number or a higher one; so numbers never overflow.
const NUMBER_MAX: u64 = 1_000_000_000_000;
/// One broken body for this many orders, and at least one of each kind.
const ORDERS_PER_BROKEN: u32 = 15;
/// One address that refuses its first mail for this many orders, and at least one.
const ORDERS_PER_FLAKY: u32 = 20;
/// One address that answers late for this many orders, and at least one where there are two orders.
/// A multiple of 3, so that those orders are among the repeated ones.
const ORDERS_PER_SLOW: u32 = 60;
/// Between the first copies of two orders, at most.
const SPACING_MAX: Duration = Duration::from_millis(25);
/// From the first copy of the first order to that of the last, at most.
const SPREAD_MAX: Duration = Duration::from_secs(30);
/// How deep the nested broken body goes: past what JSON parsers follow.
const NESTED_DEPTH: usize = 5_000;

/// An order that is to be confirmed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The order's id: the key of the work.
    pub order_id: String,
    /// Who gets the mail.
    pub customer_email: String,
    /// How many times the message is sent.
    pub copies: u32,
}

/// One message to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// When, from the start of the run.
    pub at: Duration,
    /// What.
    pub body: String,
    /// The place in [`Workload::orders`]; `None` for a broken body.
    pub order: Option<usize>,
}

/// Orders and the messages that carry them, in the order of sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// The orders, by number.
    pub orders: Vec<Order>,
    /// The messages, by time.
    pub messages: Vec<Planned>,
}

impl Workload {
    /// A workload of `orders` orders (1 to [`ORDERS_MAX`], cut to that).
    ///
    /// `known` are the ids of records that are in the lock table already: the new orders get higher numbers, since a
    /// number used before would rightly be taken for a duplicate.
    pub fn sample<'a>(orders: u32, seed: u64, known: impl IntoIterator<Item = &'a str>) -> Self {
        let count = orders.clamp(1, ORDERS_MAX);
        let first = known.into_iter().filter_map(order_number).max();
        let first = first.map_or(FIRST_NUMBER, |highest| (highest + 1).max(FIRST_NUMBER));
        let mut random = Random(seed);
        let spacing = SPACING_MAX.min(SPREAD_MAX / count);
        let mut workload = Self { orders: Vec::new(), messages: Vec::new() };
        for i in 0..count {
            workload.add_order(first + u64::from(i), spacing * i, Role::of(i, count), &mut random);
        }
        let broken = (count / ORDERS_PER_BROKEN).max(4);
        for i in 0..broken {
            let at = spacing * random.below(count);
            let body = broken_body(i, first + u64::from(i));
            workload.messages.push(Planned { at, body, order: None });
        }
        workload.messages.sort_by_key(|message| message.at);
        workload
    }

    /// The broken bodies, each different from every other.
    pub fn broken(&self) -> impl Iterator<Item = &str> {
        let broken = self.messages.iter().filter(|message| message.order.is_none());
        broken.map(|message| message.body.as_str())
    }

    fn add_order(&mut self, number: u64, at: Duration, role: Role, random: &mut Random) {
        let order_id = format!("ord-{number}");
        let name = match role.mail {
            MailTo::Flaky => "flaky",
            MailTo::Slow => "slow",
            MailTo::Prompt => CUSTOMERS[random.index(CUSTOMERS.len())],
        };
        let customer_email = format!("{name}-{number}@example.com");
        let items: Vec<_> = (0..1 + random.below(3)).map(|_| item(random)).collect();
        let body = order_body(&order_id, &customer_email, &items);

        let mut times = vec![at];
        if role.repeated {
            let close = match role.mail {
                // While the first copy waits for its late answer.
                MailTo::Slow => at + Duration::from_millis(500),
                MailTo::Prompt | MailTo::Flaky => at + Duration::from_millis(u64::from(random.below(30))),
            };
            let late = at + Duration::from_millis(1_500 + u64::from(random.below(1_500)));
            match random.below(3) {
                0 if role.mail == MailTo::Prompt => times.push(late),
                1 => times.extend([close, late]),
                _ => times.push(close),
            }
        }
        let order = Some(self.orders.len());
        self.orders.push(Order {
            order_id,
            customer_email,
            copies: u32::try_from(times.len()).expect("at most three copies"),
        });
        let copies = times.into_iter().map(|at| Planned { at, body: body.clone(), order });
        self.messages.extend(copies);
    }
}

/// What is special about an order.
#[derive(Debug, Clone, Copy)]
struct Role {
    /// Sent two or three times.
    repeated: bool,
    mail: MailTo,
}

/// How the mailbox treats the order's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MailTo {
    Prompt,
    /// The first mail is refused.
    Flaky,
    /// The mail is answered late.
    Slow,
}

impl Role {
    /// Every third order is sent more than once, the slow ones and some of the flaky ones among them.
    fn of(i: u32, count: u32) -> Self {
        let mail = match i {
            _ if i % ORDERS_PER_SLOW == 1 => MailTo::Slow,
            _ if i % ORDERS_PER_FLAKY == 5 || (i == 0 && count <= 5) => MailTo::Flaky,
            _ => MailTo::Prompt,
        };
        Self { repeated: i % 3 == 1, mail }
    }
}

const CUSTOMERS: [&str; 8] = ["ada", "barbara", "edsger", "grace", "hedy", "katherine", "leslie", "radia"];
const GOODS: [(&str, u32); 6] = [
    ("tea-assam-250g", 890),
    ("tea-earl-grey-100g", 640),
    ("teapot-stoneware", 3_450),
    ("cup-porcelain", 1_250),
    ("strainer-steel", 720),
    ("honey-linden-500g", 1_080),
];

fn item(random: &mut Random) -> Value {
    let (sku, unit_price_cents) = GOODS[random.index(GOODS.len())];
    json!({ "sku": sku, "quantity": 1 + random.below(4), "unit_price_cents": unit_price_cents })
}

fn order_body(order_id: &str, customer_email: &str, items: &[Value]) -> String {
    let order = json!({ "order_id": order_id, "customer_email": customer_email, "items": items, "currency": "EUR" });
    order.to_string()
}

/// The kinds in turn; `number` makes each body one of its own.
fn broken_body(i: u32, number: u64) -> String {
    match i % 4 {
        0 => format!("order {number}: this is not JSON"),
        1 => json!({ "order_id": number, "customer": { "email": "ada@example.com" } }).to_string(),
        2 => order_body("", &format!("nobody-{number}@example.com"), &[]),
        _ => format!(
            r#"{{"order_id":"ord-nested-{number}","customer_email":"ada@example.com","items":{}{},"currency":"EUR"}}"#,
            "[".repeat(NESTED_DEPTH),
            "]".repeat(NESTED_DEPTH)
        ),
    }
}

/// The number at the end of a record's id, if it is that of an order of a workload.
fn order_number(record_id: &str) -> Option<u64> {
    let number = record_id.rsplit_once("ord-")?.1.parse().ok()?;
    (number < NUMBER_MAX).then_some(number)
}

/// SplitMix64: small, and the same everywhere. Not for secrets.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is not 0. The bias is below 2⁻³², and nothing depends on it.
    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound)).expect("less than a u32")
    }

    fn index(&mut self, len: usize) -> usize {
        let bound = u32::try_from(len).expect("a short list");
        usize::try_from(self.below(bound)).expect("less than len")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn shapes() {
        // (orders, sent more than once, flaky, broken)
        let table = [(1, 0, 1, 4), (2, 1, 1, 4), (60, 20, 3, 4), (300, 100, 15, 20), (0, 0, 1, 4)];
        for (orders, repeated, flaky, broken) in table {
            let workload = Workload::sample(orders, 7, []);
            let sent_again = workload.orders.iter().filter(|order| order.copies > 1).count();
            let first_refused = workload.orders.iter().filter(|o| o.customer_email.starts_with("flaky"));
            assert_eq!(workload.orders.len(), orders.max(1) as usize, "{orders}");
            assert_eq!(sent_again, repeated, "{orders}: repeated");
            assert_eq!(first_refused.count(), flaky, "{orders}: flaky");
            assert_eq!(workload.broken().collect::<BTreeSet<_>>().len(), broken, "{orders}: broken");
            let copies: u32 = workload.orders.iter().map(|order| order.copies).sum();
            assert_eq!(workload.messages.len(), copies as usize + broken, "{orders}: messages");
            assert!(workload.messages.is_sorted_by_key(|message| message.at));
            for (i, order) in workload.orders.iter().enumerate() {
                let sent = workload.messages.iter().filter(|message| message.order == Some(i));
                assert_eq!(sent.count(), order.copies as usize, "{}", order.order_id);
            }
        }
    }

    #[test]
    fn a_seed_decides_everything() {
        assert_eq!(Workload::sample(60, 1, []), Workload::sample(60, 1, []));
        assert_ne!(Workload::sample(60, 1, []), Workload::sample(60, 2, []));
    }

    #[test]
    fn numbers_go_on_where_the_lock_table_ends() {
        let table: [(&[&str], &str); 4] = [
            (&[], "ord-1001"),
            (&["order-confirmation#ord-1060", "order-confirmation#ord-1002"], "ord-1061"),
            (&["other#x", "ord-7"], "ord-1001"),
            (&["c#ord-nested-9"], "ord-1001"),
        ];
        for (known, expected) in table {
            let workload = Workload::sample(3, 1, known.iter().copied());
            assert_eq!(workload.orders[0].order_id, expected, "{known:?}");
        }
    }

    #[test]
    fn bodies() {
        let workload = Workload::sample(60, 1, []);
        for message in &workload.messages {
            let parsed = serde_json::from_str::<Value>(&message.body);
            match message.order {
                Some(i) => {
                    let parsed = parsed.unwrap();
                    assert_eq!(parsed["order_id"], workload.orders[i].order_id);
                    assert_eq!(parsed["customer_email"], workload.orders[i].customer_email);
                    assert!(parsed["items"][0]["unit_price_cents"].is_u64());
                }
                None => assert!(
                    parsed.is_err() || !message.body.contains("\"order_id\":\"ord-"),
                    "{} bytes",
                    message.body.len()
                ),
            }
        }
    }
}
