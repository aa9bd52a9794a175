//! What the integration tests share: DynamoDB endpoints, other real servers, and a wire that fails as scripted.

pub mod dynamodb;
pub mod services;
pub mod wire;
