//! What is seen of one function's work where it has its effects, and in the lock table.

use std::collections::BTreeMap;

use claimant_local::Error;
use claimant_local::cloud::Cloud;
use claimant_local::journal::{Journal, What};
use claimant_local::mailbox::Attempt;
use claimant_local::stack::FunctionSpec;

use crate::database::Database;
use crate::plan::Target;
use crate::worker;

/// The header by which `order-confirmation` tells which order a mail is for.
const KEY_HEADER: &str = "X-Claimant-Key";

/// How many events of the journal are read at once.
const EVENTS_AT_ONCE: usize = 1_000;

/// What the lock table says of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) status: String,
    /// Handler runs.
    pub(crate) attempts: u64,
}

/// What is seen of one function's work.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Every effect, by key: an address, an amount.
    pub(crate) effects: BTreeMap<String, Vec<String>>,
    /// Keys whose effects do not fit together: a card without its entry, a balance that is not the sum of its changes.
    pub(crate) torn: Vec<String>,
    /// How often the system that has the effects was asked for each, where it tells.
    pub(crate) tries: BTreeMap<String, u64>,
    /// Keys of which two effects were tried at the same time.
    pub(crate) overlaps: Vec<String>,
    pub(crate) records: BTreeMap<String, Record>,
    /// How often a function said that it has completed a message with this body.
    pub(crate) completed: BTreeMap<String, u64>,
    /// What the journal has dropped of that, if anything.
    pub(crate) dropped: Option<&'static str>,
}

impl Seen {
    pub(crate) async fn of(
        target: Target,
        cloud: &Cloud,
        database: &Database,
        function: &FunctionSpec,
    ) -> Result<Self, Error> {
        let mut seen = Self::default();
        seen.completions(target, cloud.journal());
        match target {
            Target::Orders => seen.mails(cloud),
            Target::Payments => seen.charges(cloud),
            Target::GiftCards => seen.cards(database, function).await?,
            Target::Loyalty => seen.bookings(database, function).await?,
            Target::Poison => seen.lines()?,
        }
        for item in database.items(table_of(function, "CLAIMANT_TABLE")?).await? {
            let key = item.text("id").and_then(|id| id.strip_prefix(target.consumer())?.strip_prefix('#'));
            let (Some(key), Some(status)) = (key, item.text("status")) else { continue };
            let attempts = item.number("attempts").and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
            seen.records.insert(key.to_owned(), Record { status: status.to_owned(), attempts });
        }
        Ok(seen)
    }

    fn completions(&mut self, target: Target, journal: &Journal) {
        self.dropped = (journal.totals().events_dropped > 0).then_some("events");
        let mut seq = 0;
        loop {
            let events = journal.after(seq, EVENTS_AT_ONCE);
            let Some(last) = events.last() else { return };
            seq = last.seq;
            for event in &events {
                let What::Done(done) = &event.what else { continue };
                let ours = done.consumer == target.consumer() && done.outcome == "completed";
                let Some(id) = event.message_id.as_ref().filter(|_| ours) else { continue };
                match journal.body(id) {
                    Some(body) => *self.completed.entry(body).or_default() += 1,
                    None => self.dropped = Some("bodies"),
                }
            }
        }
    }

    fn mails(&mut self, cloud: &Cloud) {
        for mail in cloud.mailbox().mails() {
            self.effect(mail.header(KEY_HEADER).unwrap_or_default(), mail.to.join(", "));
        }
        let log = cloud.mailbox().log();
        let mut by_key: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
        for attempt in &log {
            by_key.entry(attempt.header(KEY_HEADER).unwrap_or_default()).or_default().push(attempt);
        }
        for (key, attempts) in by_key {
            self.tries.insert(key.to_owned(), attempts.len() as u64);
            if attempts.windows(2).any(|pair| pair[0].overlaps(pair[1])) {
                self.overlaps.push(key.to_owned());
            }
        }
    }

