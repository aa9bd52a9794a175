//! Confirms each order once.

use claimant::dynamodb::LockTable;
use claimant::{Consumer, Context, HandlerError, Terminal};

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
    customer_email: String,
}

async fn confirm(order: Order, cx: Context) -> Result<(), HandlerError> {
    // An error here is permanent: the message goes to the dead-letter queue, without another try.
    let address = parse(&order.customer_email).terminal()?;
    // An error here is not: the message is tried again, with backoff.
    send(address, cx.key()).await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), claimant::Error> {
    let table = LockTable::from_env().await?;
    claimant::lambda::run(Consumer::new("order-confirmation", table, confirm).key(|order| &order.order_id)).await
}

fn parse(address: &str) -> Result<&str, &'static str> {
    if address.contains('@') { Ok(address) } else { Err("the customer's address is not an e-mail address") }
}

/// Stands for your own code. The key goes along, so that the mail service can recognise a repeat.
async fn send(address: &str, key: &str) -> std::io::Result<()> {
    println!("a mail of {} characters' address, with the key {key}", address.len());
    Ok(())
}
