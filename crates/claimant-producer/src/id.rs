//! Ids made from keys: always the same for the same key, and different for different ones.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The longest deduplication id and the longest message group id, in characters.
const ID_LENGTH_MAX: usize = 128;

/// The prefix of an id that is a hash.
const HASHED: &str = "sha256:";

/// Returns the text itself if SQS accepts it as an id: 1 to 128 letters, digits and punctuation marks of ASCII. Else its SHA-256,
/// marked as such; a text that only looks like one is hashed as well, so that no two texts share an id.
pub(crate) fn of(text: &str) -> String {
    let fits = (1..=ID_LENGTH_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    if fits && !text.starts_with(HASHED) {
        return text.to_owned();
    }
    Sha256::digest(text.as_bytes()).iter().fold(HASHED.to_owned(), |mut id, byte| {
        // Writing to a String cannot fail.
        let _ = write!(id, "{byte:02x}");
        id
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_stable_distinct_and_what_sqs_takes() {
        let long = "k".repeat(ID_LENGTH_MAX);
        let longer = "k".repeat(ID_LENGTH_MAX + 1);
        let longest = format!("{longer}k");
        let hash = of("ä");
        let texts =
            ["o-1", "O-1", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "ä", "a b", " ", "", &long, &longer, &longest, &hash];
        let mut seen = std::collections::BTreeSet::new();
        for text in texts {
            let id = of(text);
            assert_eq!(id, of(text));
            assert!(
                (1..=ID_LENGTH_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic()),
                "{text:?}: {id}"
            );
            assert!(seen.insert(id), "{text:?}");
        }
        assert_eq!(of(&long), long);
        // By heart: another version of this crate must give the same, or duplicates pass during a deployment.
        assert_eq!(of("a b"), "sha256:c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65");
    }
}
