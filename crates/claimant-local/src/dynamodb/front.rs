//! What stands before the engine's own server, which answers every client.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use tokio::net::TcpListener;

/// Carries requests to the engine.
#[derive(Clone)]
struct Engine {
    client: Client<HttpConnector, Body>,
    address: SocketAddr,
}

/// Returns a listener for the engine, at an address that no web page finds: a random one of 127.0.0.0/8, or where the system
/// has only 127.0.0.1, a free port of that.
pub(super) async fn hidden_listener() -> std::io::Result<TcpListener> {
    let [a, b, c, ..] = uuid::Uuid::new_v4().into_bytes();
    // 1 to 254: neither a network's address nor a broadcast's.
    let part = |byte: u8| byte % 254 + 1;
    match TcpListener::bind((Ipv4Addr::new(127, part(a), part(b), part(c)), 0)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await,
    }
}

/// Returns what answers on the endpoint: every request goes on to the engine at `address`.
pub(super) fn router(address: SocketAddr) -> Router {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    Router::new().fallback(forward).with_state(Engine { client, address })
}

async fn forward(State(engine): State<Engine>, mut request: Request) -> Response {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri = Uri::builder().scheme("http").authority(engine.address.to_string()).path_and_query(path).build();
    *request.uri_mut() = uri.expect("an address and a path that was one make a URI");
    match engine.client.request(request).await {
        Ok(response) => response.map(Body::new),
        // The SDKs try again on this.
        Err(_) => {
            let body = json!({
                "__type": "com.amazonaws.dynamodb.v20120810#InternalServerError",
                "message": "the embedded DynamoDB did not answer",
            });
            (StatusCode::INTERNAL_SERVER_ERROR, axum::Json(body)).into_response()
        }
    }
}
