//! The operations of Lambda that operators need: functions and event source mappings.
//!
//! [`signed`](claimant_aws::signed) says why they are not the SDK's. Paths and fields are those of Lambda's API reference.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use claimant_aws::asked;
use claimant_aws::mapping::{EventSourceMapping, Mappings, PATH, REPORTS, is_in_use};
use claimant_aws::signed::{Answer, Request, Service, encoded, ready};
use claimant_core::{Error, ErrorKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::aws::{answered, no_answer, not_made, not_of, refused};

const FUNCTIONS: &str = "/2015-03-31/functions";

/// Lambda, in one account and Region.
#[derive(Debug, Clone)]
pub(crate) struct Lambda {
    aws: SdkConfig,
}

/// A function.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Function {
    function_arn: Option<String>,
    environment: Option<Environment>,
    logging_config: Option<LoggingConfig>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Environment {
    variables: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LoggingConfig {
    log_group: Option<String>,
}

impl Function {
    /// Returns the value of one of its variables.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.as_ref()?.variables.as_ref()?.get(name).map(String::as_str)
    }

    /// Returns the account that it is in.
    pub(crate) fn account(&self) -> Option<&str> {
        self.function_arn.as_ref()?.split(':').nth(4).filter(|account| !account.is_empty())
    }

    /// Returns the log group that it is told to write to.
    pub(crate) fn log_group(&self) -> Option<&str> {
        self.logging_config.as_ref()?.log_group.as_deref()
    }
}

/// What became of a change.
#[derive(Debug)]
pub(crate) enum Update {
    /// The mapping as it is now.
    Made(EventSourceMapping),
    /// Another change is under way; the error to return where it is not waited for.
    InUse(Error),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Found {
    configuration: Function,
}

impl Lambda {
    /// Returns the Lambda of this configuration.
    pub(crate) fn new(aws: &SdkConfig) -> Self {
        Self { aws: aws.clone() }
    }

    /// Returns the function of this name. Lambda answers this request a hundred times a second; all others to it have to share fifteen.
    pub(crate) async fn get_function(&self, name: &str) -> Result<Function, Error> {
        let what = format!("the function {name} cannot be read");
        let purpose = Purpose { what: &what, permission: "lambda:GetFunction" };
        let answer = self.answer(purpose, ("GET", format!("{FUNCTIONS}/{}", encoded(name)), String::new())).await?;
        Ok(purpose.read::<Found>(&answer)?.configuration)
    }

    /// Lists what `read` takes of event source mappings, page by page, until there are `max`. Of all functions: Lambda counts the
    /// mappings of a function's versions and aliases (`AutoPublishAlias`) as those of other functions.
    pub(crate) async fn list_mappings<T>(
        &self,
        read: impl Fn(EventSourceMapping) -> Option<T>,
        max: usize,
    ) -> Result<Vec<T>, Error> {
        let what = "the event source mappings cannot be listed";
        let purpose = Purpose { what, permission: "lambda:ListEventSourceMappings" };
        let (mut all, mut marker) = (Vec::new(), None::<String>);
        loop {
            let next = marker.map(|marker| format!("?Marker={}", encoded(&marker))).unwrap_or_default();
            let page: Mappings =
                purpose.read(&self.answer(purpose, ("GET", format!("{PATH}{next}"), String::new())).await?)?;
            all.extend(page.event_source_mappings.into_iter().filter_map(&read));
            marker = page.next_marker.filter(|marker| !marker.is_empty());
            if marker.is_none() || all.len() >= max {
                all.truncate(max);
                return Ok(all);
            }
        }
    }

    /// Returns the mapping of this UUID; `what` cannot be done without it.
    pub(crate) async fn get_mapping(&self, what: &str, id: &str) -> Result<EventSourceMapping, Error> {
        let purpose = Purpose { what, permission: "lambda:GetEventSourceMapping" };
        let answer = self.answer(purpose, ("GET", format!("{PATH}/{}", encoded(id)), String::new())).await?;
        purpose.read(&answer)
    }

    /// Changes the mapping of this UUID: whether it is enabled, and whether failures are reported. What is `None` stays.
    pub(crate) async fn update_mapping(
        &self,
        what: &str,
        id: &str,
        (enabled, reports_failures): (Option<bool>, Option<bool>),
    ) -> Result<Update, Error> {
        let purpose = Purpose { what, permission: "lambda:UpdateEventSourceMapping" };
        let mut update = serde_json::Map::new();
        if let Some(enabled) = enabled {
            update.insert("Enabled".to_owned(), enabled.into());
        }
        if let Some(reports) = reports_failures {
            let types = if reports { json!([REPORTS]) } else { json!([]) };
            update.insert("FunctionResponseTypes".to_owned(), types);
        }
        let request = ("PUT", format!("{PATH}/{}", encoded(id)), Value::Object(update).to_string());
        let answer = self.answer(purpose, request).await?;
        match is_in_use(&answer) {
            true => Ok(Update::InUse(purpose.failed(&answer))),
            false => purpose.read(&answer).map(Update::Made),
        }
    }

    /// Returns the answer to a request, of which a refusal is one. All of these requests can be repeated.
    async fn answer(&self, purpose: Purpose<'_>, request: (&'static str, String, String)) -> Result<Answer, Error> {
        let request = Request::json(Service::LAMBDA, "", request);
        asked(&self.aws, &request).await.map_err(|error| unanswered(purpose.what, &error))
    }
}

/// Has the credentials at hand: without any, nothing is sent.
pub(crate) async fn sign_in(aws: &SdkConfig, what: &str) -> Result<(), Error> {
    ready(aws).await.map_err(|error| unanswered(what, &error))
}

fn unanswered(what: &str, error: &Error) -> Error {
    match error.kind() {
        ErrorKind::Invalid => not_made(what, &error.to_string()),
        _ => no_answer(what, error),
    }
}

/// What a request is for: what cannot be done without it, and the permission that it needs.
#[derive(Debug, Clone, Copy)]
struct Purpose<'a> {
    what: &'a str,
    permission: &'static str,
}

impl Purpose<'_> {
    /// Returns what a good answer says.
    fn read<T: DeserializeOwned>(self, answer: &Answer) -> Result<T, Error> {
        if !answer.is_good() {
            return Err(self.failed(answer));
        }
        // serde's own text can quote what it could not read, such as a variable's value.
        serde_json::from_slice(&answer.body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            no_answer(self.what, &Error::new(format!("Lambda's answer cannot be read (line {line} column {column})")))
        })
    }

    /// Returns the error that an answer is.
    fn failed(self, answer: &Answer) -> Error {
        let status = answer.status.to_string();
        match (answer.code.as_str(), answer.status) {
            ("", 401 | 403) => refused(self.what, self.permission, &status, &answer.message()),
            ("", status) => not_of(self.what, "Lambda", status),
            (code, _) => answered(self.what, self.permission, code, &answer.message()),
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_config::Region;

    use super::*;

    #[tokio::test]
    async fn without_a_region_or_credentials_nothing_is_sent() {
        let nothing = SdkConfig::builder().build();
        let no_credentials = SdkConfig::builder().region(Region::new("eu-west-1")).build();
        let no_region = "no Region is set: give --region, or set AWS_REGION";
        for (aws, why) in [(nothing, no_region), (no_credentials, "there are no credentials")] {
            let error = Lambda::new(&aws).get_function("worker").await.unwrap_err();
            let expected = format!("the function worker cannot be read: the request cannot be made: {why}");
            assert_eq!((error.kind(), error.to_string()), (ErrorKind::Invalid, expected));
        }
    }
}
