//! All ways in which two processes pause an intake and a third one resumes it, with deaths, freezes, and requests that are lost, late or
//! without an answer at every step: it is never off without a return to come.

use std::collections::{BTreeSet, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use claimant_core::intake::{Intake, is_early_enough, pause, resume};
use claimant_core::limits::INTAKE_LATE_MS;
use claimant_core::{BoxFuture, Error, Timestamp};

/// A step of time: a third of how late a request can be.
const STEP_MS: u64 = INTAKE_LATE_MS / 3;

/// So many steps of time.
const STEPS: u64 = 10;

/// After so many steps a paused intake is to come back: one is left for making the requests.
const PAUSE_STEPS: u64 = 5;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Asked {
    IsOn,
    HasReturn,
    Plan(u64),
    Off { at: u64, before: u64 },
    On,
}

/// What a process waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Waits {
    asked: Option<Asked>,
    answer: Option<Result<bool, ()>>,
}

/// Everything that decides what can happen next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct State {
    now: u64,
    off: bool,
    returns: BTreeSet<u64>,
    /// Who has begun, and which step they are at.
    steps: [u32; 3],
    waits: [Waits; 3],
    over: [bool; 3],
    /// Requests that are still under way, of processes that are dead.
    late: Vec<Asked>,
}

type World = Arc<Mutex<State>>;

fn at(step: u64) -> Timestamp {
    Timestamp::from_millis(step * STEP_MS)
}

fn step_of(at: Timestamp) -> u64 {
    at.as_millis() / STEP_MS
}

impl State {
    /// Carries a request out; `None` where it came too late.
    fn carry_out(&mut self, asked: &Asked) -> Option<bool> {
        match asked {
            Asked::IsOn => return Some(!self.off),
            Asked::HasReturn => return Some(!self.returns.is_empty()),
            // One in the past has come and gone, for all that is known.
            Asked::Plan(back) if *back <= self.now => return None,
            Asked::Plan(back) => self.returns.insert(*back),
            Asked::Off { at, .. } if self.now > at + 3 => return None,
            Asked::Off { .. } => std::mem::replace(&mut self.off, true),
            Asked::On => std::mem::replace(&mut self.off, false),
        };
        Some(true)
    }

    fn tick(&mut self) {
        self.now += 1;
        let due = self.returns.remove(&self.now);
        self.off &= !due;
    }
}

struct Process {
    world: World,
    number: usize,
    /// Whether it looks at the time before it switches off.
    looks: bool,
}

impl Process {
    fn ask(&self, asked: Asked) -> BoxFuture<'_, Result<bool, Error>> {
        let mut asked = Some(asked);
        Box::pin(std::future::poll_fn(move |_| {
            let mut state = self.world.lock().unwrap();
            if let Some(asked) = asked.take() {
                state.steps[self.number] += 1;
                state.waits[self.number].asked = Some(asked);
            }
            match state.waits[self.number].answer.take() {
                Some(answer) => Poll::Ready(answer.map_err(|()| Error::new("no answer"))),
                None => Poll::Pending,
            }
        }))
    }

    fn tell(&self, asked: Asked) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.ask(asked).await.map(drop) })
    }
}

