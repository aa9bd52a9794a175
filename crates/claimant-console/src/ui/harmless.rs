//! Characters that make a page say something else than its text.

use claimant_operate::text::misleads;

/// Returns a page with the characters of its text escaped that nobody sees, and those that turn the direction of what follows: a key, or
/// the sentence after it, would read as another. In fields that are sent back text stays as it is, and so in attributes.
pub(crate) fn harmless(page: String) -> String {
    if !page.contains(is_escaped) {
        return page;
    }
    let mut shown = String::with_capacity(page.len() + 64);
    let mut rest = page.as_str();
    while let Some(start) = rest.find('<') {
        escape(&rest[..start], &mut shown);
        // Both end before a `<` or `>`, which are ASCII, and text has none of its own.
        let until = if rest[start..].starts_with("<textarea") { "</textarea" } else { ">" };
        let end = rest[start..].find(until).map_or(rest.len(), |end| start + end + until.len());
        shown.push_str(&rest[start..end]);
        rest = &rest[end..];
    }
    escape(rest, &mut shown);
    shown
}

/// Returns whether a character is one of these. Line ends and tabs are none.
fn is_escaped(c: char) -> bool {
    misleads(c) || (c.is_control() && !matches!(c, '\t' | '\n' | '\r'))
}

fn escape(text: &str, shown: &mut String) {
    for c in text.chars() {
        if is_escaped(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_a_text_is_shown_where_it_is_text() {
        for (page, wanted) in [
            ("<p title=\"\u{202e}\">a\u{202e}b</p>", "<p title=\"\u{202e}\">a\\u{202e}b</p>"),
            ("\u{200f}<textarea>\n\u{202e}</textarea>\u{2066}", "\\u{200f}<textarea>\n\u{202e}</textarea>\\u{2066}"),
            ("<option value=\"\u{feff}\">\u{feff}</option>", "<option value=\"\u{feff}\">\\u{feff}</option>"),
            ("<p>a\0b\u{ad}c\u{e0041}\u{7f}</p>\n\t", "<p>a\\u{0}b\\u{ad}c\\u{e0041}\\u{7f}</p>\n\t"),
            ("a\u{85}b\u{b}c\u{c}\r\n", "a\\u{85}b\\u{b}c\\u{c}\r\n"),
            ("Gr\u{fc}\u{df}e \u{1f469}\u{200d}\u{1f4bb}", "Gr\u{fc}\u{df}e \u{1f469}\u{200d}\u{1f4bb}"),
        ] {
            assert_eq!(harmless(page.to_owned()), wanted);
        }
    }
}
