//! Maps Redis's errors to store errors.

use claimant_core::{StoreError, StoreErrorKind};
use redis::{ErrorKind, RedisError};

const LOGIN_REFUSED: &str = "user and password were not accepted. Are those in the URL right?";

/// How the client begins an error of its first `SELECT`, whose code it drops.
const NO_DATABASE: &str = "Redis server refused to switch database";

/// Returns the store error of a request, with how to fix it; `in_cluster` where the client knows of clusters.
///
/// Of the server's error only the code is shown: its text can quote the arguments of a command.
pub(crate) fn store_error(error: &RedisError, in_cluster: bool) -> StoreError {
    let (kind, what) = match error.kind() {
        _ if is_login_refused(error) => (StoreErrorKind::Denied, LOGIN_REFUSED.into()),
        ErrorKind::Io | ErrorKind::ClusterConnectionNotFound => (
            StoreErrorKind::Unreachable,
            // A server with as many clients as it takes closes the connection before the client reads why.
            format!(
                "{error}. Are host, port, network and TLS (`rediss://`) right, is the server up, and does it take one client more?"
            ),
        ),
        ErrorKind::InvalidClientConfig | ErrorKind::Client => (StoreErrorKind::Misconfigured, error.to_string()),
        _ if is_answer(error) => refused(error, in_cluster),
        // The client's parser reports an end of the connection within an answer like this, too: the request may have been executed.
        ErrorKind::Parse => (
            StoreErrorKind::Unreachable,
            "the connection ended in the middle of an answer, or what answered is not Redis. If this persists: are host and port right, or \
             is there a proxy in front of it?"
                .into(),
        ),
        _ => (StoreErrorKind::Other, error.category().to_owned()),
    };
    let begin = if is_answer(error) || is_login_refused(error) { "Redis refused it" } else { "Redis gave no answer" };
    StoreError::new(kind, format!("{begin}: {what}"))
}

