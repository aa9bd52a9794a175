//! The way from one set of tables to another: whatever a key's record was, it is afterwards, and no key is claimed twice.

use claimant_core::protocol::{Abandoned, ClaimRequest, Ending, Likely, Settlement};
use claimant_core::{
    BatchedClaim, Claim, ClaimAnswer, MessageId, OwnerToken, Record, RecordId, Records, Renewed, Replaced, Settled,
    Status, Store, StoreError, StoreErrorKind,
};
use claimant_dynamodb::{LockTable, Tables};
use claimant_tests::dynamodb::DynamoDb;
use claimant_tests::wire::Loss::{self, Answer, Request, Waits};
use claimant_tests::wire::Wire;
use futures_util::future::join_all;

use crate::claims::{call, ending, renewal, request, taken};

fn completed() -> Ending {
    Ending::Completed { result: Some("{\"n\":7}".to_owned()) }
}

fn failed() -> Ending {
    Ending::Failed { error: "no luck".to_owned() }
}

async fn settled(store: &impl Store, claim: Claim, how: Ending) {
    let settled = store.settle(claim, &ending(how), call()).await;
    assert!(matches!(settled, Settled::Done), "{settled:?}");
}

/// An answer without the owner, which each attempt draws anew.
fn word(answer: &Result<ClaimAnswer, StoreError>) -> String {
    match answer {
        Ok(ClaimAnswer::Granted(claim)) => {
            format!(
                "granted {} {}{}",
                claim.fence,
                claim.attempt,
                if claim.is_taken_over() { " taken over" } else { "" }
            )
        }
        Ok(ClaimAnswer::Refused(refusal)) => format!("{refusal:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

/// One table, and three that are to have its records from now on.
struct Move {
    old: LockTable,
    new: LockTable,
    wire: Wire,
}

impl Move {
    async fn of(dynamodb: &DynamoDb, name: &str) -> Self {
        let old = dynamodb.lock_table(name).await;
        let tables = Tables::new((1..=3).map(|number| format!("{name}-{number}"))).unwrap();
        dynamodb.lock_table(tables.clone()).await;
        let wire = Wire::default();
        let new = LockTable::new(dynamodb.client_over(&wire), tables).before(old.name());
        Self { old, new, wire }
    }

    /// The record where it was, and where it is to be.
    async fn records(&self, id: &RecordId) -> (Option<Record>, Option<Record>) {
        let there = LockTable::clone(&self.new).before(self.new.name().parse::<Tables>().unwrap());
        (self.old.get(id, call()).await.unwrap(), there.get(id, call()).await.unwrap())
    }
}

async fn check_all(dynamodb: DynamoDb) {
    every_record_is_as_it_was(&dynamodb).await;
    each_claim_asks_once_more(&dynamodb).await;
    lost_requests_and_answers_lose_no_record(&dynamodb).await;
    one_of_many_gets_a_key_that_moves(&dynamodb).await;
    who_is_late_finds_what_became_of_the_key(&dynamodb).await;
    an_owner_from_before_is_shut_out(&dynamodb).await;
    what_was_not_read_is_not_taken_for_absent(&dynamodb).await;
    of_two_records_the_stricter_counts(&dynamodb).await;
    operators_find_a_record_in_one_place(&dynamodb).await;
    any_set_can_follow_another(&dynamodb).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_dynamodb() {
    check_all(DynamoDb::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs DynamoDB Local: make test"]
async fn on_dynamodb_local() {
    check_all(DynamoDb::local()).await;
}

/// What a key has been through before, the claim after, and its answer.
struct Case {
    name: &'static str,
    before: &'static [Ending],
    /// Whether it was claimed once more then, and not settled.
    held: bool,
    /// The claim after the move.
    now: u64,
    policy: Abandoned,
    message: &'static str,
    wanted: &'static str,
}

fn cases() -> Vec<Case> {
    let case = |name, before: Vec<Ending>, held, now, wanted| Case {
        name,
        before: before.leak(),
        held,
        now,
        policy: Abandoned::Rerun,
        message: "m",
        wanted,
    };
    let refused = || Ending::Rejected { error: "no".to_owned() };
    let parked = || Ending::Parked { error: "why".to_owned() };
    vec![
        case("none", vec![], false, 600, "granted 1 1"),
        case("done", vec![completed()], false, 600, "Completed { result: Some(\"{\\\"n\\\":7}\") }"),
        case("failed", vec![failed(), failed()], false, 600, "granted 3 3"),
        case("parked", vec![parked()], false, 600, "Parked"),
        case("rejected", vec![refused()], false, 600, "Rejected { error: Some(\"no\") }"),
        Case { message: "n", ..case("redriven", vec![refused()], false, 600, "granted 2 1") },
        case("held", vec![failed()], true, 600, "Busy { until: "),
        case("dead", vec![failed()], true, 3_000, "granted 3 3 taken over"),
        Case { policy: Abandoned::Park, ..case("set-aside", vec![], true, 3_000, "Parked") },
        // Its window is over: it counts as absent as in one table, where the fence goes on, too.
        case("over", vec![failed(), completed()], false, 200_000, "granted 3 1"),
    ]
}

/// Whatever a record was, and however its key is claimed, the answer and the record are those of a table that did not move.
async fn every_record_is_as_it_was(dynamodb: &DynamoDb) {
    let (moved, stays) = (Move::of(dynamodb, "as-it-was").await, dynamodb.lock_table("stays").await);
    for case in cases() {
        for way in ["single", "batch", "redelivery", "look", "looks", "optimistic"] {
            let key = format!("{}-{way}", case.name);
            let id = request(&key, 0).id;
            for how in case.before.iter().map(Some).chain(case.held.then_some(None)) {
                let request = request(&key, 0);
                for table in [&moved.old, &stays] {
                    let claim = taken(table, &request).await;
                    if let Some(how) = how {
                        settled(table, claim, how.clone()).await;
                    }
                }
            }
            let before = moved.old.get(&id, call()).await.unwrap();
            let mut request = request(&key, case.now);
            request.policy.abandoned = case.policy;
            request.likely = match way {
                "redelivery" => Likely::Known,
                "look" | "looks" => Likely::Done,
                _ => Likely::New,
            };
            request.message_id = MessageId::new(case.message).unwrap();
            let mut words = Vec::new();
            for table in [&moved.new, &stays] {
                // An attempt of its own, as its owner names its transaction.
                request.owner = OwnerToken::draw().unwrap();
                words.push(claimed(table, &request, way).await);
            }
            assert!(way == "optimistic" || words[0].starts_with(case.wanted), "{key}: {words:?}");
            assert_eq!(words[0], words[1], "{key}");
            let (left, there) = moved.records(&id).await;
            let unowned =
                |record: Option<Record>| record.map(|r| Record { owner: OwnerToken::from_stored("any"), ..r });
            assert_eq!(unowned(there), unowned(stays.get(&id, call()).await.unwrap()), "{key}");
            assert_eq!(left, None, "{key}: what was there was {before:?}");
        }
    }
}

/// Claims the key in one of the ways; the optimistic one completes it, too.
async fn claimed(table: &LockTable, request: &ClaimRequest, way: &str) -> String {
    if way == "optimistic" {
        let table = table.clone().optimistic_transactions();
        return match table.claim(request, call()).await.unwrap() {
            ClaimAnswer::Granted(claim) => {
                format!(
                    "{:?}",
                    table.settle(claim, &Settlement { now: request.now, ..ending(completed()) }, call()).await
                )
            }
            refused => word(&Ok(refused)),
        };
    }
    if ["batch", "looks"].contains(&way) {
        let beside = self::request(&format!("{}-beside", request.id.as_str().len()), 0);
        let both = [request.clone(), ClaimRequest { policy: request.policy, likely: request.likely, ..beside }];
        if let Some(Ok(BatchedClaim::Answered(answer))) = table.claim_all(&both, call()).await.into_iter().next() {
            return word(&Ok(answer));
        }
    }
    word(&table.claim(request, call()).await)
}

/// One read for a key, or for a batch of them; a transaction for a record that is moved; and none where a key's table stays.
async fn each_claim_asks_once_more(dynamodb: &DynamoDb) {
    let Move { old, new, wire } = Move::of(dynamodb, "asks").await;
    let asked = |wanted: &[&str], what: &str| assert_eq!(wire.take_requests(), wanted, "{what}");
    let claim = taken(&new, &request("fresh", 0)).await;
    asked(&["GetItem", "PutItem"], "a fresh key");
    settled(&new, claim, completed()).await;
    asked(&["UpdateItem"], "its completion");
    let claim = taken(&old, &request("old", 0)).await;
    settled(&old, claim, failed()).await;
    let _held = taken(&new, &request("old", 600)).await;
    asked(&["GetItem", "TransactWriteItems", "PutItem", "UpdateItem"], "a key that failed");
    let many: Vec<_> = (0..25).map(|n| request(&format!("many-{n}"), 0)).collect();
    let answers = new.claim_all(&many, call()).await;
    assert!(answers.iter().all(|a| matches!(a, Ok(BatchedClaim::Answered(ClaimAnswer::Granted(_))))), "{answers:?}");
    asked(&["BatchGetItem", "BatchExecuteStatement"], "25 fresh keys");
    let after = LockTable::new(dynamodb.client_over(&wire), new.name().parse::<Tables>().unwrap());
    let _held = taken(&after, &request("after", 0)).await;
    asked(&["PutItem"], "nothing is before any more");
    let tables: Tables = format!("{},{}", new.name(), old.name()).parse().unwrap();
    let grown = LockTable::new(dynamodb.client_over(&wire), tables.clone()).before(old.name());
    let stays = (0..).map(|n| request(&format!("stays-{n}"), 0)).find(|r| tables.of(&r.id) == old.name()).unwrap();
    let _held = taken(&grown, &stays).await;
    asked(&["PutItem"], "a key whose table is the same");
}

/// A process that is gone at any step, or hears nothing of it, leaves the record in one of the tables; it is claimed once.
async fn lost_requests_and_answers_lose_no_record(dynamodb: &DynamoDb) {
    let moved = Move::of(dynamodb, "lost").await;
    for arrived in 0..5 {
        for loss in [Request, Answer] {
            for lost in [1, 3, 24] {
                let key = format!("{arrived}-{loss:?}-{lost}");
                let claim = taken(&moved.old, &request(&key, 0)).await;
                settled(&moved.old, claim, failed()).await;
                let first = request(&key, 600);
                moved.wire.script(&[vec![Loss::None; arrived], vec![loss; lost]].concat());
                let answer = moved.new.claim(&first, call()).await;
                moved.wire.forget_script();
                let (left, there) = moved.records(&first.id).await;
                assert!(left.is_some() != there.is_some(), "{key}: {left:?} {there:?}");
                if answer.is_err() {
                    // Another process finds what the first one has done, and takes nothing from it; the first may try again.
                    let other = word(&moved.new.claim(&request(&key, 700), call()).await);
                    let is_held = there.is_some_and(|record| record.owner == first.owner);
                    assert!(other.starts_with(if is_held { "Busy" } else { "granted 2 2" }), "{key}: {other}");
                    let again = word(&moved.new.claim(&first, call()).await);
                    assert!(again.starts_with(if is_held { "granted 2 2" } else { "Busy" }), "{key}: {again}");
                } else {
                    assert!(word(&answer).starts_with("granted 2 2"), "{key}: {answer:?}");
                }
                let (left, there) = moved.records(&first.id).await;
                assert_eq!((left, there.map(|r| r.fence.get())), (None, Some(2)), "{key}");
            }
        }
    }
}

/// Of many that claim a key at once, each of which may move it, one is granted.
async fn one_of_many_gets_a_key_that_moves(dynamodb: &DynamoDb) {
    let moved = Move::of(dynamodb, "many").await;
    for (key, before, wanted) in
        [("fresh", None, "granted 1 1"), ("failed", Some(failed()), "granted 2 2"), ("done", Some(completed()), "")]
    {
        if let Some(before) = before {
            let claim = taken(&moved.old, &request(key, 0)).await;
            settled(&moved.old, claim, before).await;
        }
        let requests: Vec<_> = (0..20).map(|_| request(key, 600)).collect();
        let answers = join_all(requests.iter().map(async |r| {
            // A conflict between two moves is tried again, as the engine does.
            loop {
                match moved.new.claim(r, call()).await {
                    Err(error) if error.kind() == StoreErrorKind::Throttled => {}
                    answer => break word(&answer),
                }
            }
        }))
        .await;
        let granted: Vec<_> = answers.iter().filter(|answer| answer.starts_with("granted")).collect();
        assert_eq!(granted, if wanted.is_empty() { vec![] } else { vec![wanted] }, "{key}: {answers:?}");
        assert!(wanted.is_empty() || answers.iter().filter(|answer| answer.starts_with("Busy")).count() == 19);
    }
}

/// A claim that has read the record where it was, while others move the key, run it and complete it.
async fn who_is_late_finds_what_became_of_the_key(dynamodb: &DynamoDb) {
    let moved = Move::of(dynamodb, "late").await;
    let other = LockTable::new(dynamodb.client(), moved.new.name().parse::<Tables>().unwrap()).before(moved.old.name());
    for (key, had, arrived) in [("before-it-moves", true, 1), ("before-it-claims", true, 2), ("fresh", false, 1)] {
        if had {
            let claim = taken(&moved.old, &request(key, 0)).await;
            settled(&moved.old, claim, failed()).await;
        }
        moved.wire.script(&[vec![Loss::None; arrived], vec![Waits]].concat());
        let late = request(key, 600);
        let (answer, ()) = tokio::join!(moved.new.claim(&late, call()), async {
            moved.wire.until_waiting().await;
            let claim = taken(&other, &request(key, 600)).await;
            settled(&other, claim, completed()).await;
            moved.wire.go_on();
        });
        assert!(word(&answer).starts_with("Completed"), "{key}: {answer:?}");
    }
    // In a batch, too.
    let requests = [request("batch-0", 0), request("batch-1", 0)];
    moved.wire.script(&[Loss::None, Waits]);
    let (answers, ()) = tokio::join!(moved.new.claim_all(&requests, call()), async {
        moved.wire.until_waiting().await;
        let _claim = taken(&other, &requests[0]).await;
        let claim = taken(&other, &request("batch-1", 0)).await;
        settled(&other, claim, completed()).await;
        moved.wire.go_on();
    });
    let granted = answers.iter().filter(|a| matches!(a, Ok(BatchedClaim::Answered(ClaimAnswer::Granted(_))))).count();
    assert_eq!(granted, 1, "its own: {answers:?}");
}

/// A process of the old version that was believed to have ended: what it does comes before the move, or not at all.
async fn an_owner_from_before_is_shut_out(dynamodb: &DynamoDb) {
    let moved = Move::of(dynamodb, "from-before").await;
    let claim = taken(&moved.old, &request("in-time", 0)).await;
    moved.wire.script(&[Loss::None, Waits]);
    let late = request("in-time", 3_000);
    let (answer, ()) = tokio::join!(moved.new.claim(&late, call()), async {
        moved.wire.until_waiting().await;
        settled(&moved.old, claim, completed()).await;
        moved.wire.go_on();
    });
    assert!(word(&answer).starts_with("Completed"), "it has completed before the move: {answer:?}");

    let mut claim = taken(&moved.old, &request("too-late", 0)).await;
    assert_eq!(word(&moved.new.claim(&request("too-late", 3_000), call()).await), "granted 2 2 taken over");
    let renewal = renewal(10, 9_000);
    assert_eq!(moved.old.renew(&mut claim, renewal, call()).await.unwrap(), Renewed::Lost);
    let id = claim.id.clone();
    assert!(matches!(moved.old.settle(claim, &ending(completed()), call()).await, Settled::Lost));
    assert_eq!(moved.old.get(&id, call()).await.unwrap(), None, "nothing is written");
}

/// What DynamoDB answers where it had no time for a key.
const UNPROCESSED: &str =
    r#"{"Responses":{},"UnprocessedKeys":{"unread":{"ConsistentRead":true,"Keys":[{"id":{"S":"c#done"}}]}}}"#;
const DENIED: &str = r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no"}"#;
const NO_TABLE: &str = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found"}"#;

/// Of a key whose record before could not be read nothing is known: it is not claimed.
async fn what_was_not_read_is_not_taken_for_absent(dynamodb: &DynamoDb) {
    let moved = Move::of(dynamodb, "unread").await;
    let claim = taken(&moved.old, &request("done", 0)).await;
    settled(&moved.old, claim, completed()).await;
    let both = [request("done", 600), request("fresh", 600)];
    for (answer, status) in [(UNPROCESSED, 200), (NO_TABLE, 400), (DENIED, 400)] {
        let new = LockTable::new(dynamodb.client_over(&moved.wire), moved.new.name().parse::<Tables>().unwrap());
        let new = new.before("unread");
        moved.wire.script(&[Loss::Instead(status, answer)]);
        let answers = new.claim_all(&both, call()).await;
        assert!(matches!(answers[0], Ok(BatchedClaim::ClaimAlone)), "{answers:?}");
        assert_eq!(moved.records(&both[0].id).await.1, None, "{answer}");
        moved.wire.forget_script();
    }
    for (answer, kind) in [(NO_TABLE, StoreErrorKind::Misconfigured), (DENIED, StoreErrorKind::Denied)] {
        for arrived in 0..2 {
            moved.wire.script(&[vec![Loss::None; arrived], vec![Loss::Instead(400, answer)]].concat());
            let error = moved.new.claim(&both[0], call()).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            let (denied, own) = (kind == StoreErrorKind::Denied, error.to_string().contains("unread-"));
            let needs = if arrived == 0 { "dynamodb:GetItem" } else { "dynamodb:DeleteItem" };
            assert!(error.to_string().contains(if denied { needs } else { "CLAIMANT_TABLE_BEFORE" }), "{error}");
            // A set of tables alone, without those before, would let keys run again.
            assert!(!error.to_string().contains("set CLAIMANT_TABLE to") && own == (arrived == 1), "{error}");
            let optimistic = moved.new.clone().optimistic_transactions();
            moved.wire.script(&[vec![Loss::None; arrived], vec![Loss::Instead(400, answer)]].concat());
            assert_eq!(optimistic.claim(&both[0], call()).await.unwrap_err().kind(), kind);
        }
    }
    assert!(word(&moved.new.claim(&both[0], call()).await).starts_with("Completed"));
}

/// Against the rules, keys were claimed with both sets of tables. What is known to be done is not done again.
async fn of_two_records_the_stricter_counts(dynamodb: &DynamoDb) {
    let moved = Move::of(dynamodb, "two").await;
    let alone = LockTable::new(dynamodb.client(), moved.new.name().parse::<Tables>().unwrap());
    let parked = || Ending::Parked { error: "why".to_owned() };
    for (key, was, there, wanted) in [
        ("done-failed", completed(), failed(), "Completed"),
        ("failed-done", failed(), completed(), "Completed"),
        ("parked-failed", parked(), failed(), "Parked"),
        ("failed-parked", failed(), parked(), "Parked"),
        ("failed-failed", failed(), failed(), "granted 3 3"),
        ("done-parked", completed(), parked(), "Completed"),
    ] {
        let request = request(key, 0);
        settled(&moved.old, taken(&moved.old, &request).await, was).await;
        for how in [failed(), there] {
            settled(&alone, taken(&alone, &self::request(key, 0)).await, how).await;
        }
        let answer = word(&moved.new.claim(&self::request(key, 600), call()).await);
        assert!(answer.starts_with(wanted), "{key}: {answer}");
        let record = alone.get(&request.id, call()).await.unwrap().unwrap();
        assert!(record.fence.get() >= 2, "{key}: no fence is taken back: {record:?}");
    }
}

/// Each record is in one of the two lock tables, which operators look through; what one does to it holds after the move.
async fn operators_find_a_record_in_one_place(dynamodb: &DynamoDb) {
    let moved = Move::of(dynamodb, "operators").await;
    let parked = Ending::Parked { error: "why".to_owned() };
    for key in ["a", "b"] {
        settled(&moved.old, taken(&moved.old, &request(key, 0)).await, parked.clone()).await;
    }
    let id = request("a", 0).id;
    let seen = moved.new.get(&id, call()).await.unwrap().expect("it is found before it is moved");
    assert_eq!(seen.status, Status::Parked);
    assert_eq!(word(&moved.new.claim(&request("a", 600), call()).await), "Parked");
    assert_eq!(moved.new.get(&id, call()).await.unwrap().as_ref(), Some(&seen), "and after it");
    let released = Record { status: Status::Failed, ..seen.clone() };
    let too_late = moved.old.replace(&id, &seen, &released, call()).await.unwrap();
    assert_eq!(too_late, Replaced::Changed, "it is not there any more");
    assert_eq!(moved.new.replace(&id, &seen, &released, call()).await.unwrap(), Replaced::Done);
    assert_eq!(word(&moved.new.claim(&request("a", 600), call()).await), "granted 2 2");
    // Before it is moved, where it is.
    let id = request("b", 0).id;
    let released = Record { status: Status::Failed, ..moved.old.get(&id, call()).await.unwrap().unwrap() };
    assert_eq!(moved.old.replace(&id, &seen_of(&moved, &id).await, &released, call()).await.unwrap(), Replaced::Done);
    assert_eq!(word(&moved.new.claim(&request("b", 600), call()).await), "granted 2 2");
}

async fn seen_of(moved: &Move, id: &RecordId) -> Record {
    moved.old.get(id, call()).await.unwrap().expect("it was not moved yet")
}

/// One, three, four, two, and one again: each key goes on wherever it is.
async fn any_set_can_follow_another(dynamodb: &DynamoDb) {
    let sets = ["set", "set-1,set-2,set-3", "set-4,set-3,set-2,set-1", "set-3,set-4", "set"]
        .map(|set| set.parse::<Tables>().unwrap());
    for set in &sets {
        dynamodb.lock_table(set.clone()).await;
    }
    let done = request("done", 0);
    let first = dynamodb.lock_table(sets[0].clone()).await;
    settled(&first, taken(&first, &done).await, completed()).await;
    let mut fence = 0;
    for (index, set) in sets.iter().enumerate() {
        let table = LockTable::new(dynamodb.client(), set.clone());
        let table = if index == 0 { table } else { table.before(sets[index - 1].clone()) };
        for key in (0..10).map(|n| format!("k{n}")) {
            let claim = taken(&table, &request(&key, 0)).await;
            fence = claim.fence.get();
            assert_eq!(fence, index as u64 + 1, "{key} in {set}");
            settled(&table, claim, failed()).await;
        }
        assert!(word(&table.claim(&request("done", 600), call()).await).starts_with("Completed"), "{set}");
    }
    assert_eq!(fence, 5);
}
