//! Settings from the environment: read once, every fault in one message.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::Error;
use crate::limits;
use crate::secret::SecretUrl;

/// The prefix of claimant's own variables.
const PREFIX: &str = "CLAIMANT_";

/// One of claimant's own variables.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it sets, with unit, bounds and default: one line for the documentation.
    pub meaning: &'static str,
}

/// The lock table's name.
pub const TABLE: Variable =
    Variable { name: "CLAIMANT_TABLE", meaning: "name of the lock table; its partition key is the string `id`" };
/// How many messages at once.
pub const CONCURRENCY: Variable = Variable {
    name: "CLAIMANT_CONCURRENCY",
    meaning: "messages that one process works on at once, 1 to 1000 (default 10)",
};
/// How early to return.
pub const MARGIN: Variable = Variable {
    name: "CLAIMANT_MARGIN_MS",
    meaning: "how long before the deadline the function has returned, 50 to 60000 ms (default 500)",
};
/// After how many receives the queue gives a message to its dead-letter queue.
pub const MAX_RECEIVE_COUNT: Variable = Variable {
    name: "CLAIMANT_MAX_RECEIVE_COUNT",
    meaning: "`maxReceiveCount` of the queue's redrive policy, 1 to 1000 (default 5): what has one receive left and had no turn is warned of",
};
/// The time-out where the runtime gives no deadline.
pub const LOCAL_TIMEOUT: Variable = Variable {
    name: "CLAIMANT_LOCAL_TIMEOUT_MS",
    meaning: "time-out where the runtime gives no real deadline, as `cargo lambda watch` does, 1000 to 900000 ms (default 30000)",
};
/// Whether visibility is changed.
pub const VISIBILITY: Variable = Variable {
    name: "CLAIMANT_VISIBILITY",
    meaning: "`on`: failed messages come back after their backoff, and those with renewed leases stay hidden (needs sqs:ChangeMessageVisibility); `off`: all come back after the queue's visibility timeout (default `on`)",
};
/// Where rejected messages are sent.
pub const DEAD_LETTER_QUEUE_URL: Variable = Variable {
    name: "CLAIMANT_DEAD_LETTER_QUEUE_URL",
    meaning: "URL of the queue that rejected and parked messages are sent to at once (needs sqs:SendMessage); unset: they wait for the redrive of their own queue",
};
/// Whether the store is asked for many messages at once.
pub const BATCH: Variable = Variable {
    name: "CLAIMANT_BATCH",
    meaning: "`on`: up to 25 messages in one request to the lock table (needs dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate); `off`: one request each (default `on`)",
};
/// Whether the event source mapping is looked at.
pub const MAPPING_CHECK: Variable = Variable {
    name: "CLAIMANT_MAPPING_CHECK",
    meaning: "whether the function looks if its event source mapping has ReportBatchItemFailures, without which Lambda deletes failed messages (needs lambda:ListEventSourceMappings); `warn`: says so in the logs; `refuse`: also fails a whole batch with failures until it is seen to have it; `off` (default `warn`)",
};
/// Whether metrics are written.
pub const METRICS: Variable = Variable {
    name: "CLAIMANT_METRICS",
    meaning: "`on`: one CloudWatch Embedded Metric Format record for each batch on standard output, which Lambda takes for a line of level INFO; `off`: none (default `on`)",
};

/// Whether each message has a line in the logs.
pub const LOG_MESSAGES: Variable = Variable {
    name: "CLAIMANT_LOG_MESSAGES",
    meaning: "`on`: a line of level INFO for each message, with its outcome, attempt, fence and durations; `off`: only at level DEBUG (default `off`)",
};

/// Where the database is.
pub const DATABASE_URL: Variable = Variable {
    name: "CLAIMANT_DATABASE_URL",
    meaning: "URL of the database that holds the records, such as postgres://user:password@host/database?sslmode=verify-full or mysql://user:password@host/database?ssl-mode=VERIFY_IDENTITY",
};
/// How many connections to the database.
pub const DATABASE_CONNECTIONS: Variable = Variable {
    name: "CLAIMANT_DATABASE_CONNECTIONS",
    meaning: "connections to the database that one process may hold, 1 to 1000 (default 10); a transactional consumer holds one for each message it works on",
};
/// Where Redis is.
pub const REDIS_URL: Variable = Variable {
    name: "CLAIMANT_REDIS_URL",
    meaning: "URL of the Redis or Valkey that holds the records: redis://user:password@host:6379/0, or rediss:// for TLS",
};
/// Whether Redis is a cluster.
pub const REDIS_CLUSTER: Variable = Variable {
    name: "CLAIMANT_REDIS_CLUSTER",
    meaning: "`on`: the URL of Redis is that of a cluster, such as Amazon MemoryDB; `off`: of a single server or its replicas (default `off`)",
};

