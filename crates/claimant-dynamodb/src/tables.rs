//! The tables of a lock table, and which of them has the record of a key. Pure.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use claimant_core::{Error, RecordId};
use sha2::{Digest, Sha256};

/// The most tables that a lock table may consist of.
pub const TABLES_MAX: usize = 16;

/// The names of the tables that a lock table consists of: mostly one, or several for more writes than one table takes.
///
/// Of several tables, a record is in the one whose SHA-256 of its name, a NUL and the record's id is the greatest. So the
/// order of the names does not count. Another set of names has other tables for some of the keys: records are moved there
/// by [`LockTable::before`](crate::LockTable::before). Of an ARN the name at its end counts.
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod dynamodb { pub use claimant_dynamodb::*; } pub mod store { pub use claimant_core::*; } }
/// use claimant::Key;
/// use claimant::dynamodb::Tables;
/// use claimant::store::{ConsumerName, RecordId};
///
/// let order = RecordId::new(&ConsumerName::new("shipping")?, &Key::new("4711")?);
/// assert_eq!("locks-1,locks-2,locks-3".parse::<Tables>()?.of(&order), "locks-1");
/// assert_eq!(Tables::new(["locks-3", "locks-1", "locks-2"])?.of(&order), "locks-1");
/// assert_eq!(Tables::from("locks").of(&order), "locks");
/// assert_eq!(Tables::from("locks-1,locks-2,locks-3").of(&order), "locks-1");
/// assert!(Tables::new(["locks-1", "locks-1"]).is_err());
/// # Ok::<(), claimant::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tables {
    // Invariant: not empty.
    names: Arc<[String]>,
    text: Arc<str>,
}

impl Tables {
    /// Creates the tables of these names or ARNs. Those of another account take no [batches](crate::LockTable::batched).
    ///
    /// # Errors
    /// When there is none or more than [`TABLES_MAX`], or a name is empty, there twice, or one that no table has.
    pub fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Result<Self, Error> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        if names.is_empty() || names.len() > TABLES_MAX {
            let why = format!("a lock table has from 1 to {TABLES_MAX} tables, and not {}", names.len());
            return Err(Error::invalid(why));
        }
        for (index, name) in names.iter().enumerate() {
            let is_known = |c: char| c.is_ascii_alphanumeric() || "_.-:/".contains(c);
            if table_name(name).is_empty() || !name.chars().all(is_known) {
                return Err(Error::invalid(format!(
                    "{name:?} is the name of no table: a name has letters, digits, '_', '-' and '.', and an ARN ends with it"
                )));
            }
            if names[..index].iter().any(|other| table_name(other) == table_name(name)) {
                return Err(Error::invalid(format!("the table {name:?} is named twice")));
            }
        }
        let text = names.join(",").into();
        Ok(Self { names: names.into(), text })
    }

    /// Returns the names or ARNs, as they were given.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the names or ARNs in one text, separated by commas.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the table that has this record.
    #[must_use]
    pub fn of(&self, id: &RecordId) -> &str {
        if let [only] = &*self.names {
            return only;
        }
        // OK because there is a name.
        self.names.iter().max_by_key(|name| score(name, id)).map_or("", String::as_str)
    }
}

fn score(table: &str, id: &RecordId) -> [u8; 32] {
    let hash = Sha256::new().chain_update(table_name(table)).chain_update([0]).chain_update(id.as_str());
    hash.finalize().into()
}

/// Returns the name in an ARN, or the name.
pub(crate) fn table_name(table: &str) -> &str {
    table.rsplit('/').next().unwrap_or(table)
}

/// Names several tables, separated by commas.
impl FromStr for Tables {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text.split(',').map(str::trim))
    }
}

/// Names one table, or several, separated by commas. What names no set of tables is taken for the name of one, which DynamoDB refuses.
impl From<String> for Tables {
    fn from(name: String) -> Self {
        name.parse().unwrap_or_else(|_| Self { text: name.as_str().into(), names: [name].into() })
    }
}

/// Names one table, or several, separated by commas, as a `String` does.
impl From<&str> for Tables {
    fn from(name: &str) -> Self {
        Self::from(name.to_owned())
    }
}

/// Names one table, or several, separated by commas, as a `String` does.
impl From<&String> for Tables {
    fn from(name: &String) -> Self {
        Self::from(name.clone())
    }
}

impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::{ConsumerName, Key};

    use super::*;

    fn id(key: usize) -> RecordId {
        RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new(key.to_string()).unwrap())
    }

    #[test]
    fn a_record_has_the_same_table_for_ever() {
        // Computed apart: printf 'a\0c#0' | sha256sum. What is here must never change: keys would be claimed again.
        let tables = Tables::new(["a", "b", "c"]).unwrap();
        let found: String = (0..24).map(|key| tables.of(&id(key))).collect();
        assert_eq!(found, "bbacabcbcaabccbbcabbcbcb");
        let others = ["c , a,b", "b,arn:aws:dynamodb:us-east-1:123456789012:table/a,c"];
        for other in others.map(|text| text.parse::<Tables>().unwrap()) {
            assert!((0..24).all(|key| table_name(other.of(&id(key))) == tables.of(&id(key))), "{other}");
        }
    }

    #[test]
    fn tables_have_like_shares_and_a_new_one_takes_its_own() {
        let (three, four) = (Tables::new(["a", "b", "c"]).unwrap(), Tables::new(["a", "b", "c", "d"]).unwrap());
        let share = |name: &str| (0..3_000).filter(|key| three.of(&id(*key)) == name).count();
        for name in three.names() {
            assert!((900..1_100).contains(&share(name)), "{name}: {}", share(name));
        }
        let moved = (0..3_000).filter(|key| three.of(&id(*key)) != four.of(&id(*key)));
        assert!(moved.clone().all(|key| four.of(&id(key)) == "d") && (650..850).contains(&moved.count()));
    }

    #[test]
    fn what_names_no_set_of_tables_is_refused() {
        let many = vec!["t"; TABLES_MAX + 1].iter().enumerate().map(|(n, t)| format!("{t}{n}")).collect::<Vec<_>>();
        for (text, wanted) in [
            ("", "the name of no table"),
            ("a,", "the name of no table"),
            ("a;b", "\"a;b\" is the name of no table"),
            ("a,b,a", "\"a\" is named twice"),
            ("arn:aws:dynamodb:us-east-1:123456789012:table/a,a", "\"a\" is named twice"),
            (&many.join(","), "1 to 16 tables, and not 17"),
        ] {
            let error = text.parse::<Tables>().unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!(Tables::new(many[..TABLES_MAX].to_vec()).is_ok());
        // Without a place for an error: several where they are a set, else one that DynamoDB refuses.
        assert_eq!(Tables::from("a, b").names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(Tables::from("a,a").names().collect::<Vec<_>>(), ["a,a"]);
        assert!(Tables::new(Vec::<String>::new()).is_err());
    }
}
