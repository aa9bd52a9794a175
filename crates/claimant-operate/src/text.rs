//! Text of messages and keys, where people read it and type it.

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

/// Returns whether two texts have the same lines, however these end: with CR LF, CR or LF. A browser knows one end only, and what is
/// not edited in it comes back with that.
#[must_use]
pub fn has_same_lines(one: &str, other: &str) -> bool {
    let with_lf = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    with_lf(one) == with_lf(other)
}
