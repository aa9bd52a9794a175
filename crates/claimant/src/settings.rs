//! The settings of a whole program, read at once.

use claimant_core::Variables;

/// All variables of claimant. A program can find some without a use for them: a developer's shell has those of the command, and one environment
/// can be that of several functions and workers, each with stores and features of its own.
const ALL: [&str; 21] = [
    "CLAIMANT_BATCH",
    "CLAIMANT_CONCURRENCY",
    "CLAIMANT_DATABASE_CONNECTIONS",
    "CLAIMANT_DATABASE_URL",
    "CLAIMANT_DEAD_LETTER_QUEUE_URL",
    "CLAIMANT_LOCAL_TIMEOUT_MS",
    "CLAIMANT_LOCAL_URL",
    "CLAIMANT_LOG_MESSAGES",
    "CLAIMANT_MAPPING_CHECK",
    "CLAIMANT_MARGIN_MS",
    "CLAIMANT_MAX_RECEIVE_COUNT",
    "CLAIMANT_METRICS",
    "CLAIMANT_OPERATOR",
    "CLAIMANT_REDIS_CLUSTER",
    "CLAIMANT_REDIS_URL",
    "CLAIMANT_RESUME_ROLE_ARN",
    "CLAIMANT_SCHEDULE_DEAD_LETTER_ARN",
    "CLAIMANT_SCHEDULE_ROLE_ARN",
    "CLAIMANT_TABLE",
    "CLAIMANT_TABLE_BEFORE",
    "CLAIMANT_VISIBILITY",
];

/// Returns a reader of the environment that has read every setting of claimant in this program: for a function's own
/// variables, so that one message names all that is wrong with any of them, unknown `CLAIMANT_` names included. Hand it to the
/// `from_variables` of a store, which ends reading; what is wrong is also said, and the function not started, where that is forgotten.
///
/// ```no_run
/// # async fn example() -> Result<(), claimant::Error> {
/// let mut variables = claimant::variables();
/// let sender = variables.text("SENDER_ADDRESS");
/// // Ends reading: `sender` may be used after it.
/// let table = claimant::dynamodb::LockTable::from_variables(variables).await?;
/// # Ok(())
/// # }
/// ```
pub fn variables() -> Variables {
    read_settings(Variables::from_env())
}

/// Returns a reader of these variables, which has read every setting of claimant in this program as [`variables`] has of the
/// environment: for tests of a function's own settings, and for programs that look at those of a function.
///
/// ```
/// # #[cfg(feature = "lambda")] {
/// let variables = claimant::variables_of([("CLAIMANT_CONCURRENCY", "0")]);
/// assert!(variables.finish().unwrap_err().to_string().contains("from 1 to 1000"));
/// # }
/// ```
pub fn variables_of<N: Into<String>, V: Into<String>>(vars: impl IntoIterator<Item = (N, V)>) -> Variables {
    read_settings(Variables::new(vars))
}

fn read_settings(mut variables: Variables) -> Variables {
    #[cfg(feature = "dynamodb")]
    claimant_dynamodb::Settings::read(&mut variables);
    #[cfg(feature = "lambda")]
    claimant_lambda::Settings::read(&mut variables);
    #[cfg(feature = "redis")]
    claimant_redis::Settings::read(&mut variables);
    #[cfg(feature = "inbox")]
    claimant_inbox::Settings::read(&mut variables);
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    claimant_sql::Settings::read(&mut variables);
    for name in ALL {
        // Read, it is known.
        variables.optional_text(name);
    }
    variables.refuse_unknown()
}

#[cfg(all(test, feature = "dynamodb", feature = "lambda", feature = "postgres"))]
mod tests {
    use super::*;
    use crate::dynamodb::LockTable;
    use crate::postgres::PostgresStore;

    fn variables(vars: &[(&str, &str)]) -> Variables {
        variables_of(vars.iter().copied())
    }

