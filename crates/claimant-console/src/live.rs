//! Server-sent events: something changed.
//!
//! A page has one stream, with one kind of event. On each it asks for its live part again, which replaces what differs and leaves the
//! rest as it is, what has the focus and what is folded out included. So nothing but HTML goes over the wire, and a page that was
//! asleep catches up with one request.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::console::Console;

/// Between two events at least: a page is drawn about twice a second.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);

/// After so long an event is sent though nothing was said to change: leases end and messages become visible by the clock alone.
const QUIET_MAX: Duration = Duration::from_secs(3);

const EVENT: &[u8] = b"event: changed\ndata: 1\n\n";

/// The event of a stream that ends with it: the page asks for another one after about 3 s.
const ONLY_EVENT: &[u8] = b"retry: 3000\nevent: changed\ndata: 1\n\n";

/// Answers with events until the page is left or the console stops; with one event where as many streams are open as may be: more of
/// them would take all connections of a browser with many tabs, and its next page would never come.
pub(crate) async fn events(State(console): State<Console>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    let Some(permit) = console.stream() else { return (kind, ONLY_EVENT).into_response() };
    let (mut changes, stopped) = (console.source().changes(), console.stopped());
    // What happened since the page was drawn, or while it was asleep, is seen with the first event.
    changes.mark_changed();
    let reader = Reader { changes, stopped, last: Instant::now(), _permit: permit };
    let events = stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok::<_, Infallible>(event), reader))
    });
    // The first bytes at once: the browser then knows that the stream is there.
    let hello = stream::iter([Ok(Bytes::from_static(b": claimant\n\n"))]);
    let body = Body::from_stream(futures_util::StreamExt::chain(hello, events));
    (kind, body).into_response()
}

struct Reader {
    changes: watch::Receiver<u64>,
    stopped: watch::Receiver<bool>,
    last: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    /// Returns the next event; none once the console stops.
    async fn next(&mut self) -> Option<Bytes> {
        let Self { changes, stopped, last, .. } = self;
        let changed = async {
            // What was seen before this pause is over is in the same event.
            sleep_until(*last + PAUSE).await;
            if let Ok(Err(_)) = timeout(QUIET_MAX, changes.changed()).await {
                // A source that is gone changes no more.
                sleep(QUIET_MAX).await;
            }
        };
        tokio::select! {
            // An error means that the console is gone.
            _ = stopped.wait_for(|stopped| *stopped) => return None,
            () = changed => {}
        }
        self.last = Instant::now();
        Some(Bytes::from_static(EVENT))
    }
}
