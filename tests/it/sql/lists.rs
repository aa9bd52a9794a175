//! Lists of more than a page, and rows that claimant did not write.

use std::time::Duration;

use claimant_core::{Call, ConsumerName, Cursor, Filter, Meter, Page, State};

use super::world::{Database, NOW};

/// A page of 10,000 and one more, and a row whose id is no text.
fn rows(database: &Database) -> String {
    let ids = (1..=10_001).map(|n| format!("sql#p{n:05}").into_bytes());
    database.insert_ids(ids.chain([vec![0xff]]), 4_000_000_000)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_list_goes_on_after_ten_thousand_rows_and_leaves_out_what_is_foreign() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(2).await.records();
        database.party().await.run(&rows(&database)).await;
        let meter = Meter::default();
        let call = Call { within: Duration::from_secs(20), meter: &meter };
        for (consumer, foreign) in [(None, 1), (Some(ConsumerName::new("sql").unwrap()), 0)] {
            let filter = Filter {
                states: vec![State::Failed, State::Parked],
                consumer,
                written_before: Some(NOW),
                now: NOW,
                skew: Duration::from_secs(1),
            };
            let first = store.list(&filter, &Cursor::new(""), call).await.unwrap();
            assert_eq!((first.records.len(), first.looked_at, first.foreign), (10_000, 10_000, 0), "{name}");
            let second = store.list(&filter, &first.next.unwrap(), call).await.unwrap();
            assert_eq!((second.records.len(), second.looked_at, second.foreign), (1, 1 + foreign, foreign), "{name}");
            assert_eq!(second.records[0].0.as_str(), "sql#p10001", "{name}");
            // Of a consumer, the ids that are hashed follow.
            let last = match second.next {
                Some(next) if foreign == 0 => store.list(&filter, &next, call).await.unwrap(),
                next => Page { next, ..Page::default() },
            };
            assert_eq!((last.looked_at, last.next), (0, None), "{name}");
        }
        let size = store.size(call).await.unwrap();
        assert!(size.bytes > 0 && (2_000..50_000).contains(&size.records), "{name}: {size:?}");
    }
}

/// Also where another's name begins with its name.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_list_of_a_consumer_reads_its_records_alone() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(2).await.records();
        let mut party = database.party().await;
        let hashed = format!("order~{}", "0".repeat(64));
        for id in ["order#1", "order-confirmation#1", "order.x~0", "orders#1", &hashed] {
            party.run(&database.insert_id(id)).await;
        }
        let call = Call { within: Duration::from_secs(20), meter: &Meter::default() };
        let filter = Filter {
            states: Vec::new(),
            consumer: Some(ConsumerName::new("order").unwrap()),
            written_before: None,
            now: NOW,
            skew: Duration::from_secs(1),
        };
        let (mut from, mut found, mut looked_at) = (Some(Cursor::new("")), Vec::new(), 0);
        while let Some(cursor) = from {
            let page = store.list(&filter, &cursor, call).await.unwrap();
            found.extend(page.records.into_iter().map(|(id, _)| id.as_str().to_owned()));
            (from, looked_at) = (page.next, looked_at + page.looked_at);
        }
        assert_eq!((found, looked_at), (vec!["order#1".to_owned(), hashed], 2), "{name}");
    }
}
