//! What AWS's parsers, which are of YAML 1.1, read otherwise than those of YAML 1.2.

use std::borrow::Cow;
use std::rc::Rc;

/// Returns the text that AWS makes of a word without quotes, in a key as in a value. It keeps `y` and `n`.
pub(crate) fn boolean(word: &str) -> Option<&'static str> {
    match word {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => Some("true"),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => Some("false"),
        _ => None,
    }
}

/// Stands for a `-` that is a text of its own within brackets, as in `!Join [-, [a, b]]`: YAML 1.2 wants quotes there, and AWS, whose
/// parsers are of YAML 1.1, does not. No template has this character, the last one for private use.
const DASH: char = '\u{10fffd}';

/// Puts the stand-in for each `-` that may be such a text: behind it is what ends one within brackets.
pub(crate) fn with_dashes_as_texts(text: &str) -> Cow<'_, str> {
    let is_text = |at: &usize| {
        let before = text[..*at].chars().next_back().is_some_and(|c| c.is_whitespace() || matches!(c, '[' | '{' | ','));
        before && text[at + 1..].starts_with([',', '[', ']', '{', '}'])
    };
    let mut result = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices('-').filter(|(at, _)| is_text(at)) {
        result.push_str(&text[copied..at]);
        result.push(DASH);
        copied = at + 1;
    }
    if copied == 0 {
        return text.into();
    }
    result.push_str(&text[copied..]);
    result.into()
}

/// Returns the text as it is written.
pub(crate) fn written(text: Cow<'_, str>) -> Rc<str> {
    if text.contains(DASH) { text.replace(DASH, "-").into() } else { text.into() }
}
