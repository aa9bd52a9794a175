//! Keys on the store in memory: what is shown, what is listed, and what acts do while others write.
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::error::Chain;
use claimant_core::limit::Allowed;
use claimant_core::protocol::{
    Act, ClaimPolicy, ClaimRequest, Ending, Likely, OperateRefusal, Renewal, Settlement, set_aside,
};
use claimant_core::{
    BoxFuture, Call, Claim, ClaimAnswer, Consumer, ConsumerName, Context, Engine, Fingerprint, HandlerError,
    InvocationTime, Key, MemoryStore, Message, MessageId, Meter, NoQueue, OwnerToken, Record, RecordId, Records,
    Replaced, Settled, State, Status, Store, StoreError, StoreErrorKind,
};
use claimant_operate::keys::{Acted, Keys, LimitOrder, LimitSet, Order, Query, ReadOn, Version, record_lines};
use claimant_operate::open::{OpenStore, find, find_meant};
use claimant_testkit::MovableClock;

const CALL_MAX: Duration = Duration::from_secs(5);

struct Desk {
    clock: MovableClock,
    store: Arc<MemoryStore>,
    keys: Keys,
}

fn desk() -> Desk {
    let (clock, store) = (MovableClock::start(), Arc::new(MemoryStore::new()));
    let keys = Keys::new(store.clone()).clock(Arc::new(clock.clone()));
    Desk { clock, store, keys }
}

/// Returns the record of a key of `orders`, or the one with this id.
fn id(key: &str) -> RecordId {
    let of_orders = |_| RecordId::new(&ConsumerName::new("orders").unwrap(), &Key::new(key).unwrap());
    RecordId::from_stored(key).unwrap_or_else(of_orders)
}

fn order(key: &str, act: Act) -> Order {
    Order { id: id(key), act, by: "ada".into(), why: "ticket 7".into(), force: false, dry_run: false }
}

impl Desk {
    async fn claim(&self, key: &str) -> Claim {
        let now = claimant_core::Clock::now(&self.clock);
        let request = ClaimRequest {
            id: id(key),
            owner: OwnerToken::draw().unwrap(),
            message_id: MessageId::new("m").unwrap(),
            fingerprint: Fingerprint::of_bytes(b"p"),
            now,
            lease_until: now.plus(Duration::from_secs(10)),
            policy: ClaimPolicy::default(),
            likely: Likely::New,
        };
        let meter = Meter::default();
        match self.store.claim(&request, Call { within: CALL_MAX, meter: &meter }).await.unwrap() {
            ClaimAnswer::Granted(claim) => claim,
            ClaimAnswer::Refused(why) => panic!("{why:?}"),
        }
    }

    async fn settle(&self, claim: Claim, ending: Ending) -> Settled {
        let now = claimant_core::Clock::now(&self.clock);
        let settlement = Settlement { ending, now, policy: ClaimPolicy::default() };
        self.store.settle(claim, &settlement, Call { within: CALL_MAX, meter: &Meter::default() }).await
    }

    async fn ended(&self, key: &str, ending: Ending) {
        let claim = self.claim(key).await;
        assert!(matches!(self.settle(claim, ending).await, Settled::Done));
    }

    async fn list(&self, states: &[State]) -> Vec<String> {
        let query = Query { states: states.into(), consumer: None, older_than: None, text: None, limit: 10 };
        let listed = self.keys.list(&query, |_| ControlFlow::Continue(())).await.unwrap();
        listed.found.iter().map(|found| format!("{} {}", found.id.key().unwrap(), found.state)).collect()
    }
}

/// A record of work that is done.
pub(crate) async fn completed() -> (RecordId, Record) {
    let desk = desk();
    desk.ended("done", Ending::Completed { result: None }).await;
    (id("done"), desk.keys.get(&id("done")).await.unwrap().unwrap())
}

fn error() -> String {
    "no such order".into()
}

