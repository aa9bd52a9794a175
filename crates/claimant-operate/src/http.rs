//! Requests to the control endpoint of a local cloud.

use claimant_core::{Error, ErrorKind};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The most bytes of an answer that are read; of an answer in lines, of each line.
const ANSWER_MAX_BYTES: usize = 16 * 1024 * 1024;

type Body = Full<Bytes>;
type Answer = hyper::body::Incoming;

/// Returns what a GET of this address answers.
///
/// # Errors
/// When there is no answer, or one that is no success.
pub(crate) async fn get(url: &str) -> Result<Vec<u8>, Error> {
    Ok(whole(url, ask(url).await?).await?.to_vec())
}

/// Returns what a request with this method and JSON answers.
///
/// # Errors
/// When there is no answer, or one that is no success: what its `error` says.
pub(crate) async fn send(method: &str, url: &str, json: Vec<u8>) -> Result<Vec<u8>, Error> {
    let request = hyper::Request::builder().method(method).uri(url).header("content-type", "application/json");
    let request = request.body(Body::from(json)).map_err(|_| bad_address(url))?;
    let answer = client().request(request).await.map_err(|e| failed(url, "gave no answer").caused_by(e))?;
    let status = answer.status();
    let body = whole(url, answer.into_body()).await?;
    if status.is_success() {
        return Ok(body.to_vec());
    }
    let said = serde_json::from_slice::<serde_json::Value>(&body).ok();
    let said = said.as_ref().and_then(|said| said["error"].as_str());
    Err(said.map_or_else(|| failed(url, &format!("answered {status}")), Error::invalid))
}

/// Returns the lines of what a GET of this address answers, as they come.
///
/// # Errors
/// When there is no answer, or one that is no success.
pub(crate) async fn lines(url: &str) -> Result<Lines, Error> {
    Ok(Lines { url: url.to_owned(), answer: ask(url).await?, unread: Vec::new() })
}

/// An answer, line by line.
pub(crate) struct Lines {
    url: String,
    answer: Answer,
    unread: Vec<u8>,
}

impl Lines {
    /// Returns the next line without its end; `None` at the end of the answer. Cancel safe.
    ///
    /// # Errors
    /// When the connection breaks, or a line is too long.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.unread.drain(..=end).collect();
                line.pop();
                return Ok(Some(line));
            }
            if self.unread.len() > ANSWER_MAX_BYTES {
                return Err(failed(&self.url, "sent a line without an end"));
            }
            match self.answer.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => self.unread.extend(frame.into_data().ok().unwrap_or_default()),
                Some(Err(e)) => return Err(failed(&self.url, "broke off its answer").caused_by(e)),
            }
        }
    }
}

async fn ask(url: &str) -> Result<Answer, Error> {
    let address = url.parse().map_err(|_| bad_address(url))?;
    let answer = client().get(address).await.map_err(|e| failed(url, "gave no answer").caused_by(e))?;
    let status = answer.status();
    if status.is_success() { Ok(answer.into_body()) } else { Err(failed(url, &format!("answered {status}"))) }
}

async fn whole(url: &str, answer: Answer) -> Result<Bytes, Error> {
    let body = Limited::new(answer, ANSWER_MAX_BYTES).collect().await;
    Ok(body.map_err(|e| failed(url, "broke off its answer").caused_by(e))?.to_bytes())
}

fn client() -> Client<HttpConnector, Body> {
    Client::builder(TokioExecutor::new()).build_http()
}

fn bad_address(url: &str) -> Error {
    Error::invalid(format!("{url:?} is no address: http://127.0.0.1:… is"))
}

fn failed(url: &str, why: &str) -> Error {
    Error::new(format!("{url} {why}")).of_kind(ErrorKind::Unavailable)
}
