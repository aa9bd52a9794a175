//! Names of other systems, in a crate that must know none.

use crate::source::Crate;

/// Systems that the core does not know, neither in its dependencies nor in its words.
pub const SYSTEMS: &[&str] = &[
    "aws",
    "cloudwatch",
    "dynamodb",
    "iam",
    "lambda",
    "mariadb",
    "mysql",
    "partiql",
    "postgres",
    "postgresql",
    "redis",
    "ses",
    "sqs",
];

/// Returns each word of a crate's code, comments included, that is in the list: `path:line word`.
#[must_use]
pub fn of(krate: &Crate, list: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in &krate.files {
        for (number, line) in file.text.lines().enumerate() {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
            let named = words.filter(|word| list.contains(&word.as_str()));
            found.extend(named.map(|word| format!("{}:{} {word}", file.path.display(), number + 1)));
        }
    }
    found
}
