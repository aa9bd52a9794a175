//! Payloads that messages only point to. What is kept elsewhere is the pointer's name here: only the way to it can fail.

use std::future::pending;
use std::time::Duration;

use claimant_core::{BoxFuture, FetchError, Message, PayloadSource, Pointer, Rejection, Room};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::history::Event;
use crate::mutant::Mutant;
use crate::process;
use crate::scenario::{Fate, Fault};
use crate::world::World;

/// How long a fetch takes.
const WAY: Duration = Duration::from_millis(20);

/// More than all payloads of a batch.
const ROOM_BYTES: usize = 1 << 20;

/// The field of a body that points to its payload.
const POINTER: &str = "pointer";

/// The body that points to this payload.
#[must_use]
pub fn pointer_to(payload: &str) -> String {
    json!({ POINTER: payload }).to_string()
}

/// Where payloads are.
pub struct Payloads {
    /// The world that they are in.
    pub world: World,
}

impl Payloads {
    fn fate(&self) -> Option<Fate> {
        let number = self.world.state().next_fetch();
        let faults = self.world.scenario.faults.iter().filter(|_| self.world.state().faults);
        let fate = faults.filter_map(|fault| match *fault {
            Fault::Fetch { nth, fate } if nth == number => Some(fate),
            _ => None,
        });
        let fate = fate.take(1).last();
        self.world.note(Event::FetchAsked { invocation: process::current(), fate });
        fate
    }
}

impl PayloadSource for Payloads {
    fn pointer(&self, message: &Message) -> Result<Option<Pointer>, Rejection> {
        let body: Option<Value> = serde_json::from_slice(message.content()).ok();
        let name = body.as_ref().and_then(|body| body[POINTER].as_str()).map(str::to_owned);
        Ok(name.map(|name| Pointer { container: "sim".to_owned(), name }))
    }

    fn fetch<'a>(
        &'a self,
        pointer: &'a Pointer,
        room: &'a Room,
        _: Duration,
    ) -> BoxFuture<'a, Result<Vec<u8>, FetchError>> {
        Box::pin(async move {
            let fate = self.fate();
            sleep(WAY).await;
            match fate {
                None | Some(Fate::PartlyThrottled(_)) => {}
                Some(Fate::Slow(ms) | Fate::Late(ms)) => sleep(Duration::from_millis(ms)).await,
                Some(Fate::Silence | Fate::AnswerSilence) => pending().await,
                Some(Fate::Lost | Fate::AnswerLost | Fate::Throttled | Fate::Error) => {
                    return Err(match self.world.mutant {
                        Some(Mutant::UnfetchedRejected) => FetchError::Rejected(Rejection::new("simulated")),
                        _ => FetchError::Unavailable("simulated".to_owned()),
                    });
                }
            }
            room.take(pointer.name.len()).await?;
            Ok(pointer.name.clone().into_bytes())
        })
    }

    fn room_bytes(&self) -> usize {
        ROOM_BYTES
    }

    fn concurrency(&self) -> usize {
        4
    }
}
