//! What envelopes say of the event that they carry.

use std::fmt;

use crate::attributes::Attributes;
use crate::clock::Timestamp;
use crate::fingerprint::Fingerprint;

/// What envelopes say of the event that they carry: of the innermost one that says it.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Its id: the same each time that it is delivered, and the key of a consumer without a key rule. Whether it is also the same
    /// when a producer publishes it again depends on what gave it: see each envelope.
    pub id: Option<String>,
    /// What kind it is: `detail-type` of EventBridge, `eventName` of S3, `type` of CloudEvents.
    pub kind: Option<String>,
    /// Where it comes from: `source` of EventBridge and CloudEvents, the topic's ARN of SNS, the bucket of S3.
    pub source: Option<String>,
    /// What it is about: `subject` of SNS and CloudEvents, the object's key of S3.
    pub subject: Option<String>,
    /// When it happened, as its envelope says.
    pub time: Option<Timestamp>,
    /// What its publisher attached to it.
    pub attributes: Attributes,
    /// The trace that it was published in, as the header that continues it.
    pub trace: Option<String>,
    /// What must be the same in two deliveries of it, where that is not all of its content: for a consumer without a rule of its own.
    pub fingerprint: Option<Fingerprint>,
}

impl Event {
    /// Returns what both say, this one and that around it: of each field what this one says, or else the outer one; and the attributes
    /// of both.
    pub(crate) fn inside_of(self, outer: Option<&Self>) -> Self {
        let Some(outer) = outer else { return self };
        Self {
            id: self.id.or_else(|| outer.id.clone()),
            kind: self.kind.or_else(|| outer.kind.clone()),
            source: self.source.or_else(|| outer.source.clone()),
            subject: self.subject.or_else(|| outer.subject.clone()),
            time: self.time.or(outer.time),
            attributes: self.attributes.inside(&outer.attributes),
            trace: self.trace.or_else(|| outer.trace.clone()),
            fingerprint: self.fingerprint.or(outer.fingerprint),
        }
    }
}

// What it says can be personal data.
impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("time", &self.time).finish_non_exhaustive()
    }
}
