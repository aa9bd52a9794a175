//! The intake of a function, on the local cloud's Lambda and Scheduler: its requests, and what becomes of the mapping.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use claimant::engine::Intake as _;
use claimant::{Clock as _, SystemClock};
use claimant_aws::endpoints::Endpoints;
use claimant_aws::intake::{Api, Mapping, Returns};
use claimant_core::ErrorKind;
use claimant_core::intake::{Paused, pause, resume};
use claimant_local::control::{Control, Managed};
use claimant_local::faults::Faults;
use claimant_local::journal::Journal;
use claimant_local::mapping::MappingSwitch;
use claimant_local::scheduler::Scheduler;
use claimant_local::sqs::Sqs;
use claimant_local::stack::{CodeSpec, FunctionSpec, MappingSpec};
use claimant_tests::wire::{Loss, Wire};
use tokio::net::TcpListener;

use super::world::aws;

const FUNCTION: &str = "arn:aws:lambda:us-east-1:000000000000:function:orders";
const QUEUE: &str = "arn:aws:sqs:us-east-1:000000000000:orders";
const ROLE: &str = "arn:aws:iam::000000000000:role/resume";

/// Lambda and Scheduler, with one mapping.
struct World {
    scheduler: Scheduler,
    switch: MappingSwitch,
    config: aws_config::SdkConfig,
    wire: Wire,
}

impl World {
    async fn start() -> Self {
        let spec = MappingSpec::new("Orders", "orders");
        let switch = MappingSwitch::new(&spec);
        let function = FunctionSpec {
            logical_id: "Orders".to_owned(),
            name: "orders".to_owned(),
            binary: "orders".to_owned(),
            code: CodeSpec::default(),
            timeout: Duration::from_secs(30),
            memory_mb: 128,
            environment: BTreeMap::new(),
            secrets: BTreeSet::new(),
            log_level: None,
            mappings: vec![spec],
        };
        let control = Control::new(&Faults::default(), &Journal::off());
        let managed = Managed { spec: function, variables: BTreeMap::new(), switches: vec![switch.clone()] };
        control.set_functions(vec![managed]);
        let scheduler = Scheduler::new(Sqs::new());
        scheduler.set_mappings(vec![switch.clone()]);
        let (lambda, scheduled) =
            (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let [lambda_url, scheduler_url] =
            [&lambda, &scheduled].map(|listener| format!("http://{}", listener.local_addr().unwrap()));
        tokio::spawn(control.serve(lambda, std::future::pending()));
        tokio::spawn(scheduler.clone().serve(scheduled, std::future::pending()));
        let wire = Wire::default();
        let set = [("LAMBDA".to_owned(), lambda_url), ("SCHEDULER".to_owned(), scheduler_url)];
        let config = aws("http://127.0.0.1:1", wire.clone()).await.into_builder();
        let config = config.service_config(Endpoints(set.into())).build();
        Self { scheduler, switch, config, wire }
    }

    fn api(&self) -> Api<'_> {
        Api { config: &self.config, near: FUNCTION, clock: &SystemClock }
    }

    fn mapping(&self) -> Mapping<'_> {
        Mapping::new(self.api(), FUNCTION, QUEUE, ROLE)
    }

    fn is_on(&self) -> bool {
        self.switch.state().is_on()
    }
}

