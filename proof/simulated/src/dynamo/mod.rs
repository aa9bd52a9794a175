//! DynamoDB in memory: exactly the operations that claimant uses, and every change that they make.
//!
//! Several times faster than an embedded database; a test compares it with one, request by request.

mod admission;
mod expression;
mod refused;
mod statement;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub use self::admission::{Access, Admission, Throttle, error};
use self::admission::{Unlimited, throttled};
use self::expression::{Item, Placeholders, Unknown};
use self::refused::Refused;
use self::statement::Statement;

/// A change of one item.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The table.
    pub table: String,
    /// The item's key.
    pub id: String,
    /// What was there.
    pub before: Option<BTreeMap<String, Value>>,
    /// What is there now.
    pub after: Option<BTreeMap<String, Value>>,
}

/// An answer, and what was changed for it.
#[derive(Debug, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Value,
    /// The changes made.
    pub changes: Vec<Change>,
}

/// Tables whose partition key is the string `id`, made when they are first named.
#[derive(Debug, Default)]
pub struct Dynamo {
    items: BTreeMap<(String, String), Item>,
    /// The transactions that were carried out, by their tokens.
    tokens: BTreeMap<String, Value>,
}

/// A write that is ready, or why it is not made.
type Checked = Result<Change, Refused>;

impl Dynamo {
    /// Carries out one request.
    ///
    /// # Panics
    /// On a request that is none of those that claimant makes.
    pub fn call(&mut self, operation: &str, request: &Value) -> Answer {
        self.call_within(&mut Unlimited, operation, request)
    }

    /// Carries out what is admitted of one request; what is not is answered as throttled. Transactions are admitted always.
    ///
    /// # Panics
    /// As [`call`](Self::call).
    pub fn call_within(&mut self, admission: &mut impl Admission, operation: &str, request: &Value) -> Answer {
        let answer = match operation {
            "GetItem" => Ok(self.get(admission, request)),
            "BatchGetItem" => Ok(self.get_batch(admission, request)),
            "PutItem" => self.check_put(request).map(|checked| self.write(admission, request, checked)),
            "UpdateItem" => self.check_update(request).map(|checked| self.write(admission, request, checked)),
            "BatchExecuteStatement" => self.statements(admission, request),
            "TransactWriteItems" => self.transact(request),
            other => Err(Unknown(other.to_owned())),
        };
        answer.unwrap_or_else(|Unknown(what)| panic!("the simulated DynamoDB does not know {what}"))
    }

    /// The item of this key.
    #[must_use]
    pub fn item(&self, table: &str, id: &str) -> Option<&BTreeMap<String, Value>> {
        self.items.get(&(table.to_owned(), id.to_owned()))
    }

