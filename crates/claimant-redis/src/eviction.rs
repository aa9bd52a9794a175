//! Whether the server throws records away when its memory is full, as Amazon ElastiCache does unless told otherwise.

use redis::Value;

/// The policy under which the server deletes keys before their time, from its answer to `INFO memory`; a cluster's has one
/// part for each node.
pub(crate) fn policy(info: &Value) -> Option<String> {
    match info {
        Value::BulkString(text) => policy_in(&String::from_utf8_lossy(text)),
        Value::VerbatimString { text, .. } => policy_in(text),
        Value::Map(nodes) => nodes.iter().find_map(|(_, info)| policy(info)),
        _ => None,
    }
}

fn policy_in(text: &str) -> Option<String> {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let policy = value("maxmemory_policy")?;
    // Without a limit of its own, nothing is evicted; the operating system ends the server instead.
    let limited = value("maxmemory").is_some_and(|bytes| bytes.trim() != "0");
    (limited && policy.trim() != "noeviction").then(|| policy.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_counts_where_memory_is_limited() {
        let info = |limit: &str, policy: &str| {
            let text = format!("# Memory\r\nmaxmemory_human:1G\r\nmaxmemory:{limit}\r\nmaxmemory_policy:{policy}\r\n");
            Value::BulkString(text.into_bytes())
        };
        let cluster = |nodes: [Value; 2]| Value::Map(nodes.map(|info| (Value::Okay, info)).into());
        for (answer, wanted) in [
            (info("1073741824", "volatile-lru"), Some("volatile-lru")),
            (info("1073741824", "noeviction"), None),
            (info("0", "allkeys-lru"), None),
            (cluster([info("1", "noeviction"), info("1", "allkeys-lfu")]), Some("allkeys-lfu")),
            (cluster([info("1", "noeviction"), info("1", "noeviction")]), None),
            (Value::BulkString(b"# Memory\r\n".to_vec()), None),
            (Value::Nil, None),
        ] {
            assert_eq!(policy(&answer).as_deref(), wanted, "{answer:?}");
        }
    }
}
