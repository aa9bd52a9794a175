//! Lambda's runtime API, for one start of a function, and a mailbox for its first message.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claimant_core::{Clock as _, Error, SystemClock};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

const API: &str = "/2018-06-01/runtime/";
/// What a function asks for work with, and what its answers end with, after [`API`].
const NEXT: &str = "invocation/next";
const RESPONSE: &str = "/response";
const ERROR: &str = "/error";
/// How long the function has for its message.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What a function told: where, and what.
type Told = (String, Bytes);

/// Waits until the function that connects to this listener asks for work; with an event, which the first such request gets at once,
/// until it has answered that, and returns its answer.
///
/// # Errors
/// When it says that it failed, or nothing can connect.
pub(crate) async fn reached(listener: &TcpListener, event: Option<Bytes>) -> Result<Bytes, Error> {
    let failed = |e: std::io::Error| Error::new("the runtime API cannot be connected to").caused_by(e);
    let until_asked = event.is_none();
    let (event, (tell, mut told)) = (Arc::new(Mutex::new(event)), unbounded_channel::<Told>());
    loop {
        let (path, body) = tokio::select! {
            accepted = listener.accept() => {
                tokio::spawn(serve(accepted.map_err(failed)?.0, Arc::clone(&event), tell.clone()));
                continue;
            }
            Some(told) = told.recv() => told,
        };
        match path.strip_prefix(API) {
            Some(NEXT) if until_asked => return Ok(body),
            Some(path) if path.ends_with(RESPONSE) => return Ok(body),
            Some(path) if path.ends_with(ERROR) => {
                return Err(Error::new(format!("the function failed: {}", String::from_utf8_lossy(&body))));
            }
            _ => {}
        }
    }
}

/// Serves one connection. What asks for work when there is none gets no answer, and its connection stays as long as the function: one that
/// loses its runtime would complain.
async fn serve(stream: TcpStream, event: Arc<Mutex<Option<Bytes>>>, tell: UnboundedSender<Told>) {
    let service = service_fn(|request: Request<Incoming>| {
        let (event, tell) = (Arc::clone(&event), tell.clone());
        async move {
            let path = request.uri().path().to_owned();
            let asks = path.strip_prefix(API) == Some(NEXT);
            let event = if asks { event.lock().unwrap_or_else(PoisonError::into_inner).take() } else { None };
            let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            // OK to fail: whoever waited for this start has seen enough.
            let _ = tell.send((path, body));
            Ok::<_, Infallible>(match event {
                Some(event) => with_event(event),
                None if asks => std::future::pending().await,
                None => Response::new(Full::default()),
            })
        }
    });
    // OK to fail: the function is killed once it has done what is measured.
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

fn with_event(event: Bytes) -> Response<Full<Bytes>> {
    let deadline = SystemClock.now().plus(TIMEOUT);
    let mut response = Response::new(Full::new(event));
    for (name, value) in [
        ("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd".to_owned()),
        ("lambda-runtime-deadline-ms", deadline.as_millis().to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:000000000000:function:order-confirmation".to_owned(),
        ),
    ] {
        let value = value.try_into().expect("these are plain texts");
        response.headers_mut().insert(name, value);
    }
    response
}

/// Accepts every mail, as SES does. Returns where; it ends with the process.
///
/// # Errors
/// When it cannot listen.
pub(crate) async fn mailbox() -> std::io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let service = service_fn(|request: Request<Incoming>| async move {
                // A mail that does not come whole has no answer to come to.
                request.into_body().collect().await?;
                Ok::<_, hyper::Error>(Response::new(Full::<Bytes>::from(r#"{"MessageId":"m"}"#)))
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(format!("http://{address}"))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::sleep;

    use super::*;

    async fn listener() -> TcpListener {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap()
    }

    async fn ask(listener: &TcpListener, request: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let length = body.len();
        let request = format!("{request} HTTP/1.1\r\nhost: local\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    #[tokio::test]
    async fn a_function_has_started_once_it_asks_for_work() {
        let listener = listener().await;
        let asks = async {
            let other = ask(&listener, "GET /other", "").await;
            (other, ask(&listener, &format!("GET {API}{NEXT}"), "").await)
        };
        let (asked, _connections) = tokio::join!(reached(&listener, None), asks);
        assert!(asked.unwrap().is_empty());
    }

    /// It asks at once, and all that it had put off until then takes a while.
    #[tokio::test]
    async fn what_a_function_puts_off_is_before_its_first_answer() {
        let (listener, late) = (listener().await, Duration::from_millis(50));
        let since = Instant::now();
        let function = async {
            let mut stream = ask(&listener, &format!("GET {API}{NEXT}"), "").await;
            let (mut bytes, mut answer) = ([0; 1_024], String::new());
            while !answer.contains("Records") {
                let read = stream.read(&mut bytes).await.unwrap();
                assert!(read > 0, "{answer}");
                answer.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
            }
            assert!(answer.contains("lambda-runtime-aws-request-id: ") && answer.contains("deadline-ms: "), "{answer}");
            sleep(late).await;
            (stream, ask(&listener, &format!("POST {API}invocation/8476/response"), "done").await)
        };
        let (answer, _connections) =
            tokio::join!(reached(&listener, Some(Bytes::from_static(b"{\"Records\":[]}"))), function);
        assert_eq!(answer.unwrap(), "done");
        assert!(since.elapsed() >= late, "{:?}", since.elapsed());
    }

    #[tokio::test]
    async fn a_function_that_fails_has_no_first_answer() {
        for path in ["init/error", "invocation/8476/error"] {
            let listener = listener().await;
            let request = format!("POST {API}{path}");
            let fails = ask(&listener, &request, "no table");
            let (answer, _connection) = tokio::join!(reached(&listener, Some(Bytes::new())), fails);
            assert_eq!(answer.unwrap_err().to_string(), "the function failed: no table");
        }
    }
}
