//! The client against a server that does as it is told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::byte_stream::ByteStream;
use aws_smithy_types::retry::ErrorKind;
use claimant_core::Timestamp;
use claimant_core::error::Chain;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::is_unsent;
use crate::signed::{self, Request, Service};

const SHORT: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy)]
enum Server {
    Answers,
    /// Closes a connection when a second request comes on it.
    AnswersOnce,
    Closes,
    IsSilent,
    IsGone,
    /// Answers with this status and these headers, and with chunks of 64 KiB without end.
    IsEndless(&'static str),
}

/// Starts a server; returns its address and the count of its connections.
async fn server(server: Server) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, connections) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&connections);
    if matches!(server, Server::IsGone) {
        return (address, connections);
    }
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let (mut request, mut answered) = ([0; 1024], false);
                while matches!(stream.read(&mut request).await, Ok(1..)) {
                    match server {
                        Server::AnswersOnce if answered => break,
                        Server::Answers | Server::AnswersOnce => {
                            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                            answered = true;
                        }
                        Server::IsSilent => {}
                        Server::IsEndless(head) => {
                            let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
                            let mut sent = stream.write_all(format!("HTTP/1.1 {head}\r\n\r\n").as_bytes()).await;
                            while sent.is_ok() {
                                sent = stream.write_all(chunk.as_bytes()).await;
                            }
                        }
                        Server::Closes | Server::IsGone => break,
                    }
                }
            });
        }
    });
    (address, connections)
}

fn request(uri: &str) -> HttpRequest {
    let mut request = HttpRequest::new(SdkBody::from("body"));
    request.set_method("POST").unwrap();
    request.set_uri(uri).unwrap();
    request
}

/// Asks, reads the answer to its end, and returns what is known of the connection.
async fn ask(connector: &impl HttpConnector, address: SocketAddr) -> ConnectionMetadata {
    let (mut request, capture) = (request(&format!("http://{address}/")), CaptureSmithyConnection::new());
    request.add_extension(capture.clone());
    let answer = connector.call(request).await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    let body = ByteStream::new(answer.into_body()).collect().await.unwrap();
    assert_eq!(body.to_vec(), b"ok");
    capture.get().unwrap()
}

#[tokio::test]
async fn a_connection_is_kept_until_it_is_given_up() {
    let (address, connections) = server(Server::Answers).await;
    let connector = Connector::new((None, None), usize::MAX);
    for _ in 0..3 {
        assert_eq!(ask(&connector, address).await.remote_addr(), Some(address));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    ask(&connector, address).await.poison();
    ask(&connector, address).await;
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

/// A connection that was kept while its function was frozen is dead, and its process does not know it.
#[tokio::test]
async fn what_is_sent_once_is_sent_on_a_connection_of_its_own() {
    for (config, answered, count) in [
        (crate::config().await.unwrap(), [true, false], 1),
        (crate::config_without_retries().await.unwrap(), [true, true], 2),
    ] {
        let credentials = SharedCredentialsProvider::new(Credentials::new("a", "b", None, None, "tests"));
        let (address, connections) = server(Server::AnswersOnce).await;
        let config = config.clone().into_builder().credentials_provider(credentials);
        let (config, mut good) = (config.endpoint_url(format!("http://{address}")).build(), Vec::new());
        for _ in 0..2 {
            let near = "arn:aws:lambda:eu-west-1:123456789012:function:f";
            let request = Request::json(Service::LAMBDA, near, ("GET", "/".to_owned(), String::new()));
            // It has no second try, whatever the configuration.
            good.push(signed::send(&config, request, || Ok(Timestamp::from_millis(0))).await.is_ok());
            tokio::time::sleep(SHORT).await;
        }
        assert_eq!((&good[..], connections.load(Ordering::SeqCst)), (&answered[..], count));
    }
}

#[tokio::test]
async fn a_request_takes_no_connection_of_another_runtime() {
    let (address, connections) = server(Server::Answers).await;
    let (http, unset) = (Arc::new(Http::keeping(usize::MAX)), (None, None));
    let (asked, was_asked) = tokio::sync::oneshot::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let of_handlers = Arc::clone(&http);
    let handlers = std::thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connector = runtime.block_on(async {
            let connector = of_handlers.connector(unset);
            ask(&connector, address).await;
            tokio::time::sleep(SHORT).await;
            connector
        });
        asked.send(connector).unwrap();
        // A handler blocks its only thread.
        let _ = ended.recv();
    });
    let theirs = was_asked.await.unwrap();
    for _ in 0..3 {
        timeout(Duration::from_secs(5), ask(&http.connector(unset), address)).await.unwrap();
    }
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    assert!(timeout(SHORT * 4, ask(&theirs, address)).await.is_err(), "nothing drives their connection");
    drop(end);
    handlers.join().unwrap();
}

