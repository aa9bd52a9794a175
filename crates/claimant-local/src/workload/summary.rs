//! What became of a workload: arithmetic over what was seen from outside.

use std::collections::BTreeMap;
use std::fmt;

use super::Workload;
use crate::mailbox::Mail;

/// The header by which the function tells which order a mail is for.
pub(super) const KEY_HEADER: &str = "X-Claimant-Key";
/// Names listed in one fault at most.
const NAMED_MAX: usize = 20;

/// What the queues, the lock table and the mailbox showed.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Messages the queue accepted.
    pub sent: u64,
    /// Messages deleted from the queue: those reported done.
    pub deleted: u64,
    /// Messages the queue moved to its dead-letter queue by itself.
    pub moved: u64,
    /// Messages still in the queue: visible, in flight or delayed.
    pub queued: u64,
    /// The bodies in the dead-letter queue.
    pub dead_letters: Vec<String>,
    /// Messages that the mapping left for redelivery, each time counted.
    pub left_for_redelivery: u64,
    /// The sum of `attempts` over the records of this workload.
    pub handler_runs: u64,
    /// The records of this workload that are completed.
    pub completed: u64,
    /// Mails tried, accepted or not.
    pub mail_attempts: u64,
    /// Mails accepted.
    pub mails: Vec<Mail>,
}

/// The figures, and what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Messages sent, broken bodies among them.
    pub messages_sent: u64,
    /// Orders that are to be confirmed once.
    pub orders: u64,
    /// Handler runs, by the lock table.
    pub handler_runs: u64,
    /// Mails tried, by the mailbox.
    pub mail_attempts: u64,
    /// Mails sent, by the mailbox.
    pub mails_sent: u64,
    /// Messages reported done beyond the first of each completed order.
    pub duplicates_absorbed: i64,
    /// Messages left for redelivery, each time counted.
    pub retries: u64,
    /// Messages in the dead-letter queue.
    pub dead_lettered: u64,
    /// Messages that are neither done, nor dead-lettered, nor queued. Below 0: messages out of nowhere.
    pub lost: i64,
    /// What went wrong, one sentence each; empty when all is well.
    pub faults: Vec<String>,
}

impl Summary {
    /// Compares what was seen with what was sent.
    pub fn new(workload: &Workload, seen: &Observed) -> Self {
        let dead_lettered = count(seen.dead_letters.len());
        // A rejected message may be copied to the dead-letter queue by the function and then deleted: that is no
        // work done, and counted once.
        let copied = dead_lettered.saturating_sub(seen.moved);
        let done = signed(seen.deleted) - signed(copied);
        let mut summary = Self {
            messages_sent: seen.sent,
            orders: count(workload.orders.len()),
            handler_runs: seen.handler_runs,
            mail_attempts: seen.mail_attempts,
            mails_sent: count(seen.mails.len()),
            duplicates_absorbed: done - signed(seen.completed),
            retries: seen.left_for_redelivery,
            dead_lettered,
            lost: signed(seen.sent) - done - signed(dead_lettered) - signed(seen.queued),
            faults: Vec::new(),
        };
        summary.check_counts(workload, seen);
        summary.check_mails(workload, seen);
        summary.check_dead_letters(workload, seen);
        summary
    }

    fn check_counts(&mut self, workload: &Workload, seen: &Observed) {
        if self.messages_sent != count(workload.messages.len()) {
            let planned = workload.messages.len();
            self.faults.push(format!("{} messages were sent instead of {planned}", self.messages_sent));
        }
        if self.lost > 0 {
            self.faults.push(format!("{} messages are lost: not done, not dead-lettered, not queued", self.lost));
        }
        if self.lost < 0 {
            self.faults.push(format!("{} messages too many were deleted or dead-lettered", -self.lost));
        }
        if seen.queued > 0 {
            self.faults.push(format!("{} messages are still queued", seen.queued));
        }
        if seen.completed != self.orders {
            let (completed, orders) = (seen.completed, self.orders);
            self.faults.push(format!("the lock table shows {completed} of {orders} orders completed"));
        }
        if self.mail_attempts > self.handler_runs {
            self.faults.push(format!(
                "{} mails were tried in {} handler runs: some without a claim, or twice in one run",
                self.mail_attempts, self.handler_runs
            ));
        }
    }

