//! Messages that come back later than SQS can hide them: sent again by the local scheduler, at a time of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::retry::RetryConfig;
use aws_sdk_sqs::config::{Credentials, Region};
use claimant::{Clock, Consumer, Context, HandlerError, SystemClock};
use claimant_aws::endpoints::Endpoints;
use claimant_core::own_attributes::{
    ATTEMPT, CONSUMER, ERROR, FIRST_MESSAGE_ID, MESSAGE_ID, OUTCOME, RECORD, REDRIVES, SENT_AGAIN_OF,
};
use claimant_local::scheduler::Scheduler;
use claimant_local::sqs::{AttributeValue, MessageAttribute, NewMessage, Received};
use claimant_testkit::logs::Logs;
use claimant_tests::wire::Loss;
use tokio::net::TcpListener;

use super::world::{QUEUE, Work, World, body, failures, invoke};

const DAYS: Duration = Duration::from_secs(3 * 86_400);
const TRACE: &str = "Root=1-5759e988-bd862e3fe1be46a994272793";

/// A handler that wants to be called again in three days, the first two times.
async fn work(work: Work, cx: Context) -> Result<(), HandlerError> {
    match work.action.as_str() {
        "later" if cx.attempt() < 3 => Err(HandlerError::retry("not yet").after(DAYS)),
        _ => Ok(()),
    }
}

