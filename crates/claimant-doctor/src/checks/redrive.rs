//! Where SQS moves dead letters: whether it may, and whether they stay there.

use super::pair::home;
use crate::finding::{Answer, FINE, Level, found, together};
use crate::model::{Link, Queue, Redrive, RedriveAllow, System};

/// The queues that dead letters of this one go through before they are back in it, from this one on; nothing where they do not come back,
/// as far as that is known.
pub(super) fn round<'a>(system: &'a System, queue: &'a Queue) -> Option<Vec<&'a Queue>> {
    let mut way = vec![queue];
    loop {
        let last = *way.last()?;
        let next = system.queue(last.redrive.known()?.as_ref()?.target.known()?)?;
        let is_there = next.place.is_there_with(&last.place);
        match way.iter().position(|before| before.place.id == next.place.id) {
            Some(0) if is_there => return Some(way),
            None if is_there => way.push(next),
            _ => return None,
        }
    }
}

pub(super) fn target(system: &System, queue: &Queue, redrive: &Redrive) -> Answer {
    match round(system, queue).as_deref() {
        None => of_its_kind(system, queue, redrive),
        Some([_]) => found(
            Level::Error,
            format!("{} is its own dead-letter queue: what always fails stays in it until it expires", queue.place.id),
            format!("deadLetterTargetArn: the ARN of another queue, on {}", queue.place.id),
        ),
        Some(way) => {
            let others: Vec<_> = way.iter().skip(1).map(|queue| &*queue.place.id).collect();
            let comes = format!(
                "dead letters of {} go to {} and come back: what is received there often enough is in {} again",
                queue.place.id,
                others.join(", then to "),
                queue.place.id
            );
            let goes_round =
                found(Level::Warning, comes, "no RedrivePolicy on the one of them that keeps the dead letters");
            together([of_its_kind(system, queue, redrive), goes_round])
        }
    }
}

fn of_its_kind(system: &System, queue: &Queue, redrive: &Redrive) -> Answer {
    let link = redrive.target.known()?;
    let Some(target) = system.queue(link) else {
        return elsewhere(system, queue, link.text());
    };
    let (fifo, fifo_there) = (*queue.fifo.known()?, *target.fifo.known()?);
    if fifo == fifo_there {
        return FINE;
    }
    let name = |fifo| if fifo { "FIFO" } else { "standard" };
    found(
        Level::Error,
        format!(
            "{} is {}, its dead-letter queue {} is {}",
            queue.place.id,
            name(fifo),
            target.place.id,
            name(fifo_there)
        ),
        format!("FifoQueue: {fifo} on {}", target.place.id),
    )
}

/// A dead-letter queue that is named by its ARN.
fn elsewhere(system: &System, queue: &Queue, arn: &str) -> Answer {
    let mut parts = arn.split(':').skip(3);
    let (region, account, name) = (parts.next()?, parts.next()?, parts.next()?);
    let known = |part: &str| !part.is_empty() && !part.contains("${");
    let (own_region, own_account) = home(system, queue);
    for (part, own, what) in [(region, own_region, "Region"), (account, own_account, "account")] {
        if let Some(own) = own.filter(|own| known(part) && *own != part) {
            return found(
                Level::Error,
                format!("its dead-letter queue {arn} is in {part}, and the queue's {what} is {own}"),
                format!("a dead-letter queue in {own}"),
            );
        }
    }
    let fifo = *queue.fifo.known()?;
    if known(name) && fifo != name.ends_with(".fifo") {
        return found(
            Level::Error,
            format!(
                "its dead-letter queue {arn} is of the other type: the names of FIFO queues, and only those, end in .fifo"
            ),
            "a dead-letter queue of the same type",
        );
    }
    if known(region) && known(account) && known(name) { FINE } else { None }
}

pub(super) fn admitted(system: &System, queue: &Queue, redrive: &Redrive) -> Answer {
    let target = system.queue(redrive.target.known()?)?;
    let fix = format!(
        "RedriveAllowPolicy of {}: redrivePermission: byQueue, sourceQueueArns with {}",
        target.place.id, queue.place.id
    );
    match target.allows.known()? {
        RedriveAllow::All => FINE,
        RedriveAllow::None => {
            found(Level::Error, format!("{} denies to be a dead-letter queue (denyAll)", target.place.id), fix)
        }
        RedriveAllow::Only(queues) if queues.iter().any(|link| link.is(&queue.place.id)) => FINE,
        RedriveAllow::Only(queues) if queues.iter().any(|link| may_be(link, queue)) => None,
        RedriveAllow::Only(_) => found(
            Level::Error,
            format!("{} is not among the queues whose dead-letter queue {} may be", queue.place.id, target.place.id),
            fix,
        ),
    }
}

/// Whether an ARN may be that of a queue that is described here: it has its name, or CloudFormation makes that.
fn may_be(link: &Link, queue: &Queue) -> bool {
    let Link::Elsewhere(arn) = link else { return false };
    queue.name.known().is_none_or(|name| arn.rsplit(':').next() == Some(name))
}
