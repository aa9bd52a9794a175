//! The name of a consumer, and what is called after it.

/// The longest name, in bytes: lines that are made from it still have the width that `cargo fmt` wants.
pub(super) const NAME_MAX_BYTES: usize = 40;

/// Names that cargo or Rust keep for themselves.
const RESERVED: [&str; 60] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// A consumer's name that is also the name of a package, of a binary, and the beginning of resources' names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    /// Checks a name, as the command line's parser wants it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words = || text.split('-');
        let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let why = if !text.starts_with(|c: char| c.is_ascii_lowercase())
            || !words().all(|word| !word.is_empty() && word.chars().all(lower))
        {
            "use lower-case letters and digits, starting with a letter, with single hyphens between words"
        } else if text.len() > NAME_MAX_BYTES {
            "use at most 40 characters"
        } else if RESERVED.contains(&text) {
            "the name is reserved by Rust or cargo"
        } else if text == "claimant" || text.starts_with("claimant-") {
            "names of claimant's own packages and variables begin with claimant"
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(format!("{why}: for example welcome-mail"))
    }

    /// Returns the name as it is: the consumer's, the package's and the binary's.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as resources begin: `WelcomeMail`.
    pub(super) fn of_resources(&self) -> String {
        let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
        self.0.split('-').map(capital).collect()
    }

    /// Returns the name as variables begin: `WELCOME_MAIL`.
    pub(super) fn of_variables(&self) -> String {
        self.0.replace('-', "_").to_ascii_uppercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_packages_and_resources() {
        let name = Name::parse("welcome-mail-2go").unwrap();
        assert_eq!((name.as_str(), name.of_resources().as_str()), ("welcome-mail-2go", "WelcomeMail2go"));
        assert_eq!(name.of_variables(), "WELCOME_MAIL_2GO");
        let longest = "n".repeat(NAME_MAX_BYTES);
        assert!(Name::parse(&longest).is_ok() && Name::parse("claimants").is_ok());
        for (bad, why) in [
            ("", "letter"),
            ("Welcome", "lower-case"),
            ("2go", "letter"),
            ("-mail", "letter"),
            ("welcome-", "hyphens"),
            ("welcome--mail", "hyphens"),
            ("welcome_mail", "hyphens"),
            ("../welcome", "letter"),
            ("welcome/mail", "lower-case"),
            ("grüße", "lower-case"),
            ("match", "Rust"),
            ("yield", "Rust"),
            ("deps", "cargo"),
            ("claimant", "begin with claimant"),
            ("claimant-extra", "begin with claimant"),
            (&format!("{longest}n"), "40"),
        ] {
            let error = Name::parse(bad).unwrap_err();
            assert!(error.contains(why) && error.contains("welcome-mail"), "{bad}: {error}");
        }
    }
}
