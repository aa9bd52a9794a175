//! What a table has no capacity for is throttled: said as DynamoDB says it.

use serde_json::{Value, json};

use super::Answer;

/// What is asked of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A consistent read: a read unit for each 4 KB.
    Read,
    /// A write, refused or not: a write unit for each KB.
    Write,
}

/// Decides for each item of a request whether there is capacity for it.
pub trait Admission {
    /// Admits the request to this item, or says why not.
    ///
    /// # Errors
    /// Where there is no capacity.
    fn admit(&mut self, table: &str, id: &str, access: Access) -> Result<(), Throttle>;
}

/// A table without limits.
pub(super) struct Unlimited;

impl Admission for Unlimited {
    fn admit(&mut self, _: &str, _: &str, _: Access) -> Result<(), Throttle> {
        Ok(())
    }
}

/// Why a request is throttled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    /// A table on demand has to scale, or the key's partition has reached its limit.
    OnDemand,
    /// The quota for one table in an account.
    Quota,
}

impl Throttle {
    /// Returns the code of an exception.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::OnDemand => "ThrottlingException",
            Self::Quota => "RequestLimitExceeded",
        }
    }

    /// Returns the code of a statement's error.
    #[must_use]
    pub const fn statement_code(self) -> &'static str {
        match self {
            Self::OnDemand => "ThrottlingError",
            Self::Quota => "RequestLimitExceeded",
        }
    }

    /// Returns what DynamoDB says of it.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::OnDemand => {
                "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or \
                 index so please try again shortly."
            }
            Self::Quota => "Throughput exceeds the current throughput limit for your account.",
        }
    }
}

/// Returns the answer to a request that is throttled as a whole.
pub(super) fn throttled(throttle: Throttle) -> Answer {
    Answer { status: 400, body: error(throttle.code(), throttle.message()), changes: Vec::new() }
}

/// An error of DynamoDB's.
#[must_use]
pub fn error(code: &str, message: &str) -> Value {
    json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamo::Dynamo;

    /// Has no capacity for some ids.
    struct Without<'a>(Throttle, &'a [&'a str]);

    impl Admission for Without<'_> {
        fn admit(&mut self, _: &str, id: &str, _: Access) -> Result<(), Throttle> {
            if self.1.contains(&id) { Err(self.0) } else { Ok(()) }
        }
    }

    fn insert(id: &str) -> Value {
        json!({ "Statement": "INSERT INTO \"locks\" VALUE {'id': ?}", "Parameters": [{ "S": id }] })
    }

    #[test]
    fn what_is_throttled_is_said_as_dynamodb_says_it_and_changes_nothing() {
        let mut dynamo = Dynamo::default();
        let both = json!({ "Statements": [insert("a"), insert("b")] });
        let answer = dynamo.call_within(&mut Without(Throttle::OnDemand, &["b"]), "BatchExecuteStatement", &both);
        let codes: Vec<_> = (0..2).map(|n| &answer.body["Responses"][n]["Error"]["Code"]).collect();
        assert_eq!((answer.status, codes), (200, vec![&Value::Null, &json!("ThrottlingError")]));
        assert!(dynamo.item("locks", "a").is_some() && dynamo.item("locks", "b").is_none());

        let key = |id: &str| json!({ "id": { "S": id } });
        let keys = json!({ "RequestItems": { "locks": { "Keys": [key("a"), key("b")] } } });
        let answer = dynamo.call_within(&mut Without(Throttle::OnDemand, &["b"]), "BatchGetItem", &keys);
        assert_eq!(answer.body["Responses"]["locks"], json!([key("a")]));
        assert_eq!(answer.body["UnprocessedKeys"], json!({ "locks": { "Keys": [key("b")] } }));

        let one = json!({ "TableName": "locks", "Key": key("b") });
        for (throttle, operation, request, code) in [
            (Throttle::OnDemand, "UpdateItem", &one, "ThrottlingException"),
            (Throttle::OnDemand, "GetItem", &one, "ThrottlingException"),
            (Throttle::Quota, "BatchGetItem", &keys, "RequestLimitExceeded"),
        ] {
            let answer = dynamo.call_within(&mut Without(throttle, &["a", "b"]), operation, request);
            let seen = answer.body["__type"].as_str().and_then(|code| code.rsplit('#').next());
            assert_eq!((answer.status, seen), (400, Some(code)), "{operation}");
        }
        assert!(dynamo.item("locks", "b").is_none());
    }
}
