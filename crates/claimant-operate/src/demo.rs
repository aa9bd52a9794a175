//! A demonstration on a local cloud with the sample functions: a duplicate absorbed, a killed process taken over, a dead letter redriven.

use std::ops::ControlFlow;
use std::time::Duration;

use claimant_core::{Clock as _, ConsumerName, Error, Record, Status, SystemClock};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::dead::{Bounds, DeadLetter, DeadLetterQueue, Edit, LOOKED_AT_MAX, Selection};
use crate::faults::{FaultSpec, Faults};
use crate::keys::Keys;
use crate::send::{Batch, Sender, fresh_number};
use crate::target::{Function, Place, Queue};

const ORDERS: Sample = Sample { queue: "OrderQueue", consumer: "order-confirmation" };
const PAYMENTS: Sample = Sample { queue: "PaymentQueue", consumer: "payment" };

/// How long each thing that is waited for may take: longer than a lease, shorter than a person waits.
const WAIT_MAX: Duration = Duration::from_secs(45);

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long before the end of a dead owner's lease the copy comes.
const BEFORE_THE_END: Duration = Duration::from_secs(1);

/// A queue of the sample functions, and the consumer whose keys its messages have.
struct Sample {
    queue: &'static str,
    consumer: &'static str,
}

/// A part of the demonstration that is over: what was seen to happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chapter {
    /// What it shows.
    pub title: &'static str,
    /// What happened, in sentences.
    pub says: String,
    /// The messages, each with what it is.
    pub messages: Vec<Shown>,
}

/// A message to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// What it is, in a few words.
    pub is: &'static str,
    /// Its id.
    pub id: String,
}

/// Checks that this place has what the demonstration needs.
///
/// # Errors
/// When it is no local cloud with the sample functions for orders and payments, or one of them does not run.
pub fn check(place: &Place) -> Result<(), Error> {
    Demo::of(place).map(drop)
}

/// Runs the demonstration; gives each chapter once it is over. About 10 s. Cancel safe: what was sent stays sent.
///
/// # Errors
/// When the place is no local cloud with the sample functions, something gives no answer, or what is to be shown does not happen in time:
/// where other messages are worked on at the same time, for example.
pub async fn run(place: &Place, chapter: &mut (dyn FnMut(Chapter) + Send)) -> Result<(), Error> {
    let demo = Demo::of(place)?;
    let number = format!("demo-{}", fresh_number(SystemClock.now()));
    chapter(demo.duplicate(&number).await?);
    chapter(demo.takeover(&number).await?);
    chapter(demo.redrive(&number).await?);
    Ok(())
}

struct Demo<'p> {
    place: &'p Place,
    orders: &'p Queue,
    payments: &'p Queue,
    payer: &'p Function,
}

impl<'p> Demo<'p> {
    fn of(place: &'p Place) -> Result<Self, Error> {
        let needs = || {
            Error::invalid(format!(
                "the demonstration needs a local cloud with the sample functions order-confirmation and payment, and {} is none: start \
                 `claimant local` in claimant's own repository",
                place.name
            ))
        };
        let queue = |sample: &Sample| place.queue(sample.queue).filter(|queue| queue.dead_letter_queue.is_some());
        let reader = |sample: &Sample| place.functions.iter().find(|f| f.queues.iter().any(|q| q == sample.queue));
        match (place.control.as_ref(), queue(&ORDERS), queue(&PAYMENTS), reader(&ORDERS), reader(&PAYMENTS)) {
            (Some(_), Some(_), Some(_), Some(reader), Some(payer)) if !(reader.runs && payer.runs) => {
                let idle = if reader.runs { payer } else { reader };
                Err(Error::invalid(format!(
                    "the demonstration needs {}, which does not run here: start it, too",
                    idle.name
                )))
            }
            (Some(_), Some(orders), Some(payments), Some(_), Some(payer)) => {
                Ok(Self { place, orders, payments, payer })
            }
            _ => Err(needs()),
        }
    }

    async fn duplicate(&self, number: &str) -> Result<Chapter, Error> {
        let body = order(number);
        let first = self.send(self.orders, &body).await?;
        self.completed(&ORDERS, number).await?;
        let copy = self.send(self.orders, &body).await?;
        self.gone(self.orders, &first).await?;
        self.gone(self.orders, &copy).await?;
        let record = self.completed(&ORDERS, number).await?;
        if record.attempts != 1 {
            return Err(unexpected(format!("the handler ran {} times for {number}", record.attempts)));
        }
        Ok(Chapter {
            title: "A duplicate is absorbed",
            says: format!(
                "Order {number} was sent twice. Both messages are gone from the queue, and the handler ran once."
            ),
            messages: vec![shown("the order", first), shown("its copy", copy)],
        })
    }

