//! The function by hand, with the SDK features that claimant chose. Built for `make bench`.

#[path = "../function.rs"]
mod function;
#[path = "../../../src/hand.rs"]
mod hand;

use aws_config::BehaviorVersion;
use aws_smithy_http_client::tls;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let ring = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
    let http = aws_smithy_http_client::Builder::new().tls_provider(ring).build_https();
    let config = aws_config::defaults(BehaviorVersion::latest()).http_client(http).load().await;
    function::run(&config).await
}
