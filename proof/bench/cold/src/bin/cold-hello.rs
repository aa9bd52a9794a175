//! The hello world of `lambda_runtime`: what every function pays at least. Built for `make bench`.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::run(service_fn(hello)).await
}

async fn hello(event: LambdaEvent<Value>) -> Result<Value, Error> {
    Ok(json!({ "message": format!("Hello, {}!", event.payload["name"].as_str().unwrap_or("world")) }))
}
