//! Records in Redis or Valkey. The server is the one that `CLAIMANT_REDIS_URL` names.
//!
//! ```text
//! m-1 completed, m-2 duplicate
//! m-1 duplicate
//! ```

use claimant::engine::Engine;
use claimant::redis::RedisStore;
use claimant::{Consumer, Context, HandlerError};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
}

async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> {
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let store = RedisStore::from_env()?;

    let engine = Engine::with_defaults(Consumer::new("confirmation", store, confirm).key(|order| &order.order_id))?;
    let order = format!(r#"{{"order_id": "{}"}}"#, crate::support::new_order_id());
    crate::support::deliver(&engine, &[("m-1", &order), ("m-2", &order)]).await?;
    crate::support::deliver(&engine, &[("m-1", &order)]).await
}
