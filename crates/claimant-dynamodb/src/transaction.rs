//! The writes of a handler that commit together with the completion of its key.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, Put, TransactWriteItem, Update};
use claimant_core::protocol::ClaimRequest;
use claimant_core::{Failure, Record};

/// The most writes of a handler's own in one transaction: DynamoDB's 100, less the completion.
pub const TRANSACTION_WRITES_MAX: usize = 99;

/// The largest sum of a transaction's items, in bytes: DynamoDB's 4 MB.
pub const TRANSACTION_MAX_BYTES: usize = 4 * 1_024 * 1_024;

/// The most names of tables in one error.
const TABLES_SHOWN_MAX: usize = 8;

/// The overhead of a list or a map, and of each of its elements, in bytes.
const NESTING_BYTES: (usize, usize) = (3, 1);

/// Collects the writes that commit together with the completion of their key, or not at all. Nothing is sent before the
/// handler has returned `Ok`.
///
/// At most [`TRANSACTION_WRITES_MAX`] writes and [`TRANSACTION_MAX_BYTES`], each item once. A larger transaction
/// rejects the message, since it would be too large the next time too.
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod dynamodb { pub use claimant_dynamodb::*; } }
/// use aws_sdk_dynamodb::types::{AttributeValue, Put};
/// use claimant::HandlerError;
/// use claimant::dynamodb::Transaction;
///
/// fn issue(tx: &mut Transaction, card: &str) -> Result<(), HandlerError> {
///     let put = Put::builder().table_name("cards").item("id", AttributeValue::S(card.into()));
///     let put = put.condition_expression("attribute_not_exists(id)").build()?;
///     tx.put(put).or_terminal("there is a card of this number already");
///     Ok(())
/// }
/// # let mut tx = Transaction::default();
/// # issue(&mut tx, "c-1").unwrap();
/// # assert_eq!(tx.len(), 1);
/// ```
#[derive(Debug, Default)]
pub struct Transaction {
    pub(crate) writes: Vec<Write>,
    pub(crate) base: Option<Base>,
    /// How often the lock record had changed: a commit over another record is a different one, with a token of its own.
    pub(crate) changes: u32,
}

/// What an optimistic transaction starts from: the attempt, and the record that it read, if it did.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) request: ClaimRequest,
    pub(crate) seen: Option<Record>,
    /// Whether the attempt's ending may be written already.
    pub(crate) in_doubt: bool,
}

/// One write of a handler's own.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) item: TransactWriteItem,
    /// The failure of the message if its condition does not hold.
    pub(crate) refused: Failure,
    bytes: usize,
}

impl Write {
    fn table(&self) -> Option<&str> {
        let put = self.item.put().map(Put::table_name);
        let update = self.item.update().map(Update::table_name);
        let delete = self.item.delete().map(Delete::table_name);
        put.or(update).or(delete).or_else(|| self.item.condition_check().map(ConditionCheck::table_name))
    }
}

/// A write just added: sets what happens if its condition does not hold. By default the message is tried again.
#[derive(Debug)]
pub struct Condition<'a>(&'a mut Write);

impl Condition<'_> {
    /// Rejects the message, for this reason: no retry fixes it.
    pub fn or_terminal(self, why: impl Into<String>) {
        self.0.refused = Failure::terminal(why);
    }

    /// Tries the message again, for this reason; [at most once](claimant_core::Consumer::at_most_once), parks it, since what the handler did
    /// outside of the transaction may be done.
    pub fn or_retry(self, why: impl Into<String>) {
        self.0.refused = Failure::retry(why);
    }
}

