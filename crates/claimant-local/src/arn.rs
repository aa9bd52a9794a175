//! The one account and Region of everything local, and the ARNs in them.

/// The Region of everything local.
pub const REGION: &str = "us-east-1";

/// The account of everything local.
pub const ACCOUNT_ID: &str = "000000000000";

/// Returns the ARN of a queue, whether it exists or not.
pub(crate) fn of_queue(name: &str) -> String {
    format!("arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}")
}

/// Returns the ARN of a table, whether it exists or not.
pub(crate) fn of_table(name: &str) -> String {
    format!("arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{name}")
}

/// Returns the ARN of a bucket, whether it exists or not.
pub(crate) fn of_bucket(name: &str) -> String {
    format!("arn:aws:s3:::{name}")
}

/// Returns the ARN of a function, whether it exists or not.
pub(crate) fn of_function(name: &str) -> String {
    format!("arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{name}")
}

/// Returns the ARN of a role, whether it exists or not.
pub(crate) fn of_role(name: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT_ID}:role/{name}")
}

/// Returns the name in the ARN of a local queue.
pub(crate) fn local_queue_name(arn: &str) -> Option<&str> {
    arn.strip_prefix(&of_queue("")).filter(|name| !name.is_empty())
}

/// Returns what a queue with this ARN is called here: by its name if it is a local one, else by the ARN.
pub(crate) fn queue_here(arn: &str) -> Option<&str> {
    local_queue_name(arn).or_else(|| arn.starts_with("arn:").then_some(arn))
}

/// Returns the name in the ARN of a queue of any account, Region and partition.
pub(crate) fn queue_name(arn: &str) -> Option<&str> {
    match arn.split(':').collect::<Vec<_>>()[..] {
        ["arn", _, "sqs", _, _, name] if !name.is_empty() => Some(name),
        _ => None,
    }
}

/// Returns whether this is the ARN of a standard queue of any account, Region and partition.
pub(crate) fn is_standard_queue(arn: &str) -> bool {
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    queue_name(arn).is_some_and(is_name) && is_account(arn)
}

/// Returns whether this is the ARN of a role of any account and partition.
pub(crate) fn is_role(arn: &str) -> bool {
    let named = arn.strip_prefix("arn:").and_then(|rest| rest.split_once(":iam::")).map(|(_, role)| role);
    let role = named.and_then(|role| role.split_once(":role/"));
    role.is_some_and(|(_, name)| !name.is_empty()) && is_account(arn)
}

fn is_account(arn: &str) -> bool {
    let account = arn.split(':').nth(4).unwrap_or_default();
    account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the function's name in a name, an ARN or the part of one that begins with its account, without an alias or a version.
pub(crate) fn function_name(name_or_arn: &str) -> &str {
    let begins = [of_function(""), format!("{ACCOUNT_ID}:function:")];
    let rest = begins.iter().find_map(|begin| name_or_arn.strip_prefix(begin)).unwrap_or(name_or_arn);
    rest.split(':').next().unwrap_or(rest)
}
