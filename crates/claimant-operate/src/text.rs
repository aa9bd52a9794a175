//! Text of messages and keys, where people read it and type it.

use std::borrow::Cow;

/// Returns whether a character makes a text read as another one: nobody sees it, or it turns the direction of what follows. Joiners of
/// emoji and of letters are none of these.
#[must_use]
pub const fn misleads(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Returns a key as it is shown: white space that is no single space between two words is escaped. A page, and an eye, take `a `, `a  b` and
/// a key with a tab for other keys.
#[must_use]
pub fn shown_key(key: &str) -> Cow<'_, str> {
    let (mut shown, mut last, mut chars) = (String::new(), None, key.chars().peekable());
    while let Some(c) = chars.next() {
        let is_word = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
        let is_plain = !c.is_whitespace() || (c == ' ' && is_word(last) && is_word(chars.peek().copied()));
        if is_plain {
            shown.push(c)
        } else {
            shown.extend(c.escape_unicode())
        }
        last = Some(c);
    }
    if shown == key { Cow::Borrowed(key) } else { Cow::Owned(shown) }
}

/// Returns whether two texts have the same lines, however these end: with CR LF, CR or LF. A browser knows one end only, and what is
/// not edited in it comes back with that.
#[must_use]
pub fn has_same_lines(one: &str, other: &str) -> bool {
    let with_lf = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    with_lf(one) == with_lf(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_that_is_not_seen_is_shown() {
        for (key, wanted) in [
            ("order#a b", "order#a b"),
            ("order#a ", r"order#a\u{20}"),
            (" order#a", r"\u{20}order#a"),
            ("order#a  b", r"order#a\u{20}\u{20}b"),
            ("order#a\tb\n", r"order#a\u{9}b\u{a}"),
            ("order#a\u{a0}b", r"order#a\u{a0}b"),
            ("", ""),
        ] {
            assert_eq!(shown_key(key), wanted);
        }
    }
}
