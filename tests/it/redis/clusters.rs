//! Clusters of which a node refuses, is down or says nothing.

use std::time::Instant;

use claimant_core::limits::STORE_CALL_MAX_MS;
use claimant_core::{Cursor, Filter, Records as _, Timestamp};
use futures_util::future::{join, join_all};
use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;

use super::*;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn clusters_have_their_troubles_too() {
    let [one, other] = Redis::cluster().await;
    let url = |redis: &Redis, who: &str| format!("redis://{who}{}/", redis.0.address);
    for who in ["claimant:secret-password@", "nobody:secret-password@", ""] {
        let store = RedisStore::open_cluster(&url(&one, who)).unwrap();
        let error = store.claim(&request("secret-key", 0), call()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{who}: {error}");
        assert!(error.to_string().contains("Redis refused it"), "{who}: {error}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
    // A client that does not know of clusters is told so for half of the keys.
    let requests: Vec<_> = (0..20).map(|n| request(&format!("k{n}"), 0)).collect();
    let store = RedisStore::open(&one.url()).unwrap();
    let answers = store.claim_all(&requests, call()).await;
    let (taken, elsewhere): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert!(!taken.is_empty() && !elsewhere.is_empty());
    for error in elsewhere.into_iter().filter_map(Result::err) {
        assert!(error.kind() == StoreErrorKind::Misconfigured && error.to_string().contains("CLAIMANT_REDIS_CLUSTER"));
    }
    // One that does claims them on both nodes, whichever it was given, and knows those that it has already.
    let store = RedisStore::open_cluster(&other.url()).unwrap();
    let answers = store.claim_all(&requests, call()).await;
    let granted =
        answers.iter().filter(|answer| matches!(answer, Ok(BatchedClaim::Answered(ClaimAnswer::Granted(_))))).count();
    assert_eq!(granted, requests.len());
    drop((one, other));
    let error = store.claim(&request("k", 0), call()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
}

/// A cluster whose first node is gone is connected to by another one that is named.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn a_cluster_is_found_while_one_of_its_named_nodes_is_up() {
    let [one, other] = Redis::cluster().await;
    let store = RedisStore::open_cluster(&format!("{}, {}", one.url(), other.url())).unwrap();
    drop(granted(&store, "before", 0).await);
    drop(one);
    let requests: Vec<_> = (0..20).map(|n| request(&format!("k{n}"), 0)).collect();
    // The first call breaks the connection, the second one needs a new one.
    for call in ["first", "second"] {
        let meter = Meter::default();
        let answers = store.claim_all(&requests, Call { within: Duration::from_secs(5), meter: &meter }).await;
        let answered = answers.iter().filter(|answer| answer.is_ok()).count();
        assert!((1..20).contains(&answered), "{call}: {answered} of 20 have an answer");
        // What is given up for an error that does not pass runs again; and another node is the primary soon.
        for error in answers.into_iter().filter_map(Result::err) {
            assert!(error.kind().is_transient(), "{call}: {error}");
        }
    }
    let error = RedisStore::open_cluster("redis://u:secret@a,redis://u:other@b").unwrap_err();
    assert!(
        error.to_string().contains("one user and password") && !format!("{error:?}").contains("secret"),
        "{error:?}"
    );
    RedisStore::open_cluster("redis://u:a,b@a,redis://u:a,b@b").expect("a comma can be part of a password");
}

/// Keys on the other nodes have their answers.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn a_node_that_says_nothing_holds_up_its_own_keys_only() {
    let [one, other] = Redis::cluster().await;
    let store = RedisStore::open_cluster(&one.url()).unwrap();
    drop(granted(&store, "before", 0).await);
    let mut connection = other.connection().await;
    redis::cmd("CLIENT").arg("PAUSE").arg(600_000).arg("ALL").exec_async(&mut connection).await.unwrap();
    let requests: Vec<_> = (0..20).map(|n| request(&format!("k{n}"), 0)).collect();
    let meter = Meter::default();
    let answers = store.claim_all(&requests, Call { within: Duration::from_millis(500), meter: &meter }).await;
    let (answered, silent): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert!(!answered.is_empty() && !silent.is_empty(), "{} of 20 have an answer", answered.len());
    for answer in answered {
        assert!(matches!(answer, Ok(BatchedClaim::Answered(ClaimAnswer::Granted(_)))), "{answer:?}");
    }
    // So do those of calls that need a new connection, in the time that the engine gives a call; also where it is named.
    for urls in [one.url(), format!("{},{}", one.url(), other.url())] {
        let store = RedisStore::open_cluster(&urls).unwrap();
        let within = Duration::from_millis(STORE_CALL_MAX_MS);
        for from in [20, 40] {
            let requests: Vec<_> = (from..from + 20).map(|n| request(&format!("k{n}"), 0)).collect();
            let answers = store.claim_all(&requests, Call { within, meter: &meter }).await;
            let answered = answers.iter().filter(|answer| answer.is_ok()).count();
            assert!((1..20).contains(&answered), "{urls}, from {from}: {answered} of 20 have an answer: {answers:?}");
        }
    }
}

async fn cluster<T: FromRedisValue>(node: &mut MultiplexedConnection, command: &[&str]) -> T {
    redis::cmd("CLUSTER").arg(command).query_async(node).await.unwrap()
}

/// A slot that is being moved, is nobody's for a moment, and was taken over from a node that is cut off and does not know it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn slots_change_hands() {
    let nodes = Redis::cluster().await;
    let store = RedisStore::open_cluster(&nodes[1].url()).unwrap();
    let [mut one, mut other] = [nodes[0].connection().await, nodes[1].connection().await];
    let (mut keys, mut slot) = (Vec::new(), 0_u16);
    for key in (0..20).map(|n| format!("k{n}")) {
        let name = format!("claimant:{}", id(&key).as_str());
        let of_key: u16 = cluster(&mut one, &["KEYSLOT", &name]).await;
        if of_key < 8_192 {
            (keys, slot) = ([keys, vec![(key, name)]].concat(), of_key);
        }
    }
    let [.., (next, _), (key, name)] = &keys[..] else { panic!("{keys:?}") };
    let slot = slot.to_string();
    drop(granted(&store, key, 0).await);

    // Its records are on the node that takes it over, which is not yet asked for them.
    let (one_id, other_id): (String, String) =
        (cluster(&mut one, &["MYID"]).await, cluster(&mut other, &["MYID"]).await);
    let () = cluster(&mut other, &["SETSLOT", &slot, "IMPORTING", &one_id]).await;
    let dumped: Vec<u8> = redis::cmd("DUMP").arg(name).query_async(&mut one).await.unwrap();
    redis::cmd("RESTORE-ASKING").arg(name).arg(0).arg(dumped).exec_async(&mut other).await.unwrap();
    let now = Timestamp::from_millis(0);
    let all = Filter { states: Vec::new(), consumer: None, written_before: None, now, skew: Duration::ZERO };
    let listed = RedisStore::open(&nodes[1].url()).unwrap().list(&all, &Cursor::new(""), call()).await;
    let told = listed.unwrap_err().to_string();
    assert!(told.contains("MOVED") && told.contains("until no slot is being moved"), "{told}");
    let () = cluster(&mut other, &["SETSLOT", &slot, "STABLE"]).await;

    // The client of the redis crate would wait longer than a try by itself.
    let () = cluster(&mut one, &["DELSLOTS", &slot]).await;
    let error = store.claim(&request(key, 0), call()).await.unwrap_err();
    assert!(error.kind() == StoreErrorKind::Throttled && error.to_string().contains("CLUSTERDOWN"), "{error}");
    let () = cluster(&mut one, &["ADDSLOTS", &slot]).await;
    drop(granted(&store, key, 10_000).await);

    let () = cluster(&mut other, &["FORGET", &one_id]).await;
    let () = cluster(&mut one, &["FORGET", &other_id]).await;
    let () = cluster(&mut other, &["ADDSLOTSRANGE", "0", "8191"]).await;
    assert_eq!(granted(&store, next, 0).await.fence.get(), 1);
}

/// As for as long as a replica is away. A connection to all nodes is opened for the calls together, not one for each try.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn calls_that_meet_a_node_that_is_cut_off_share_a_new_connection() {
    let [one, other] = Redis::cluster().await;
    let store = RedisStore::open_cluster(&one.url()).unwrap();
    drop(granted(&store, "before", 0).await);
    let mut connection = other.connection().await;
    redis::cmd("CONFIG").arg(&["SET", "min-replicas-to-write", "1"]).exec_async(&mut connection).await.unwrap();
    let opened = async || {
        let stats: String = redis::cmd("INFO").arg("stats").query_async(&mut connection.clone()).await.unwrap();
        let received = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        received.unwrap().trim().parse::<u32>().unwrap()
    };
    let before = opened().await;
    let requests: Vec<_> = (0..40).map(|n| request(&format!("k{n}"), 0)).collect();
    let answers = join_all(requests.iter().map(|request| store.claim(request, call()))).await;
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    assert!(refused.iter().all(|error| error.contains("NOREPLICAS")), "{refused:?}");
    let opened = (opened().await - before) as usize;
    assert!(refused.len() > 4 && opened <= refused.len(), "{opened} connections for {} calls", refused.len());
}