#[tokio::test(start_paused = true)]
async fn a_stuck_key_is_found_explained_and_released() {
    let desk = desk();
    let dead = desk.claim("stuck").await;
    desk.ended("done", Ending::Completed { result: Some("1".into()) }).await;
    assert_eq!(desk.list(&[State::Stuck]).await, Vec::<String>::new());
    let acted = desk.keys.act(&order("stuck", Act::Release)).await.unwrap();
    assert!(matches!(acted, Acted::Refused { why: OperateRefusal::Live { .. }, .. }), "{acted:?}");

    desk.clock.advance(Duration::from_secs(100));
    assert_eq!(desk.list(&[State::Stuck]).await, ["stuck stuck"]);
    let inspection = desk.keys.inspect(&id("stuck")).await.unwrap();
    assert_eq!(
        inspection.headline(),
        "Run 1 began 1 min 40 s ago and did not end: its lease was over 1 min 30 s ago, so its owner died, its handler did not stop \
         when cancelled, or the store gave no answer when it was claimed or ended."
    );
    let outcomes: Vec<_> = inspection.next.iter().map(|next| next.outcome).collect();
    assert_eq!(outcomes, ["runs", "parked", "runs", "conflict"]);
    assert!(inspection.acts.iter().all(|act| act.writes));

    let dry = Order { dry_run: true, ..order("stuck", Act::Release) };
    let acted = desk.keys.act(&dry).await.unwrap();
    assert!(matches!(acted, Acted::WouldWrite { .. }));
    let json = acted.to_json(&id("stuck"), desk.keys.now());
    assert_eq!([&json["before"]["state"], &json["after"]["state"]], ["stuck", "failed"], "{json}");
    assert_eq!(desk.list(&[State::Stuck]).await, ["stuck stuck"]);

    let Acted::Done { after, .. } = desk.keys.act(&order("stuck", Act::Release)).await.unwrap() else { panic!("done") };
    assert_eq!((after.status, after.attempts, after.fence.get()), (Status::Failed, 1, 2));
    assert!(after.note.unwrap().ends_with("Z ada release: ticket 7"));
    assert!(matches!(desk.settle(dead, Ending::Completed { result: None }).await, Settled::Lost));
    assert!(matches!(desk.keys.act(&order("stuck", Act::Release)).await.unwrap(), Acted::NothingToDo(_)));
}

