//! A handler with settings and state of its own.

use claimant::dynamodb::LockTable;
use claimant::{Consumer, Context, Handler, HandlerError};

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

impl Handler<Order> for Warehouse {
    type Output = ();

    async fn handle(&self, order: Order, cx: Context) -> Result<(), HandlerError> {
        self.ask_for(&order, cx.key()).await?;
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), claimant::Error> {
    let mut variables = claimant::variables();
    let warehouse = Warehouse {
        url: variables.text("WAREHOUSE_URL"),
        shelves_max: variables.number("SHELVES_MAX", 1..=500),
        express: variables.choice("DELIVERY", [("normal", false), ("express", true)]),
    };
    let table = LockTable::from_variables(variables).await?;
    claimant::lambda::run(Consumer::new("packing", table, warehouse).key(|order| &order.order_id)).await
}

impl Warehouse {
    /// Stands for your own code.
    async fn ask_for(&self, order: &Order, key: &str) -> std::io::Result<()> {
        let Self { url, shelves_max, express } = self;
        println!("{url}: {} bytes of id, key {key}, {shelves_max} shelves, express: {express}", order.order_id.len());
        Ok(())
    }
}
