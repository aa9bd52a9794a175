//! A handler with settings and state of its own.

use std::sync::Arc;

use claimant::{Consumer, Context, HandlerError, LockTable};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
}

/// What the handler needs beside its message: made once, shared by all messages.
struct Warehouse {
    url: String,
    shelves_max: u64,
    express: bool,
}

async fn pack(warehouse: Arc<Warehouse>, order: Order, cx: Context) -> Result<(), HandlerError> {
    warehouse.ask_for(&order, cx.key()).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let warehouse = Arc::new(Warehouse {
        url: variables.text("WAREHOUSE_URL"),
        shelves_max: variables.number("SHELVES_MAX", 1..=500),
        express: variables.choice("DELIVERY", [("normal", false), ("express", true)]),
    });
    let table = LockTable::from_variables(variables).await?;
    let pack = move |order, cx| pack(Arc::clone(&warehouse), order, cx);
    let consumer = Consumer::new("packing", table, pack).key(|order: &Order| &order.order_id);
    claimant::lambda::run(consumer).await
}

impl Warehouse {
    /// Stands for your own code.
    async fn ask_for(&self, order: &Order, key: &str) -> std::io::Result<()> {
        let Self { url, shelves_max, express } = self;
        println!("{url}: {} bytes of id, key {key}, {shelves_max} shelves, express: {express}", order.order_id.len());
        Ok(())
    }
}
