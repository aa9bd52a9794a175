//! What a request to the store wants, read from its body.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::history::{Call, Kind, Record};

/// The lock table's name.
pub const LOCKS: &str = "locks";

/// How the ids of breakers' records begin.
pub const BREAKER: &str = "claimant-breaker#";

/// How the ids of the records of limits and their slots begin.
pub const LIMIT: &str = "claimant-rate#";

/// Whether a record is that of a message's key, and not of a breaker or a limit.
#[must_use]
pub fn is_of_message(id: &str) -> bool {
    !id.starts_with(BREAKER) && !id.starts_with(LIMIT)
}

/// The name of the table that transactional handlers write to.
pub const EFFECTS: &str = "effects";

/// Tokens of owners, by the place at which each was first seen.
#[derive(Debug, Default)]
pub struct Owners(BTreeMap<String, u32>);

impl Owners {
    fn place(&mut self, token: &str) -> u32 {
        // OK because no run has four billion claims.
        let next = self.0.len() as u32;
        *self.0.entry(token.to_owned()).or_insert(next)
    }

    /// An item of the lock table as a record.
    pub fn record(&mut self, item: &BTreeMap<String, Value>) -> Record {
        let text = |name: &str| item.get(name).and_then(|v| v["S"].as_str()).unwrap_or_default().to_owned();
        let number = |name: &str| item.get(name).and_then(number).unwrap_or_default();
        Record {
            status: text("status"),
            owner: self.place(&text("owner")),
            fence: number("fence"),
            attempts: number("attempts"),
            lease_until: number("lease_until"),
            message_id: text("message_id"),
            expires_s: number("expires_at"),
        }
    }

    /// What this request wants of lock records, in order.
    pub fn calls(&mut self, operation: &str, request: &Value) -> Vec<Call> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        match operation {
            "PutItem" => vec![self.put(&request["Item"])],
            "UpdateItem" => vec![self.update(request)],
            "TransactWriteItems" => {
                list(&request["TransactItems"]).first().map(|item| self.update(&item["Update"])).into_iter().collect()
            }
            "BatchExecuteStatement" => list(&request["Statements"]).iter().map(|s| self.statement(s)).collect(),
            "BatchGetItem" => {
                list(&request["RequestItems"][LOCKS]["Keys"]).iter().map(|key| read(&key["id"]["S"])).collect()
            }
            _ => vec![read(&request["Key"]["id"]["S"])],
        }
    }

    fn update(&mut self, request: &Value) -> Call {
        let (names, values) = (&request["ExpressionAttributeNames"], &request["ExpressionAttributeValues"]);
        let update = request["UpdateExpression"].as_str().unwrap_or_default();
        let kind = if update.contains("if_not_exists") {
            Kind::Claim
        } else if update.contains("#n0") {
            Kind::Replace
        } else if values.get(":ended").is_some() {
            Kind::Settle
        } else {
            Kind::Renew
        };
        // A whole record has its values under the places of their names.
        let value = |name: &str, short: &str| match kind {
            Kind::Replace => {
                let place = names.as_object()?.iter().find(|(key, n)| key.starts_with("#n") && *n == name)?.0;
                values.get(place.replace('#', ":"))
            }
            _ => values.get(short),
        };
        let owner = value("owner", ":owner").and_then(|v| v["S"].as_str()).map(str::to_owned);
        let call = Call {
            kind,
            id: request["Key"]["id"]["S"].as_str().unwrap_or_default().to_owned(),
            owner: None,
            status: value("status", ":ended").and_then(|v| v["S"].as_str()).map(str::to_owned),
            lease_until: value("lease_until", ":lease_until").and_then(number),
            now: value("updated_at", ":now").and_then(number),
        };
        Call { owner: owner.map(|token| self.place(&token)), ..call }
    }

    fn put(&mut self, item: &Value) -> Call {
        let word = |name: &str| item[name]["S"].as_str().map(str::to_owned);
        Call {
            kind: Kind::Claim,
            id: word("id").unwrap_or_default(),
            owner: word("owner").map(|token| self.place(&token)),
            status: word("status"),
            lease_until: number(&item["lease_until"]),
            now: number(&item["updated_at"]),
        }
    }

    fn statement(&mut self, statement: &Value) -> Call {
        let text = statement["Statement"].as_str().unwrap_or_default();
        let inserts = text.starts_with("INSERT");
        let names: Vec<&str> = text.split(if inserts { '\'' } else { '"' }).skip(1).step_by(2).collect();
        // An UPDATE names its table first, in the same quotes.
        let names = if inserts { &names[..] } else { names.get(1..).unwrap_or_default() };
        let parameters = statement["Parameters"].as_array().cloned().unwrap_or_default();
        let value = |name: &str| names.iter().zip(&parameters).find(|(n, _)| **n == name).map(|(_, value)| value);
        let word = |name: &str| value(name).and_then(|v| v["S"].as_str()).map(str::to_owned);
        Call {
            kind: if inserts { Kind::Claim } else { Kind::Settle },
            id: word("id").unwrap_or_default(),
            owner: word("owner").map(|token| self.place(&token)),
            status: word("status"),
            lease_until: value("lease_until").and_then(number),
            now: value("updated_at").and_then(number),
        }
    }
}

fn read(id: &Value) -> Call {
    let id = id.as_str().unwrap_or_default().to_owned();
    Call { kind: Kind::Read, id, owner: None, status: None, lease_until: None, now: None }
}

fn number(value: &Value) -> Option<u64> {
    value["N"].as_str()?.parse().ok()
}
