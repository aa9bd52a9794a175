//! Values that must never be logged.

use std::fmt;

/// The URL of a server. It can hold a password, so `Debug` shows none of it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl(String);

impl SecretUrl {
    /// Wraps a URL, unchanged.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// Returns the URL itself, for a driver.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether it begins with one of these and `://`.
    #[must_use]
    pub fn has_scheme(&self, schemes: &[&str]) -> bool {
        self.0.split_once("://").is_some_and(|(scheme, _)| schemes.contains(&scheme))
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretUrl(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_url() {
        let url = SecretUrl::new("postgres://claimant:secret@host/database");
        assert!(!format!("{url:?}").contains("secret"));
        assert!(url.has_scheme(&["postgres"]) && !url.has_scheme(&["mysql", "postgresql"]));
    }
}
