//! The business: an order is charged once, and the receipt is kept.

use claimant::{Context, Duplicate, Handler, HandlerError, Terminal};
use serde::Deserialize;

use crate::gateway::{Charge, Gateway, Receipt};

/// What an order costs, as the shop sends it.
#[derive(Debug, Deserialize)]
pub(crate) struct Payment {
    pub(crate) order_id: String,
    amount_cents: u64,
    currency: String,
}

/// Charges an order. The gateway gets the key, so that it can recognise a repeat.
impl Handler<Payment> for Gateway {
    type Output = Receipt;

    async fn handle(&self, payment: Payment, cx: Context) -> Result<Receipt, HandlerError> {
        let charge = charge_for(&payment).terminal()?;
        self.charge(&charge, cx.key()).await
    }
}

/// Says which charge a duplicate was about.
pub(crate) fn repeat_receipt(duplicate: &Duplicate<'_>) {
    let receipt = duplicate.result::<Receipt>().ok().flatten();
    let charge_id = receipt.as_ref().map(|receipt| receipt.charge_id.as_str());
    tracing::info!(message_id = duplicate.message_id(), charge_id, "this order was charged before");
}

/// What the gateway would refuse is not asked of it.
fn charge_for(payment: &Payment) -> Result<Charge<'_>, &'static str> {
    if payment.amount_cents == 0 {
        return Err("the amount is 0");
    }
    if payment.currency.len() != 3 || !payment.currency.bytes().all(|b| b.is_ascii_uppercase()) {
        return Err("the currency is not three capital letters");
    }
    Ok(Charge { amount_cents: payment.amount_cents, currency: &payment.currency, reference: &payment.order_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_charged_is_unfit() {
        for (amount_cents, currency, fits) in
            [(1, "EUR", true), (0, "EUR", false), (1, "euro", false), (1, "eur", false), (1, "€", false)]
        {
            let payment = Payment { order_id: "ord-1".into(), amount_cents, currency: currency.into() };
            assert_eq!(charge_for(&payment).is_ok(), fits, "{amount_cents} {currency}");
        }
    }
}
