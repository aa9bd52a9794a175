//! How much of an answer is read: of one that the SDK collects, no more than AWS ever says. An endpoint that is not AWS could send gigabytes.
//! [`http_client`](crate::http_client) has the rule.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use aws_smithy_types::body::SdkBody;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::CONTENT_TYPE;
use hyper::http::response::Parts;
use hyper::{HeaderMap, Method, Request};

use crate::endpoints::not_of;

/// The most bytes of an answer that is collected. DynamoDB's largest have 16 MB as it counts them. What is longest in JSON are empty strings
/// in a list: each counts one byte, and is nine as `{"S":""},`, which is 144 MiB. The rest is room, as for short names of attributes and for
/// the keys that are still to be read.
const COLLECTED_MAX_BYTES: usize = 256 << 20;

/// The most bytes of an error, except DynamoDB's: that of a transaction quotes the items that refused it.
const ERROR_MAX_BYTES: usize = 1 << 20;

/// Goes with a request whose answer is collected, where its method and headers do not say so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collected;

/// How much is read of the answer to a request.
pub(super) struct Bounds {
    error_max_bytes: usize,
    /// Says of an answer's content type whether a success of it is streamed, and bounded by who reads it.
    is_streamed: fn(&str) -> bool,
}

impl Bounds {
    pub(super) fn of(request: &Request<SdkBody>) -> Self {
        let content_type = content_type(request.headers());
        let is_rpc = ["application/x-amz-json-", "application/cbor"].iter().any(|rpc| content_type.starts_with(rpc));
        let is_collected = is_rpc
            || matches!(*request.method(), Method::PUT | Method::DELETE)
            || request.extensions().get::<Collected>().is_some();
        let is_streamed: fn(&str) -> bool = match content_type.starts_with("application/json") {
            _ if is_collected => |answered| answered.starts_with("application/vnd.amazon.eventstream"),
            true => |answered| {
                let is_text =
                    ["application/json", "text/html", "text/plain"].iter().any(|text| answered.starts_with(text));
                !is_text && !answered.is_empty()
            },
            // As an object of S3, or all public images of EC2 in XML.
            false => |_| true,
        };
        Self { error_max_bytes: if is_rpc { COLLECTED_MAX_BYTES } else { ERROR_MAX_BYTES }, is_streamed }
    }

    fn max_bytes(&self, head: &Parts) -> usize {
        match head.status.is_success() {
            true if (self.is_streamed)(content_type(&head.headers)) => usize::MAX,
            true => COLLECTED_MAX_BYTES,
            false => self.error_max_bytes,
        }
    }
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
    pub(super) fn new(head: &Parts, bounds: &Bounds, body: Incoming) -> Self {
        let max_bytes = bounds.max_bytes(head);
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