    /// Every item of a table.
    pub fn items<'a>(&'a self, table: &'a str) -> impl Iterator<Item = (&'a str, &'a BTreeMap<String, Value>)> {
        self.items.iter().filter(move |((t, _), _)| t == table).map(|((_, id), item)| (id.as_str(), item))
    }

    /// Drops the item of this key, of which nothing will be asked any more.
    pub fn forget(&mut self, table: &str, id: &str) {
        self.items.remove(&(table.to_owned(), id.to_owned()));
    }

    /// Deletes the items of a table whose attribute `expires_at` is before this second.
    pub fn expire(&mut self, table: &str, now_s: u64) -> Vec<Change> {
        let is_over = |item: &Item| {
            item.get("expires_at").and_then(|at| at["N"].as_str()?.parse::<u64>().ok()).is_some_and(|at| at < now_s)
        };
        let over: Vec<_> = self.items.iter().filter(|((t, _), item)| t == table && is_over(item)).collect();
        let changes: Vec<_> = over
            .into_iter()
            .map(|((table, id), item)| Change {
                table: table.clone(),
                id: id.clone(),
                before: Some(item.clone()),
                after: None,
            })
            .collect();
        changes.iter().for_each(|change| self.apply(change));
        changes
    }

    fn apply(&mut self, change: &Change) {
        let key = (change.table.clone(), change.id.clone());
        match &change.after {
            Some(item) => self.items.insert(key, item.clone()),
            None => self.items.remove(&key),
        };
    }

    fn get(&self, admission: &mut impl Admission, request: &Value) -> Answer {
        let (table, id) = (text(&request["TableName"]), text(&request["Key"]["id"]["S"]));
        if let Err(throttle) = admission.admit(table, id, Access::Read) {
            return throttled(throttle);
        }
        let item = self.item(table, id);
        let capacity = capacity(table);
        ok(match item {
            None => json!({ "ConsumedCapacity": capacity }),
            Some(item) => json!({ "ConsumedCapacity": capacity, "Item": item }),
        })
    }

    fn get_batch(&self, admission: &mut impl Admission, request: &Value) -> Answer {
        let (mut responses, mut unprocessed) = (serde_json::Map::new(), serde_json::Map::new());
        let (mut read, mut refused) = (false, None);
        for (table, wanted) in request["RequestItems"].as_object().into_iter().flatten() {
            let (mut items, mut left) = (Vec::new(), Vec::new());
            for key in wanted["Keys"].as_array().into_iter().flatten() {
                let id = text(&key["id"]["S"]);
                match admission.admit(table, id, Access::Read) {
                    Ok(()) => {
                        read = true;
                        items.extend(self.item(table, id));
                    }
                    Err(throttle) => {
                        refused = Some(throttle);
                        left.push(key);
                    }
                }
            }
            responses.insert(table.clone(), json!(items));
            if !left.is_empty() {
                unprocessed.insert(table.clone(), json!({ "Keys": left }));
            }
        }
        match refused {
            // The request fails only where nothing of it was read.
            Some(throttle) if !read => throttled(throttle),
            _ => ok(json!({ "Responses": responses, "UnprocessedKeys": unprocessed })),
        }
    }

    /// An `UpdateItem`, or an update in a transaction, up to its being applied.
    fn check_update(&self, request: &Value) -> Result<Checked, Unknown> {
        let (table, id) = (text(&request["TableName"]), text(&request["Key"]["id"]["S"]));
        let before = self.item(table, id);
        let item = before.cloned().unwrap_or_default();
        if !may_write(request, &item)? {
            return Ok(Err(Refused::Condition(before.cloned())));
        }
        let after = match request["UpdateExpression"].as_str() {
            Some(update) => expression::updated(update, &item, &placeholders(request))?,
            None => Some(item),
        };
        let Some(mut after) = after else { return Ok(Err(Refused::Absent)) };
        after.insert("id".to_owned(), json!({ "S": id }));
        let change = Change { table: table.to_owned(), id: id.to_owned(), before: before.cloned(), after: Some(after) };
        Ok(Ok(change))
    }

    /// A `PutItem`, or a put in a transaction, up to its being applied.
    fn check_put(&self, request: &Value) -> Result<Checked, Unknown> {
        let (table, id) = (text(&request["TableName"]).to_owned(), text(&request["Item"]["id"]["S"]).to_owned());
        let before = self.item(&table, &id).cloned();
        if !may_write(request, before.as_ref().unwrap_or(&Item::new()))? {
            return Ok(Err(Refused::Condition(before)));
        }
        let after = request["Item"].as_object().map(|item| item.clone().into_iter().collect());
        Ok(Ok(Change { table, id, before, after }))
    }

    /// Carries out a write of one item.
    fn write(&mut self, admission: &mut impl Admission, request: &Value, checked: Checked) -> Answer {
        let key = if request["Key"].is_null() { &request["Item"]["id"] } else { &request["Key"]["id"] };
        if let Err(throttle) = admission.admit(text(&request["TableName"]), text(&key["S"]), Access::Write) {
            return throttled(throttle);
        }
        match checked {
            Ok(change) => {
                self.apply(&change);
                let mut body = json!({ "ConsumedCapacity": capacity(&change.table) });
                if let (Some("ALL_OLD"), Some(before)) = (request["ReturnValues"].as_str(), &change.before) {
                    body["Attributes"] = json!(before);
                }
                Answer { changes: vec![change], ..ok(body) }
            }
            Err(refused) => Answer { status: 400, body: refused.exception(), changes: Vec::new() },
        }
    }

    fn statements(&mut self, admission: &mut impl Admission, request: &Value) -> Result<Answer, Unknown> {
        let (mut responses, mut changes) = (Vec::new(), Vec::new());
        for one in request["Statements"].as_array().into_iter().flatten() {
            let statement = Statement::parse(one)?;
            let admitted = admission.admit(&statement.table, &statement.id, Access::Write);
            let admitted = admitted.map_err(|throttle| (throttle.statement_code(), throttle.message()));
            match admitted.and_then(|()| self.check_statement(&statement)) {
                Ok(change) => {
                    self.apply(&change);
                    changes.push(change);
                    responses.push(json!({ "TableName": statement.table }));
                }
                Err((code, message)) => {
                    responses
                        .push(json!({ "TableName": statement.table, "Error": { "Code": code, "Message": message } }));
                }
            }
        }
        Ok(Answer { changes, ..ok(json!({ "Responses": responses })) })
    }

    fn check_statement(&self, statement: &Statement) -> Result<Change, (&'static str, &'static str)> {
        let before = self.item(&statement.table, &statement.id);
        let after = match (before, statement.inserts) {
            (None, true) => statement.set.clone(),
            (Some(_), true) => return Err(("DuplicateItem", "Duplicate primary key exists in table")),
            (Some(item), false) if statement.guards.iter().all(|(name, value)| item.get(name) == Some(value)) => {
                let kept = item.clone().into_iter().filter(|(name, _)| !statement.removed.contains(name));
                kept.chain(statement.set.clone()).collect()
            }
            _ => return Err(("ConditionalCheckFailed", "The conditional request failed")),
        };
        let (table, id) = (statement.table.clone(), statement.id.clone());
        Ok(Change { table, id, before: before.cloned(), after: Some(after) })
    }

    fn transact(&mut self, request: &Value) -> Result<Answer, Unknown> {
        let (token, items) = (text(&request["ClientRequestToken"]), &request["TransactItems"]);
        match self.tokens.get(token) {
            Some(earlier) if earlier == items => return Ok(ok(json!({ "ConsumedCapacity": [] }))),
            Some(_) => {
                let body = error("IdempotentParameterMismatchException", "the token names another transaction");
                return Ok(Answer { status: 400, body, changes: Vec::new() });
            }
            None => {}
        }
        let (mut changes, mut reasons, mut refused) = (Vec::new(), Vec::new(), false);
        for item in items.as_array().into_iter().flatten() {
            let checked = match (item.get("Update"), item.get("Put")) {
                (Some(update), _) => self.check_update(update)?,
                (None, Some(put)) => self.check_put(put)?,
                _ => return Err(Unknown(format!("the transaction's {item}"))),
            };
            match checked {
                Ok(change) => {
                    changes.push(change);
                    reasons.push(json!({ "Code": "None" }));
                }
                Err(why) => {
                    refused = true;
                    reasons.push(why.reason());
                }
            }
        }
        if refused {
            let mut body = error("TransactionCanceledException", "Transaction cancelled, see the reasons");
            body["CancellationReasons"] = json!(reasons);
            return Ok(Answer { status: 400, body, changes: Vec::new() });
        }
        changes.iter().for_each(|change| self.apply(change));
        self.tokens.insert(token.to_owned(), items.clone());
        Ok(Answer { changes, ..ok(json!({ "ConsumedCapacity": [] })) })
    }
}

fn placeholders(request: &Value) -> Placeholders<'_> {
    Placeholders { names: &request["ExpressionAttributeNames"], values: &request["ExpressionAttributeValues"] }
}

/// Whether a write's condition holds for the item that is there, if it has one.
fn may_write(request: &Value, item: &Item) -> Result<bool, Unknown> {
    let condition = request["ConditionExpression"].as_str();
    condition.map_or(Ok(true), |condition| expression::holds(condition, item, &placeholders(request)))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What a success says of capacity: that there is some, by which it is known for DynamoDB's. Units are not simulated.
fn capacity(table: &str) -> Value {
    json!({ "TableName": table })
}

fn ok(body: Value) -> Answer {
    Answer { status: 200, body, changes: Vec::new() }
}