#[tokio::test]
async fn it_is_off_until_its_schedule_or_a_process_switches_it_on() {
    let world = World::start().await;
    let until = SystemClock.now().plus(Duration::from_secs(400));
    let Paused::Until(at) = pause(&world.mapping(), until, "breaker mail of c").await.unwrap() else {
        panic!("it was on")
    };
    assert!(!world.is_on());
    // The same return again is the same schedule.
    world.mapping().plan_return(at, "breaker mail of c").await.unwrap();
    let returns = Returns(world.api());
    let planned = returns.of(None).await.unwrap();
    assert_eq!(planned.len(), 1);
    assert_eq!((planned[0].at, planned[0].mapping.as_str()), (at, world.switch.id()));
    assert_eq!(returns.why(&planned[0]).await.unwrap().as_deref(), Some("breaker mail of c"));
    let known = world.scheduler.comes_on(world.switch.id());
    assert_eq!(known, Some((at.as_millis(), Some("breaker mail of c".to_owned()))));
    // Whoever pauses it again finds it off.
    assert_eq!(pause(&world.mapping(), until, "another").await.unwrap(), Paused::WasOff);

    assert!(resume(&world.mapping()).await.unwrap());
    assert!(world.is_on());
    assert_eq!(world.scheduler.len(), 1, "the return stays");
    world.switch.enable(false);
    world.scheduler.run_due(at.as_millis() - 1);
    assert!(!world.is_on());
    world.scheduler.run_due(at.as_millis());
    assert!(world.is_on());
    assert_eq!(world.scheduler.comes_on(world.switch.id()), None);
    assert_eq!((world.scheduler.len(), returns.of(Some(world.switch.id())).await.unwrap()), (0, Vec::new()));
}

#[tokio::test]
async fn one_that_a_person_has_switched_off_stays_off() {
    let world = World::start().await;
    world.switch.enable(false);
    let until = SystemClock.now().plus(Duration::from_secs(400));
    assert_eq!(pause(&world.mapping(), until, "breaker").await.unwrap(), Paused::WasOff);
    assert!(!resume(&world.mapping()).await.unwrap());
    assert!(world.scheduler.is_empty() && !world.is_on());
    // Nor does it come back once its return was deleted.
    world.switch.enable(true);
    pause(&world.mapping(), until, "breaker").await.unwrap();
    let returns = Returns(world.api());
    for planned in returns.of(Some(world.switch.id())).await.unwrap() {
        returns.delete(&planned).await.unwrap();
        returns.delete(&planned).await.unwrap();
    }
    assert!(!resume(&world.mapping()).await.unwrap());
    assert!(!world.is_on());
}

#[tokio::test]
async fn what_is_refused_for_the_moment_is_known_to_pass_and_asked_for_once() {
    let world = World::start().await;
    let until = SystemClock.now().plus(Duration::from_secs(400));
    pause(&world.mapping(), until, "breaker").await.unwrap();
    let in_use = Loss::Instead(400, r#"{"__type": "ResourceInUseException", "Message": "in use"}"#);
    // The look at the mapping, that at its schedules, and the change.
    for arrive in 0..3 {
        let mut answers = vec![Loss::Instead(429, "{}"), Loss::Instead(503, "")];
        answers.extend((arrive == 2).then_some(in_use));
        for answer in answers {
            world.wire.script(&[&vec![Loss::None; arrive][..], &[answer]].concat());
            let error = resume(&world.mapping()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(!world.is_on());
        }
        world.wire.script(&[&vec![Loss::None; arrive][..], &[Loss::Instead(403, "{}")]].concat());
        assert_eq!(resume(&world.mapping()).await.unwrap_err().kind(), ErrorKind::Refused);
    }
    assert!(resume(&world.mapping()).await.unwrap());
    assert!(world.is_on());
}

#[tokio::test]
async fn what_comes_too_late_is_not_asked_for() {
    let world = World::start().await;
    // Planned, but too late to be switched off: it stays on.
    let until = SystemClock.now().plus(Duration::from_secs(300));
    let error = pause(&world.mapping(), until, "breaker").await.unwrap_err().to_string();
    assert!(error.contains("too late"), "{error}");
    assert!(world.is_on());
    assert_eq!(world.scheduler.len(), 1);
    let stranger = Mapping::new(world.api(), FUNCTION, "arn:aws:sqs:us-east-1:000000000000:other", ROLE);
    let error = stranger.is_on().await.unwrap_err().to_string();
    assert!(error.contains("no event source mapping"), "{error}");
    let no_role = Mapping::new(world.api(), FUNCTION, QUEUE, "no role");
    let error = pause(&no_role, until, "breaker").await.unwrap_err().to_string();
    assert!(error.contains("assume the role"), "{error}");
}
