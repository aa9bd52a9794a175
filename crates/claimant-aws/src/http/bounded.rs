//! How much of an answer is read, where the SDK collects all of it before anything else looks at it: an error, and a success that is not
//! streamed. A wrong endpoint or a proxy could fill the memory with either.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use aws_smithy_types::body::SdkBody;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::CONTENT_TYPE;
use hyper::http::response::Parts;
use hyper::{HeaderMap, Method, Request};

use crate::endpoints::not_of;

/// The most bytes of an answer that is not streamed. DynamoDB's largest success has 16 MB as it counts them, and the JSON of many small
/// values is a few times as long; its errors can have items, too.
const COLLECTED_MAX_BYTES: usize = 64 << 20;

/// The most bytes of an error where a success may be streamed. Those of S3 have a few hundred.
const ERROR_MAX_BYTES: usize = 1 << 20;

/// What the requests of AWS's RPC protocols say of themselves, whose answers are streamed only as [`EVENTS`].
const RPC: [&str; 2] = ["application/x-amz-json-", "application/x-www-form-urlencoded"];

const EVENTS: &str = "application/vnd.amazon.eventstream";

/// Goes with a request whose answer is not streamed, where its method and headers do not say so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collected;

/// Returns whether every answer is collected. A success of any other request may be streamed, as an object of S3, and is bounded by who
/// reads it.
pub(super) fn is_collected(request: &Request<SdkBody>) -> bool {
    let is_rpc = || RPC.iter().any(|rpc| content_type(request.headers()).starts_with(rpc));
    matches!(*request.method(), Method::PUT | Method::DELETE)
        || request.extensions().get::<Collected>().is_some()
        || is_rpc()
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// A body that ends with an error where it is too long, before any of it is read if its head says so.
pub(super) struct Bounded {
    body: Incoming,
    max_bytes: usize,
    left_bytes: usize,
}

impl Bounded {
    pub(super) fn new(head: &Parts, is_collected: bool, body: Incoming) -> Self {
        let max_bytes = match head.status.is_success() {
            _ if is_collected && !content_type(&head.headers).starts_with(EVENTS) => COLLECTED_MAX_BYTES,
            false => ERROR_MAX_BYTES,
            true => usize::MAX,
        };
        Self { body, max_bytes, left_bytes: max_bytes }
    }

    /// Returns the bytes that are left after so many more.
    fn left_after(&self, bytes: usize) -> Result<usize, Box<dyn Error + Send + Sync>> {
        let too_long = || not_of("AWS", &format!("more than {} bytes", self.max_bytes)).into();
        self.left_bytes.checked_sub(bytes).ok_or_else(too_long)
    }
}

impl Body for Bounded {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.left_after(usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX))?;
        let polled = Pin::new(&mut self.body).poll_frame(cx)?;
        if let Poll::Ready(Some(frame)) = &polled {
            self.left_bytes = self.left_after(frame.data_ref().map_or(0, Bytes::len))?;
        }
        polled.map(|frame| frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
