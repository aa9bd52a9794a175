//! What is called, who sends, the processes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claimant_core::{Breaker, Consumer, Context, Engine, Error, HandlerError, InvocationTime, Limit, Message};
use futures_util::future::join_all;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, sleep_until};

use crate::clock::VirtualClock;
use crate::mapping::{Asked, Mapping};
use crate::queue::{Limits, Queue};
use crate::seen::{Sample, Seen};
use crate::setting::{Means, Setting};
use crate::store::Table;

/// What is called.
const DOWNSTREAM: &str = "mail";

/// How long a poller waits for a batch to be full, and how often it looks.
const WINDOW: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(100);

#[derive(Clone)]
struct World {
    start: Instant,
    setting: Arc<Setting>,
    means: Means,
    mapping: Arc<Mapping>,
    queue: Arc<Mutex<Queue>>,
    seen: Arc<Mutex<Seen>>,
    table: Table,
}

/// Runs one outage, on virtual time, to its end.
///
/// # Errors
/// When the runtime or the consumer cannot be made.
pub fn run(setting: &Setting, means: Means) -> Result<Seen, Box<dyn std::error::Error + Send + Sync>> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let start = Instant::now();
        let limits = Limits {
            batch: Setting::BATCH,
            visibility: Setting::VISIBILITY,
            receives: Setting::RECEIVES_MAX,
            in_flight: setting.in_flight_max,
        };
        let world = World {
            start,
            setting: Arc::new(setting.clone()),
            means,
            mapping: Arc::new(Mapping::new(VirtualClock::new(start))),
            queue: Arc::new(Mutex::new(Queue::new(limits))),
            seen: Arc::default(),
            table: Table::default(),
        };
        let engines = (0..setting.invocations).map(|_| world.engine()).collect::<Result<Vec<_>, _>>()?;
        let pollers = join_all(engines.into_iter().map(|engine| world.clone().poll(engine)));
        tokio::join!(world.send(), world.watch(), pollers);
        let mut seen = std::mem::take(&mut *world.seen());
        let queue = world.queue();
        (seen.sent, seen.dead, seen.receives) = (queue.sent(), queue.dead_numbers(), queue.receives);
        (seen.pauses, seen.asked) = (world.mapping.pauses(), world.table.asked());
        (seen.back, seen.empty) = (setting.away.end, world.start.elapsed());
        Ok(seen)
    })
}

impl World {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    fn is_over(&self) -> bool {
        self.start.elapsed() > self.setting.sent_for && self.queue().is_empty()
    }

    fn engine(&self) -> Result<Engine, Error> {
        let called = self.clone();
        let handler = move |n: u32, _: Context| called.clone().call(n);
        let consumer = Consumer::new("confirmation", self.table.clone(), handler).key_of(|n: &u32| n.to_string());
        let consumer = match self.means {
            Means::Backoff => consumer,
            Means::Hold | Means::Pause => consumer.breaker(Breaker::new(DOWNSTREAM)),
            Means::Rate => {
                // A slot for each process.
                let limit = Limit::new(DOWNSTREAM).per_second(self.setting.limit_per_s);
                consumer.breaker(Breaker::new(DOWNSTREAM)).limit(limit.slots(self.setting.invocations as u32))
            }
        };
        let clock = Arc::new(VirtualClock::new(self.start));
        Ok(Engine::with_defaults(consumer)?.clock(clock).receives_max(Setting::RECEIVES_MAX))
    }

    /// Calls the downstream for a message.
    async fn call(self, n: u32) -> Result<(), HandlerError> {
        sleep(Setting::CALL).await;
        let (second, n) = (self.start.elapsed().as_secs() as usize, n as usize);
        let is_away = self.setting.away.contains(&self.start.elapsed());
        let mut seen = self.seen();
        if seen.samples.len() <= second {
            seen.samples.resize(second + 1, Sample::default());
        }
        seen.samples[second].calls += 1;
        if is_away {
            seen.calls_away += 1;
            return Err(HandlerError::retry("the mail server is away").downstream(DOWNSTREAM));
        }
        if seen.done.len() <= n {
            seen.done.resize(n + 1, 0);
        }
        seen.done[n] = seen.done[n].saturating_add(1);
        Ok(())
    }

    /// Sends messages, some each hundredth of a second.
    async fn send(&self) {
        let mut sent = 0;
        while self.start.elapsed() < self.setting.sent_for {
            sleep(Duration::from_millis(10)).await;
            let due = self.now() * u64::from(self.setting.sent_per_s) / 1_000;
            let mut queue = self.queue();
            (sent..due).for_each(|_| queue.send());
            sent = due;
        }
    }

    /// Measures, at the end of each second.
    async fn watch(&self) {
        for second in 0.. {
            if self.is_over() {
                return;
            }
            sleep_until(self.start + Duration::from_secs(second as u64 + 1)).await;
            let (mut queue, mut seen) = (self.queue(), self.seen());
            queue.show(self.now());
            if seen.samples.len() <= second {
                seen.samples.resize(second + 1, Sample::default());
            }
            let sample = &mut seen.samples[second];
            (sample.in_flight, sample.visible, sample.dead) = (queue.in_flight, queue.visible(), queue.dead);
        }
    }

    /// Receives batches and has them worked on, one after the other, in one process.
    async fn poll(self, engine: Engine) {
        let mut waited = Duration::ZERO;
        while !self.is_over() {
            let received = if self.mapping.polls() { self.receive(waited >= WINDOW) } else { Vec::new() };
            if received.is_empty() {
                sleep(LOOK).await;
                waited += LOOK;
                continue;
            }
            waited = Duration::ZERO;
            self.invoke(&engine, &received).await;
        }
    }

    /// Receives a batch that is full, or whatever is there.
    fn receive(&self, whatever: bool) -> Vec<(u32, u32)> {
        let mut queue = self.queue();
        queue.show(self.now());
        if whatever || queue.visible() >= Setting::BATCH { queue.receive(self.now()) } else { Vec::new() }
    }

    async fn invoke(&self, engine: &Engine, received: &[(u32, u32)]) {
        let message = |(n, receives): &(u32, u32)| {
            let message = Message::new(format!("m{n}"), n.to_string()).expect("a number is a message id");
            message.with_receive_count(*receives)
        };
        let batch: Vec<_> = received.iter().map(message).collect();
        let time = InvocationTime::new(engine.now(), engine.now().plus(Setting::TIMEOUT), Duration::from_millis(500));
        let asked = Asked { intake: matches!(self.means, Means::Pause | Means::Rate).then_some(&*self.mapping) };
        let began = self.start.elapsed();
        let report = engine.process(&batch, time, &asked).await;
        if self.setting.away.contains(&began) {
            self.seen().invoked_away += self.start.elapsed() - began;
        }
        let (mut queue, now) = (self.queue(), self.now());
        for ((n, _), entry) in received.iter().zip(report.entries()) {
            if entry.outcome.is_success() {
                queue.delete(*n);
            } else if let Some(after) = entry.visible_after {
                queue.hide(*n, now + after.as_millis() as u64);
            }
        }
    }
}
