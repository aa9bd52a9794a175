//! Checks whether the event source mapping reports failures; if it does not, Lambda deletes failed messages.
//!
//! | answer | `warn` | `refuse` |
//! | --- | --- | --- |
//! | it reports them | nothing | nothing |
//! | it does not | an error in the logs | the same, and a batch with failures is failed as a whole |
//! | no permission, no mapping found, or no response | logged once | an error in the logs, and a batch with failures is failed as a whole |
//!
//! The request is sent when a batch has failures, and never before: batches without failures do not need the answer. In `warn` it
//! is sent in the background after a delay of up to a minute, derived from the failed message's id: if the store is unavailable,
//! a whole fleet fails at once, and Lambda's API allows an account few requests a second. In `refuse` the batch waits for the
//! answer within the time that it has left; the delay is then at most a quarter of that time, and at most a second. The request is
//! repeated, a minute later at the earliest, if no answer came, and in `refuse` until the mapping reports failures.
//!
//! In `refuse`, an unknown answer counts as the worst: a batch that is failed as a whole is redelivered, a deleted message is not.
//! Its completed messages are then skipped as duplicates, so only deliveries are spent.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_config::SdkConfig;
use claimant_aws::intake::Api;
use claimant_aws::mapping::Mappings;
use claimant_aws::signed::Service;
use claimant_core::{Clock, ErrorKind};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::settings::MappingPolicy;

/// The shortest time between two lookups.
const REPEAT_AFTER_MS: u64 = 60_000;

/// The longest delay of a lookup in `warn`, over which those of a fleet are spread.
const SPREAD_MS: u64 = 60_000;

/// The longest delay in `refuse`, where a batch waits for the answer; a quarter of the batch's remaining time if that is less.
const SPREAD_REFUSING_MS: u64 = 1_000;

/// What is known of the mappings of a function and a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Answer {
    Reports,
    /// At least one deletes failed messages.
    Deletes,
    NotFound,
    Denied,
    None,
}

impl Answer {
    fn of(page: &Mappings) -> Self {
        let all = &page.event_source_mappings;
        // One that is being disabled still deletes what the batches in flight do not report.
        let mut judged: Vec<_> = all.iter().filter(|mapping| mapping.state.as_deref() != Some("Disabled")).collect();
        // The one that sent the batch is paused by now, and goes on as it is set.
        if judged.is_empty() {
            judged.extend(all);
        }
        match judged.iter().all(|mapping| mapping.reports_failures()) {
            false => Self::Deletes,
            // More than are on one page: the others are not known.
            true if page.next_marker.is_some() => Self::None,
            true if judged.is_empty() => Self::NotFound,
            true => Self::Reports,
        }
    }

    /// Returns what is wrong and how to fix it.
    const fn fault(self) -> &'static str {
        match self {
            Self::Reports => "the event source mapping reports failures",
            Self::Deletes => {
                "the event source mapping of this function and queue lacks ReportBatchItemFailures, so Lambda deletes failed \
                 messages with the rest of their batch: add FunctionResponseTypes: [ReportBatchItemFailures] to it"
            }
            Self::NotFound => {
                "no event source mapping of this function and queue was found, so whether failed messages are deleted is not known"
            }
            Self::Denied => {
                "whether the event source mapping deletes failed messages is not known, because the function's role lacks a permission: \
                 allow it lambda:ListEventSourceMappings (on resource *), or, without CLAIMANT_RESUME_ROLE_ARN, set \
                 CLAIMANT_MAPPING_CHECK=off"
            }
            Self::None => {
                "whether the event source mapping deletes failed messages is not known, because Lambda's API gave no answer"
            }
        }
    }
}

/// Function and queue, by their ARNs.
type Pair = (String, String);

/// One lookup, and its answer once that has arrived.
struct Lookup {
    sent_at: Instant,
    answer: watch::Receiver<Option<Answer>>,
}

/// Checks event source mappings, once for each that invokes this process.
pub(crate) struct MappingCheck {
    refuses: bool,
    config: SdkConfig,
    lookups: Mutex<HashMap<Pair, Lookup>>,
    logged: Arc<Mutex<HashSet<Answer>>>,
}

impl MappingCheck {
    /// Returns a check with this policy; `None` if it is off.
    pub(crate) fn new(policy: MappingPolicy, config: &SdkConfig) -> Option<Self> {
        let refuses = match policy {
            MappingPolicy::Off => return None,
            MappingPolicy::Warn => false,
            MappingPolicy::Refuse => true,
        };
        Some(Self { refuses, config: config.clone(), lookups: Mutex::default(), logged: Arc::default() })
    }

    /// Returns whether a batch with failures waits for an answer.
    pub(crate) const fn refuses(&self) -> bool {
        self.refuses
    }

    /// Starts a lookup in the background, unless there was one before or there is no API to call: outside Lambda, as
    /// under `claimant local` and `cargo lambda watch`, unless `AWS_ENDPOINT_URL_LAMBDA` is set. `failed` is a message that
    /// failed, `within` the time left for an answer; the request is signed with the time of `clock`.
    pub(crate) fn start(
        &self,
        (function_arn, source_arn): (&str, &str),
        failed: &str,
        within: Duration,
        clock: &Arc<dyn Clock>,
    ) -> Option<Pending> {
        if !is_on_lambda(function_arn) && Service::LAMBDA.set_endpoint(&self.config).is_none() {
            return None;
        }
        let pair = (function_arn.to_owned(), source_arn.to_owned());
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        let lookup = match lookups.get(&pair) {
            Some(lookup) if !self.should_repeat(lookup) => lookup,
            _ => {
                let (sender, answer) = watch::channel(None);
                let sent_at = Instant::now() + self.spread(failed, within);
                tokio::spawn(self.answer(pair.clone(), sent_at, Arc::clone(clock), sender));
                lookups.insert(pair.clone(), Lookup { sent_at, answer });
                &lookups[&pair]
            }
        };
        Some(Pending(lookup.answer.clone()))
    }

