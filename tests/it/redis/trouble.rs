//! Servers that refuse, vanish, come back, forget or say nothing.

use claimant_core::{Error, Variables};
use claimant_testkit::logs::Logs;
use futures_util::future::join_all;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::*;

/// A step on the way to trouble, as commands of the server's own user.
type Commands = &'static [&'static [&'static str]];

/// Each trouble has its kind, and says neither key, URL nor password.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn troubles_are_told_apart() {
    use StoreErrorKind::{Corrupt, Denied, Throttled, Unreachable};
    let unable: Commands = &[&["ACL", "SETUSER", "unable", "on", ">claimant", "~*", "+hgetall"]];
    let strange: Commands = &[&["SET", "claimant:c#secret-key", "x"]];
    let foreign: Commands = &[&["HSET", "claimant:c#secret-key", "status", "x"]];
    let cases: [(&str, &str, Commands, StoreErrorKind); 9] = [
        ("a wrong password", "claimant:secret-password@", &[], Denied),
        ("no such user", "nobody:secret-password@", &[], Denied),
        ("no password", "", &[], Denied),
        ("a user without permissions", "unable:claimant@", unable, Denied),
        ("a key that is no hash", "claimant:claimant@", strange, Corrupt),
        ("a hash of another owner's", "claimant:claimant@", foreign, Corrupt),
        ("a full memory", "claimant:claimant@", &[&["CONFIG", "SET", "maxmemory", "1"]], Throttled),
        ("a replica", "claimant:claimant@", &[&["REPLICAOF", "127.0.0.1", "1"]], Throttled),
        ("no server", "claimant:secret-password@", &[&["SHUTDOWN", "NOSAVE"]], Unreachable),
    ];
    for (what, who, commands, kind) in cases {
        let redis = Redis::start();
        let store = RedisStore::open(&format!("redis://{who}{}/", redis.0.address)).unwrap();
        // A claim from better times, to be settled now.
        let better = RedisStore::open(&redis.url()).unwrap();
        let claim = granted(&better, "another", 0).await;
        let mut connection = redis.connection().await;
        for command in commands {
            let mut sent = redis::cmd(command[0]);
            // A server that shuts down gives no answer.
            let _ = sent.arg(&command[1..]).exec_async(&mut connection).await;
        }
        let error = store.claim(&request("secret-key", 0), call()).await.expect_err(what);
        assert_eq!(error.kind(), kind, "{what}: {error}");
        let batch = [request("secret-key", 0), request("secret-key", 0)];
        for answer in store.claim_all(&batch, call()).await {
            assert_eq!(answer.expect_err(what).kind(), kind, "{what}, batched");
        }
        if !matches!(what, "a key that is no hash" | "a hash of another owner's" | "a full memory") {
            let settled = store.settle(claim, &failed(), call()).await;
            assert!(matches!(&settled, Settled::Unknown { error, .. } if error.kind() == kind), "{what}: {settled:?}");
        }
        let told = format!("{error} {error:?} {store:?}");
        assert!(kind != Denied || told.contains("Redis refused it") && !told.contains("client"), "{what}: {told}");
        for secret in ["secret", redis.0.port(), "redis://"] {
            assert!(!told.contains(secret), "{what}: {told}");
        }
    }
}

/// The server says so before it reads, and closes: the client sees the end of its connection, and no line of the protocol.
#[tokio::test]
async fn a_server_without_room_for_a_client_is_asked_about() {
    let full = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://claimant:secret@{}/", full.local_addr().unwrap());
    let refusing = tokio::spawn(async move {
        while let Ok((mut client, _)) = full.accept().await {
            let _ = client.write_all(b"-ERR max number of clients reached\r\n").await;
        }
    });
    let meter = Meter::default();
    let call = Call { within: Duration::from_secs(1), meter: &meter };
    let error = RedisStore::open(&url).unwrap().claim(&request("k", 0), call).await.unwrap_err();
    refusing.abort();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("does it take one client more?"), "{error}");
}

