//! What the integration tests share: DynamoDB endpoints, other real servers, a wire that fails as scripted, and processes
//! to be killed.

pub mod dynamodb;
pub mod kill;
pub mod services;
pub mod wire;
