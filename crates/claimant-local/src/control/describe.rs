//! What a cloud holds, as JSON.

use std::env;
use std::path::{Path, absolute};

use serde_json::{Value, json};

use crate::arn;
use crate::cloud::environment::HIDDEN;
use crate::sqs::Sqs;
use crate::stack::{FunctionSpec, QueueSpec, Stack};

/// The variable by which a function of ours knows its table.
const TABLE_VARIABLE: &str = "CLAIMANT_TABLE";

/// The variable with the tables that had its records before.
const BEFORE_VARIABLE: &str = "CLAIMANT_TABLE_BEFORE";

/// The variable with the URL of the queue that a function copies what it gives up on to.
const DEAD_LETTER_VARIABLE: &str = "CLAIMANT_DEAD_LETTER_QUEUE_URL";

/// The variable with the ARN of the queue for what a function's schedules could not send.
const UNSENT_VARIABLE: &str = "CLAIMANT_SCHEDULE_DEAD_LETTER_ARN";

/// Returns what the stack holds, which of its functions run, the queues' addresses, and these variables for clients. No other value of a
/// function's variables is shown, and of those no secret.
#[must_use]
pub fn describe(
    template: &Path,
    (stack, runs): (&Stack, &dyn Fn(&str) -> bool),
    sqs: &Sqs,
    variables: &[(String, String)],
) -> Value {
    let is_table = |name: &str| stack.tables.iter().any(|table| table.name == name);
    let is_queue = |name: &str| stack.queues.iter().any(|queue| queue.name == name);
    // What it has in common with the stack is no secret.
    let is_shown = |function: &FunctionSpec, variable: &str, is_of_stack: bool| {
        is_of_stack || !function.secrets.contains(variable)
    };
    let tables = |function: &FunctionSpec, variable: &str| {
        let tables = function.environment.get(variable)?;
        let is_of_stack = tables.is_empty() || tables.split(',').map(str::trim).all(is_table);
        Some(if is_shown(function, variable, is_of_stack) { tables.clone() } else { HIDDEN.to_owned() })
    };
    let is_read = |name: &str| stack.functions.iter().any(|function| reads(function, name));
    let unsent = |function: &'_ FunctionSpec| {
        let arn = function.environment.get(UNSENT_VARIABLE)?;
        // A queue whose messages are at work is none of dead letters.
        let name = arn::local_queue_name(arn).filter(|name| !is_read(name))?;
        is_shown(function, UNSENT_VARIABLE, is_queue(name)).then(|| name.to_owned())
    };
    let queue = |queue: &QueueSpec| {
        json!({
            "name": queue.name,
            "logical_id": queue.logical_id,
            "url": sqs.queue_url(&queue.name),
            "dead_letter_queue": queue.settings.redrive.as_ref().map(|redrive| &redrive.dead_letter_queue),
            "is_dead_letter_queue": stack.functions.iter().filter_map(unsent).any(|name| name == queue.name),
            "unsent": stack.functions.iter().filter(|f| reads(f, &queue.name)).filter_map(unsent)
                .map(|name| sqs.queue_url(&name)).collect::<Vec<_>>(),
        })
    };
    let function = |function: &FunctionSpec| {
        let copies_to = function.environment.get(DEAD_LETTER_VARIABLE).filter(|url| !url.is_empty());
        let copies_to = copies_to.and_then(|url| url.rsplit('/').next());
        json!({
            "name": function.name,
            "logical_id": function.logical_id,
            "binary": function.binary,
            "runs": runs(&function.name),
            "queues": function.mappings.iter().map(|mapping| mapping.queue.as_str()).collect::<Vec<_>>(),
            "table": tables(function, TABLE_VARIABLE),
            "table_before": tables(function, BEFORE_VARIABLE),
            "dead_letter_queue": copies_to.filter(|name| is_shown(function, DEAD_LETTER_VARIABLE, is_queue(name))),
        })
    };
    let variables: serde_json::Map<_, _> =
        variables.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    json!({
        "template": template.display().to_string(),
        "directory": directory(template),
        "variables": variables,
        "tables": stack.tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>(),
        "queues": stack.queues.iter().map(queue).collect::<Vec<_>>(),
        "functions": stack.functions.iter().map(function).collect::<Vec<_>>(),
    })
}

/// Returns the directory of a template, for commands that are typed elsewhere; of one that is no file, as from a pipe, the one here.
fn directory(template: &Path) -> Option<String> {
    let directory = match template.is_file() {
        true => absolute(template).ok()?.parent()?.to_owned(),
        false => env::current_dir().ok()?,
    };
    Some(directory.display().to_string())
}

fn reads(function: &FunctionSpec, queue: &str) -> bool {
    function.mappings.iter().any(|mapping| mapping.queue == queue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_from_a_pipe_is_in_the_directory_here() {
        let here = env::current_dir().unwrap();
        let of = |template: &str| directory(Path::new(template)).unwrap();
        assert_eq!(of("/dev/null"), here.display().to_string());
        assert_eq!(of("src/lib.rs"), here.join("src").display().to_string());
    }
}
