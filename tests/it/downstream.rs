//! The gateway is away while the built function is sent twenty payments a second: in the local cloud, in real time. Counts decide.

use std::time::Duration;

use claimant_local::cloud::CloudConfig;
use claimant_local::faults::{Act, FaultSpec, Target};
use claimant_local::sqs::NewMessage;
use tempfile::TempDir;

use crate::cloud::{QUEUES_AND_TABLE, built, start, wait_for};

/// Two processes. What fails or waited too long comes back after the queue's visibility timeout, and not after minutes.
const FUNCTION: &str = "
  PaymentFunction:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: payment}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 15
      Environment:
        Variables:
          CLAIMANT_TABLE: !Ref Locks
          CLAIMANT_MAX_RECEIVE_COUNT: '5'
          CLAIMANT_VISIBILITY: 'off'
          GATEWAY_URL: https://gateway.example
          GATEWAY_DEDUPLICATES: 'yes'
      Events:
        Orders:
          Type: SQS
          Properties:
            Queue: !GetAtt Orders.Arn
            BatchSize: 10
            ScalingConfig: {MaximumConcurrency: 2}
            FunctionResponseTypes: [ReportBatchItemFailures]
";

const PROCESSES: u32 = 2;

/// Sent at least while the gateway is away: ten seconds' worth, or more.
const SENT_AWAY: u32 = 200;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries: make test"]
async fn while_the_gateway_is_away_payments_wait_and_then_each_is_charged_once() {
    let stage = TempDir::new().expect("a temporary directory");
    let template = stage.path().join("template.yaml");
    std::fs::write(&template, QUEUES_AND_TABLE.replace("SECONDS", "20") + FUNCTION).expect("it is writable");
    let (cloud, logs) = start(CloudConfig::new(template, built(&["payment"]))).await;
    let logged = |text: &str| logs.lock().expect("not poisoned").iter().filter(|line| line.contains(text)).count();
    let mut sent = 0;
    let mut send = async |count: u32| {
        for _ in 0..count {
            let payment =
                serde_json::json!({ "order_id": format!("ord-{sent}"), "amount_cents": 5, "currency": "EUR" });
            cloud.sqs().send("Orders", NewMessage::new(payment.to_string())).expect("the queue is there");
            sent += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        sent
    };
    let before = send(20).await;
    let away = FaultSpec { of: Some(Target::Gateway), seconds: Some(3_600), ..FaultSpec::new(Act::Refuse) };
    cloud.faults().begin(away).expect("the gateway can be refused");
    // Until a probe has failed, too.
    let mut sent_away = send(SENT_AWAY).await - before;
    while logged("breaker opened") < 2 {
        sent_away = send(20).await - before;
        assert!(sent_away < 10 * SENT_AWAY, "no breaker opened");
    }
    let refused: u32 = cloud.faults().end_all().iter().map(|fault| fault.acted).sum();
    let all = send(20).await;
    wait_for("the queue to drain", || cloud.drained().expect("the queues are there")).await;

    println!("{all} payments, {sent_away} of them while the gateway was away; it refused {refused} charges");
    // Each process fails ten times before it knows, with all that runs at once; and then a probe does.
    assert!(refused <= PROCESSES * 20 + logged("breaker is half open") as u32, "{refused} of {sent_away}");
    let mut charges: Vec<_> =
        cloud.gateway().charges().into_iter().map(|charge| (charge.order.reference, charge.requests)).collect();
    charges.sort();
    let mut wanted: Vec<_> = (0..all).map(|n| (format!("ord-{n}"), 1)).collect();
    wanted.sort();
    assert_eq!(charges, wanted);
    assert_eq!(cloud.sqs().depth("Dead").expect("the queue is there").visible, 0);
    assert_eq!(cloud.dynamodb().items("Locks").expect("the table is there").len() as u32, all + 1);
    assert!(logged("breaker is closed") > 0);
    cloud.stop().await;
}