async fn timed<T>(call: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    (call.await, begun.elapsed())
}

/// One call after the other, for keys of both nodes, while one of these says nothing.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn calls_for_a_silent_node_leave_those_of_others_their_answers() {
    let [one, other] = Redis::cluster().await;
    let open = || RedisStore::open_cluster(&format!("{},{}", one.url(), other.url())).unwrap();
    let (warm, cold, up, meter) = (open(), open(), RedisStore::open(&one.url()).unwrap(), Meter::default());
    let call = Call { within: Duration::from_millis(STORE_CALL_MAX_MS), meter: &meter };
    drop(granted(&warm, "before", 0).await);
    let mut connection = other.connection().await;
    redis::cmd("CLIENT").arg("PAUSE").arg(600_000).arg("ALL").exec_async(&mut connection).await.unwrap();
    let calls =
        [("warm", &warm), ("cold", &cold)].into_iter().flat_map(|(name, store)| (0..40).map(move |n| (name, store, n)));
    let calls = calls.map(|(name, store, n)| {
        let (key, up) = (format!("{name} {n}"), &up);
        async move {
            let is_up = up.get(&id(&key), call).await.is_ok();
            tokio::time::sleep(Duration::from_millis(n * 150)).await;
            // Beside it, one that has nothing to do with the silent node: what holds up both is the machine.
            let (request, id) = (request(&key, 0), id(&key));
            let ((answer, took), (_, other)) = join(timed(store.claim(&request, call)), timed(up.get(&id, call))).await;
            (is_up, answer.is_ok(), key, took.saturating_sub(other))
        }
    });
    let calls = join_all(calls).await;
    assert!(calls.iter().all(|(is_up, answered, ..)| is_up == answered), "{calls:?}");
    // The connection of the one is from before the silence.
    let of_warm = calls.iter().filter(|(is_up, _, key, _)| *is_up && key.starts_with("warm"));
    let longest = of_warm.map(|(.., took)| *took).max();
    assert!(longest < Some(Duration::from_secs(1)), "{calls:?}");
}

