//! Which dead letters are meant. Pure.

use std::collections::BTreeSet;

use claimant_core::{Error, Timestamp};

use super::field::FieldPath;
use super::letter::DeadLetter;
use super::report::Report;

/// The fewest digits of a fingerprint that name a group, to look at it.
const GROUP_DIGITS_MIN: usize = 4;

/// The digits of a fingerprint: all of them name a group that is acted on, since fewer can be the beginning of several.
const GROUP_DIGITS: usize = 8;

/// Which dead letters are meant: those that fit every condition that is set. Without a condition, all.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// One of these ids.
    pub ids: Ids,
    /// One of these fingerprints, each by 4 to 8 digits of its beginning; by all 8 where the letters are acted on.
    pub groups: Vec<String>,
    /// One of these message groups, of a FIFO queue.
    pub message_groups: BTreeSet<String>,
    /// Its consumer; or the queue that SQS moved it from.
    pub consumer: Option<String>,
    /// Its outcome: `rejected`, `conflict`, `parked` or [`MOVED`](super::MOVED).
    pub outcome: Option<String>,
    /// A part of its error, in whatever case.
    pub error: Option<String>,
    /// One of these ids of its record, as the store has it: a key has one in the clear and one that is hashed.
    pub records: BTreeSet<String>,
    /// Sent at this time or before.
    pub sent_until: Option<Timestamp>,
    /// Sent at this time or after.
    pub sent_since: Option<Timestamp>,
    /// Fields of its body, each with its value: of a text the text, of anything else the JSON.
    pub fields: Vec<(FieldPath, String)>,
}

/// The ids of dead letters that are meant: any, where none is named.
#[derive(Debug, Clone, Default)]
pub struct Ids {
    /// The ids.
    pub named: BTreeSet<String>,
    /// Which letters they mean.
    pub by: By,
}

/// Which letter an id means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum By {
    /// The one that has it now, or whose message had it before.
    #[default]
    Any,
    /// Only the one that has it now: a message that was sent back and given up on again is another letter, which may have another body and
    /// another cause.
    Now,
    /// As [`Any`](Self::Any), of an id that begins with it.
    Beginning,
}

impl Ids {
    /// Returns these ids, each as that which a letter has now.
    pub fn now(ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { named: ids.into_iter().map(Into::into).collect(), by: By::Now }
    }

    fn fit(&self, letter: &DeadLetter) -> bool {
        let is_named = |id: &String| self.named.contains(id);
        self.named.is_empty()
            || match self.by {
                By::Any => letter.ids().any(is_named),
                By::Now => is_named(&letter.message_id),
                By::Beginning => letter.ids().any(|id| self.named.iter().any(|named| id.starts_with(named.as_str()))),
            }
    }
}

impl Selection {
    /// Returns a selection of the dead letters that have these ids, or whose messages had them before.
    pub fn ids(ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let named = ids.into_iter().map(Into::into).collect();
        Self { ids: Ids { named, by: By::Any }, ..Self::default() }
    }

    /// Returns a selection of the dead letters that have an id that begins with this, or whose messages had one.
    pub fn id_begins(beginning: impl Into<String>) -> Self {
        Self { ids: Ids { named: [beginning.into()].into(), by: By::Beginning }, ..Self::default() }
    }

