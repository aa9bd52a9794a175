//! Requests to the control endpoint of a local cloud.

use claimant_core::{Error, ErrorKind};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The most bytes of an answer that are read.
const ANSWER_MAX_BYTES: usize = 16 * 1024 * 1024;

type Body = Empty<&'static [u8]>;

/// Returns what a GET of this address answers.
///
/// # Errors
/// When there is no answer, or one that is no success.
pub(crate) async fn get(url: &str) -> Result<Vec<u8>, Error> {
    let failed = |why: &str| Error::new(format!("{url} {why}")).of_kind(ErrorKind::Unavailable);
    let address = url.parse().map_err(|_| Error::invalid(format!("{url:?} is no address: http://127.0.0.1:… is")))?;
    let client: Client<HttpConnector, Body> = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.get(address).await.map_err(|e| failed("gave no answer").caused_by(e))?;
    let status = answer.status();
    if !status.is_success() {
        return Err(failed(&format!("answered {status}")));
    }
    let body = Limited::new(answer.into_body(), ANSWER_MAX_BYTES).collect().await;
    Ok(body.map_err(|e| failed("broke off its answer").caused_by(e))?.to_bytes().to_vec())
}
