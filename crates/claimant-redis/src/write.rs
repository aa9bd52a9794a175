//! One guarded write as a script. Redis only decides whether fields have the values that were read.

use std::sync::LazyLock;
use std::time::Duration;

use claimant_core::protocol::{ClaimRequest, Renewal, Settlement, expiry, fresh_claim, window_end};
use claimant_core::{Claim, Record, Status, StoreError, Timestamp, limits};
use redis::{Cmd, Script, Value};

use crate::fields::{self, Field};

/// Sets fields of one hash and returns 1 if the guard holds; else returns all fields and values of the hash.
///
/// Arguments: the time to live in ms; how many fields the guard has, 0 for "there is no such hash", and each with its
/// value; how many fields are set, and each with its value; the fields that are removed.
///
/// The first claim of a key is refused to a user that could not end it: a script is not rolled back, and work is done by then. So it reads by
/// `HGETALL`, which duplicates need, and `HGET`, which settlements need; and from Redis 7 on it asks for the rights to later writes before it
/// writes, and for that to the script itself, which another node does not know yet.
///
/// A server whose memory is full refuses `HSET`, unless the script has written before. So of a record that is there the time to live comes first:
/// done work whose completion was refused would be done again, or parked. A record that is not there is not written then.
const GUARDED_WRITE: &str = "\
local key, at = KEYS[1], 2
local function pairs_here()
  local first = at + 1
  at = first + 2 * tonumber(ARGV[at])
  return first, at - 1
end
local first, last = pairs_here()
local shown = first > last and redis.call('HGETALL', key)
local holds = not shown or #shown == 0 and not redis.call('HGET', key, '')
for i = first, last, 2 do
  holds = holds and redis.call('HGET', key, ARGV[i]) == ARGV[i + 1]
end
if not holds then return shown or redis.call('HGETALL', key) end
local may = redis.acl_check_cmd
if may and not (may('EVAL', '', 1, key) and may('HDEL', key, '') and may('PEXPIRE', key, 0)) then
  return redis.error_reply('NOPERM EVAL, HDEL, PEXPIRE')
end
if not shown then redis.call('PEXPIRE', key, ARGV[1]) end
redis.call('HSET', key, unpack(ARGV, pairs_here()))
if at <= #ARGV then redis.call('HDEL', key, unpack(ARGV, at)) end
if shown then redis.call('PEXPIRE', key, ARGV[1]) end
return 1";

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(GUARDED_WRITE));

/// How much longer than its window a record is kept, beside the clock-skew margin: the clock of a replica that takes over
/// is another one, and a claim can have been under way when the record was deleted.
const TTL_MARGIN_MS: u64 = 60_000;

/// The longest that a record is kept: Redis refuses times beyond 2^63 ms.
const TTL_MAX_MS: u64 = 1_000 * 365 * 86_400_000;

const _: () = assert!(TTL_MARGIN_MS >= limits::SKEW_MAX_MS && TTL_MARGIN_MS > limits::STORE_CALL_MAX_MS);
const _: () = assert!(TTL_MAX_MS > limits::WINDOW_MAX_S * 1_000 + limits::LEASE_MAX_MS);

/// Whether the server knows the script by its digest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Yes,
    /// The whole script is sent, and known from then on.
    No,
}

/// One write of one record, which applies only while the guard holds.
pub(crate) struct Write {
    key: Vec<u8>,
    /// The values that these fields must have; if empty, there must be no record.
    guard: Vec<Field>,
    set: Vec<Field>,
    remove: Vec<&'static str>,
    ttl: Duration,
}

/// The reply to a command.
#[allow(clippy::large_enum_variant, reason = "it is used where it is made")]
pub(crate) enum Reply {
    /// The write applied.
    Applied,
    /// The guard did not hold, or nothing was to be written; this is the record.
    Shown(Option<Record>),
}

impl Write {
    /// Claims a key that has no record.
    pub(crate) fn fresh(key: &[u8], request: &ClaimRequest) -> Self {
        Self::full(key, Vec::new(), &fresh_claim(request), request.now, request.policy.skew)
    }

    /// Writes `next` in full, if the record is still the one that was read.
    pub(crate) fn replace(key: &[u8], seen: &Record, next: &Record, now: Timestamp, skew: Duration) -> Self {
        // Owner and fence name one claim, status and lease everything that can happen to it.
        let guard = vec![
            (fields::STATUS, fields::text(seen.status.as_str())),
            (fields::OWNER, fields::text(seen.owner.as_str())),
            (fields::FENCE, fields::number(seen.fence.get())),
            (fields::LEASE_UNTIL, fields::time(seen.lease_until)),
        ];
        Self::full(key, guard, next, now, skew)
    }

    fn full(key: &[u8], guard: Vec<Field>, next: &Record, now: Timestamp, skew: Duration) -> Self {
        let (set, remove) = fields::values(next);
        Self { key: key.to_vec(), guard, set, remove, ttl: ttl(next.expires_at_s, now, skew) }
    }

