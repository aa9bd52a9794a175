//! URLs that are refused, and never shown.

use claimant_core::Variables;
use claimant_inbox::Inbox;
use claimant_sql::{MySqlStore, PostgresStore};

#[tokio::test]
async fn a_url_of_another_database_is_refused_and_never_shown() {
    let variables = |url: &str| Variables::new([("CLAIMANT_DATABASE_URL", url)]);
    let (postgres, mysql) = ("postgresql://u:secret@h/d", "mysql://u:secret@h/d");
    assert!(PostgresStore::from_variables(variables(postgres)).await.is_ok());
    assert!(MySqlStore::from_variables(variables(mysql)).await.is_ok());
    let errors = [
        PostgresStore::from_variables(variables(mysql)).await.map(drop),
        MySqlStore::from_variables(variables(postgres)).await.map(drop),
        PostgresStore::from_variables(Variables::new([("PATH", "/bin")])).await.map(drop),
        PostgresStore::connect(mysql, 1).await.map(drop),
        MySqlStore::connect(postgres, 1).await.map(drop),
        Inbox::connect(mysql, 1).await.map(drop),
        PostgresStore::connect("postgres://u:secret@h:port/d", 1).await.map(drop),
    ];
    for error in errors {
        let text = format!("{:?}", error.unwrap_err());
        assert!(!text.contains("secret") && !text.is_empty(), "{text}");
    }
    assert!(!format!("{:?}", variables(mysql)).contains("secret"));
}

/// sqlx would log an unknown parameter, and pass over it: TLS that was misspelt would not be checked. It would look several hosts up
/// as one.
#[tokio::test]
async fn what_the_driver_does_not_know_is_refused_and_never_shown() {
    let (unknown, password, mode) = ("is none of sslmode", "? %3F", "none of disable, allow, prefer");
    let several = "it names several hosts";
    for (url, says) in [
        ("postgres://u:p@h/d?sslpassword=secret", unknown),
        ("postgres://u:p@h/d?sslmode=require&Password=secret", "its parameter 2 is none of"),
        ("postgres://u:p@h/d?sslmod=verify-full", unknown),
        ("postgres://u:p@h/d?ssl_mode=verify-full", unknown),
        ("postgres://u:p@h/d?SSLMODE=verify-full", unknown),
        ("postgres://u:p@h/d?target_session_attrs=secret", "its parameter target_session_attrs is none of"),
        ("postgres://u:p@h/d?sslmode=require&channel_binding=require", "Leave it out"),
        ("postgres://u:p@h/d?options[secret", unknown),
        ("postgres://u:p@h/d?sslmode=secret", mode),
        ("postgres://u:p@h/d?sslmode", mode),
        ("postgres://u:p@secret,b:5432/d", several),
        ("postgres://u:p@secret:5432,b:5432/d?sslmode=require", several),
        ("postgres://secret,b/d", several),
        ("postgres:///d?host=secret,b", several),
        ("postgres:///d?host=secret%2cb", several),
        ("postgres://u:p@secret%2Cb/d", several),
        ("mysql://u:p@secret,b/d", several),
        // In a password.
        ("postgres://u:1,2?secret@h/d", unknown),
        ("postgres://u:12?secret@h/d", unknown),
        ("postgres://u:p@x?secret=1@h/d?sslmode=verify-full", unknown),
        ("postgres://u:12?sslmode=secret@h/d", mode),
        ("postgres://u:12#secret@h/d", password),
        ("postgres://u:12/secret@h/d", password),
        ("mysql://u:p@h/d?sslMode=DISABLED&secret=1", "its parameter 1 is none of ssl-mode, sslmode"),
        ("mysql://u:p@h/d?ssl-mode=secret", "none of DISABLED, PREFERRED"),
    ] {
        let mut refused = vec![match url.starts_with("mysql") {
            true => MySqlStore::connect(url, 1).await.map(drop),
            false => PostgresStore::connect(url, 1).await.map(drop),
        }];
        if url.starts_with("postgres") {
            refused.push(Inbox::connect(url, 1).await.map(drop));
        }
        for error in refused {
            let text = format!("{:?}", error.expect_err(url));
            assert!(text.contains(says) && !text.contains("secret"), "{url}: {text}");
        }
    }
}
