//! Pausing and resuming, in the local cloud.

use std::time::Duration;

use claimant_aws::intake::{Api, Mapping as BreakersMapping};
use claimant_core::ErrorKind;
use claimant_core::intake::pause as pause_by;
use claimant_core::{Clock as _, SystemClock};
use claimant_operate::intake::{Change, Intake, Mapping};

/// Functions whose programs are never built: their mappings are there all the same.
const TEMPLATE: &str = "
Transform: AWS::Serverless-2016-10-31
Globals: {Function: {Handler: bootstrap, Runtime: provided.al2023, Timeout: 3}}
Resources:
  Orders: {Type: AWS::SQS::Queue}
  Payments: {Type: AWS::SQS::Queue}
  Confirm:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: confirm}}
    Properties:
      Events:
        Orders:
          Type: SQS
          Properties: {Queue: !GetAtt Orders.Arn, FunctionResponseTypes: [ReportBatchItemFailures]}
  Charge:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: charge}}
    Properties:
      Events:
        Payments: {Type: SQS, Properties: {Queue: !GetAtt Payments.Arn, Enabled: false}}
";

const LONG: Duration = Duration::from_secs(60);

fn shown(mapping: &Mapping) -> (&str, &str, &str, bool) {
    (&mapping.function, &mapping.queue, &mapping.state, mapping.reports_failures)
}

#[tokio::test(flavor = "multi_thread")]
async fn mappings_are_paused_and_resumed() {
    let (_directory, cloud, place) = super::open(TEMPLATE).await;
    let intake = Intake::of(&place);

    let all = intake.list(None).await.unwrap();
    let [confirm, charge] = &all[..] else { panic!("{all:?}") };
    let confirm = intake.settled(confirm, LONG).await.unwrap();
    assert_eq!(shown(&confirm), ("Confirm", "Orders", "Enabled", true));
    assert_eq!(shown(charge), ("Charge", "Payments", "Disabled", false));

    let pause = Change { enabled: Some(false), ..Change::default() };
    let paused = intake.change(&confirm, pause).await.unwrap();
    let paused = intake.settled(&paused, LONG).await.unwrap();
    assert_eq!(shown(&paused), ("Confirm", "Orders", "Disabled", true));
    assert_eq!(intake.change(&paused, pause).await.unwrap(), paused);
    let resume = Change { enabled: Some(true), reports_failures: Some(true) };
    for mapping in [&paused, charge] {
        let resumed = intake.change(mapping, resume).await.unwrap();
        let resumed = intake.settled(&resumed, LONG).await.unwrap();
        assert_eq!((resumed.state.as_str(), resumed.reports_failures), ("Enabled", true));
    }
    let of_charge = intake.list(Some("Charge")).await.unwrap();
    assert_eq!(of_charge.iter().map(shown).collect::<Vec<_>>(), [("Charge", "Payments", "Enabled", true)]);
    assert!(intake.list(Some("None")).await.unwrap().is_empty());

    // A breaker has paused it, and a schedule is to switch it on.
    let arn = |service: &str, name: &str| format!("arn:aws:{service}:us-east-1:000000000000:{name}");
    let (function, queue, role) = (arn("lambda", "function:Confirm"), arn("sqs", "Orders"), arn("iam", "role/resume"));
    let role = role.replace("us-east-1", "");
    let (lambda, scheduler) = (place.endpoint("LAMBDA"), place.endpoint("SCHEDULER"));
    let api = Api { config: place.aws(), lambda, scheduler, near: &function, clock: &SystemClock };
    let until = SystemClock.now().plus(Duration::from_secs(600));
    pause_by(&BreakersMapping::new(api, &function, &queue, &role), until, "breaker mail of confirm").await.unwrap();
    let paused = intake.list(Some("Confirm")).await.unwrap().remove(0);
    let back = intake.comes_back(&paused).await.unwrap().unwrap();
    assert!(back.to_string().ends_with("Z (breaker mail of confirm)"), "{back}");
    assert_eq!(intake.keep_off(&paused).await.unwrap().len(), 1);
    assert_eq!((intake.comes_back(&paused).await.unwrap(), paused.is_on()), (None, false));

    let gone = Mapping { id: "none".to_owned(), ..paused };
    let error = intake.change(&gone, resume).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("Confirm and Orders cannot be changed: it is not there"), "{error}");
    cloud.stop().await;
}