/// A user that may do what the documentation of the crate names, and nothing else.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn the_documented_permissions_suffice() {
    const DOCUMENTED: &str = "+evalsha +eval +hgetall +hget +hset +hdel +pexpire +info";
    let [one, other] = Redis::cluster().await;
    let alone = Redis::start();
    let give = async |redis: &Redis, more: &str| {
        let rights = format!("SETUSER exact reset on >claimant ~claimant:* {DOCUMENTED} {more}");
        let rights: Vec<&str> = rights.split_whitespace().collect();
        redis::cmd("ACL").arg(&rights).exec_async(&mut redis.connection().await).await.unwrap();
        format!("redis://exact:claimant@{}/", redis.0.address)
    };
    let keys: Vec<_> = (0..20).map(|n| request(&format!("k{n}"), 0)).collect();
    for (more, may) in [("", false), ("+cluster|slots +ping +asking +select", true)] {
        let (urls, url) = ([give(&one, more).await, give(&other, more).await].join(","), give(&alone, more).await);
        let stores = [RedisStore::open_cluster(&urls).unwrap(), RedisStore::open(&format!("{url}1")).unwrap()];
        let told =
            [(StoreErrorKind::Denied, "CLUSTER SLOTS, PING and ASKING"), (StoreErrorKind::Misconfigured, "SELECT")];
        for (store, (kind, needed)) in stores.into_iter().zip(told) {
            for answer in store.claim_all(&keys, call()).await {
                match answer {
                    Ok(BatchedClaim::Answered(ClaimAnswer::Granted(_))) if may => {}
                    Err(error) if !may => {
                        assert!(error.kind() == kind && error.to_string().contains(needed), "{error}");
                    }
                    answer => panic!("{needed}: {answer:?}"),
                }
            }
        }
    }
}

