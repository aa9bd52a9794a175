//! Filling a table with copies of an item.

use dynoxide::{AttributeValue, ImportOptions};

use super::{DynamoDb, Item};
use crate::Error;

/// Items that are written in one transaction.
const COPIES_MAX: usize = 10_000;

impl DynamoDb {
    /// Writes an item for each of these values of a string attribute, like `like` in all others: many at once, so that a table can be
    /// filled for measurements. What is there with the same key is overwritten.
    ///
    /// # Errors
    /// When there is no such table, or an item does not fit it. Some of the items may then have been written.
    pub fn copy_items(
        &self,
        table: &str,
        like: &Item,
        attribute: &str,
        values: impl IntoIterator<Item = String>,
    ) -> Result<(), Error> {
        let mut copies = values.into_iter().map(|value| {
            let mut item = like.0.clone();
            item.insert(attribute.to_owned(), AttributeValue::S(value));
            item
        });
        loop {
            let items: Vec<_> = copies.by_ref().take(COPIES_MAX).collect();
            if items.is_empty() {
                return Ok(());
            }
            self.database
                .import_items(table, items, ImportOptions::default())
                .map_err(|e| Error::new(format!("table {table} in {} could not be filled", self.place)).caused_by(e))?;
        }
    }
}
