//! What the integration tests share: a browser, DynamoDB endpoints, other real servers, a wire and a line that fail as told,
//! processes to be killed, and the stores under the contract.

pub mod browser;
pub mod dynamodb;
pub mod kill;
pub mod services;
pub mod stores;
pub mod tap;
pub mod wire;
