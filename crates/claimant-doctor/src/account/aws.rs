//! AWS, asked with [signed](claimant_aws::signed) requests.

use aws_config::SdkConfig;
use claimant_aws::asked;
use serde_json::Value;

use super::answers::{Account, NO_ANSWER, Refused, Request};
use super::wire;

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

impl Account for Aws {
    async fn ask(&self, request: Request) -> Result<Value, Refused> {
        let answer = asked(&self.config, &wire::sent(&request)).await.map_err(|error| with_causes(&error));
        answer.and_then(|answer| wire::received(request.service, &answer)).map_err(|code| Refused {
            operation: request.operation,
            about: request.about(),
            code,
        })
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
