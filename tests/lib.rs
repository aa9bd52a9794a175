//! What the integration tests share: DynamoDB endpoints, a wire that fails as scripted, processes to be killed, and the
//! stores under the contract.

pub mod dynamodb;
pub mod kill;
pub mod stores;
pub mod wire;