/// All of claimant's own variables, for the documentation and for finding misspelt ones.
pub const VARIABLES: [Variable; 15] = [
    TABLE,
    DATABASE_URL,
    DATABASE_CONNECTIONS,
    REDIS_URL,
    REDIS_CLUSTER,
    CONCURRENCY,
    MARGIN,
    MAX_RECEIVE_COUNT,
    LOCAL_TIMEOUT,
    VISIBILITY,
    DEAD_LETTER_QUEUE_URL,
    BATCH,
    MAPPING_CHECK,
    METRICS,
    LOG_MESSAGES,
];

/// What is done about an event source mapping that would delete failed messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MappingCheck {
    /// Nobody looks.
    Off,
    /// The logs say so.
    #[default]
    Warn,
    /// A batch with failures is failed as a whole until the mapping was seen to report failures: nothing is deleted.
    Refuse,
}

/// The words for [`MappingCheck`], the default first.
const MAPPING_CHECKS: [(&str, MappingCheck); 3] =
    [("warn", MappingCheck::Warn), ("refuse", MappingCheck::Refuse), ("off", MappingCheck::Off)];

/// What the environment says.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The lock table's name, where one is set.
    pub table: Option<String>,
    /// The database, where one is set.
    pub database_url: Option<SecretUrl>,
    /// How many connections to the database there may be.
    pub database_connections: u32,
    /// Redis, where one is set.
    pub redis_url: Option<SecretUrl>,
    /// Whether Redis is a cluster.
    pub redis_cluster: bool,
    /// How many messages a process works on at once, where the consumer does not say.
    pub concurrency: usize,
    /// How long before the deadline the engine has returned.
    pub margin: Duration,
    /// After how many receives the queue gives a message to its dead-letter queue.
    pub max_receive_count: u32,
    /// The time-out where the runtime gives no real deadline.
    pub local_timeout: Duration,
    /// Whether the visibility of failed messages is changed.
    pub change_visibility: bool,
    /// The queue that rejected messages are sent to, where one is set.
    pub dead_letter_queue_url: Option<String>,
    /// Whether the store is asked for many messages at once.
    pub batch: bool,
    /// Whether the event source mapping is looked at.
    pub mapping_check: MappingCheck,
    /// Whether metrics are written.
    pub metrics: bool,
    /// Whether each message has a line of level `INFO` in the logs, not only at `DEBUG`.
    pub log_messages: bool,
}

impl Settings {
    /// Reads claimant's own variables from the environment. Those in `required` have to be set: those of claimant's that this
    /// function cannot do without, such as `CLAIMANT_TABLE`.
    ///
    /// # Errors
    /// One error that lists every fault: missing, empty or unreadable values, values out of bounds, and
    /// `CLAIMANT_` variables that do not exist (most likely misspelt).
    pub fn from_env(required: &[&str]) -> Result<Self, Error> {
        Self::from_env_with(required, |_| ()).map(|(settings, ())| settings)
    }