impl Transaction {
    /// Adds an item that is to be written in full.
    pub fn put(&mut self, put: Put) -> Condition<'_> {
        let bytes = size(&put.item) + sizes(put.expression_attribute_values.as_ref());
        self.add(TransactWriteItem::builder().put(put).build(), bytes)
    }

    /// Adds a change of an item.
    pub fn update(&mut self, update: Update) -> Condition<'_> {
        let bytes = size(&update.key) + sizes(update.expression_attribute_values.as_ref());
        self.add(TransactWriteItem::builder().update(update).build(), bytes)
    }

    /// Adds the removal of an item.
    pub fn delete(&mut self, delete: Delete) -> Condition<'_> {
        let bytes = size(&delete.key) + sizes(delete.expression_attribute_values.as_ref());
        self.add(TransactWriteItem::builder().delete(delete).build(), bytes)
    }

    /// Adds a condition on an item that is not written.
    pub fn check(&mut self, check: ConditionCheck) -> Condition<'_> {
        let bytes = size(&check.key) + sizes(check.expression_attribute_values.as_ref());
        self.add(TransactWriteItem::builder().condition_check(check).build(), bytes)
    }

    /// Returns the writes so far, in the order in which they were added: for tests of handlers.
    pub fn writes(&self) -> impl Iterator<Item = &TransactWriteItem> {
        self.writes.iter().map(|write| &write.item)
    }

    /// Returns the number of writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Returns whether there are no writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    fn add(&mut self, item: TransactWriteItem, bytes: usize) -> Condition<'_> {
        let index = self.writes.len();
        let refused =
            Failure::retry(format!("the condition of write {} of the handler's transaction did not hold", index + 1));
        self.writes.push(Write { item, refused, bytes });
        Condition(&mut self.writes[index])
    }

    /// Returns why the transaction is larger than DynamoDB's limits, if it is.
    pub(crate) fn too_large(&self) -> Option<Failure> {
        let (writes, bytes) = (self.writes.len(), self.writes.iter().map(|write| write.bytes).sum::<usize>());
        let what = if writes > TRANSACTION_WRITES_MAX {
            format!("{writes} writes, and at most {TRANSACTION_WRITES_MAX} commit together with the completion")
        } else if bytes > TRANSACTION_MAX_BYTES {
            format!("{bytes} bytes, and at most {TRANSACTION_MAX_BYTES} commit together")
        } else {
            return None;
        };
        Some(Failure::terminal(format!("the handler's transaction has {what}: write less for each message")))
    }
}

/// Returns the tables of these writes for an error, each once and only the first few.
pub(crate) fn tables(writes: &[Write]) -> String {
    let mut names: Vec<String> = writes.iter().filter_map(|write| Some(format!("{:?}", write.table()?))).collect();
    names.sort();
    names.dedup();
    names.truncate(TABLES_SHOWN_MAX);
    names.join(", ")
}

fn sizes(values: Option<&HashMap<String, AttributeValue>>) -> usize {
    // Without their placeholders, which are not stored.
    values.map_or(0, |values| values.values().map(size_of).sum())
}

fn size(item: &HashMap<String, AttributeValue>) -> usize {
    item.iter().map(|(name, value)| name.len() + size_of(value)).sum()
}

/// Returns the size that DynamoDB counts: names and texts as UTF-8, a number a byte for each two significant digits and one.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>
fn size_of(value: &AttributeValue) -> usize {
    let number = |number: &String| significant(number).div_ceil(2) + 1;
    let (around, each) = NESTING_BYTES;
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(digits) => number(digits),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::Ss(texts) => texts.iter().map(String::len).sum(),
        AttributeValue::Ns(numbers) => numbers.iter().map(number).sum(),
        AttributeValue::Bs(blobs) => blobs.iter().map(|bytes| bytes.as_ref().len()).sum(),
        AttributeValue::L(list) => around + list.iter().map(|value| each + size_of(value)).sum::<usize>(),
        AttributeValue::M(map) => around + size(map) + each * map.len(),
        _ => 1,
    }
}

