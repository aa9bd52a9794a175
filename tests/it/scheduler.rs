//! Messages at a time of their own, on the local scheduler with the real SDK, over a wire that loses requests and answers.

use std::time::Duration;

use aws_sdk_scheduler::Client;
use aws_sdk_scheduler::config::retry::RetryConfig;
use aws_sdk_scheduler::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_scheduler::types::builders::TargetBuilder;
use aws_sdk_scheduler::types::{
    DeadLetterConfig, FlexibleTimeWindow, FlexibleTimeWindowMode, ScheduleState, SqsParameters, Target,
};
use claimant::producer::{Cancelled, Outgoing, Scheduled, Scheduler, SendErrorKind};
use claimant::{AttributeValue, Key, Timestamp, Variables};
use claimant_local::scheduler::Scheduler as LocalScheduler;
use claimant_local::sqs::{QueueSettings, Sqs};
use claimant_testkit::logs::Logs;
use claimant_tests::wire::{Loss, Wire};
use futures_util::future::join_all;

const STANDARD: &str = "reminders";
const FIFO: &str = "reminders.fifo";
const DEAD: &str = "dead";
const ROLE: &str = "arn:aws:iam::000000000000:role/reminders";

/// One of another partition.
const GOV_ROLE: &str = "arn:aws-us-gov:iam::000000000000:role/reminders";

/// In the year 2100.
const AT: Timestamp = Timestamp::from_millis(4_102_444_800_000);
const IN_2100: &str = "at(2100-01-01T00:00:00)";

/// Queues, and a scheduler behind a wire.
struct World {
    sqs: Sqs,
    local: LocalScheduler,
    wire: Wire,
    client: Client,
}

impl World {
    async fn start(retries: RetryConfig) -> Self {
        let sqs = Sqs::new();
        sqs.set_endpoint("http://127.0.0.1:9324");
        sqs.create_queue(STANDARD, QueueSettings::default()).unwrap();
        sqs.create_queue(DEAD, QueueSettings::default()).unwrap();
        sqs.create_queue(FIFO, QueueSettings { fifo: true, ..QueueSettings::default() }).unwrap();
        let local = LocalScheduler::new(sqs.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(local.clone().serve(listener, std::future::pending()));
        let wire = Wire::default();
        let config = aws_sdk_scheduler::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "tests"))
            .retry_config(retries)
            .endpoint_url(endpoint)
            .http_client(wire.clone())
            .build();
        Self { sqs, local, wire, client: Client::from_conf(config) }
    }

    fn scheduler(&self, queue: &str) -> Scheduler {
        Scheduler::new(self.client.clone(), self.sqs.queue_url(queue), ROLE)
    }

    /// Makes a schedule as others than claimant would.
    async fn create(&self, name: &str, expression: &str, target: TargetBuilder) {
        let window = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off).build().unwrap();
        let request = self.client.create_schedule().name(name).schedule_expression(expression);
        let target = target.role_arn(ROLE).build().unwrap();
        request.target(target).flexible_time_window(window).send().await.unwrap();
    }

    /// Lets the time come; returns the bodies in the queue then.
    fn at(&self, time: Timestamp, queue: &str) -> Vec<String> {
        self.local.run_due(time.as_millis());
        self.sqs.messages(queue).unwrap().into_iter().map(|message| message.body).collect()
    }
}

fn outgoing(key: &str, body: &str) -> Outgoing {
    Outgoing::new(Key::new(key).unwrap(), body)
}

fn key(key: &str) -> Key {
    Key::new(key).unwrap()
}