/// Its node is well, and says nothing over that connection: its host was replaced, or the network has forgotten it. Calls are short
/// where the function's time limit is.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn short_calls_replace_a_connection_that_went_silent() {
    let ([one, _other], tap) = Redis::tapped_cluster(Redis::HALVES).await;
    let (store, meter) = (RedisStore::open_cluster(&one.url()).unwrap(), Meter::default());
    drop(granted(&store, "before", 0).await);
    tap.hush(true);
    let mut answered = Vec::new();
    for batch in 0..3 {
        let requests: Vec<_> = (0..20).map(|n| request(&format!("{batch} {n}"), 0)).collect();
        let within = Duration::from_millis(1_900);
        let answers = store.claim_all(&requests, Call { within, meter: &meter }).await;
        answered.push(answers.iter().filter(|answer| answer.is_ok()).count());
        // New connections pass.
        tap.hush(false);
    }
    assert!((1..20).contains(&answered[0]) && answered[2] == 20, "{answered:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn a_client_keeps_the_time_limits_that_it_was_given() {
    let redis = Redis::start();
    let tap = Tap::before(&redis.0.address).await;
    tap.hush(true);
    let client = ClusterClient::builder([format!("redis://{}/", tap.address)]);
    let store = RedisStore::new_cluster(client.connection_timeout(Duration::from_millis(50)).build().unwrap());
    let (begun, meter) = (Instant::now(), Meter::default());
    let call = Call { within: Duration::from_millis(STORE_CALL_MAX_MS), meter: &meter };
    let error = store.claim(&request("k", 0), call).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    // Five tries, and the waits between them.
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}
