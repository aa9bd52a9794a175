//! Payloads in the local cloud's S3, with the real SDK: pointers, what is fetched, and the whole way from producer to consumer.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod fetching;
mod fuzz;
mod local;
mod pointer;
mod whole;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use claimant_local::s3::S3;
use claimant_s3::S3Payloads;
use tokio::net::TcpListener;

/// The bucket of every test.
const BUCKET: &str = "payloads";

/// A client of this endpoint, without retries.
fn client(url: &str) -> Client {
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(url)
        .retry_config(RetryConfig::disabled())
        .http_client(claimant_aws::http_client());
    Client::from_conf(config.build())
}

/// Payloads behind no endpoint at all: for what needs no request.
fn payloads(bucket: &str) -> S3Payloads {
    S3Payloads::new(client("http://127.0.0.1:1"), bucket)
}

/// An endpoint with the bucket, and payloads in it.
async fn started() -> (S3, S3Payloads) {
    let s3 = S3::new();
    s3.create_bucket(BUCKET);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(s3.clone().serve(listener, std::future::pending()));
    (s3, S3Payloads::new(client(&url), BUCKET))
}
