//! Strict start: does the event source mapping report failures, or would Lambda delete them?
//!
//! | answer | `warn` | `refuse` |
//! | --- | --- | --- |
//! | it reports them | nothing | nothing |
//! | it does not | an error in the logs | the same, and a batch with failures is failed as a whole |
//! | the function may not look, no mapping was found, no answer | said once | the same |
//!
//! The question is put when a batch has failures, and never before: batches without any need no answer. In `warn` it waits for up
//! to a minute, by the failed message's id, and is put in the background, since a fleet whose store is away fails all at once and
//! Lambda's API answers few requests a second to a whole account. In `refuse` the batch waits for the answer within the
//! time that it has left, of which at most a quarter, and at most a second, goes before the question. It is put again, a minute later at the
//! earliest, where no answer came, and in `refuse` until the mapping reports failures.
//!
//! In `refuse` not knowing counts as the worst: a batch that is failed as a whole comes back, a deleted message does not.
//! What such a batch had done is seen to be done when it comes again, so only deliveries are spent.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_config::SdkConfig;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::list_mappings::{NoPage, Page, list_mappings, set_endpoint};
use crate::settings::MappingPolicy;

/// How long after one question the next is put, where there has to be a next.
const ASK_AGAIN_MS: u64 = 60_000;

/// For how long the questions of a fleet are spread, in `warn`.
const SPREAD_MS: u64 = 60_000;

/// And in `refuse`, where a batch waits for the answer: a quarter of the time that it has left, and this at most.
const SPREAD_REFUSING_MS: u64 = 1_000;

/// What a mapping says that reports failures.
const REPORTS: &str = "ReportBatchItemFailures";

/// What is known of the mappings of a function and a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Answer {
    Reports,
    /// At least one that is not disabled deletes failed messages.
    Deletes,
    NotFound,
    Denied,
    None,
}

impl Answer {
    fn of(page: &Page) -> Self {
        let mappings = &page.event_source_mappings;
        let live: Vec<_> = mappings.iter().filter(|mapping| mapping.state.as_deref() != Some("Disabled")).collect();
        let reports = |types: &[String]| types.iter().any(|kind| kind == REPORTS);
        match live.iter().all(|mapping| mapping.function_response_types.as_deref().is_some_and(reports)) {
            false => Self::Deletes,
            // More than are on one page: the others are not known.
            true if page.next_marker.is_some() => Self::None,
            true if live.is_empty() => Self::NotFound,
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
                "whether the event source mapping deletes failed messages is not known, because the function's role may not look: \
                 allow it lambda:ListEventSourceMappings (on resource *), or set CLAIMANT_MAPPING_CHECK=off"
            }
            Self::None => {
                "whether the event source mapping deletes failed messages is not known, because Lambda's API gave no answer"
            }
        }
    }
}

/// Function and queue, by their ARNs.
type Pair = (String, String);

/// One question, and its answer once there is one.
struct Question {
    asked_at: Instant,
    answer: watch::Receiver<Option<Answer>>,
}

/// Looks at event source mappings, once for each that invokes this process.
pub(crate) struct MappingCheck {
    refuses: bool,
    config: SdkConfig,
    questions: Mutex<HashMap<Pair, Question>>,
    said: Arc<Mutex<HashSet<Answer>>>,
}

impl MappingCheck {
    /// Returns a check of this policy; none where it is off.
    pub(crate) fn new(policy: MappingPolicy, config: &SdkConfig) -> Option<Self> {
        let refuses = match policy {
            MappingPolicy::Off => return None,
            MappingPolicy::Warn => false,
            MappingPolicy::Refuse => true,
        };
        Some(Self { refuses, config: config.clone(), questions: Mutex::default(), said: Arc::default() })
    }

    /// Whether failures may have to wait for an answer.
    pub(crate) const fn refuses(&self) -> bool {
        self.refuses
    }

    /// Puts the question in the background, unless it was put before or there is no API to ask: outside Lambda, as
    /// under `claimant local` and `cargo lambda watch`, unless `AWS_ENDPOINT_URL_LAMBDA` says whom. `failed` is a message that
    /// failed, `within` the time left for an answer.
    pub(crate) fn ask(
        &self,
        (function_arn, source_arn): (&str, &str),
        failed: &str,
        within: Duration,
    ) -> Option<Pending> {
        if !is_on_lambda(function_arn) && set_endpoint(&self.config).is_none() {
            return None;
        }
        let pair = (function_arn.to_owned(), source_arn.to_owned());
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        let question = match questions.get(&pair) {
            Some(question) if !self.is_to_be_put_again(question) => question,
            _ => {
                let (sender, answer) = watch::channel(None);
                let asked_at = Instant::now() + self.spread(failed, within);
                tokio::spawn(self.answer(pair.clone(), asked_at, sender));
                questions.insert(pair.clone(), Question { asked_at, answer });
                &questions[&pair]
            }
        };
        Some(Pending(question.answer.clone()))
    }

    fn is_to_be_put_again(&self, question: &Question) -> bool {
        let answer = *question.answer.borrow();
        let wanted = match answer {
            // Without an answer the one who would give it may be gone.
            Some(Answer::None) | None => true,
            Some(Answer::Reports) => false,
            Some(_) => self.refuses,
        };
        wanted && question.asked_at.elapsed() >= Duration::from_millis(ASK_AGAIN_MS)
    }

    /// How long the question waits.
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
        asked_at: Instant,
        sender: watch::Sender<Option<Answer>>,
    ) -> impl Future<Output = ()> + use<> {
        let (config, said, refuses) = (self.config.clone(), Arc::clone(&self.said), self.refuses);
        async move {
            sleep_until(asked_at).await;
            let answer = match list_mappings(&config, &function_arn, &source_arn).await {
                Ok(page) => Answer::of(&page),
                Err(NoPage::Denied) => Answer::Denied,
                Err(NoPage::Failed(error)) => {
                    tracing::debug!(?error, "the event source mapping could not be looked at");
                    Answer::None
                }
            };
            if said.lock().unwrap_or_else(PoisonError::into_inner).insert(answer) {
                say(answer, refuses);
            }
            // No receiver is left where the invocation is over.
            let _ = sender.send(Some(answer));
        }
    }
}

fn say(answer: Answer, refuses: bool) {
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
    /// Why failures must not be reported, if so, waiting this long at most for the answer.
    pub(crate) async fn objection(&mut self, within: Duration) -> Option<&'static str> {
        let answer = timeout(within, self.0.wait_for(Option::is_some)).await;
        // No time left, or the one who would answer is gone: not known.
        let answer = answer.ok().and_then(Result::ok).and_then(|answer| *answer).unwrap_or(Answer::None);
        (answer != Answer::Reports).then(|| answer.fault())
    }
}

/// Whether this is the ARN of a function on Lambda: local runtimes give none, or one of the account 000000000000.
fn is_on_lambda(function_arn: &str) -> bool {
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
            (disabled.to_owned(), Answer::NotFound),
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
