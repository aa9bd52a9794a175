//! The checks: what each is about, why it matters, when what it finds is fine, and where AWS says so.

mod check;
mod queues;
mod tables;
mod workers;

pub use check::Check;

/// How many checks there are.
pub const CHECKS: usize = queues::CHECKS.len() + workers::CHECKS.len() + tables::CHECKS.len();

/// All checks, in the order of their numbers.
pub static CATALOG: [Check; CHECKS] = {
    const PARTS: [&[Check]; 3] = [queues::CHECKS, workers::CHECKS, tables::CHECKS];
    let mut all = [PARTS[0][0]; CHECKS];
    let (mut part, mut within, mut count) = (0, 0, 0);
    while part < PARTS.len() {
        while within < PARTS[part].len() {
            all[count] = PARTS[part][within];
            assert!(all[count].number as usize == count + 1, "checks stand in the order of their numbers");
            within += 1;
            count += 1;
        }
        within = 0;
        part += 1;
    }
    all
};

impl Check {
    /// Returns the check of this name or number.
    pub fn named(name: &str) -> Option<&'static Self> {
        CATALOG.iter().find(|check| check.name == name || name.parse() == Ok(check.number))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_differ_and_every_text_is_there() {
        let names: BTreeSet<_> = CATALOG.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), CHECKS);
        for check in &CATALOG {
            assert!(check.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", check.name);
            assert!(check.source.starts_with("https://docs.aws.amazon.com/") || check.source.starts_with("docs/"));
            assert!(!check.title.ends_with('.') && check.why.ends_with('.') && check.fine.ends_with('.'), "{check:?}");
        }
    }
}