impl Intake for Process {
    fn is_on(&self) -> BoxFuture<'_, Result<bool, Error>> {
        self.ask(Asked::IsOn)
    }

    fn plan_return<'a>(&'a self, back: Timestamp, _why: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.tell(Asked::Plan(step_of(back)))
    }

    fn has_return(&self) -> BoxFuture<'_, Result<bool, Error>> {
        self.ask(Asked::HasReturn)
    }

    fn switch_off(&self, before: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        let now = self.world.lock().unwrap().now;
        if self.looks && !is_early_enough(at(now), before) {
            return Box::pin(async { Err(Error::new("too late")) });
        }
        self.tell(Asked::Off { at: now, before: step_of(before) })
    }

    fn switch_on(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.tell(Asked::On)
    }
}

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Choice {
    Tick,
    /// The process runs until it waits again.
    Run(usize),
    /// Its request is carried out and answered.
    Answer(usize),
    /// Its request is carried out, and the answer is lost.
    LoseAnswer(usize),
    Lose(usize),
    /// It dies, and its request is under way.
    Die(usize),
    /// The request of a dead process arrives.
    Arrive(usize),
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Walk {
    world: World,
    works: Vec<Option<Work>>,
}

impl Walk {
    fn new(off: bool, looks: bool) -> Self {
        let world = World::new(Mutex::new(State { off, ..State::default() }));
        let work = |number: usize| -> Work {
            let (process, world) = (Process { world: world.clone(), number, looks }, world.clone());
            Box::pin(async move {
                let now = world.lock().unwrap().now;
                match number {
                    2 => drop(resume(&process).await),
                    _ => drop(pause(&process, at(now + PAUSE_STEPS), "a breaker").await),
                }
            })
        };
        Self { works: (0..3).map(|number| Some(work(number))).collect(), world }
    }

    fn choices(state: &State) -> Vec<Choice> {
        let mut choices = Vec::new();
        if state.now < STEPS {
            choices.push(Choice::Tick);
        }
        for number in (0..3).filter(|number| !state.over[*number]) {
            let waits = &state.waits[number];
            match (&waits.asked, waits.answer) {
                (Some(_), _) => choices.extend([
                    Choice::Answer(number),
                    Choice::LoseAnswer(number),
                    Choice::Lose(number),
                    Choice::Die(number),
                ]),
                _ => choices.push(Choice::Run(number)),
            }
        }
        choices.extend((0..state.late.len()).map(Choice::Arrive));
        choices
    }

    fn take(&mut self, choice: Choice) {
        let mut state = self.world.lock().unwrap();
        match choice {
            Choice::Tick => state.tick(),
            Choice::Run(number) => {
                drop(state);
                let work = self.works[number].as_mut().unwrap();
                let ready = work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
                self.world.lock().unwrap().over[number] = ready;
            }
            Choice::Answer(number) | Choice::LoseAnswer(number) | Choice::Lose(number) => {
                let asked = state.waits[number].asked.take().unwrap();
                let done = if matches!(choice, Choice::Lose(_)) { None } else { state.carry_out(&asked) };
                let answer = done.filter(|_| matches!(choice, Choice::Answer(_)));
                state.waits[number].answer = Some(answer.ok_or(()));
            }
            Choice::Die(number) => {
                let asked = std::mem::take(&mut state.waits[number]).asked;
                state.late.extend(asked.filter(|asked| !matches!(asked, Asked::IsOn | Asked::HasReturn)));
                state.over[number] = true;
            }
            Choice::Arrive(place) => {
                let asked = state.late.remove(place);
                let _ = state.carry_out(&asked);
            }
        }
    }

    fn replay(off: bool, looks: bool, taken: &[Choice]) -> (Self, State) {
        let mut walk = Self::new(off, looks);
        taken.iter().for_each(|choice| walk.take(*choice));
        let state = walk.world.lock().unwrap().clone();
        (walk, state)
    }
}

/// Walks through all states; returns how many there are, or how to come to one that is wrong.
fn walk(off: bool, looks: bool, is_right: impl Fn(&State) -> bool) -> Result<usize, Vec<Choice>> {
    let (mut seen, mut next) = (HashSet::new(), vec![Vec::new()]);
    while let Some(taken) = next.pop() {
        let (_, state) = Walk::replay(off, looks, &taken);
        if !is_right(&state) {
            return Err(taken);
        }
        let choices = Walk::choices(&state);
        if seen.insert(state) {
            next.extend(choices.into_iter().map(|choice| taken.iter().copied().chain([choice]).collect()));
        }
    }
    Ok(seen.len())
}

fn has_a_way_back(state: &State) -> bool {
    !state.off || !state.returns.is_empty()
}

#[test]
fn it_is_never_off_without_a_return_to_come() {
    let states = walk(false, true, has_a_way_back).unwrap();
    println!("{states} states");
    assert!(states > 10_000, "{states}");
}

#[test]
fn a_process_that_does_not_look_at_the_time_leaves_it_off_for_ever() {
    assert!(walk(false, false, has_a_way_back).is_err());
}

#[test]
fn what_a_person_has_switched_off_stays_off() {
    let states = walk(true, true, |state| state.off && state.returns.is_empty()).unwrap();
    assert!(states > 100, "{states}");
}

#[test]
fn a_pause_is_long_enough_for_its_requests() {
    let left = Duration::from_millis(claimant_core::limits::BREAKER_PAUSE_MIN_MS - INTAKE_LATE_MS);
    assert!(left > Duration::from_millis(claimant_core::limits::INTAKE_CALLS_MAX_MS));
}
