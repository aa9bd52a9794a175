//! The messages, as Lambda hands them over.

use serde_json::{Value, json};

/// Where every message comes from.
const QUEUE_ARN: &str = "arn:aws:sqs:us-east-1:000000000000:orders";

/// What a batch consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    /// Orders never seen before.
    Fresh,
    /// Orders that are done, sent a second time: new message ids, first delivery.
    SentAgain,
    /// Messages that are done, delivered a second time, as after a timeout: same message ids.
    Redelivered,
}

impl Workload {
    pub(crate) const ALL: [Self; 3] = [Self::Fresh, Self::SentAgain, Self::Redelivered];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Fresh => "fresh messages",
            Self::SentAgain => "duplicates: finished orders sent again (new message ids, first delivery)",
            Self::Redelivered => "duplicates: finished messages delivered again (same message ids, receive count 2)",
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::SentAgain => "sent again",
            Self::Redelivered => "redelivered",
        }
    }

    /// How many handlers of a batch must run.
    pub(crate) fn runs(self, size: usize) -> usize {
        match self {
            Self::Fresh => size,
            Self::SentAgain | Self::Redelivered => 0,
        }
    }
}

/// The event with `size` orders of the batch numbered `orders`; `delivery` numbers the event itself.
pub(crate) fn event(workload: Workload, orders: u64, delivery: u64, size: usize) -> Value {
    let (ids, receive_count) = match workload {
        Workload::Fresh => (orders, 1),
        Workload::SentAgain => (delivery, 1),
        Workload::Redelivered => (orders, 2),
    };
    let record = |n| {
        let [order, id] = [format!("ord-{orders:06}-{n:06}"), format!("{ids:08x}-0000-4000-8000-{n:012x}")];
        record(&order, &id, &format!("receipt-{delivery:06}-{n:06}"), receive_count)
    };
    json!({ "Records": (0..size).map(record).collect::<Vec<_>>() })
}

/// One message with this order, message id and receipt handle.
#[must_use]
pub fn record(order_id: &str, message_id: &str, receipt_handle: &str, receive_count: u32) -> Value {
    let body = json!({
        "order_id": order_id,
        "customer_email": "ada@example.com",
        "items": [{ "sku": "tea", "quantity": 2, "unit_price_cents": 1_250 }],
        "currency": "EUR",
    });
    message(message_id, receipt_handle, &body.to_string(), receive_count)
}

/// A message as Lambda hands it over.
pub(crate) fn message(id: &str, receipt_handle: &str, body: &str, receive_count: u32) -> Value {
    json!({
        "messageId": id,
        "receiptHandle": receipt_handle,
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": receive_count.to_string(),
            "SentTimestamp": "1800000000000",
            "SenderId": "AIDAEXAMPLE",
            "ApproximateFirstReceiveTimestamp": "1800000000001",
        },
        "messageAttributes": {},
        "md5OfBody": "00000000000000000000000000000000",
        "eventSource": "aws:sqs",
        "eventSourceARN": QUEUE_ARN,
        "awsRegion": "us-east-1",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_repeat_the_order_and_only_redeliveries_the_message() {
        let first = event(Workload::Fresh, 7, 7, 2);
        for (workload, same_id, count) in [(Workload::SentAgain, false, "1"), (Workload::Redelivered, true, "2")] {
            let again = event(workload, 7, 8, 2);
            for (a, b) in first["Records"].as_array().unwrap().iter().zip(again["Records"].as_array().unwrap()) {
                assert_eq!(a["body"], b["body"]);
                assert_eq!(a["messageId"] == b["messageId"], same_id);
                assert_eq!(b["attributes"]["ApproximateReceiveCount"], count);
            }
        }
    }
}
