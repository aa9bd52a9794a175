//! The settings of the lock table, read from the environment.

use claimant_core::{Error, Variables};

use crate::tables::{Tables, table_name};

const TABLE: &str = "CLAIMANT_TABLE";
const BEFORE: &str = "CLAIMANT_TABLE_BEFORE";
const BATCH: &str = "CLAIMANT_BATCH";

/// The settings of the lock table, read from the environment.
///
/// | variable | meaning | values | default |
/// | --- | --- | --- | --- |
/// | `CLAIMANT_TABLE` | the table's name; its partition key is the string `id`, and it has no sort key. Or several names, separated by commas: see [`Tables`] | a name | required by a [`LockTable`](crate::LockTable) |
/// | `CLAIMANT_TABLE_BEFORE` | the tables that had the records before `CLAIMANT_TABLE` was changed: see [`LockTable::before`](crate::LockTable::before) | names | unset |
/// | `CLAIMANT_BATCH` | `on`: up to 25 messages in one request (needs `dynamodb:PartiQLInsert`, `dynamodb:PartiQLUpdate` and `dynamodb:BatchGetItem`); `off`: one request each, as a table of another account, named by its ARN, needs it | `on`, `off` | `on` |
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod dynamodb { pub use claimant_dynamodb::*; } }
/// use claimant::Variables;
/// use claimant::dynamodb::Settings;
///
/// let mut variables = Variables::new([("CLAIMANT_TABLE", "locks"), ("CLAIMANT_BATCH", "never")]);
/// Settings::read(&mut variables);
/// assert!(variables.finish().unwrap_err().to_string().contains("CLAIMANT_BATCH"));
/// ```
#[derive(Debug, Clone)]
pub struct Settings {
    tables: Option<Tables>,
    pub(crate) before: Option<Tables>,
    pub(crate) batched: bool,
}

impl Settings {
    /// Reads the settings; the reader keeps their faults.
    pub fn read(variables: &mut Variables) -> Self {
        let (tables, before) = (named(variables, TABLE), named(variables, BEFORE));
        if let Some((old, new)) = before.as_ref().zip(tables.as_ref()).and_then(written_differently) {
            variables.fault(format!(
                "{BEFORE} has {old:?}, and {TABLE} has {new:?}: records move between tables of one account and Region, where this \
                 is one table. Write it alike in both, or give the new table another name"
            ));
        }
        Self { tables, before, batched: variables.optional_switch(BATCH).unwrap_or(true) }
    }

    /// Reads the settings of a lock table, and returns them with its tables, of which one has to be named.
    pub(crate) fn required(mut variables: Variables) -> Result<(Tables, Self), Error> {
        variables.text_or_hint(TABLE, "give it the name of the lock table (partition key `id`, a string)");
        let mut settings = Self::read(&mut variables);
        // OK because without a table there is a fault.
        let tables = settings.tables.take().unwrap_or_else(|| Tables::from(""));
        variables.finish().map(|()| (tables, settings))
    }
}

/// Returns a table that both name, once by its name and once by an ARN, or by two ARNs.
fn written_differently<'a>((before, tables): (&'a Tables, &'a Tables)) -> Option<(&'a str, &'a str)> {
    let pairs = before.names().flat_map(|old| tables.names().map(move |new| (old, new)));
    pairs.into_iter().find(|(old, new)| old != new && table_name(old) == table_name(new))
}

/// Returns the tables that a variable names.
fn named(variables: &mut Variables, variable: &str) -> Option<Tables> {
    let text = variables.optional_text(variable)?;
    let tables = text.parse();
    tables.map_err(|error: Error| variables.fault(format!("{variable} is {text:?}: {error}"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_table_needs_a_name() {
        let required = |vars: &[(&str, &str)]| Settings::required(Variables::new(vars.iter().copied()));
        let words = |vars: &[(&str, &str)]| {
            let (tables, Settings { before, batched, .. }) = required(vars).unwrap();
            (tables.to_string(), before.map(|before| before.to_string()), batched)
        };
        assert_eq!(words(&[("CLAIMANT_TABLE", "locks")]), ("locks".to_owned(), None, true));
        let set = [("CLAIMANT_TABLE", "locks"), ("CLAIMANT_BATCH", "off"), ("CLAIMANT_VISIBILITY", "off")];
        assert_eq!(words(&set), ("locks".to_owned(), None, false));
        let set = [("CLAIMANT_TABLE", "locks-1, locks-2"), ("CLAIMANT_TABLE_BEFORE", "locks")];
        assert_eq!(words(&set), ("locks-1,locks-2".to_owned(), Some("locks".to_owned()), true));
        for (vars, wanted) in [
            (&[][..], &["CLAIMANT_TABLE is not set: give it"][..]),
            (&[("CLAIMANT_TABLE", " "), ("CLAIMANT_BATCH", "2")], &["2 faults", "CLAIMANT_TABLE is set but empty"]),
            (
                &[("CLAIMANT_TABLE", "locks-1,locks-1"), ("CLAIMANT_TABLE_BEFORE", "locks;old")],
                &["2 faults", "CLAIMANT_TABLE is \"locks-1,locks-1\"", "named twice", "CLAIMANT_TABLE_BEFORE is \"lo"],
            ),
            (
                &[
                    ("CLAIMANT_TABLE", "arn:aws:dynamodb:eu-west-1:222222222222:table/locks"),
                    ("CLAIMANT_TABLE_BEFORE", "a,arn:aws:dynamodb:eu-west-1:111111111111:table/locks"),
                ],
                &[
                    "CLAIMANT_TABLE_BEFORE has \"arn:aws:dynamodb:eu-west-1:111111111111:table/locks\"",
                    "one account and Region",
                ],
            ),
            (&[("CLAIMANT_TABLE", "a,b"), ("CLAIMANT_TABLE_BEFORE", "x:table/b")], &["Write it alike in both"]),
            (&[("CLAIMANT_TABEL", "locks")], &["2 faults", "CLAIMANT_TABLE is not set", "mean CLAIMANT_TABLE?"]),
        ] {
            let text = required(vars).unwrap_err().to_string();
            assert!(wanted.iter().all(|wanted| text.contains(wanted)), "{text}");
        }
    }
}