    #[test]
    fn faults_of_every_part_and_of_the_function_are_in_one_message() {
        let vars = [
            ("CLAIMANT_TABLE", " "),
            ("CLAIMANT_CONCURRENCY", "0"),
            ("CLAIMANT_MARGIN_MS", "soon"),
            ("CLAIMANT_VISIBILITY", "yes"),
            ("CLAIMANT_MAPPING_CHECK", "on"),
            ("CLAIMANT_DEAD_LETTER_QUEUE_URL", "dead"),
            ("CLAIMANT_DATABASE_CONNECTIONS", "1001"),
            ("CLAIMANT_TABEL", "locks"),
            ("CLAIMANT_NONSENSE", "x"),
        ];
        let mut reader = variables(&vars);
        reader.text("SENDER");
        let text = reader.finish().unwrap_err().to_string();
        let wanted = [
            "10 faults",
            "CLAIMANT_TABLE is set but empty",
            "CLAIMANT_CONCURRENCY is \"0\"",
            "from 1 to 1000",
            "CLAIMANT_MARGIN_MS",
            "`on` or `off`",
            "CLAIMANT_MAPPING_CHECK is \"on\"; `warn` or `refuse` or `off` is needed",
            "not its name or ARN",
            "CLAIMANT_DATABASE_CONNECTIONS is \"1001\"",
            "CLAIMANT_TABEL is no variable of claimant: did you mean CLAIMANT_TABLE?",
            "CLAIMANT_NONSENSE is no variable of claimant: there are CLAIMANT_BATCH, ",
            "SENDER is not set",
        ];
        for wanted in wanted {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
    }

    /// A shell has those of the command, and `make watch` hands one environment to all functions, whatever is built into each.
    #[test]
    fn what_this_program_has_no_use_for_is_no_fault() {
        let names = [
            "CLAIMANT_OPERATOR",
            "CLAIMANT_LOCAL_URL",
            "CLAIMANT_TABLE",
            "CLAIMANT_DATABASE_URL",
            "CLAIMANT_REDIS_URL",
        ];
        variables(&names.map(|name| (name, "x"))).finish().unwrap();
        let text = variables(&[("CLAIMANT_OPERATER", "ada")]).finish().unwrap_err().to_string();
        assert!(text.contains("CLAIMANT_OPERATER is no variable of claimant"), "{text}");
    }

    /// A function that reads variables of its own, and opens its store by `from_env`, has forgotten the reader.
    #[tokio::test]
    async fn no_function_starts_with_the_placeholders_of_a_forgotten_reader() {
        let url = crate::variables().text("THE_URL_THAT_NO_ENVIRONMENT_HAS");
        let handler = |_: String, _: crate::Context| async { Ok::<_, crate::HandlerError>(()) };
        let consumer = crate::Consumer::new("work", crate::memory::MemoryStore::new(), handler);
        let error = claimant_lambda::run(crate::variables(), consumer).await.unwrap_err().to_string();
        assert!(url.is_empty() && error.contains("THE_URL_THAT_NO_ENVIRONMENT_HAS is not set"), "{error}");
    }

    #[tokio::test]
    async fn a_store_needs_its_own_variables_and_takes_those_of_other_parts() {
        let mut reader = variables(&[("CLAIMANT_DATABASE_URL", "postgres://h/d"), ("CLAIMANT_TABEL", "locks")]);
        reader.text("SENDER");
        let text = LockTable::from_variables(reader).await.unwrap_err().to_string();
        for wanted in ["3 faults", "CLAIMANT_TABLE is not set", "SENDER is not set", "CLAIMANT_TABEL is no variable"] {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
        let others = [("CLAIMANT_TABLE", "locks"), ("CLAIMANT_METRICS", "off"), ("CLAIMANT_BATCH", "on")];
        PostgresStore::from_variables(variables(
            &[&others[..], &[("CLAIMANT_DATABASE_URL", "postgres://h/d")]].concat(),
        ))
        .await
        .unwrap();
    }
}