/// What rejects the key is a claim, too, and no run.
#[tokio::test(start_paused = true)]
async fn a_key_that_has_no_attempt_left_is_shown_with_the_runs_that_it_had() {
    let desk = desk();
    let fails = async |_: String, _: Context| Err::<(), _>(HandlerError::retry("no luck"));
    let consumer = Consumer::new("orders", desk.store.clone(), fails).key(|order| order).attempts_max(2);
    let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(desk.clock.clone()));
    let message = [Message::new("m", r#""k""#).unwrap()];
    for (says, runs) in [
        ("Run 1 failed 0 s ago; it may run again at once.", "1"),
        ("Run 2 failed 0 s ago; it may run again at once.", "2"),
        ("Run 2 was the last that its consumer allows: rejected 0 s ago.", "2"),
    ] {
        let now = engine.now();
        let time = InvocationTime::new(now, now.plus(Duration::from_secs(20)), Duration::from_secs(1));
        engine.process(&message, time, &NoQueue).await;
        let inspection = desk.keys.inspect(&id("k")).await.unwrap();
        assert_eq!(inspection.headline(), says);
        let lines = record_lines(inspection.record.as_ref().unwrap(), inspection.now);
        assert!(lines.contains(&("runs", runs.to_owned())), "{lines:?}");
        assert!(lines.iter().any(|(what, value)| *what == "last error" && value.ends_with("no luck")), "{lines:?}");
    }
}

/// A handler that blocks its thread had no error, and neither had a process that died.
#[tokio::test(start_paused = true)]
async fn how_many_owners_left_the_work_is_shown_as_no_error() {
    let desk = desk();
    let _dead = desk.claim("stuck").await;
    let inspection = desk.keys.inspect(&id("stuck")).await.unwrap();
    let mut record = inspection.record.unwrap();
    record.error = Some(set_aside(1));
    let lines = record_lines(&record, inspection.now);
    assert!(
        lines.contains(&("set aside", set_aside(1))) && !lines.iter().any(|(what, _)| *what == "last error"),
        "{lines:?}"
    );
}

/// That tells why everything is refused though the owner is dead.
#[tokio::test(start_paused = true)]
async fn a_record_of_a_clock_that_is_ahead_says_so() {
    let (desk, behind) = (desk(), desk());
    desk.clock.advance(Duration::from_secs(300));
    let _dead = desk.claim("ahead").await;
    let keys = Keys::new(desk.store.clone()).clock(Arc::new(behind.clock.clone()));
    let inspection = keys.inspect(&id("ahead")).await.unwrap();
    let says = "Run 1 is under way, by a clock that is 5 min ahead of this machine's; its lease ends in 5 min 10 s.";
    assert_eq!(inspection.headline(), says);
    let lines = record_lines(inspection.record.as_ref().unwrap(), inspection.now);
    let first = lines.iter().find(|(what, _)| *what == "first claim").unwrap();
    assert!(first.1.ends_with("Z, 5 min ahead of this machine's clock"), "{}", first.1);
}

/// Which no message is worked on by, and no owner dies of.
#[tokio::test(start_paused = true)]
async fn the_record_of_a_breaker_is_explained_as_one_and_listed_until_it_is_closed() {
    let desk = desk();
    let mail = "claimant-breaker#mail";
    let seen = async |says: &str, outcome: &str| {
        let inspection = desk.keys.inspect(&id(mail)).await.unwrap();
        assert!(inspection.headline().starts_with(says), "{}", inspection.headline());
        assert_eq!((inspection.next.len(), inspection.next[0].outcome), (1, outcome), "{inspection:?}");
        assert!(!inspection.is_of_work());
    };
    seen("The breaker is closed.", "runs").await;
    let _open = desk.claim(mail).await;
    seen("The breaker is open, or a process of m probes: written 0 s ago, and probed again ", "breaker_open").await;
    desk.clock.advance(Duration::from_secs(100));
    seen("The breaker is half open: the next message that comes is a probe. None has come for 1 min 30 s", "runs")
        .await;
    assert_eq!(desk.list(&[]).await, ["mail stuck"]);
    assert!(matches!(desk.keys.act(&order(mail, Act::Release)).await.unwrap(), Acted::Done { .. }));
    seen("The breaker is closed.", "runs").await;
    let again = desk.keys.act(&order(mail, Act::Release)).await.unwrap().in_words(Act::Release, &id(mail));
    assert_eq!(again, "nothing to do, it is so already: the breaker is closed.");
    assert_eq!(desk.list(&[]).await, Vec::<String>::new());
}

/// No work of theirs runs again, or is done.
#[tokio::test(start_paused = true)]
async fn an_act_on_the_record_of_a_breaker_or_a_limit_is_not_of_work() {
    let (mail, slot, limit) = ("claimant-breaker#mail", "claimant-rate#ses/0", "claimant-rate#ses");
    let (plan, mark) = ("claimant-rate#ses/plan", "claimant-rate#ses/wanted");
    for (key, act, force, says, headline) in [
        (mail, Act::Release, false, "refused: the breaker is open, until ", "The breaker is open"),
        (mail, Act::Resolve, true, "was IN_PROGRESS; the breaker is closed.", "The breaker is closed."),
        (slot, Act::Release, false, "refused: a process holds the slot, until ", "A slot of a limit, held by m;"),
        (
            slot,
            Act::Release,
            true,
            "was IN_PROGRESS; the slot is free for another",
            "A slot of a limit that no process holds.",
        ),
        (
            slot,
            Act::Resolve,
            true,
            "was IN_PROGRESS; no process can take the slot ",
            "A slot of a limit that no process can",
        ),
        (
            plan,
            Act::Release,
            false,
            "refused: processes go by the plan, until ",
            "What the processes of a limit go by: m;",
        ),
        (
            plan,
            Act::Release,
            true,
            "was IN_PROGRESS; another plan can hold",
            "The plan of a limit that no process goes by.",
        ),
        (plan, Act::Resolve, true, "was IN_PROGRESS; nothing starts that ", "A limit under which nothing starts"),
        (
            mark,
            Act::Release,
            false,
            "refused: a process says that it has no slot",
            "A process of m says that it has no slot",
        ),
        (mark, Act::Forget, true, "was IN_PROGRESS; processes keep all", "No process says that it has no slot."),
        (
            limit,
            Act::Release,
            true,
            "was IN_PROGRESS; the limit is as the functions set it.",
            "A limit that is as the ",
        ),
    ] {
        let desk = desk();
        let _claim = desk.claim(key).await;
        let acted = desk.keys.act(&Order { force, ..order(key, act) }).await.unwrap();
        let (said, seen) = (acted.in_words(act, &id(key)), desk.keys.inspect(&id(key)).await.unwrap());
        assert!(said.starts_with(says) && seen.headline().starts_with(headline), "{said} {}", seen.headline());
        for said in seen.acts.iter().map(|possible| &possible.says).chain([&said]) {
            assert!(!["work", "message", "owner", "duplicate"].iter().any(|word| said.contains(word)), "{key}: {said}");
        }
    }
    // What an operator has set.
    let desk = desk();
    let allowed = Some(Allowed { calls: Some(20), ..Allowed::default() });
    let set = LimitOrder { name: "ses".into(), before: None, allowed, by: "ada".into(), why: String::new() };
    desk.keys.set_limit(&set).await.unwrap();
    let refused = desk.keys.act(&order(limit, Act::Forget)).await.unwrap().in_words(Act::Forget, &id(limit));
    assert!(refused.contains("an operator has set the limit: claimant limit NAME --as-set"), "{refused}");
}

/// As where a colleague acts, or its owner goes on, while a question stands.
#[tokio::test(start_paused = true)]
async fn an_answer_is_about_the_record_that_was_asked_about() {
    let desk = desk();
    desk.ended("k", Ending::Parked { error: error() }).await;
    let planned = desk.keys.act(&Order { dry_run: true, ..order("k", Act::Resolve) }).await.unwrap();
    let Acted::WouldWrite { before, .. } = planned else { panic!("{planned:?}") };
    desk.keys.act(&order("k", Act::Release)).await.unwrap();
    desk.ended("k", Ending::Failed { error: error() }).await;
    let acted = desk.keys.act_on(&order("k", Act::Resolve), Some(&Version::of(Some(&before)))).await.unwrap();
    assert_eq!(
        acted.in_words(Act::Resolve, &id("k")),
        "left as it is: the key has gone on since it was looked at, and is FAILED now."
    );
    assert_eq!((acted.is_done(), desk.list(&[State::Failed]).await), (false, vec!["k failed".to_owned()]));

    // A renewed lease is of the same run, and its end is not.
    let forced = Order { force: true, ..order("k", Act::Forget) };
    let mut claim = desk.claim("k").await;
    let planned = desk.keys.act(&Order { dry_run: true, ..forced.clone() }).await.unwrap();
    let Acted::WouldWrite { before, .. } = planned else { panic!("{planned:?}") };
    let now = claimant_core::Clock::now(&desk.clock);
    let renewal = Renewal { lease_until: now.plus(Duration::from_secs(60)), now, policy: ClaimPolicy::default() };
    desk.store.renew(&mut claim, renewal, Call { within: CALL_MAX, meter: &Meter::default() }).await.unwrap();
    let again = Order { dry_run: true, ..forced.clone() };
    assert!(matches!(
        desk.keys.act_on(&again, Some(&Version::of(Some(&before)))).await.unwrap(),
        Acted::WouldWrite { .. }
    ));
    // A page shows it, and settles nothing with it.
    let shown = Version::of(Some(&before));
    assert!(!shown.as_str().contains(before.owner.as_str()) && shown.as_str().ends_with("/IN_PROGRESS"), "{shown:?}");
    desk.settle(claim, Ending::Completed { result: None }).await;
    assert!(matches!(
        desk.keys.act_on(&forced, Some(&Version::of(Some(&before)))).await.unwrap(),
        Acted::Changed(Some(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn each_state_is_listed_by_its_name_and_what_comes_next_is_the_runtimes_decision() {
    let desk = desk();
    desk.ended("completed", Ending::Completed { result: None }).await;
    desk.ended("failed", Ending::Failed { error: error() }).await;
    desk.ended("rejected", Ending::Rejected { error: error() }).await;
    desk.ended("parked", Ending::Parked { error: error() }).await;
    let _dead = desk.claim("stuck").await;
    desk.clock.advance(Duration::from_secs(60));
    let _live = desk.claim("running").await;
    for (state, first, another) in [
        (State::Running, "busy", "busy"),
        (State::Stuck, "runs", "parked"),
        (State::Completed, "duplicate", "duplicate"),
        (State::Failed, "runs", "runs"),
        (State::Rejected, "rejected", "runs"),
        (State::Parked, "parked", "parked"),
    ] {
        assert_eq!(desk.list(&[state]).await, [format!("{state} {state}")]);
        let next = desk.keys.inspect(&id(state.as_str())).await.unwrap().next;
        assert_eq!((next[0].outcome, next[1].outcome), (first, another), "{state}");
    }
    assert_eq!(desk.list(&[]).await.len(), 6);
    let absent = desk.keys.inspect(&id("absent")).await.unwrap();
    assert!(absent.headline().starts_with("There is no record") && absent.next.iter().all(|n| n.outcome == "runs"));
    // Fifteen days later all windows are over.
    desk.clock.advance(Duration::from_secs(16 * 86_400));
    assert_eq!(desk.list(&[State::Over]).await.len(), 6);
}

/// What a page of the console shows: a few records of those that were read, and where it goes on.
#[tokio::test(start_paused = true)]
async fn a_list_of_some_goes_on_to_the_last_record() {
    let desk = desk();
    for n in 0..2_500 {
        desk.ended(&format!("k{n:04}"), Ending::Completed { result: None }).await;
    }
    desk.ended("z-last", Ending::Parked { error: error() }).await;
    let query = |state, limit| Query { states: vec![state], consumer: None, older_than: None, text: None, limit };
    // The one that waits for a person is found, though it is read last.
    let mut from = ReadOn::default();
    let mut looks = Vec::new();
    let parked = query(State::Parked, 100);
    let found = loop {
        let (listed, next) = desk.keys.list_some(&parked, 1_000, from).await.unwrap();
        looks.push((listed.looked_at, listed.more, listed.found.len()));
        let Some(next) = next else { break listed.found };
        from = serde_json::from_str(&serde_json::to_string(&next).unwrap()).unwrap();
    };
    assert_eq!(looks, [(1_000, true, 0), (1_000, true, 0), (501, false, 1)]);
    assert_eq!(found[0].id, id("z-last"));
    // Of more than a page has room for, each is listed once.
    let (mut seen, mut from, mut looked_at) = (std::collections::BTreeSet::new(), Some(ReadOn::default()), 0);
    let completed = query(State::Completed, 300);
    while let Some(on) = from.take() {
        let (listed, next) = desk.keys.list_some(&completed, 2_000, on).await.unwrap();
        assert!(listed.found.len() <= 300);
        looked_at += listed.looked_at;
        assert!(listed.found.into_iter().all(|found| seen.insert(found.id)));
        from = next;
    }
    assert_eq!((seen.len(), looked_at), (2_500, 2_501), "each is counted once, though pages are read again");
}

#[tokio::test(start_paused = true)]
async fn lists_are_filtered_limited_and_oldest_first() {
    let desk = desk();
    for n in 0..2_500 {
        desk.ended(&format!("k{n}"), Ending::Failed { error: if n == 7 { "odd".into() } else { error() } }).await;
        desk.clock.advance(Duration::from_secs(1));
    }
    let all = Query {
        states: vec![State::Failed],
        consumer: Some(ConsumerName::new("orders").unwrap()),
        older_than: None,
        text: None,
        limit: 10_000,
    };
    let mut rounds = 0;
    let count = |_| {
        rounds += 1;
        ControlFlow::Continue(())
    };
    let listed = desk.keys.list(&all, count).await.unwrap();
    assert_eq!((listed.found.len(), listed.more, listed.looked_at, rounds), (2_500, false, 2_500, 3));
    assert_eq!(listed.found[0].id, id("k0"));
    // Who asks for it can end it after any page.
    let listed = desk.keys.list(&all, |_| ControlFlow::Break(())).await.unwrap();
    assert_eq!((listed.found.len(), listed.more, listed.looked_at), (1_000, true, 1_000));
    for (query, wanted) in [
        (Query { consumer: Some(ConsumerName::new("order").unwrap()), ..all.clone() }, 0),
        (Query { older_than: Some(Duration::from_secs(2_490)), ..all.clone() }, 10),
        (Query { text: Some("odd".into()), ..all.clone() }, 1),
        (Query { text: Some("orders#k249".into()), ..all.clone() }, 11),
    ] {
        assert_eq!(
            desk.keys.list(&query, |_| ControlFlow::Continue(())).await.unwrap().found.len(),
            wanted,
            "{query:?}"
        );
    }
    let listed = desk.keys.list(&Query { limit: 3, ..all }, |_| ControlFlow::Continue(())).await.unwrap();
    assert_eq!((listed.found.len(), listed.more), (3, true));
    assert!(desk.keys.cost().await.unwrap().in_words().starts_with("reads about 2500 records ("));
}

#[test]
fn a_key_is_given_with_its_consumer_or_as_a_whole_id() {
    let consumer = ConsumerName::new("orders").unwrap();
    let ids = Keys::ids("ord-1", Some(&consumer)).unwrap();
    assert_eq!(ids, [id("ord-1"), RecordId::hashed(&consumer, &Key::new("ord-1").unwrap())]);
    // The id of a record in the clear, and what a dead letter of a consumer with hashed keys is asked about by.
    assert_eq!(Keys::ids("orders#ord-1", None).unwrap(), ids);
    assert_eq!(Keys::ids(ids[1].as_str(), None).unwrap(), ids[1..]);
    assert_eq!(Keys::ids(&"k".repeat(2_000), Some(&consumer)).unwrap().len(), 1);
    // Never hashed, and a role may not read what would be.
    assert_eq!(Keys::ids("claimant-breaker#mail", None).unwrap().len(), 1);
    // Too long to be stored in the clear.
    let long = "k#".repeat(1_000);
    assert_eq!(Keys::ids(&format!("orders#{long}"), None).unwrap(), Keys::ids(&long, Some(&consumer)).unwrap());
    assert!(Keys::ids("#ord-1", None).unwrap_err().to_string().contains("consumer#key"));
    assert!(Keys::ids("ord-1", None).unwrap_err().to_string().contains("consumer#key"));
}

#[tokio::test(start_paused = true)]
async fn both_records_of_a_key_are_found_whichever_store_has_them() {
    let consumer = ConsumerName::new("orders").unwrap();
    let hashed = RecordId::hashed(&consumer, &Key::new("a").unwrap());
    for (in_old, in_new, wanted) in [
        (&[][..], &[][..], &[("orders#a", "old")][..]),
        (&["a"], &[], &[("orders#a", "old")]),
        (&[], &[hashed.as_str()], &[(hashed.as_str(), "new")]),
        (&["a", hashed.as_str()], &[], &[("orders#a", "old"), (hashed.as_str(), "old")]),
        (&[hashed.as_str()], &["a"], &[("orders#a", "new"), (hashed.as_str(), "old")]),
    ] {
        let mut stores = Vec::new();
        for (name, keys) in [("old", in_old), ("new", in_new)] {
            let desk = desk();
            for key in keys {
                desk.ended(key, Ending::Parked { error: error() }).await;
            }
            stores.push(OpenStore { name: name.to_owned(), prefix: None, is_table: false, keys: desk.keys });
        }
        let meant = find_meant(&stores, &Keys::ids("orders#a", None).unwrap()).await.unwrap();
        let found: Vec<_> = meant.all().map(|one| (one.id.as_str(), one.store.name.as_str())).collect();
        assert_eq!(found, wanted);
        let both = (wanted.len() == 2).then(|| format!("orders#a (parked) and {} (parked)", hashed.as_str()));
        assert_eq!(meant.two(), both);
        // The explanation is of what was read.
        let before = meant.first.store.keys.usage();
        assert_eq!(meant.first.inspect().unwrap().record.is_some(), meant.first.record.is_some());
        assert_eq!(meant.first.store.keys.usage(), before);
        let one = find_meant(&stores, std::slice::from_ref(&hashed)).await.unwrap();
        assert!(one.other.is_none() && one.first.id == hashed);
    }
}

/// As of one that was forgotten: else it would stand in the way of acts on the other one until its store deletes it.
#[tokio::test(start_paused = true)]
async fn a_record_that_is_over_is_meant_only_where_no_other_one_counts() {
    let consumer = ConsumerName::new("orders").unwrap();
    let hashed = RecordId::hashed(&consumer, &Key::new("a").unwrap());
    let both = ["orders#a", hashed.as_str()];
    for (there, over, wanted) in [
        (&both[..], &["orders#a"][..], hashed.as_str()),
        (&both, &[hashed.as_str()], "orders#a"),
        (&both, &both, "orders#a"),
        (&["orders#a"], &["orders#a"], "orders#a"),
        (&[hashed.as_str()], &[hashed.as_str()], hashed.as_str()),
    ] {
        let desk = desk();
        for key in there {
            desk.ended(key, Ending::Parked { error: error() }).await;
        }
        for key in over {
            assert!(matches!(desk.keys.act(&order(key, Act::Forget)).await.unwrap(), Acted::Done { .. }));
        }
        let stores = [OpenStore { name: "all".to_owned(), prefix: None, is_table: false, keys: desk.keys }];
        let meant = find_meant(&stores, &Keys::ids("orders#a", None).unwrap()).await.unwrap();
        assert_eq!((meant.first.id.as_str(), meant.two()), (wanted, None), "{over:?} of {there:?}");
        let state = if over.contains(&wanted) { State::Over } else { State::Parked };
        assert_eq!(meant.first.state(), Some(state));
    }
}

/// What goes wrong with a write.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// It applies, and its answer is lost.
    AnswerLost,
    /// It applies, its answer is lost, and another owner claims the key then.
    AnswerLostAndClaimed,
    /// It does not apply, since the key is claimed just before, and completed.
    CompletedBefore,
    /// It never applies.
    Unreachable,
    Denied,
    Throttled,
    /// It applies, or does not, with an answer that is not known.
    Strange {
        is_done: bool,
    },
    /// It is the first claim that is throttled.
    ClaimThrottled,
}

/// The store in memory, whose first write of an operator goes wrong; with [`Fault::Unreachable`] each.
struct Faulty {
    desk: Arc<Desk>,
    fault: Fault,
    writes: AtomicU32,
    notes: Mutex<Vec<Option<String>>>,
}

fn strange() -> StoreError {
    StoreError::new(StoreErrorKind::Other, "strange")
}

fn lost() -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, "no answer")
}

impl Records for Faulty {
    fn replace<'a>(
        &'a self,
        id: &'a RecordId,
        seen: &'a Record,
        next: &'a Record,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        Box::pin(async move {
            self.notes.lock().unwrap().push(next.note.clone());
            let first = self.writes.fetch_add(1, Ordering::Relaxed) == 0;
            match self.fault {
                Fault::Unreachable => return Err(lost()),
                Fault::Throttled => return Err(StoreError::new(StoreErrorKind::Throttled, "too many requests")),
                Fault::Denied => return Err(StoreError::new(StoreErrorKind::Denied, "no")),
                Fault::Strange { is_done: false } => return Err(strange()),
                Fault::CompletedBefore if first => {
                    self.desk.ended(id.key().unwrap(), Ending::Completed { result: None }).await;
                }
                _ => {}
            }
            let replaced = self.desk.store.replace(id, seen, next, call).await;
            if first && self.fault == Fault::AnswerLostAndClaimed {
                let _claim = self.desk.claim(id.key().unwrap()).await;
            }
            let lose = matches!(self.fault, Fault::AnswerLost | Fault::AnswerLostAndClaimed);
            match self.fault {
                Fault::Strange { .. } => Err(strange()),
                _ if first && lose => Err(lost()),
                _ => replaced,
            }
        })
    }

    claimant_testkit::pass_on!(self => self.desk.store; list, size);
}

