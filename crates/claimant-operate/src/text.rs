//! Text of messages and keys, where people read it and type it.

use std::borrow::Cow;
use std::string::FromUtf8Error;

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

/// Returns a text as one line, with everything escaped that [harms].
#[must_use]
pub fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if harms(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// A NUL in a key as it is [typed], which is how modified UTF-8 has it: no command can be given a NUL itself, and no other text has these bytes.
const NUL: &[u8] = b"\xc0\x80";

/// Returns a key as a shell takes it, such as `$'a\tb'`, where it is not seen what it is made of: no other key is shown so. Where all of it is
/// seen it stays as it is, unless it begins as such a form does.
///
/// What is not seen is its bytes in octal: of `\u202e` a shell makes what its locale has for that, and of `\xNN` not each reads two digits. A
/// NUL is two bytes that only [`from_typed`] takes for one: of `\000` and `\u{0}` shells make the end of the text, which is another key.
#[must_use]
pub fn typed(key: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| harms(c) || (c.is_whitespace() && c != ' ');
    let is_seen = key.trim() == key && !key.contains("  ") && !key.contains(is_hidden);
    if is_seen && !key.starts_with("$'") {
        return Cow::Borrowed(key);
    }
    let octal = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    let escaped = |c: char| match c {
        '\\' | '\'' | '\t' | '\n' | '\r' => c.escape_default().to_string(),
        '\0' => octal(NUL),
        c if !is_hidden(c) => c.to_string(),
        c => octal(c.encode_utf8(&mut [0; 4]).as_bytes()),
    };
    Cow::Owned(format!("$'{}'", key.chars().map(escaped).collect::<String>()))
}

/// Returns the key that a shell has made of what was [typed].
///
/// # Errors
/// When it is not UTF-8: no key is.
pub fn from_typed(mut key: Vec<u8>) -> Result<String, FromUtf8Error> {
    while let Some(at) = key.windows(NUL.len()).position(|bytes| bytes == NUL) {
        key.splice(at..at + NUL.len(), [0]);
    }
    String::from_utf8(key)
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
    use std::process::Command;

    use super::*;

    #[test]
    fn text_does_no_harm() {
        for (text, shown) in [
            ("a\x1b[31mb\r\n\u{202e}c", r"a\u{1b}[31mb\r\n\u{202e}c"),
            ("Grüße, 東京", "Grüße, 東京"),
            ("a\u{61c}b\u{180e}", r"a\u{61c}b\u{180e}"),
        ] {
            assert_eq!(harmless(text), shown);
        }
    }

    /// Each is shown as no other is, and a shell that is given it so takes it, in each locale.
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
            ("c#a\u{a0}b\u{202e}1\u{e0001}\x1b7", r"$'c#a\302\240b\342\200\2561\363\240\200\201\0337'"),
            ("c#a\0b", r"$'c#a\300\200b'"),
            (r"c#a\u{0}b", r"c#a\u{0}b"),
            ("$'a '", r"$'$\'a \''"),
            ("", ""),
        ] {
            assert_eq!(typed(key), shown);
            if shown.starts_with("$'") {
                let printed =
                    Command::new("bash").arg("-c").arg(format!("printf %s {shown}")).env("LC_ALL", "C").output();
                assert_eq!(from_typed(printed.unwrap().stdout).unwrap(), key);
            }
        }
        assert_eq!(from_typed(b"\0\xc0\x80\xc0\x80".into()).unwrap(), "\0\0\0");
        assert!(from_typed(b"a\xc0".into()).is_err());
    }
}
