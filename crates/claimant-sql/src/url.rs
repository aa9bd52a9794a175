//! The URL of a database, checked before the driver reads it.
//!
//! A driver passes over a parameter that it does not know: a misspelt `sslmode` would mean that no certificate is checked. And it logs that
//! parameter's value, or quotes one that it cannot use. Each can be a secret, or a part of a password with a `?` in it.

use std::str::FromStr;

use claimant_core::Error;

/// What the URLs of a database can have.
pub(crate) struct UrlRules {
    /// How they look.
    pub(crate) form: &'static str,
    /// The names of their parameters, those that the driver knows.
    pub(crate) parameters: &'static [&'static str],
    /// Those that say whether there is TLS.
    pub(crate) tls: &'static [&'static str],
    /// What these can be.
    pub(crate) tls_modes: &'static [&'static str],
}

impl UrlRules {
    /// Returns the driver's options of this URL. No error shows anything of it.
    pub(crate) fn parse<O: FromStr<Err = sqlx::Error>>(&self, url: &str) -> Result<O, Error> {
        let unusable = |why: &str| Error::invalid(format!("the database URL is not usable: {why}"));
        if let Some(why) = self.refusal(url.trim()) {
            return Err(unusable(&why));
        }
        url.parse().map_err(|error: sqlx::Error| unusable(&format!("{} is needed", self.form)).caused_by(error))
    }

    fn refusal(&self, url: &str) -> Option<String> {
        let (before, query) = url.split_once('?').unwrap_or((url, ""));
        let rest = before.split_once("://").map_or("", |(_, rest)| rest);
        let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
        if url.contains('#') || path.contains('@') {
            return Some(format!("in user, password and database, {ESCAPES}"));
        }
        let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
        let mut parameters = parameters.map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")));
        let host = server.rsplit_once('@').map_or(server, |(_, host)| host);
        let unknown = parameters.clone().enumerate().find_map(|(index, (name, value))| {
            if self.tls.contains(&name) {
                let is_mode = self.tls_modes.iter().any(|mode| mode.eq_ignore_ascii_case(value));
                return (!is_mode).then(|| format!("its {name} is none of {}", self.tls_modes.join(", ")));
            }
            (!self.knows(name)).then(|| {
                let known = [self.tls, self.parameters].concat().join(", ");
                if OTHERS.contains(&name) {
                    return format!("its parameter {name} is none of {known}. Leave it out: it would have no effect");
                }
                format!(
                    "its parameter {} is none of {known}. It is not shown, since it can be a part of a password, where {ESCAPES}",
                    index + 1
                )
            })
        });
        // After them: what looks like a host can be a part of a password, too.
        let is_list = |hosts: &str| hosts.contains(',') || hosts.to_ascii_uppercase().contains("%2C");
        let has_several = is_list(host) || parameters.any(|(name, hosts)| name == "host" && is_list(hosts));
        unknown.or_else(|| has_several.then(|| SEVERAL_HOSTS.to_owned()))
    }

    fn knows(&self, name: &str) -> bool {
        let is_option = |(begin, end)| name.starts_with(begin) && name.ends_with(end);
        self.parameters.contains(&name)
            || self.parameters.contains(&OPTION)
                && [("options[", "]"), ("options%5B", "%5D"), ("options%5b", "%5d")].into_iter().any(is_option)
    }
}

/// The parameter for each of PostgreSQL's settings.
pub(crate) const OPTION: &str = "options[NAME]";

/// What other drivers take, and hosters write into URLs. Only these are shown.
const OTHERS: [&str; 8] = [
    "channel_binding",
    "connect_timeout",
    "connection_limit",
    "gssencmode",
    "pgbouncer",
    "pool_timeout",
    "sslpassword",
    "target_session_attrs",
];

const SEVERAL_HOSTS: &str = "it names several hosts: name one address alone, which leads to the writer";

/// What ends the user and the password of a URL, or is not expected in a database's name, where it is not written so.
const ESCAPES: &str = "/ is written %2F, ? %3F, # %23 and @ %40";

#[cfg(all(feature = "mysql", feature = "postgres"))]
#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use sqlx::mysql::MySqlConnectOptions;
    use sqlx::postgres::PgConnectOptions;

    use super::*;
    use crate::{mysql, postgres};

    /// A driver that does not know one any more would log it.
    fn each_has_an_effect<O: FromStr<Err = sqlx::Error> + Debug>(rules: &UrlRules, url: &str) {
        let options = |url: &str| format!("{:?}", rules.parse::<O>(url).unwrap());
        for name in [rules.tls, rules.parameters].concat() {
            let value = match name {
                name if rules.tls.contains(&name) => rules.tls_modes[0],
                "port" | "statement-cache-capacity" => "7",
                "hostaddr" => "127.0.0.7",
                _ => "other",
            };
            assert_ne!(options(url), options(&format!("{url}?{name}={value}")), "{name}");
        }
        for mode in rules.tls_modes {
            options(&format!("{url}?{}={mode}\n", rules.tls[0]));
        }
    }

    #[test]
    fn each_parameter_that_is_taken_has_an_effect() {
        each_has_an_effect::<PgConnectOptions>(&postgres::URLS, "postgres://u:p@h/d");
        each_has_an_effect::<MySqlConnectOptions>(&mysql::URLS, "mysql://u:p@h/d");
        // As others write them, too.
        for url in [
            "postgres://u:p@h/d?&options%5Ba%5D=b&",
            "postgres://h/d?options%5ba%5d=b&options[c]=d",
            "postgres://u:@[::1]:5432/x%40y?options=-c%20a=b",
            "postgresql://u:p%2F@%2Frun%2Fpostgresql/d?sslmode=VERIFY-FULL",
            "postgres:///d?host=/run/postgresql",
            "postgres://u,v:p,q@h/d,e?application_name=a,b",
        ] {
            assert!(postgres::URLS.parse::<PgConnectOptions>(url).is_ok(), "{url}");
        }
    }
}