impl Store for Faulty {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        // It takes no permission that acts do not take.
        assert_eq!(request.likely, Likely::Known);
        if self.fault == Fault::ClaimThrottled && self.writes.fetch_add(1, Ordering::Relaxed) == 0 {
            return Box::pin(async { Err(StoreError::new(StoreErrorKind::Throttled, "too many requests")) });
        }
        self.desk.store.claim(request, call)
    }

    claimant_testkit::pass_on!(self => self.desk.store; renew, settle, get);
}

/// Limits are set where much is asked of a table.
#[tokio::test(start_paused = true)]
async fn what_a_store_does_not_answer_of_a_limit_is_not_said_to_have_failed() {
    let allowed = Some(Allowed { calls: Some(20), ..Allowed::default() });
    for (fault, wanted) in [
        (Fault::AnswerLost, Ok(allowed)),
        (Fault::ClaimThrottled, Ok(allowed)),
        (Fault::Throttled, Err("too many requests")),
        (Fault::Unreachable, Err("it is not known whether the limit was set: no answer")),
        (Fault::Denied, Err("no")),
    ] {
        let store = Faulty { desk: Arc::new(desk()), fault, writes: AtomicU32::new(0), notes: Mutex::default() };
        let order = LimitOrder { name: "ses".into(), before: None, allowed, by: "ada".into(), why: String::new() };
        let came = match Keys::new(Arc::new(store)).set_limit(&order).await {
            Ok(LimitSet::Done(state)) => Ok(state.set),
            Ok(LimitSet::Changed(state)) => panic!("{state:?}"),
            Err(error) => Err(Chain(&error).to_string()),
        };
        assert_eq!(came.as_ref().map_err(String::as_str), wanted.as_ref().map_err(|why| *why));
    }
}

