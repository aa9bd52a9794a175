//! What a store says of a database that is not as it should be.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use claimant_core::error::Chain;
use claimant_core::limits::SKEW_MAX_MS;
use claimant_core::{Call, Meter, Records as _, Settled, StoreError, StoreErrorKind, Timestamp};
use claimant_sql::{MySqlStore, PostgresStore};
use claimant_tests::services::MariaDb;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use super::world::{Database, KEY, NOW, Party, claim, completed, granted, id, request, settle};

/// How long a call that cannot succeed is given, and how long after that it has answered.
const WITHIN: Duration = Duration::from_millis(800);
const GRACE: Duration = Duration::from_secs(2);

/// What is done to the database, or to the URL, and what must be said: the kind, and a word of it.
struct Fault {
    name: &'static str,
    sql: &'static [&'static str],
    url: fn(String) -> String,
    kind: StoreErrorKind,
    says: &'static str,
}

const AS_IT_IS: fn(String) -> String = |url| url;

const FAULTS: &[Fault] = &[
    Fault {
        name: "wrong password",
        sql: &[],
        url: |url| url.replace(":claimant@", ":wrong@"),
        kind: StoreErrorKind::Denied,
        says: "Are user and password right",
    },
    Fault {
        name: "locked user",
        sql: &[],
        url: |url| url.replace("//claimant:", "//locked:"),
        kind: StoreErrorKind::Denied,
        says: "may the user connect from here",
    },
    Fault {
        name: "expired password",
        sql: &[],
        url: |url| url.replace("//claimant:", "//expired:"),
        kind: StoreErrorKind::Denied,
        says: "Are user and password right",
    },
    Fault {
        name: "unknown database",
        sql: &[],
        url: |url| url.replace("/claimant", "/nowhere").replace("//nowhere:", "//claimant:"),
        kind: StoreErrorKind::Misconfigured,
        says: "nowhere",
    },
    Fault {
        name: "user without rights",
        sql: &[],
        url: |url| url.replace("//claimant:", "//stranger:"),
        kind: StoreErrorKind::Denied,
        says: "needs SELECT, INSERT and UPDATE",
    },
    Fault {
        name: "no table",
        sql: &["DROP TABLE claimant_records"],
        url: AS_IT_IS,
        kind: StoreErrorKind::Misconfigured,
        says: "apply the migrations",
    },
    Fault {
        name: "a column is missing",
        sql: &["ALTER TABLE claimant_records DROP COLUMN attempts"],
        url: AS_IT_IS,
        kind: StoreErrorKind::Misconfigured,
        says: "apply the migrations",
    },
    Fault {
        name: "a column has another type",
        sql: &[
            "ALTER TABLE claimant_records DROP COLUMN owner",
            "ALTER TABLE claimant_records ADD COLUMN owner integer",
        ],
        url: AS_IT_IS,
        kind: StoreErrorKind::Misconfigured,
        says: "apply the migrations",
    },
    Fault {
        name: "another owner's record",
        sql: &["UPDATE claimant_records SET fence = -1"],
        url: AS_IT_IS,
        kind: StoreErrorKind::Corrupt,
        says: "column fence",
    },
    Fault {
        name: "no server listens",
        sql: &[],
        url: |url| with_port(&url, "1"),
        kind: StoreErrorKind::Unreachable,
        says: "is the server up",
    },
];

fn with_port(url: &str, port: &str) -> String {
    let (before, rest) = url.rsplit_once(':').unwrap();
    let (_, database) = rest.split_once('/').unwrap();
    format!("{before}:{port}/{database}")
}

