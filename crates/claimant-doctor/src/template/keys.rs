//! The keys of KMS that queues and tables are encrypted with.

use super::part::Part;
use super::policies;
use super::resources::{Resources, hole};
use crate::fact::Fact;
use crate::model::{Key, Link};

/// The key that is named; `of_aws` is the one of AWS for the service.
pub(super) fn key(resources: &Resources<'_>, part: &Part<'_>, of_aws: &str) -> Fact<Option<Key>> {
    let Fact::Known(text) = part.text() else { return Fact::Unknown };
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Fact::Known(None) };
    if text.ends_with(of_aws) {
        return Fact::Known(Some(Key::Default));
    }
    let Some(key) = hole(&text).and_then(|id| resources.get(id)) else {
        return if text.contains("${") {
            Fact::Unknown
        } else {
            Fact::Known(Some(Key::Own { link: Link::Elsewhere(text), by_iam_only: Fact::Unknown }))
        };
    };
    let key = match key.kind.as_str() {
        "AWS::KMS::Key" => key,
        "AWS::KMS::Alias" => {
            let target = key.properties().at("TargetKeyId").text();
            let target = target.known().and_then(|target| resources.get(hole(target.as_deref()?)?));
            match target.filter(|target| target.kind == "AWS::KMS::Key") {
                Some(target) => target,
                None => return Fact::Unknown,
            }
        }
        _ => return Fact::Unknown,
    };
    let by_iam_only = policies::is_left_to_iam(&key.properties().at("KeyPolicy").unpacked());
    Fact::Known(Some(Key::Own { link: Link::Here(key.id.to_string()), by_iam_only }))
}
