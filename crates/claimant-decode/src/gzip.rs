//! Contents that are compressed.

use std::io::{BufRead, Read};

use claimant_core::{Envelope, Fault, Message, Rejection};
use flate2::bufread::MultiGzDecoder;

/// To how much a content is unpacked at most, unless set: eight times what a queue takes.
pub const UNPACKED_DEFAULT_BYTES: usize = 8 << 20;

/// The largest limit that may be set.
pub const UNPACKED_MAX_BYTES: usize = 512 << 20;

/// How much is made room for at first, for each byte of the content: text is compressed about as much.
const RATIO_EXPECTED: usize = 4;

const _: () = assert!(UNPACKED_DEFAULT_BYTES <= UNPACKED_MAX_BYTES);

/// Opens contents that are compressed with gzip (RFC 1952), of one or more members. What its checksums contradict is rejected.
///
/// A content that unpacks to more than [`UNPACKED_DEFAULT_BYTES`] is rejected, unless [`at_most`](Self::at_most) sets another limit:
/// gzip makes a kilobyte of a megabyte of zeros. No more than that is held for a content; for a moment, while it is unpacked, three times
/// that, and five times while its fingerprint is made. What it is decoded to comes on top, and that is up to the payload's type. All
/// contents of a batch are in memory at once, with what they are decoded to, and together they have a
/// [limit](claimant_core::limits::UNPACKED_BATCH_MAX_BYTES) as well. docs/decoders.md says how much memory a function needs for a limit.
///
/// ```
/// # use claimant_core as claimant;
/// # use claimant_decode::{Base64, Gzip};
/// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
/// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
/// // JSON in gzip in Base64, of 32 MiB at most: for a function with several times that.
/// let consumer = Consumer::new("packing", MemoryStore::new(), pack)
///     .key(|order| order)
///     .envelope(Base64::standard())
///     .envelope(Gzip::new().at_most(32 << 20));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Gzip {
    max_bytes: usize,
}

impl Gzip {
    /// Returns the envelope with the default limit.
    #[must_use]
    pub const fn new() -> Self {
        Self { max_bytes: UNPACKED_DEFAULT_BYTES }
    }

    /// Sets to how many bytes a content is unpacked at most: clamped to [`UNPACKED_MAX_BYTES`].
    #[must_use]
    pub fn at_most(self, bytes: usize) -> Self {
        Self { max_bytes: bytes.min(UNPACKED_MAX_BYTES) }
    }

    fn unpack(self, content: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut packed = MultiGzDecoder::new(content);
        let mut unpacked = Vec::with_capacity(content.len().saturating_mul(RATIO_EXPECTED).min(self.max_bytes));
        // One byte more than the limit tells a content that reaches it from one that exceeds it.
        let read = packed.by_ref().take(self.max_bytes as u64 + 1).read_to_end(&mut unpacked);
        // Its own text can quote the header.
        let at = content.len() - packed.get_mut().fill_buf().map_or(0, <[u8]>::len);
        if unpacked.len() > self.max_bytes {
            let fault = format!("unpacks to more than {} bytes, which is the limit that is set for it", self.max_bytes);
            return Err(Fault::new(fault).at(format!("at byte {at}")));
        }
        read.map_err(|_| Fault::new("is not gzip, is cut off or damaged").at(format!("at byte {at}")))?;
        // It is kept while its batch is worked on, and grew by doubling.
        unpacked.shrink_to_fit();
        Ok(unpacked)
    }
}

impl Default for Gzip {
    fn default() -> Self {
        Self::new()
    }
}

impl Envelope for Gzip {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let content = self.unpack(message.content()).map_err(|fault| message.rejection(fault))?;
        Ok(vec![message.unpacked(content).with_content_name("the unpacked gzip")])
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    pub(crate) fn packed(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    type Row<'a> = (Vec<u8>, Result<&'a [u8], &'a str>);

    #[test]
    fn gzip_is_unpacked_up_to_the_limit_and_checked() {
        let gzip = Gzip::new().at_most(20);
        let (mut damaged, good) = (packed(b"a secret of bytes"), packed(b"a secret of bytes"));
        let checksum = damaged.len() - 8;
        damaged[checksum] ^= 1;
        let rows: [Row<'_>; 10] = [
            (good.clone(), Ok(b"a secret of bytes")),
            (packed(b""), Ok(b"")),
            (packed(&[0; 20]), Ok(&[0; 20])),
            ([packed(b"two "), packed(b"members")].concat(), Ok(b"two members")),
            (packed(&[0; 21]), Err("more than 20 bytes")),
            ([good.clone(), packed(b"four")].concat(), Err("more than 20 bytes")),
            (good[..good.len() - 1].to_vec(), Err("cut off or damaged")),
            (damaged, Err("cut off or damaged")),
            ([&good[..], b"secret"].concat(), Err("cut off or damaged")),
            (b"{\"secret\":1}".to_vec(), Err("is not gzip")),
        ];
        for (content, wanted) in rows {
            let unpacked = gzip.unpack(&content).map_err(|fault| fault.to_string());
            match (&unpacked, wanted) {
                (Ok(bytes), Ok(wanted)) => assert_eq!(bytes, wanted),
                (Err(said), Err(wanted)) => assert!(said.contains(wanted) && !said.contains("secret"), "{said}"),
                _ => panic!("{unpacked:?}, not {wanted:?}"),
            }
        }
        assert!(gzip.unpack(b"").is_err(), "nothing is not gzip");
        let kept = Gzip::new().unpack(&packed(&[0; 70_000])).unwrap();
        assert_eq!(kept.capacity(), 70_000);
    }

    #[test]
    fn a_bomb_is_given_up_at_the_limit() {
        // 64 MiB of zeros, in two layers: a few hundred bytes.
        let bomb = packed(&packed(&vec![0; 64 << 20]));
        assert!(bomb.len() < 1_000, "{}", bomb.len());
        let inner = Gzip::new().unpack(&bomb).unwrap();
        let said = Gzip::new().unpack(&inner).unwrap_err().to_string();
        assert!(said.contains("more than 8388608 bytes"), "{said}");
        assert_eq!(Gzip::new().at_most(usize::MAX).max_bytes, UNPACKED_MAX_BYTES);
    }
}