/// A user that may connect and nothing else, and two that may not.
async fn make_users(party: &mut Party) {
    let sql = match party {
        Party::Postgres(_) => {
            "CREATE ROLE stranger LOGIN PASSWORD 'claimant'; CREATE ROLE locked PASSWORD 'claimant'; \
             CREATE ROLE expired LOGIN PASSWORD 'claimant' VALID UNTIL '2001-01-01'"
        }
        Party::MariaDb(_) => {
            "CREATE USER stranger@'%' IDENTIFIED BY 'claimant', locked@'%' IDENTIFIED BY 'claimant', \
             expired@'%' IDENTIFIED BY 'claimant'; CREATE TABLE claimant.open (id int); \
             GRANT SELECT ON claimant.open TO stranger@'%', locked@'%', expired@'%'; \
             ALTER USER locked@'%' ACCOUNT LOCK; ALTER USER expired@'%' PASSWORD EXPIRE"
        }
    };
    party.run(sql).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn what_is_wrong_is_said_with_its_mend_and_in_time() {
    for database in Database::alone() {
        let mut party = database.party().await;
        make_users(&mut party).await;
        for fault in FAULTS {
            let name = format!("{}, {}", database.name(), fault.name);
            let held = granted(&database.store(2).await, KEY).await;
            for sql in fault.sql {
                party.run(sql).await;
            }
            let broken = database.store_at(&(fault.url)(database.url()), 2).await;
            let start = Instant::now();
            let error = claim(&broken, KEY, WITHIN).await.expect_err(&name);
            assert!(start.elapsed() < WITHIN + GRACE, "{name}: {:?}", start.elapsed());
            let mut errors = vec![error];
            // What `claimant list` asks first.
            if fault.name == "no table" {
                let call = Call { within: WITHIN, meter: &Meter::default() };
                errors.push(broken.records().size(call).await.expect_err(&name));
            }
            if fault.kind == StoreErrorKind::Denied {
                // The engine settles again what it has the claim of. Another login would be refused as well, and too many lock a user.
                let Settled::Unknown { claim, error } = settle(&broken, held, WITHIN).await else { panic!("{name}") };
                let is_login =
                    matches!(fault.name, "wrong password" | "locked user") || error.to_string().contains("connecting");
                assert_eq!(claim.is_none(), is_login, "{name}: {error}");
                errors.push(error);
            }
            for error in errors {
                let text = format!("{} {error:?}", Chain(&error));
                assert_eq!(error.kind(), fault.kind, "{name}: {text}");
                assert!(text.contains(fault.says), "{name}: {text}");
                assert!(
                    !text.contains(KEY) && !text.contains("6164614065") && !text.contains(":claimant@"),
                    "{name}: {text}"
                );
            }
        }
    }
}

/// A line to this server, and how many connections there were on it.
async fn counted(server: &str) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count, server) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)), server.to_owned());
    let counts = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            counts.fetch_add(1, Ordering::SeqCst);
            let mut server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    (address, count)
}

/// A server can count them, and lock the user.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn many_calls_in_one_are_one_login_that_is_refused() {
    const KEYS: [&str; 3] = ["k1", "k2", "k3"];
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(2).await;
        let mut held = Vec::new();
        for key in KEYS {
            held.push((granted(&store, key).await, completed()));
        }
        let (line, logins) = counted(database.address()).await;
        let url = database.url().replace(database.address(), &line.to_string()).replace(":claimant@", ":wrong@");
        let broken = database.store_at(&url, 8).await.shared();
        let meter = Meter::default();
        let call = Call { within: Duration::from_secs(20), meter: &meter };
        let claimed = broken.claim_all(&KEYS.map(request), call).await;
        let denied = |error: &StoreError| error.kind() == StoreErrorKind::Denied;
        assert!(claimed.iter().all(|claimed| claimed.as_ref().is_err_and(denied)), "{name}: {claimed:?}");
        assert_eq!(logins.load(Ordering::SeqCst), 1, "{name}");
        let settled = broken.settle_all(held, call).await;
        let is_denied = |settled: &Settled| matches!(settled, Settled::Unknown { claim: None, error } if denied(error));
        assert!(settled.iter().all(is_denied), "{name}: {settled:?}");
        assert_eq!(logins.load(Ordering::SeqCst), 2, "{name}");
    }
}

/// A server that takes no writes, as in a failover: nothing was written, and the connection is not used again.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_server_that_takes_no_writes_has_written_nothing() {
    for database in Database::both().await {
        let (store, name) = (database.store(1).await, database.name());
        drop(granted(&store, KEY).await);
        let refuse: &[&str] = match &database {
            Database::Postgres(_) => &[
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = '25006'; END $$",
                "CREATE TRIGGER refuse BEFORE UPDATE ON claimant_records FOR EACH ROW EXECUTE FUNCTION refuse()",
            ],
            Database::MariaDb(_) => &["CREATE TRIGGER refuse BEFORE UPDATE ON claimant_records FOR EACH ROW \
                                       SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290"],
        };
        let mut party = database.party().await;
        for statement in refuse {
            party.run(statement).await;
        }
        let (records, call) = (store.records(), Call { within: Duration::from_secs(20), meter: &Meter::default() });
        let seen = records.get(&id(KEY), call).await.unwrap().unwrap();
        let before = store.connection().await;
        let error = records.replace(&id(KEY), &seen, &seen, call).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Throttled, "{name}: {error}");
        let text = error.to_string();
        assert!(text.contains("name the writer") && !text.contains("secret"), "{name}: {text}");
        assert_ne!(store.connection().await, before, "{name}");
    }
}

