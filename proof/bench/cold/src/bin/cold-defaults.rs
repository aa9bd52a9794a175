//! The function by hand, with the SDK's default features: two TLS stacks, SSO, processes. Built for `make bench`.

#[path = "../function.rs"]
mod function;
#[path = "../../../src/hand.rs"]
mod hand;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let config = aws_config::load_defaults(aws_config::BehaviorVersion::latest()).await;
    function::run(&config).await
}
