//! Attributes of messages, as a local cloud shows them.

use std::collections::BTreeMap;

use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::MessageAttributeValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use claimant_core::own_attributes::is_own;
use serde::{Deserialize, Deserializer};

/// An attribute.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Attribute {
    data_type: String,
    string_value: Option<String>,
    binary_value: Option<String>,
}

impl Attribute {
    /// Returns it as the SDK has it.
    pub(crate) fn value(self) -> Option<MessageAttributeValue> {
        let bytes = self.binary_value.and_then(|text| STANDARD.decode(text).ok());
        let value = MessageAttributeValue::builder()
            .data_type(self.data_type)
            .set_string_value(self.string_value)
            .set_binary_value(bytes.map(Blob::new));
        value.build().ok()
    }
}

/// Reads the attributes that the producer of a message gave it.
pub(crate) fn of_producer<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, MessageAttributeValue>, D::Error> {
    let all = BTreeMap::<String, Attribute>::deserialize(deserializer)?;
    let theirs = all.into_iter().filter(|(name, _)| !is_own(name));
    Ok(theirs.filter_map(|(name, attribute)| Some((name, attribute.value()?))).collect())
}
