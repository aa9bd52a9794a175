//! The settings of the lock table, read from the environment.

use claimant_core::{Error, Variables};

const TABLE: &str = "CLAIMANT_TABLE";
const BATCH: &str = "CLAIMANT_BATCH";

/// The settings of the lock table, read from the environment.
///
/// | variable | meaning | values | default |
/// | --- | --- | --- | --- |
/// | `CLAIMANT_TABLE` | the table's name; its partition key is the string `id`, and it has no sort key | a name | required by a [`LockTable`](crate::LockTable) |
/// | `CLAIMANT_BATCH` | `on`: up to 25 messages in one request (needs `dynamodb:PartiQLInsert` and `dynamodb:PartiQLUpdate`); `off`: one request each | `on`, `off` | `on` |
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
    batched: bool,
}

impl Settings {
    /// Reads the settings; the reader keeps their faults.
    pub fn read(variables: &mut Variables) -> Self {
        variables.optional_text(TABLE);
        Self { batched: variables.optional_switch(BATCH).unwrap_or(true) }
    }

    /// Returns the table's name, which has to be set, and whether its requests are batched.
    pub(crate) fn required(mut variables: Variables) -> Result<(String, bool), Error> {
        let table = variables.text_or_hint(TABLE, "give it the name of the lock table (partition key `id`, a string)");
        let Self { batched } = Self::read(&mut variables);
        variables.finish().map(|()| (table, batched))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_table_needs_a_name() {
        let required = |vars: &[(&str, &str)]| Settings::required(Variables::new(vars.iter().copied()));
        assert_eq!(required(&[("CLAIMANT_TABLE", "locks")]).unwrap(), ("locks".to_owned(), true));
        let set = [("CLAIMANT_TABLE", "locks"), ("CLAIMANT_BATCH", "off"), ("CLAIMANT_VISIBILITY", "off")];
        assert_eq!(required(&set).unwrap(), ("locks".to_owned(), false));
        for (vars, wanted) in [
            (&[][..], &["CLAIMANT_TABLE is not set: give it"][..]),
            (&[("CLAIMANT_TABLE", " "), ("CLAIMANT_BATCH", "2")], &["2 faults", "CLAIMANT_TABLE is set but empty"]),
            (&[("CLAIMANT_TABEL", "locks")], &["2 faults", "CLAIMANT_TABLE is not set", "mean CLAIMANT_TABLE?"]),
        ] {
            let text = required(vars).unwrap_err().to_string();
            assert!(wanted.iter().all(|wanted| text.contains(wanted)), "{text}");
        }
    }
}
