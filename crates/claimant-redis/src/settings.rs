//! The settings of Redis, read from the environment.

use claimant_core::{Error, SecretUrl, Variables};

const URL: &str = "CLAIMANT_REDIS_URL";
const CLUSTER: &str = "CLAIMANT_REDIS_CLUSTER";

/// The settings of Redis, read from the environment.
///
/// | variable | meaning | values | default |
/// | --- | --- | --- | --- |
/// | `CLAIMANT_REDIS_URL` | the Redis or Valkey that holds the records: `redis://user:password@host:6379/0`, or `rediss://` for TLS; of a cluster its endpoint, or several nodes, separated by commas | a URL | required by a [`RedisStore`](crate::RedisStore) |
/// | `CLAIMANT_REDIS_CLUSTER` | `on`: the URL is that of a cluster, such as Amazon MemoryDB; `off`: of a single server or its replicas | `on`, `off` | `off` |
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod redis { pub use claimant_redis::*; } }
/// use claimant::Variables;
/// use claimant::redis::RedisStore;
///
/// let variables = Variables::new([("CLAIMANT_REDIS_URL", "redis://127.0.0.1:6379/0")]);
/// let store = RedisStore::from_variables(variables)?;
/// # Ok::<_, claimant::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Settings {
    pub(crate) url: SecretUrl,
    pub(crate) cluster: bool,
}

impl Settings {
    /// Reads the settings; the reader keeps their faults.
    pub fn read(variables: &mut Variables) -> Self {
        let url = SecretUrl::new(variables.optional_text(URL).unwrap_or_default());
        Self { url, cluster: variables.optional_switch(CLUSTER).unwrap_or(false) }
    }

    /// Returns the settings, of which the URL has to be set.
    pub(crate) fn required(mut variables: Variables) -> Result<Self, Error> {
        variables.text_or_hint(URL, "give it redis://user:password@host:6379/0, or rediss:// for TLS");
        let settings = Self::read(&mut variables);
        variables.finish().map(|()| settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_has_a_url_and_is_a_cluster_or_not() {
        let required = |vars: &[(&str, &str)]| Settings::required(Variables::new(vars.iter().copied()));
        let url = ("CLAIMANT_REDIS_URL", "rediss://user:secret@host:6379/0");
        let set = required(&[url]).unwrap();
        assert_eq!((set.url.expose(), set.cluster), (url.1, false));
        assert!(!format!("{set:?}").contains("secret"));
        assert!(required(&[url, ("CLAIMANT_REDIS_CLUSTER", "on")]).unwrap().cluster);
        let text = required(&[("CLAIMANT_REDIS_CLUSTER", "yes")]).unwrap_err().to_string();
        assert!(
            text.contains("2 faults") && text.contains("CLAIMANT_REDIS_URL is not set: give it redis://"),
            "{text}"
        );
    }
}
