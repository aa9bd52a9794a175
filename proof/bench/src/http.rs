//! Just enough HTTP/1.1 to pass messages on: one message from a stream, as the bytes that it came in.

use std::io::{Error, ErrorKind, Result};

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// The longest head of a message.
const HEAD_MAX_BYTES: usize = 64 * 1024;
/// The longest body: DynamoDB takes and gives 16 MB.
const BODY_MAX_BYTES: usize = 17 * 1024 * 1024;

/// A request or a response.
pub(crate) struct Message {
    /// All of it.
    pub(crate) bytes: Vec<u8>,
    head_bytes: usize,
}

impl Message {
    /// The next message; `None` where the stream has ended between two.
    ///
    /// # Errors
    /// When the stream fails, or the message is not of the kind that AWS's SDKs and the local servers send.
    pub(crate) async fn read(stream: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Self>> {
        let mut bytes = Vec::with_capacity(1024);
        loop {
            let line = stream.read_until(b'\n', &mut bytes).await?;
            if line == 0 && bytes.is_empty() {
                return Ok(None);
            }
            if line == 0 || bytes.len() > HEAD_MAX_BYTES {
                return Err(Error::new(ErrorKind::InvalidData, "the head of a message does not end"));
            }
            if bytes.ends_with(b"\r\n\r\n") {
                break;
            }
        }
        let mut message = Self { head_bytes: bytes.len(), bytes };
        let length = match message.header("content-length") {
            Some(text) => text.parse().map_err(|e| Error::new(ErrorKind::InvalidData, e))?,
            None if message.header("transfer-encoding").is_some() => {
                return Err(Error::new(ErrorKind::Unsupported, "a message in chunks"));
            }
            None => 0,
        };
        if length > BODY_MAX_BYTES {
            return Err(Error::new(ErrorKind::InvalidData, format!("a body of {length} bytes")));
        }
        message.bytes.resize(message.head_bytes + length, 0);
        stream.read_exact(&mut message.bytes[message.head_bytes..]).await?;
        Ok(Some(message))
    }

    /// The value of a header whose name is given in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let head = std::str::from_utf8(&self.bytes[..self.head_bytes]).ok()?;
        let mut fields = head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
        fields.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The body.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.head_bytes..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_read_one_after_the_other() {
        let mut stream: &[u8] =
            b"POST / HTTP/1.1\r\nContent-Length: 2\r\nX-Amz-Target: t\r\n\r\n{}GET /next HTTP/1.1\r\n\r\n";
        let first = Message::read(&mut stream).await.unwrap().unwrap();
        assert_eq!((first.header("x-amz-target"), first.body()), (Some("t"), &b"{}"[..]));
        let second = Message::read(&mut stream).await.unwrap().unwrap();
        assert!(second.bytes.starts_with(b"GET /next") && second.body().is_empty());
        assert!(Message::read(&mut stream).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn what_cannot_be_passed_on_is_refused() {
        for bad in [
            "GET / HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{}",
        ] {
            let mut stream = bad.as_bytes();
            assert!(Message::read(&mut stream).await.is_err(), "{bad:?}");
        }
    }
}
