//! Writes that are refused for what is in the item: said as DynamoDB says it.

use serde_json::{Value, json};

use super::admission::error;
use super::expression::Item;

const CONDITION: &str = "The conditional request failed";
const ABSENT: &str = "The provided expression refers to an attribute that does not exist in the item";

/// Why a write is refused.
pub(super) enum Refused {
    /// Its condition does not hold for the item, if there is one.
    Condition(Option<Item>),
    /// It sets what comes of an attribute that the item does not have.
    Absent,
}

impl Refused {
    /// Returns the exception of a request with this write alone.
    pub(super) fn exception(self) -> Value {
        match self {
            Self::Condition(item) => with(item, error("ConditionalCheckFailedException", CONDITION)),
            Self::Absent => error("ValidationException", ABSENT),
        }
    }

    /// Returns the reason why a transaction is cancelled.
    pub(super) fn reason(self) -> Value {
        match self {
            Self::Condition(item) => with(item, json!({ "Code": "ConditionalCheckFailed", "Message": CONDITION })),
            Self::Absent => json!({ "Code": "ValidationError", "Message": ABSENT }),
        }
    }
}

fn with(item: Option<Item>, mut body: Value) -> Value {
    if let Some(item) = item {
        body["Item"] = json!(item);
    }
    body
}
