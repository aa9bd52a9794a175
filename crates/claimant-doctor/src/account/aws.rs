//! AWS, asked with [signed](claimant_aws::signed) requests.

use std::time::Duration;

use aws_config::SdkConfig;
use claimant::{Clock as _, SystemClock};
use claimant_aws::signed::{ready, send};
use serde_json::Value;

use super::answers::{Account, NO_ANSWER, Refused, Request};
use super::wire;

/// Pauses before a request is sent once more: where no answer came, the service fails, or too many ask it.
const PAUSES_MS: [u64; 2] = [500, 2_000];

/// What codes have in them where too many ask.
const THROTTLED: [&str; 3] = ["Throttl", "TooManyRequests", "RequestLimitExceeded"];

/// The account that the configuration's credentials are for, in its Region.
#[derive(Debug, Clone)]
pub struct Aws {
    config: SdkConfig,
}

impl Aws {
    /// Returns the account of this configuration, which has to have an HTTP client.
    pub fn new(config: &SdkConfig) -> Self {
        Self { config: config.clone() }
    }
}

/// Whether another try may be answered otherwise.
fn is_transient(status: Option<u16>, code: &str) -> bool {
    status.is_none_or(|status| status == 429 || status >= 500) || THROTTLED.iter().any(|one| code.contains(one))
}

impl Account for Aws {
    async fn ask(&self, request: Request) -> Result<Value, Refused> {
        let refused = |code: String| Refused { operation: request.operation, about: request.about(), code };
        ready(&self.config).await.map_err(|e| refused(with_causes(&e)))?;
        let mut pauses = PAUSES_MS.into_iter();
        loop {
            let (status, answer) = match send(&self.config, wire::sent(&request), || Ok(SystemClock.now())).await {
                Ok(got) => (Some(got.status), wire::received(request.service, &got)),
                Err(e) => (None, Err(with_causes(&e))),
            };
            match (answer, pauses.next()) {
                (Err(code), Some(pause_ms)) if is_transient(status, &code) => {
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                }
                (answer, _) => return answer.map_err(refused),
            }
        }
    }
}

/// The error and what caused it, on one line.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = format!("{NO_ANSWER}: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
