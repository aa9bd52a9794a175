//! Contents in Base64: how bytes get into a body, which is a text.

use base64::alphabet::{self, Alphabet};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine as _};
use claimant_core::{Envelope, Fault, Message, Rejection};

static STANDARD: GeneralPurpose = engine(&alphabet::STANDARD);
static URL_SAFE: GeneralPurpose = engine(&alphabet::URL_SAFE);

/// How long encoders that break lines make them: Ruby's, PEM's and MIME's.
const LINES: [usize; 3] = [60, 64, 76];

const fn engine(alphabet: &Alphabet) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(alphabet, config)
}

/// Opens contents in Base64 (RFC 4648), with or without padding. White space at the end does not count, nor do line breaks where encoders
/// make them: all lines but the last have 60, 64 or 76 characters, and the last has no more. All else that is not of the alphabet is rejected,
/// such as two contents, one a line.
///
/// ```
/// # use claimant_core as claimant;
/// # use claimant_decode::Base64;
/// # use claimant::{Context, HandlerError, decode::Bytes, memory::MemoryStore};
/// # async fn store(_: Vec<u8>, _: Context) -> Result<(), HandlerError> { Ok(()) }
/// let consumer = claimant::decoded_by(Bytes)
///     .consumer("scans", MemoryStore::new(), store)
///     .key_of_attribute("scan_id")
///     .envelope(Base64::standard());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Base64 {
    url_safe: bool,
}

impl Base64 {
    /// Returns the envelope of the standard alphabet, with `+` and `/`.
    #[must_use]
    pub const fn standard() -> Self {
        Self { url_safe: false }
    }

    /// Returns the envelope of the alphabet for URLs, with `-` and `_`.
    #[must_use]
    pub const fn url_safe() -> Self {
        Self { url_safe: true }
    }

    fn decode(self, content: &[u8]) -> Result<Vec<u8>, Fault> {
        let (engine, alphabet) =
            if self.url_safe { (&URL_SAFE, "the alphabet for URLs") } else { (&STANDARD, "the standard alphabet") };
        let content = content.trim_ascii_end();
        let joined = joined(content);
        engine.decode(joined.as_deref().unwrap_or(content)).map_err(|error| {
            let fault = format!("is not Base64 of {alphabet}");
            // Its own text quotes the byte.
            match error {
                DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => {
                    let has_no_break = |(_, byte): &(usize, &u8)| joined.is_none() || !matches!(byte, b'\r' | b'\n');
                    let place = content.iter().enumerate().filter(has_no_break).nth(at);
                    Fault::new(fault).at(format!("at byte {}", place.map_or(at, |(place, _)| place)))
                }
                DecodeError::InvalidLength(_) => Fault::new(fault + ": its length is not one"),
                DecodeError::InvalidPadding => Fault::new(fault + ": its padding is not one"),
            }
        })
    }
}

/// Returns the content without its line breaks; `None` if it has none, or where no encoder makes them: it may be several contents.
fn joined(content: &[u8]) -> Option<Vec<u8>> {
    let length = LINES.into_iter().find(|at| matches!(content.get(*at), Some(b'\r' | b'\n')))?;
    let lines = content.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines: Vec<_> = lines.collect();
    let (last, full) = lines.split_last()?;
    (last.len() <= length && full.iter().all(|line| line.len() == length)).then(|| lines.concat())
}

impl Envelope for Base64 {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let content = self.decode(message.content()).map_err(|fault| message.rejection(fault))?;
        Ok(vec![message.unpacked(content).with_content_name("the decoded Base64")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row<'a> = (Base64, &'a [u8], Result<&'a [u8], &'a str>);

    #[test]
    fn base64_is_decoded_with_and_without_padding() {
        let [standard, url_safe] = [Base64::standard(), Base64::url_safe()];
        let rows: [Row<'_>; 15] = [
            (standard, b"", Ok(b"")),
            (standard, b"+/8=", Ok(b"\xfb\xff")),
            (standard, b"+/8", Ok(b"\xfb\xff")),
            (standard, b"+/8=\r\n", Ok(b"\xfb\xff")),
            (url_safe, b"-_8", Ok(b"\xfb\xff")),
            (standard, b"-_8", Err("is not Base64 of the standard alphabet (at byte 0)")),
            (url_safe, b"+/8=", Err("is not Base64 of the alphabet for URLs (at byte 0)")),
            (standard, b"AAAA\nAAAA", Err("at byte 4")),
            (standard, b"AA\r\nA=\n", Err("at byte 2")),
            (standard, b"\nAAAA", Err("at byte 0")),
            (standard, b"{\"secret\":1}", Err("at byte 0")),
            (standard, b"AAAAA", Err("its length is not one")),
            (standard, b"AA=", Ok(b"\0")),
            (standard, b"+/9=", Err("at byte 2")),
            (standard, b"AA\xff\xff", Err("at byte 2")),
        ];
        for (base64, content, wanted) in rows {
            let decoded = base64.decode(content).map_err(|fault| fault.to_string());
            match (&decoded, wanted) {
                (Ok(bytes), Ok(wanted)) => assert_eq!(bytes, wanted),
                (Err(said), Err(wanted)) => assert!(said.contains(wanted) && !said.contains("secret"), "{said}"),
                _ => panic!("{}: {decoded:?}, not {wanted:?}", content.escape_ascii()),
            }
        }
    }

    /// Two contents on two lines are never one.
    #[test]
    fn lines_of_the_lengths_that_encoders_make_are_one_content() {
        let decoded = |lines: &[usize], with: &str, end: &str| {
            let lines: Vec<_> = lines.iter().map(|length| "A".repeat(*length)).collect();
            let content = lines.join(with) + end;
            Base64::standard().decode(content.as_bytes()).map(|bytes| bytes.len()).map_err(|fault| fault.to_string())
        };
        for (lines, end, wanted) in [
            (&[76, 76, 4][..], "", Ok(117)),
            (&[64, 64], "\r\n", Ok(96)),
            (&[60, 1], "A==", Ok(46)),
            (&[60, 4], "!", Err([65, 66])),
            (&[60, 64], "", Err([60, 60])),
            (&[64, 60, 64], "", Err([64, 64])),
            (&[76, 0, 4], "", Err([76, 76])),
            (&[62, 4], "A", Err([62, 62])),
            (&[80, 4], "", Err([80, 80])),
        ] {
            for (number, with) in ["\n", "\r\n"].into_iter().enumerate() {
                match (decoded(lines, with, end), &wanted) {
                    (Ok(bytes), Ok(wanted)) => assert_eq!(bytes, *wanted, "{lines:?}"),
                    (Err(said), Err(at)) => assert!(said.ends_with(&format!("(at byte {})", at[number])), "{said}"),
                    (decoded, _) => panic!("{lines:?}: {decoded:?}, not {wanted:?}"),
                }
            }
        }
        let padded = format!("{}AA==\nAAAA", "A".repeat(56));
        assert!(Base64::standard().decode(padded.as_bytes()).is_err());
    }
}
