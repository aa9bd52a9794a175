//! A line that falls silent.

use std::time::Duration;

use claimant_core::ClaimAnswer;
use claimant_tests::tap::{Loss, Tap};

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
