//! Message move tasks: paced, listed, cancelled, failed. What AWS answers is taken from the AWS-validated tests and snapshots of
//! LocalStack (`tests/aws/services/sqs/test_sqs_move_task.py`), where no other source is named.

use super::*;

/// An endpoint with `count` messages in `dead` that came there from `twice`.
async fn with_dead(count: usize) -> Local {
    let local = Local::start().await;
    for number in 0..count {
        local.send("twice", &number.to_string()).await;
    }
    for _ in 0..=2 {
        let request = local.client.receive_message().queue_url(local.url("twice")).max_number_of_messages(10);
        request.visibility_timeout(0).send().await.unwrap();
    }
    assert_eq!(local.sqs.depth("dead").unwrap().visible, count);
    local
}

fn start(
    local: &Local,
) -> aws_sdk_sqs::operation::start_message_move_task::builders::StartMessageMoveTaskFluentBuilder {
    local.client.start_message_move_task().source_arn(local.sqs.queue_arn("dead"))
}

async fn tasks(local: &Local) -> Vec<aws_sdk_sqs::types::ListMessageMoveTasksResultEntry> {
    let request = local.client.list_message_move_tasks().source_arn(local.sqs.queue_arn("dead")).max_results(10);
    request.send().await.unwrap().results.unwrap_or_default()
}

#[tokio::test]
async fn a_task_without_a_pace_is_over_at_once_and_is_listed() {
    let local = with_dead(2).await;
    assert!(tasks(&local).await.is_empty());
    let started = start(&local).send().await.unwrap();
    assert!(started.task_handle().is_some());
    assert_eq!(local.sqs.depth("twice").unwrap().visible, 2);
    let listed = &tasks(&local).await[0];
    assert_eq!(listed.status(), Some("COMPLETED"));
    assert_eq!(
        (listed.approximate_number_of_messages_moved(), listed.approximate_number_of_messages_to_move()),
        (2, Some(2))
    );
    assert_eq!(listed.source_arn(), Some(&*local.sqs.queue_arn("dead")));
    assert_eq!((listed.destination_arn(), listed.task_handle()), (None, None));
    assert!(listed.started_timestamp() > 0);
    let over = local.client.cancel_message_move_task().set_task_handle(started.task_handle).send().await;
    refused(over, |e| e.is_resource_not_found_exception());
}

#[tokio::test]
async fn a_paced_task_runs_alone_can_be_cancelled_and_leaves_the_rest() {
    let local = with_dead(3).await;
    let handle = start(&local).max_number_of_messages_per_second(1).send().await.unwrap().task_handle.unwrap();
    let running = &tasks(&local).await[0];
    assert_eq!((running.status(), running.task_handle()), (Some("RUNNING"), Some(&*handle)));
    assert_eq!(running.max_number_of_messages_per_second(), Some(1));
    assert_eq!(code(start(&local).send().await), "InvalidParameterValue", "one at a time");

    let cancelled = local.client.cancel_message_move_task().task_handle(&handle).send().await.unwrap();
    let moved = cancelled.approximate_number_of_messages_moved();
    let listed = &tasks(&local).await[0];
    assert_eq!((listed.status(), listed.approximate_number_of_messages_moved()), (Some("CANCELLED"), moved));
    assert_eq!(local.sqs.depth("dead").unwrap().visible + usize::try_from(moved).unwrap(), 3);

    start(&local).send().await.unwrap();
    let statuses: Vec<_> = tasks(&local).await.iter().filter_map(|task| task.status.clone()).collect();
    assert_eq!(statuses, ["COMPLETED", "CANCELLED"], "the newest first");
    assert_eq!(local.sqs.depth("twice").unwrap().visible, 3);
}

#[tokio::test]
async fn a_message_that_was_sent_to_the_dead_letter_queue_has_nowhere_to_go_back_to() {
    // AWS's troubleshooting guide, "DLQ and DLQ redrive issues".
    let local = with_dead(1).await;
    local.send("dead", "by hand").await;
    start(&local).send().await.unwrap();
    let failed = &tasks(&local).await[0];
    assert_eq!((failed.status(), failed.failure_reason()), (Some("FAILED"), Some("CouldNotDetermineMessageSource")));
    assert_eq!(failed.approximate_number_of_messages_moved(), 1);
    start(&local).destination_arn(local.sqs.queue_arn("orders")).send().await.unwrap();
    assert_eq!(local.sqs.messages("orders").unwrap()[0].body, "by hand");
}

#[tokio::test]
async fn what_is_wrong_with_a_task() {
    let local = with_dead(1).await;
    let arn = |queue: &str| local.sqs.queue_arn(queue);
    let from = |queue: &str| local.client.start_message_move_task().source_arn(arn(queue));
    assert_eq!(code(from("orders").send().await), "InvalidParameterValue", "not a dead-letter queue");
    refused(start(&local).destination_arn(arn("gone")).send().await, |e| e.is_resource_not_found_exception());
    assert_eq!(code(start(&local).max_number_of_messages_per_second(501).send().await), "InvalidParameterValue");
    let list = |queue: &str| local.client.list_message_move_tasks().source_arn(arn(queue));
    refused(list("gone").send().await, |e| e.is_resource_not_found_exception());
    let elsewhere = arn("dead").replace("us-east-1", "eu-west-1");
    refused(start(&local).source_arn(elsewhere).send().await, |e| e.is_resource_not_found_exception());
    assert_eq!(code(list("dead").max_results(11).send().await), "InvalidParameterValue");
    let cancel = |handle: String| local.client.cancel_message_move_task().task_handle(handle).send();
    assert_eq!(code(cancel("foobared".to_owned()).await), "InvalidParameterValue");
    for queue in ["gone", "dead"] {
        use base64::Engine as _;
        let handle = format!(r#"{{"taskId":"10f57157-fc38-4da9-a113-4de7e12d05aa","sourceArn":"{}"}}"#, arn(queue));
        let handle = base64::engine::general_purpose::STANDARD.encode(handle);
        refused(cancel(handle).await, |e| e.is_resource_not_found_exception());
    }
}
