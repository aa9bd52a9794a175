//! Which ids a page of a list is read from.

use claimant_core::{Cursor, Filter, StoreError, StoreErrorKind};

/// How many rows a page is chosen from at most.
pub(crate) const PAGE_RECORDS: u32 = 10_000;

/// Ids between two: the first is not among them, the last is.
pub(crate) struct Range {
    pub(crate) after: Vec<u8>,
    pub(crate) until: Vec<u8>,
}

impl Range {
    /// Returns the ids that can match and come after the cursor's.
    pub(crate) fn of(filter: &Filter, from: &Cursor) -> Result<Self, StoreError> {
        let after = decoded(from.as_str())
            .ok_or_else(|| StoreError::new(StoreErrorKind::Other, "the cursor is not one of a database"))?;
        let Some(consumer) = filter.consumer.as_ref().map(|consumer| consumer.as_str().as_bytes()) else {
            // No id is as long as this.
            return Ok(Self { after, until: vec![0xff; 512] });
        };
        // The consumer's ids go on with # or ~, after which 127 comes next.
        Ok(Self { after: after.max(consumer.to_vec()), until: [consumer, &[0x7f]].concat() })
    }
}

/// Returns the cursor after this id. In hexadecimal digits: something else may have written an id that is no text.
pub(crate) fn cursor(id: &[u8]) -> Cursor {
    Cursor::new(id.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn decoded(cursor: &str) -> Option<Vec<u8>> {
    let digits = cursor.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.map(byte).collect()
}
