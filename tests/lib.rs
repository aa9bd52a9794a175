//! What the integration tests share: DynamoDB endpoints, a wire that fails as scripted, and processes to be killed.

pub mod dynamodb;
pub mod kill;
pub mod wire;
