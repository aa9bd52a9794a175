//! Another owner's transaction holds a record.

use std::time::{Duration, Instant};

use claimant_core::{BatchedClaim, Call, ClaimAnswer, Meter, Settled, Status};

use super::world::{Database, claim, copy, granted, id, request, settle};

const WITHIN: Duration = Duration::from_millis(700);
const GRACE: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_locked_record_holds_up_its_own_calls_only_and_not_for_long() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(8).await;
        let held = granted(&store, "held").await;
        let mut party = database.party().await;
        // One record is locked, another one is not visible to others yet.
        party.run("BEGIN").await;
        party.run("UPDATE claimant_records SET attempts = attempts").await;
        party.run(&database.insert("new")).await;

        let start = Instant::now();
        let settled = settle(&store, copy(&held), WITHIN).await;
        assert!(matches!(settled, Settled::Unknown { claim: Some(_), .. }), "{name}: {settled:?}");
        let error = claim(&store, "new", WITHIN).await.unwrap_err();
        assert!(start.elapsed() < 2 * WITHIN + GRACE, "{name}: {:?} {error}", start.elapsed());

        // In company, the others get their answers.
        let requests = [request("new"), request("free"), request("held")];
        let meter = Meter::default();
        let answers = store.shared().claim_all(&requests, Call { within: LONG, meter: &meter }).await;
        assert!(answers.iter().all(|answer| matches!(answer, Ok(BatchedClaim::ClaimAlone))), "{name}: {answers:?}");
        drop(granted(&store, "free").await);

        // A call that is dropped while it waits leaves nothing behind.
        let dropped = tokio::time::timeout(Duration::from_millis(100), settle(&store, copy(&held), LONG)).await;
        assert!(dropped.is_err());
        store.all_returned().await;

        party.run("ROLLBACK").await;
        assert!(matches!(settle(&store, held, LONG).await, Settled::Done), "{name}");
        assert!(matches!(claim(&store, "new", LONG).await.unwrap(), ClaimAnswer::Granted(_)), "{name}");
        let record = store.shared().get(&id("held"), Call { within: LONG, meter: &meter }).await.unwrap().unwrap();
        assert_eq!(record.status, Status::Completed, "{name}");
        store.all_returned().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn calls_that_are_dropped_at_any_point_poison_no_connection() {
    for database in Database::both().await {
        let store = database.store(2).await;
        for n in 0..60_u64 {
            let key = format!("key {n}");
            let cut_off = claim(&store, &key, LONG);
            // Some end before the connection is there, some in the middle of the answer, some after it.
            let _ = tokio::time::timeout(Duration::from_micros(n * 40), cut_off).await;
            let other = format!("other {n}");
            assert!(matches!(claim(&store, &other, LONG).await.unwrap(), ClaimAnswer::Granted(_)));
        }
        store.all_returned().await;
    }
}
