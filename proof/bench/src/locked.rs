//! The versions in `Cargo.lock`.

const LOCK: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"));

/// The version of a crate that the workspace has in one version only.
pub(crate) fn version(name: &str) -> &'static str {
    let mut lines = LOCK.lines().skip_while(|line| line.strip_prefix("name = ") != Some(&format!("\"{name}\"")));
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = "));
    version.map_or("unknown", |v| v.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_found() {
        assert_eq!(super::version("claimant-core"), env!("CARGO_PKG_VERSION"));
        assert_eq!(super::version("no-such-crate"), "unknown");
    }
}
