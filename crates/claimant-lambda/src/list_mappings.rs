//! `ListEventSourceMappings`, as the check of the mapping needs it.

use aws_config::SdkConfig;
use claimant_aws::intake::Api;
use claimant_core::{Error, SystemClock};
use serde::Deserialize;

/// A page of event source mappings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Page {
    #[serde(default)]
    pub(crate) event_source_mappings: Vec<Mapping>,
    pub(crate) next_marker: Option<String>,
}

/// The fields of an event source mapping that are checked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Mapping {
    pub(crate) state: Option<String>,
    pub(crate) function_response_types: Option<Vec<String>>,
}

/// Why the mappings could not be listed.
#[derive(Debug)]
pub(crate) enum ListError {
    /// The function's role lacks the permission.
    Denied,
    /// No usable response; a later request may get one.
    Failed(Error),
}

/// Lists the mappings of this function and this event source, by their ARNs.
pub(crate) async fn list_mappings(config: &SdkConfig, function_arn: &str, source_arn: &str) -> Result<Page, ListError> {
    let api = Api { config, lambda: None, scheduler: None, near: function_arn, clock: &SystemClock };
    let answer = api.list_mappings(function_arn, source_arn).await.map_err(ListError::Failed)?;
    match answer.status {
        200 => serde_json::from_slice(&answer.body)
            .map_err(|e| ListError::Failed(Error::new("Lambda's API sent a malformed response").caused_by(e))),
        401 | 403 => Err(ListError::Denied),
        status => Err(ListError::Failed(Error::new(format!("Lambda's API answered with status {status}")))),
    }
}
