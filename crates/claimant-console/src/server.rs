//! The routes, and how they are served.

use std::net::Ipv4Addr;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use claimant_core::Error;
use claimant_local::cloud::cannot_listen;
use tokio::net::TcpListener;

use crate::ask::{Ask, wants_json};
use crate::console::Console;
use crate::guard::{self, Guard};
use crate::refused::Refused;
use crate::ui::nav::Tab;
use crate::{assets, live, pages, sampling};

/// Binds a port of 127.0.0.1 for the console; 0 takes a free one. Returns the address to open, too.
///
/// # Errors
/// When the port is in use, or may not be used; when no more files can be open.
pub async fn bind(port: u16) -> Result<(TcpListener, String), Error> {
    let fault =
        |e: std::io::Error| Error::new(cannot_listen("the console", "--console-port", port, e.kind())).caused_by(e);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(fault)?;
    let address = listener.local_addr().map_err(fault)?;
    Ok((listener, format!("http://{address}/")))
}

/// Serves a console on this listener until `shutdown` resolves, and then until the requests under way are answered and what they do is done:
/// of dead letters, and of messages that are sent, that is the part of them that is under way. Answers only requests to `127.0.0.1` and `localhost` with the listener's
/// port.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    console: Console,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::new("the console stopped: its listener failed").caused_by(e);
    let router = router(&console, listener.local_addr().map_err(failed)?.port());
    // Without it a small answer may wait 40 ms for an acknowledgement; only speed depends on it.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let stop = console.clone();
    let served = axum::serve(listener, router).with_graceful_shutdown(async move {
        shutdown.await;
        // Streams of events would otherwise never be answered, and long acts not soon.
        stop.stop();
    });
    let mut stopped = console.stopped();
    let sampled = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
    tokio::select! {
        served = async {
            let served = served.await;
            // Not all of them have a browser that waits.
            console.acts_ended().await;
            served
        } => served.map_err(failed),
        () = async { sampling::sample(&console, sampled).await; std::future::pending().await } => unreachable!("it pends"),
    }
}

fn router(console: &Console, port: u16) -> Router {
    Router::new()
        .merge(pages::routes())
        .merge(assets::routes())
        .route("/live", get(live::events))
        .fallback(unknown)
        .layer(middleware::from_fn_with_state(console.clone(), to_its_end))
        .layer(middleware::from_fn_with_state(console.clone(), check_allowed))
        .layer(middleware::from_fn_with_state(Guard::new(port), guard::check))
        .with_state(console.clone())
}

/// Refuses, for all pages at once, so that none can forget it: whatever would change something in a console that only shows; and, of a
/// source that is asked with somebody's credentials, what another site's page has the browser ask for.
async fn check_allowed(State(console): State<Console>, ask: Ask, request: Request, next: Next) -> Response {
    match console.check_writes() {
        Err(error) if !request.method().is_safe() => ask.forbidden(&console, error.to_string()),
        _ if !console.source().is_sampled() && guard::is_foreign(request.headers()) => ask.forbidden(
            &console,
            "another site's page led here, and each look is made of requests with your credentials: open the page from this console".to_owned(),
        ),
        _ => next.run(request).await,
    }
}

/// Has an act go on to its end where its browser does not wait, as after a second click: half of it would be neither done nor undone.
async fn to_its_end(State(console): State<Console>, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let json = wants_json(request.headers());
    let under_way = console.under_way();
    let answer = tokio::spawn(async move {
        let answer = next.run(request).await;
        drop(under_way);
        answer
    });
    answer.await.unwrap_or_else(|_| {
        let why = "the act ended early: look at what became of it before you do it again";
        Refused::new(StatusCode::INTERNAL_SERVER_ERROR, why, json).into_response()
    })
}

async fn unknown(State(console): State<Console>, ask: Ask) -> Response {
    let uri = ask.uri.chars().take(200).collect::<String>();
    ask.absent(&console, Tab::Overview, &format!("There is no page at {uri}."))
}
