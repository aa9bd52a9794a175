//! The business: an order becomes one gift card and one entry in the ledger.
//!
//! Both commit together with the completion of the order's key. A process that dies before that has issued nothing, and one
//! that dies after it has issued the card: there is no moment in which a retry would issue a second one, or find the
//! first in its way. For this to hold, all that is written comes from the message: no time of day, no random number.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{AttributeValue, Put};
use claimant::dynamodb::Transaction;
use claimant::{Context, Duplicate, HandlerError, Terminal, TransactionGuard, TransactionalHandler};
use serde::{Deserialize, Serialize};

/// The largest amount of one card, in cents.
const AMOUNT_MAX_CENTS: u64 = 100_000;

/// The currencies that cards are issued in: those in which a cent is a hundredth.
const CURRENCIES: [&str; 4] = ["CHF", "EUR", "GBP", "USD"];

/// The longest card number or recipient, in bytes.
const TEXT_MAX_BYTES: usize = 256;

/// A gift card that was bought, as the shop sends it.
#[derive(Debug, Deserialize)]
pub(crate) struct Purchase {
    pub(crate) order_id: String,
    /// The card's number in the books, chosen by the shop. It is not the code that pays.
    card_id: String,
    recipient: String,
    amount_cents: u64,
    currency: String,
}

/// What was issued. Kept on the order's record, where duplicates find it, so without the recipient.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Issued {
    card_id: String,
    amount_cents: u64,
    currency: String,
}

/// The names of the tables that a card is written to.
#[derive(Debug)]
pub(crate) struct Tables {
    cards: String,
    ledger: String,
}

impl Tables {
    pub(crate) fn new(cards: String, ledger: String) -> Self {
        Self { cards, ledger }
    }

    /// The card. Its number is the shop's, so one that is taken is another order's card.
    fn card(&self, purchase: &Purchase) -> Result<Put, BuildError> {
        let recipient = ("recipient", text(&purchase.recipient));
        new_item(&self.cards, "card_id", purchase, Some(recipient))
    }

    /// The ledger's entry. The ledger keeps orders for ever, the lock table only for its window.
    fn entry(&self, purchase: &Purchase) -> Result<Put, BuildError> {
        new_item(&self.ledger, "order_id", purchase, None)
    }
}

/// Issues a card: says what is to be written. It is written once this has returned `Ok`, or not at all.
impl TransactionalHandler<Purchase, Transaction> for Tables {
    type Output = Issued;

    async fn handle(
        &self,
        purchase: Purchase,
        mut tx: TransactionGuard<Transaction>,
        _: Context,
    ) -> Result<Issued, HandlerError> {
        check(&purchase).terminal()?;
        tx.put(self.card(&purchase)?).or_terminal("there is a card of this number already");
        tx.put(self.entry(&purchase)?).or_terminal("the ledger has a card of this order already");
        Ok(Issued { card_id: purchase.card_id, amount_cents: purchase.amount_cents, currency: purchase.currency })
    }
}

/// Says which card a duplicate was about.
pub(crate) fn show_issued(duplicate: &Duplicate<'_>) {
    let issued = duplicate.result::<Issued>().ok().flatten();
    let card_id = issued.as_ref().map(|issued| issued.card_id.as_str());
    let amount_cents = issued.as_ref().map(|issued| issued.amount_cents);
    tracing::info!(message_id = duplicate.message_id(), card_id, amount_cents, "this order's card was issued before");
}

/// Why no card can be issued, if so, without the order's data.
fn check(purchase: &Purchase) -> Result<(), &'static str> {
    let fits = |text: &str| (1..=TEXT_MAX_BYTES).contains(&text.len());
    match purchase {
        _ if !fits(&purchase.card_id) => Err("the card's number is empty or too long"),
        _ if !fits(&purchase.recipient) => Err("the recipient is empty or too long"),
        _ if purchase.amount_cents == 0 => Err("the amount is 0"),
        _ if purchase.amount_cents > AMOUNT_MAX_CENTS => Err("the amount is more than a card may hold"),
        _ if !CURRENCIES.contains(&purchase.currency.as_str()) => Err("no cards are issued in this currency"),
        _ => Ok(()),
    }
}

/// An item that says what both tables say of a card, only if there is none of this key.
fn new_item(
    table: &str,
    key: &str,
    purchase: &Purchase,
    more: Option<(&str, AttributeValue)>,
) -> Result<Put, BuildError> {
    let both = [
        ("order_id", text(&purchase.order_id)),
        ("card_id", text(&purchase.card_id)),
        ("amount_cents", AttributeValue::N(purchase.amount_cents.to_string())),
        ("currency", text(&purchase.currency)),
    ];
    let item: HashMap<_, _> = both.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect();
    let put = Put::builder().table_name(table).set_item(Some(item));
    put.condition_expression(format!("attribute_not_exists({key})")).build()
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purchase() -> Purchase {
        Purchase {
            order_id: "ord-1".into(),
            card_id: "card-1".into(),
            recipient: "ada@example.com".into(),
            amount_cents: 2_500,
            currency: "EUR".into(),
        }
    }

    fn shown(put: &Put) -> Vec<String> {
        let mut fields: Vec<_> = put.item().iter().map(|(name, value)| format!("{name} {value:?}")).collect();
        fields.sort();
        fields
    }

    #[test]
    fn a_card_and_its_entry_are_written_once_and_always_the_same() {
        let tables = Tables::new("cards".into(), "ledger".into());
        let (card, entry) = (tables.card(&purchase()).unwrap(), tables.entry(&purchase()).unwrap());
        assert_eq!((card.table_name(), card.condition_expression()), ("cards", Some("attribute_not_exists(card_id)")));
        assert_eq!(
            (entry.table_name(), entry.condition_expression()),
            ("ledger", Some("attribute_not_exists(order_id)"))
        );
        let both =
            [r#"amount_cents N("2500")"#, r#"card_id S("card-1")"#, r#"currency S("EUR")"#, r#"order_id S("ord-1")"#];
        assert_eq!(shown(&card), [&both[..], &[r#"recipient S("ada@example.com")"#]].concat());
        assert_eq!(shown(&entry), both, "the ledger knows no recipients");
        assert_eq!(tables.card(&purchase()).unwrap(), card);
    }

    #[test]
    fn a_purchase_that_no_retry_fixes_is_rejected() {
        let good = purchase();
        assert!(check(&good).is_ok());
        type Spoil = fn(&mut Purchase);
        let bad: [(Spoil, &str); 7] = [
            (|p| p.card_id.clear(), "card's number"),
            (|p| p.card_id = "c".repeat(257), "card's number"),
            (|p| p.recipient.clear(), "recipient"),
            (|p| p.amount_cents = 0, "the amount is 0"),
            (|p| p.amount_cents = 100_001, "more than"),
            (|p| p.currency = "JPY".into(), "currency"),
            (|p| p.currency = "eur".into(), "currency"),
        ];
        for (spoil, wanted) in bad {
            let mut purchase = purchase();
            spoil(&mut purchase);
            let why = check(&purchase).unwrap_err().to_string();
            assert!(why.contains(wanted), "{why}");
        }
    }
}
