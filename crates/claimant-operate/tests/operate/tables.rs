//! A lock table in several tables, of a local cloud: what operators find, list and change.

use std::ops::ControlFlow;
use std::time::Duration;

use claimant_core::protocol::{Act, ClaimPolicy, ClaimRequest, Ending, Likely, Settlement};
use claimant_core::{
    Call, ClaimAnswer, Clock as _, ConsumerName, Fingerprint, Key, MessageId, Meter, OwnerToken, RecordId, Settled,
    State, Store as _, SystemClock,
};
use claimant_dynamodb::{AttributeNames, LockTable, Tables};
use claimant_operate::keys::{Acted, Order, Query};
use claimant_operate::open::{Located, find};
use claimant_operate::target::StoreAddress;

/// Two tables, and the one that had the records before.
const TEMPLATE: &str = "
Transform: AWS::Serverless-2016-10-31
Resources:
  Locks: &table
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
  Locks1: *table
  Locks2: *table
  Orders: {Type: AWS::SQS::Queue}
  Confirm:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: confirm}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 3
      Environment:
        Variables:
          CLAIMANT_TABLE: !Sub '${Locks1},${Locks2}'
          CLAIMANT_TABLE_BEFORE: !Ref Locks
      Events:
        Orders:
          Type: SQS
          Properties: {Queue: !GetAtt Orders.Arn, FunctionResponseTypes: [ReportBatchItemFailures]}
";

const KEYS: usize = 12;

fn id(key: &str) -> RecordId {
    RecordId::new(&ConsumerName::new("orders").unwrap(), &Key::new(key).unwrap())
}

async fn park(table: &LockTable, key: &str) {
    let (meter, now) = (Meter::default(), SystemClock.now());
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
    let call = Call { within: Duration::from_secs(10), meter: &meter };
    let ClaimAnswer::Granted(claim) = table.claim(&request, call).await.unwrap() else { panic!("{key}") };
    let ending = Ending::Parked { error: "why".to_owned() };
    let settlement = Settlement { ending, now, policy: request.policy };
    assert!(matches!(table.settle(claim, &settlement, call).await, Settled::Done));
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_found_in_all_tables_of_a_function() {
    let (_directory, cloud, mut place) = super::open(TEMPLATE).await;
    let addresses = ["Locks", "Locks1,Locks2"].map(|names| StoreAddress::Table(names.to_owned()));
    assert_eq!(place.stores, addresses, "where records are still to be moved from comes first");

    park(&LockTable::new(place.dynamodb(), "Locks"), "before").await;
    let tables: Tables = "Locks1,Locks2".parse().unwrap();
    for key in 0..KEYS {
        park(&LockTable::new(place.dynamodb(), tables.clone()), &key.to_string()).await;
    }
    for table in tables.names() {
        assert!(!cloud.dynamodb().items(table).unwrap().is_empty(), "{table} has some of them");
    }
    let stores = place.open_stores(None).await.unwrap();
    let query = Query { states: vec![State::Parked], consumer: None, older_than: None, text: None, limit: 100 };
    let mut found = Vec::new();
    for store in &stores {
        let listed = store.keys.list(&query, |_| ControlFlow::Continue(())).await.unwrap();
        assert_eq!(store.keys.cost().await.unwrap().size.records, listed.found.len() as u64, "{}", store.name);
        found.extend(listed.found.into_iter().map(|found| found.id));
    }
    assert_eq!(found.len(), KEYS + 1, "{found:?}");
    for wanted in found {
        let Located { id, store, .. } = find(&stores, &wanted).await.unwrap();
        let (by, why) = ("ada".to_owned(), "ticket 7".to_owned());
        let order = Order { id: id.clone(), act: Act::Release, by, why, force: false, dry_run: false };
        assert!(matches!(store.keys.act(&order).await.unwrap(), Acted::Done { .. }), "{id:?}");
    }
    let listed = stores[1].keys.list(&query, |_| ControlFlow::Continue(())).await.unwrap();
    assert!(listed.found.is_empty(), "{listed:?}");

    // Left behind in a table that is not its key's: no claim looks there, and no list.
    let elsewhere = tables.names().find(|table| *table != tables.of(&id("left"))).unwrap();
    park(&LockTable::new(place.dynamodb(), elsewhere), "left").await;
    let listed = stores[1].keys.list(&query, |_| ControlFlow::Continue(())).await.unwrap();
    assert!(listed.found.is_empty(), "{listed:?}");

    place.choose_table("Locks1,Locks2").unwrap();
    assert_eq!(place.stores, addresses[1..]);
    let error = place.choose_table("Locks1,Locks3").unwrap_err().to_string();
    assert!(error.contains("has no table Locks1,Locks3: it has Locks1,Locks2"), "{error}");
    place.choose_table("Locks2").unwrap();
    cloud.stop().await;
}

/// The commands know the default names alone.
#[tokio::test(flavor = "multi_thread")]
async fn of_records_whose_attributes_have_other_names_no_list_says_that_all_is_well() {
    let (_directory, cloud, mut place) = super::open(TEMPLATE).await;
    place.choose_table("Locks2").unwrap();
    let stores = place.open_stores(None).await.unwrap();
    let list = async |states: &[State], older_than| {
        let query = Query { states: states.to_vec(), consumer: None, older_than, text: None, limit: 100 };
        stores[0].keys.list(&query, |_| ControlFlow::Continue(())).await.unwrap()
    };
    let all_well = list(&[State::Parked], None).await;
    assert_eq!(all_well.foreign, 0);
    stores[0].check_known(&all_well).await.unwrap();
    for (nth, names) in [
        AttributeNames { status: "state".into(), ..AttributeNames::default() },
        AttributeNames { updated_at: "written".into(), ..AttributeNames::default() },
        AttributeNames { expires_at: "ttl".into(), ..AttributeNames::default() },
    ]
    .into_iter()
    .enumerate()
    {
        park(&LockTable::new(place.dynamodb(), "Locks2").attribute_names(names), &nth.to_string()).await;
    }
    for (states, older_than, foreign) in
        [(&[State::Parked][..], None, 3), (&[State::Parked], Some(Duration::ZERO), 3), (&[State::Stuck], None, 2)]
    {
        let listed = list(states, older_than).await;
        assert_eq!((listed.found.len(), listed.foreign), (0, foreign), "{states:?} {older_than:?}");
        let error = stores[0].check_known(&listed).await.unwrap_err().to_string();
        assert!(error.contains("not known whether all is well in Locks2"), "{error}");
    }
    cloud.stop().await;
}
