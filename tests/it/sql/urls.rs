//! URLs that are refused, and never shown.

use claimant_core::Variables;
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
        PostgresStore::connect("postgres://u:secret@h:port/d", 1).await.map(drop),
        MySqlStore::connect("mysql://u:secret@h/d?ssl-mode=maybe", 1).await.map(drop),
    ];
    for error in errors {
        let text = format!("{:?}", error.unwrap_err());
        assert!(!text.contains("secret") && !text.is_empty(), "{text}");
    }
    assert!(!format!("{:?}", variables(mysql)).contains("secret"));
}
