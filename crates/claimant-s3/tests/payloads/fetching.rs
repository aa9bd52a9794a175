//! What is fetched, what is refused, and what is removed.

use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future::ProvideCredentials as Provided;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::ProvideCredentials;
use claimant_core::{
    Confirmation, ErrorKind, FetchError, PayloadSink as _, PayloadSource as _, Pointer, Room, Variables,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{BUCKET, client, payloads, started};
use claimant_s3::S3Payloads;

const LONG: Duration = Duration::from_secs(20);

fn at(bucket: &str, key: &str) -> Pointer {
    Pointer { container: bucket.to_owned(), name: key.to_owned() }
}

fn said(result: Result<Vec<u8>, FetchError>) -> String {
    match result.unwrap_err() {
        FetchError::Rejected(why) => format!("rejected: {why}"),
        FetchError::Unavailable(why) => format!("unavailable: {why}"),
        other => other.to_string(),
    }
}

#[tokio::test]
async fn what_was_written_is_fetched_and_removed() {
    let (s3, payloads) = started().await;
    let payloads = payloads.remove_when_done();
    let bytes: Vec<u8> = (0..1_500_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let written = payloads.write(&bytes).await.unwrap();
    assert_eq!((written.attribute.as_str(), written.value.as_sent()), ("ExtendedPayloadSize", Some("1500000")));
    let message =
        claimant_core::Message::new("m", written.body).unwrap().with_attribute(written.attribute, written.value);
    let pointer = payloads.pointer(&message).unwrap().unwrap();
    let room = Room::new(payloads.room_bytes());
    assert_eq!(payloads.fetch(&pointer, &room, LONG).await.unwrap(), bytes);
    // Twice: a removal whose answer was lost is none less.
    for _ in 0..2 {
        assert_eq!(payloads.remove(&pointer, LONG).await, Confirmation::Confirmed);
    }
    assert!(s3.keys(BUCKET).is_empty());
    let gone = said(payloads.fetch(&pointer, &room, LONG).await);
    assert!(gone.starts_with("rejected: the payload is not in its bucket"), "{gone}");
    // Never the same name twice.
    payloads.write(b"a").await.unwrap();
    payloads.write(b"a").await.unwrap();
    assert_eq!(s3.keys(BUCKET).len(), 2);
}

#[tokio::test]
async fn sizes_are_known_before_anything_is_read() {
    let (s3, payloads) = started().await;
    payloads.write(&[b'x'; 1_000]).await.unwrap();
    let pointer = at(BUCKET, &s3.keys(BUCKET)[0]);
    let room = Room::new(2_999);
    let small = payloads.clone().payload_max_bytes(999);
    assert!(
        said(small.fetch(&pointer, &room, LONG).await)
            .starts_with("rejected: the payload has 1000 bytes, and at most 999")
    );
    let exact = payloads.clone().payload_max_bytes(1_000);
    assert_eq!(exact.fetch(&pointer, &room, LONG).await.unwrap().len(), 1_000);
    assert_eq!(exact.fetch(&pointer, &room, LONG).await.unwrap().len(), 1_000);
    assert_eq!(exact.fetch(&pointer, &room, LONG).await, Err(FetchError::NoRoom), "999 bytes are left");
    // There is always room for one of the largest.
    assert_eq!(payloads.clone().batch_max_bytes(1).payload_max_bytes(77).room_bytes(), 77);
}

#[tokio::test]
async fn what_a_person_can_put_right_is_tried_again() {
    let (_, payloads) = started().await;
    let room = Room::new(1_000);
    for (source, bucket, wanted) in [
        (payloads.clone(), "elsewhere", "NoSuchBucket: there is no such bucket"),
        (payloads.clone().owned_by("111111111111"), BUCKET, "AccessDenied: the function's role needs s3:GetObject"),
        (super::payloads(BUCKET), BUCKET, "S3 gave no answer"),
    ] {
        let said = said(source.fetch(&at(bucket, "secret"), &room, LONG).await);
        assert!(said.starts_with("unavailable") && said.contains(wanted) && !said.contains("secret"), "{said}");
    }
    let refused = payloads.clone().owned_by("111111111111").write(b"secret").await.unwrap_err();
    assert_eq!(refused.kind(), claimant_core::ErrorKind::Refused);
    assert!(refused.to_string().contains("s3:PutObject"), "{refused}");
    assert_eq!(payloads.owned_by("111111111111").remove(&at(BUCKET, "k"), LONG).await, Confirmation::Unconfirmed);
    assert!(
        payloads_nowhere().write(b"a").await.is_err_and(|error| error.kind() == claimant_core::ErrorKind::Unavailable)
    );
}

fn payloads_nowhere() -> S3Payloads {
    payloads(BUCKET)
}

/// Its settings are wrong, such as a profile's.
#[derive(Debug)]
struct Misconfigured;

impl ProvideCredentials for Misconfigured {
    fn provide_credentials<'a>(&'a self) -> Provided<'a>
    where
        Self: 'a,
    {
        Provided::ready(Err(CredentialsError::invalid_configuration("no such profile")))
    }
}

/// As a message that SQS would have to take, it is refused at once.
#[tokio::test]
async fn wrong_settings_for_credentials_are_no_outage_of_s3() {
    let config = client("http://127.0.0.1:1").config().to_builder().credentials_provider(Misconfigured).build();
    let error = S3Payloads::new(Client::from_conf(config), BUCKET).write(b"a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().starts_with("no request was sent to S3, since the settings"), "{error}");
}

/// An endpoint that says this to everything, and then nothing.
async fn says(answer: &'static str) -> S3Payloads {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            open.push(stream);
        }
    });
    S3Payloads::new(client(&url), BUCKET)
}

