//! The model of what is deployed: asked of an account, with requests that only read.
//!
//! Whoever asks is an [`Account`]: AWS itself (feature `aws`), or a script in tests. What is refused is unknown, and
//! the report says so; what is not there is [gone](crate::model::Gone).
//!
//! | module | holds |
//! | --- | --- |
//! | `answers` | requests, answers, and what was refused |
//! | `names` | ARNs, URLs and names |
//! | `stacks` | the functions of stacks, and what else of them findings can be about |
//! | `deleted` | what of a stack is not there any more |
//! | `accepted` | what the resources of a stack accept |
//! | `functions` | functions, their mappings and what their roles may do |
//! | `queues` | queues |
//! | `tables` | lock tables |
//! | `watching` | alarms and logs |
//! | `history` | what the last day's metrics say |
//! | `aws`, `wire` | AWS: requests that are signed and tried again, and what they look like |

mod accepted;
mod answers;
#[cfg(feature = "aws")]
mod aws;
mod deleted;
mod functions;
mod history;
mod names;
mod queues;
mod stacks;
mod tables;
mod watching;
#[cfg(feature = "aws")]
mod wire;

use crate::fact::Fact;
use crate::model::System;

use answers::Asker;
pub use answers::{Account, Refused, Request, Service};
#[cfg(feature = "aws")]
pub use aws::Aws;
pub use stacks::{StackParts, StackResource, parts_of_stack};

/// Functions that are examined at most.
const FUNCTIONS_MAX: usize = 200;

/// What to examine in an account.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// A stack, by its name; with those nested in it.
    pub stack: Option<String>,
    /// Functions, by their names.
    pub functions: Vec<String>,
    /// The end of the day whose metrics are looked at, in seconds since 1970; none if they are not.
    pub history_until_s: Option<u64>,
}

/// Asks for all that the checks look at; returns with it what was not looked at, and why.
///
/// # Errors
/// The stack or the event source mappings cannot be read, or none of the functions can, and none was deleted; or the stack has no function.
pub async fn examine<A: Account>(account: &A, scope: &Scope) -> Result<(System, Vec<String>), Refused> {
    let asker = Asker::new(account);
    let (mut names, mut of_stack) = (scope.functions.clone(), Vec::new());
    if let Some(stack) = &scope.stack {
        of_stack = stacks::resources_of(&asker, stack).await?;
        let functions = of_stack.iter().filter(|resource| resource.kind == stacks::FUNCTION);
        let functions: Vec<_> = functions.map(|resource| resource.id.clone()).collect();
        if functions.is_empty() {
            let code = "there is no function in it, nor in a stack nested in it: is it the right one?".to_owned();
            let refused = Refused { operation: "ListStackResources", about: stack.clone(), code };
            if names.is_empty() {
                return Err(refused);
            }
            asker.note(refused.to_string());
        }
        names.extend(functions);
    }
    names.sort();
    names.dedup();
    if names.len() > FUNCTIONS_MAX {
        asker.note(format!(
            "{} functions of {}: only the first {FUNCTIONS_MAX}",
            names.len() - FUNCTIONS_MAX,
            names.len()
        ));
        names.truncate(FUNCTIONS_MAX);
    }
    if names.is_empty() {
        asker.note("there is no function: nothing was examined".to_owned());
    }
    let mut system = System { database_connections: Fact::Unknown, ..System::default() };
    let mappings = if names.is_empty() { Vec::new() } else { functions::mappings(&asker).await? };
    let mut read = Vec::new();
    let mut last = None;
    for name in &names {
        match functions::read(&asker, name, &mappings, &mut system).await {
            Ok(function) => read.push(function),
            Err(refused) => {
                let of_stack = of_stack.iter().find(|one| one.kind == stacks::FUNCTION && one.id == *name);
                match of_stack.filter(|_| refused.is_gone()) {
                    Some(resource) => deleted::note(resource, &mut system),
                    None => asker.note(refused.to_string()),
                }
                last = Some(refused);
            }
        }
    }
    let is_nothing = system.functions.is_empty() && system.home.gone.of_stack.is_empty();
    if let (true, Some(refused)) = (is_nothing, last) {
        return Err(refused);
    }
    functions::elsewhere(&mappings, &mut system);
    let mut asked = queues::read(&asker, &mut system).await;
    asked.extend(tables::read(&asker, &mut system).await);
    deleted::read(&asker, (&of_stack, &mappings), &asked, &mut system).await;
    for (index, function) in read.iter().enumerate() {
        functions::simulate(&asker, function, index, &mut system).await;
    }
    watching::read(&asker, &mut system).await;
    if let Some(until_s) = scope.history_until_s {
        system.history = Some(history::read(&asker, &system, until_s).await);
    }
    accepted::read(&asker, &of_stack, &mut system).await;
    Ok((system, asker.into_notes()))
}
