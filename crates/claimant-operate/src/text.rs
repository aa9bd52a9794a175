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

/// Returns whether a terminal does not print a character as it is: it controls the terminal, or [misleads]; it joins characters, of which a
/// terminal draws no emoji; or it is a mark of annotations.
#[must_use]
pub fn harms(c: char) -> bool {
    c.is_control() || misleads(c) || matches!(c, '\u{200c}'..='\u{200d}' | '\u{fff9}'..='\u{fffb}')
}

/// Returns a key as a shell takes it, such as `$'a\tb'`, where it is not seen what it is made of: no other key is shown so. Where all of it is
/// seen it stays as it is, unless it begins as such a form does. No command can be given one with a NUL.
#[must_use]
pub fn typed(key: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| harms(c) || (c.is_whitespace() && c != ' ');
    let is_seen = key.trim() == key && !key.contains("  ") && !key.contains(is_hidden);
    if is_seen && !key.starts_with("$'") {
        return Cow::Borrowed(key);
    }
    let escaped = |c: char| match c {
        '\\' | '\'' | '\t' | '\n' | '\r' => c.escape_default().to_string(),
        // A shell ends the text at `\x00`, and would take another key.
        '\0' => r"\u{0}".to_owned(),
        c if !is_hidden(c) => c.to_string(),
        '\0'..='\x7f' => format!("\\x{:02x}", u32::from(c)),
        '\u{80}'..='\u{ffff}' => format!("\\u{:04x}", u32::from(c)),
        c => format!("\\U{:08x}", u32::from(c)),
    };
    Cow::Owned(format!("$'{}'", key.chars().map(escaped).collect::<String>()))
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

    /// Each is shown as no other is, and a shell that is given it so takes it.
    #[test]
    fn keys_are_shown_as_they_are_typed() {
        for (key, shown) in [
            ("c#Grüße, it's 東京", "c#Grüße, it's 東京"),
            ("c#a b", "c#a b"),
            ("c#a\tb", r"$'c#a\tb'"),
            (r"c#a\tb", r"c#a\tb"),
            ("c#it's\\\n", r"$'c#it\'s\\\n'"),
            ("c# ", "$'c# '"),
            (" c#a", "$' c#a'"),
            ("c#a  b", "$'c#a  b'"),
            ("c#a\u{a0}b\u{202e}\u{e0001}\x1bc", r"$'c#a\u00a0b\u202e\U000e0001\x1bc'"),
            ("c#a\0b", r"$'c#a\u{0}b'"),
            (r"c#a\u{0}b", r"c#a\u{0}b"),
            ("$'a '", r"$'$\'a \''"),
            ("", ""),
        ] {
            assert_eq!(typed(key), shown);
        }
    }
}