#[tokio::test]
async fn an_endpoint_that_lies_or_is_silent_costs_neither_time_nor_memory() {
    let room = Room::new(1 << 40);
    let soon = Duration::from_millis(300);
    // A gigabyte is said, and never read: 1 GiB, and more than a number of bytes can be here.
    for (head, length, wanted) in [
        ("200 OK\r\nETag: a", "1073741824", "rejected: the payload has 1073741824 bytes, and at most"),
        ("200 OK\r\nETag: a", "18446744073709551615", "unavailable: "),
        ("200 OK", "1073741824", "unavailable: what answered is not S3: a success without an ETag"),
        (
            "206 Partial Content\r\nETag: a\r\nContent-Range: bytes 0-9/1000",
            "10",
            "unavailable: what answered is not S3: a part of the payload",
        ),
        ("403 Forbidden", "1073741824", "unavailable: S3 gave no answer: "),
    ] {
        let answer: &str = Box::leak(format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n").into_boxed_str());
        let said = said(says(answer).await.fetch(&at(BUCKET, "k"), &room, LONG).await);
        assert!(said.starts_with(wanted), "{said}");
    }
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\nETag: a\r\nContent-Length: 10\r\n\r\nfive!",
        "HTTP/1.1 200 OK\r\nETag: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfive!\r\n",
    ] {
        let source = says(answer).await.timeout(soon);
        let said = said(source.fetch(&at(BUCKET, "k"), &room, LONG).await);
        assert!(said.starts_with("unavailable"), "{said}");
        assert_eq!(source.remove(&at(BUCKET, "k"), soon).await, Confirmation::Unconfirmed);
    }
}

/// As a page that says that all is well: neither a payload of nothing, nor one that was taken.
#[tokio::test]
async fn an_empty_success_is_not_of_s3() {
    let source = says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    let said = said(source.fetch(&at(BUCKET, "k"), &Room::new(1_000), LONG).await);
    assert!(said.starts_with("unavailable: what answered is not S3"), "{said}");
    let error = source.write(b"a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().starts_with("what answered is not S3"), "{error}");
}

#[tokio::test]
async fn what_passes_by_itself_is_not_refused() {
    for (status, code, wanted) in [
        ("400 Bad Request", "ThrottlingException", ErrorKind::Unavailable),
        ("400 Bad Request", "KMS.ThrottlingException", ErrorKind::Unavailable),
        ("400 Bad Request", "RequestTimeout", ErrorKind::Unavailable),
        ("429 Too Many Requests", "ServiceUnavailable", ErrorKind::Unavailable),
        ("503 Slow Down", "SlowDown", ErrorKind::Unavailable),
        ("200 OK", "SlowDown", ErrorKind::Unavailable),
        ("200 OK", "AccessDenied", ErrorKind::Unavailable),
        ("400 Bad Request", "IncompleteBody", ErrorKind::Unavailable),
        ("409 Conflict", "OperationAborted", ErrorKind::Unavailable),
        ("400 Bad Request", "BadDigest", ErrorKind::Unavailable),
        ("400 Bad Request", "XAmzContentSHA256Mismatch", ErrorKind::Unavailable),
        ("307 Temporary Redirect", "TemporaryRedirect", ErrorKind::Unavailable),
        ("408 Request Timeout", "", ErrorKind::Unavailable),
        ("413 Content Too Large", "", ErrorKind::Refused),
        ("403 Forbidden", "AccessDenied", ErrorKind::Refused),
        ("400 Bad Request", "KMS.DisabledException", ErrorKind::Refused),
    ] {
        let body = format!("<Error><Code>{code}</Code><Message>secret</Message></Error>");
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        let refusing = says(Box::leak((head + &body).into_boxed_str())).await;
        let error = refusing.write(b"a").await.unwrap_err();
        assert_eq!(error.kind(), wanted, "{code}: {error}");
        let text = error.to_string();
        assert!(text.contains(code) && !text.contains("secret"), "{text}");
        let is_of_s3 = !text.contains(&format!("not S3: status {}, without an error code", &status[..3]));
        assert_eq!(is_of_s3, !code.is_empty(), "{text}");
    }
}

#[tokio::test]
async fn a_bucket_is_named_by_its_name() {
    let named = |value: &str| {
        let variables = Variables::new([("BUCKET", value.to_owned())]);
        async move { S3Payloads::from_variables(variables, "BUCKET").await }
    };
    assert!(named("orders-large.example").await.is_ok());
    for value in ["ab", "arn:aws:s3:::orders", "https://orders.s3.amazonaws.com", "Orders"] {
        let fault = named(value).await.unwrap_err().to_string();
        assert!(fault.contains("a bucket's name is needed") && fault.contains("not its ARN or URL"), "{fault}");
    }
    let none: [(&str, &str); 0] = [];
    let fault = S3Payloads::from_variables(Variables::new(none), "BUCKET").await.unwrap_err().to_string();
    assert!(fault.contains("BUCKET is not set: give it the name of the bucket"), "{fault}");
}