    /// The gateway answers after two seconds, so that the process is killed while its handler waits.
    async fn takeover(&self, number: &str) -> Result<Chapter, Error> {
        let number = format!("slow-{number}");
        let body = format!(r#"{{"order_id":"{number}","amount_cents":3390,"currency":"EUR"}}"#);
        let faults = Faults::of(self.place)?;
        let name = self.payer.name.clone();
        let kill = FaultSpec { act: "kill".to_owned(), function: Some(name.clone()), ..FaultSpec::default() };
        let kill = faults.begin(&kill).await?;
        let first = self.send(self.payments, &body).await?;
        let wait = Wait::default();
        while !faults.list().await?.iter().any(|fault| fault.id == kill.id && fault.acted > 0) {
            if let Err(error) = wait.for_it("a process to be killed").await {
                // It is not to meet someone else's payment later.
                faults.end(kill.id).await?;
                return Err(error);
            }
        }
        // A copy that comes earlier would be hidden for longer than anyone likes to look on: whoever renews a lease may renew it again.
        let lease_until = self.record(&PAYMENTS, &number, Status::InProgress).await?.lease_until;
        sleep(lease_until.since(SystemClock.now()).saturating_sub(BEFORE_THE_END)).await;
        let copy = self.send(self.payments, &body).await?;
        let record = self.completed(&PAYMENTS, &number).await?;
        if record.message_id.as_str() != copy || record.attempts < 2 {
            return Err(unexpected(format!("the killed process of {name} had another message than {number}")));
        }
        Ok(Chapter {
            title: "A killed process is taken over",
            says: format!(
                "A process of {name} was killed once it had claimed payment {number}. A copy of the message came before the lease \
                 was over, waited for that, took the claim over with fence {}, and completed it.",
                record.fence
            ),
            messages: vec![
                shown("the copy that took over", copy),
                shown("the payment whose process was killed", first),
            ],
        })
    }

    async fn redrive(&self, number: &str) -> Result<Chapter, Error> {
        let number = format!("{number}-fixed");
        let broken = self.send(self.orders, &order("")).await?;
        let name = self.orders.dead_letter_queue.as_deref().unwrap_or_default();
        let queue = self.place.queue(name).ok_or_else(|| unexpected(format!("there is no queue {name}")))?;
        let dead = DeadLetterQueue::open_in(self.place, &queue.url).await?;
        let wait = Wait::default();
        let letter = loop {
            if let Some(letter) = of_id(&dead, &broken).await? {
                break letter.message_id;
            }
            wait.for_it("the dead letter").await?;
        };
        let selection = Selection::ids([letter.clone()]);
        let bounds = Bounds { limit: 1, per_s: None, dry_run: false };
        let edit = Edit::Body(order(&number));
        let report = dead.redrive(&selection, None, &edit, bounds, &mut |_| ControlFlow::Continue(())).await?;
        let sent_back = report.done.into_iter().find_map(|done| done.new_id);
        let why =
            || report.problems.first().map_or_else(|| "it was not found".to_owned(), |problem| problem.why.clone());
        let sent_back = sent_back.ok_or_else(|| unexpected(format!("the dead letter was not sent back: {}", why())))?;
        self.completed(&ORDERS, &number).await?;
        Ok(Chapter {
            title: "A dead letter is redriven",
            says: format!(
                "An order without its id went to {name}. It was sent back with the id {number}, and is done now."
            ),
            messages: vec![
                shown("the order without its id", broken),
                shown("its dead letter", letter),
                shown("what was sent back", sent_back),
            ],
        })
    }

    async fn send(&self, queue: &Queue, body: &str) -> Result<String, Error> {
        let batch = Batch::of(body);
        let planned = batch.plan("", SystemClock.now(), false)?;
        let report = Sender::new(self.place.sqs(), &queue.url).send(&batch, &planned).await?;
        report.ids.into_iter().next().ok_or_else(|| {
            unexpected(report.problems.first().cloned().unwrap_or_else(|| format!("{} took no message", queue.name)))
        })
    }

    async fn completed(&self, sample: &Sample, key: &str) -> Result<Record, Error> {
        self.record(sample, key, Status::Completed).await
    }

    /// Waits until a key has this status.
    async fn record(&self, sample: &Sample, key: &str, status: Status) -> Result<Record, Error> {
        let ids = Keys::ids(key, Some(&ConsumerName::new(sample.consumer)?))?;
        let stores = self.place.open_stores(None).await?;
        let wait = Wait::default();
        loop {
            for store in &stores {
                for id in &ids {
                    if let Some(record) = store.keys.get(id).await?.filter(|record| record.status == status) {
                        return Ok(record);
                    }
                }
            }
            wait.for_it(&format!("{key} to be {status}")).await?;
        }
    }

    /// Waits until a queue has this message no more.
    async fn gone(&self, queue: &Queue, id: &str) -> Result<(), Error> {
        let queue = DeadLetterQueue::open_in(self.place, &queue.url).await?;
        let wait = Wait::default();
        while of_id(&queue, id).await?.is_some() {
            wait.for_it(&format!("message {id} to be deleted")).await?;
        }
        Ok(())
    }
}

/// The message that has this id, or had it before it was dead-lettered, among the first [`LOOKED_AT_MAX`].
async fn of_id(queue: &DeadLetterQueue, id: &str) -> Result<Option<DeadLetter>, Error> {
    Ok(queue.page(&Selection::ids([id]), None, 1, LOOKED_AT_MAX).await?.letters.pop())
}

/// A wait for something, which is looked for again and again.
struct Wait {
    end: Instant,
}

impl Default for Wait {
    fn default() -> Self {
        Self { end: Instant::now() + WAIT_MAX }
    }
}

impl Wait {
    /// Waits until it is time for the next look.
    async fn for_it(&self, what: &str) -> Result<(), Error> {
        if Instant::now() >= self.end {
            return Err(unexpected(format!("after {} s still waiting for {what}", WAIT_MAX.as_secs())));
        }
        sleep(LOOK_EVERY).await;
        Ok(())
    }
}

fn order(id: &str) -> String {
    format!(
        r#"{{"order_id":"{id}","customer_email":"ada@example.com","items":[{{"sku":"tea-assam-250g","quantity":2,"unit_price_cents":890}}],"currency":"EUR"}}"#
    )
}

const fn shown(is: &'static str, id: String) -> Shown {
    Shown { is, id }
}

fn unexpected(why: String) -> Error {
    Error::new(format!("the demonstration went otherwise: {why}; run it again when no other work is under way"))
}
