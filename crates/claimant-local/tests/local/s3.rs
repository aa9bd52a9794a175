//! The S3 endpoint, request by request. With the real SDK it is tested in `claimant-s3`.

use claimant_local::s3::S3;
use tokio::net::TcpListener;

use crate::support::http;

struct Bucket {
    s3: S3,
    address: String,
}

async fn bucket() -> Bucket {
    let s3 = S3::new();
    s3.create_bucket("b");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(s3.clone().serve(listener, std::future::pending()));
    Bucket { s3, address }
}

impl Bucket {
    /// Asks for the object `k`; returns the status and the whole answer in small letters.
    async fn ask(&self, method: &str, headers: &str, body: &str) -> (u16, String) {
        let answer = http::asked(&self.address, &format!("{method} /b/k"), headers, body).await;
        (http::parts(&answer).0, answer.to_ascii_lowercase())
    }

    fn body(&self) -> String {
        String::from_utf8(self.s3.object("b", "k").unwrap_or_default()).unwrap()
    }
}

#[tokio::test]
async fn a_put_with_a_condition_is_one() {
    let bucket = bucket().await;
    let etag = "\"0cc175b9c0f1b6a831c399e269772661\""; // of "a"
    let of_a = format!("If-Match: {etag}\r\n");
    // (the condition, what is put, the status, the error, what is there afterwards)
    for (condition, put, status, error, there) in [
        (of_a.as_str(), "x", 404, "nosuchkey", ""),
        ("If-None-Match: *\r\n", "a", 200, "", "a"),
        ("If-None-Match: *\r\n", "x", 412, "preconditionfailed", "a"),
        ("If-Match: \"other\"\r\n", "x", 412, "preconditionfailed", "a"),
        (&of_a, "b", 200, "", "b"),
        (&of_a, "x", 412, "preconditionfailed", "b"),
        ("If-Match: *\r\n", "x", 501, "notimplemented", "b"),
        ("", "c", 200, "", "c"),
        (&format!("If-None-Match: {etag}\r\n"), "x", 501, "notimplemented", "c"),
        ("If-Unmodified-Since: Thu, 01 Jan 2026 00:00:00 GMT\r\n", "x", 501, "if-unmodified-since", "c"),
    ] {
        let (found, answer) = bucket.ask("PUT", condition, put).await;
        assert_eq!((found, bucket.body().as_str()), (status, there), "{condition} {put}: {answer}");
        assert!(answer.contains(error), "{condition} {put}: {answer}");
    }
    let (status, answer) = bucket.ask("DELETE", "If-Match: \"other\"\r\n", "").await;
    assert!(status == 501 && answer.contains("if-match") && bucket.body() == "c", "{answer}");
    assert_eq!(bucket.ask("HEAD", "If-None-Match: *\r\n", "").await.0, 501);
}

#[tokio::test]
async fn a_part_of_an_object_is_had_by_its_range() {
    let bucket = bucket().await;
    bucket.s3.put_object("b", "k", "0123456789").unwrap();
    let etag = "\"781e5e245d69b566979b86e28d23f2c7\"";
    // (the headers, the status, a header of the answer or its error, the body)
    for (headers, status, shown, body) in [
        ("Range: bytes=5-7\r\n", 206, "content-range: bytes 5-7/10", "567"),
        ("Range: bytes=8-50\r\n", 206, "content-range: bytes 8-9/10", "89"),
        ("Range: bytes=8-\r\n", 206, "content-length: 2", "89"),
        ("Range: bytes=-3\r\n", 206, "content-range: bytes 7-9/10", "789"),
        ("Range: bytes=-50\r\n", 206, "content-range: bytes 0-9/10", "0123456789"),
        ("Range: bytes=10-\r\n", 416, "invalidrange", ""),
        ("Range: bytes=50-60\r\n", 416, "invalidrange", ""),
        ("Range: bytes=-0\r\n", 416, "invalidrange", ""),
        ("Range: bytes=7-5\r\n", 200, "accept-ranges: bytes", "0123456789"),
        ("Range: bytes=0-1,3-4\r\n", 200, "", "0123456789"),
        (&format!("Range: bytes=1-1\r\nIf-Match: {etag}\r\n"), 206, etag, "1"),
        ("Range: bytes=1-1\r\nIf-Match: \"other\"\r\n", 412, "preconditionfailed", ""),
    ] {
        let (found, answer) = bucket.ask("GET", headers, "").await;
        assert!(found == status && answer.contains(shown), "{headers}: {answer}");
        assert!(body.is_empty() || answer.ends_with(&format!("\r\n\r\n{body}")), "{headers}: {answer}");
    }
}

