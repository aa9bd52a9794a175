//! The lock table for operators: compare and set, lists by scanning, its size.

use std::time::Duration;

use aws_sdk_dynamodb::Config;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::operation::scan::ScanOutput;
use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use claimant_core::{
    BoxFuture, Budget, Call, Cursor, Filter, Page, Record, RecordId, Records, Replaced, Size, State, StoreError,
    StoreErrorKind,
};

use crate::error::{consumed, no_success, store_error};
use crate::item::{self, number, text, time};
use crate::names::AttributeNames;
use crate::requests::Requests;
use crate::shape::is_lock_table;
use crate::table::{LockTable, Written};
use crate::tables::Tables;

/// How much of a table a read unit pays for: two reads of 4 KB that are eventually consistent.
const BYTES_PER_READ_UNIT: u64 = 8_192;

/// The longest that one try of reading a page may take.
const PAGE_TRY_MAX_MS: u64 = 15_000;

/// The most segments that a scan may have.
const SEGMENTS_MAX: usize = 1_000_000;

/// A table, by its index, a segment of its scan, and the last id that was read of it: `table/segment/segments/id`.
struct Position<'a> {
    table: &'a str,
    index: usize,
    segment: i32,
    segments: i32,
    after: &'a str,
}

impl<'a> Position<'a> {
    fn of(cursor: &'a Cursor, tables: &'a Tables) -> Result<Self, StoreError> {
        let mut parts = cursor.as_str().splitn(4, '/');
        let index: Option<usize> = parts.next().and_then(|part| part.parse().ok());
        let table = index.and_then(|index| Some((tables.names().nth(index)?, index)));
        let mut number = || parts.next().and_then(|part| part.parse().ok());
        let (segment, segments) = (number(), number());
        match (table, segment, segments, parts.next()) {
            (Some((table, index)), Some(segment), Some(segments), Some(after)) => {
                Ok(Self { table, index, segment, segments, after })
            }
            _ => Err(StoreError::new(StoreErrorKind::Other, "the cursor is not one of a lock table")),
        }
    }

    fn cursor(&self, after: &str) -> Cursor {
        Cursor::new(format!("{}/{}/{}/{after}", self.index, self.segment, self.segments))
    }
}

impl Requests {
    /// Reads the next megabyte of a segment, without results; of that, only what can match is sent.
    fn scan(&self, filter: &Filter, position: &Position<'_>) -> ScanFluentBuilder {
        let names = read_names(&self.names);
        let placeholders: Vec<_> = (0..names.len()).map(|n| format!("#n{n}")).collect();
        let mut scan = self
            .client
            .scan()
            .table_name(position.table)
            .segment(position.segment)
            .total_segments(position.segments)
            .projection_expression(placeholders.join(", "))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        for (placeholder, name) in placeholders.iter().zip(names) {
            scan = scan.expression_attribute_names(placeholder, name);
        }
        if !position.after.is_empty() {
            scan = scan.exclusive_start_key(&self.names.id, text(position.after));
        }
        let (conditions, values) = conditions(filter);
        if !conditions.is_empty() {
            scan = scan.filter_expression(conditions.join(" AND "));
        }
        values.into_iter().fold(scan, |scan, (name, value)| scan.expression_attribute_values(name, value))
    }
}

/// Returns the attributes that a list reads; the first four have conditions.
fn read_names(names: &AttributeNames) -> [&str; 14] {
    [
        &names.id,
        &names.status,
        &names.updated_at,
        &names.lease_until,
        &names.owner,
        &names.fence,
        &names.attempts,
        &names.message_id,
        &names.fingerprint,
        &names.created_at,
        &names.completed_at,
        &names.expires_at,
        &names.error,
        &names.note,
    ]
}

/// Returns conditions that hold for all that matches, and their values.
fn conditions(filter: &Filter) -> (Vec<String>, Vec<(String, AttributeValue)>) {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let statuses = filter.statuses();
    if !statuses.is_empty() {
        let names: Vec<_> = (0..statuses.len()).map(|n| format!(":s{n}")).collect();
        conditions.push(format!("#n1 IN ({})", names.join(", ")));
        values.extend(names.into_iter().zip(statuses.iter().map(|status| text(status.as_str()))));
    }
    if filter.states == [State::Stuck] {
        conditions.push("#n3 < :dead".to_owned());
        values.push((":dead".to_owned(), time(filter.now.minus(filter.skew))));
    }
    if let Some(before) = filter.written_before {
        conditions.push("#n2 < :before".to_owned());
        values.push((":before".to_owned(), number(before.as_millis())));
    }
    if !conditions.is_empty() {
        // An item without one of these is no record, or one whose attributes have other names: a list that passed over it would say that all is
        // well.
        let absent = ["#n1", "#n2", "#n3"].map(|name| format!("attribute_not_exists({name})"));
        conditions = vec![format!("({} OR {})", conditions.join(" AND "), absent.join(" OR "))];
    }
    if let Some(consumer) = &filter.consumer {
        conditions.push("(begins_with(#n0, :plain) OR begins_with(#n0, :hashed))".to_owned());
        values.push((":plain".to_owned(), text(format!("{consumer}#"))));
        values.push((":hashed".to_owned(), text(format!("{consumer}~"))));
    }
    (conditions, values)
}

