//! What dead letters of one cause have in common: consumer, outcome, and the error without numbers and ids. Pure.

use std::fmt;

use claimant_core::protocol::kept_in;
use claimant_core::record::shortened;
use sha2::{Digest as _, Sha256};

/// Bytes of the digest that are shown: 8 hexadecimal digits. Two of 1,000 causes share one once in 8,000 times.
const SHOWN_BYTES: usize = 4;

/// Bytes of an error's pattern that count. A letter has 1,024 bytes of the error, and these are among them unless its ids are very long: letters
/// of one cause are cut elsewhere, by how long their ids are.
const CAUSE_MAX_BYTES: usize = 400;

/// Bytes that count of one which a record kept, of 256 bytes: among them, beside three ids of 36 bytes.
const KEPT_CAUSE_MAX_BYTES: usize = 120;

/// What stands for a number, an id or a quoted text.
const ANY: &str = "#";

/// Words with a digit that are neither: those of claimant's own errors, in any case.
const TERMS: [&str; 4] = ["Base64", "data_base64", "S3", "UTF-8"];

/// What dead letters of one cause have in common: the consumer, the outcome, and the [cause](Self::cause). Never a part of a body.
///
/// It is the same on every machine and in every run, as long as the words of the cause are the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Returns the fingerprint of what the dead letters of this consumer, outcome and error have in common.
    #[must_use]
    pub fn of(consumer: &str, outcome: &str, error: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [consumer, outcome, &Self::cause(error)] {
            hash.update(part.as_bytes());
            // No part has it: consumers and outcomes have no control characters, and causes none either.
            hash.update([0]);
        }
        Self(hash.finalize().iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns what the errors of one cause have in common: the first 400 bytes of an error with `#` for each number, id and quoted text. Of
    /// one that a record kept, the first 120 behind claimant's own words, without how many owners may not have finished the work. What was
    /// longer ends with `…`.
    #[must_use]
    pub fn cause(error: &str) -> String {
        match kept_in(error) {
            Some((words, kept)) => {
                format!("{}: {}", pattern(words), shortened(&pattern(kept), KEPT_CAUSE_MAX_BYTES))
            }
            None => shortened(&pattern(error), CAUSE_MAX_BYTES).into_owned(),
        }
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

/// Returns an error with `#` for each word that has a digit or an `@`, and for each text in double quotes. A number of
/// three digits after `HTTP`, `status` or `code` stays: it says what kind of error it is. So do [terms](TERMS), and a name in backticks after
/// `field`, which is one of the payload's type. White space and control characters are single spaces.
fn pattern(error: &str) -> String {
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

#[derive(Default)]
struct Pattern {
    text: String,
    /// The last word was one that a status follows.
    status_follows: bool,
    /// How near the name of a field is.
    field: Field,
}

#[derive(Default, PartialEq, Eq)]
enum Field {
    #[default]
    None,
    /// The last word was `field`.
    Said,
    /// Its name follows.
    Opened,
}

impl Pattern {
    /// Adds a word, a quoted text, or what is between words.
    fn add(&mut self, part: &str) {
        let field = std::mem::take(&mut self.field);
        if part.starts_with('"') {
            self.text.push_str("\"#\"");
            self.status_follows = false;
        } else if !part.starts_with(is_of_word) {
            for c in part.chars().map(|c| if c.is_whitespace() || c.is_control() { ' ' } else { c }) {
                if !(c == ' ' && self.text.ends_with(' ')) {
                    self.text.push(c);
                }
            }
            if field == Field::Said && part == " `" {
                self.field = Field::Opened;
            }
        } else {
            let is_status = part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit());
            let is_name = field == Field::Opened && part.starts_with(|c: char| c.is_alphabetic() || c == '_');
            let is_kept = is_status && self.status_follows || is_name && !part.contains('@') || is_term(part);
            let any = part.contains(|c: char| c.is_numeric() || c == '@') && !is_kept;
            self.text.push_str(if any { ANY } else { part });
            if part == "field" {
                self.field = Field::Said;
            }
            self.status_follows = ["http", "status", "code"].iter().any(|word| part.eq_ignore_ascii_case(word));
        }
    }
}

fn is_term(word: &str) -> bool {
    TERMS.iter().any(|term| term.eq_ignore_ascii_case(word))
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
    use std::collections::BTreeSet;

    use claimant_core::protocol::set_aside;
    use claimant_core::record::ERROR_MAX_BYTES;

    use super::*;

    #[test]
    fn patterns_have_no_numbers_ids_and_quoted_texts() {
        for (error, wanted) in [
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
            ("the decoded Base64 is not UTF-8 (from byte 3 on)", "the decoded Base64 is not UTF-8 (from byte # on)"),
            ("has both `data` and `data_base64`", "has both `data` and `data_base64`"),
            ("is a pointer to a payload in S3: it", "is a pointer to a payload in S3: it"),
            ("record 2 of the S3 notification, of s3:x", "record # of the S3 notification, of s3:x"),
            ("items[0]: field `address_1` is missing", "items[#]: field `address_1` is missing"),
            (
                "missing field `line2` in `o-7`, field `7`, field o-7",
                "missing field `line2` in `#`, field `#`, field #",
            ),
            ("field `a@b1` of S3-7", "field `#` of #"),
        ] {
            assert_eq!(pattern(error), wanted, "{error}");
        }
    }

    #[test]
    fn a_pattern_is_its_own_pattern() {
        for error in ["order ord-1001 \"x\" HTTP 503", "a\u{0}b", "\"", "#"] {
            let once = pattern(error);
            assert_eq!(pattern(&once), once);
        }
    }

    #[test]
    fn dead_letters_of_one_cause_have_one_fingerprint() {
        let of = |error: &str| Fingerprint::of("order", "rejected", error);
        assert_eq!(of("ord-1: no stock"), of("ord-2: no stock"));
        assert_ne!(of("ord-1: no stock"), of("ord-1: no price"));
        assert_ne!(of("field `line1` is missing"), of("field `line2` is missing"));
        assert_ne!(of("x"), Fingerprint::of("order", "parked", "x"));
        assert_ne!(of("x"), Fingerprint::of("payment", "rejected", "x"));
        assert_eq!(of("x").as_str().len(), 2 * SHOWN_BYTES);
        assert_eq!(format!("{:>10}|", of("x")), format!("  {}|", of("x").as_str()));
    }

    const OFTEN: &str = "it was claimed 5 times before, which is as often as it may";

    /// What failed too often, as its letter has it and as the next one has it, if that one was not confirmed: from a record that was cut.
    #[test]
    fn what_failed_too_often_is_grouped_by_its_last_error() {
        let of = |error: &str| Fingerprint::of("order", "rejected", error);
        let kept = |error: &str| shortened(error, ERROR_MAX_BYTES).into_owned();
        let owners = set_aside(1);
        let ways: [&dyn Fn(&str) -> String; 5] = [
            &|error| format!("{OFTEN}; the last error: {}", kept(error)),
            &|error| format!("{OFTEN}; {owners}; the last error: {}", kept(error)),
            &|error| format!("it was rejected on an earlier delivery: {}", kept(error)),
            &|error| {
                let error = kept(&format!("{OFTEN}; the last error: {}", kept(error)));
                format!("it was rejected on an earlier delivery: {error}")
            },
            &|error| {
                let error = kept(&format!("{OFTEN}; {owners}; the last error: {}", kept(error)));
                format!("it was rejected on an earlier delivery: {error}")
            },
        ];
        let long = |why: &str| format!("{} {why}: {}", "c".repeat(89), "the carrier is away ".repeat(20));
        for way in ways {
            // They differ at character 90.
            assert_ne!(of(&way(&long("lost"))), of(&way(&long("late"))));
            assert_ne!(of(&way("ord-1: no stock")), of(&way("ord-1: no price")));
            assert_eq!(of(&way("ord-1: no stock")), of(&way("ord-2000: no stock")));
        }
        // Cut elsewhere, or not at all, by how long the ids are.
        let id = "059f36b4-87a3-44ab-83d2-661975830a7d";
        let ids = |id: &str| format!("order {id} of {id} was not shipped: {}", "the carrier is away ".repeat(10));
        assert!(ids("7").len() < ERROR_MAX_BYTES && ids(id).len() > ERROR_MAX_BYTES);
        for way in &ways[..3] {
            assert_eq!(of(&way(&ids("7"))), of(&way(&ids(id))));
        }
        // With the owners beside it or not; and it is another cause than that the handler said so itself.
        assert_eq!(of(&ways[0](&ids("7"))), of(&ways[1](&ids(id))));
        assert_eq!(of(&ways[3](&long("lost"))), of(&ways[4](&long("lost"))));
        let all: BTreeSet<_> = ways.iter().map(|way| of(&way("no stock"))).chain([of("no stock")]).collect();
        assert_eq!(all.len(), 4);
        // Where there is no last error, the owners are the cause.
        let died = |owners| of(&format!("{OFTEN}; {}", set_aside(owners)));
        assert_eq!(died(1), died(3));
        assert_ne!(died(1), of(OFTEN));
    }

    #[test]
    fn a_cause_has_nothing_that_one_of_its_letters_has_alone() {
        let long = "the carrier is away ".repeat(60);
        let cause = |ids: &str| Fingerprint::cause(&shortened(&format!("order {ids} {long}"), 1_024));
        assert_eq!(cause("ord-1"), cause(&"ord-1".repeat(80)));
        assert!(cause("ord-1").len() == CAUSE_MAX_BYTES && cause("ord-1").ends_with('…'));
        let last = |owners: u32, error: &str| {
            Fingerprint::cause(&format!("{OFTEN}; {}; the last error: {error}", set_aside(owners)))
        };
        let often = "it was claimed # times before, which is as often as it may";
        assert_eq!(last(1, "ord-1: no stock"), format!("{often}: #: no stock"));
        assert_eq!(last(1, &format!("ord-1 {long}ends so")), last(2, &format!("ord-1 {long}or so")));
        assert_eq!(last(1, &long).len(), often.len() + ": ".len() + KEPT_CAUSE_MAX_BYTES);
    }
}