    /// Reads as [`from_env`](Self::from_env), and the function's own variables with it. What `own` makes of them is returned
    /// only if nothing is wrong with any variable.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), claimant_core::Error> {
    /// use claimant_core::Settings;
    ///
    /// struct Gateway {
    ///     url: String,
    ///     deduplicates: bool,
    /// }
    ///
    /// let (settings, gateway) = Settings::from_env_with(&["CLAIMANT_TABLE"], |own| Gateway {
    ///     url: own.text("GATEWAY_URL"),
    ///     deduplicates: own.choice("GATEWAY_DEDUPLICATES", [("yes", true), ("no", false)]),
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there: one error, with the faults of the function's own variables among the others.
    pub fn from_env_with<T>(
        required: &[&str],
        own: impl FnOnce(&mut OwnVariables<'_>) -> T,
    ) -> Result<(Self, T), Error> {
        let readable = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        Self::from_vars_with(readable.collect(), required, own)
    }

    /// Reads as [`from_env`](Self::from_env), from these variables.
    ///
    /// # Errors
    /// As there.
    pub fn from_vars(vars: BTreeMap<String, String>, required: &[&str]) -> Result<Self, Error> {
        Self::from_vars_with(vars, required, |_| ()).map(|(settings, ())| settings)
    }

    /// Reads as [`from_env_with`](Self::from_env_with), from these variables.
    ///
    /// # Errors
    /// As there.
    pub fn from_vars_with<T>(
        vars: BTreeMap<String, String>,
        required: &[&str],
        own: impl FnOnce(&mut OwnVariables<'_>) -> T,
    ) -> Result<(Self, T), Error> {
        let mut reader = Reader { vars, faults: Vec::new() };
        let settings = Self {
            table: reader.text(TABLE.name),
            database_url: reader.text(DATABASE_URL.name).map(SecretUrl::new),
            // OK because the bounds fit any u32.
            database_connections: reader.number(
                DATABASE_CONNECTIONS.name,
                limits::DATABASE_CONNECTIONS_DEFAULT.into(),
                1,
                limits::DATABASE_CONNECTIONS_MAX.into(),
            ) as u32,
            redis_url: reader.text(REDIS_URL.name).map(SecretUrl::new),
            redis_cluster: reader.switch(REDIS_CLUSTER.name, false),
            // OK because the bounds fit any usize.
            concurrency: reader.number(
                CONCURRENCY.name,
                limits::CONCURRENCY_DEFAULT as u64,
                1,
                limits::CONCURRENCY_MAX as u64,
            ) as usize,
            margin: reader.millis(MARGIN.name, limits::MARGIN_DEFAULT_MS, 50, limits::MARGIN_MAX_MS),
            // OK because the bounds fit any u32.
            max_receive_count: reader.number(
                MAX_RECEIVE_COUNT.name,
                limits::RECEIVES_MAX_DEFAULT.into(),
                1,
                limits::RECEIVES_MAX.into(),
            ) as u32,
            local_timeout: reader.millis(LOCAL_TIMEOUT.name, 30_000, 1_000, 900_000),
            change_visibility: reader.switch(VISIBILITY.name, true),
            dead_letter_queue_url: reader.queue_url(DEAD_LETTER_QUEUE_URL.name),
            batch: reader.switch(BATCH.name, true),
            mapping_check: reader.choice(MAPPING_CHECK.name, &MAPPING_CHECKS),
            metrics: reader.switch(METRICS.name, true),
            log_messages: reader.switch(LOG_MESSAGES.name, false),
        };
        for name in required {
            reader.required(name);
        }
        let own = own(&mut OwnVariables(&mut reader));
        reader.unknown_names();
        Error::unless_empty("the environment is not usable", &reader.faults)?;
        Ok((settings, own))
    }
}

/// Reads a function's own variables: see [`Settings::from_env_with`].
///
/// A variable that is missing, empty or not as it must be is noted, and a value in its place is returned, which nobody gets
/// to see: the whole ends in the one error with all faults.
#[derive(Debug)]
pub struct OwnVariables<'a>(&'a mut Reader);

impl OwnVariables<'_> {
    /// Returns the value of a variable that has to be set; in place of a fault, an empty text.
    pub fn text(&mut self, name: &str) -> String {
        self.0.required(name).unwrap_or_default()
    }

    /// Returns the value of a variable that may be left out. Set but empty is a fault.
    pub fn optional(&mut self, name: &str) -> Option<String> {
        self.0.text(name)
    }

    /// Returns the number that a variable, which has to be set, says; in place of a fault, the smallest one allowed.
    pub fn number(&mut self, name: &str, allowed: RangeInclusive<u64>) -> u64 {
        let (min, max) = allowed.into_inner();
        self.0.required(name);
        self.0.number(name, min, min, max)
    }

    /// Returns what one of these words stands for, which a variable, which has to be set, says; in place of a fault, what
    /// the first one does.
    pub fn choice<C: Copy, const WORDS: usize>(&mut self, name: &str, choices: [(&str, C); WORDS]) -> C {
        const { assert!(WORDS > 0, "a choice needs words to choose from") };
        self.0.required(name);
        self.0.choice(name, &choices)
    }
}

#[derive(Debug)]
struct Reader {
    vars: BTreeMap<String, String>,
    faults: Vec<String>,
}

impl Reader {
    /// The value, if it is set and not blank. A blank one is a fault: a template left a reference unresolved.
    fn text(&mut self, name: &str) -> Option<String> {
        let value = self.vars.get(name)?;
        if value.trim().is_empty() {
            self.fault(format!("{name} is set but empty: give it a value or remove it"));
            return None;
        }
        Some(value.clone())
    }