/// Counts the digits of a number without leading and trailing zeros.
fn significant(number: &str) -> usize {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len()
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::primitives::Blob;
    use claimant_core::FailureKind;

    use super::*;

    fn put(text: String) -> Put {
        let put = Put::builder().table_name("t").item("id", AttributeValue::S(text));
        put.build().unwrap()
    }

    #[test]
    fn values_have_the_sizes_that_dynamodb_counts() {
        let (text, number) = (|text: &str| text.to_owned(), |digits: &str| AttributeValue::N(digits.to_owned()));
        let blob = |bytes: &[u8]| Blob::new(bytes);
        let map = |value| HashMap::from([(text("ab"), value), (text("c"), AttributeValue::Bool(true))]);
        for (value, size) in [
            (AttributeValue::S(text("größer")), 8),
            (number("1"), 2),
            (number("12"), 2),
            (number("12345"), 4),
            (number("-1200"), 2),
            (number("0.0012"), 2),
            (number("-1.205E-30"), 3),
            (number("0"), 1),
            (AttributeValue::B(blob(&[0, 1, 2])), 3),
            (AttributeValue::Bool(false), 1),
            (AttributeValue::Null(true), 1),
            (AttributeValue::Ss(vec![text("a"), text("bcd")]), 4),
            (AttributeValue::Ns(vec![text("1"), text("123")]), 5),
            (AttributeValue::Bs(vec![blob(&[0]), blob(&[1, 2])]), 3),
            (AttributeValue::L(vec![]), 3),
            (AttributeValue::L(vec![number("1"), AttributeValue::S(text("abcd"))]), 3 + (1 + 2) + (1 + 4)),
            (AttributeValue::M(HashMap::new()), 3),
            (AttributeValue::M(map(number("1"))), 3 + (1 + 2 + 2) + (1 + 1 + 1)),
            (AttributeValue::M(map(AttributeValue::L(vec![]))), 3 + (1 + 2 + 3) + (1 + 1 + 1)),
        ] {
            assert_eq!(size_of(&value), size, "{value:?}");
        }
    }

    #[test]
    fn a_write_has_the_size_of_its_item_or_key_and_of_its_values() {
        let (id, one) = (|| AttributeValue::S("12345".to_owned()), || AttributeValue::N("1".to_owned()));
        let mut tx = Transaction::default();
        let put = Put::builder().table_name("t").item("id", id()).item("n", one());
        tx.put(put.condition_expression("n < :n").expression_attribute_values(":n", one()).build().unwrap());
        let update = Update::builder().table_name("t").key("id", id()).update_expression("ADD n :n");
        tx.update(update.expression_attribute_values(":n", one()).build().unwrap());
        let delete = Delete::builder().table_name("t").key("id", id()).condition_expression("n < :n");
        tx.delete(delete.expression_attribute_values(":n", one()).build().unwrap());
        let check = ConditionCheck::builder().table_name("t").key("id", id()).condition_expression("n < :n");
        tx.check(check.expression_attribute_values(":n", one()).build().unwrap());
        assert!(tx.len() == 4 && !tx.is_empty() && Transaction::default().is_empty());
        let kinds = tx.writes().map(|write| (write.put().is_some(), write.condition_check().is_some()));
        assert_eq!(kinds.collect::<Vec<_>>(), [(true, false), (false, false), (false, false), (false, true)]);
        let sizes = tx.writes.iter().map(|write| write.bytes).collect::<Vec<_>>();
        assert_eq!(sizes, [(2 + 5) + (1 + 2) + 2, (2 + 5) + 2, (2 + 5) + 2, (2 + 5) + 2]);
    }

    #[test]
    fn an_error_names_each_table_once() {
        let mut tx = Transaction::default();
        let key = || ("id", AttributeValue::S("x".to_owned()));
        tx.put(put("x".to_owned()));
        tx.put(put("y".to_owned()));
        let update = Update::builder().table_name("u").key(key().0, key().1).update_expression("ADD n :one");
        tx.update(update.build().unwrap());
        tx.delete(Delete::builder().table_name("d").key(key().0, key().1).build().unwrap());
        let check = ConditionCheck::builder().table_name("c").key(key().0, key().1);
        tx.check(check.condition_expression("attribute_exists(id)").build().unwrap());
        assert_eq!(tables(&tx.writes), r#""c", "d", "t", "u""#);
    }

    #[test]
    fn a_transaction_that_dynamodb_would_not_take_says_so_before_it_is_sent() {
        let too_large = |writes: usize, bytes: usize| {
            let mut tx = Transaction::default();
            for _ in 0..writes {
                tx.put(put("x".repeat(bytes)));
            }
            tx.too_large()
        };
        assert_eq!(too_large(TRANSACTION_WRITES_MAX, 10), None);
        let why = too_large(TRANSACTION_WRITES_MAX + 1, 10).unwrap();
        assert!(why.kind == FailureKind::Terminal && why.why.contains("100 writes"), "{}", why.why);
        let item = TRANSACTION_MAX_BYTES / 16;
        assert_eq!(too_large(16, item - "id".len()), None);
        let why = too_large(16, item).unwrap();
        assert!(why.kind == FailureKind::Terminal && why.why.contains("4194336 bytes"), "{}", why.why);
    }
}
