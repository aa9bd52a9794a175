//! What the integration tests share: DynamoDB endpoints, other real servers, a wire and a line that fail as told, and
//! processes to be killed.

pub mod dynamodb;
pub mod kill;
pub mod services;
pub mod tap;
pub mod wire;
