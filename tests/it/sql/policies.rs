//! A trigger or a row-level policy of somebody's on the table: nothing is done twice for it, and the errors name it.

use std::time::Duration;

use claimant_core::protocol::{ClaimPolicy, Renewal};
use claimant_core::{BatchTransactional as _, Call, ClaimAnswer, Meter, Settled, Store as _, StoreErrorKind};
use claimant_sql::PostgresStore;
use claimant_tests::services::Postgres;

use super::transactions::transactional;
use super::world::{AnyStore, Database, LEASE, NOW, Party, completed, granted, request};

const LONG: Duration = Duration::from_secs(20);

/// What is said of a write that was not made.
const IGNORED: &str = "has the table claimant_records a trigger or a row-level policy";

async fn postgres() -> (Database, PostgresStore, Party) {
    let database = Database::Postgres(Postgres::shared().await);
    let AnyStore::Postgres(store) = database.store(4).await else { panic!("it is PostgreSQL") };
    let party = database.party().await;
    (database, store, party)
}

/// A statement that makes a trigger do this before each write of this kind.
fn trigger(kind: &str, does: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION meddles() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does}; END $$; \
         CREATE OR REPLACE TRIGGER meddles BEFORE {kind} ON claimant_records FOR EACH ROW EXECUTE FUNCTION meddles()"
    )
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_write_that_a_trigger_leaves_out_is_asked_about() {
    let (database, store, mut party) = postgres().await;
    let shared = AnyStore::Postgres(store.clone());
    let transactions = transactional(&shared);
    let meter = Meter::default();
    let call = Call { within: LONG, meter: &meter };
    let [mut renewed, settled, first, second] = [
        granted(&shared, "renewed").await,
        granted(&shared, "settled").await,
        granted(&shared, "first").await,
        granted(&shared, "second").await,
    ];
    party.run(&database.insert("failed")).await;
    party.run(&trigger("UPDATE", "RETURN NULL")).await;

    let renewal = Renewal { lease_until: NOW.plus(LEASE * 2), now: NOW, policy: ClaimPolicy::default() };
    let error = store.renew(&mut renewed, renewal, call).await.unwrap_err().to_string();
    assert!(error.contains(IGNORED), "{error}");
    let ended = store.settle(settled, &completed(), call).await;
    assert!(matches!(&ended, Settled::Unknown { error, .. } if error.to_string().contains(IGNORED)), "{ended:?}");
    for error in [
        store.claim(&request("failed"), call).await.unwrap_err().to_string(),
        transactions.claim(&request("failed"), call).await.unwrap_err().to_string(),
    ] {
        assert!(error.contains(IGNORED), "{error}");
    }
    let Ok(ClaimAnswer::Granted(fresh)) = transactions.claim(&request("fresh"), call).await else { panic!("fresh") };
    let ended = transactions.settle(fresh, &completed(), call).await;
    assert!(matches!(&ended, Settled::Aborted { failure, .. } if failure.why.contains(IGNORED)), "{ended:?}");
    let transaction = store.begin(LEASE, call).await.unwrap();
    let both = vec![(first, completed()), (second, completed())];
    for ended in store.commit(transaction, both, call).await {
        assert!(matches!(&ended, Settled::Aborted { failure, .. } if failure.why.contains(IGNORED)), "{ended:?}");
    }

    party.run(&trigger("INSERT", "RETURN NULL")).await;
    let error = store.claim(&request("absent"), call).await.unwrap_err().to_string();
    assert!(error.contains(IGNORED), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_trigger_that_fails_is_named_beside_what_the_handler_can_have_left() {
    let (_database, store, mut party) = postgres().await;
    let transactions = transactional(&AnyStore::Postgres(store));
    let meter = Meter::default();
    let call = Call { within: LONG, meter: &meter };
    party.run(&trigger("UPDATE", "RAISE EXCEPTION 'not this one'")).await;
    let Ok(ClaimAnswer::Granted(fresh)) = transactions.claim(&request("fresh"), call).await else { panic!("fresh") };
    let ended = transactions.settle(fresh, &completed(), call).await;
    let Settled::Aborted { failure, .. } = ended else { panic!("{ended:?}") };
    assert!(failure.why.contains("(code P0001)") && failure.why.contains("has a trigger"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_row_level_policy_that_refuses_is_no_missing_right() {
    let (database, _, mut party) = postgres().await;
    party
        .run(
            "CREATE ROLE under_policies LOGIN PASSWORD 'claimant'; ALTER TABLE claimant_records ENABLE ROW LEVEL SECURITY; \
             GRANT SELECT, INSERT, UPDATE ON claimant_records TO under_policies",
        )
        .await;
    let store = database.store_at(&database.url().replace("//claimant:", "//under_policies:"), 1).await;
    let meter = Meter::default();
    let error = store.shared().claim(&request("k"), Call { within: LONG, meter: &meter }).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    let text = error.to_string();
    assert!(text.contains("policies have to let this user") && !text.contains("needs SELECT"), "{text}");
}
