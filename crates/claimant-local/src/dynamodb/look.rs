//! What a request to DynamoDB is about: whether it claims, and which message asks for which record. Pure.

use serde_json::Value;

use crate::faults::Target;

/// The length of a message's id: a UUID with its hyphens.
const ID_LENGTH: usize = 36;

/// The lengths of a payload's fingerprint, 32 or 37 bytes, in Base64.
const FINGERPRINT_LENGTHS: [usize; 2] = [44, 52];

/// What a request is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) target: Target,
    /// Message ids, as far as can be told from their form, each with the id of the record that it asks for.
    pub(super) ties: Vec<(String, String)>,
}

/// Looks at the request of an operation, such as `UpdateItem`. A claim is what writes a message's id into a record. Handlers write such ids
/// too, into items of their own: only claimant's are beside a fingerprint, under an id that has a consumer's name and `#` or `~` before its key.
pub(super) fn look(operation: &str, request: &[u8]) -> Look {
    let target = match operation {
        "GetItem" | "BatchGetItem" | "Query" | "Scan" | "TransactGetItems" => Target::Reads,
        "UpdateItem"
        | "PutItem"
        | "DeleteItem"
        | "BatchWriteItem"
        | "TransactWriteItems"
        | "ExecuteStatement"
        | "BatchExecuteStatement"
        | "ExecuteTransaction" => Target::Settlements,
        _ => Target::Table,
    };
    if target != Target::Settlements {
        return Look { target, ties: Vec::new() };
    }
    let request: Value = serde_json::from_slice(request).unwrap_or_default();
    let mut ties = Vec::new();
    match operation {
        "BatchExecuteStatement" => {
            for statement in request["Statements"].as_array().into_iter().flatten() {
                let values = || statement["Parameters"].as_array().into_iter().flatten();
                let is_insert = statement["Statement"].as_str().is_some_and(|text| text.starts_with("INSERT"));
                tie(&mut ties, values().next().and_then(text).filter(|_| is_insert), values);
            }
        }
        "PutItem" => {
            let item = &request["Item"];
            // A record's key is named as claimant names it.
            let record = request["ExpressionAttributeNames"]["#id"].as_str().and_then(|name| text(&item[name]));
            tie(&mut ties, record, || values_of(item));
        }
        "UpdateItem" => tie_update(&mut ties, &request),
        // A record that is claimed and completed at once, among the handler's own items.
        "TransactWriteItems" => {
            let updates = request["TransactItems"].as_array().into_iter().flatten().map(|item| &item["Update"]);
            updates.for_each(|update| tie_update(&mut ties, update));
        }
        _ => {}
    }
    let claims = !ties.is_empty() && operation != "TransactWriteItems";
    let target = if claims { Target::Claims } else { target };
    Look { target, ties }
}