/// Returns whether the server said it.
fn is_answer(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

/// Returns whether another server can have the place of this one by now: of a primary that is cut off from its replicas or its
/// cluster, or of a replica that is cut off from its primary.
pub(crate) fn is_cut_off(error: &RedisError) -> bool {
    matches!(code(error), "NOREPLICAS" | "MASTERDOWN" | "CLUSTERDOWN")
}

/// Returns whether the connection is unusable after this error.
pub(crate) fn ends_connection(error: &RedisError) -> bool {
    // A read-only server was the primary before: by now the name leads to another server.
    code(error) == "READONLY" || error.is_io_error() || error.is_unrecoverable_error()
}

/// Returns whether the server refused the user or the password. The client of a cluster reports that as a failure to connect.
fn is_login_refused(error: &RedisError) -> bool {
    let says = |text: &str| text.contains("AuthenticationFailed") || text.contains("NOAUTH");
    match error.kind() {
        ErrorKind::AuthenticationFailed => true,
        ErrorKind::Io => error.detail().is_some_and(says),
        _ => false,
    }
}

fn refused(error: &RedisError, in_cluster: bool) -> (StoreErrorKind, String) {
    let code = code(error);
    let (kind, fix) = match code {
        "NOAUTH" | "WRONGPASS" => (StoreErrorKind::Denied, "give the URL a user and a password that are right"),
        "NOPERM" => (
            StoreErrorKind::Denied,
            "let the user run EVALSHA, EVAL, HGETALL, HGET, HSET, HDEL and PEXPIRE on the keys of the prefix; for a list also SCAN, \
             DBSIZE and INFO; in a cluster also CLUSTER SLOTS, PING and ASKING",
        ),
        "WRONGTYPE" => {
            (StoreErrorKind::Corrupt, "something else writes keys of this prefix: choose another database or prefix")
        }
        // Its client has followed it to a node that is down, or back and forth.
        "MOVED" if in_cluster => (
            StoreErrorKind::Throttled,
            "the cluster's nodes do not agree yet on who has the key, or one of them is down, or the function cannot reach the \
             address that it announces",
        ),
        "MOVED" | "CROSSSLOT" => (
            StoreErrorKind::Misconfigured,
            "the server is part of a cluster, and another node has the key: set CLAIMANT_REDIS_CLUSTER=on, or name it by redis-cluster:// \
             to a command; for a list, name each primary by redis://, and wait until no slot is being moved to it",
        ),
        "ERR" if error.to_string().starts_with(NO_DATABASE) => (
            StoreErrorKind::Misconfigured,
            "it refused the database that the URL names: is there one of this number, and may the user run SELECT?",
        ),
        "ERR" if says(error, "unknown command") => (
            StoreErrorKind::Misconfigured,
            "it does not know a command that claimant needs: is it a Sentinel, or a proxy? Name the primary itself",
        ),
        "ERR" if says(error, "This instance has cluster support disabled") => (
            StoreErrorKind::Misconfigured,
            "the server is not part of a cluster: leave CLAIMANT_REDIS_CLUSTER out, and name it by redis:// to a command",
        ),
        "MISCONF" => (StoreErrorKind::Throttled, "the server cannot save its data and takes no writes: see its log"),
        "OOM" => (StoreErrorKind::Throttled, "the server's memory is full: give it more"),
        "READONLY" => {
            (StoreErrorKind::Throttled, "the server is a replica: if this persists, use the primary's endpoint")
        }
        "CLUSTERDOWN" => (
            StoreErrorKind::Throttled,
            "no node serves the key's slot, or this one is cut off from the others: if this persists, see CLUSTER INFO and CLUSTER NODES",
        ),
        "LOADING" | "MASTERDOWN" | "TRYAGAIN" | "ASK" | "BUSY" | "NOREPLICAS" => {
            (StoreErrorKind::Throttled, "it passes")
        }
        _ => (StoreErrorKind::Other, "see the server's log"),
    };
    (kind, format!("{code} ({fix})"))
}

/// Returns whether the server's text begins with this.
fn says(error: &RedisError, text: &str) -> bool {
    error.detail().is_some_and(|detail| detail.starts_with(text))
}

/// Returns the error's code. Before Redis 7, an error in a script was an `ERR` whose text has the real code; a command that the user may not
/// run there is an `ERR` in newer ones, too; and a client that has not logged in may only send short commands, or gets a protocol error.
fn code(error: &RedisError) -> &str {
    const IN_SCRIPTS: [&str; 5] = ["WRONGTYPE", "READONLY", "OOM", "MISCONF", "NOREPLICAS"];
    match error.code() {
        Some("ERR") => {
            let text = error.detail().unwrap_or_default();
            if text.contains("unauthenticated") {
                return "NOAUTH";
            }
            // The second one is of Redis 7.2 and Valkey.
            if ["The user executing the script", "ACL failure in script"].iter().any(|says| text.contains(says)) {
                return "NOPERM";
            }
            // Of a cluster that may be read while it is down, and was to be written.
            if text.contains("while the cluster is down") {
                return "CLUSTERDOWN";
            }
            IN_SCRIPTS.into_iter().find(|code| text.contains(&format!("{code} "))).unwrap_or("ERR")
        }
        Some(code) if !code.is_empty() && code.bytes().all(|b| b.is_ascii_uppercase()) => code,
        _ => "an error without a code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error that a line of the protocol stands for.
    fn answered(line: &str) -> RedisError {
        let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).and_then(redis::Value::extract_error);
        answer.expect_err("it is an error")
    }

    #[test]
    fn what_does_not_speak_the_protocol_is_no_answer_and_said_not_to_be_redis() {
        let error = redis::parse_redis_value(b"HTTP/1.1 400 Bad Request\r\n").expect_err("it is none");
        let error = store_error(&error, false);
        assert_eq!(error.kind(), StoreErrorKind::Unreachable);
        let text = error.to_string();
        assert!(text.contains("what answered is not Redis. If this persists: are host and port right"), "{text}");
    }

    #[test]
    fn a_connection_to_a_demoted_server_is_given_up() {
        for (line, ends) in [
            ("READONLY You can't write against a read only replica.", true),
            // Before Redis 7, from a script.
            (
                "ERR Error running script (call to f_1): @user_script:9: @user_script: 9: -READONLY You can't write against \
                 a read only replica.",
                true,
            ),
            (
                "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to \
                 write.",
                true,
            ),
            ("OOM command not allowed when used memory > 'maxmemory'.", false),
        ] {
            let error = answered(line);
            assert_eq!(ends_connection(&error) || is_cut_off(&error), ends, "{line}");
        }
    }

    #[test]
    fn a_refused_login_is_the_servers_answer() {
        let of_cluster =
            "Failed to create initial connections: node: Password authentication failed - AuthenticationFailed";
        for error in [
            RedisError::from((ErrorKind::AuthenticationFailed, "Password authentication failed")),
            RedisError::from((ErrorKind::Io, "Failed to create initial connections", of_cluster.to_owned())),
        ] {
            let error = store_error(&error, false);
            assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
            assert!(error.to_string().contains("Redis refused it: user and password were not accepted"), "{error}");
        }
    }

    /// The server says neither who the user is nor what for it runs the command.
    #[test]
    fn a_user_without_a_right_is_told_those_of_every_caller() {
        let error = store_error(&answered("NOPERM User secret has no permissions to run the 'dbsize' command"), false);
        let text = error.to_string();
        assert!(text.contains("Redis refused it: NOPERM (let the user run EVALSHA"), "{text}");
        assert!(text.contains("for a list also SCAN, DBSIZE and INFO"), "{text}");
    }

    #[test]
    fn each_error_has_its_kind_and_quotes_nothing() {
        for (line, kind) in [
            ("NOAUTH Authentication required.", StoreErrorKind::Denied),
            ("ERR Protocol error: unauthenticated multibulk length", StoreErrorKind::Denied),
            ("WRONGPASS invalid username-password pair", StoreErrorKind::Denied),
            ("NOPERM User secret has no permissions to run the 'evalsha' command", StoreErrorKind::Denied),
            (
                "ERR The user executing the script can't run this command or subcommand script: secret, on @user_script:8.",
                StoreErrorKind::Denied,
            ),
            (
                "ERR ACL failure in script: User secret has no permissions to run the 'hset' command script: 1, on @user_script:14.",
                StoreErrorKind::Denied,
            ),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", StoreErrorKind::Corrupt),
            ("ERR Error running script (call to f_1): @user_script:9: WRONGTYPE Operation", StoreErrorKind::Corrupt),
            ("CROSSSLOT Keys in request don't hash to the same slot", StoreErrorKind::Misconfigured),
            ("MISCONF Redis is configured to save RDB snapshots", StoreErrorKind::Throttled),
            ("OOM command not allowed when used memory > 'maxmemory'.", StoreErrorKind::Throttled),
            ("READONLY You can't write against a read only replica.", StoreErrorKind::Throttled),
            ("LOADING Redis is loading the dataset in memory", StoreErrorKind::Throttled),
            ("CLUSTERDOWN Hash slot not served", StoreErrorKind::Throttled),
            ("BUSY Redis is busy running a script.", StoreErrorKind::Throttled),
            ("ERR unknown command 'EVALSHA', with args beginning with: 'secret'", StoreErrorKind::Misconfigured),
            ("ERR This instance has cluster support disabled", StoreErrorKind::Misconfigured),
            ("ERR secret", StoreErrorKind::Other),
            ("secret", StoreErrorKind::Other),
        ] {
            for in_cluster in [false, true] {
                let error = store_error(&answered(line), in_cluster);
                assert_eq!(error.kind(), kind, "{line}");
                assert!(!error.to_string().contains("secret"), "{error}");
            }
        }
    }

    /// A completion that meets an error which does not pass is given up.
    #[test]
    fn a_cluster_that_changes_its_nodes_passes() {
        for line in [
            "MOVED 1234 secret:6379",
            "ASK 1234 secret:6379",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "CLUSTERDOWN The cluster is down",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            "LOADING Redis is loading the dataset in memory",
            "READONLY You can't write against a read only replica.",
            "NOREPLICAS Not enough good replicas to write.",
            // Before Redis 7, from a script.
            "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to write.",
            "ERR Script attempted to execute a write command while the cluster is down and readonly script: secret",
        ] {
            let error = store_error(&answered(line), true);
            assert!(
                error.kind() == StoreErrorKind::Throttled && !error.to_string().contains("secret"),
                "{line}: {error}"
            );
        }
        let error = store_error(&answered("MOVED 1234 secret:6379"), false);
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "a client that does not know of clusters: {error}");
        for fix in ["CLAIMANT_REDIS_CLUSTER=on", "redis-cluster://"] {
            assert!(error.to_string().contains(fix), "{error}");
        }
    }
}