    fn check_mails(&mut self, workload: &Workload, seen: &Observed) {
        let mut mails: BTreeMap<&str, Vec<&Mail>> = BTreeMap::new();
        for mail in &seen.mails {
            mails.entry(mail.header(KEY_HEADER).unwrap_or_default()).or_default().push(mail);
        }
        let (mut none, mut several, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
        for order in &workload.orders {
            let id = order.order_id.as_str();
            let found = mails.remove(id).unwrap_or_default();
            match found.as_slice() {
                [] => none.push(id),
                [_] => {}
                _ => several.push(id),
            }
            if found.iter().any(|mail| !mail.to.iter().any(|to| to.contains(&order.customer_email))) {
                elsewhere.push(id);
            }
        }
        self.fault("orders got no mail", &none);
        self.fault("orders got more than one mail", &several);
        self.fault("orders' mails went to another address", &elsewhere);
        let unknown: Vec<_> = mails.into_keys().map(|key| if key.is_empty() { "(no key)" } else { key }).collect();
        self.fault(&format!("{KEY_HEADER} values of mails belong to no order"), &unknown);
    }

    fn check_dead_letters(&mut self, workload: &Workload, seen: &Observed) {
        let mut letters: BTreeMap<&str, u32> = BTreeMap::new();
        for body in &seen.dead_letters {
            *letters.entry(body).or_default() += 1;
        }
        let (mut missing, mut repeated) = (Vec::new(), Vec::new());
        for body in workload.broken() {
            match letters.remove(body) {
                None => missing.push(start_of(body)),
                Some(1) => {}
                Some(_) => repeated.push(start_of(body)),
            }
        }
        let mut good = Vec::new();
        for message in &workload.messages {
            if let (Some(i), Some(_)) = (message.order, letters.remove(message.body.as_str())) {
                good.push(workload.orders[i].order_id.as_str());
            }
        }
        self.fault("broken bodies were not dead-lettered", &missing);
        self.fault("broken bodies were dead-lettered more than once", &repeated);
        self.fault("good orders were dead-lettered", &good);
        if !letters.is_empty() {
            // Not quoted: unlike a sample body, it may be a person's.
            self.faults.push(format!("{} bodies in the dead-letter queue were never sent", letters.len()));
        }
    }

    fn fault(&mut self, what: &str, names: &[&str]) {
        if names.is_empty() {
            return;
        }
        let listed = names[..names.len().min(NAMED_MAX)].join(", ");
        let more = names.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        self.faults.push(format!("{} {what}: {listed}{more}", names.len()));
    }
}

impl fmt::Display for Summary {
    /// The table, without the faults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = match self.mail_attempts {
            tried if tried == self.handler_runs => "by the lock table; as many mails tried".to_owned(),
            tried => format!("by the lock table; {tried} mails tried"),
        };
        let rows: [(&str, i64, &str); 8] = [
            ("messages sent", signed(self.messages_sent), "copies and broken bodies included"),
            ("orders", signed(self.orders), "each to be confirmed once"),
            ("handler runs", signed(self.handler_runs), &runs),
            ("mails sent", signed(self.mails_sent), "by the mailbox"),
            ("duplicates absorbed", self.duplicates_absorbed, "done without a mail"),
            ("retries", signed(self.retries), "deliveries left for another one"),
            ("dead-lettered", signed(self.dead_lettered), "broken bodies belong here"),
            ("lost", self.lost, "not done, not dead-lettered, not queued"),
        ];
        for (name, figure, note) in rows {
            writeln!(f, "  {name:<20} {figure:>7}   {note}")?;
        }
        Ok(())
    }
}

fn count(n: usize) -> u64 {
    u64::try_from(n).expect("a usize is at most 64 bits")
}

/// For differences. What is counted here is bounded far below 2⁶³.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Enough of a generated body to know it by; on one line.
fn start_of(body: &str) -> &str {
    let line = body.lines().next().unwrap_or_default();
    &line[..line.floor_char_boundary(48)]
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
