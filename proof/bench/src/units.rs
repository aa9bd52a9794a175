//! What a request costs, by DynamoDB's rules, the same for every contestant.
//!
//! All items here are smaller than 1 KB: a write is one write unit, applied or refused, and a consistent read is one
//! read unit.

use serde::Deserialize;
use serde_json::Value;

/// The start of the header that names the operation.
const TARGET_PREFIX: &str = "DynamoDB_20120810.";

/// Units consumed. Reads are counted in halves, which is what an eventually consistent one costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Units {
    /// Write units.
    pub writes: u64,
    /// Halves of read units.
    pub read_halves: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Body {
    #[serde(default)]
    consistent_read: bool,
    #[serde(default)]
    statement: Option<String>,
    #[serde(default)]
    statements: Vec<Body>,
    #[serde(default)]
    transact_items: Vec<serde::de::IgnoredAny>,
    /// By table.
    #[serde(default)]
    request_items: serde_json::Map<String, Value>,
}

impl Units {
    const WRITE: Self = Self { writes: 1, read_halves: 0 };

    /// What the request with this target and body costs. One that cannot be read costs nothing: it is refused.
    #[must_use]
    pub fn of(target: &str, body: &[u8]) -> Self {
        let operation = target.strip_prefix(TARGET_PREFIX).unwrap_or_default();
        if matches!(operation, "PutItem" | "UpdateItem" | "DeleteItem") {
            return Self::WRITE;
        }
        let Ok(body) = serde_json::from_slice::<Body>(body) else { return Self::default() };
        match operation {
            "GetItem" => Self::read(body.consistent_read),
            "ExecuteStatement" => body.of_statement(),
            "BatchExecuteStatement" => body.statements.iter().map(Body::of_statement).sum(),
            // Twice: DynamoDB prepares each write, and commits it.
            "TransactWriteItems" => Self { writes: 2 * body.transact_items.len() as u64, read_halves: 0 },
            "BatchWriteItem" => body.tables().map(|t| Self { writes: entries(t), read_halves: 0 }).sum(),
            "BatchGetItem" => body.tables().map(of_keys).sum(),
            _ => Self::default(),
        }
    }

    fn read(consistent: bool) -> Self {
        Self { writes: 0, read_halves: if consistent { 2 } else { 1 } }
    }
}

impl std::iter::Sum for Units {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            writes: a.writes + b.writes,
            read_halves: a.read_halves + b.read_halves,
        })
    }
}

impl Body {
    fn of_statement(&self) -> Units {
        let text = self.statement.as_deref().unwrap_or_default().trim_start();
        match text.get(..6) {
            Some(verb) if verb.eq_ignore_ascii_case("select") => Units::read(self.consistent_read),
            _ => Units::WRITE,
        }
    }

    fn tables(&self) -> impl Iterator<Item = &Value> {
        self.request_items.values()
    }
}

fn of_keys(table: &Value) -> Units {
    let each = Units::read(table["ConsistentRead"] == true);
    Units { writes: 0, read_halves: each.read_halves * entries(&table["Keys"]) }
}

/// The length of a list.
fn entries(list: &Value) -> u64 {
    list.as_array().map_or(0, |a| a.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_its_cost() {
        for (operation, body, writes, read_halves) in [
            ("PutItem", "{}", 1, 0),
            ("GetItem", r#"{"ConsistentRead":true}"#, 0, 2),
            ("GetItem", "{}", 0, 1),
            (
                "BatchExecuteStatement",
                r#"{"Statements":[{"Statement":"INSERT INTO t"},{"Statement":"select * from t"}]}"#,
                1,
                1,
            ),
            ("TransactWriteItems", r#"{"TransactItems":[{},{}]}"#, 4, 0),
            ("BatchWriteItem", r#"{"RequestItems":{"t":[{},{}]}}"#, 2, 0),
            ("BatchGetItem", r#"{"RequestItems":{"t":{"Keys":[{},{}],"ConsistentRead":true}}}"#, 0, 4),
            ("DescribeTable", "{}", 0, 0),
        ] {
            let target = format!("{TARGET_PREFIX}{operation}");
            assert_eq!(Units::of(&target, body.as_bytes()), Units { writes, read_halves }, "{operation} {body}");
        }
    }
}
