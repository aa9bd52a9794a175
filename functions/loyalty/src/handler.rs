//! The business: a change of points is booked on its customer's balance, with an entry of its own.
//!
//! `ADD` is what must never be repeated: booked twice, it counts twice. Here it commits together with the completion of the
//! change's key, so it is booked exactly when the change is completed.

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{AttributeValue, Put, Update};
use claimant::dynamodb::Transaction;
use claimant::{Context, HandlerError, Terminal, TransactionGuard, TransactionalHandler};
use serde::Deserialize;

/// The most points of one change, earned or redeemed.
const POINTS_MAX: u64 = 1_000_000;

/// The longest id, in bytes: a table's sort key holds 1,024.
const ID_MAX_BYTES: usize = 256;

/// The sort key of a customer's balance. Those of changes are `change#` and the id.
const BALANCE: &str = "balance";

/// A change of a customer's points, as the shop sends it.
#[derive(Debug, Deserialize)]
pub(crate) struct Change {
    pub(crate) change_id: String,
    /// Also the message's group, so that a customer's changes are booked in their order.
    customer_id: String,
    /// Earned, or redeemed where negative.
    points: i64,
}

/// The table of balances and changes.
#[derive(Debug)]
pub(crate) struct Books {
    table: String,
}

impl Books {
    pub(crate) fn new(table: String) -> Self {
        Self { table }
    }

    /// The customer's balance, changed; never below zero. A customer without one has no points to redeem, and gets one with
    /// the first points earned.
    fn balance(&self, change: &Change) -> Result<Update, BuildError> {
        let update = Update::builder()
            .table_name(&self.table)
            .key("customer_id", text(&change.customer_id))
            .key("entry", text(BALANCE))
            .update_expression("ADD points :points")
            .expression_attribute_values(":points", number(change.points));
        if change.points >= 0 {
            return update.build();
        }
        // A comparison with an attribute that is not there does not hold.
        let redeemed = AttributeValue::N(change.points.unsigned_abs().to_string());
        update.condition_expression("points >= :redeemed").expression_attribute_values(":redeemed", redeemed).build()
    }

    /// The change's own entry, which outlasts the window of the lock table.
    fn entry(&self, change: &Change) -> Result<Put, BuildError> {
        Put::builder()
            .table_name(&self.table)
            .item("customer_id", text(&change.customer_id))
            .item("entry", text(&format!("change#{}", change.change_id)))
            .item("points", number(change.points))
            .condition_expression("attribute_not_exists(customer_id)")
            .build()
    }
}

/// Books a change: says what is to be written. It is written once this has returned `Ok`, or not at all.
impl TransactionalHandler<Change, Transaction> for Books {
    type Output = ();

    async fn handle(
        &self,
        change: Change,
        mut tx: TransactionGuard<Transaction>,
        _: Context,
    ) -> Result<(), HandlerError> {
        check(&change).terminal()?;
        tx.put(self.entry(&change)?).or_terminal("this change is booked already");
        tx.update(self.balance(&change)?).or_terminal("not enough points");
        Ok(())
    }
}

/// Why a change cannot be booked, if so, without its data.
fn check(change: &Change) -> Result<(), &'static str> {
    let fits = |id: &str| (1..=ID_MAX_BYTES).contains(&id.len());
    match change {
        _ if !fits(&change.change_id) => Err("the change's id is empty or too long"),
        _ if !fits(&change.customer_id) => Err("the customer's id is empty or too long"),
        _ if change.points == 0 => Err("it changes no points"),
        _ if change.points.unsigned_abs() > POINTS_MAX => Err("it changes more points than is allowed"),
        _ => Ok(()),
    }
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn number(value: i64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(points: i64) -> Change {
        Change { change_id: "ch-1".into(), customer_id: "ada".into(), points }
    }

    #[test]
    fn only_what_is_redeemed_needs_a_balance() {
        let books = Books::new("points".into());
        let (earned, redeemed) = (books.balance(&change(50)).unwrap(), books.balance(&change(-50)).unwrap());
        for (update, points) in [(&earned, 50), (&redeemed, -50)] {
            assert_eq!((update.table_name(), update.update_expression()), ("points", "ADD points :points"));
            assert_eq!((&update.key()["customer_id"], &update.key()["entry"]), (&text("ada"), &text("balance")));
            assert_eq!(update.expression_attribute_values().unwrap()[":points"], number(points));
        }
        assert_eq!(earned.condition_expression(), None);
        assert_eq!(redeemed.condition_expression(), Some("points >= :redeemed"));
        assert_eq!(redeemed.expression_attribute_values().unwrap()[":redeemed"], number(50));
    }

    #[test]
    fn each_change_has_an_entry_of_its_own() {
        let entry = Books::new("points".into()).entry(&change(-50)).unwrap();
        assert_eq!(entry.table_name(), "points");
        assert_eq!(entry.condition_expression(), Some("attribute_not_exists(customer_id)"));
        let item = entry.item();
        assert_eq!((&item["customer_id"], &item["entry"]), (&text("ada"), &text("change#ch-1")));
        assert_eq!((item.len(), &item["points"]), (3, &number(-50)));
    }

    #[test]
    fn a_change_that_no_retry_fixes_is_rejected() {
        for (points, wanted) in
            [(0, "no points"), (1_000_001, "more points"), (-1_000_001, "more points"), (i64::MIN, "more points")]
        {
            let why = check(&change(points)).unwrap_err().to_string();
            assert!(why.contains(wanted), "{why}");
        }
        for points in [1, -1, 1_000_000, -1_000_000] {
            assert!(check(&change(points)).is_ok());
        }
        let id = |change_id: &str, customer_id: &str| Change {
            change_id: change_id.into(),
            customer_id: customer_id.into(),
            points: 1,
        };
        for (change, wanted) in [
            (id("", "ada"), "change's id"),
            (id(&"c".repeat(257), "ada"), "change's id"),
            (id("ch-1", ""), "customer's id"),
            (id("ch-1", &"a".repeat(257)), "customer's id"),
        ] {
            assert!(check(&change).unwrap_err().to_string().contains(wanted));
        }
    }
}
