//! The settings of a function's invocations, read from its environment.

use std::time::Duration;

use claimant_core::{Error, Variables, limits};

use crate::schedules::ScheduleSettings;

/// Bounds and default of `CLAIMANT_LOCAL_TIMEOUT_MS`.
const LOCAL_TIMEOUT_MIN_MS: u64 = 1_000;
const LOCAL_TIMEOUT_MAX_MS: u64 = 900_000;
const LOCAL_TIMEOUT_DEFAULT_MS: u64 = 30_000;

/// The least of `CLAIMANT_MARGIN_MS`.
const MARGIN_MIN_MS: u64 = 50;

/// What a function does about an event source mapping that would delete failed messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MappingPolicy {
    /// Disabled.
    Off,
    /// Logs it.
    Warn,
    /// Fails a batch with failures as a whole until the mapping was seen to report failures, so that nothing is deleted.
    Refuse,
}

/// The settings of a function's invocations, read from its environment.
///
/// | variable | meaning | bounds | default |
/// | --- | --- | --- | --- |
/// | `CLAIMANT_CONCURRENCY` | messages of each consumer that one process works on at once, where the consumer does not say; of a batch consumer a full call at least | 1 to 1000 | 10 |
/// | `CLAIMANT_MARGIN_MS` | how long before the deadline the function has returned, in milliseconds | 50 to 60000 | 500 |
/// | `CLAIMANT_MAX_RECEIVE_COUNT` | `maxReceiveCount` of the queue's redrive policy; a message with one receive left that was not started is logged, and one that fails on its last receive is not hidden for a backoff | 1 to 1000 | unset: 5 is assumed, also where a breaker holds messages back and for whose turn is next, and every failure backs off |
/// | `CLAIMANT_LOCAL_TIMEOUT_MS` | timeout where the runtime gives no real deadline, as `cargo lambda watch` does, in milliseconds | 1000 to 900000 | 30000 |
/// | `CLAIMANT_VISIBILITY` | `on`: failed messages come back after their backoff, and those with renewed leases stay hidden (needs `sqs:ChangeMessageVisibility`); `off`: all come back after the queue's visibility timeout | `on`, `off` | `on` |
/// | `CLAIMANT_DEAD_LETTER_QUEUE_URL` | the queue that rejected and parked messages are sent to at once (needs `sqs:SendMessage`); unset: they wait for the redrive of their own queue | a queue's URL | unset |
/// | `CLAIMANT_SCHEDULE_ROLE_ARN` | the role in whose name EventBridge Scheduler sends messages again that their handlers want later than a queue can hide them (needs `scheduler:CreateSchedule`, `scheduler:GetSchedule`, `iam:PassRole`, and the feature `scheduler`); unset: they come back after 11 h 45 min | a role's ARN | unset |
/// | `CLAIMANT_SCHEDULE_DEAD_LETTER_ARN` | the standard queue for messages that EventBridge Scheduler could not send for a day; needed together with the role | a queue's ARN | unset |
/// | `CLAIMANT_MAPPING_CHECK` | whether the function checks that its event source mapping has `ReportBatchItemFailures`, without which Lambda deletes failed messages (needs `lambda:ListEventSourceMappings`); `warn`: logs it; `refuse`: also fails a whole batch with failures until the mapping was seen to have it | `warn`, `refuse`, `off` | `warn` |
/// | `CLAIMANT_RESUME_ROLE_ARN` | an open breaker pauses the event source mapping, and a schedule switches it on again in the name of this role (needs `lambda:ListEventSourceMappings`, `lambda:UpdateEventSourceMapping`, `scheduler:CreateSchedule`, `scheduler:ListSchedules`, and `iam:PassRole` for it); unset: messages are held back in their invocations | a role's ARN | unset |
/// | `CLAIMANT_METRICS` | `on`: the line of each batch is a CloudWatch Embedded Metric Format record on standard output, which Lambda takes for a line of level INFO; `off`: it is a plain line of the log | `on`, `off` | `on` |
/// | `CLAIMANT_LOG_MESSAGES` | `on`: lines of level INFO for each message: its claim, with owner, fence and lease, and its outcome, with attempt and durations; `off`: only at level DEBUG | `on`, `off` | `off` |
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod lambda { pub use claimant_lambda::*; } }
/// use claimant::Variables;
/// use claimant::lambda::Settings;
///
/// let mut variables = Variables::new([("CLAIMANT_CONCURRENCY", "20"), ("CLAIMANT_METRICS", "off")]);
/// Settings::read(&mut variables);
/// variables.finish()?;
/// # Ok::<_, claimant::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Settings {
    pub(crate) concurrency: usize,
    pub(crate) margin: Duration,
    pub(crate) max_receive_count: Option<u32>,
    pub(crate) local_timeout: Duration,
    pub(crate) change_visibility: bool,
    pub(crate) dead_letter_queue_url: Option<String>,
    pub(crate) scheduler: SchedulerSettings,
    pub(crate) mapping_check: MappingPolicy,
    pub(crate) metrics: bool,
    pub(crate) log_messages: bool,
}

