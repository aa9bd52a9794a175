//! Times, numbers and lists in words.

use claimant_core::Timestamp;

/// Returns the time of day, with the date before it where that is not today's.
pub(crate) fn clock(time: Timestamp, now: Timestamp) -> String {
    let (time, now) = (time.to_utc(), now.to_utc());
    // OK because `to_utc` is ASCII: `2026-11-22T09:30:00Z`, with more digits for later years.
    let of = |text: &str| text.trim_end_matches('Z').split_once('T').map(|(d, t)| (d.to_owned(), t.to_owned()));
    match (of(&time), of(&now)) {
        (Some((date, clock)), Some((today, _))) if date == today => clock,
        (Some((date, clock)), _) => format!("{date} {clock}"),
        _ => time,
    }
}

/// Returns a duration as people say it: `12 ms`, `1.4 s`, `3 min 20 s`.
pub(crate) fn lasting(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => {
            let tenths = ms.saturating_add(50) / 100;
            if tenths.is_multiple_of(10) {
                format!("{} s", tenths / 10)
            } else {
                format!("{}.{} s", tenths / 10, tenths % 10)
            }
        }
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms / 1_000 % 60),
        _ => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

/// Returns how often: `once`, `twice`, `3 times`.
pub(super) fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

/// Returns `first`, `second`, …; from the tenth on in digits.
pub(super) fn ordinal(n: usize) -> String {
    const WORDS: [&str; 9] = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"];
    if let Some(word) = n.checked_sub(1).and_then(|at| WORDS.get(at)) {
        return (*word).to_owned();
    }
    let end = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{end}")
}

/// Returns which of several are meant: `the first`, `the first two`, `the second and the fourth`, `the second to the fifth`.
pub(super) fn which(numbers: &[usize]) -> String {
    const WORDS: [&str; 8] = ["two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let nth = |n: &usize| format!("the {}", ordinal(*n));
    match numbers {
        [] => String::new(),
        [one] => nth(one),
        [1, .., last] if *last == numbers.len() => match WORDS.get(last - 2) {
            Some(word) => format!("the first {word}"),
            None => format!("the first {last}"),
        },
        [first, .., last] if numbers.len() > 2 && last - first + 1 == numbers.len() => {
            format!("{} to {}", nth(first), nth(last))
        }
        [front @ .., last] => {
            let front: Vec<_> = front.iter().map(nth).collect();
            format!("{} and {}", front.join(", "), nth(last))
        }
    }
}

/// How much of an id a page shows, in characters.
const SHORT: usize = 8;

/// The characters of an id of SQS: a UUID.
const WHOLE: usize = 36;

/// Where its dashes are.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// Returns the id shortened to what tells it from others on a page.
pub(crate) fn short(id: &str) -> &str {
    &id[..id.floor_char_boundary(SHORT)]
}

/// Returns the id of a message, or the beginning of one that is as long as a page shows, from what was typed or copied; `None` where it is
/// neither.
pub(crate) fn id_of(typed: &str) -> Option<String> {
    let id = typed.trim().trim_matches(['"', '\'']).to_lowercase();
    let fits = |(at, b): (usize, u8)| if DASHES.contains(&at) { b == b'-' } else { b.is_ascii_hexdigit() };
    let is_id = (SHORT..=WHOLE).contains(&id.len()) && id.bytes().enumerate().all(fits);
    is_id.then_some(id)
}

/// Returns whether this is a whole id.
pub(crate) const fn is_whole(id: &str) -> bool {
    id.len() == WHOLE
}

/// What an id of a message is, after one that is none.
pub(crate) const NO_ID: &str =
    "is no id of a message, nor the beginning of one: an id has 36 digits and dashes, of which pages show the first 8";

/// Returns a text with its first letter in capitals, and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(char::to_uppercase).into_iter().flatten().collect();
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_times_and_numbers() {
        let now = Timestamp::from_millis(86_400_000 + 3_600_000);
        assert_eq!(clock(Timestamp::from_millis(86_400_000 + 61_999), now), "00:01:01");
        assert_eq!(clock(Timestamp::from_millis(61_000), now), "1970-01-01 00:01:01");
        for (ms, text) in
            [(0, "0 ms"), (999, "999 ms"), (1_000, "1 s"), (1_449, "1.4 s"), (59_960, "60 s"), (200_000, "3 min 20 s")]
        {
            assert_eq!(lasting(ms), text);
        }
        assert_eq!([1, 2, 3].map(times), ["once", "twice", "3 times"]);
        assert_eq!([1, 9, 10, 11, 21, 112].map(ordinal), ["first", "ninth", "10th", "11th", "21st", "112th"]);
        assert_eq!(which(&[1]), "the first");
        assert_eq!(which(&[1, 2]), "the first two");
        assert_eq!(which(&[2, 3, 4]), "the second to the fourth");
        assert_eq!(which(&(1..=10).collect::<Vec<_>>()), "the first 10");
        assert_eq!(which(&[1, 3, 4]), "the first, the third and the fourth");
        assert_eq!(sentence("done"), "Done.");
        let id = "64bff167-0000-4000-8000-00000000000a";
        for typed in [id, &id.to_uppercase(), &format!(" \"{id}\""), &format!("'{id}'\n")] {
            assert_eq!(id_of(typed).as_deref(), Some(id), "{typed}");
        }
        assert_eq!(
            ["64BFF167", "64bff167-00", "64bff167-", "64bff16", "payment#declined-1", "deadletters", ""]
                .map(id_of)
                .map(|id| id.is_some()),
            [true, true, true, false, false, false, false]
        );
        // Keys of digits, and dates.
        for typed in ["482133770", "2026-11-22", &"a".repeat(32), "--------", "64bff167-0000-4000-8000-00000000000-"] {
            assert_eq!(id_of(typed), None, "{typed}");
        }
        assert_eq!((short("1234567890"), short("äöü"), sentence("Why?")), ("12345678", "äöü", "Why?".to_owned()));
    }
}
