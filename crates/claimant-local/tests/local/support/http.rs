//! Requests by hand.

use std::fmt::Display;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, ToSocketAddrs};

/// Sends a request of this method and path, `GET /path`, with these header lines, each with its end, and this body; returns all that
/// comes back until the connection is closed. A `host` is among the header lines as the first one, or else is the address.
pub(crate) async fn asked(address: impl ToSocketAddrs + Display, request: &str, headers: &str, body: &str) -> String {
    let host = if headers.starts_with("host: ") { String::new() } else { format!("host: {address}\r\n") };
    let length = body.len();
    let text =
        format!("{request} HTTP/1.1\r\n{host}{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // A reset is as good an end as any: what matters is what came before it.
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

/// The status and the body of an answer.
pub(crate) fn parts(answer: &str) -> (u16, &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    (head[9..12].parse().unwrap(), body)
}

/// The status and the JSON of an answer.
pub(crate) fn json(answer: &str) -> (u16, serde_json::Value) {
    let (status, body) = parts(answer);
    (status, serde_json::from_str(body).unwrap())
}