impl LockTable {
    async fn list_page(&self, filter: &Filter, from: &Cursor, budget: Budget<'_>) -> Result<Page, StoreError> {
        let Requests { tables, names, .. } = &self.requests;
        let position = Position::of(from, tables)?;
        // A page is a megabyte, and no lease depends on it: a try may take longer than a claim's.
        let tries = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_millis(PAGE_TRY_MAX_MS)).build();
        let patient = Config::builder().timeout_config(tries);
        let scan = self.requests.scan(filter, &position).customize().config_override(patient);
        let read = budget.send(scan.send()).await?;
        let read: ScanOutput = read.map_err(|e| store_error("Scan", position.table, &e))?;
        budget.meter().units(0.0, consumed("Scan", position.table, read.consumed_capacity())?);
        let next = match read.last_evaluated_key().and_then(|key| key.get(&names.id)) {
            Some(AttributeValue::S(id)) => Some(position.cursor(id)),
            _ => None,
        };
        // OK because a page has no negative count.
        let mut page = Page { next, looked_at: read.scanned_count().unsigned_abs().into(), ..Page::default() };
        for found in read.items() {
            let id = match found.get(&names.id) {
                Some(AttributeValue::S(id)) => RecordId::from_stored(id).ok(),
                _ => None,
            };
            match (id, item::record(found, names)) {
                // Left behind in a table that had it before: no claim looks here.
                (Some(id), Ok(_)) if tables.of(&id) != position.table => {}
                (Some(id), Ok(record)) if filter.matches(&id, &record) => page.records.push((id, record)),
                (Some(_), Ok(_)) => {}
                _ => page.foreign += 1,
            }
        }
        Ok(page)
    }

    async fn describe(&self, table: &str, budget: Budget<'_>) -> Result<Size, StoreError> {
        let Requests { client, names, .. } = &self.requests;
        let described = budget.send(client.describe_table().table_name(table).send()).await?;
        let described = described.map_err(|e| store_error("DescribeTable", table, &e))?;
        // A list of another table would find nothing, which says that all is well.
        let described = described.table().ok_or_else(|| no_success("DescribeTable", table, "a table"))?;
        is_lock_table(table, described, &names.id)?;
        let count = |of: Option<i64>| of.and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
        let (bytes, records) = (count(described.table_size_bytes()), count(described.item_count()));
        Ok(Size { records, bytes, read_units: Some(bytes.div_ceil(BYTES_PER_READ_UNIT)) })
    }
}

/// Records that are still in a table [before](LockTable::before) are not among these: that is a lock table of its own.
///
/// Needs `dynamodb:Scan` and `dynamodb:DescribeTable` on the table, beside what functions need.
impl Records for LockTable {
    fn replace<'a>(
        &'a self,
        id: &'a RecordId,
        seen: &'a Record,
        next: &'a Record,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        Box::pin(async move {
            match self.send(id, self.requests.replace(id, seen, next), Budget::of(call)).await? {
                Written::Applied(_) => Ok(Replaced::Done),
                Written::Refused(_) => Ok(Replaced::Changed),
            }
        })
    }

    fn cursors(&self, parts: usize, _: Call<'_>) -> BoxFuture<'_, Result<Vec<Cursor>, StoreError>> {
        let tables = self.requests.tables.names().len();
        let segments = (parts / tables).clamp(1, SEGMENTS_MAX);
        let in_table = |table| (0..segments).map(move |segment| Cursor::new(format!("{table}/{segment}/{segments}/")));
        let cursors = (0..tables).flat_map(in_table).collect();
        Box::pin(async { Ok(cursors) })
    }

    /// A scan: it consumes read units for all that it reads, and sends only what can match.
    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        from: &'a Cursor,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(self.list_page(filter, from, Budget::of(call)))
    }

    /// From the table's description, which DynamoDB renews about every six hours. Fails where its key is not that of a lock table.
    fn size<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Size, StoreError>> {
        Box::pin(async move {
            let mut all = Size { read_units: Some(0), ..Size::default() };
            for table in self.requests.tables.names() {
                let one = self.describe(table, Budget::of(call)).await?;
                all.records += one.records;
                all.bytes += one.bytes;
                all.read_units = all.read_units.zip(one.read_units).map(|(all, one)| all + one);
            }
            Ok(all)
        })
    }
}
