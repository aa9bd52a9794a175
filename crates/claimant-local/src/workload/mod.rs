//! A sample workload for each function, and what became of it as seen from outside.
//!
//! Pieces of work, a third of them sent two or three times, with broken bodies and with faults at the systems that have the
//! effects. The figures come from the queues, the tables, the mailbox and the gateway, never from a function's own
//! word.
//!
//! | module | holds |
//! | --- | --- |
//! | `plan` | what is sent, and what must become of it; the same for every function |
//! | `orders`, `payments`, `gift_cards`, `loyalty`, `inventory` | one function's `Sample` each: what is sent to it, and where its effects are seen |
//! | `records` | the records' word, in the lock table or in PostgreSQL |
//! | `run` | sending, waiting, looking |
//! | `summary`, `report` | the arithmetic, and what is wrong with it; the table |
//!
//! A function more is a module more with its `Sample`, and a line in `SAMPLES`.

mod gift_cards;
mod inventory;
mod loyalty;
mod orders;
mod payments;
mod plan;
mod records;
mod report;
mod run;
mod summary;

use std::collections::BTreeMap;
use std::pin::Pin;

use crate::Error;
use crate::cloud::Cloud;
use crate::stack::FunctionSpec;

pub use plan::{COUNT_MAX, Random};
use plan::{Plan, Request};
use records::Records;
pub use report::Report;
pub use run::{Progress, Settings, run};
pub use summary::Summary;

/// The samples, in the order of their rows.
const SAMPLES: [&dyn Sample; 5] =
    [&orders::Orders, &payments::Payments, &gift_cards::GiftCards, &loyalty::Loyalty, &inventory::Inventory];

/// What is sent to one function, and where its effects are seen.
trait Sample {
    /// The function, by its binary. Its consumer has the same name.
    fn function(&self) -> &'static str;

    /// What its effects are called, in the plural.
    fn effects(&self) -> &'static str;

    /// What is said when nothing is wrong.
    fn all_well(&self, function: &FunctionSpec) -> &'static str;

    /// Makes what has to be there before the first message; nothing unless a sample says otherwise.
    fn prepare<'a>(&'a self, _: Request, _: &'a FunctionSpec) -> Prepare<'a> {
        Box::pin(async { Ok(()) })
    }
    /// What is sent, and what must become of it.
    fn plan(&self, request: Request, function: &FunctionSpec) -> Plan;

    /// What there is now.
    fn look<'a>(&'a self, cloud: &'a Cloud, function: &'a FunctionSpec) -> Look<'a>;
}

/// Whether all is there that a function's work needs, or why it cannot be made.
type Prepare<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

/// What is seen of one function's work, or why it cannot be.
type Look<'a> = Pin<Box<dyn Future<Output = Result<Seen, Error>> + 'a>>;

/// What is seen of one function's work where it has its effects.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Every effect so far.
    effects: Vec<Effect>,
    /// How often an effect was tried, by the system that has it.
    tries: u64,
    records: Records,
}

impl Seen {
    /// Without the effects and tries that had been there before.
    fn since(mut self, before: &Self) -> Self {
        let mut old = BTreeMap::new();
        for effect in &before.effects {
            *old.entry(effect).or_insert(0_u32) += 1;
        }
        self.effects.retain(|effect| match old.get_mut(effect) {
            Some(left @ 1..) => {
                *left -= 1;
                false
            }
            _ => true,
        });
        self.tries = self.tries.saturating_sub(before.tries);
        self
    }
}

/// One effect: a mail, a charge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Effect {
    /// Of the work; empty where it has none.
    key: String,
    /// What was done: an address, an amount.
    what: String,
}

/// The value of a variable by which a function knows its table or its database.
fn variable_of<'a>(function: &'a FunctionSpec, variable: &str) -> Result<&'a str, Error> {
    function.environment.get(variable).map(String::as_str).ok_or_else(|| {
        let name = &function.name;
        Error::new(format!("the sample workload needs {variable} in the variables of {name}: give it one"))
    })
}
