//! What operators ask of a store: compare and set, lists in the order of the ids, how much there is.

use claimant_core::{Budget, Cursor, Filter, Page, Record, RecordId, Replaced, Size, StoreError};
use sqlx::Pool;

use crate::dialect::Dialect;
use crate::range::{PAGE_RECORDS, Range, cursor};
use crate::session::Session;

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

/// The cursor is the last id that was read, or what comes before the next ids that can match.
pub(crate) async fn list<D: Dialect>(
    pool: &Pool<D>,
    filter: &Filter,
    from: &Cursor,
    budget: Budget<'_>,
) -> Result<Page, StoreError> {
    let mut session = Session::open(pool, budget).await?.patient();
    let mut range = Range::of(filter, from)?;
    let last = D::last_of_page(&mut session, &range).await?;
    let mut page = Page::default();
    match last {
        Some(last) => {
            page.next = Some(cursor(&last));
            page.looked_at = PAGE_RECORDS.into();
            range.until = last;
        }
        None => {
            page.next = range.then.as_deref().map(cursor);
            page.looked_at = D::count(&mut session, &range).await?.unsigned_abs();
        }
    }
    let (records, foreign) = D::list(&mut session, &range, filter).await?;
    page.records = records.into_iter().filter(|(id, record)| filter.matches(id, record)).collect();
    page.foreign = foreign;
    Ok(page)
}

/// From the database's own estimates.
pub(crate) async fn size<D: Dialect>(pool: &Pool<D>, budget: Budget<'_>) -> Result<Size, StoreError> {
    let mut session = Session::open(pool, budget).await?.patient();
    let (records, bytes) = D::size(&mut session).await?;
    let known = |number: i64| u64::try_from(number).unwrap_or_default();
    Ok(Size { records: known(records), bytes: known(bytes), read_units: None })
}
