//! Lambda's API and EventBridge Scheduler, as far as an open breaker needs them: one event source mapping, and what switches it on.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::history::Event;
use crate::mutant::Mutant;
use crate::process;
use crate::scenario::{Fate, Fault};
use crate::world::{BEGIN_MS, World};

/// The mapping's id.
const ID: &str = "00000000-1111-2222-3333-444444444444";

/// How long after the time that it bears a request is accepted, and how long before.
const VALID_MS: u64 = 300_000;

/// A schedule runs within a minute of its time.
const LATE_MAX_MS: u64 = 60_000;

/// How long a request takes, one way.
const WAY: Duration = Duration::from_millis(10);

/// The mapping, and the schedules that switch it on.
#[derive(Debug, Default)]
pub struct Intake {
    off: bool,
    /// When each runs, since the beginning, by its name.
    schedules: BTreeMap<String, u64>,
    requests: u32,
}

impl World {
    /// Whether the mapping polls, once the schedules that are due have run.
    #[must_use]
    pub fn lets_in(&self) -> bool {
        let mut state = self.state();
        let now = state.now_ms();
        let due = state.intake.schedules.values().any(|at| *at <= now);
        if due {
            state.intake.schedules.retain(|_, at| *at > now);
            state.intake.off = false;
            note(&mut state, "returned");
        }
        !state.intake.off
    }
}

fn note(state: &mut crate::world::State, what: &'static str) {
    let (off, returns) = (state.intake.off, state.intake.schedules.len());
    state.note(Event::Intake { what, off, returns });
}

/// What the answer to a request is, once it has arrived.
type Answer = (u16, &'static str, Value);

/// Asks for this request; the answer comes by itself, or does not. `None` where it is nothing that an intake is asked.
pub fn ask(world: &World, request: &HttpRequest) -> Option<oneshot::Receiver<Result<Answer, &'static str>>> {
    let uri = request.uri();
    let path = &uri[uri.find("/2015-03-31/").or_else(|| uri.find("/schedules"))?..];
    let of_messages = path.starts_with("/schedules/") && !path.starts_with("/schedules/claimant-resume-");
    if !world.scenario.function.pauses || of_messages {
        return None;
    }
    let body = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default();
    let asked = Asked { method: request.method().to_owned(), path: path.to_owned(), body, signed_s: signed(request) };
    let invocation = process::current();
    let number = {
        let mut state = world.state();
        state.intake.requests += 1;
        state.intake.requests - 1
    };
    let fate = world.fault_of(|fault| match fault {
        Fault::Intake { nth, fate } if *nth == number => Some(*fate),
        _ => None,
    });
    world.note(Event::IntakeAsked { invocation, number, what: asked.what(), fate });
    if let Some(process) = invocation.and_then(|invocation| world.process_of(invocation)) {
        if world.fault(|fault| matches!(fault, Fault::KillAtIntake { nth } if *nth == number)) {
            process.kill("killed");
        }
        let for_ms = world.fault_of(|fault| match fault {
            Fault::FreezeAtIntake { nth, for_ms } if *nth == number => Some(*for_ms),
            _ => None,
        });
        for_ms.into_iter().for_each(|ms| process.freeze(Some(ms)));
    }
    let (sender, answer) = oneshot::channel();
    tokio::spawn(travel(world.clone(), asked, fate, sender));
    Some(answer)
}

/// The time that a request bears, in seconds since 1970; its date is that of the beginning, or one beside it.
fn signed(request: &HttpRequest) -> Option<u64> {
    let date = request.headers().get("x-amz-date")?;
    let number = |from: usize, to: usize| date.get(from..to)?.parse::<u64>().ok();
    // Of a month that has days before and after.
    let (begin_day, day) = (BEGIN_MS / 86_400_000, number(6, 8)?);
    let first_day = begin_day + 1 - 15;
    Some((first_day + day - 1) * 86_400 + number(9, 11)? * 3_600 + number(11, 13)? * 60 + number(13, 15)?)
}

/// A request on its way.
struct Asked {
    method: String,
    path: String,
    body: Value,
    signed_s: Option<u64>,
}

impl Asked {
    fn what(&self) -> &'static str {
        match (self.method.as_str(), self.path.starts_with("/schedules"), self.body["Enabled"].as_bool()) {
            ("GET", false, _) => "look",
            ("GET", true, _) => "list returns",
            ("POST", _, _) => "plan return",
            (_, _, Some(true)) => "switch on",
            _ => "switch off",
        }
    }
}

async fn travel(world: World, asked: Asked, fate: Option<Fate>, sender: oneshot::Sender<Result<Answer, &'static str>>) {
    sleep(WAY).await;
    let answer = match fate {
        Some(Fate::Lost) => Err("simulated: the request was lost"),
        Some(Fate::Silence) => return std::future::pending().await,
        // Of a role that lacks a permission.
        Some(Fate::Throttled) => Ok((403, "AccessDeniedException", json!({}))),
        Some(Fate::AnswerLost) => {
            let _ = serve(&world, &asked);
            Err("simulated: the answer was lost")
        }
        Some(Fate::Error) => {
            let _ = serve(&world, &asked);
            Ok((500, "InternalFailure", json!({})))
        }
        Some(Fate::Late(ms)) => {
            sleep(Duration::from_millis(ms)).await;
            Ok(serve(&world, &asked))
        }
        _ => Ok(serve(&world, &asked)),
    };
    sleep(WAY).await;
    // OK because its sender may have given up.
    let _ = sender.send(answer);
}

fn serve(world: &World, asked: &Asked) -> Answer {
    let let_in = world.lets_in();
    let mut state = world.state();
    let now = state.now_ms();
    let signed = asked.signed_s.map_or(0, |s| s * 1_000);
    if (BEGIN_MS + now).abs_diff(signed) > VALID_MS {
        return (403, "InvalidSignatureException", json!({}));
    }
    match asked.what() {
        "look" => {
            let reports = world.scenario.function.mapping_reports.unwrap_or(true);
            let types = if reports { json!(["ReportBatchItemFailures"]) } else { json!([]) };
            let shown = if let_in { "Enabled" } else { "Disabled" };
            let mapping = json!({ "UUID": ID, "State": shown, "FunctionResponseTypes": types });
            (200, "", json!({ "EventSourceMappings": [mapping] }))
        }
        "list returns" => {
            let names: Vec<_> = state.intake.schedules.keys().map(|name| json!({ "Name": name })).collect();
            (200, "", json!({ "Schedules": names }))
        }
        "plan return" => {
            let name = asked.path.trim_start_matches("/schedules/").to_owned();
            let at_s: u64 = name.rsplit('-').next().and_then(|at| at.parse().ok()).unwrap_or_default();
            if world.mutant == Some(Mutant::ReturnsUnconfirmed) {
                return (200, "", json!({ "ScheduleArn": "none" }));
            }
            // What is planned for the past comes at once.
            // OK because the remainder is less than a minute.
            let late = world.random(21, at_s as u32) % LATE_MAX_MS;
            let at = (at_s * 1_000).saturating_sub(BEGIN_MS).max(now) + late;
            state.intake.schedules.insert(name, at);
            note(&mut state, "return planned");
            (200, "", json!({ "ScheduleArn": "arn" }))
        }
        what => {
            state.intake.off = what == "switch off";
            note(&mut state, if what == "switch off" { "switched off" } else { "switched on" });
            (202, "", json!({ "UUID": ID }))
        }
    }
}