/// A claim would be granted whose completion can never be written; and a script that has no right to its last command would leave a record that
/// never expires, and whose work, at most once, is parked unrun.
#[tokio::test]
#[ignore = "needs Redis or Valkey: make test"]
async fn a_user_without_all_rights_writes_nothing() {
    let redis = Redis::start();
    // The server knows the script.
    drop(granted(&store(&redis, "known"), "k", 0).await);
    for missing in ["eval", "hgetall", "hget", "hset", "hdel", "pexpire"] {
        let rights = format!("SETUSER most reset on >claimant ~* +@all -{missing}");
        let rights: Vec<&str> = rights.split_whitespace().collect();
        redis::cmd("ACL").arg(&rights).exec_async(&mut redis.connection().await).await.unwrap();
        let most = RedisStore::open(&format!("redis://most:claimant@{}/", redis.0.address)).unwrap();
        let error = most.claim(&request("k", 0), call()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{missing}: {error}");
        let all = RedisStore::open(&redis.url()).unwrap();
        assert!(all.get(&id("k"), call()).await.unwrap().is_none(), "{missing}");
    }
}

/// No key is claimed anew while the server's memory is full; what is under way ends as it would else.
#[tokio::test]
#[ignore = "needs Redis or Valkey: make test"]
async fn what_is_under_way_goes_on_when_the_memory_is_full() {
    let redis = Redis::start();
    let store = store(&redis, "full");
    let (mut long, failing) = (granted(&store, "long", 0).await, granted(&store, "failing", 0).await);
    drop(granted(&store, "dead", 0).await);
    let full = ["SET", "maxmemory", "1"];
    redis::cmd("CONFIG").arg(&full).exec_async(&mut redis.connection().await).await.unwrap();

    let error = store.claim(&request("new", 0), call()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Throttled, "{error}");
    assert_eq!(store.renew(&mut long, renewal(1, 3_000), call()).await.unwrap(), Renewed::Held);
    for claim in [long, failing, granted(&store, "dead", 3_000).await] {
        let settled = store.settle(claim, &failed(), call()).await;
        assert!(matches!(settled, Settled::Done), "{settled:?}");
    }
}

/// The default of Amazon ElastiCache deletes records under pressure: whoever connects is told so, once.
#[tokio::test]
#[ignore = "needs Redis or Valkey: make test"]
async fn a_server_that_evicts_is_warned_of() {
    let logs = Logs::record();
    let redis = Redis::start();
    for (policy, warnings) in [("noeviction", 0), ("volatile-lru", 1)] {
        let mut connection = redis.connection().await;
        let settings = ["SET", "maxmemory", "1gb", "maxmemory-policy", policy];
        redis::cmd("CONFIG").arg(&settings).exec_async(&mut connection).await.unwrap();
        let store = store(&redis, policy);
        for key in ["k", "l"] {
            drop(granted(&store, key, 0).await);
            redis::cmd("CLIENT").arg(&["KILL", "TYPE", "NORMAL"]).exec_async(&mut connection).await.unwrap();
        }
        let log = logs.text();
        assert_eq!(log.matches("set maxmemory-policy to noeviction").count(), warnings, "{policy}: {log}");
    }
}

/// Clause 11: a server that says nothing costs the time given, and no more.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn silence_ends_in_time() {
    let redis = Redis::start();
    let store = store(&redis, "silent");
    let mut claim = granted(&store, "k", 0).await;
    let mut connection = redis.connection().await;
    redis::cmd("CLIENT").arg("PAUSE").arg(600_000).arg("ALL").exec_async(&mut connection).await.unwrap();
    let within = Duration::from_millis(300);
    let meter = Meter::default();
    let call = Call { within, meter: &meter };
    let error = before(10 * within, store.claim(&request("l", 0), call)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    before(10 * within, store.renew(&mut claim, renewal(1, 2_000), call)).await.unwrap_err();
    let settled = before(10 * within, store.settle(claim, &failed(), call)).await;
    assert!(matches!(settled, Settled::Unknown { claim: Some(_), .. }));
    for answer in before(10 * within, store.claim_all(&[request("l", 0), request("m", 0)], call)).await {
        answer.unwrap_err();
    }
    before(10 * within, store.get(&id("k"), call)).await.unwrap_err();
}

/// A process that stands still wakes up past the end of the call, and past that of its caller's patience: the call is over then, and
/// the claim is there for another try.
#[tokio::test]
#[ignore = "needs Redis or Valkey: make test"]
async fn a_process_that_stood_still_keeps_its_claims() {
    let redis = Redis::start();
    let store = store(&redis, "still");
    let claim = granted(&store, "k", 0).await;
    let mut connection = redis.connection().await;
    redis::cmd("CLIENT").arg("PAUSE").arg(600_000).arg("ALL").exec_async(&mut connection).await.unwrap();
    let (within, meter, failed) = (Duration::from_millis(300), Meter::default(), failed());
    let call = Call { within, meter: &meter };
    let settled = tokio::time::timeout(within + Duration::from_millis(50), store.settle(claim, &failed, call));
    let stands_still = async {
        tokio::time::sleep(within / 2).await;
        std::thread::sleep(within);
    };
    let (settled, ()) = tokio::join!(settled, stands_still);
    assert!(matches!(settled, Ok(Settled::Unknown { claim: Some(_), .. })), "{settled:?}");
}

/// Fails where this takes longer; but not where the machine stood still past both ends.
async fn before<T>(late: Duration, answer: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        answer = answer => answer,
        () = tokio::time::sleep(late) => panic!("it had not ended after {late:?}"),
    }
}