/// For what EventBridge Scheduler is asked.
#[derive(Debug, Clone)]
pub(crate) struct SchedulerSettings {
    /// To send messages again.
    pub(crate) again: Option<ScheduleSettings>,
    /// To switch a paused intake on again: in whose name.
    pub(crate) resume_role_arn: Option<String>,
}

impl Settings {
    /// Reads the settings; the reader keeps their faults.
    pub fn read(variables: &mut Variables) -> Self {
        let millis = |variables: &mut Variables, name, (min, max, default)| {
            Duration::from_millis(variables.optional_number(name, min..=max).unwrap_or(default))
        };
        // OK because usize has 32 bits at least.
        let concurrency_max = limits::CONCURRENCY_MAX as u64;
        let concurrency = variables.optional_number("CLAIMANT_CONCURRENCY", 1..=concurrency_max);
        let margins = (MARGIN_MIN_MS, limits::MARGIN_MAX_MS, limits::MARGIN_DEFAULT_MS);
        let receives = variables.optional_number("CLAIMANT_MAX_RECEIVE_COUNT", 1..=limits::RECEIVES_MAX.into());
        let local_timeouts = (LOCAL_TIMEOUT_MIN_MS, LOCAL_TIMEOUT_MAX_MS, LOCAL_TIMEOUT_DEFAULT_MS);
        let policies = [("warn", MappingPolicy::Warn), ("refuse", MappingPolicy::Refuse), ("off", MappingPolicy::Off)];
        Self {
            // OK because the bounds fit any usize.
            concurrency: concurrency.map_or(limits::CONCURRENCY_DEFAULT, |count| count as usize),
            margin: millis(variables, "CLAIMANT_MARGIN_MS", margins),
            // OK because the bounds fit any u32.
            max_receive_count: receives.map(|count| count as u32),
            local_timeout: millis(variables, "CLAIMANT_LOCAL_TIMEOUT_MS", local_timeouts),
            change_visibility: variables.optional_switch("CLAIMANT_VISIBILITY").unwrap_or(true),
            dead_letter_queue_url: claimant_aws::optional_queue_url(variables, "CLAIMANT_DEAD_LETTER_QUEUE_URL"),
            scheduler: SchedulerSettings {
                again: ScheduleSettings::read(variables),
                resume_role_arn: claimant_aws::optional_role_arn(variables, "CLAIMANT_RESUME_ROLE_ARN"),
            },
            mapping_check: variables.optional_choice("CLAIMANT_MAPPING_CHECK", policies).unwrap_or(MappingPolicy::Warn),
            metrics: variables.optional_switch("CLAIMANT_METRICS").unwrap_or(true),
            log_messages: variables.optional_switch("CLAIMANT_LOG_MESSAGES").unwrap_or(false),
        }
    }

    /// Returns the settings in these variables.
    ///
    /// # Errors
    /// One error that lists every fault.
    pub fn from_variables(mut variables: Variables) -> Result<Self, Error> {
        let settings = Self::read(&mut variables);
        variables.finish().map(|()| settings)
    }

