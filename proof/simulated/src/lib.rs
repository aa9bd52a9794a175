//! What all simulations on virtual time have in common.
//!
//! | module | holds |
//! | --- | --- |
//! | [`dynamo`] | DynamoDB in memory: exactly the operations that claimant uses, throttled where that is asked for |
//! | [`sdk`] | the configuration that functions have, over a simulated wire |

pub mod dynamo;
pub mod sdk;
