//! Contents in Base64: how bytes get into a body, which is a text.

use base64::alphabet::{self, Alphabet};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine as _};
use claimant_core::{Envelope, Message, Rejection};

static STANDARD: GeneralPurpose = engine(&alphabet::STANDARD);
static URL_SAFE: GeneralPurpose = engine(&alphabet::URL_SAFE);

const fn engine(alphabet: &Alphabet) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(alphabet, config)
}

/// Opens contents in Base64 (RFC 4648), with or without padding. White space at the end does not count; line breaks within are
/// rejected, as is all else that is not of the alphabet.
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

    fn decode(self, content: &[u8]) -> Result<Vec<u8>, Rejection> {
        let (engine, alphabet) =
            if self.url_safe { (&URL_SAFE, "the alphabet for URLs") } else { (&STANDARD, "the standard alphabet") };
        engine.decode(content.trim_ascii_end()).map_err(|error| {
            // Its own text quotes the byte.
            let fault = match error {
                DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => format!("at byte {at}"),
                DecodeError::InvalidLength(_) => "its length is not one".to_owned(),
                DecodeError::InvalidPadding => "its padding is not one".to_owned(),
            };
            Rejection::new(format!("the content is not Base64 of {alphabet}: {fault}"))
        })
    }
}

impl Envelope for Base64 {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let content = self.decode(message.content())?;
        Ok(vec![message.unpacked(content)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row<'a> = (Base64, &'a [u8], Result<&'a [u8], &'a str>);

    #[test]
    fn base64_is_decoded_with_and_without_padding() {
        let [standard, url_safe] = [Base64::standard(), Base64::url_safe()];
        let rows: [Row<'_>; 13] = [
            (standard, b"", Ok(b"")),
            (standard, b"+/8=", Ok(b"\xfb\xff")),
            (standard, b"+/8", Ok(b"\xfb\xff")),
            (standard, b"+/8=\r\n", Ok(b"\xfb\xff")),
            (url_safe, b"-_8", Ok(b"\xfb\xff")),
            (standard, b"-_8", Err("of the standard alphabet: at byte 0")),
            (url_safe, b"+/8=", Err("of the alphabet for URLs: at byte 0")),
            (standard, b"AAAA\nAAAA", Err("at byte 4")),
            (standard, b"{\"secret\":1}", Err("at byte 0")),
            (standard, b"AAAAA", Err("its length is not one")),
            (standard, b"AA=", Ok(b"\0")),
            (standard, b"+/9=", Err("at byte 2")),
            (standard, b"AA\xff\xff", Err("at byte 2")),
        ];
        for (base64, content, wanted) in rows {
            let decoded = base64.decode(content).map_err(|rejection| rejection.to_string());
            match (&decoded, wanted) {
                (Ok(bytes), Ok(wanted)) => assert_eq!(bytes, wanted),
                (Err(said), Err(wanted)) => assert!(said.contains(wanted) && !said.contains("secret"), "{said}"),
                _ => panic!("{}: {decoded:?}, not {wanted:?}", content.escape_ascii()),
            }
        }
    }
}
