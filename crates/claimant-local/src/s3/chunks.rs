//! Bodies in chunks (`aws-chunked`): what SDKs send that sign a body, or sum it up, while they send it.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, header};

/// What the names of checksums begin with, in headers and after chunks.
pub(super) const CHECKSUM: &str = "x-amz-checksum-";

const CHUNKED: &str = "aws-chunked";
const SHA256: &str = "x-amz-content-sha256";
const LENGTH: &str = "x-amz-decoded-content-length";

/// What chunks and what follows them may have beside the object.
pub(super) const AROUND_MAX_BYTES: usize = 1024 * 1024;

/// Returns a body, and its headers, as they would be without chunks: checksums that follow it are headers. Nothing where chunks are not
/// as they should be, or have not the length that the request says. Their signatures are not checked.
pub(super) fn whole(sent: Bytes, headers: &HeaderMap) -> Option<(Bytes, HeaderMap)> {
    let encodings = headers.get_all(header::CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let encodings = encodings.flat_map(|value| value.split(',')).map(str::trim);
    let (chunked, others): (Vec<_>, Vec<_>) = encodings.partition(|encoding| *encoding == CHUNKED);
    let is_streaming = headers.get(SHA256).is_some_and(|sha256| sha256.as_bytes().starts_with(b"STREAMING-"));
    let mut headers = headers.clone();
    if !is_streaming && chunked.is_empty() {
        return Some((sent, headers));
    }
    let (bytes, checksums) = parts(&sent)?;
    let length: usize = headers.get(LENGTH)?.to_str().ok()?.parse().ok()?;
    headers.remove(header::CONTENT_ENCODING);
    if !others.is_empty() {
        headers.insert(header::CONTENT_ENCODING, others.join(",").parse().ok()?);
    }
    headers.extend(checksums);
    (bytes.len() == length).then(|| (bytes.into(), headers))
}

/// What chunks hold, and the checksums that follow them.
fn parts(mut rest: &[u8]) -> Option<(Vec<u8>, HeaderMap)> {
    let (mut bytes, mut checksums) = (Vec::with_capacity(rest.len()), HeaderMap::new());
    loop {
        // After its size, a chunk may have its signature.
        let size = usize::from_str_radix(line(&mut rest)?.split(';').next()?, 16).ok()?;
        if size == 0 {
            break;
        }
        let (chunk, after) = rest.split_at_checked(size)?;
        bytes.extend_from_slice(chunk);
        rest = after.strip_prefix(b"\r\n")?;
    }
    while !rest.is_empty() {
        let Some((name, value)) = line(&mut rest)?.split_once(':') else { continue };
        let name = name.trim().to_ascii_lowercase();
        if name.starts_with(CHECKSUM) {
            checksums.insert(name.parse::<HeaderName>().ok()?, value.trim().parse().ok()?);
        }
    }
    Some((bytes, checksums))
}

/// Takes the next line, without its end.
fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let line = std::str::from_utf8(&rest[..end]).ok()?;
    *rest = &rest[end + 2..];
    Some(line)
}
