//! A mail as it is kept.

use serde::{Deserialize, Serialize};

/// Bytes of one mail's text that are kept; the rest is cut off.
pub const TEXT_MAX_BYTES: usize = 64 * 1024;

/// The headers in which mails carry an idempotency key; the first that is there counts.
pub(super) const KEY_HEADERS: [&str; 3] = ["X-Claimant-Key", "Idempotency-Key", "X-Idempotency-Key"];

/// A named value: a header or a tag of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// The name as the sender wrote it.
    #[serde(alias = "Name")]
    pub name: String,
    /// The value as the sender wrote it.
    #[serde(alias = "Value")]
    pub value: String,
}

/// One mail that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Mail {
    /// The id that `SendEmail` answered with.
    pub message_id: String,
    /// The sender (`FromEmailAddress`).
    pub from: String,
    /// Every recipient: to, cc and bcc, as written.
    pub to: Vec<String>,
    /// The subject.
    pub subject: String,
    /// The custom headers, or all headers of a raw mail.
    pub headers: Vec<Field>,
    /// The tags (`EmailTags`).
    pub tags: Vec<Field>,
    /// The text body, else the HTML body, else a raw mail's body; at most [`TEXT_MAX_BYTES`] bytes of it.
    pub text: String,
}

/// What outlives a mail.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    /// Empty where the mail has none.
    pub(crate) key: String,
    /// Every recipient.
    pub(crate) to: String,
}

impl Mail {
    /// The idempotency key that it carries, if any.
    pub(super) fn key(&self) -> Option<&str> {
        KEY_HEADERS.iter().find_map(|name| self.header(name))
    }

    /// The value of the first header of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        value_of(&self.headers, name)
    }

    /// About what it costs to keep.
    pub(super) fn bytes(&self) -> usize {
        let fields = self.headers.iter().chain(&self.tags);
        let fields: usize = fields.map(|f| f.name.len() + f.value.len()).sum();
        let to: usize = self.to.iter().map(String::len).sum();
        self.from.len() + to + self.subject.len() + fields + self.text.len()
    }
}

/// Returns the value of the first field of this name, whatever its case.
pub(super) fn value_of<'a>(fields: &'a [Field], name: &str) -> Option<&'a str> {
    let field = fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
    Some(&field.value)
}

/// The part between `<` and `>` where there is one, else the whole.
pub(super) fn bare_address(address: &str) -> &str {
    let inner = address.rsplit_once('<').map_or(address, |(_, rest)| rest);
    inner.trim().trim_end_matches('>').trim()
}
