//! Random work on a queue against a naive model of it: who is hidden until when, and who comes first in a group.

use std::collections::BTreeMap;

use super::super::super::settings::QueueSettings;
use super::super::*;
use super::play::{FIFO, STANDARD, grouped};
use crate::workload::Random;

/// The messages not deleted, in order of sending: group, hidden until, newest handle.
type Model = BTreeMap<u64, (u64, u64, String)>;

const STEPS: u64 = 4_000;
const GROUPS: u64 = 3;

#[test]
fn no_receiver_gets_a_hidden_message_or_one_behind_it_in_its_group() {
    for fifo in [false, true] {
        let settings = if fifo { FIFO } else { STANDARD };
        let retention = Duration::from_secs(1_209_600);
        let mut queue = Queue::new("queue".to_owned(), Attributes::new(QueueSettings { retention, ..settings }), 0);
        let (mut model, mut dice, mut now_ms, mut deleted) = (Model::new(), Random::new(7), 0, 0);
        for step in 0..STEPS {
            match dice.bits() % 6 {
                0 | 1 => {
                    let (group, id) = (dice.bits() % GROUPS, step.to_string());
                    let message = grouped(&id, &group.to_string(), if fifo { &id } else { "" });
                    queue.send(now_ms, id, message).unwrap();
                    model.insert(step, (group, 0, String::new()));
                }
                2 => receive(&mut queue, &mut model, now_ms, fifo, 1 + (dice.bits() % 4) as usize),
                3 => now_ms += dice.bits() % 4_000,
                choice => {
                    let in_flight: Vec<u64> =
                        model.iter().filter(|(_, entry)| entry.1 > now_ms).map(|(id, _)| *id).collect();
                    let Some(id) = in_flight.get((dice.bits() % in_flight.len().max(1) as u64) as usize) else {
                        continue;
                    };
                    if choice == 4 {
                        assert_eq!(queue.delete(now_ms, &model[id].2), Ok(Deletion::Deleted), "step {step}");
                        model.remove(id);
                        deleted += 1;
                    } else {
                        let seconds = dice.bits() % 3;
                        queue.change_visibility(now_ms, &model[id].2, Duration::from_secs(seconds)).unwrap();
                        model.get_mut(id).unwrap().1 = now_ms + seconds * 1_000;
                    }
                }
            }
            let in_flight = model.values().filter(|entry| entry.1 > now_ms).count();
            let expected = Depth { visible: model.len() - in_flight, in_flight, delayed: 0 };
            assert_eq!(queue.depth(now_ms), expected, "fifo: {fifo}, step {step}");
        }
        assert!(deleted > STEPS / 20, "the dice hardly deleted anything: {deleted}");
    }
}

fn receive(queue: &mut Queue, model: &mut Model, now_ms: u64, fifo: bool, max: usize) {
    // Of a FIFO group, what stands before its first hidden message; fixed before the receive, which hides what it gives.
    let first_hidden = |group| model.iter().find(|(_, entry)| entry.0 == group && entry.1 > now_ms).map(|(id, _)| *id);
    let ends: Vec<Option<u64>> = (0..GROUPS).map(|group| first_hidden(group).filter(|_| fifo)).collect();
    let available = |model: &Model| -> Vec<u64> {
        let visible = model.iter().filter(|(_, entry)| entry.1 <= now_ms);
        let free = visible.filter(|(id, entry)| ends[entry.0 as usize].is_none_or(|end| **id < end));
        free.map(|(id, _)| *id).collect()
    };
    let expected = available(model).len().min(max);
    let ask = Ask { max, visibility: Some(Duration::from_secs(3)), max_receive_count: None };
    let received = queue.receive(now_ms, ask).unwrap().received;
    assert_eq!(received.len(), expected);
    for message in received {
        let id = message.message_id.parse().unwrap();
        let group = model[&id].0;
        assert!(available(model).contains(&id), "hidden, or behind a hidden one");
        let first = available(model).into_iter().find(|id| model[id].0 == group);
        assert!(!fifo || first == Some(id), "out of order");
        *model.get_mut(&id).unwrap() = (group, now_ms + 3_000, message.receipt_handle);
    }
}