#[tokio::test(start_paused = true)]
async fn an_act_whose_answer_is_lost_is_neither_done_twice_nor_reported_wrongly() {
    for (fault, wanted, writes) in [
        (Fault::AnswerLost, "done", 1),
        (Fault::AnswerLostAndClaimed, "superseded", 1),
        (Fault::CompletedBefore, "refused", 1),
        (Fault::Unreachable, "unknown: no answer", 6),
        (Fault::Throttled, "too many requests", 6),
        (Fault::Denied, "no", 1),
        (Fault::Strange { is_done: true }, "done", 1),
        (Fault::Strange { is_done: false }, "strange", 1),
    ] {
        let desk = Arc::new(desk());
        let _dead = desk.claim("k").await;
        desk.clock.advance(Duration::from_secs(100));
        let store = Arc::new(Faulty { desk: desk.clone(), fault, writes: AtomicU32::new(0), notes: Mutex::default() });
        let keys = Keys::new(store.clone()).clock(Arc::new(desk.clock.clone()));
        let came = match keys.act(&order("k", Act::Release)).await {
            Ok(Acted::Done { .. }) => "done".to_owned(),
            Ok(Acted::Superseded(Some(_))) => "superseded".to_owned(),
            Ok(Acted::Refused { why: OperateRefusal::Completed, .. }) => "refused".to_owned(),
            Ok(Acted::Unknown { why }) => format!("unknown: {why}"),
            Ok(other) => panic!("{other:?}"),
            Err(error) => error.to_string(),
        };
        assert_eq!((came.as_str(), store.writes.load(Ordering::Relaxed)), (wanted, writes));
        assert!(store.notes.lock().unwrap().iter().all(Option::is_some));
    }
}

/// While records move, a function of the version before may have made one of its own: the one counts that lets its key be claimed the least.
#[tokio::test(start_paused = true)]
async fn of_two_stores_with_a_record_the_one_that_counts_is_found() {
    let retry = || Ending::Failed { error: error() };
    let completed = || Ending::Completed { result: None };
    for (old, new, wanted) in [
        (Some(retry()), Some(Ending::Parked { error: error() }), "new"),
        (Some(completed()), Some(retry()), "old"),
        (Some(completed()), None, "old"),
        (None, Some(completed()), "new"),
        (None, None, "old"),
    ] {
        let mut stores = Vec::new();
        for (name, ending) in [("old", old), ("new", new)] {
            let desk = desk();
            if let Some(ending) = ending {
                desk.ended("a", ending).await;
            }
            stores.push(OpenStore { name: name.to_owned(), prefix: None, is_table: false, keys: desk.keys });
        }
        let found = find(&stores, &id("a")).await.unwrap();
        assert_eq!((found.id, found.store.name.as_str()), (id("a"), wanted));
    }
}
