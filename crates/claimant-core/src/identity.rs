//! What a message's work is: its record, its key, and the fingerprint of its payload.

use std::fmt::Display;
use std::sync::Arc;

use crate::fingerprint::Fingerprint;
use crate::key::{ConsumerName, Key, MessageId, RecordId};
use crate::message::Message;
use crate::payload::Payload;
use crate::rejection::Rejection;

type KeyRule = Box<dyn Fn(&Payload, &Message) -> Result<String, Rejection> + Send + Sync>;
/// Whose work a message is, in the words of the consumer's rule.
pub(crate) type Tenant = Arc<str>;

type TenantRule = Box<dyn Fn(&Payload, &Message) -> Tenant + Send + Sync>;
type FingerprintRule = Box<dyn Fn(&Payload) -> Fingerprint + Send + Sync>;
/// Is called with each message, or event in one, whose record is known.
pub(crate) type Identified = Arc<dyn Fn(&MessageId, &RecordId) + Send + Sync>;

/// What a message's work is.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) record_id: RecordId,
    pub(crate) key: Key,
    pub(crate) fingerprint: Fingerprint,
    /// Where there is a rule for it.
    pub(crate) tenant: Option<Tenant>,
}

/// How a consumer distinguishes one piece of work from another.
#[derive(Default)]
pub(crate) struct IdentityRules {
    key: Option<KeyRule>,
    fingerprint: Option<(u32, FingerprintRule)>,
    tenant: Option<TenantRule>,
    pub(crate) hashed_keys: bool,
    /// For tests.
    pub(crate) identified: Option<Identified>,
    /// What is wrong with the rules, in words.
    pub(crate) faults: Vec<&'static str>,
}

impl IdentityRules {
    pub(crate) fn set_key<T: 'static, K: Display>(
        &mut self,
        rule: impl Fn(&T, &Message) -> Result<K, Rejection> + Send + Sync + 'static,
    ) {
        let rule: KeyRule = Box::new(move |payload, message| Ok(rule(payload.get(), message)?.to_string()));
        if self.key.replace(rule).is_some() {
            self.faults.push("it has two key rules: remove one");
        }
    }

    pub(crate) fn set_fingerprint<T: 'static>(
        &mut self,
        version: u32,
        rule: impl Fn(&T) -> Fingerprint + Send + Sync + 'static,
    ) {
        let rule: FingerprintRule = Box::new(move |payload| rule(payload.get()));
        if version == 0 {
            self.faults.push("the version of the fingerprint rule is 0, which stands for the whole body: count from 1");
        }
        if self.fingerprint.replace((version, rule)).is_some() {
            self.faults.push("it has two fingerprint rules: keep the newer one");
        }
    }

    pub(crate) fn set_tenant<T: 'static, K: Display>(
        &mut self,
        rule: impl Fn(&T, &Message) -> K + Send + Sync + 'static,
    ) {
        let rule: TenantRule = Box::new(move |payload, message| rule(payload.get(), message).to_string().into());
        if self.tenant.replace(rule).is_some() {
            self.faults.push("it has two tenant rules: remove one");
        }
    }

    /// Returns whether keys come from payloads, not from message ids.
    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }
}

impl IdentityRules {
    /// Identifies the work of a payload; `decoded` returns the fingerprint where there is no rule for it.
    pub(crate) fn of(
        &self,
        consumer: &ConsumerName,
        message: &Message,
        payload: &Payload,
        decoded: impl FnOnce() -> Fingerprint,
    ) -> Result<Identity, Rejection> {
        let key = match &self.key {
            None => own_key(message),
            Some(rule) => rule(payload, message)?,
        };
        let fingerprint = match &self.fingerprint {
            None => message.event().and_then(|event| event.fingerprint).unwrap_or_else(decoded),
            Some((version, rule)) => rule(payload).of_rule(*version),
        };
        let key = Key::new(key)?;
        let record_id = if self.hashed_keys { RecordId::hashed(consumer, &key) } else { RecordId::new(consumer, &key) };
        let tenant = self.tenant.as_ref().map(|rule| rule(payload, message));
        if let Some(identified) = &self.identified {
            identified(message.id(), &record_id);
        }
        Ok(Identity { record_id, key, fingerprint, tenant })
    }
}

/// Returns the key of a message whose consumer has no rule for it: the event's id, or else its own, of one that was sent again that of the
/// first.
fn own_key(message: &Message) -> String {
    let event_id = message.event().and_then(|event| event.id.clone());
    event_id.unwrap_or_else(|| message.first_id().as_str().to_owned())
}
