//! Many keys at once, and what they cost.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::protocol::{ClaimRequest, Ending, Settlement};
use claimant_core::{BatchedClaim, Call, Claim, ClaimAnswer, Meter, Settled, StoreErrorKind};
use claimant_tests::services::Postgres;
use futures_util::future::join_all;

use super::world::{Database, completed, granted, id, request, settle};

const WITHIN: Duration = Duration::from_secs(30);
const KEYS: usize = 60;
const BATCHES: usize = 8;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn batches_with_the_same_keys_in_any_order_grant_each_once() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(10).await.shared();
        let batches = (0..BATCHES).map(|batch| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                // Each batch has the keys in an order of its own.
                let key = |n: usize| format!("key {}", (n * (2 * batch + 7) + batch) % KEYS);
                let requests: Vec<ClaimRequest> = (0..KEYS).map(|n| request(&key(n))).collect();
                let meter = Meter::default();
                let mut held = Vec::new();
                for (request, answer) in
                    requests.iter().zip(store.claim_all(&requests, Call { within: WITHIN, meter: &meter }).await)
                {
                    let answer = match answer.unwrap() {
                        BatchedClaim::Answered(answer) => answer,
                        BatchedClaim::ClaimAlone => {
                            store.claim(request, Call { within: WITHIN, meter: &meter }).await.unwrap()
                        }
                    };
                    if let ClaimAnswer::Granted(claim) = answer {
                        held.push((claim, completed()));
                    }
                }
                let granted = held.len();
                let settled = store.settle_all(held, Call { within: WITHIN, meter: &meter }).await;
                assert!(settled.iter().all(|settled| matches!(settled, Settled::Done)), "{settled:?}");
                granted
            })
        });
        let granted: usize = join_all(batches).await.into_iter().map(Result::unwrap).sum();
        assert_eq!(granted, KEYS, "{name}");
    }
}

/// Two batches with the same keys do not wait for each other then.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn batches_write_their_records_in_the_order_of_their_ids() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(1).await;
        let mut party = database.party().await;
        let notes: &[&str] = match &database {
            Database::Postgres(_) => &[
                "CREATE TABLE written (n bigserial PRIMARY KEY, id bytea)",
                "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN INSERT INTO written (id) VALUES (NEW.id); RETURN NEW; END $$",
                "CREATE TRIGGER note BEFORE INSERT ON claimant_records FOR EACH ROW EXECUTE FUNCTION note()",
            ],
            Database::MariaDb(_) => &[
                "CREATE TABLE written (n bigint AUTO_INCREMENT PRIMARY KEY, id varbinary(1024))",
                "CREATE TRIGGER note_claim BEFORE INSERT ON claimant_records FOR EACH ROW \
                 INSERT INTO written (id) VALUES (NEW.id)",
                "CREATE TRIGGER note_ending BEFORE UPDATE ON claimant_records FOR EACH ROW \
                 INSERT INTO written (id) VALUES (NEW.id)",
            ],
        };
        for sql in notes {
            party.run(sql).await;
        }
        let meter = Meter::default();
        let call = Call { within: WITHIN, meter: &meter };
        let mut endings = Vec::new();
        let requests = ["c", "a", "b"].map(request);
        for (n, answer) in store.shared().claim_all(&requests, call).await.into_iter().enumerate() {
            let Ok(BatchedClaim::Answered(ClaimAnswer::Granted(claim))) = answer else { panic!("{name}: {answer:?}") };
            // Results that differ are a statement each in MariaDB.
            let ending = Ending::Completed { result: Some(format!("[{n}]")) };
            endings.push((claim, Settlement { ending, ..completed() }));
        }
        let settled = store.shared().settle_all(endings, call).await;
        assert!(settled.iter().all(|settled| matches!(settled, Settled::Done)), "{name}: {settled:?}");
        let written = party.texts("SELECT id FROM written ORDER BY n").await;
        let wanted = ["a", "b", "c"].map(|key| id(key).as_str().to_owned());
        let wanted =
            if matches!(database, Database::Postgres(_)) { wanted.to_vec() } else { [wanted.clone(), wanted].concat() };
        assert_eq!(written, wanted, "{name}");
    }
}

