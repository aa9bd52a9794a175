//! The line to DynamoDB: while it storms, it delays, loses and cuts what goes over it, and can be away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claimant_local::Error;
use claimant_local::workload::Random;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, sleep_until};

/// Of 1,000 pieces of traffic, this many are late.
const DELAYED: u32 = 60;
/// Of 1,000 pieces, this many are lost, and the connection with them.
const CUT: u32 = 40;
/// Of 1,000 answers, this many are lost without a word: the connection stays open.
const SILENT: u32 = 15;
/// The longest delay: some are longer than a client waits.
const DELAY_MAX_MS: u32 = 2_000;
/// How much is passed on at once: more than most requests.
const PIECE_MAX_BYTES: usize = 65_536;

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
    random: Mutex<Random>,
    passed: AtomicU64,
    delayed: AtomicU64,
    requests_lost: AtomicU64,
    answers_lost: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    Fair,
    Late(Duration),
    Cut,
    Silence,
}

/// A line whose client's end is open, and whose other end is not tied to a server yet.
pub(crate) struct Loose {
    pub(crate) line: Line,
    listener: TcpListener,
}

impl Line {
    /// A line that is calm at first.
    pub(crate) async fn open(random: Random) -> Result<Loose, Error> {
        let failed = |e| Error::new("127.0.0.1 has no free port for the line to DynamoDB").caused_by(e);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let url = format!("http://{}", listener.local_addr().map_err(failed)?);
        let inner = Inner {
            storms: AtomicBool::new(false),
            away: AtomicBool::new(false),
            random: Mutex::new(random),
            passed: AtomicU64::default(),
            delayed: AtomicU64::default(),
            requests_lost: AtomicU64::default(),
            answers_lost: AtomicU64::default(),
        };
        Ok(Loose { line: Self { url, inner: Arc::new(inner) }, listener })
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

    fn weather(&self, direction: Direction) -> Weather {
        if self.inner.away.load(Ordering::SeqCst) {
            return Weather::Cut;
        }
        if !self.inner.storms.load(Ordering::SeqCst) {
            return Weather::Fair;
        }
        let mut random = self.inner.random.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = if direction == Direction::Answer { SILENT } else { 0 };
        match random.below(1_000) {
            n if n < CUT => Weather::Cut,
            n if n < CUT + silent => Weather::Silence,
            n if n < CUT + silent + DELAYED => {
                Weather::Late(Duration::from_millis(u64::from(1 + random.below(DELAY_MAX_MS))))
            }
            _ => Weather::Fair,
        }
    }

    /// Until either side, or the storm, ends it; both ends are closed then.
    async fn pass(self, client: TcpStream, server: TcpStream) {
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::select! {
            () = self.copy(from_client, to_server, Direction::Request) => {}
            () = self.copy(from_server, to_client, Direction::Answer) => {}
        }
    }

    async fn copy(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, direction: Direction) {
        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        let lost = match direction {
            Direction::Request => &self.inner.requests_lost,
            Direction::Answer => &self.inner.answers_lost,
        };
        let mut piece = vec![0; PIECE_MAX_BYTES];
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            match self.weather(direction) {
                Weather::Fair => {}
                Weather::Late(delay) => {
                    count(&self.inner.delayed);
                    sleep(delay).await;
                }
                Weather::Cut => {
                    count(lost);
                    return;
                }
                Weather::Silence => {
                    count(lost);
                    return std::future::pending().await;
                }
            }
            count(&self.inner.passed);
            if to.write_all(&piece[..length]).await.is_err() {
                return;
            }
        }
    }
}

impl Loose {
    /// Ties the other end to the server at this address (`127.0.0.1:port`), for as long as the runtime runs.
    pub(crate) fn tie(self, server: String) -> Line {
        let Self { line, listener } = self;
        let passing = line.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&server).await else { continue };
                tokio::spawn(passing.clone().pass(client, server));
            }
        });
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_calm_line_passes_on_and_a_storm_has_every_weather() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap().to_string();
        let line = Line::open(Random::new(1)).await.unwrap().tie(address);
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
        let seen: Vec<_> = (0..2_000).map(|_| line.weather(Direction::Answer)).collect();
        let has = |wanted: fn(&Weather) -> bool| seen.iter().any(wanted);
        assert!(has(|w| *w == Weather::Cut) && has(|w| *w == Weather::Silence) && has(|w| *w == Weather::Fair));
        assert!(has(|w| matches!(w, Weather::Late(_))));
        assert!((0..2_000).all(|_| line.weather(Direction::Request) != Weather::Silence));

        line.set_storm(false);
        assert_eq!(line.weather(Direction::Request), Weather::Fair);
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_that_is_away_cuts_everything_and_comes_back() {
        let Loose { line, .. } = Line::open(Random::new(1)).await.unwrap();
        let outage =
            tokio::spawn(line.clone().go_away(Instant::now() + Duration::from_secs(1), Duration::from_secs(20)));
        assert_eq!(line.weather(Direction::Request), Weather::Fair);
        sleep(Duration::from_secs(2)).await;
        assert!((0..200).all(|_| line.weather(Direction::Request) == Weather::Cut));
        outage.await.unwrap();
        assert_eq!(line.weather(Direction::Answer), Weather::Fair);
    }
}
