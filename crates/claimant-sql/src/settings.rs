//! The settings of the database, read from the environment.

use claimant_core::{Error, SecretUrl, Variables};

const URL: &str = "CLAIMANT_DATABASE_URL";
const CONNECTIONS: &str = "CLAIMANT_DATABASE_CONNECTIONS";

/// Connections of a pool, unless set: one for each message that is worked on at once. Most functions need few, and only those
/// are made.
pub const CONNECTIONS_DEFAULT: u32 = 10;

/// The most connections that may be set.
const CONNECTIONS_MAX: u32 = 1_000;

/// The settings of the database, read from the environment.
///
/// | variable | meaning | bounds | default |
/// | --- | --- | --- | --- |
/// | `CLAIMANT_DATABASE_URL` | the database that holds the records: `postgres://user:password@host/database?sslmode=verify-full` or `mysql://user:password@host/database?ssl-mode=VERIFY_IDENTITY` | a URL | required by a store in SQL and an inbox |
/// | `CLAIMANT_DATABASE_CONNECTIONS` | connections that each store opened with these settings may hold, which its clones share; a transactional consumer holds one for each message it works on | 1 to 1000 | 10 |
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod postgres { pub use claimant_sql::*; } }
/// use claimant::Variables;
/// use claimant::postgres::Settings;
///
/// let mut variables = Variables::new([("CLAIMANT_DATABASE_CONNECTIONS", "0")]);
/// Settings::read(&mut variables);
/// assert!(variables.finish().unwrap_err().to_string().contains("from 1 to 1000"));
/// ```
#[derive(Debug, Clone)]
pub struct Settings {
    pub(crate) url: SecretUrl,
    pub(crate) connections: u32,
}

impl Settings {
    /// Reads the settings; the reader keeps their faults.
    pub fn read(variables: &mut Variables) -> Self {
        let url = SecretUrl::new(variables.optional_text(URL).unwrap_or_default());
        let connections = variables.optional_number(CONNECTIONS, 1..=CONNECTIONS_MAX.into());
        // OK because the bounds fit any u32.
        Self { url, connections: connections.map_or(CONNECTIONS_DEFAULT, |count| count as u32) }
    }

    /// Checks that a URL begins with one of these schemes: drivers take any.
    pub(crate) fn check_scheme(url: &str, schemes: &[&str]) -> Result<(), Error> {
        if SecretUrl::new(url).has_scheme(schemes) {
            return Ok(());
        }
        Err(Error::invalid(format!("the database URL is not usable: it does not begin with {}://", schemes[0])))
    }

    /// Returns the settings of a database whose URL, which has to be set, begins with one of these schemes.
    pub(crate) fn required(mut variables: Variables, database: &str, schemes: &[&str]) -> Result<Self, Error> {
        let scheme = schemes[0];
        let url = variables.text_or_hint(URL, &format!("give it {scheme}://user:password@host:port/database"));
        let settings = Self::read(&mut variables);
        if !url.trim().is_empty() && !settings.url.has_scheme(schemes) {
            variables.fault(format!("{URL} does not begin with {scheme}://, and the store is {database}"));
        }
        variables.finish().map(|()| settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn required(vars: &[(&str, &str)]) -> Result<Settings, Error> {
        Settings::required(Variables::new(vars.iter().copied()), "PostgreSQL", &["postgres", "postgresql"])
    }

    #[test]
    fn a_database_has_a_url_and_a_number_of_connections() {
        let url = ("CLAIMANT_DATABASE_URL", "postgres://claimant:secret@host/database");
        let defaults = required(&[url]).unwrap();
        assert_eq!((defaults.url.expose(), defaults.connections), (url.1, 10));
        let set = required(&[url, ("CLAIMANT_DATABASE_CONNECTIONS", "3")]).unwrap();
        assert_eq!(set.connections, 3);
        assert!(!format!("{set:?}").contains("secret"));
    }

    #[test]
    fn faults_are_listed_together_and_do_not_show_the_url() {
        let other = ("CLAIMANT_DATABASE_URL", "mysql://u:secret@h/d");
        for (vars, wanted) in [
            (&[][..], &["CLAIMANT_DATABASE_URL is not set: give it postgres://"][..]),
            (&[("CLAIMANT_DATABASE_URL", "")], &["CLAIMANT_DATABASE_URL is set but empty"]),
            (
                &[other, ("CLAIMANT_DATABASE_CONNECTIONS", "0")],
                &["2 faults", "does not begin with postgres://, and the store is PostgreSQL", "from 1 to 1000"],
            ),
            (&[other, ("CLAIMANT_DATABASE_CONECTIONS", "9")], &["2 faults", "mean CLAIMANT_DATABASE_CONNECTIONS?"]),
        ] {
            let text = format!("{:?}", required(vars).unwrap_err());
            assert!(wanted.iter().all(|wanted| text.contains(wanted)) && !text.contains("secret"), "{text}");
        }
    }
}
