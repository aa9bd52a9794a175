//! Which ids a page of a list is read from.

use claimant_core::{Cursor, Filter, StoreError, StoreErrorKind};

/// How many rows a page is chosen from at most.
pub(crate) const PAGE_RECORDS: u32 = 10_000;

/// Ids between two: the first is not among them, the last is.
pub(crate) struct Range {
    pub(crate) after: Vec<u8>,
    pub(crate) until: Vec<u8>,
    /// Where the list goes on behind it.
    pub(crate) then: Option<Vec<u8>>,
}

impl Range {
    /// Returns the ids that can match and come after the cursor's.
    pub(crate) fn of(filter: &Filter, from: &Cursor) -> Result<Self, StoreError> {
        let after = decoded(from.as_str())
            .ok_or_else(|| StoreError::new(StoreErrorKind::Other, "the cursor is not one of a database"))?;
        let Some(consumer) = filter.consumer.as_ref().map(|consumer| consumer.as_str().as_bytes()) else {
            // No id is as long as this.
            return Ok(Self { after, until: vec![0xff; 512], then: None });
        };
        // The consumer's ids go on with # or ~; between them are those of others, whose names begin with this one.
        let [clear, clear_end, hashed, hashed_end] =
            [b'#', b'#' + 1, b'~', b'~' + 1].map(|next| [consumer, &[next]].concat());
        Ok(if after < hashed {
            Self { after: after.max(clear), until: clear_end, then: Some(hashed) }
        } else {
            Self { after, until: hashed_end, then: None }
        })
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