#[tokio::test]
async fn what_a_test_puts_is_there() {
    let bucket = bucket().await;
    bucket.s3.put_object("b", "k", "a").unwrap();
    let (status, answer) = bucket.ask("GET", "", "").await;
    assert!(
        status == 200 && answer.contains("\"0cc175b9c0f1b6a831c399e269772661\"") && answer.ends_with("\r\n\r\na"),
        "{answer}"
    );
    let error = bucket.s3.put_object("none", "k", "a").unwrap_err();
    assert_eq!(error.to_string(), "there is no bucket \"none\"");
}

#[tokio::test]
async fn what_a_sender_says_of_an_object_is_kept() {
    let bucket = bucket().await;
    let said = [
        "content-type: text/x",
        "content-encoding: gzip",
        "content-disposition: attachment",
        "content-language: de",
        "cache-control: no-cache",
        "expires: thu, 01 jan 2026 00:00:00 gmt",
        "x-amz-meta-of: m-1",
    ];
    let headers: String = said.iter().map(|header| format!("{header}\r\n")).collect();
    let (status, put) = bucket.ask("PUT", &headers, "a").await;
    // What is encoded is the object, not the answer.
    assert!(status == 200 && !put.contains("content-encoding"), "{put}");
    for method in ["GET", "HEAD"] {
        let (_, got) = bucket.ask(method, "", "").await;
        for header in said.into_iter().chain(["last-modified: "]) {
            assert!(got.contains(header), "{method} {header}: {got}");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_not_what_its_sha256_says_is_refused() {
    let bucket = bucket().await;
    for (given, expected) in [("ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=", 200), ("ypeB", 400)] {
        let (status, answer) = bucket.ask("PUT", &format!("x-amz-checksum-sha256: {given}\r\n"), "a").await;
        assert_eq!(status, expected, "{answer}");
        assert!(status == 200 || answer.contains("baddigest"), "{answer}");
    }
}

/// As the AWS SDK for Java sends all that it puts: in chunks, with its checksum behind them.
#[tokio::test]
async fn a_body_in_chunks_is_put_whole() {
    const UNSIGNED: &str = "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\n";
    const SIGNED: &str = "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER\r\n";
    const ENCODED: &str = "Content-Encoding: gzip, aws-chunked\r\n";
    let of_ab = "x-amz-checksum-sha256:+44g/C5MPySMYMOb1lLzwTRymLuXe4tNWQO4UFViBgM=\r\n";
    let of_other = "x-amz-checksum-sha256:ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=\r\n";
    // (headers, the length that is said, what is sent, the status, the error, what is there afterwards)
    for (headers, length, sent, status, error, there) in [
        (UNSIGNED, "x", "1\r\nx\r\n0\r\n\r\n", 400, "incompletebody", ""),
        (UNSIGNED, "1", "2\r\nx\r\n0\r\n\r\n", 400, "incompletebody", ""),
        (UNSIGNED, "2", "1\r\nx\r\n0\r\n\r\n", 400, "incompletebody", ""),
        (UNSIGNED, "1", "1\r\nx\r\n", 400, "incompletebody", ""),
        (UNSIGNED, "1", "x", 400, "incompletebody", ""),
        (UNSIGNED, "2", &format!("2\r\nab\r\n0\r\n{of_other}\r\n"), 400, "baddigest", ""),
        (ENCODED, "1", "1\r\na\r\n0\r\n\r\n", 200, "", "a"),
        (
            SIGNED,
            "17",
            "10;chunk-signature=e\r\n0123456789\r\n\r\nx\n\r\n1;chunk-signature=f\r\ny\r\n0;chunk-signature=g\r\n\r\n",
            200,
            "",
            "0123456789\r\n\r\nx\ny",
        ),
        (SIGNED, "0", "0;chunk-signature=e\r\n\r\n", 200, "", ""),
        (
            &format!("{SIGNED}{ENCODED}"),
            "2",
            &format!("2\r\nab\r\n0\r\n{of_ab}x-amz-trailer-signature:s\r\n\r\n"),
            200,
            "",
            "ab",
        ),
    ] {
        let headers = format!("{headers}x-amz-decoded-content-length: {length}\r\n");
        let bucket = bucket().await;
        let (found, answer) = bucket.ask("PUT", &headers, sent).await;
        assert_eq!((found, bucket.body().as_str()), (status, there), "{sent}: {answer}");
        assert!(answer.contains(error), "{sent}: {answer}");
        let (_, kept) = bucket.ask("GET", "x-amz-checksum-mode: ENABLED\r\n", "").await;
        let is_kept = |header: &str| kept.contains(&format!("\r\n{header}\r\n"));
        assert_eq!(is_kept("content-encoding: gzip"), status == 200 && headers.contains("gzip"), "{sent}: {kept}");
        assert_eq!(
            kept.contains("x-amz-checksum-sha256: "),
            status == 200 && sent.contains("sha256"),
            "{sent}: {kept}"
        );
        assert!(!kept.contains("aws-chunked"), "{sent}: {kept}");
    }
}