/// A server that was killed is Unreachable, and used again when it is back, by the same store.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn a_server_that_comes_back_is_used_again() {
    let first = Redis::start();
    let port = first.0.port().parse().ok();
    let store = store(&first, "back");
    let claim = granted(&store, "k", 0).await;
    drop(first);
    let error = store.claim(&request("k", 1), call()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    let second = Redis::start_with(port, &[]);
    // It lost everything: the claim is gone, and the key is fresh.
    assert!(matches!(store.settle(claim, &failed(), call()).await, Settled::Lost));
    assert_eq!(granted(&store, "k", 2).await.fence.get(), 1);
    // Connections that were closed while the function was frozen cost nothing but a round trip.
    let mut connection = second.connection().await;
    redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("NORMAL").exec_async(&mut connection).await.unwrap();
    drop(granted(&store, "l", 0).await);
}

/// Its address leads to another server by then, and a connection from before stays with a server that answers.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn a_server_that_is_cut_off_is_given_up() {
    let cases: [(&str, Commands); 3] = [
        ("READONLY", &[&["REPLICAOF", "127.0.0.1", "1"]]),
        ("MASTERDOWN", &[&["CONFIG", "SET", "replica-serve-stale-data", "no"], &["REPLICAOF", "127.0.0.1", "1"]]),
        ("NOREPLICAS", &[&["CONFIG", "SET", "min-replicas-to-write", "1"]]),
    ];
    let all = cases.map(|(what, commands)| async move {
        let (old, new) = (Redis::start(), Redis::start());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let store =
            RedisStore::open(&format!("redis://claimant:claimant@{}/", listener.local_addr().unwrap())).unwrap();
        let (leads_to, server) = watch::channel(old.0.address.clone());
        let leading = tokio::spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let now = server.borrow().clone();
                let mut server = TcpStream::connect(now).await.unwrap();
                lines.spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
            }
        });
        let claim = granted(&store, "before", 0).await;
        let mut connection = old.connection().await;
        for command in commands {
            redis::cmd(command[0]).arg(&command[1..]).exec_async(&mut connection).await.unwrap();
        }
        let told = store.claim(&request("k", 0), call()).await.unwrap_err().to_string();
        assert!(told.contains(what), "{what}: {told}");
        leads_to.send_replace(new.0.address.clone());
        drop(granted(&store, "k", 0).await);
        // It was not replicated.
        assert!(matches!(store.settle(claim, &failed(), call()).await, Settled::Lost), "{what}");
        leading.abort();
    });
    join_all(all).await;
}

/// A password that is set right later is taken by a store that was refused before.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn a_refused_password_is_tried_again() {
    let redis = Redis::start();
    let store = RedisStore::open(&format!("redis://late:late@{}/", redis.0.address)).unwrap();
    assert_eq!(store.claim(&request("k", 0), call()).await.unwrap_err().kind(), StoreErrorKind::Denied);
    let user = ["SETUSER", "late", "on", ">late", "~*", "+@all"];
    redis::cmd("ACL").arg(&user).exec_async(&mut redis.connection().await).await.unwrap();
    drop(granted(&store, "k", 0).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn settings_lead_to_a_store() {
    let redis = Redis::start();
    let opened = |vars: &[(&str, &str)]| -> Result<RedisStore, Error> {
        RedisStore::from_variables(Variables::new(vars.iter().copied()))
    };
    drop(granted(&opened(&[("CLAIMANT_REDIS_URL", &redis.url())]).unwrap(), "k", 0).await);
    // No server listens there; the first call notices.
    opened(&[("CLAIMANT_REDIS_URL", "redis://127.0.0.1:1/")]).unwrap();
    for (vars, wanted) in [
        (vec![], "CLAIMANT_REDIS_URL is not set"),
        (vec![("CLAIMANT_REDIS_URL", "http://:secret@host/")], "redis://user:password@host:6379/0 is needed"),
        (vec![("CLAIMANT_REDIS_URL", "redis://u:sec#ret@host")], "percent-encoded"),
        (vec![("CLAIMANT_REDIS_URL", "redis://:secret@host/4"), ("CLAIMANT_REDIS_CLUSTER", "on")], "no database"),
    ] {
        let error = opened(&vars).unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(told.contains(wanted) && !told.contains("sec"), "{told}");
    }
}