    /// Returns whether something is switched on for which a function asks AWS.
    pub(crate) fn asks_aws(&self) -> bool {
        self.change_visibility
            || self.dead_letter_queue_url.is_some()
            || self.scheduler.again.is_some()
            || self.scheduler.resume_role_arn.is_some()
            || self.mapping_check != MappingPolicy::Off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Result<Settings, Error> {
        Settings::from_variables(Variables::new(vars.iter().copied()).refuse_unknown())
    }

    #[test]
    fn defaults_and_values() {
        let defaults = read(&[("PATH", "/bin")]).unwrap();
        assert_eq!((defaults.concurrency, defaults.max_receive_count), (10, None));
        assert_eq!((defaults.margin, defaults.local_timeout), (Duration::from_millis(500), Duration::from_secs(30)));
        assert_eq!((defaults.change_visibility, defaults.metrics, defaults.log_messages), (true, true, false));
        assert_eq!((defaults.mapping_check, defaults.dead_letter_queue_url), (MappingPolicy::Warn, None));
        let url = "https://sqs.eu-west-1.amazonaws.com/123456789012/dead.fifo";
        let set = read(&[
            ("CLAIMANT_CONCURRENCY", "1000"),
            ("CLAIMANT_MARGIN_MS", "50"),
            ("CLAIMANT_MAX_RECEIVE_COUNT", "1"),
            ("CLAIMANT_LOCAL_TIMEOUT_MS", "1000"),
            ("CLAIMANT_VISIBILITY", "off"),
            ("CLAIMANT_DEAD_LETTER_QUEUE_URL", url),
            ("CLAIMANT_MAPPING_CHECK", "refuse"),
            ("CLAIMANT_RESUME_ROLE_ARN", "arn:aws:iam::123456789012:role/resume"),
            ("CLAIMANT_METRICS", "off"),
            ("CLAIMANT_LOG_MESSAGES", "on"),
        ])
        .unwrap();
        assert_eq!((set.concurrency, set.max_receive_count), (1_000, Some(1)));
        assert_eq!((set.margin, set.local_timeout), (Duration::from_millis(50), Duration::from_secs(1)));
        assert_eq!((set.change_visibility, set.metrics, set.log_messages), (false, false, true));
        assert_eq!(set.mapping_check, MappingPolicy::Refuse);
        assert_eq!(set.dead_letter_queue_url.as_deref(), Some(url));
        assert_eq!(set.scheduler.resume_role_arn.as_deref(), Some("arn:aws:iam::123456789012:role/resume"));
    }

    #[test]
    fn each_of_five_settings_alone_has_a_function_ask_aws() {
        let off = [("CLAIMANT_VISIBILITY", "off"), ("CLAIMANT_MAPPING_CHECK", "off")];
        assert!(!read(&off).unwrap().asks_aws());
        let role = "arn:aws:iam::123456789012:role/r";
        for vars in [
            &[("CLAIMANT_VISIBILITY", "off")][..],
            &[("CLAIMANT_MAPPING_CHECK", "off")],
            &[
                off[0],
                off[1],
                ("CLAIMANT_DEAD_LETTER_QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/123456789012/dead"),
            ],
            &[off[0], off[1], ("CLAIMANT_RESUME_ROLE_ARN", role)],
        ] {
            assert!(read(vars).unwrap().asks_aws(), "{vars:?}");
        }
        // They can be set with the feature `scheduler` only.
        let again = ScheduleSettings { role_arn: role.to_owned(), dead_letter_arn: String::new() };
        let mut settings = read(&off).unwrap();
        settings.scheduler.again = Some(again);
        assert!(settings.asks_aws());
    }

    #[test]
    fn values_out_of_bounds_are_all_named() {
        let text = read(&[
            ("CLAIMANT_CONCURRENCY", "0"),
            ("CLAIMANT_MARGIN_MS", "49"),
            ("CLAIMANT_MAX_RECEIVE_COUNT", "1001"),
            ("CLAIMANT_LOCAL_TIMEOUT_MS", "999"),
            ("CLAIMANT_VISIBILITY", "yes"),
            ("CLAIMANT_DEAD_LETTER_QUEUE_URL", "dead"),
            ("CLAIMANT_MAPPING_CHECK", "on"),
            ("CLAIMANT_RESUME_ROLE_ARN", "resume"),
            ("CLAIMANT_METRICS", "1"),
            ("CLAIMANT_LOG_MESSAGES", "true"),
        ])
        .unwrap_err()
        .to_string();
        let wanted = [
            "10 faults",
            "CLAIMANT_CONCURRENCY is \"0\"; a whole number from 1 to 1000",
            "CLAIMANT_MARGIN_MS is \"49\"; a whole number from 50 to 60000",
            "CLAIMANT_MAX_RECEIVE_COUNT is \"1001\"; a whole number from 1 to 1000",
            "CLAIMANT_LOCAL_TIMEOUT_MS is \"999\"; a whole number from 1000 to 900000",
            "CLAIMANT_VISIBILITY is \"yes\"; `on` or `off` is needed",
            "CLAIMANT_DEAD_LETTER_QUEUE_URL is \"dead\"",
            "CLAIMANT_MAPPING_CHECK is \"on\"; `warn` or `refuse` or `off` is needed",
            "CLAIMANT_RESUME_ROLE_ARN is \"resume\"; a role's ARN is needed",
            "CLAIMANT_METRICS is \"1\"",
            "CLAIMANT_LOG_MESSAGES is \"true\"",
        ];
        for wanted in wanted {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
    }
}
