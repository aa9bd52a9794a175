//! What dead letters of one cause have in common: consumer, outcome, and the error without numbers and ids. Pure.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// Bytes of the digest that are shown: 8 hexadecimal digits. Two of 1,000 causes share one once in 8,000 times.
const SHOWN_BYTES: usize = 4;

/// How the text of an error ends that was cut, and by how many characters of its pattern its dead letters are grouped: where it was cut depends on how
/// long the ids in it are.
const CUT: char = '…';
const CUT_MAX_CHARS: usize = 160;

/// What stands for a number, an id or a quoted text.
const ANY: &str = "#";

/// What dead letters of one cause have in common: the consumer, the outcome, and the error, in which every number, id and quoted
/// text is `#`. Never a part of a body.
///
/// It is the same on every machine and in every run, as long as the words of the error are the same: of one that was cut, the first 160
/// characters of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Returns the fingerprint of what the dead letters of this consumer, outcome and error have in common.
    #[must_use]
    pub fn of(consumer: &str, outcome: &str, error: &str) -> Self {
        let mut hash = Sha256::new();
        let mut pattern = Self::pattern(error);
        if let Some((at, _)) = pattern.char_indices().nth(CUT_MAX_CHARS).filter(|_| error.ends_with(CUT)) {
            pattern.truncate(at);
        }
        for part in [consumer, outcome, &pattern] {
            hash.update(part.as_bytes());
            // No part has it: consumers and outcomes have no control characters, and patterns none either.
            hash.update([0]);
        }
        Self(hash.finalize().iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns an error with `#` for each word that has a digit or an `@`, and for each text in double quotes. A number of
    /// three digits after `HTTP`, `status` or `code` stays: it says what kind of error it is. White space and control characters
    /// are single spaces.
    #[must_use]
    pub fn pattern(error: &str) -> String {
        let mut pattern = Pattern::default();
        let mut rest = error;
        while let Some(first) = rest.chars().next() {
            let taken = if first == '"' {
                quoted(rest)
            } else {
                rest.find(|c| is_of_word(c) != is_of_word(first) || c == '"').unwrap_or(rest.len())
            };
            let (part, after) = rest.split_at(taken);
            pattern.add(part);
            rest = after;
        }
        pattern.text.trim().to_owned()
    }

    /// Returns its 8 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[derive(Default)]
struct Pattern {
    text: String,
    /// The last word was one that a status follows.
    status_follows: bool,
}

impl Pattern {
    /// Adds a word, a quoted text, or what is between words.
    fn add(&mut self, part: &str) {
        if part.starts_with('"') {
            self.text.push_str("\"#\"");
            self.status_follows = false;
        } else if !part.starts_with(is_of_word) {
            for c in part.chars().map(|c| if c.is_whitespace() || c.is_control() { ' ' } else { c }) {
                if !(c == ' ' && self.text.ends_with(' ')) {
                    self.text.push(c);
                }
            }
        } else {
            let is_status = part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit());
            let any = part.contains(|c: char| c.is_numeric() || c == '@') && !(is_status && self.status_follows);
            self.text.push_str(if any { ANY } else { part });
            self.status_follows = ["http", "status", "code"].iter().any(|word| part.eq_ignore_ascii_case(word));
        }
    }
}

/// Whether it is a part of a word; numbers with signs and fractions, ids and addresses are words.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '@' | '+')
}

/// Returns the length of the text in quotes with which this begins; where none closes it, it goes to the end.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_no_numbers_ids_and_quoted_texts() {
        for (error, pattern) in [
            ("", ""),
            ("no luck", "no luck"),
            ("order ord-1001 was refused", "order # was refused"),
            ("missing field `email` at line 1 column 52", "missing field `email` at line # column #"),
            ("id 059f36b4-87a3-44ab-83d2-661975830a7d: gone", "id #: gone"),
            ("mail to Ann@example.com bounced", "mail to #.com bounced"),
            ("a \"customer \\\" 7\" of \"x\"", "a \"#\" of \"#\""),
            ("ends in \"open", "ends in \"#\""),
            ("HTTP 503 after 30.5 s, status: 404, code=500", "HTTP 503 after #.# s, status: 404, code=500"),
            ("took 503 ms", "took # ms"),
            ("a\n\tb \u{1b}[31m", "a b [#"),
            ("items[3].price", "items[#].price"),
            ("café №٣", "café №#"),
        ] {
            assert_eq!(Fingerprint::pattern(error), pattern, "{error}");
        }
    }

    #[test]
    fn a_pattern_is_its_own_pattern() {
        for error in ["order ord-1001 \"x\" HTTP 503", "a\u{0}b", "\"", "#"] {
            let once = Fingerprint::pattern(error);
            assert_eq!(Fingerprint::pattern(&once), once);
        }
    }

    #[test]
    fn dead_letters_of_one_cause_have_one_fingerprint() {
        let of = |error: &str| Fingerprint::of("order", "rejected", error);
        assert_eq!(of("ord-1: no stock"), of("ord-2: no stock"));
        assert_ne!(of("ord-1: no stock"), of("ord-1: no price"));
        assert_ne!(of("x"), Fingerprint::of("order", "parked", "x"));
        assert_ne!(of("x"), Fingerprint::of("payment", "rejected", "x"));
        // What failed too often is grouped by why it failed last.
        let last = |runs: u32, error: &str| {
            of(&format!("it was claimed {runs} times before, which is as often as it may; the last error: {error}"))
        };
        assert_eq!(last(2, "ord-1: no stock"), last(5, "ord-2: no stock"));
        assert_ne!(last(2, "ord-1: no stock"), last(2, "ord-1: no price"));
        // What was cut ends elsewhere, by how long its ids are.
        let cut = |order: &str, why: &str| {
            let error =
                format!("order {order} of {order} was not shipped, since {}: {why}", "the carrier is away ".repeat(20));
            of(&claimant_core::record::shortened(&error, 256))
        };
        assert_eq!(cut("7", "no luck"), cut("ord-1000000", "no luck"));
        assert_ne!(cut("7", "no luck"), of("order 7 of 7 was not shipped, since the carrier is away"));
        assert_eq!(of("x").as_str().len(), 2 * SHOWN_BYTES);
        assert_eq!(format!("{:>10}|", of("x")), format!("  {}|", of("x").as_str()));
    }
}