    /// Notes a fault, once: a variable can be claimant's own and required too.
    fn fault(&mut self, fault: String) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn required(&mut self, name: &str) -> Option<String> {
        if !self.vars.contains_key(name) {
            self.fault(format!("{name} is not set"));
        }
        self.text(name)
    }

    fn number(&mut self, name: &str, default: u64, min: u64, max: u64) -> u64 {
        let Some(text) = self.text(name) else { return default };
        match text.parse() {
            Ok(n) if (min..=max).contains(&n) => n,
            _ => {
                self.faults.push(format!("{name} is {text:?}; a whole number from {min} to {max} is needed"));
                default
            }
        }
    }

    fn millis(&mut self, name: &str, default: u64, min: u64, max: u64) -> Duration {
        Duration::from_millis(self.number(name, default, min, max))
    }

    fn switch(&mut self, name: &str, default: bool) -> bool {
        let choices = if default { [("on", true), ("off", false)] } else { [("off", false), ("on", true)] };
        self.choice(name, &choices)
    }

    /// One of several words; the first one is the default.
    fn choice<C: Copy>(&mut self, name: &str, choices: &[(&str, C)]) -> C {
        let default = choices[0].1;
        let Some(text) = self.text(name) else { return default };
        if let Some((_, choice)) = choices.iter().find(|(word, _)| *word == text) {
            return *choice;
        }
        let words: Vec<_> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
        self.faults.push(format!("{name} is {text:?}; {} is needed", words.join(" or ")));
        default
    }