/// Returns all texts among the values of a request: the ids of its records are among them.
pub(super) fn texts(request: &[u8]) -> Vec<String> {
    fn add(value: &Value, found: &mut Vec<String>) {
        found.extend(text(value).map(str::to_owned));
        match value {
            Value::Array(values) => values.iter().for_each(|value| add(value, found)),
            Value::Object(fields) => fields.values().for_each(|value| add(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    add(&serde_json::from_slice(request).unwrap_or_default(), &mut found);
    found
}

fn text(value: &Value) -> Option<&str> {
    value["S"].as_str()
}

fn values_of(fields: &Value) -> impl Iterator<Item = &Value> {
    fields.as_object().into_iter().flat_map(|fields| fields.values())
}

/// Ties what an update of a record names as its message.
fn tie_update(ties: &mut Vec<(String, String)>, update: &Value) {
    tie(ties, values_of(&update["Key"]).find_map(text), || values_of(&update["ExpressionAttributeValues"]));
}

/// Ties the message among the values that are written, if they are those of a record.
fn tie<'a, I: Iterator<Item = &'a Value>>(
    ties: &mut Vec<(String, String)>,
    record: Option<&str>,
    values: impl Fn() -> I,
) {
    if let Some(record) = record.filter(|id| id.contains(['#', '~']) && values().any(is_fingerprint)) {
        let messages = values().filter_map(text).filter(|value| is_message_id(value) && *value != record);
        ties.extend(messages.map(|message| (message.to_owned(), record.to_owned())));
    }
}

fn is_fingerprint(value: &Value) -> bool {
    value["B"].as_str().is_some_and(|bytes| FINGERPRINT_LENGTHS.contains(&bytes.len()))
}

fn is_message_id(text: &str) -> bool {
    let hyphens = [8, 13, 18, 23];
    let plain = |(at, byte): (usize, u8)| if hyphens.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.len() == ID_LENGTH && text.bytes().enumerate().all(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "059f36b4-87a3-44ab-83d2-661975830a7d";

    #[test]
    fn the_texts_of_a_request_are_found_wherever_they_are() {
        let request = json!({ "TransactItems": [{ "Update": { "Key": {"id": {"S": "orders#1"}}, "N": {"N": "7"} } }, {"S": "x"}] });
        assert_eq!(texts(request.to_string().as_bytes()), ["orders#1", "x"]);
        assert!(texts(b"what is this").is_empty());
    }

    #[test]
    fn claims_name_their_messages() {
        let print = || json!({"B": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="});
        let insert = json!({ "Statements": [
            { "Statement": "INSERT INTO \"t\" VALUE {}", "Parameters": [{"S": "orders#1"}, {"S": "owner"}, {"N": "1"}, {"S": ID}, print()] },
        ] });
        let own_insert = json!({ "Statements": [
            { "Statement": "INSERT INTO \"t\" VALUE {}", "Parameters": [{"S": "ORDER#1"}, {"S": ID}, {"B": "AAAA"}] },
        ] });
        let updated = |id: &str, fingerprint: Value| json!({ "Key": {"id": {"S": id}}, "ExpressionAttributeValues": {":m": {"S": ID}, ":n": {"N": "1"}, ":f": fingerprint} });
        let put = |id: &str, fingerprint: Value| {
            json!({
                "Item": {"id": {"S": id}, "m": {"S": ID}, "n": {"N": "1"}, "f": fingerprint},
                "ExpressionAttributeNames": {"#id": "id"},
            })
        };
        // With a rule of its own, it is longer.
        let of_rule = json!({"B": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAAAAAQ=="});
        let (update, own) = (updated("orders#1", of_rule), updated("ORDER#1", json!({"S": "COMPLETED"})));
        let commit = json!({ "TransactItems": [{ "Update": update }, { "Update": own }, { "Put": {} }] });
        let hashed = json!({ "TransactItems": [{ "Update": own }, { "Update": updated("orders~ab12", print()) }] });
        let settle =
            json!({ "Key": {"id": {"S": "orders#1"}}, "ExpressionAttributeValues": {":owner": {"S": "0123"}} });
        let update_ended =
            json!({ "Statements": [{ "Statement": "UPDATE \"t\"", "Parameters": [{"S": "x"}, {"S": ID}] }] });
        let tied = vec![(ID.to_owned(), "orders#1".to_owned())];
        for (operation, request, target, ties) in [
            ("BatchExecuteStatement", insert, Target::Claims, tied.clone()),
            ("BatchExecuteStatement", own_insert, Target::Settlements, vec![]),
            ("PutItem", put("orders#1", print()), Target::Claims, tied.clone()),
            ("PutItem", put("ORDER#1", json!({"S": "COMPLETED"})), Target::Settlements, vec![]),
            ("UpdateItem", update, Target::Claims, tied.clone()),
            ("UpdateItem", own, Target::Settlements, vec![]),
            ("UpdateItem", updated("ord-1", print()), Target::Settlements, vec![]),
            ("TransactWriteItems", commit, Target::Settlements, tied),
            ("TransactWriteItems", hashed, Target::Settlements, vec![(ID.to_owned(), "orders~ab12".to_owned())]),
            ("UpdateItem", settle, Target::Settlements, vec![]),
            ("BatchExecuteStatement", update_ended, Target::Settlements, vec![]),
            ("TransactWriteItems", json!({}), Target::Settlements, vec![]),
            ("UpdateItem", json!("what is this"), Target::Settlements, vec![]),
            ("GetItem", json!({}), Target::Reads, vec![]),
            ("DescribeTable", json!({}), Target::Table, vec![]),
        ] {
            assert_eq!(
                look(operation, request.to_string().as_bytes()),
                Look { target, ties },
                "{operation}: {request}"
            );
        }
    }
}
