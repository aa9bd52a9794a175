//! TLS, with rustls and ring, where the URL asks for it: a certificate is believed only where it is to be trusted.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use claimant_core::StoreErrorKind;
use claimant_tests::services::Postgres;
use sqlx::{Connection as _, PgConnection};

use super::world::{AnyStore, Database, claim};

const WITHIN: Duration = Duration::from_secs(20);

/// A certificate for 127.0.0.1 and its key, in files that the owner of the server's data may read.
fn make_certificate(directory: &Path, data: &str) -> [String; 2] {
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (path("server.crt"), path("server.key"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:false"])
        .args(["-keyout", &key, "-out", &certificate])
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("the openssl command is there").success());
    let owner = std::fs::metadata(data).unwrap();
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    chown(&key, Some(owner.uid()), Some(owner.gid())).unwrap();
    [certificate, key]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_certificate_is_believed_only_where_it_is_to_be_trusted() {
    let server = Postgres::start();
    let url = server.url();
    let mut party = PgConnection::connect(&url).await.unwrap();
    let data: String = sqlx::query_scalar("SHOW data_directory").fetch_one(&mut party).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = make_certificate(directory.path(), &data);
    let database = Database::Postgres(server);
    let mut other = database.party().await;
    other.run(&format!("ALTER SYSTEM SET ssl_cert_file = '{certificate}'")).await;
    other.run(&format!("ALTER SYSTEM SET ssl_key_file = '{key}'")).await;
    other.run("ALTER SYSTEM SET ssl = on").await;
    other.run("SELECT pg_reload_conf()").await;

    let trusting = format!("{url}?sslmode=verify-full&sslrootcert={certificate}");
    // The server takes the new settings up after a moment.
    let store = database.store_at(&trusting, 2).await;
    let migrated = tokio::time::timeout(WITHIN, async {
        while store.migrate().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    migrated.await.expect("the server speaks TLS");
    let AnyStore::Postgres(inner) = &store else { panic!("it is PostgreSQL") };
    let encrypted = sqlx::query_scalar::<_, bool>("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    assert!(encrypted.fetch_one(inner.pool()).await.unwrap());
    assert!(claim(&store, "trusted", WITHIN).await.is_ok());

    let doubting = database.store_at(&format!("{url}?sslmode=verify-full"), 2).await;
    let error = claim(&doubting, "not trusted", WITHIN).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("Does the URL name the CA's file"), "{error}");
}
