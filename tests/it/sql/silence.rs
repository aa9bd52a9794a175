//! A line that falls silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use claimant_core::ClaimAnswer;
use claimant_servers::relay::{Direction, Fate, Relay, Rule};
use claimant_tests::tap::{Loss, Tap};
use tokio::time::Instant;

use super::world::{Database, claim, granted};

const LONG: Duration = Duration::from_secs(20);

/// A pool tests what returns to it by a query. Here its answer never comes, as when a function was frozen before it did.
#[tokio::test]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_connection_that_falls_silent_on_its_way_back_does_not_keep_its_place() {
    for database in Database::both().await {
        let name = database.name();
        drop(database.store(1).await);
        let server = database.address();
        let tap = Tap::before(server).await;
        let store = database.store_at(&database.url().replace(server, &tap.address), 1).await;
        drop(granted(&store, "before").await);
        // On this runtime of one thread, the connection's way back is a task that has not begun yet.
        tap.lose(Loss::Silence);
        while !tap.lost() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let answer = claim(&store, "after", LONG).await;
        assert!(matches!(answer, Ok(ClaimAnswer::Granted(_))), "{name}: {answer:?}");
    }
}

/// Nothing arrives any more from when this is set.
#[derive(Default)]
struct Silent(AtomicBool);

impl Rule for Silent {
    async fn fate(&self, _: Direction) -> Fate {
        if self.0.load(Ordering::SeqCst) { Fate::Silence } else { Fate::Pass }
    }
}

/// After a try that failed, the next connection is tested first: not for longer than the call has.
#[tokio::test]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_call_ends_in_its_time_while_it_tests_a_connection() {
    // One statement, and less than a test may take.
    const CALL: Duration = Duration::from_millis(2_200);
    for database in Database::both().await {
        let name = database.name();
        drop(database.store(1).await);
        let (server, silent) = (database.address(), Arc::new(Silent::default()));
        let relay = Relay::start(server, Arc::clone(&silent)).await.unwrap();
        let store = database.store_at(&database.url().replace(server, &relay.address.to_string()), 2).await;
        drop((store.hold().await, store.hold().await));
        store.all_returned().await;
        silent.0.store(true, Ordering::SeqCst);
        // From here on there is nothing to wait for but the clock, which then goes on by itself.
        tokio::time::pause();
        let begun = Instant::now();
        let answer = claim(&store, "silent", CALL).await;
        let took = begun.elapsed();
        tokio::time::resume();
        assert!(answer.is_err() && took <= CALL + Duration::from_millis(5), "{name}: {took:?}, {answer:?}");
    }
}