async fn start(queues: &[&str]) -> (World, Scheduler) {
    let mut world = World::start(queues).await;
    let scheduler = Scheduler::new(world.sqs.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let set = [
        ("SQS".to_owned(), world.config.endpoint_url().unwrap().to_owned()),
        ("SCHEDULER".to_owned(), format!("http://{}", listener.local_addr().unwrap())),
    ];
    tokio::spawn(scheduler.clone().serve(listener, std::future::pending()));
    let config = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .http_client(world.wire.clone())
        .retry_config(RetryConfig::disabled())
        .load()
        .await;
    world.config = config.into_builder().service_config(Endpoints(set.into())).build();
    (world, scheduler)
}

fn service(world: &World) -> claimant::lambda::Service {
    let variables = [
        ("CLAIMANT_SCHEDULE_ROLE_ARN", "arn:aws:iam::000000000000:role/schedules"),
        ("CLAIMANT_SCHEDULE_DEAD_LETTER_ARN", "arn:aws:sqs:us-east-1:000000000000:unsent"),
    ];
    world.service_of(&variables, Consumer::new("c", world.store.clone(), work).key(|work: &Work| &work.id))
}

/// Lets so much time pass for the scheduler, and receives what is there then.
async fn after(world: &World, scheduler: &Scheduler, queue: &str, time: Duration) -> Vec<Received> {
    scheduler.run_due(SystemClock.now().plus(time).as_millis());
    world.sqs.receive(queue, 10, Duration::ZERO).await.unwrap()
}

#[tokio::test]
async fn a_message_comes_back_after_days_as_it_was() {
    let (world, scheduler) = start(&["orders.fifo"]).await;
    let service = service(&world);
    for queue in [QUEUE, "orders.fifo"] {
        let fifo = queue != QUEUE;
        let attribute = MessageAttribute { data_type: "Number".into(), value: AttributeValue::Text("7".into()) };
        let message = NewMessage {
            message_attributes: [("n".to_owned(), attribute)].into(),
            group_id: Some("tenant".to_owned()),
            deduplication_id: fifo.then(|| "of-its-own".to_owned()),
            trace_header: Some(TRACE.to_owned()),
            ..NewMessage::new(body(queue, "later"))
        };
        let batch = world.batch(queue, vec![message]).await;
        let response = invoke(&service, world.event(queue, &batch)).await.unwrap();
        assert!(failures(&response).is_empty() && scheduler.len() == 1, "{queue}");
        let record = world.metrics.lock().unwrap().pop().unwrap();
        // What is zero is not in the record.
        assert_eq!((&record["scheduled"], record.get("retry"), record.get("failed")), (&1.into(), None, None));

        // Its deletion was lost, and it wants the same as before: there is no second schedule.
        let response = invoke(&service, world.event(queue, &batch)).await.unwrap();
        assert!(failures(&response).is_empty() && scheduler.len() == 1, "{queue}");
        world.sqs.delete(queue, &batch[0].receipt_handle).unwrap();

        assert!(after(&world, &scheduler, queue, DAYS - Duration::from_secs(60)).await.is_empty(), "{queue}");
        let [again] = &after(&world, &scheduler, queue, DAYS + Duration::from_secs(60)).await[..] else {
            panic!("{queue}: one message")
        };
        assert!(scheduler.is_empty() && again.message_id != batch[0].message_id, "{queue}");
        let mut attributes = again.message_attributes.clone();
        let first = attributes.remove(SENT_AGAIN_OF).unwrap();
        assert_eq!((&again.body, &attributes), (&batch[0].body, &batch[0].message_attributes), "{queue}");
        assert_eq!(first.value, AttributeValue::Text(batch[0].message_id.clone()), "{queue}");
        for attribute in ["MessageGroupId", "AWSTraceHeader"] {
            assert_eq!(again.attributes.get(attribute), batch[0].attributes.get(attribute), "{queue}: {attribute}");
        }
        let deduplication_id = fifo.then_some(&batch[0].message_id);
        assert_eq!(again.attributes.get("MessageDeduplicationId"), deduplication_id, "{queue}");
        assert_eq!(again.attributes["ApproximateReceiveCount"], "1");
        let response = invoke(&service, world.event(queue, std::slice::from_ref(again))).await.unwrap();
        assert!(failures(&response).is_empty(), "{queue}");
        assert_eq!(world.metrics.lock().unwrap().pop().unwrap()["completed"], 1, "{queue}: its third attempt");
    }
}

/// A redrive of SQS leaves all of claimant's attributes on a message: with four of its own, ten.
#[tokio::test]
async fn what_a_dead_letter_left_on_a_message_does_not_keep_it_from_its_schedule() {
    const OWN: [&str; 4] = ["a", "b", "c", "d"];
    const LEFT: [&str; 6] = [ERROR, OUTCOME, MESSAGE_ID, RECORD, CONSUMER, ATTEMPT];
    let (world, scheduler) = start(&[]).await;
    for (own, left, bytes, kept) in [
        (4, &LEFT[..], 0, &[OUTCOME, MESSAGE_ID, RECORD, CONSUMER][..]),
        (
            4,
            &[MESSAGE_ID, REDRIVES, FIRST_MESSAGE_ID, OUTCOME, RECORD, ERROR],
            0,
            &[MESSAGE_ID, REDRIVES, FIRST_MESSAGE_ID, OUTCOME, RECORD],
        ),
        (1, &[SENT_AGAIN_OF, ERROR], 0, &[]),
        // Three are more than a schedule takes.
        (0, &[CONSUMER, RECORD, MESSAGE_ID], 100_000, &[MESSAGE_ID, RECORD]),
    ] {
        let text = |name: &str| AttributeValue::Text(name.to_owned() + &"x".repeat(bytes));
        let attribute =
            |name: &&str| (name.to_string(), MessageAttribute { data_type: "String".into(), value: text(name) });
        let attributes = |names: &[&str]| BTreeMap::from_iter(OWN[..own].iter().chain(names).map(attribute));
        let message = NewMessage { message_attributes: attributes(left), ..NewMessage::new(body(left[0], "later")) };
        let batch = world.batch(QUEUE, vec![message]).await;
        let response = invoke(&service(&world), world.event(QUEUE, &batch)).await.unwrap();
        assert!(failures(&response).is_empty() && scheduler.len() == 1, "{left:?}");
        world.sqs.delete(QUEUE, &batch[0].receipt_handle).unwrap();
        let [again] = &after(&world, &scheduler, QUEUE, DAYS + Duration::from_secs(60)).await[..] else {
            panic!("{left:?}: one message")
        };
        let mut has = again.message_attributes.clone();
        let first = if left.contains(&SENT_AGAIN_OF) { SENT_AGAIN_OF } else { &batch[0].message_id };
        assert_eq!(has.remove(SENT_AGAIN_OF).unwrap().value, AttributeValue::Text(first.to_owned()), "{left:?}");
        assert_eq!(has, attributes(kept), "{left:?}");
    }
}

/// Sent more than five minutes apart, they are two messages for their queue; what comes back may be sent in one moment.
#[tokio::test]
async fn messages_of_one_deduplication_id_all_come_back() {
    let (world, scheduler) = start(&["orders.fifo", "earlier.fifo"]).await;
    let mut batch = Vec::new();
    // Of another queue, as if its five minutes were over.
    for (queue, id) in [("earlier.fifo", "a"), ("orders.fifo", "b")] {
        let message = NewMessage {
            group_id: Some(id.to_owned()),
            deduplication_id: Some("hash-of-the-body".to_owned()),
            ..NewMessage::new(body(id, "later"))
        };
        let received = world.batch(queue, vec![message]).await;
        world.sqs.delete(queue, &received[0].receipt_handle).unwrap();
        batch.extend(received);
    }
    let response = invoke(&service(&world), world.event("orders.fifo", &batch)).await.unwrap();
    assert!(failures(&response).is_empty() && scheduler.len() == 2);
    let again = after(&world, &scheduler, "orders.fifo", DAYS + Duration::from_secs(60)).await;
    let mut bodies: Vec<_> = again.into_iter().map(|message| message.body).collect();
    bodies.sort();
    assert_eq!(bodies, [body("a", "later"), body("b", "later")]);
}

/// Its message was deleted once the schedule was there: nothing else has it.
#[tokio::test]
async fn what_a_schedule_cannot_send_is_kept_in_its_dead_letter_queue() {
    let (world, scheduler) = start(&["unsent"]).await;
    let batch = world.batch(QUEUE, vec![NewMessage::new(body("a", "later"))]).await;
    let response = invoke(&service(&world), world.event("gone", &batch)).await.unwrap();
    assert!(failures(&response).is_empty() && scheduler.len() == 1);
    let [unsent] = &after(&world, &scheduler, "unsent", DAYS + Duration::from_secs(60)).await[..] else {
        panic!("one message")
    };
    assert!(unsent.body.contains("later") && scheduler.is_empty(), "{}", unsent.body);
}

#[tokio::test]
async fn without_a_confirmed_schedule_it_is_hidden_as_long_as_it_can_be() {
    const DENIED: Loss = Loss::Instead(403, r#"{"__type":"AccessDeniedException","Message":"secret"}"#);
    for (name, losses, bytes, schedules) in [
        ("each request is lost", &[Loss::Request; 3][..], 9, 0),
        ("each answer is lost", &[Loss::Answer; 3], 9, 1),
        ("no permission", &[DENIED], 9, 0),
        ("too large", &[], 262_144, 0),
    ] {
        let (world, scheduler) = start(&[]).await;
        let service = service(&world);
        world.wire.script(losses);
        let text = body("a", "later").replace('}', &format!(r#","rest":"{}"}}"#, "x".repeat(bytes)));
        let batch = world.batch(QUEUE, vec![NewMessage::new(text)]).await;
        let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        assert_eq!(failures(&response), [batch[0].message_id.as_str()], "{name}");
        assert_eq!(scheduler.len(), schedules, "{name}");
        assert_eq!(world.wire.take_requests().last().unwrap(), "ChangeMessageVisibilityBatch", "{name}");
        let depth = world.sqs.depth(QUEUE).unwrap();
        assert_eq!((depth.visible, depth.in_flight), (0, 1), "{name}");
    }
}

#[tokio::test]
async fn that_there_was_no_answer_in_time_is_said() {
    let (world, scheduler) = start(&[]).await;
    let (service, logs) = (service(&world), Logs::record());
    world.wire.script(&[Loss::Silence]);
    let batch = world.batch(QUEUE, vec![NewMessage::new(body("a", "later"))]).await;
    let deadline = SystemClock.now().plus(Duration::from_secs(3)).as_millis();
    let response = service.invoke(world.event(QUEUE, &batch), deadline, "").await.unwrap().0;
    assert!(failures(&response) == [batch[0].message_id.as_str()] && scheduler.is_empty());
    let log = logs.text();
    assert!(log.contains("EventBridge Scheduler gave no answer before the report was due"), "{log}");
}
