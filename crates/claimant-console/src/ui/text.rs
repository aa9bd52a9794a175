//! Times, ids, counts, and what is said where there is nothing.

use claimant_core::{Clock as _, SystemClock, Timestamp};
use claimant_local::time_of_day_at;
use claimant_operate::text::typed;
use maud::{Markup, html};

use crate::timeline::words::{clock, short};

/// How many times as long JSON may be in lines: small values that are nested deep are mostly white space.
const SPREAD_GROWTH_MAX: usize = 4;

/// How much of a body the page of its message shows, in bytes.
const BODY_SHOWN_MAX: usize = 64 * 1024;

/// The most bytes of JSON that is edited in lines, which are sent with it.
const EDITED_SPREAD_MAX: usize = 64 * 1024;

const DAY_MS: u64 = 86_400_000;

/// Draws a time, in milliseconds since 1970, as the time of day in UTC, with the date before it where that is not today's.
pub(crate) fn time(ms: u64) -> Markup {
    let (at, now) = (Timestamp::from_millis(ms), SystemClock.now());
    let utc = at.to_utc();
    let is_today = ms / DAY_MS == now.as_millis() / DAY_MS;
    html! { time datetime=(utc) title=(utc) { @if is_today { (time_of_day_at(ms)) } @else { (clock(at, now)) } } }
}

/// Draws a message's id, short, as a link to its page.
pub(crate) fn message(id: &str) -> Markup {
    html! { a .id.short href=(path("/messages/", id)) title=(id) { (short(id)) } }
}

/// Draws a key as a link to its page.
pub(crate) fn key(key: &str) -> Markup {
    html! { a .id href=(path("/keys/", key)) { (typed(key)) } }
}

/// Returns the path of a thing under a prefix that ends in a slash: whatever its name has, it is one part of the path.
pub(crate) fn path(prefix: &str, name: &str) -> String {
    format!("{prefix}{}", encoded(name))
}

/// Returns text as it may stand in a part of a path, or in a query.
pub(crate) fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Draws a count; none is drawn faintly.
pub(crate) fn count(number: u64) -> Markup {
    html! { span class=[(number == 0).then_some("zero")] { (grouped(number)) } }
}

/// Returns a number with its thousands apart: `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a number and a noun: `1 message`, `2 messages`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// Returns JSON in lines, every value with its very bytes; anything else as it is, and so JSON that would grow too much.
pub(crate) fn spread(body: &str) -> String {
    if serde_json::from_str::<serde::de::IgnoredAny>(body).is_err() {
        return body.to_owned();
    }
    let most = body.len().saturating_mul(SPREAD_GROWTH_MAX).saturating_add(1_024);
    let (mut lines, mut depth, mut is_text, mut is_escaped, mut last) = (String::new(), 0_usize, false, false, ' ');
    for char in body.chars() {
        if lines.len() > most {
            return body.to_owned();
        }
        let ends = char == '"' && !is_escaped;
        is_escaped = is_text && char == '\\' && !is_escaped;
        is_text ^= ends;
        if !is_text && !ends && char.is_ascii_whitespace() {
            continue;
        }
        let closes = !is_text && matches!(char, '}' | ']');
        depth -= usize::from(closes).min(depth);
        // What was opened and is not closed at once begins a line, and so does what follows a comma or closes the rest.
        if matches!(last, '{' | '[') != closes || last == ',' {
            lines.push('\n');
            lines.push_str(&"  ".repeat(depth));
        }
        lines.push(char);
        if !is_text && !ends {
            depth += usize::from(matches!(char, '{' | '['));
            if char == ':' {
                lines.push(' ');
            }
        }
        last = if is_text || ends { '"' } else { char };
    }
    lines
}

/// Returns of a body what the page of its message shows.
pub(crate) fn beginning(mut body: String) -> String {
    body.truncate(body.floor_char_boundary(BODY_SHOWN_MAX));
    body
}

/// Draws it, of so many bytes.
pub(crate) fn body(beginning: &str, bytes: usize) -> Markup {
    html! {
        (scrolled("Body", beginning))
        @if beginning.len() < bytes {
            p .soft { "The first " (grouped(beginning.len() as u64)) " of " (grouped(bytes as u64)) " bytes." }
        }
    }
}

/// Draws a body in a box of this name, which can be scrolled by keys.
pub(crate) fn scrolled(name: &str, body: &str) -> Markup {
    html! { pre .body role="group" tabindex="0" aria-label=(name) { (spread(body)) } }
}

/// Returns a body as it is edited: JSON in lines, where what is added is little to what SQS takes of a message.
pub(crate) fn to_edit(body: &str) -> String {
    if body.len() > EDITED_SPREAD_MAX { body.to_owned() } else { spread(body) }
}

/// Draws what is said where there is nothing: what is missing, and what to do.
pub(crate) fn empty(what: &str, more: &Markup) -> Markup {
    html! { div .empty { p .what { (what) } p { (more) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "message", "messages"), "1 message");
        assert_eq!(counted(0, "message", "messages"), "0 messages");
        assert_eq!(path("/keys/", "a/b?<c>#d e"), "/keys/a%2Fb%3F%3Cc%3E%23d%20e");
    }

    #[test]
    fn of_a_long_body_the_beginning_is_drawn() {
        let (long, short) = ("\u{1f600}".repeat(20_000), "{}".to_owned());
        let shown = beginning(format!("x{long}"));
        assert_eq!(shown.len(), BODY_SHOWN_MAX - 3, "no character is cut");
        assert!(body(&shown, 80_001).into_string().contains("The first 65,533 of 80,001 bytes."));
        assert!(!body(&beginning(short), 2).into_string().contains("The first"));
    }

    #[test]
    fn nothing_is_markup_that_is_not_marked() {
        assert!(!key("<script>").into_string().contains("<script"));
        assert!(!message("\"><b>").into_string().contains("<b>"));
    }

    #[test]
    fn json_is_spread_and_keeps_its_bytes() {
        for (body, wanted) in [
            (
                r#"{"b":1.50,"a":[],"t":"x: {\"y\", \\"}"#,
                "{\n  \"b\": 1.50,\n  \"a\": [],\n  \"t\": \"x: {\\\"y\\\", \\\\\"\n}",
            ),
            ("[1, {} ]", "[\n  1,\n  {}\n]"),
            ("order {n}, please", "order {n}, please"),
            ("\"text\"", "\"text\""),
        ] {
            assert_eq!(spread(body), wanted);
        }
        let deep = format!("{}{}{}", "[".repeat(100), "1,".repeat(50_000) + "1", "]".repeat(100));
        assert_eq!(spread(&deep), deep);
    }
}
