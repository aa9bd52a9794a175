//! What a message's work is: its record, its key, and the fingerprint of its payload.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;

use crate::decode::{decode_json, of_body};
use crate::fingerprint::Fingerprint;
use crate::key::{ConsumerName, Key, RecordId};
use crate::message::Message;
use crate::rejection::Rejection;

type KeyRule<T> = Box<dyn Fn(&T) -> String + Send + Sync>;
type FingerprintRule<T> = Box<dyn Fn(&T) -> Fingerprint + Send + Sync>;

/// What a message's work is.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) record_id: RecordId,
    pub(crate) key: Key,
    pub(crate) fingerprint: Fingerprint,
}

/// How a consumer distinguishes one piece of work from another.
pub(crate) struct IdentityRules<T> {
    key: Option<KeyRule<T>>,
    fingerprint: Option<(u32, FingerprintRule<T>)>,
    pub(crate) hashed_keys: bool,
}

impl<T> Default for IdentityRules<T> {
    fn default() -> Self {
        Self { key: None, fingerprint: None, hashed_keys: false }
    }
}

impl<T> IdentityRules<T> {
    pub(crate) fn set_key(&mut self, rule: impl Fn(&T) -> String + Send + Sync + 'static) {
        self.key = Some(Box::new(rule));
    }

    pub(crate) fn set_fingerprint(&mut self, version: u32, rule: impl Fn(&T) -> Fingerprint + Send + Sync + 'static) {
        self.fingerprint = Some((version, Box::new(rule)));
    }

    /// Returns whether keys come from payloads, not from message ids.
    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Returns what is wrong with the rules, in words.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        const VERSION_ZERO: &str =
            "the version of the fingerprint rule is 0, which stands for the whole body: count from 1";
        self.fingerprint.as_ref().is_some_and(|(version, _)| *version == 0).then_some(VERSION_ZERO)
    }
}

impl<T: DeserializeOwned> IdentityRules<T> {
    /// Decodes a body, and identifies its work. Both are the user's code: a panic in them rejects this message alone.
    pub(crate) fn read(&self, consumer: &ConsumerName, message: &Message) -> Result<(Identity, T), Rejection> {
        catch_unwind(AssertUnwindSafe(|| {
            let payload = decode_json(&message.body)?;
            Ok((self.identity(consumer, message, &payload)?, payload))
        }))
        .unwrap_or_else(|_| Err(Rejection::new("decoding the body or finding its key panicked")))
    }

    fn identity(&self, consumer: &ConsumerName, message: &Message, payload: &T) -> Result<Identity, Rejection> {
        let key = self.key.as_ref().map_or_else(|| message.id.as_str().to_owned(), |rule| rule(payload));
        let fingerprint = match &self.fingerprint {
            None => of_body(&message.body),
            Some((version, rule)) => rule(payload).of_rule(*version),
        };
        let key = Key::new(key).map_err(|fault| Rejection::new(fault.to_string()))?;
        let record_id = if self.hashed_keys { RecordId::hashed(consumer, &key) } else { RecordId::new(consumer, &key) };
        Ok(Identity { record_id, key, fingerprint })
    }
}
