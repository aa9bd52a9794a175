//! Reads that are not strongly consistent: they miss the last write that a request made of a record, however long ago that was.

use std::collections::BTreeMap;

use claimant_simulated::dynamo::{Answer, Dynamo};
use serde_json::{Value, json};

use crate::calls::LOCKS;

/// The lock table's records as they were before their last writes.
#[derive(Debug, Default)]
pub struct Earlier(BTreeMap<String, Option<BTreeMap<String, Value>>>);

impl Earlier {
    /// Takes note of what a request has changed, and takes the last writes out of the answer to one that reads without them.
    pub fn follow(&mut self, dynamo: &Dynamo, operation: &str, body: &Value, answer: &mut Answer) {
        let changes = answer.changes.iter().filter(|change| change.table == LOCKS);
        self.0.extend(changes.map(|change| (change.id.clone(), change.before.clone())));
        let record = |key: &Value| {
            let id = key["id"]["S"].as_str().unwrap_or_default();
            self.0.get(id).map_or_else(|| dynamo.item(LOCKS, id), Option::as_ref)
        };
        let many = &body["RequestItems"][LOCKS];
        match operation {
            "GetItem" if body["ConsistentRead"] != true => answer.body["Item"] = json!(record(&body["Key"])),
            "BatchGetItem" if many["ConsistentRead"] != true => {
                let keys = many["Keys"].as_array().into_iter().flatten();
                answer.body["Responses"][LOCKS] = keys.filter_map(record).map(|record| json!(record)).collect();
            }
            _ => {}
        }
    }
}
