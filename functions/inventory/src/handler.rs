//! The business: an order line takes its goods out of the free stock.
//!
//! All of it runs in the transaction that completes the line's key: the stock is taken exactly when the line is done.

use claimant::postgres::PgTransaction;
use claimant::{Context, HandlerError, Terminal, TransactionGuard};
use serde::{Deserialize, Serialize};

/// The most pieces of one reservation.
const QUANTITY_MAX: i64 = 10_000;

const TAKE: &str = "UPDATE stock SET free = free - $2 WHERE sku = $1 AND free >= $2 RETURNING free";

const NOTE: &str = "INSERT INTO reservations (reservation_id, sku, quantity) VALUES ($1, $2, $3) \
    ON CONFLICT (reservation_id) DO NOTHING";

/// A line of an order, as the shop sends it.
#[derive(Debug, Deserialize)]
pub(crate) struct Reservation {
    /// Of the line: one order has several.
    pub(crate) reservation_id: String,
    sku: String,
    quantity: i64,
}

/// What was reserved, and what is free after that.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Reserved {
    quantity: i64,
    free: i64,
}

/// Reserves stock.
pub(crate) async fn reserve(
    line: Reservation,
    mut tx: TransactionGuard<PgTransaction>,
    _: Context,
) -> Result<Reserved, HandlerError> {
    check(&line).terminal()?;
    let free: Option<(i64,)> =
        sqlx::query_as(TAKE).bind(&line.sku).bind(line.quantity).fetch_optional(&mut *tx).await.map_err(explained)?;
    let Some((free,)) = free else {
        return Err(HandlerError::terminal("there is not enough of this article in stock"));
    };
    let reserved = sqlx::query(NOTE)
        .bind(&line.reservation_id)
        .bind(&line.sku)
        .bind(line.quantity)
        .execute(&mut *tx)
        .await
        .map_err(explained)?;
    if reserved.rows_affected() == 0 {
        // The reservations know more than claimant's records, which end. The stock goes back with the transaction.
        return Err(HandlerError::terminal("the line is reserved already"));
    }
    Ok(Reserved { quantity: line.quantity, free })
}

/// The error and how to fix it, where that is known. The servers' messages have no values in them.
fn explained(error: sqlx::Error) -> HandlerError {
    const NO_SUCH_TABLE: &str = "42P01";
    match error.as_database_error() {
        Some(answer) if answer.code().as_deref() == Some(NO_SUCH_TABLE) => {
            HandlerError::retry(format!("{}: make the tables with `inventory migrate`", answer.message()))
        }
        _ => error.into(),
    }
}

/// Why a line cannot be reserved, if so, without its data.
fn check(line: &Reservation) -> Result<(), &'static str> {
    match line {
        _ if line.quantity < 1 => Err("the quantity is less than 1"),
        _ if line.quantity > QUANTITY_MAX => Err("the quantity is more than one line may have"),
        _ if line.sku.contains('\0') || line.reservation_id.contains('\0') => {
            Err("an id has a NUL, which PostgreSQL's texts cannot hold")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_no_retry_fixes_are_rejected() {
        let line = |id: &str, sku: &str, quantity| Reservation { reservation_id: id.into(), sku: sku.into(), quantity };
        assert!(check(&line("r-1", "tea", 1)).is_ok() && check(&line("r-1", "tea", QUANTITY_MAX)).is_ok());
        for unfit in [
            line("r", "tea", 0),
            line("r", "tea", -1),
            line("r", "tea", i64::MAX),
            line("r\0", "tea", 1),
            line("r", "\0", 1),
        ] {
            assert!(check(&unfit).is_err(), "{unfit:?}");
        }
    }
}
