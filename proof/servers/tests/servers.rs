//! Servers leave nothing behind, not even where the process that started them is killed.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
