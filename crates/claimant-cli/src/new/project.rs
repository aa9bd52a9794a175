//! A whole small project around a first consumer, outside this repository.

use std::borrow::Cow;
use std::path::Path;

use claimant_local::Error;
use claimant_operate::text::typed;

use super::consumer::{Consumer, DEPENDENCIES, SDK};
use super::plan::Plan;
use super::render::Words;

const MANIFEST: &str = include_str!("../../templates/project/Cargo.toml.in");
const TEMPLATE: &str = include_str!("../../templates/project/template.yaml.in");
const README: &str = include_str!("../../templates/project/README.md.in");
const RUSTFMT: &str = include_str!("../../templates/project/rustfmt.toml");
const CLIPPY: &str = include_str!("../../templates/project/clippy.toml.in");
const GITIGNORE: &str = include_str!("../../templates/project/gitignore");

/// The checkout that this command was built from.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Where a project gets claimant from: it is not on crates.io yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// The absolute path of a checkout.
    Path(String),
    /// The URL of a repository.
    Git(String),
}

impl Source {
    /// Returns what was asked for, else the checkout that built this command.
    ///
    /// # Errors
    /// When there is no checkout of claimant at the path, or the repository is no URL, or one with credentials.
    pub(super) fn choose(path: Option<&Path>, git: Option<&str>) -> Result<Self, Error> {
        if let Some(url) = git {
            // The value is not shown: it may hold a token.
            let parts = url.split_once("://").filter(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
            let Some((scheme, rest)) = parts else {
                return Err(Error::new(
                    "--claimant-git wants a URL, as cargo does: https://host/path, or ssh://git@host/path instead of git@host:path",
                ));
            };
            // It would be in Cargo.toml and README.md, which are committed.
            if has_secret(scheme, rest) {
                return Err(Error::new(
                    "--claimant-git has a user or a password in its URL, which would be written into the project: leave them out, have git know them (git credential), and cargo ask git (CARGO_NET_GIT_FETCH_WITH_CLI=true)",
                ));
            }
            return Ok(Self::Git(url.to_owned()));
        }
        let asked = path.unwrap_or(Path::new(BUILT_FROM));
        if path.is_none() && is_cache(asked) {
            return Err(Error::new(
                "this command was installed by `cargo install --git`: give the repository again with --claimant-git, or a checkout with --claimant-path",
            ));
        }
        let found = asked.canonicalize().ok().filter(|checkout| checkout.join("crates/claimant/Cargo.toml").is_file());
        let found = found.ok_or_else(|| {
            Error::new(format!(
                "there is no checkout of claimant at {}: give one with --claimant-path, or a repository with --claimant-git",
                asked.display()
            ))
        })?;
        let path = found.into_os_string().into_string();
        path.map(Self::Path).map_err(|path| {
            Error::new(format!("the path {} is not UTF-8, as Cargo.toml must be: move the checkout", path.display()))
        })
    }

    /// Returns the dependency on one of its crates, as `Cargo.toml` has it.
    fn dependency(&self, package: &str) -> String {
        match self {
            Self::Path(checkout) => format!("{{ path = {} }}", toml_string(&format!("{checkout}/crates/{package}"))),
            Self::Git(url) => format!("{{ git = {} }}", toml_string(url)),
        }
    }

    /// Returns where people find it.
    fn home(&self) -> String {
        match self {
            Self::Path(place) | Self::Git(place) => place.clone(),
        }
    }

    /// Returns the command that installs the command line.
    fn install(&self) -> String {
        match self {
            Self::Path(checkout) => {
                format!("cargo install --locked --path {}", shell_word(&format!("{checkout}/crates/claimant-cli")))
            }
            Self::Git(url) => format!("cargo install --locked --git {} claimant-cli", shell_word(url)),
        }
    }
}

/// Whether a checkout is one that cargo made for itself: it is in `git/checkouts`, in a directory that ends in a hash. Cargo deletes those
/// again, and no other machine has them.
fn is_cache(checkout: &Path) -> bool {
    let parts: Vec<_> = checkout.iter().map(|part| part.to_string_lossy()).collect();
    let is_hash = |hash: &str| hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit());
    let has_hash = |name: &str| name.rsplit_once('-').is_some_and(|(_, hash)| is_hash(hash));
    parts.windows(3).any(|three| three[0] == "git" && three[1] == "checkouts" && has_hash(&three[2]))
}