    /// Returns a selection of the groups with these fingerprints.
    pub fn groups(groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { groups: groups.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Returns whether every dead letter is meant.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        let Self { ids, groups, message_groups, consumer, outcome, error, records, sent_until, sent_since, fields } =
            self;
        let texts = [consumer, outcome, error].iter().all(|text| text.is_none());
        texts
            && ids.named.is_empty()
            && groups.is_empty()
            && message_groups.is_empty()
            && records.is_empty()
            && fields.is_empty()
            && sent_until.is_none()
            && sent_since.is_none()
    }

    /// Returns the selection of what a look at it has shown, a dry run that began then: these letters and no others. Of a FIFO queue,
    /// of which SQS shows ten of a message group at a time: also what is behind them in their message groups and was sent before.
    #[must_use]
    pub fn shown(&self, look: &Report, is_fifo: bool, began: Timestamp) -> Self {
        if !is_fifo {
            return Self { ids: Ids::now(look.done.iter().map(|done| &done.message_id)), ..self.clone() };
        }
        let message_groups = look.done.iter().filter_map(|done| done.message_group.clone()).collect();
        let sent_until = self.sent_until.map_or(began, |until| until.min(began));
        Self { message_groups, sent_until: Some(sent_until), ..self.clone() }
    }

    /// Checks that what letters are chosen by says something, and that each group is named by enough digits.
    ///
    /// # Errors
    /// When an id or a text is empty, such as a variable of a script that is not set, or a group is not named so.
    pub fn check(&self) -> Result<(), Error> {
        let texts = [("the consumer", &self.consumer), ("the part of the error", &self.error)];
        let texts = texts.into_iter().filter_map(|(what, text)| Some((what, text.as_ref()?)));
        let records = self.records.iter().map(|record| ("the record", record));
        let mut all = texts.chain(records).chain(self.ids.named.iter().map(|id| ("an id", id)));
        if let Some((what, _)) = all.find(|(_, text)| text.trim().is_empty()) {
            return Err(Error::invalid(format!("{what} of the dead letters is empty: fill it in, or leave it out")));
        }
        let good = |group: &&String| {
            (GROUP_DIGITS_MIN..=GROUP_DIGITS).contains(&group.len())
                && group.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        };
        match self.groups.iter().find(|group| !good(group)) {
            Some(_) => Err(Error::invalid(format!(
                "a group of dead letters is named by {GROUP_DIGITS_MIN} to {GROUP_DIGITS} of the digits 0-9 and a-f that the list of groups shows"
            ))),
            None => Ok(()),
        }
    }

    /// Checks that each group is named by all of its digits, as what is acted on is to be.
    ///
    /// # Errors
    /// When one is not.
    pub fn check_act(&self) -> Result<(), Error> {
        self.check()?;
        match self.groups.iter().find(|group| group.len() < GROUP_DIGITS) {
            Some(group) => Err(Error::invalid(format!(
                "{group} can be the beginning of several groups: an act takes all {GROUP_DIGITS} digits that the list of groups shows"
            ))),
            None => Ok(()),
        }
    }

    /// Returns whether this dead letter is meant.
    #[must_use]
    pub fn fits(&self, letter: &DeadLetter) -> bool {
        let any = |wanted: &[String], fits: &dyn Fn(&String) -> bool| wanted.is_empty() || wanted.iter().any(fits);
        let is = |wanted: &Option<String>, text: Option<&str>| wanted.is_none() || wanted.as_deref() == text;
        self.ids.fit(letter)
            && any(&self.groups, &|group| letter.fingerprint.as_str().starts_with(group.as_str()))
            && (self.message_groups.is_empty()
                || letter.group.as_ref().is_some_and(|group| self.message_groups.contains(group)))
            && is(&self.consumer, letter.source().or(letter.why.consumer.as_deref()))
            && is(&self.outcome, letter.why.outcome.as_deref())
            && (self.records.is_empty()
                || letter.why.record.as_ref().is_some_and(|record| self.records.contains(record)))
            && self.error.as_ref().is_none_or(|part| {
                letter.why.error.as_ref().is_some_and(|error| error.to_lowercase().contains(&part.to_lowercase()))
            })
            && self.sent_until.is_none_or(|time| letter.sent_at.is_some_and(|at| at <= time))
            && self.sent_since.is_none_or(|time| letter.sent_at.is_some_and(|at| at >= time))
            && self.fields.iter().all(|(path, value)| path.text_in(letter.body()).as_ref() == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName as System};

    use super::*;

    fn letter() -> DeadLetter {
        let mut message = Message::builder().message_id("m-1").body(r#"{"order": {"id": "ord-7"}, "cents": 5}"#);
        message = message.attributes(System::SentTimestamp, "5000").attributes(System::MessageGroupId, "ada");
        for (name, value) in [
            ("claimant-error", "No price"),
            ("claimant-outcome", "rejected"),
            ("claimant-consumer", "order"),
            ("claimant-record", "order#ord-7"),
            ("claimant-message-id", "own"),
        ] {
            let value = MessageAttributeValue::builder().data_type("String").string_value(value).build().unwrap();
            message = message.message_attributes(name, value);
        }
        DeadLetter::read(message.build()).unwrap()
    }

    #[test]
    fn every_condition_must_fit() {
        let text = |text: &str| Some(text.to_owned());
        let field = |path: &str, value: &str| vec![(FieldPath::parse(path).unwrap(), value.to_owned())];
        let at = |ms| Some(Timestamp::from_millis(ms));
        let records = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
        let letter = letter();
        let group = letter.fingerprint.as_str();
        let all = Selection::default;
        for (selection, fits) in [
            (all(), true),
            (Selection::ids(["m-1"]), true),
            (Selection::ids(["x", "own"]), true),
            (Selection::ids(["x"]), false),
            (Selection::id_begins("ow"), true),
            (Selection::id_begins("wn"), false),
            (Selection { ids: Ids::now(["m-1"]), ..all() }, true),
            (Selection { ids: Ids::now(["own"]), ..all() }, false),
            (Selection::groups([&group[..4]]), true),
            (Selection::groups(["ffffffff"]), false),
            (Selection { message_groups: ["ada".to_owned(), "bob".to_owned()].into(), ..all() }, true),
            (Selection { message_groups: ["bob".to_owned()].into(), ..all() }, false),
            (Selection { consumer: text("order"), outcome: text("rejected"), ..all() }, true),
            (Selection { consumer: text("order"), outcome: text("parked"), ..all() }, false),
            (Selection { error: text("PRICE"), ..all() }, true),
            (Selection { error: text("stock"), ..all() }, false),
            (Selection { records: records(&["order#ord-7"]), ..all() }, true),
            (Selection { records: records(&["order~0af3", "order#ord-7"]), ..all() }, true),
            (Selection { records: records(&["order#ord"]), ..all() }, false),
            (Selection { sent_until: at(5_000), sent_since: at(5_000), ..all() }, true),
            (Selection { sent_until: at(4_999), ..all() }, false),
            (Selection { sent_since: at(5_001), ..all() }, false),
            (Selection { fields: field("order.id", "ord-7"), ..all() }, true),
            (Selection { fields: field("cents", "5"), ..all() }, true),
            (Selection { fields: field("cents", "6"), ..all() }, false),
        ] {
            assert_eq!(selection.fits(&letter), fits, "{selection:?}");
            assert_eq!(selection.is_everything(), format!("{selection:?}") == format!("{:?}", all()));
        }
    }

    /// As `--error "$CAUSE"` is in a shell that has no such variable: it would mean every letter that has an error.
    #[test]
    fn what_is_empty_means_no_letter() {
        let text = |text: &str| Some(text.to_owned());
        for nothing in ["", " "] {
            let (all, text) = (Selection::default, text(nothing));
            for selection in [
                Selection { error: text.clone(), ..all() },
                Selection { consumer: text.clone(), ..all() },
                Selection { records: text.into_iter().collect(), ..all() },
                Selection::ids(["m-1", nothing]),
            ] {
                assert!(selection.check_act().is_err(), "{selection:?}");
            }
        }
    }

    #[test]
    fn groups_are_named_by_enough_digits() {
        assert!(Selection::groups(["0af3"]).check().is_ok());
        for bad in ["", "0af", "0AF3", "zzzz", "0af312990"] {
            assert!(Selection::groups([bad]).check().is_err(), "{bad}");
        }
        for (group, is_whole) in [("0af3", false), ("0af3129", false), ("0af31299", true), ("0AF31299", false)] {
            assert_eq!(Selection::groups([group]).check_act().is_ok(), is_whole, "{group}");
        }
    }
}
