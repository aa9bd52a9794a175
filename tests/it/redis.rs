//! What the Redis store asks of Redis, and what it makes of lost answers, lost servers and bad settings.

mod clusters;
mod tls;
mod trouble;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use claimant_core::protocol::Ending;
use claimant_core::{
    BatchedClaim, Call, ClaimAnswer, ConsumerName, Meter, Renewed, SecretUrl, Settled, State, Store, StoreErrorKind,
};
use claimant_operate::keys::Query;
use claimant_operate::target::{Account, StoreAddress, Target};
use claimant_redis::RedisStore;
use claimant_tests::services::Redis;
use claimant_tests::tap::Loss::{Answer, Half, Request, Silence};
use claimant_tests::tap::Tap;

use crate::claims::{WINDOW_S, WITHIN, call, ending, failed, granted, id, renewal, request};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn on_redis() {
    let redis = Redis::start();
    requests_are_few(&redis).await;
    many_take_one_request(&redis).await;
    lost_requests_and_answers_are_resolved(&redis).await;
    dropped_calls_mix_up_no_answers(&redis).await;
    records_outlive_their_window_and_no_longer(&redis).await;
    prefixes_do_not_meet(&redis).await;
    a_list_of_another_prefix_says_so(&redis).await;
}

fn store(redis: &Redis, prefix: &str) -> RedisStore {
    RedisStore::open(&redis.url()).unwrap().prefix(prefix).unwrap()
}

/// One round trip for each call of the common kinds.
async fn requests_are_few(redis: &Redis) {
    let store = store(redis, "few");
    let meter = Meter::default();
    let call = Call { within: WITHIN, meter: &meter };
    let mut before = 0;
    let mut asked = |wanted: u64, what: &str| {
        let requests = meter.usage().requests;
        assert_eq!(requests - before, wanted, "{what}");
        before = requests;
    };
    // The script is made known to the server, once.
    store.claim(&request("other", 0), call).await.unwrap();
    asked(2, "the server's first claim");
    let ClaimAnswer::Granted(mut claim) = store.claim(&request("k", 0), call).await.unwrap() else { panic!("fresh") };
    asked(1, "a fresh key");
    store.claim(&request("k", 1), call).await.unwrap();
    asked(1, "a busy key");
    assert_eq!(store.renew(&mut claim, renewal(2, 3_000), call).await.unwrap(), Renewed::Held);
    asked(1, "a renewal");
    assert_eq!(store.renew(&mut claim, renewal(3, 2_500), call).await.unwrap(), Renewed::Held);
    asked(1, "a renewal that is late");
    assert!(matches!(store.settle(claim, &failed(), call).await, Settled::Done));
    asked(1, "a settlement");
    let ClaimAnswer::Granted(_) = store.claim(&request("k", 10), call).await.unwrap() else { panic!("it failed") };
    asked(2, "a key that failed");
    let ClaimAnswer::Granted(claim) = store.claim(&request("k", 10_000), call).await.unwrap() else { panic!("over") };
    assert!(claim.interruptions == 1 && claim.attempt == 3);
    asked(2, "a takeover");
    redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut redis.connection().await).await.unwrap();
    assert!(matches!(store.settle(claim, &ending(Ending::Completed { result: None }), call).await, Settled::Done));
    asked(2, "a settlement after the server forgot the script");
    store.claim(&request("k", 20_000), call).await.unwrap();
    asked(1, "a duplicate of completed work");
    store.get(&id("k"), call).await.unwrap().unwrap();
    asked(1, "a look");
}

/// A batch is one request, and another one for those that have a record already.
async fn many_take_one_request(redis: &Redis) {
    let store = store(redis, "many");
    let keys: Vec<String> = (0..40).map(|n| format!("k{n}")).collect();
    let _done = store.settle(granted(&store, "k3", 0).await, &ending(Ending::Released), call()).await;
    let busy = granted(&store, "k7", 0).await;
    let mut requests: Vec<_> = keys.iter().map(|key| request(key, 100)).collect();
    // A key that is there twice is claimed once.
    requests.push(request("k0", 100));
    let meter = Meter::default();
    let answers = store.claim_all(&requests, Call { within: WITHIN, meter: &meter }).await;
    assert_eq!(meter.usage().requests, 2, "all, and the one that was released");
    let mut claims = Vec::new();
    for (n, answer) in answers.into_iter().enumerate() {
        match answer.unwrap() {
            BatchedClaim::Answered(ClaimAnswer::Granted(claim)) => {
                assert_eq!(claim.fence.get(), if n == 3 { 2 } else { 1 }, "{n}");
                claims.push((claim, ending(Ending::Completed { result: Some(format!("[{n}]")) })));
            }
            BatchedClaim::Answered(ClaimAnswer::Refused(_)) => assert!(n == 7 || n == 40, "{n} was refused"),
            BatchedClaim::ClaimAlone => panic!("{n} has no answer"),
        }
    }
    claims.push((busy, ending(Ending::Completed { result: None })));
    assert_eq!(claims.len(), 40);
    let meter = Meter::default();
    let settled = store.settle_all(claims, Call { within: WITHIN, meter: &meter }).await;
    assert!(settled.iter().all(|settled| matches!(settled, Settled::Done)), "{settled:?}");
    assert_eq!(meter.usage().requests, 1);
}

