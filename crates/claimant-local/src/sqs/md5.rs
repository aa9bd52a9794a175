//! MD5 digests of bodies and of message attributes, as the SDKs recompute them to check what they sent or received.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ::md5::{Digest as _, Md5};

use super::message::{AttributeValue, MessageAttribute};

/// MD5 of a body, in hexadecimal.
pub(super) fn of_body(body: &str) -> String {
    hexadecimal(Md5::new_with_prefix(body.as_bytes()))
}

/// MD5 of attributes in the order of their names; `None` without attributes, as SQS then returns no digest.
pub(super) fn of_attributes(attributes: &BTreeMap<String, MessageAttribute>) -> Option<String> {
    if attributes.is_empty() {
        return None;
    }
    let mut digest = Md5::new();
    for (name, attribute) in attributes {
        field(&mut digest, name.as_bytes());
        field(&mut digest, attribute.data_type.as_bytes());
        // The transport type: 1 for text, 2 for bytes.
        digest.update([match attribute.value {
            AttributeValue::Text(_) => 1,
            AttributeValue::Binary(_) => 2,
        }]);
        field(&mut digest, attribute.value.as_bytes());
    }
    Some(hexadecimal(digest))
}

fn field(digest: &mut Md5, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a request is at most a few MiB long");
    digest.update(length.to_be_bytes());
    digest.update(bytes);
}

fn hexadecimal(digest: Md5) -> String {
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes every write");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies() {
        for (body, expected) in
            [("", "d41d8cd98f00b204e9800998ecf8427e"), ("hello world", "5eb63bbbe01eeed093cb22bb8f5acdc3")]
        {
            assert_eq!(of_body(body), expected, "{body}");
        }
    }
}
