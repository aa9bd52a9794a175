//! How a fix names what it is about, so that it can be written as it stands.

use crate::model::{Link, Mapping, Place};

/// The queue's name, as an alarm has it: in a template, in the one that describes the queue; in an account what it is called.
pub(super) fn queue_name(queue: &Place) -> String {
    match queue.file {
        Some(_) => format!("!GetAtt {}.QueueName", within(&queue.id).1),
        None => last_part(&queue.id).to_owned(),
    }
}

/// What enables a mapping: in a template its property; in an account a command, which leaves the function's other mappings as they are.
pub(super) fn enable(mapping: &Mapping) -> String {
    match (&mapping.place.file, mapping.invokes.function.known().map(Link::text), mapping.queue.known().map(Link::text))
    {
        (None, Some(function), Some(queue)) => format!("claimant resume {function} --queue {}", last_part(queue)),
        _ => "Enabled: true".to_owned(),
    }
}

/// What has a mapping report the messages that failed.
pub(super) fn report(mapping: &Mapping) -> &'static str {
    if mapping.batch.of_topic {
        "in place of SqsSubscription, which has no FunctionResponseTypes, an AWS::SNS::Subscription of the queue, and an SQS event with \
         FunctionResponseTypes: [ReportBatchItemFailures]"
    } else {
        "FunctionResponseTypes: [ReportBatchItemFailures]"
    }
}

fn last_part(arn: &str) -> &str {
    arn.rsplit(':').next().unwrap_or_default()
}

/// A statement that allows this on what has the place, as it is written in another place.
pub(super) fn allow(actions: &[&str], on: &Place, at: &Place) -> String {
    format!("Effect: Allow, Action: [{}], Resource: {}", actions.join(", "), arn(on, at))
}

/// The ARN of something, as it is written in another place.
pub(super) fn arn(of: &Place, at: &Place) -> String {
    let ((stack, id), here) = (within(&of.id), within(&at.id).0);
    match of.file {
        Some(_) if stack == here => format!("!GetAtt {id}.Arn"),
        None if of.id.starts_with("arn:") => of.id.to_string(),
        // A logical id means nothing in another stack, and a table's name is no ARN.
        _ => format!("the ARN of {}", of.id),
    }
}

/// The stacks that something is nested in, and its logical id there.
fn within(id: &str) -> (&str, &str) {
    id.rsplit_once(crate::model::WITHIN).unwrap_or(("", id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_can_be_written_where_it_belongs() {
        let place =
            |id: &str, file: Option<&str>| Place { id: id.into(), file: file.map(Into::into), ..Place::default() };
        let (queue, file) = ("arn:aws:sqs:eu-west-1:123456789012:orders", Some("t.yaml"));
        for (of, file, function, name, resource) in [
            ("Orders", file, "Work", "!GetAtt Orders.QueueName", "!GetAtt Orders.Arn"),
            ("A>B>Orders", file, "A>B>Work", "!GetAtt Orders.QueueName", "!GetAtt Orders.Arn"),
            ("A>Orders", file, "Work", "!GetAtt Orders.QueueName", "the ARN of A>Orders"),
            ("Orders", file, "A>Work", "!GetAtt Orders.QueueName", "the ARN of Orders"),
            (queue, None, "work", "orders", queue),
            ("locks", None, "work", "locks", "the ARN of locks"),
        ] {
            let (of, function) = (place(of, file), place(function, file));
            let allowed = format!("Effect: Allow, Action: [sqs:A, sqs:B], Resource: {resource}");
            assert_eq!(
                (queue_name(&of), allow(&["sqs:A", "sqs:B"], &of, &function)),
                (name.to_owned(), allowed),
                "{of:?}"
            );
        }
    }
}