/// What became of it, in a word.
fn word(result: &Result<Scheduled, claimant::producer::SendError>) -> String {
    match result {
        Ok(scheduled) => format!("{scheduled:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_sent_once_at_its_time() {
    let world = World::start(RetryConfig::disabled()).await;
    let scheduler = world.scheduler(STANDARD);
    let trace = "Root=1-5759e988-bd862e3fe1be46a994272793";
    let message = || {
        outgoing("remind/ö 1", "<aws.scheduler.attempt-number> \"é\"\u{1f600}")
            .group("tenant-7")
            .attribute("kind", AttributeValue::text("<aws.scheduler.execution-id>"))
            .attribute("n", AttributeValue::number(7))
    };
    assert_eq!(scheduler.schedule(message(), AT).await.unwrap(), Scheduled::Created);
    // Another process, in another trace.
    let again = world.scheduler(STANDARD).schedule(message().trace(trace), AT).await.unwrap();
    assert_eq!((again, world.local.len()), (Scheduled::AlreadyThere, 1));
    assert!(world.at(AT.minus(Duration::from_secs(1)), STANDARD).is_empty());
    assert_eq!(world.at(AT, STANDARD), ["<aws.scheduler.attempt-number> \"é\"\u{1f600}"], "no keyword is replaced");
    assert_eq!((world.at(AT, STANDARD).len(), world.local.len()), (1, 0), "and it is gone");
    let received = world.sqs.receive(STANDARD, 1, Duration::ZERO).await.unwrap().remove(0);
    assert_eq!(received.attributes["MessageGroupId"], "tenant-7");
    let attribute = |name: &str| received.message_attributes[name].value.as_bytes().to_vec();
    assert_eq!((attribute("kind"), attribute("n")), (b"<aws.scheduler.execution-id>".to_vec(), b"7".to_vec()));
    // Where SQS remembers ids, what is sent by schedule and by hand is one message.
    let fifo = world.scheduler(FIFO);
    fifo.schedule(outgoing("a b", "x").trace(trace), AT).await.unwrap();
    assert_eq!(world.at(AT, FIFO), ["x"]);
    fifo.schedule(outgoing("a b", "x"), AT).await.unwrap();
    assert_eq!(world.at(AT, FIFO), ["x"]);
    let received = world.sqs.receive(FIFO, 1, Duration::ZERO).await.unwrap().remove(0);
    assert_eq!(received.attributes["AWSTraceHeader"], trace);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_message_or_time_under_a_key_is_a_conflict() {
    let world = World::start(RetryConfig::disabled()).await;
    let scheduler = world.scheduler(STANDARD);
    scheduler.schedule(outgoing("k", "secret"), AT).await.unwrap();
    let later = AT.plus(Duration::from_secs(1));
    for (message, at, why) in [
        (outgoing("k", "secret two"), AT, "it sends something else"),
        (outgoing("k", "secret").group("g"), AT, "it sends something else"),
        (outgoing("k", "secret").attribute("a", AttributeValue::text("secret")), AT, "it sends something else"),
        (outgoing("k", "secret"), later, "it has another time"),
    ] {
        let error = scheduler.schedule(message, at).await.unwrap_err();
        assert_eq!(error.kind(), SendErrorKind::Conflict, "{error}");
        assert!(error.to_string().contains(why) && !error.to_string().contains("secret"), "{error}");
    }
    // One that cannot send, or loses what it cannot send, is not the same.
    let of_another_role = Scheduler::new(world.client.clone(), world.sqs.queue_url(STANDARD), format!("{ROLE}-2"));
    let with_dead_letters = world.scheduler(STANDARD).dead_letters(world.sqs.queue_arn(DEAD));
    for (scheduler, why) in [(of_another_role, "another role"), (with_dead_letters, "another dead-letter queue")] {
        let error = scheduler.schedule(outgoing("k", "secret"), AT).await.unwrap_err();
        assert_eq!(error.kind(), SendErrorKind::Conflict, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    // Nothing was changed by that. Another queue's, and another group's, is another schedule.
    assert_eq!(scheduler.schedule(outgoing("k", "secret"), AT).await.unwrap(), Scheduled::AlreadyThere);
    for other in [world.scheduler(DEAD), world.scheduler(STANDARD).in_group("other")] {
        assert_eq!(other.schedule(outgoing("k", "other"), later).await.unwrap(), Scheduled::Created);
        assert_eq!(other.schedule(outgoing("k", "other"), later).await.unwrap(), Scheduled::AlreadyThere);
    }
    // A milli-second earlier is the same second.
    let earlier = AT.minus(Duration::from_millis(999));
    assert_eq!(scheduler.schedule(outgoing("k", "secret"), earlier).await.unwrap(), Scheduled::AlreadyThere);
    assert_eq!(world.local.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_schedule_sends_nothing_and_can_be_made_again() {
    let world = World::start(RetryConfig::disabled()).await;
    let scheduler = world.scheduler(STANDARD);
    assert_eq!(scheduler.cancel(&key("k")).await.unwrap(), Cancelled::NotThere);
    scheduler.schedule(outgoing("k", "one"), AT).await.unwrap();
    assert_eq!(world.scheduler(FIFO).cancel(&key("k")).await.unwrap(), Cancelled::NotThere);
    assert_eq!(scheduler.cancel(&key("k")).await.unwrap(), Cancelled::Deleted);
    assert_eq!(scheduler.schedule(outgoing("k", "two"), AT).await.unwrap(), Scheduled::Created);
    assert_eq!(world.at(AT, STANDARD), ["two"]);
    assert_eq!(scheduler.cancel(&key("k")).await.unwrap(), Cancelled::NotThere);
    scheduler.schedule(outgoing("k", "three"), AT).await.unwrap();
    world.wire.script(&[Loss::Answer]);
    let error = scheduler.cancel(&key("k")).await.unwrap_err();
    assert_eq!(error.kind(), SendErrorKind::Unknown, "not that it was not there: {error}");
}

/// What goes wrong on the wire, what is said, how many schedules there are then, and what is said of the same again.
#[tokio::test(flavor = "multi_thread")]
async fn lost_requests_and_answers_make_no_second_schedule() {
    const THROTTLED: Loss = Loss::Instead(429, r#"{"__type":"ThrottlingException"}"#);
    const DENIED: Loss = Loss::Instead(403, r#"{"__type":"AccessDeniedException","Message":"secret"}"#);
    const BROKEN: Loss = Loss::Instead(500, r#"{"__type":"InternalServerException"}"#);
    const FULL: Loss = Loss::Instead(402, r#"{"__type":"ServiceQuotaExceededException"}"#);
    const NO_GROUP: Loss = Loss::Instead(404, r#"{"__type":"ResourceNotFoundException"}"#);
    const HTML: Loss = Loss::Instead(200, "<html>secret</html>");
    const CUT: Loss = Loss::Instead(200, r#"{"ScheduleArn":"arn:aws:sch"#);
    const TAKEN: Loss = Loss::Instead(409, r#"{"__type":"ConflictException"}"#);
    const ROLE: Loss = Loss::Instead(400, r#"{"__type":"ValidationException","Message":"secret"}"#);
    const LOST: [Loss; 2] = [Loss::Request, Loss::Answer];
    type Row<'a> = (&'a str, &'a [Loss], &'a str, usize, &'a str);
    let rows: [Row<'_>; 24] = [
        ("an empty success", &[Loss::Instead(200, "")], "Unknown", 0, "Created"),
        ("successes that cannot be read", &[HTML; 3], "Unknown", 0, "Created"),
        ("a success that broke off", &[CUT], "Created", 1, "AlreadyThere"),
        ("elsewhere", &[Loss::Instead(302, ""); 3], "Unknown", 0, "Created"),
        ("too many, and no code", &[Loss::Instead(429, ""); 3], "Failed", 0, "Created"),
        ("lost requests", &[LOST[0]; 3], "Unknown", 0, "Created"),
        ("lost answers", &[LOST[1]; 3], "Unknown", 1, "AlreadyThere"),
        ("a lost request", &[LOST[0]], "Created", 1, "AlreadyThere"),
        ("a lost answer", &[LOST[1]], "AlreadyThere", 1, "AlreadyThere"),
        ("a lost answer, then too many", &[LOST[1], THROTTLED, THROTTLED], "Unknown", 1, "AlreadyThere"),
        ("a lost answer, then no permission", &[LOST[1], DENIED], "Unknown", 1, "AlreadyThere"),
        ("too many", &[THROTTLED; 3], "Failed", 0, "Created"),
        ("too many at first", &[THROTTLED; 2], "Created", 1, "AlreadyThere"),
        ("the quota", &[FULL; 3], "Failed", 0, "Created"),
        ("no permission", &[DENIED], "Refused", 0, "Created"),
        ("no role", &[ROLE], "Refused", 0, "Created"),
        ("server errors", &[BROKEN; 3], "Unknown", 0, "Created"),
        ("no such group", &[NO_GROUP], "Refused", 0, "Created"),
        ("taken, and not to be looked at", &[TAKEN, DENIED], "Unknown", 0, "Created"),
        ("a lost answer, and not to be looked at", &[LOST[1], TAKEN, DENIED], "Unknown", 1, "AlreadyThere"),
        ("a lost answer, and an empty look", &[LOST[1], TAKEN, Loss::Instead(200, "")], "Unknown", 1, "AlreadyThere"),
        ("taken, and gone", &[TAKEN], "Unknown", 0, "Created"),
        ("taken, and no answer", &[TAKEN, LOST[1], LOST[1], LOST[1]], "Unknown", 0, "Created"),
        ("taken, and too many", &[TAKEN, THROTTLED, THROTTLED, THROTTLED], "Unknown", 0, "Created"),
    ];
    // Side by side, since they wait between their tries. What the client would retry by itself is the scheduler's to try.
    let of_row = async |(name, losses, wanted, schedules, again): Row<'_>| {
        let world = World::start(RetryConfig::standard()).await;
        let scheduler = world.scheduler(STANDARD);
        world.wire.script(losses);
        let first = scheduler.schedule(outgoing("k", "secret"), AT).await;
        assert_eq!((word(&first).as_str(), world.local.len()), (wanted, schedules), "{name}: {first:?}");
        assert!(!format!("{first:?}").contains("secret"), "{name}: {first:?}");
        world.wire.forget_script();
        let second = scheduler.schedule(outgoing("k", "secret"), AT).await;
        assert_eq!((word(&second).as_str(), world.local.len()), (again, 1), "{name}: {second:?}");
    };
    // In boxes, since all of them are more than a thread's stack takes.
    join_all(rows.map(|row| Box::pin(of_row(row)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_is_kept_in_the_dead_letter_queue() {
    let world = World::start(RetryConfig::disabled()).await;
    let dead = world.sqs.queue_arn(DEAD);
    let logs = Logs::record();
    world.scheduler("gone").dead_letters(dead).schedule(outgoing("k", "body"), AT).await.unwrap();
    world.scheduler("gone").schedule(outgoing("lost", "body"), AT).await.unwrap();
    let bodies = world.at(AT, DEAD);
    assert!(bodies.len() == 1 && bodies[0].contains("\"MessageBody\":\"body\""), "{bodies:?}");
    assert!(world.local.is_empty());
    // By the example in EventBridge Scheduler's user guide ("Configuring a schedule's dead-letter queue").
    let letter = world.sqs.receive(DEAD, 1, Duration::ZERO).await.unwrap().remove(0);
    let wanted = [
        ("ERROR_CODE", "AWS.SimpleQueueService.NonExistentQueue"),
        ("ERROR_MESSAGE", "The specified queue does not exist: gone"),
        ("EXECUTION_ID", ""),
        ("IS_PAYLOAD_TRUNCATED", "false"),
        ("RETRY_ATTEMPTS", "0"),
        ("SCHEDULED_TIME", "2100-01-01T00:00:00Z"),
        ("SCHEDULE_ARN", "arn:aws:scheduler:us-east-1:000000000000:schedule/default/"),
        ("TARGET_ARN", "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"),
    ];
    assert_eq!(letter.message_attributes.len(), wanted.len(), "{:?}", letter.message_attributes);
    for ((name, attribute), (known_as, begins)) in letter.message_attributes.iter().zip(wanted) {
        let value = str::from_utf8(attribute.value.as_bytes()).unwrap();
        assert!(name == known_as && value.starts_with(begins) && attribute.data_type == "String", "{name}: {value}");
    }
    // By then the log alone says which message was lost.
    let lost = "schedule=\"arn:aws:scheduler:us-east-1:000000000000:schedule/default/";
    assert_eq!(logs.text().matches(lost).count(), 2, "{}", logs.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_scheduled_is_refused_without_a_request() {
    let world = World::start(RetryConfig::disabled()).await;
    let scheduler = world.scheduler(STANDARD);
    let rows = [
        (outgoing("k", "secret"), Timestamp::from_millis(1), "its time has come"),
        (outgoing("k", ""), AT, "the body is empty"),
        (outgoing("k", "secret").attribute("b", AttributeValue::bytes([1])), AT, "a binary attribute"),
        (outgoing("k", &"secret".repeat(50_000)), AT, "takes 262144"),
    ];
    for (message, at, why) in rows {
        let error = scheduler.schedule(message, at).await.unwrap_err();
        assert_eq!(error.kind(), SendErrorKind::Refused);
        assert!(error.to_string().contains(why) && !error.to_string().contains("secret"), "{error}");
    }
    let client = world.client.config().to_builder().endpoint_url("localhost:4566").build();
    let scheduler = Scheduler::new(Client::from_conf(client), world.sqs.queue_url(STANDARD), ROLE);
    let error = scheduler.schedule(outgoing("k", "secret"), AT).await.unwrap_err();
    assert!(error.kind() == SendErrorKind::Refused && !error.to_string().contains("secret"), "{error}");
    assert!(world.wire.take_requests().is_empty());
    for role in ["reminders", "arn:aws:x::1:role/y"] {
        let variables = Variables::new([("QUEUE", "reminders"), ("ROLE", role)]);
        let error = Scheduler::from_variables(variables, "QUEUE", "ROLE").await.unwrap_err().to_string();
        assert!(error.contains("a queue's URL is needed") && error.contains("a role's ARN is needed"), "{error}");
    }
}

/// The target of a schedule is in its role's partition, or the service refuses it.
#[tokio::test(flavor = "multi_thread")]
async fn messages_are_scheduled_in_other_partitions() {
    let world = World::start(RetryConfig::disabled()).await;
    let scheduler = Scheduler::new(world.client.clone(), world.sqs.queue_url(STANDARD), GOV_ROLE);
    let message = Outgoing::new(Key::new("k").unwrap(), "k");
    assert_eq!(scheduler.schedule(message, AT).await.unwrap(), Scheduled::Created);
    assert_eq!(world.at(AT, STANDARD), ["k"]);
}

/// Nothing is called but the endpoint, which sends what is due by itself.
#[tokio::test(flavor = "multi_thread")]
async fn the_endpoint_sends_by_the_clock() {
    let world = World::start(RetryConfig::disabled()).await;
    let input = serde_json::json!({ "QueueUrl": world.sqs.queue_url(STANDARD), "MessageBody": "due" }).to_string();
    let target = Target::builder().arn("arn:aws:scheduler:::aws-sdk:sqs:sendMessage").input(input);
    world.create("due", "at(2000-01-01T00:00:00)", target).await;
    let received = world.sqs.receive(STANDARD, 1, Duration::from_secs(60)).await.unwrap();
    assert_eq!(received[0].body, "due");
    // One that does not delete itself stays, and sends once.
    world.local.run_due(AT.as_millis());
    assert_eq!((world.local.len(), world.sqs.messages(STANDARD).unwrap().len()), (1, 1));
    let shown = world.client.get_schedule().name("due").send().await.unwrap();
    let listed = world.client.list_schedules().send().await.unwrap();
    let enabled = Some(&ScheduleState::Enabled);
    assert_eq!((shown.state(), listed.schedules()[0].state()), (enabled, enabled));
    assert!(shown.creation_date().is_some());
}

/// A queue as target, as the console and the CDK write it.
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_as_target_is_sent_the_input() {
    let world = World::start(RetryConfig::disabled()).await;
    let body = "no JSON, \"é\", at <aws.scheduler.scheduled-time>";
    for (name, queue, group) in [("a", STANDARD, None), ("b", FIFO, Some("g"))] {
        let group = group.map(|group| SqsParameters::builder().message_group_id(group).build());
        let letters = DeadLetterConfig::builder().arn(world.sqs.queue_arn(DEAD)).build();
        let target = Target::builder().arn(world.sqs.queue_arn(queue)).input(body);
        world.create(name, IN_2100, target.set_sqs_parameters(group).dead_letter_config(letters)).await;
    }
    assert_eq!(world.at(AT, STANDARD), ["no JSON, \"é\", at 2100-01-01T00:00:00Z"]);
    // It has no deduplication id of its own, and the queue makes none.
    assert!(world.at(AT, FIFO).is_empty());
    let letter: serde_json::Value = serde_json::from_str(&world.at(AT, DEAD).remove(0)).unwrap();
    let url = world.sqs.queue_url(FIFO);
    assert_eq!((&letter["QueueUrl"], &letter["MessageGroupId"]), (&url.into(), &"g".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_are_listed_page_by_page() {
    let world = World::start(RetryConfig::disabled()).await;
    for name in ["b-1", "a-2", "a-1", "a-3"] {
        world.create(name, IN_2100, Target::builder().arn(world.sqs.queue_arn(STANDARD)).input("x")).await;
    }
    let list = |prefix: &str| world.client.list_schedules().name_prefix(prefix);
    for (prefix, max, wanted) in [("", 3, vec![3, 1]), ("a-", 2, vec![2, 1]), ("", 4, vec![4]), ("c", 1, vec![0])] {
        let pages = list(prefix).max_results(max).into_paginator().send().collect::<Result<Vec<_>, _>>().await.unwrap();
        assert_eq!(pages.iter().map(|page| page.schedules().len()).collect::<Vec<_>>(), wanted, "{prefix} {max}");
    }
    assert!(list("").state(ScheduleState::Disabled).send().await.unwrap().schedules().is_empty());
    let refused = list("").max_results(101).send().await.unwrap_err().into_service_error();
    assert!(refused.is_validation_exception(), "{refused:?}");
}

/// What the local scheduler does not imitate is refused by name.
#[tokio::test(flavor = "multi_thread")]
async fn the_local_scheduler_refuses_what_it_does_not_imitate() {
    let world = World::start(RetryConfig::disabled()).await;
    const SEND: &str = "arn:aws:scheduler:::aws-sdk:sqs:sendMessage";
    let rows = [
        ("a b", IN_2100, SEND, "OFF", ROLE, "{}", "a name, of a group too, has"),
        ("n", "rate(5 minutes)", SEND, "OFF", ROLE, "{}", "in UTC only"),
        ("n", "at(2100-02-30T00:00:00)", SEND, "OFF", ROLE, "{}", "that there is"),
        ("n", IN_2100, "arn:aws:sqs:eu-west-1:000000000000:q", "OFF", ROLE, "x", "the target"),
        ("n", IN_2100, "arn:aws:sqs:us-east-1:000000000000:q", "OFF", ROLE, "", "Target.Input, the message's body"),
        ("n", IN_2100, SEND, "OFF", GOV_ROLE, "{}", "the targets arn:aws-us-gov:"),
        ("n", IN_2100, SEND, "FLEXIBLE", ROLE, "{}", "FlexibleTimeWindow"),
        ("n", IN_2100, SEND, "OFF", "role", "{}", "RoleArn"),
        ("n", IN_2100, SEND, "OFF", "arn:aws:iam::000000000000:role/", "{}", "RoleArn"),
        ("n", IN_2100, SEND, "OFF", ROLE, "{", "Input"),
    ];
    for (name, expression, target, mode, role, input, wanted) in rows {
        let target = Target::builder().arn(target).role_arn(role).input(input).build().unwrap();
        let window = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::from(mode)).build().unwrap();
        let request = world.client.create_schedule().name(name).schedule_expression(expression);
        let error = request.target(target).flexible_time_window(window).send().await.unwrap_err();
        let text = format!("{:?}", error.into_service_error());
        assert!(text.contains("ValidationException") && text.contains(wanted), "{text}");
    }
    // Nor what AWS refuses.
    let in_group = |name: &str| world.scheduler(STANDARD).in_group(name);
    let letters = |arn: &str| world.scheduler(STANDARD).dead_letters(arn);
    let too_long = "g".repeat(65);
    for scheduler in [
        in_group("bad group/\u{e9}"),
        in_group(&too_long),
        letters("foo"),
        letters(&world.sqs.queue_arn(FIFO)),
        letters("arn:aws:sqs:us-east-1:1:dead"),
        letters("arn:aws:sqs:us-east-1:000000000000:"),
    ] {
        let error = scheduler.schedule(outgoing("k", "x"), AT).await.unwrap_err();
        assert_eq!(error.kind(), SendErrorKind::Refused, "{error}");
    }
    assert!(world.local.is_empty());
    let error = world.client.list_schedule_groups().send().await.unwrap_err().into_service_error();
    assert!(
        format!("{error:?}").contains("it has CreateSchedule, GetSchedule, ListSchedules and DeleteSchedule"),
        "{error:?}"
    );
}