/// However its plan finds them: here in the order in which they were written.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_completion_of_many_locks_their_records_in_the_order_of_their_ids() {
    let database = Database::Postgres(Postgres::shared().await);
    let store = database.store(2).await;
    let plan = "?options[enable_nestloop]=off&options[enable_mergejoin]=off&options[enable_indexscan]=off\
                &options[enable_bitmapscan]=off";
    let settling = database.store_at(&(database.url() + plan), 1).await.shared();
    let mut endings = Vec::new();
    for key in ["last", "first"] {
        // The other way round: a call that gives up tries the locked one by itself first.
        endings.insert(0, (granted(&store, key).await, completed()));
    }
    let lock = |key: &str, how: &str| {
        let hex: String = id(key).as_str().bytes().map(|b| format!("{b:02x}")).collect();
        format!("SELECT 1 FROM claimant_records WHERE id = decode('{hex}', 'hex') FOR UPDATE {how}")
    };
    let (mut party, mut other) = (database.party().await, database.party().await);
    party.run(&format!("BEGIN; {}", lock("first", ""))).await;
    let call =
        tokio::spawn(
            async move { settling.settle_all(endings, Call { within: WITHIN, meter: &Meter::default() }).await },
        );
    while other.count(database.waits()).await == 0 && !call.is_finished() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // It has locked nothing yet.
    other.run(&lock("last", "NOWAIT")).await;
    party.run("ROLLBACK").await;
    let settled = call.await.unwrap();
    assert!(settled.iter().all(|settled| matches!(settled, Settled::Done)), "{settled:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn many_fresh_keys_cost_one_statement_to_claim_and_one_to_complete() {
    for database in Database::both().await {
        let name = database.name();
        let whole = database.store(2).await;
        let store = whole.shared();
        let meter = Meter::default();
        let requests: Vec<ClaimRequest> = (0..25).map(|n| request(&format!("key {n}"))).collect();
        let answers = store.claim_all(&requests, Call { within: WITHIN, meter: &meter }).await;
        let claims: Vec<Claim> = answers
            .into_iter()
            .map(|answer| match answer {
                Ok(BatchedClaim::Answered(ClaimAnswer::Granted(claim))) => claim,
                other => panic!("{name}: {other:?}"),
            })
            .collect();
        assert_eq!(meter.usage().requests, 1, "{name}");
        let endings = claims.into_iter().map(|claim| (claim, completed())).collect();
        let settled = store.settle_all(endings, Call { within: WITHIN, meter: &meter }).await;
        assert!(settled.iter().all(|settled| matches!(settled, Settled::Done)), "{name}: {settled:?}");
        assert_eq!(meter.usage().requests, 2, "{name}");

        // A stale ending among good ones is told apart.
        let (good, stale) = (granted(&whole, "good").await, granted(&whole, "stale").await);
        let again = claimant_testkit::faulty::stale_copy(&stale);
        assert!(matches!(settle(&whole, stale, WITHIN).await, Settled::Done));
        let failed = Settlement { ending: Ending::Failed { error: "late".into() }, ..completed() };
        let mixed = vec![(good, completed()), (again, failed)];
        let settled = store.settle_all(mixed, Call { within: WITHIN, meter: &meter }).await;
        assert!(matches!(settled[..], [Settled::Done, Settled::Lost]), "{name}: {settled:?}");
    }
}

/// A row that claimant cannot read fails its own key; what one statement wrote beside it stays the claims of who sent it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_row_that_cannot_be_read_fails_its_own_claim_only() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(2).await;
        drop(granted(&store, "bad").await);
        database.party().await.run("UPDATE claimant_records SET fence = -1").await;
        let (store, meter) = (store.shared(), Meter::default());
        let call = Call { within: WITHIN, meter: &meter };
        let requests = ["fresh 1", "bad", "fresh 2"].map(request);
        let answers = store.claim_all(&requests, call).await;
        for (request, answer) in requests.iter().zip(answers) {
            let answer = match answer {
                Ok(BatchedClaim::Answered(answer)) => Ok(answer),
                Ok(BatchedClaim::ClaimAlone) => store.claim(request, call).await,
                Err(error) => Err(error),
            };
            let as_wanted = match &answer {
                Ok(ClaimAnswer::Granted(claim)) => (claim.fence.get(), claim.attempt, claim.interruptions) == (1, 1, 0),
                Ok(ClaimAnswer::Refused(_)) => false,
                Err(error) => request.id == requests[1].id && error.kind() == StoreErrorKind::Corrupt,
            };
            assert!(as_wanted, "{name}, {:?}: {answer:?}", request.id);
        }
    }
}
