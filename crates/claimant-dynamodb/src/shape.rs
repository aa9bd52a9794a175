//! Whether a table has the key of a lock table. Pure.

use aws_sdk_dynamodb::types::{KeyType, ScalarAttributeType, TableDescription};
use claimant_core::{StoreError, StoreErrorKind};

/// Returns an error for a table of this name that can hold no record.
pub(crate) fn is_lock_table(table: &str, described: &TableDescription, id: &str) -> Result<(), StoreError> {
    let Some(keys) = other_keys(described, id) else { return Ok(()) };
    Err(StoreError::new(
        StoreErrorKind::Misconfigured,
        format!(
            "the table {table:?} is no lock table with these attribute names: its key is {keys}, and not the string `{id}` alone"
        ),
    ))
}

/// Returns what the keys of a table are, where they are not the one of a lock table: `id` (S) alone, or whatever else `id` is called.
/// `None` also where the description says nothing of them.
fn other_keys(table: &TableDescription, id: &str) -> Option<String> {
    let keys = table.key_schema();
    let type_of = |name: &str| {
        let mut defined = table.attribute_definitions().iter();
        defined.find(|definition| definition.attribute_name() == name).map(|definition| definition.attribute_type())
    };
    match keys {
        [] => return None,
        [key] if key.attribute_name() == id && *key.key_type() == KeyType::Hash => match type_of(id) {
            None | Some(ScalarAttributeType::S) => return None,
            Some(_) => {}
        },
        _ => {}
    }
    let key = |name: &str| format!("{name} ({})", type_of(name).map_or("?", ScalarAttributeType::as_str));
    Some(keys.iter().map(|element| key(element.attribute_name())).collect::<Vec<_>>().join(" and "))
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::{AttributeDefinition, KeySchemaElement};

    use super::*;

    fn table(keys: &[(&str, KeyType, ScalarAttributeType)]) -> TableDescription {
        let mut table = TableDescription::builder();
        for (name, key_type, attribute_type) in keys {
            let element = KeySchemaElement::builder().attribute_name(*name).key_type(key_type.clone());
            let definition =
                AttributeDefinition::builder().attribute_name(*name).attribute_type(attribute_type.clone());
            table = table.key_schema(element.build().unwrap()).attribute_definitions(definition.build().unwrap());
        }
        table.build()
    }

    #[test]
    fn a_lock_table_has_one_key_that_is_a_text() {
        use KeyType::{Hash, Range};
        use ScalarAttributeType::{N, S};
        for (keys, wanted) in [
            (&[][..], None),
            (&[("id", Hash, S)], None),
            (&[("id", Hash, N)], Some("id (N)")),
            (&[("pk", Hash, S)], Some("pk (S)")),
            (&[("id", Hash, S), ("at", Range, N)], Some("id (S) and at (N)")),
        ] {
            assert_eq!(other_keys(&table(keys), "id").as_deref(), wanted, "{keys:?}");
        }
        assert_eq!(other_keys(&table(&[("key", Hash, S)]), "key"), None, "it can be called otherwise");
    }
}
