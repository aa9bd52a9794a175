//! Servers leave nothing behind, not even where the process that started them is killed; a relay that is shut keeps its port.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use claimant_servers::relay::{Direction, Fate, Relay, Rule};
use tokio::net::{TcpListener, TcpSocket};

/// How long a server may take to be gone.
const GONE_MAX: Duration = Duration::from_secs(60);

/// Has a process start a server, kills the process, and waits until server and data are gone.
fn check(server: &str) {
    let data = tempfile::tempdir().unwrap();
    // Other users run the servers where the tests are root.
    std::fs::set_permissions(data.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_claimant-server"));
    let mut starter = command.arg(server).env("TMPDIR", data.path()).stdout(Stdio::piped()).spawn().unwrap();
    let url = BufReader::new(starter.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let address = url.split_once("://").unwrap().1.rsplit('@').next().unwrap().split('/').next().unwrap().to_owned();
    TcpStream::connect(&address).unwrap();
    starter.kill().unwrap();
    starter.wait().unwrap();
    let deadline = Instant::now() + GONE_MAX;
    while TcpStream::connect(&address).is_ok() || data.path().read_dir().unwrap().next().is_some() {
        assert!(Instant::now() < deadline, "{server} left something behind in {}", data.path().display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "needs Redis, PostgreSQL, MariaDB and DynamoDB Local: make test"]
fn servers_end_with_the_process_that_started_them() {
    for server in ["redis", "postgres", "mariadb", "dynamodb-local"] {
        check(server);
    }
}

/// How often a relay is shut and opened while another wants its port.
const TURNS: usize = 300;

struct Passes;

impl Rule for Passes {
    async fn fate(&self, _: Direction) -> Fate {
        Fate::Pass
    }
}

#[tokio::test]
async fn a_relay_that_is_shut_refuses_connections_and_keeps_its_port() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let relay = Relay::start(server.local_addr().unwrap().to_string(), Arc::new(Passes)).await.unwrap();
    tokio::spawn(async move { while server.accept().await.is_ok() {} });
    let address = relay.address;
    let takes = move || TcpSocket::new_v4().unwrap().bind(address).is_ok();
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let another = std::thread::spawn(move || {
        std::iter::repeat_with(takes).take_while(|_| !is_over.load(Relaxed)).any(|taken| taken)
    });
    for _ in 0..TURNS {
        relay.shut(true);
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        relay.shut(false);
        while tokio::net::TcpStream::connect(address).await.is_err() {
            assert!(!another.is_finished(), "another took {address}");
            tokio::task::yield_now().await;
        }
    }
    over.store(true, Relaxed);
    assert!(!another.join().unwrap(), "another took {address}");
}
