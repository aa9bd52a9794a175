//! The line to DynamoDB: while it storms, it delays, loses and cuts what goes over it, and can be away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claimant_local::Error;
use claimant_servers::relay::{Direction, Fate, Relay, Rule, Unconnected};
use fastrand::Rng;
use tokio::time::{Instant, sleep, sleep_until};

/// Of 1,000 pieces of traffic, this many are late.
const DELAYED: u32 = 60;
/// Of 1,000 pieces, this many are lost, and the connection with them; half of the answers among them after their first half.
const CUT: u32 = 40;
/// Of 1,000 answers, this many are lost without a word: the connection stays open.
const SILENT: u32 = 15;
/// The longest delay: some are longer than a client waits.
const DELAY_MAX_MS: u32 = 2_000;

/// What the line did to traffic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LineCounts {
    pub(crate) passed: u64,
    pub(crate) delayed: u64,
    /// Requests that never arrived.
    pub(crate) requests_lost: u64,
    /// Answers lost to requests that did arrive; cut connections and silent ones.
    pub(crate) answers_lost: u64,
}

/// The line, with a client's end that it listens on. Clones are the same line.
#[derive(Clone)]
pub(crate) struct Line {
    /// What clients connect to: `http://127.0.0.1:port`.
    pub(crate) url: String,
    inner: Arc<Inner>,
}

struct Inner {
    storms: AtomicBool,
    away: AtomicBool,
    random: Mutex<Rng>,
    passed: AtomicU64,
    delayed: AtomicU64,
    requests_lost: AtomicU64,
    answers_lost: AtomicU64,
}

/// A line whose client's end is open, and whose other end is not tied to a server yet.
pub(crate) struct Loose {
    pub(crate) line: Line,
    relay: Unconnected,
}

impl Line {
    /// A line that is calm at first.
    pub(crate) async fn open(random: Rng) -> Result<Loose, Error> {
        let failed = |e| Error::new("127.0.0.1 has no free port for the line to DynamoDB").caused_by(e);
        let relay = Unconnected::listen().await.map_err(failed)?;
        let url = format!("http://{}", relay.address);
        let inner = Inner {
            storms: AtomicBool::new(false),
            away: AtomicBool::new(false),
            random: Mutex::new(random),
            passed: AtomicU64::default(),
            delayed: AtomicU64::default(),
            requests_lost: AtomicU64::default(),
            answers_lost: AtomicU64::default(),
        };
        Ok(Loose { line: Self { url, inner: Arc::new(inner) }, relay })
    }

    pub(crate) fn set_storm(&self, storms: bool) {
        self.inner.storms.store(storms, Ordering::SeqCst);
    }

    /// Cuts every connection that is used, from `start` on, for `length`.
    pub(crate) async fn go_away(self, start: Instant, length: Duration) {
        sleep_until(start).await;
        self.inner.away.store(true, Ordering::SeqCst);
        sleep(length).await;
        self.inner.away.store(false, Ordering::SeqCst);
    }

    pub(crate) fn counts(&self) -> LineCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LineCounts {
            passed: read(&self.inner.passed),
            delayed: read(&self.inner.delayed),
            requests_lost: read(&self.inner.requests_lost),
            answers_lost: read(&self.inner.answers_lost),
        }
    }
}

impl Inner {
    fn weather(&self, direction: Direction) -> Fate {
        if self.away.load(Ordering::SeqCst) {
            return Fate::Cut;
        }
        if !self.storms.load(Ordering::SeqCst) {
            return Fate::Pass;
        }
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = if direction == Direction::Answer { SILENT } else { 0 };
        match random.u32(..1_000) {
            n if n < CUT / 2 && direction == Direction::Answer => Fate::Half,
            n if n < CUT => Fate::Cut,
            n if n < CUT + silent => Fate::Silence,
            n if n < CUT + silent + DELAYED => {
                Fate::Late(Duration::from_millis(u64::from(1 + random.u32(..DELAY_MAX_MS))))
            }
            _ => Fate::Pass,
        }
    }
}

impl Rule for Inner {
    async fn fate(&self, direction: Direction) -> Fate {
        let fate = self.weather(direction);
        let lost = match direction {
            Direction::Request => &self.requests_lost,
            Direction::Answer => &self.answers_lost,
        };
        match fate {
            Fate::Pass | Fate::CutAfter => _ = self.passed.fetch_add(1, Ordering::Relaxed),
            Fate::Late(_) => {
                self.delayed.fetch_add(1, Ordering::Relaxed);
                self.passed.fetch_add(1, Ordering::Relaxed);
            }
            Fate::Cut | Fate::Half | Fate::Silence | Fate::Deserted => _ = lost.fetch_add(1, Ordering::Relaxed),
        }
        fate
    }
}

impl Loose {
    /// Ties the other end to the server at this address (`127.0.0.1:port`), for as long as the value lives.
    pub(crate) fn tie(self, server: String) -> (Line, Relay) {
        let Self { line, relay } = self;
        let relay = relay.connect(server, Arc::clone(&line.inner));
        (line, relay)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn a_calm_line_passes_on_and_a_storm_has_every_weather() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap().to_string();
        let (line, _relay) = Line::open(Rng::with_seed(1)).await.unwrap().tie(address);
        let mut client = TcpStream::connect(line.url.trim_start_matches("http://")).await.unwrap();
        client.write_all(b"ping").await.unwrap();
        let (mut served, _) = server.accept().await.unwrap();
        let mut bytes = [0; 4];
        served.read_exact(&mut bytes).await.unwrap();
        served.write_all(b"pong").await.unwrap();
        client.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"pong");
        assert_eq!(line.counts(), LineCounts { passed: 2, ..LineCounts::default() });

        line.set_storm(true);
        let seen: Vec<_> = (0..2_000).map(|_| line.inner.weather(Direction::Answer)).collect();
        let has = |wanted: fn(&Fate) -> bool| seen.iter().any(wanted);
        assert!(has(|w| *w == Fate::Cut) && has(|w| *w == Fate::Silence) && has(|w| *w == Fate::Pass));
        assert!(has(|w| matches!(w, Fate::Late(_))));
        assert!((0..2_000).all(|_| line.inner.weather(Direction::Request) != Fate::Silence));

        line.set_storm(false);
        assert_eq!(line.inner.weather(Direction::Request), Fate::Pass);
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_that_is_away_cuts_everything_and_comes_back() {
        let Loose { line, .. } = Line::open(Rng::with_seed(1)).await.unwrap();
        let outage =
            tokio::spawn(line.clone().go_away(Instant::now() + Duration::from_secs(1), Duration::from_secs(20)));
        assert_eq!(line.inner.weather(Direction::Request), Fate::Pass);
        sleep(Duration::from_secs(2)).await;
        assert!((0..200).all(|_| line.inner.weather(Direction::Request) == Fate::Cut));
        outage.await.unwrap();
        assert_eq!(line.inner.weather(Direction::Answer), Fate::Pass);
    }
}