#[tokio::test]
async fn retries_are_told_what_failed() {
    type Is = fn(&ConnectorError) -> bool;
    let transient: Is = |error| error.as_other() == Some(ErrorKind::TransientError);
    // The last is whether a handler is told that nothing was sent.
    for (what, scheme, timeouts, is, text, unsent) in [
        (Server::IsGone, "http", (None, None), ConnectorError::is_io as Is, "Connect", true),
        (Server::Closes, "http", (None, None), transient, "SendRequest", false),
        (Server::IsSilent, "http", (None, Some(SHORT)), ConnectorError::is_timeout, "NoAnswer(50ms)", false),
        (Server::IsSilent, "https", (Some(SHORT), None), ConnectorError::is_timeout, "NotConnected(50ms)", true),
        (Server::Answers, "https", (None, None), ConnectorError::is_io, "Connect", true),
    ] {
        let (address, _) = server(what).await;
        let connector = Connector::new(timeouts, usize::MAX);
        let error = connector.call(request(&format!("{scheme}://u:secret@{address}/secret"))).await.unwrap_err();
        let said = Chain(&error).to_string();
        assert!(said.contains(&format!("a request to {address} failed: ")) && !said.contains("secret"), "{said}");
        assert!(is(&error) && format!("{error:?}").contains(text), "{what:?}: {error:?}");
        let error = SdkError::<std::io::Error, ()>::dispatch_failure(error);
        assert_eq!(is_unsent(&error), unsent, "{what:?}: {error:?}");
    }
}

/// What is collected has a bound; what is streamed has that of who reads it.
#[tokio::test]
async fn an_answer_is_not_read_beyond_what_aws_says() {
    let (form, json, rpc) = ("application/x-www-form-urlencoded", "application/json", "application/x-amz-json-1.0");
    let whole = "200 OK\r\ncontent-length: 268435456";
    let long = "200 OK\r\ncontent-length: 268435457";
    for (method, content_type, head, answered, is_read) in [
        ("GET", "", long, "", true),
        ("GET", "", long, json, true),
        ("GET", "", "403 Forbidden\r\ncontent-length: 1048576", "", true),
        ("GET", "", "403 Forbidden\r\ncontent-length: 1048577", "", false),
        ("GET", "", "403 Forbidden\r\ntransfer-encoding: chunked", "", false),
        ("PUT", "", long, "", false),
        ("DELETE", "", long, "", false),
        ("POST", "", long, "", true),
        ("POST", form, long, "text/xml", true),
        ("POST", form, "400 Bad Request\r\ncontent-length: 1048577", "text/xml", false),
        ("POST", json, long, "", false),
        ("POST", json, long, json, false),
        ("POST", json, long, "text/html; charset=utf-8", false),
        ("POST", json, long, "text/plain", false),
        ("POST", json, long, "audio/mpeg", true),
        ("POST", json, whole, json, true),
        ("POST", rpc, "400 Bad Request\r\ncontent-length: 268435456", rpc, true),
        ("POST", rpc, "400 Bad Request\r\ncontent-length: 268435457", rpc, false),
        ("POST", rpc, long, rpc, false),
        ("POST", rpc, long, "application/octet-stream", false),
        ("POST", rpc, long, "application/vnd.amazon.eventstream", true),
        ("POST", rpc, whole, rpc, true),
        ("POST", "application/cbor", long, "application/cbor", false),
    ] {
        let head = format!("{head}\r\ncontent-type: {answered}").leak();
        let enough = if head.contains("chunked") { usize::MAX } else { 1 << 19 };
        let (address, _) = server(Server::IsEndless(head)).await;
        let mut request = request(&format!("http://{address}/"));
        request.set_method(method).unwrap();
        request.headers_mut().insert("content-type", content_type);
        let answer = Connector::new((None, None), usize::MAX).call(request).await.unwrap();
        let (mut body, mut read) = (ByteStream::new(answer.into_body()), 0);
        let last = loop {
            match body.next().await {
                Some(Ok(bytes)) if read < enough => read += bytes.len(),
                last => break last,
            }
        };
        assert_eq!(last.is_none_or(|last| last.is_ok()), is_read, "{method} {content_type} {head}");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_an_error_that_says_so() {
    let credentials = SharedCredentialsProvider::new(Credentials::new("a", "b", None, None, "tests"));
    let (address, _) = server(Server::IsEndless("200 OK\r\ncontent-length: 3221225472")).await;
    let config = crate::config().await.unwrap().clone().into_builder().credentials_provider(credentials);
    let config = config.endpoint_url(format!("http://{address}")).build();
    let near = "arn:aws:lambda:eu-west-1:123456789012:function:f";
    let request = Request::json(Service::LAMBDA, near, ("GET", "/".to_owned(), String::new()));
    let error = signed::send(&config, request, || Ok(Timestamp::from_millis(0))).await.unwrap_err();
    let said = Chain(&error).to_string();
    assert_eq!(error.kind(), claimant_core::ErrorKind::Unavailable, "{said}");
    assert!(said.contains("what answered is not AWS: more than 268435456 bytes"), "{said}");
}