    fn charges(&mut self, cloud: &Cloud) {
        for charge in cloud.gateway().charges() {
            let what = format!("{} {}", charge.order.amount_cents, charge.order.currency);
            let key = charge.key.unwrap_or(charge.order.reference);
            self.tries.insert(key.clone(), charge.requests.into());
            self.effect(&key, what);
        }
    }

    async fn cards(&mut self, database: &Database, function: &FunctionSpec) -> Result<(), Error> {
        let cards = database.items(table_of(function, "GIFT_CARD_TABLE")?).await?;
        let ledger = database.items(table_of(function, "GIFT_CARD_LEDGER_TABLE")?).await?;
        let mut entries: BTreeMap<_, _> = ledger
            .iter()
            .filter_map(|entry| Some(((entry.text("order_id")?, entry.text("card_id")?), entry.number("amount_cents"))))
            .collect();
        for card in &cards {
            let (Some(order), Some(id)) = (card.text("order_id"), card.text("card_id")) else { continue };
            match entries.remove(&(order, id)) {
                Some(Some(cents)) if card.number("amount_cents") == Some(cents) => {
                    self.effect(order, format!("{cents} EUR"));
                }
                _ => self.torn.push(order.to_owned()),
            }
        }
        self.torn.extend(entries.into_keys().map(|(order, _)| order.to_owned()));
        Ok(())
    }

    async fn bookings(&mut self, database: &Database, function: &FunctionSpec) -> Result<(), Error> {
        let mut missing: BTreeMap<String, i64> = BTreeMap::new();
        for item in database.items(table_of(function, "LOYALTY_TABLE")?).await? {
            let (Some(customer), Some(entry)) = (item.text("customer_id"), item.text("entry")) else { continue };
            let points = item.number("points").unwrap_or_default();
            let change = entry.strip_prefix("change#");
            *missing.entry(customer.to_owned()).or_default() += if change.is_some() { points } else { -points };
            if let Some(key) = change {
                self.effect(key, format!("{points} points"));
            }
        }
        self.torn.extend(missing.into_iter().filter(|(_, points)| *points != 0).map(|(customer, _)| customer));
        Ok(())
    }

    fn lines(&mut self) -> Result<(), Error> {
        let path = worker::effects();
        // Without any effect there is no file.
        let lines = match std::fs::read_to_string(&path) {
            Ok(lines) => lines,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::new(format!("{} cannot be read", path.display())).caused_by(error)),
        };
        lines.lines().for_each(|key| self.effect(key, "done".to_owned()));
        Ok(())
    }

    fn effect(&mut self, key: &str, what: String) {
        self.effects.entry(key.to_owned()).or_default().push(what);
    }
}

fn table_of<'a>(function: &'a FunctionSpec, variable: &str) -> Result<&'a str, Error> {
    function.environment.get(variable).map(String::as_str).ok_or_else(|| {
        Error::new(format!("the storm needs {variable} in the variables of {}: give it one", function.name))
    })
}

#[cfg(test)]
mod tests {
    use claimant_local::journal::Done;

    use super::*;

    #[test]
    fn a_completion_whose_body_is_gone_is_not_passed_over() {
        let journal = Journal::new();
        let done = Done {
            consumer: Target::Orders.consumer().into(),
            outcome: "completed".into(),
            dead_lettered: false,
            receive: Some(1),
            events: 1,
            busy_until_ms: None,
            handle_ms: None,
        };
        for message in ["m", "n"] {
            journal.note(|| What::Done(Box::new(done.clone())), |event| event.message(message));
        }
        let seen = || {
            let mut seen = Seen::default();
            seen.completions(Target::Orders, &journal);
            (seen.completed.get("body").copied(), seen.dropped)
        };
        journal.keep_body("n", "body", "");
        assert_eq!(seen(), (Some(1), Some("bodies")));
        journal.keep_body("m", "body", "");
        assert_eq!(seen(), (Some(2), None));
    }
}
