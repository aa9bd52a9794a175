//! Processes of functions killed, and stopped for a while, at random moments.

use std::collections::BTreeMap;
use std::time::Duration;

use claimant_local::lambda::Function;
use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// Between two strikes, at least and at most.
const PAUSE_MS: (u32, u32) = (40, 300);
/// Of 100 strikes, this many kill; the others stop.
const KILLS: u32 = 60;
/// The longest stop: some end only with the invocation, when Lambda kills what has not answered.
const STOP_MAX_MS: u32 = 6_000;

/// What was done to processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Strikes {
    /// By function.
    pub(crate) kills: BTreeMap<&'static str, u64>,
    /// By function.
    pub(crate) stops: BTreeMap<&'static str, u64>,
}

/// Strikes until `end`; then every stopped process goes on.
pub(crate) async fn strike(functions: Vec<(&'static str, Function)>, mut random: Rng, end: Instant) -> Strikes {
    let mut strikes = Strikes::default();
    let mut stopped = JoinSet::new();
    loop {
        let pause = PAUSE_MS.0 + random.u32(..PAUSE_MS.1 - PAUSE_MS.0);
        sleep(Duration::from_millis(u64::from(pause))).await;
        if Instant::now() >= end {
            break;
        }
        let (name, function) = &functions[random.usize(..functions.len())];
        let (kills, stop_ms) = (random.u32(..100) < KILLS, 1 + random.u32(..STOP_MAX_MS));
        let pids = function.pids();
        if pids.is_empty() {
            continue;
        }
        let pid = pids[random.usize(..pids.len())];
        if kills && send(pid, Signal::KILL) {
            *strikes.kills.entry(name).or_default() += 1;
        } else if !kills && send(pid, Signal::STOP) {
            *strikes.stops.entry(name).or_default() += 1;
            let until = end.min(Instant::now() + Duration::from_millis(u64::from(stop_ms)));
            stopped.spawn(async move {
                sleep_until(until).await;
                // It may have been killed meanwhile.
                send(pid, Signal::CONT);
            });
        }
    }
    while stopped.join_next().await.is_some() {}
    strikes
}

/// Whether the process was there and ours to signal: its id may have been given to another one.
fn send(pid: u32, signal: Signal) -> bool {
    let ours = parent(pid) == Some(std::process::id());
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    ours && raw.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// The parent of a living process.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; behind the last one come the state and the parent.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    fields.next()?.parse().ok().filter(|_| state != "Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_children_are_signalled() {
        assert!(!send(1, Signal::CONT) && !send(std::process::id(), Signal::CONT));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(send(child.id(), Signal::STOP) && send(child.id(), Signal::KILL));
        assert!(!child.wait().unwrap().success());
        assert!(!send(child.id(), Signal::CONT));
    }
}
