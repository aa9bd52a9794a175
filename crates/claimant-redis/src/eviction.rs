//! Whether the server evicts records when its memory is full, as Amazon ElastiCache does by default.

use redis::Value;

/// Returns the policy by which the server evicts keys that have not expired, from its answer to `INFO memory`.
pub(crate) fn policy(info: Value) -> Option<String> {
    let text: String = redis::from_redis_value(info).ok()?;
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
        for (answer, wanted) in [
            (info("1073741824", "volatile-lru"), Some("volatile-lru")),
            (info("1073741824", "noeviction"), None),
            (info("0", "allkeys-lru"), None),
            (Value::BulkString(b"# Memory\r\n".to_vec()), None),
            (Value::Nil, None),
        ] {
            assert_eq!(policy(answer.clone()).as_deref(), wanted, "{answer:?}");
        }
    }
}
