//! What the integration tests share: DynamoDB endpoints and tables on them.

pub mod dynamodb;
