//! A handler with settings and state of its own.

use std::error::Error;
use std::fmt;
use std::io::Write as _;

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
        self.ask_for(&order, cx.key()).await.map_err(WarehouseError::into_handler_error)?;
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
    async fn ask_for(&self, order: &Order, key: &str) -> Result<(), WarehouseError> {
        let Self { url, shelves_max, express } = self;
        let id = &order.order_id;
        if id.starts_with("gift-") {
            return Err(WarehouseError::NotKept);
        }
        let line = format!("{url}: {} bytes of id, key {key}, {shelves_max} shelves, express: {express}\n", id.len());
        std::io::stdout().write_all(line.as_bytes()).map_err(WarehouseError::Away)
    }
}

/// An error of your own code.
#[derive(Debug)]
enum WarehouseError {
    NotKept,
    Away(std::io::Error),
}

impl WarehouseError {
    fn into_handler_error(self) -> HandlerError {
        match self {
            Self::NotKept => HandlerError::terminal(self),
            Self::Away(_) => HandlerError::retry(self),
        }
    }
}

impl fmt::Display for WarehouseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotKept => "the warehouse does not keep what was ordered",
            Self::Away(_) => "the warehouse does not answer",
        })
    }
}

impl Error for WarehouseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotKept => None,
            Self::Away(cause) => Some(cause),
        }
    }
}
