//! What a sample says of one function: what is sent to it, and what is seen of its work.

use std::collections::BTreeMap;
use std::pin::Pin;

use super::plan::{Plan, Request};
use super::records::Records;
use crate::Error;
use crate::cloud::Services;
use crate::stack::FunctionSpec;

/// The variable that names a function's lock table.
const TABLE_VARIABLE: &str = "CLAIMANT_TABLE";

/// What is sent to one function, and where its effects are seen.
pub(super) trait Sample: Sync {
    /// The function, by its binary. Its consumer has the same name.
    fn function(&self) -> &'static str;

    /// What its effects are called, in the plural.
    fn effects(&self) -> &'static str;

    /// The variables of a function that name where its effects are kept; none where those of all functions are in one place.
    fn kept_in(&self) -> &'static [&'static str] {
        &[]
    }

    /// What is said when nothing is wrong.
    fn all_well(&self, function: &FunctionSpec) -> &'static str;

    /// Makes what has to be there before the first message; nothing unless a sample says otherwise.
    fn prepare<'a>(&'a self, _: Request, _: &'a FunctionSpec) -> Prepare<'a> {
        Box::pin(async { Ok(()) })
    }

    /// What is sent, and what must become of it.
    fn plan(&self, request: Request, function: &FunctionSpec) -> Plan;

    /// What the lock table says of this function's keys now, read whole; `None` where `look` has read them already.
    fn records(&self, services: &Services, function: &FunctionSpec) -> Result<Option<Records>, Error> {
        let items = services.dynamodb.items(variable_of(function, TABLE_VARIABLE)?)?;
        Ok(Some(Records::of_items(&items, self.function())))
    }

    /// What there is now, without its records in the lock table.
    fn look<'a>(&'a self, services: &'a Services, function: &'a FunctionSpec) -> Look<'a>;
}

/// Whether all is there that a function's work needs, or why it cannot be made.
pub(super) type Prepare<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

/// What is seen of one function's work, or why it cannot be.
pub(super) type Look<'a> = Pin<Box<dyn Future<Output = Result<Seen, Error>> + Send + 'a>>;

/// What is seen of one function's work where it has its effects.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Every effect so far.
    pub(super) effects: Vec<Effect>,
    /// How often an effect was tried, by the system that has it.
    pub(super) tries: u64,
    pub(super) records: Records,
}

impl Seen {
    /// Without the effects and tries that had been there before.
    pub(super) fn since(mut self, before: &Self) -> Self {
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
pub(super) struct Effect {
    /// Of the work; empty where it has none.
    pub(super) key: String,
    /// What was done: an address, an amount.
    pub(super) what: String,
}

/// The value of a variable by which a function knows its table or its database.
pub(super) fn variable_of<'a>(function: &'a FunctionSpec, variable: &str) -> Result<&'a str, Error> {
    function.environment.get(variable).map(String::as_str).ok_or_else(|| {
        let name = &function.name;
        Error::new(format!("the sample workload needs {variable} in the variables of {name}: give it one"))
    })
}