    /// A queue's URL. Its name and ARN, which are taken for it by mistake, have no scheme.
    fn queue_url(&mut self, name: &str) -> Option<String> {
        let url = self.text(name)?;
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let host_and_path = rest.and_then(|rest| rest.split_once('/'));
        let whole = host_and_path.is_some_and(|(host, path)| !host.is_empty() && !path.is_empty());
        if !whole || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            self.faults.push(format!(
                "{name} is {url:?}; a queue's URL is needed, such as https://sqs.eu-west-1.amazonaws.com/123456789012/name, not its name or ARN"
            ));
            return None;
        }
        Some(url)
    }

    fn unknown_names(&mut self) {
        let known = |name: &str| VARIABLES.iter().any(|v| v.name == name);
        let unknown: Vec<&String> = self.vars.keys().filter(|n| n.starts_with(PREFIX) && !known(n)).collect();
        for name in unknown {
            let names: Vec<_> = VARIABLES.iter().map(|v| v.name).collect();
            self.faults.push(format!("{name} is no variable of claimant: there are {}", names.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)], required: &[&str]) -> Result<Settings, Error> {
        Settings::from_vars(vars.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(), required)
    }

    #[test]
    fn defaults_and_values() {
        let defaults = read(&[("PATH", "/bin")], &[]).unwrap();
        assert_eq!((defaults.concurrency, defaults.change_visibility), (10, true));
        assert_eq!((defaults.batch, defaults.metrics, defaults.mapping_check), (true, true, MappingCheck::Warn));
        assert_eq!(defaults.dead_letter_queue_url, None);
        assert_eq!((defaults.redis_url, defaults.redis_cluster), (None, false));
        let set = read(&[("CLAIMANT_TABLE", "locks"), ("CLAIMANT_MARGIN_MS", "50")], &["CLAIMANT_TABLE"]).unwrap();
        assert_eq!((set.table.as_deref(), set.margin), (Some("locks"), Duration::from_millis(50)));
        let url = ("CLAIMANT_DATABASE_URL", "postgres://claimant:secret@host/database");
        let set = read(&[url, ("CLAIMANT_DATABASE_CONNECTIONS", "3")], &[]).unwrap();
        assert_eq!((set.database_url.as_ref().unwrap().expose(), set.database_connections), (url.1, 3));
        assert!(!format!("{set:?}").contains("secret"));
        let redis = "rediss://user:secret@host:6379/0";
        let set = read(&[("CLAIMANT_REDIS_URL", redis), ("CLAIMANT_REDIS_CLUSTER", "on")], &[]).unwrap();
        assert!(set.redis_cluster && !format!("{set:?}").contains("secret"));
        assert_eq!(set.redis_url.unwrap().expose(), redis);
        let url = "https://sqs.eu-west-1.amazonaws.com/123456789012/dead.fifo";
        let vars = [
            ("CLAIMANT_BATCH", "off"),
            ("CLAIMANT_METRICS", "off"),
            ("CLAIMANT_MAPPING_CHECK", "refuse"),
            ("CLAIMANT_DEAD_LETTER_QUEUE_URL", url),
        ];
        let set = read(&vars, &[]).unwrap();
        assert_eq!((set.batch, set.metrics, set.mapping_check), (false, false, MappingCheck::Refuse));
        assert_eq!(set.dead_letter_queue_url.as_deref(), Some(url));
    }

    #[test]
    fn a_queue_is_named_by_its_url() {
        for (value, good) in [
            ("http://127.0.0.1:9324/000000000000/dead", true),
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/dead", true),
            ("arn:aws:sqs:eu-west-1:123456789012:dead", false),
            ("dead", false),
            ("https://", false),
            ("https://sqs.eu-west-1.amazonaws.com/", false),
            ("https://sqs.eu-west-1.amazonaws.com/1/a b", false),
        ] {
            let settings = read(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", value)], &[]);
            assert_eq!(settings.is_ok(), good, "{value}");
        }
    }

    #[test]
    fn every_fault_stands_in_one_message() {
        let vars = [
            ("CLAIMANT_TABLE", " "),
            ("CLAIMANT_CONCURRENCY", "0"),
            ("CLAIMANT_MARGIN_MS", "soon"),
            ("CLAIMANT_VISIBILITY", "yes"),
            ("CLAIMANT_MAPPING_CHECK", "on"),
            ("CLAIMANT_DEAD_LETTER_QUEUE_URL", "dead"),
            ("CLAIMANT_TABEL", "locks"),
        ];
        let text = read(&vars, &["SENDER"]).unwrap_err().to_string();
        let wanted = [
            "8 faults",
            "CLAIMANT_TABLE is set but empty",
            "CLAIMANT_CONCURRENCY is \"0\"",
            "from 1 to 1000",
            "CLAIMANT_MARGIN_MS",
            "`on` or `off`",
            "CLAIMANT_MAPPING_CHECK is \"on\"; `warn` or `refuse` or `off` is needed",
            "not its name or ARN",
            "CLAIMANT_TABEL is no variable",
            "SENDER is not set",
        ];
        for wanted in wanted {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
    }

    type Vars<'a> = &'a [(&'a str, &'a str)];

    /// A function's own variables, each in its own way.
    fn own(vars: Vars<'_>) -> Result<(String, Option<String>, u64, bool), Error> {
        let vars = vars.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let read = Settings::from_vars_with(vars, &["CLAIMANT_TABLE"], |own| {
            let deduplicates = own.choice("DEDUPLICATES", [("yes", true), ("no", false)]);
            (own.text("SENDER"), own.optional("COPY"), own.number("CENTS_MAX", 1..=500), deduplicates)
        });
        read.map(|(_, own)| own)
    }

    #[test]
    fn a_functions_own_variables_are_read_with_claimants() {
        let vars = [("CLAIMANT_TABLE", "locks"), ("SENDER", "a@b.c"), ("CENTS_MAX", "500"), ("DEDUPLICATES", "no")];
        assert_eq!(own(&vars).unwrap(), ("a@b.c".into(), None, 500, false));
        let more = [&vars[..], &[("COPY", "d@e.f")]].concat();
        assert_eq!(own(&more).unwrap().1.as_deref(), Some("d@e.f"));
    }

    #[test]
    fn faults_of_own_variables_stand_among_the_others() {
        let none =
            ["CLAIMANT_TABLE is not set", "SENDER is not set", "CENTS_MAX is not set", "DEDUPLICATES is not set"];
        let empty = ["CLAIMANT_TABLE", "SENDER", "COPY", "CENTS_MAX", "DEDUPLICATES"];
        let is_empty = empty.map(|name| format!("{name} is set but empty"));
        let bad = [
            ("CLAIMANT_TABEL", "x"),
            ("CLAIMANT_TABLE", "x"),
            ("SENDER", "x"),
            ("CENTS_MAX", "501"),
            ("DEDUPLICATES", "on"),
        ];
        let is_bad = [
            "CLAIMANT_TABEL is no variable",
            "CENTS_MAX is \"501\"; a whole number from 1 to 500",
            "DEDUPLICATES is \"on\"; `yes` or `no`",
        ];
        let rows: [(Vars<'_>, &[&str]); 3] =
            [(&[], &none), (&empty.map(|name| (name, " ")), &is_empty.each_ref().map(String::as_str)), (&bad, &is_bad)];
        for (vars, wanted) in rows {
            let text = own(vars).unwrap_err().to_string();
            assert!(text.contains(&format!("{} faults", wanted.len())), "{text}");
            for wanted in wanted {
                assert!(text.contains(wanted), "{wanted} in {text}");
            }
        }
    }
}
