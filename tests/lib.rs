//! What the integration tests share: DynamoDB endpoints, and a wire that fails as scripted.

pub mod dynamodb;
pub mod wire;
