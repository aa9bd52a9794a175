//! The scripts that run real servers leave nothing behind, not even where their caller is killed.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to be gone.
const GONE_MAX: Duration = Duration::from_secs(60);

/// Runs a script under a shell, kills the shell, and waits for the server and its data to be gone.
fn check(script: &str) {
    let data = tempfile::tempdir().unwrap();
    // Other users run the servers where the tests are root.
    std::fs::set_permissions(data.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts");
    let mut caller = Command::new("bash")
        .args(["-c", &format!("{}/{script} 0 & wait", scripts.display())])
        .env("TMPDIR", data.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let line = BufReader::new(caller.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let address = line.strip_prefix("listening on ").unwrap().to_owned();
    TcpStream::connect(&address).unwrap();
    caller.kill().unwrap();
    caller.wait().unwrap();
    let deadline = Instant::now() + GONE_MAX;
    while TcpStream::connect(&address).is_ok() || data.path().read_dir().unwrap().next().is_some() {
        assert!(Instant::now() < deadline, "{script} left something behind in {}", data.path().display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "needs Redis, PostgreSQL and MariaDB: make test"]
fn servers_end_with_their_caller() {
    for script in ["redis", "postgres", "mariadb"] {
        check(script);
    }
}