#[tokio::test]
async fn a_migration_without_a_server_says_what_to_look_at() {
    let short = Duration::from_millis(200);
    let postgres = PostgresStore::pool_options().acquire_timeout(short);
    let postgres = PostgresStore::new(postgres.connect_lazy("postgres://u:secret@127.0.0.1:1/d").unwrap());
    let mysql = MySqlStore::pool_options().acquire_timeout(short);
    let mysql = MySqlStore::new(mysql.connect_lazy("mysql://u:secret@127.0.0.1:1/d").unwrap());
    for error in [postgres.migrate().await.unwrap_err(), mysql.migrate().await.unwrap_err()] {
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
        assert!(error.to_string().contains("is the server up"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn silence_and_a_pool_in_use_end_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    for database in Database::both().await {
        let store = database.store_at(&with_port(&database.url(), &port), 2).await;
        let error = claim(&store, KEY, WITHIN).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");

        let store = database.store(1).await;
        store.all_returned().await;
        let start = Instant::now();
        let error = {
            let _held = store.hold().await;
            claim(&store, KEY, WITHIN).await.unwrap_err()
        };
        assert!(start.elapsed() < WITHIN + GRACE);
        assert!(error.to_string().contains("all 1 of the pool are in use"), "{error}");
        drop(granted(&store, KEY).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn connections_that_the_server_closed_cost_no_claim() {
    for database in Database::both().await {
        let store = database.store(4).await;
        let (store, mut party) = (&store, database.party().await);
        let keys: Vec<String> = (0..4).map(|n| format!("before {n}")).collect();
        let claims = keys.iter().map(|key| granted(store, key));
        futures_util::future::join_all(claims).await;
        store.all_returned().await;
        party.end_all_others().await;
        for n in 0..4 {
            drop(granted(store, &format!("after {n}")).await);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn migrations_can_be_applied_by_many_and_again() {
    for database in Database::both().await {
        database.party().await.run("DROP TABLE IF EXISTS claimant_records, claimant_migrations").await;
        let store = database.store_at(&database.url(), 4).await;
        let all = futures_util::future::join_all((0..4).map(|_| store.migrate())).await;
        assert!(all.iter().all(Result::is_ok), "{}: {all:?}", database.name());
        drop(granted(&store, KEY).await);
        store.migrate().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB: make test"]
async fn a_migration_without_a_database_says_so() {
    let server = MariaDb::shared().await;
    let store = MySqlStore::connect(&format!("mysql://claimant:claimant@{}/", server.address()), 1).await.unwrap();
    let error = store.migrate().await.unwrap_err();
    assert!(
        error.kind() == StoreErrorKind::Misconfigured && error.to_string().contains("names no database"),
        "{error}"
    );
    let call = Call { within: WITHIN, meter: &Meter::default() };
    let error = store.size(call).await.unwrap_err();
    assert!(
        error.kind() == StoreErrorKind::Misconfigured && error.to_string().contains("No database selected"),
        "{error}"
    );
}

/// The time is virtual: a database that is not there is waited for, since it may be starting, but not for ever.
#[tokio::test(start_paused = true)]
async fn migrations_do_not_wait_for_a_database_for_ever() {
    let postgres = PostgresStore::connect("postgres://claimant@127.0.0.1:1/claimant?sslmode=disable", 1).await.unwrap();
    let mysql = MySqlStore::connect("mysql://claimant@127.0.0.1:1/claimant?ssl-mode=disabled", 1).await.unwrap();
    let start = tokio::time::Instant::now();
    for migrated in [postgres.migrate().await, mysql.migrate().await] {
        let error = migrated.unwrap_err();
        assert!(
            error.kind() == StoreErrorKind::Unreachable && error.to_string().contains("is the server up"),
            "{error}"
        );
    }
    assert!(start.elapsed() < Duration::from_secs(90), "{:?}", start.elapsed());
}

/// No lease depends on it, so it has all the time of the call, and not only that of other statements.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_slow_database_has_time_to_delete() {
    for database in Database::both().await {
        let store = database.store(1).await;
        let mut party = database.party().await;
        party.run(&database.insert("old")).await;
        let slow: &[&str] = match &database {
            Database::Postgres(_) => &[
                "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3); RETURN OLD; END $$",
                "CREATE TRIGGER slow BEFORE DELETE ON claimant_records FOR EACH ROW EXECUTE FUNCTION slow()",
            ],
            Database::MariaDb(_) => &["CREATE TRIGGER slow BEFORE DELETE ON claimant_records FOR EACH ROW DO SLEEP(3)"],
        };
        for statement in slow {
            party.run(statement).await;
        }
        assert_eq!(store.delete_expired(NOW, 2).await.unwrap(), 1, "{}", database.name());
    }
}

/// A table in a schema that another search_path names is there: the same migrations elsewhere would make one without its records. And from
/// PostgreSQL 15 on only the database's owner may create tables in `public`, so this is what a first deployment meets.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn who_may_not_migrate_or_does_not_find_the_table_is_told_so() {
    for database in Database::both().await {
        drop(database.store(1).await);
        let (mut party, name) = (database.party().await, database.name());
        let make = match &database {
            Database::Postgres(_) => {
                "CREATE ROLE only_connects LOGIN PASSWORD 'claimant'; CREATE SCHEMA elsewhere; CREATE SCHEMA closed; \
                 GRANT USAGE, CREATE ON SCHEMA elsewhere TO only_connects; GRANT CREATE ON SCHEMA closed TO only_connects"
            }
            Database::MariaDb(_) => {
                "CREATE USER only_connects@'%' IDENTIFIED BY 'claimant'; CREATE TABLE open (id int); \
                 GRANT SELECT ON open TO only_connects@'%'"
            }
        };
        party.run(make).await;
        party.run("DROP TABLE claimant_migrations").await;
        let url = database.url().replace("//claimant:", "//only_connects:");
        let error = database.store_at(&url, 1).await.migrate().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{name}: {error}");
        let text = error.to_string();
        assert!(text.contains("has to be allowed to create tables") && !text.contains("INSERT"), "{name}: {text}");
        if let Database::Postgres(_) = database {
            let store = database.store_at(&format!("{url}?options[search_path]=closed"), 1).await;
            let error = store.migrate().await.unwrap_err();
            assert!(
                error.kind() == StoreErrorKind::Denied && error.to_string().contains("USAGE and CREATE"),
                "{error}"
            );
            let store = database.store_at(&format!("{url}?options[search_path]=elsewhere"), 1).await;
            let call = Call { within: WITHIN, meter: &Meter::default() };
            let error = store.records().size(call).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
            assert!(error.to_string().contains("in no schema of search_path that the user may use"), "{error}");
            store.migrate().await.unwrap();
        }
    }
}

/// The rights in the documentation suffice, and where some are missing, the error names them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn who_deletes_needs_the_rights_that_are_documented() {
    for database in Database::both().await {
        drop(database.store(1).await);
        let mut party = database.party().await;
        party.run(&database.insert("old")).await;
        for (user, rights, may) in
            [("only_writes", "SELECT, INSERT, UPDATE", false), ("only_deletes", "SELECT, UPDATE, DELETE", true)]
        {
            let (make, grantee) = match &database {
                Database::Postgres(_) => (format!("CREATE ROLE {user} LOGIN PASSWORD 'claimant'"), user.to_owned()),
                Database::MariaDb(_) => {
                    (format!("CREATE USER {user}@'%' IDENTIFIED BY 'claimant'"), format!("{user}@'%'"))
                }
            };
            party.run(&format!("{make}; GRANT {rights} ON claimant_records TO {grantee}")).await;
            let store = database.store_at(&database.url().replace("//claimant:", &format!("//{user}:")), 1).await;
            match (store.delete_expired(NOW, 2).await, may) {
                (Ok(1), true) => {}
                (Err(error), false) => assert!(error.to_string().contains("SELECT, UPDATE and DELETE"), "{error}"),
                (other, _) => panic!("{}, {user}: {other:?}", database.name()),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn expired_records_are_deleted_in_portions_and_no_others() {
    for database in Database::both().await {
        let store = database.store(2).await;
        let mut party = database.party().await;
        for n in 0..5 {
            party.run(&database.insert(&format!("old {n}"))).await;
        }
        drop(granted(&store, "live").await);
        let mut deleted = Vec::new();
        for _ in 0..4 {
            deleted.push(store.delete_expired(NOW, 2).await.unwrap());
        }
        assert_eq!(deleted, [2, 2, 1, 0], "{}", database.name());
        // Nor one whose window is over before its lease is.
        party.run("UPDATE claimant_records SET expires_at_s = 1 WHERE status = 'IN_PROGRESS'").await;
        assert_eq!(store.delete_expired(NOW, 2).await.unwrap(), 0, "{}", database.name());
        let call = Call { within: Duration::from_secs(20), meter: &Meter::default() };
        assert!(store.shared().get(&id("live"), call).await.unwrap().is_some());
        party.run("UPDATE claimant_records SET lease_until = 0 WHERE status = 'IN_PROGRESS'").await;
        assert_eq!(store.delete_expired(NOW, 2).await.unwrap(), 1, "{}", database.name());

        // A window that another process's clock may still see running.
        party.run(&database.insert("just over")).await;
        let over = Timestamp::from_millis(1_000);
        for (later_ms, deleted) in [(SKEW_MAX_MS / 2, 0), (SKEW_MAX_MS, 0), (SKEW_MAX_MS + 1_000, 1)] {
            let now = over.plus(Duration::from_millis(later_ms));
            assert_eq!(store.delete_expired(now, 2).await.unwrap(), deleted, "{}: {later_ms} ms", database.name());
        }
    }
}