    fn should_repeat(&self, lookup: &Lookup) -> bool {
        let answer = *lookup.answer.borrow();
        let wanted = match answer {
            // The task that should send the answer may be gone.
            Some(Answer::None) | None => true,
            Some(Answer::Reports) => false,
            Some(_) => self.refuses,
        };
        wanted && lookup.sent_at.elapsed() >= Duration::from_millis(REPEAT_AFTER_MS)
    }

    /// Returns the delay before the lookup is sent.
    fn spread(&self, failed: &str, within: Duration) -> Duration {
        let most = match self.refuses {
            true => (within / 4).min(Duration::from_millis(SPREAD_REFUSING_MS)),
            false => Duration::from_millis(SPREAD_MS),
        };
        let part = failed.bytes().fold(0_u8, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte));
        most * u32::from(part) / u32::from(u8::MAX)
    }

    fn answer(
        &self,
        (function_arn, source_arn): Pair,
        sent_at: Instant,
        clock: Arc<dyn Clock>,
        sender: watch::Sender<Option<Answer>>,
    ) -> impl Future<Output = ()> + use<> {
        let (config, logged, refuses) = (self.config.clone(), Arc::clone(&self.logged), self.refuses);
        async move {
            sleep_until(sent_at).await;
            let api = Api { config: &config, near: &function_arn, clock: clock.as_ref() };
            let answer = match api.list_mappings(&function_arn, &source_arn).await {
                Ok(page) => Answer::of(&page),
                Err(error) if error.kind() == ErrorKind::Refused => Answer::Denied,
                Err(error) => {
                    tracing::debug!(?error, "the event source mapping could not be checked");
                    Answer::None
                }
            };
            if logged.lock().unwrap_or_else(PoisonError::into_inner).insert(answer) {
                log(answer, refuses);
            }
            // No receiver is left if the invocation is over.
            let _ = sender.send(Some(answer));
        }
    }
}

fn log(answer: Answer, refuses: bool) {
    let what = answer.fault();
    match answer {
        Answer::Reports => tracing::debug!("{what}"),
        _ if refuses => tracing::error!(
            "{what}. Until it is seen to report them, a batch with failures is failed as a whole (CLAIMANT_MAPPING_CHECK=refuse)"
        ),
        Answer::Deletes => tracing::error!("{what}"),
        Answer::Denied => tracing::warn!("{what}"),
        Answer::NotFound | Answer::None => tracing::info!("{what}"),
    }
}

/// An answer that may still be on its way.
pub(crate) struct Pending(watch::Receiver<Option<Answer>>);

impl Pending {
    /// Waits for the answer, this long at most, and returns why failures must not be reported, if so.
    pub(crate) async fn fault(&mut self, within: Duration) -> Option<&'static str> {
        let answer = timeout(within, self.0.wait_for(Option::is_some)).await;
        // No time is left, or the task is gone: not known.
        let answer = answer.ok().and_then(Result::ok).and_then(|answer| *answer).unwrap_or(Answer::None);
        (answer != Answer::Reports).then(|| answer.fault())
    }
}

/// Returns whether this is the ARN of a function on Lambda: local runtimes pass none, or one of the account 000000000000.
pub(crate) fn is_on_lambda(function_arn: &str) -> bool {
    let parts: Vec<&str> = function_arn.splitn(7, ':').collect();
    let ["arn", _, "lambda", _, account, "function", _] = parts[..] else { return false };
    account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit()) && account != "000000000000"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_needs_every_live_mapping_to_report() {
        let reporting = r#"{"State":"Enabled","FunctionResponseTypes":["ReportBatchItemFailures"]}"#;
        let disabled = r#"{"State":"Disabled","FunctionResponseTypes":[]}"#;
        for (mappings, wanted) in [
            (reporting.to_owned(), Answer::Reports),
            (format!("{reporting},{disabled}"), Answer::Reports),
            (format!("{reporting},{{\"State\":\"Updating\"}}"), Answer::Deletes),
            (r#"{"State":"Enabled","FunctionResponseTypes":[]}"#.to_owned(), Answer::Deletes),
            (r#"{"FunctionResponseTypes":null}"#.to_owned(), Answer::Deletes),
            (disabled.to_owned(), Answer::Deletes),
            (reporting.replace("Enabled", "Disabled"), Answer::Reports),
            (r#"{"State":"Disabling","FunctionResponseTypes":[]}"#.to_owned(), Answer::Deletes),
            (String::new(), Answer::NotFound),
        ] {
            let page = format!(r#"{{"EventSourceMappings":[{mappings}]}}"#);
            assert_eq!(Answer::of(&serde_json::from_str(&page).unwrap()), wanted, "{page}");
        }
        let paged = r#"{"EventSourceMappings":[],"NextMarker":"x"}"#;
        assert_eq!(Answer::of(&serde_json::from_str(paged).unwrap()), Answer::None);
    }

    #[test]
    fn only_functions_on_lambda_have_an_api_to_ask() {
        for (arn, wanted) in [
            ("arn:aws:lambda:eu-west-1:123456789012:function:f", true),
            ("arn:aws-cn:lambda:cn-north-1:123456789012:function:f:live", true),
            ("arn:aws:lambda:us-east-1:000000000000:function:f", false),
            ("function-arn", false),
            ("", false),
        ] {
            assert_eq!(is_on_lambda(arn), wanted, "{arn}");
        }
    }
}
