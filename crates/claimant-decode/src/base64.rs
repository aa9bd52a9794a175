//! Contents in Base64: how bytes get into a body, which is a text.

use base64::alphabet::{self, Alphabet};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine as _};
use claimant_core::{Envelope, Fault, Message, Rejection};

static STANDARD: GeneralPurpose = engine(&alphabet::STANDARD);
static URL_SAFE: GeneralPurpose = engine(&alphabet::URL_SAFE);

const fn engine(alphabet: &Alphabet) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(alphabet, config)
}

/// Opens contents in Base64 (RFC 4648), with or without padding. Line breaks do not count, nor does white space at the end; all else that is
/// not of the alphabet is rejected.
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
        let is_line_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let decoded = match engine.decode(content) {
            // As encoders for mails break lines, and some others where nothing else is asked for.
            Err(_) if content.iter().any(is_line_break) => {
                engine.decode(content.iter().copied().filter(|byte| !is_line_break(byte)).collect::<Vec<_>>())
            }
            decoded => decoded,
        };
        decoded.map_err(|error| {
            let fault = format!("is not Base64 of {alphabet}");
            // Its own text quotes the byte.
            match error {
                DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => {
                    let place = content.iter().enumerate().filter(|(_, byte)| !is_line_break(byte)).nth(at);
                    Fault::new(fault).at(format!("at byte {}", place.map_or(at, |(place, _)| place)))
                }
                DecodeError::InvalidLength(_) => Fault::new(fault + ": its length is not one"),
                DecodeError::InvalidPadding => Fault::new(fault + ": its padding is not one"),
            }
        })
    }
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
            (standard, b"AAAA\nAAAA", Ok(&[0; 6])),
            (standard, b"AA\r\nA=\n", Ok(&[0; 2])),
            (standard, b"AAAA\r\nAA!A", Err("at byte 8")),
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
}
