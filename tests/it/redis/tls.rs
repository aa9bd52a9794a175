//! TLS, with rustls and ring: a server that shows a certificate is believed only where it is to be trusted.

use std::path::Path;
use std::process::Command;

use redis::{Client, TlsCertificates};

use super::*;

/// A certificate for 127.0.0.1 and its key, as files in this directory.
fn certificate(directory: &Path) -> [String; 2] {
    let files = ["certificate.pem", "key.pem"].map(|name| directory.join(name).to_str().unwrap().to_owned());
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=claimant"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-out", &files[0], "-keyout", &files[1]])
        .output();
    let made = made.expect("the openssl command is there");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    files
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn certificates_are_verified() {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = certificate(directory.path());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let tls = ["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"];
    let files = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &certificate];
    let redis = Redis::start_with(port.parse().ok(), &[tls, files].concat());
    let url = redis.url().replace("redis://", "rediss://");

    let root_cert = Some(std::fs::read(&certificate).unwrap());
    let client = Client::build_with_tls(url.as_str(), TlsCertificates { client_tls: None, root_cert }).unwrap();
    drop(granted(&RedisStore::new(client), "k", 0).await);

    // No authority that the system trusts has signed it; and a client without TLS gets nowhere.
    for url in [url, redis.url()] {
        let error = RedisStore::open(&url).unwrap().claim(&request("k", 0), call()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
        assert!(error.to_string().contains("rediss://"), "{error}");
        println!("{error}");
    }
}