/// Clause 4, for each call and each loss; a connection that is silent is given up.
async fn lost_requests_and_answers_are_resolved(redis: &Redis) {
    let tap = Tap::before(&redis.0.address).await;
    for loss in [Request, Answer, Half, Silence] {
        let store = RedisStore::open(&format!("redis://claimant:claimant@{}/", tap.address)).unwrap();
        let store = store.prefix(&format!("lost-{loss:?}")).unwrap();
        let lose = |what: &str| {
            assert!(tap.lost(), "before {what}");
            tap.lose(loss);
        };
        if loss == Half {
            lose("a login");
        }
        // Connected, and the script known: what is lost next is the call's own.
        drop(granted(&store, "other", 0).await);
        lose("a fresh claim");
        let _abandoned = granted(&store, "k", 0).await;
        lose("a takeover");
        let mut claim = granted(&store, "k", 10_000).await;
        assert!(claim.interruptions == 1 && claim.fence.get() == 2 && claim.attempt == 2, "{loss:?}: {claim:?}");
        lose("a renewal");
        assert_eq!(store.renew(&mut claim, renewal(10_001, 20_000), call()).await.unwrap(), Renewed::Held);
        assert_eq!(claim.lease_until, renewal(10_001, 20_000).lease_until, "{loss:?}");
        lose("a settlement");
        let settled = store.settle(claim, &failed(), call()).await;
        assert!(matches!(settled, Settled::Done), "{loss:?}: {settled:?}");
        lose("a batch");
        let requests = ["k", "l", "m"].map(|key| request(key, 11_000));
        for answer in store.claim_all(&requests, call()).await {
            assert!(matches!(answer.unwrap(), BatchedClaim::Answered(ClaimAnswer::Granted(_))), "{loss:?}");
        }
        assert!(tap.lost());
        let record = store.get(&id("k"), call()).await.unwrap().unwrap();
        assert_eq!((record.fence.get(), record.attempts), (3, 3), "{loss:?}");
    }
}

/// Clause 12, on the one connection that all calls share.
async fn dropped_calls_mix_up_no_answers(redis: &Redis) {
    let store = Arc::new(store(redis, "dropped"));
    for n in 0..200 {
        let dropped: Vec<_> = (0..4)
            .map(|m| {
                let store = Arc::clone(&store);
                tokio::spawn(
                    async move { store.claim(&request(&format!("dropped-{n}-{m}"), 0), call()).await.map(drop) },
                )
            })
            .collect();
        // Some were not begun by then, some are under way, some have their answers.
        for _ in 0..n % 8 {
            tokio::task::yield_now().await;
        }
        dropped.iter().for_each(tokio::task::JoinHandle::abort);
        let wanted = request(&format!("kept-{n}"), 0);
        let ClaimAnswer::Granted(claim) = store.claim(&wanted, call()).await.unwrap() else { panic!("{n} is taken") };
        let record = store.get(&wanted.id, call()).await.unwrap().unwrap();
        assert!(record.owner == wanted.owner && claim.owner == wanted.owner, "{n}: the answer of another call");
    }
}

/// Redis deletes by its own clock: not before the window is over for any caller, and not never.
async fn records_outlive_their_window_and_no_longer(redis: &Redis) {
    let store = store(redis, "kept");
    let mut connection = redis.connection().await;
    let mut kept_s = async |key: &str| -> i64 {
        let key = format!("kept:{}", id(key).as_str());
        redis::cmd("TTL").arg(key).query_async(&mut connection).await.unwrap()
    };
    let window = WINDOW_S as i64;
    // A lease of a second, the margin of a second, a minute on top; and the seconds that the test may take.
    let check = |kept: i64, least: i64, what: &str| assert!((least..least + 64).contains(&kept), "{what}: {kept} s");
    let mut claim = granted(&store, "k", 0).await;
    check(kept_s("k").await, window, "claimed");
    store.renew(&mut claim, renewal(1, 600_000), call()).await.unwrap();
    check(kept_s("k").await, window + 600, "renewed by ten minutes");
    assert!(matches!(store.settle(claim, &failed(), call()).await, Settled::Done));
    check(kept_s("k").await, window, "settled");
    let _again = granted(&store, "k", 1_000).await;
    check(kept_s("k").await, window, "claimed again");
}

async fn prefixes_do_not_meet(redis: &Redis) {
    for prefix in ["a", "b", "A", "a:c", "a:", "a/b"] {
        let store = store(redis, prefix);
        assert_eq!(granted(&store, "k", 0).await.fence.get(), 1, "{prefix}");
    }
    let store = RedisStore::open(&redis.url()).unwrap();
    for bad in ["", "a#b", "a~", "ä", "a b", &"a".repeat(65)] {
        assert!(store.clone().prefix(bad).is_err(), "{bad:?}");
    }
    assert!(store.get(&id("k"), call()).await.unwrap().is_none(), "the default prefix is another one");
}

/// The database has keys of many prefixes by now, and none of the default one.
async fn a_list_of_another_prefix_says_so(redis: &Redis) {
    for (prefix, consumer, well) in [(None, None, false), (None, Some("c"), false), (Some("few"), Some("c"), true)] {
        let store = StoreAddress::Url { url: SecretUrl::new(redis.url()), prefix: prefix.map(str::to_owned) };
        let place = Target::Named { store: Some(store), queues: Vec::new() }.open(&Account::default()).await.unwrap();
        let stores = place.open_stores(None).await.unwrap();
        let consumer = consumer.map(|name| ConsumerName::new(name).unwrap());
        let query = Query { states: vec![State::Parked], consumer, older_than: None, text: None, limit: 9 };
        let listed = stores[0].keys.list(&query, |_| ControlFlow::Continue(())).await.unwrap();
        assert!(listed.found.is_empty(), "{listed:?}");
        let known = stores[0].check_known(&listed).await.map_err(|error| error.to_string());
        assert_eq!(known.is_ok(), well, "{known:?}");
        assert_eq!(stores[0].name, format!("Redis {}:*", prefix.unwrap_or("claimant")));
        assert!(known.err().is_none_or(|error| error.contains("name it with --prefix")));
    }
}