/// Whether a URL has credentials: a password, or over HTTP a user, which is how some tokens are given. `git@` of SSH is none.
fn has_secret(scheme: &str, rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':') || !scheme.ends_with("ssh"))
}

/// Returns a text as one word of a shell: in quotes, where it has characters that could mean something there, and as [typed] where one is not
/// seen, which what is printed does not have as it is.
pub(super) fn shell_word(text: &str) -> String {
    let means_nothing = |c: char| c.is_ascii_alphanumeric() || "/.:@_-+=,".contains(c);
    match typed(text) {
        Cow::Borrowed(seen) if seen.chars().all(means_nothing) => seen.to_owned(),
        Cow::Borrowed(seen) => format!("'{}'", seen.replace('\'', r"'\''")),
        Cow::Owned(word) => word,
    }
}

/// Returns a text as a TOML string.
pub(super) fn toml_string(text: &str) -> String {
    // TOML has JSON's escapes, and also wants DEL escaped.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// Plans the project's files; those of its first consumer come on top.
pub(super) fn plan(plan: &mut Plan, consumer: &Consumer<'_>, source: &Source) {
    let words = words(consumer, source);
    for (path, text) in [
        ("Cargo.toml", words.fill(MANIFEST)),
        ("template.yaml", words.fill(TEMPLATE)),
        ("README.md", words.fill(README)),
        ("rustfmt.toml", RUSTFMT.to_owned()),
        ("clippy.toml", CLIPPY.to_owned()),
        (".gitignore", GITIGNORE.to_owned()),
    ] {
        plan.add(path, text);
    }
    consumer.plan(plan);
    // The versions that claimant is tested with, to begin with. Only now, since its
    // packages are not yet this project's.
    let lock = match source {
        Source::Path(checkout) => std::fs::read_to_string(Path::new(checkout).join("Cargo.lock")).ok(),
        Source::Git(_) => None,
    };
    let name = consumer.name.as_str();
    if is_dependency(name, lock.as_deref().unwrap_or_default()) {
        plan.fault(format!("{name} is the name of a package that the project depends on: choose another name"));
    }
    if let Some(lock) = lock {
        plan.add("Cargo.lock", without_samples(&lock));
    }
}

/// Leaves out of claimant's lock its members that no project depends on, such as its samples: their names are free.
fn without_samples(lock: &str) -> String {
    const PACKAGE: &str = "[[package]]\nname = \"";
    let is_sample = |package: &str| !package.contains("\nsource = ") && !package.starts_with("claimant");
    let mut packages = lock.split(PACKAGE);
    let head = packages.next().unwrap_or_default().to_owned();
    packages.filter(|package| !is_sample(package)).fold(head, |lock, package| lock + PACKAGE + package)
}

/// Whether a project depends on a package of this name: cargo cannot tell the two apart. `lock` is claimant's, where it is
/// known; packages without a source are its members, of which a project takes only those of claimant itself.
fn is_dependency(name: &str, lock: &str) -> bool {
    let entry = format!("\nname = \"{name}\"\n");
    name == SDK
        || DEPENDENCIES.contains(&name)
        || lock.split("[[package]]").any(|package| package.contains(&entry) && package.contains("\nsource = "))
}

fn words(consumer: &Consumer<'_>, source: &Source) -> Words {
    let mut words = consumer.words();
    words.word("rust", env!("CARGO_PKG_RUST_VERSION"));
    words.word("claimant", source.dependency("claimant"));
    words.word("claimant_test", source.dependency("claimant-test"));
    words.word("claimant_home", source.home());
    words.word("install", source.install());
    words.word("send_options", if consumer.fifo { "--group a-group " } else { "" });
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_dependency_is_taken_and_one_of_a_sample_is_not() {
        let lock = std::fs::read_to_string(Path::new(BUILT_FROM).join("Cargo.lock")).unwrap();
        for (name, lock, taken) in [
            ("version", lock.as_str(), false),
            ("publish", &lock, false),
            ("tokio", "", true),
            ("aws-sdk-dynamodb", "", true),
            ("hyper", "", false),
            ("hyper", &lock, true),
            ("payment", &lock, false),
            ("welcome", &lock, false),
        ] {
            assert_eq!(is_dependency(name, lock), taken, "{name}");
        }
        let without = without_samples(&lock);
        for (name, is_there) in [("payment", false), ("claimant", true), ("claimant-test", true), ("hyper", true)] {
            assert_eq!(without.contains(&format!("\nname = \"{name}\"\n")), is_there, "{name}");
        }
    }

    #[test]
    fn claimant_comes_from_the_checkout_that_built_this_unless_said() {
        for (checkout, taken) in [
            ("/home/ada/.cargo/git/checkouts/claimant-0f1e2d3c4b5a6978/abc1234/crates/claimant-cli/../..", true),
            ("/home/ada/git/checkouts/claimant/crates/claimant-cli/../..", false),
            ("/home/ada/git/claimant/crates/claimant-cli/../..", false),
        ] {
            assert_eq!(is_cache(Path::new(checkout)), taken, "{checkout}");
        }
        let Source::Path(checkout) = Source::choose(None, None).unwrap() else { panic!("a path") };
        let checkout = Path::new(&checkout);
        assert!(checkout.is_absolute() && checkout.join("template.yaml").is_file());
        let local = Source::Path("/a b".into()).dependency("claimant-test");
        assert_eq!(local, r#"{ path = "/a b/crates/claimant-test" }"#);
        let install = Source::Path("/a b".into()).install();
        assert_eq!(install, "cargo install --locked --path '/a b/crates/claimant-cli'");
        assert_eq!(
            Source::Path("/it's".into()).install(),
            r"cargo install --locked --path '/it'\''s/crates/claimant-cli'"
        );
        assert_eq!(shell_word("/پروژه\u{200c}ها"), r"$'/پروژه\342\200\214ها'");
        let odd = Source::Path("/a\"b\\c\u{301}\u{1}\u{7f}'".into()).dependency("claimant");
        assert_eq!(odd, "{ path = \"/a\\\"b\\\\c\u{301}\\u0001\\u007F'/crates/claimant\" }");
        let git = Source::choose(None, Some("https://git.example/claimant")).unwrap();
        assert_eq!(git.dependency("claimant"), r#"{ git = "https://git.example/claimant" }"#);
        assert_eq!(git.install(), "cargo install --locked --git https://git.example/claimant claimant-cli");
        for no_url in ["", "git@git.example:claimant", "../claimant", "://", "https://"] {
            let error = Source::choose(None, Some(no_url)).unwrap_err().to_string();
            assert!(error.contains("ssh://git@host/path"), "{no_url}: {error}");
        }
        for secret in [
            "https://oauth2:t0ken@git.example/claimant",
            "https://t0ken@git.example/claimant",
            "git+https://a:t0ken@git.example",
            "ssh://git:t0ken@git.example/claimant",
        ] {
            let error = Source::choose(None, Some(secret)).unwrap_err().to_string();
            assert!(error.contains("leave them out") && !error.contains("t0ken"), "{secret}: {error}");
        }
        for none in ["ssh://git@git.example/claimant", "https://git.example/@claimant", "file:///srv/a@b:c"] {
            assert!(Source::choose(None, Some(none)).is_ok(), "{none}");
        }
        let error = Source::choose(Some(Path::new("/nowhere")), None).unwrap_err().to_string();
        assert!(error.contains("/nowhere") && error.contains("--claimant-path"), "{error}");
    }

    #[test]
    fn versions_are_those_that_claimant_is_tested_with() {
        let ours = std::fs::read_to_string(Path::new(BUILT_FROM).join("Cargo.toml")).unwrap();
        let versions = MANIFEST
            .lines()
            .filter(|line| line.contains("version = \"") || line.contains(" = \"1") || line.contains(" = \"0"));
        let versions: Vec<_> =
            versions.filter(|line| !line.starts_with("rust-version") && !line.starts_with("version")).collect();
        assert!(versions.len() >= 5, "{versions:?}");
        for version in versions {
            assert!(ours.lines().any(|line| line == version), "{version} is not in claimant's own Cargo.toml");
        }
    }
}