    /// Makes the lease longer than the one that was seen.
    pub(crate) fn renew(key: &[u8], claim: &Claim, lease_seen: Timestamp, renewal: &Renewal) -> Self {
        let expires_at_s = expiry(renewal.now, renewal.lease_until, &renewal.policy);
        let mut guard = held(claim);
        guard.push((fields::LEASE_UNTIL, fields::time(lease_seen)));
        let set = vec![
            (fields::LEASE_UNTIL, fields::time(renewal.lease_until)),
            (fields::UPDATED_AT, fields::time(renewal.now)),
            (fields::EXPIRES_AT, fields::number(expires_at_s)),
        ];
        let ttl = ttl(expires_at_s, renewal.now, renewal.policy.skew);
        Self { key: key.to_vec(), guard, set, remove: Vec::new(), ttl }
    }

    /// Ends the claim. A record in progress has no result or time of completion to be removed, and as many attempts as
    /// its claim says; if it has another number, the protocol decides on the record.
    pub(crate) fn settle(key: &[u8], claim: &Claim, settlement: &Settlement) -> Self {
        let ending = &settlement.ending;
        let expires_at_s = window_end(settlement.now, &settlement.policy);
        let mut guard = held(claim);
        let mut set = vec![
            (fields::STATUS, fields::text(ending.status().as_str())),
            (fields::UPDATED_AT, fields::time(settlement.now)),
            (fields::EXPIRES_AT, fields::number(expires_at_s)),
        ];
        if ending.attempts_back() > 0 {
            let left = claim.attempt.saturating_sub(ending.attempts_back());
            guard.push((fields::ATTEMPTS, fields::number(claim.attempt.into())));
            set.push((fields::ATTEMPTS, fields::number(left.into())));
        }
        if ending.status() == Status::Completed {
            set.push((fields::COMPLETED_AT, fields::time(settlement.now)));
        }
        set.extend(ending.result().map(|result| (fields::RESULT, fields::text(result))));
        set.extend(ending.error().map(|error| (fields::ERROR, fields::text(&error))));
        let remove = ending.removes_error(claim).then_some(fields::ERROR).into_iter().collect();
        let ttl = ttl(expires_at_s, settlement.now, settlement.policy.skew);
        Self { key: key.to_vec(), guard, set, remove, ttl }
    }

    pub(crate) fn command(&self, known: Known) -> Cmd {
        let (name, script) = match known {
            Known::Yes => ("EVALSHA", SCRIPT.get_hash()),
            Known::No => ("EVAL", GUARDED_WRITE),
        };
        let mut command = redis::cmd(name);
        command.arg(script).arg(1).arg(&self.key);
        // OK because a duration made from milliseconds that fit has no more of them.
        command.arg(self.ttl.as_millis() as u64);
        for pairs in [&self.guard, &self.set] {
            command.arg(pairs.len());
            for (name, value) in pairs {
                command.arg(*name).arg(value);
            }
        }
        for name in &self.remove {
            command.arg(*name);
        }
        command
    }
}

/// Reads a record.
pub(crate) fn read(key: &[u8]) -> Cmd {
    let mut command = redis::cmd("HGETALL");
    command.arg(key);
    command
}

/// Parses the server's answer to a write or a read.
pub(crate) fn reply(answer: Value) -> Result<Reply, StoreError> {
    match answer {
        Value::Int(_) => Ok(Reply::Applied),
        hash => fields::record(hash).map(Reply::Shown),
    }
}

/// Returns the guard that holds only under exactly this claim.
fn held(claim: &Claim) -> Vec<Field> {
    vec![
        (fields::STATUS, fields::text(Status::InProgress.as_str())),
        (fields::OWNER, fields::text(claim.owner.as_str())),
        (fields::FENCE, fields::number(claim.fence.get())),
    ]
}

/// How long a record is kept by Redis's own clock, counted from when the write arrives: until no caller, within the
/// clock-skew margin, can find its window unfinished.
fn ttl(expires_at_s: u64, now: Timestamp, skew: Duration) -> Duration {
    let window_end = Timestamp::from_millis(expires_at_s.saturating_mul(1_000));
    let longer = skew.saturating_add(Duration::from_millis(TTL_MARGIN_MS));
    window_end.since(now).saturating_add(longer).min(Duration::from_millis(TTL_MAX_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_outlives_its_window_by_the_margins() {
        let now = Timestamp::from_millis(5_000_500);
        for (expires_at_s, skew_ms, ttl_ms) in [
            (5_061, 1_000, 60_500 + 1_000 + 60_000),
            (0, 0, 60_000),
            (u64::MAX, 1_000, TTL_MAX_MS),
            (5_061, u64::MAX, TTL_MAX_MS),
        ] {
            let ttl = ttl(expires_at_s, now, Duration::from_millis(skew_ms));
            assert_eq!(ttl, Duration::from_millis(ttl_ms), "{expires_at_s} {skew_ms}");
        }
    }
}
