//! What operators ask of a store: compare and set, lists in the order of the ids, how much there is.

use claimant_core::{Budget, Cursor, Filter, Page, Record, RecordId, Replaced, Size, StoreError, StoreErrorKind};
use sqlx::Pool;

use crate::dialect::Dialect;
use crate::session::Session;

/// How many rows a page is chosen from at most.
pub(crate) const PAGE_RECORDS: u32 = 10_000;

/// Ids between two: the first is not among them, the last is.
pub(crate) struct Range {
    pub(crate) after: Vec<u8>,
    pub(crate) until: Vec<u8>,
}

impl Range {
    /// Returns the ids that can match and come after the cursor's.
    fn of(filter: &Filter, from: &Cursor) -> Result<Self, StoreError> {
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
fn cursor(id: &[u8]) -> Cursor {
    Cursor::new(id.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn decoded(cursor: &str) -> Option<Vec<u8>> {
    let digits = cursor.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.map(byte).collect()
}

pub(crate) async fn replace<D: Dialect>(
    pool: &Pool<D>,
    id: &RecordId,
    seen: &Record,
    next: &Record,
    budget: Budget<'_>,
) -> Result<Replaced, StoreError> {
    let mut session = Session::open(pool, budget).await?;
    let written = D::replace(&mut session, id, seen, next).await?;
    Ok(if written { Replaced::Done } else { Replaced::Changed })
}

/// The cursor is the last id that was read.
pub(crate) async fn list<D: Dialect>(
    pool: &Pool<D>,
    filter: &Filter,
    from: &Cursor,
    budget: Budget<'_>,
) -> Result<Page, StoreError> {
    let mut session = Session::open(pool, budget).await?;
    let mut range = Range::of(filter, from)?;
    let last = D::last_of_page(&mut session, &range).await?;
    let mut page = Page::default();
    match last {
        Some(last) => {
            page.next = Some(cursor(&last));
            page.looked_at = PAGE_RECORDS.into();
            range.until = last;
        }
        None => page.looked_at = D::count(&mut session, &range).await?.unsigned_abs(),
    }
    let (records, foreign) = D::list(&mut session, &range, filter).await?;
    page.records = records.into_iter().filter(|(id, record)| filter.matches(id, record)).collect();
    page.foreign = foreign;
    Ok(page)
}

/// From the database's own estimates.
pub(crate) async fn size<D: Dialect>(pool: &Pool<D>, budget: Budget<'_>) -> Result<Size, StoreError> {
    let mut session = Session::open(pool, budget).await?;
    let (records, bytes) = D::size(&mut session).await?;
    let known = |number: i64| u64::try_from(number).unwrap_or_default();
    Ok(Size { records: known(records), bytes: known(bytes), read_units: None })
}
