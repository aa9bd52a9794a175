//! How each server is started.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use crate::guard::{Program, Server, run_as};

/// How often a server is started whose port another process took meanwhile.
const STARTS_MAX: usize = 3;

/// The ports to draw from, below those that the system gives to outgoing connections. A node of a Redis cluster also takes
/// the one 10,000 above its own.
const PORTS: std::ops::Range<u16> = 20_000..22_700;
const CLUSTER_BUS: u16 = 10_000;

/// Where Debian keeps servers off the usual PATH.
const SERVER_DIRECTORIES: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// MariaDB's users. It reads them before it takes the first connection.
const MARIADB_USERS: &str = "CREATE DATABASE claimant;
CREATE USER claimant@'%' IDENTIFIED BY 'claimant';
GRANT ALL ON *.* TO claimant@'%' WITH GRANT OPTION;
";

/// Starts Valkey or Redis, empty and in memory, on this port or a free one, with these options. Its user and password are
/// `claimant`.
///
/// # Errors
/// When it is not installed or does not start.
pub fn redis(port: Option<u16>, options: &[&str]) -> io::Result<Server> {
    let server = program(&["valkey-server", "redis-server"], &[])?;
    on_port(port, |port| {
        let data = data_directory("redis", None)?;
        let fixed =
            ["--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--user", "default", "off"];
        let user = ["--user", "claimant", "on", ">claimant", "~*", "&*", "+@all", "--dir"];
        let mut command = words(&server, &[&fixed[..], &user].concat());
        command.push(data.path().into());
        command.extend(options.iter().map(OsString::from));
        let program = Program { command, data, user: None, stop: "KILL" };
        program.start(|line| line.contains("Ready to accept connections").then(|| local(port)))
    })
}

/// Starts PostgreSQL, without durability. Its superuser, the user's password and its database are `claimant`.
///
/// # Errors
/// When it is not installed or does not start.
pub fn postgres() -> io::Result<Server> {
    let bin = postgres_directory()?;
    on_port(None, |port| {
        let user = user_if_root("postgres")?;
        let data = data_directory("postgres", user)?;
        let (password, database) = (data.path().join("password"), data.path().join("db"));
        std::fs::write(&password, "claimant\n")?;
        let mut initdb = Command::new(bin.join("initdb"));
        initdb.arg("--pgdata").arg(&database).arg("--pwfile").arg(&password).args(["--username", "claimant"]);
        // Thousands of connections are made here: by SCRAM, or with a password kept for it, each would be computed for milliseconds.
        initdb.args(["--auth-local", "trust", "--auth-host", "md5", "--encoding", "UTF8", "--locale", "C"]);
        run(initdb.arg("--no-sync"), &data, user, "")?;
        let mut single = Command::new(bin.join("postgres"));
        run(
            single.args(["--single", "-F", "-D"]).arg(&database).arg("postgres"),
            &data,
            user,
            "CREATE DATABASE claimant\n",
        )?;
        let mut command = words(&bin.join("postgres"), &["-p", port, "-c", "listen_addresses=127.0.0.1", "-c"]);
        command.push(format!("unix_socket_directories={}", data.path().display()).into());
        let settings = [
            "max_connections=100",
            "fsync=off",
            "full_page_writes=off",
            "shared_buffers=16MB",
            "autovacuum=off",
            "jit=off",
        ];
        command.extend(settings.into_iter().flat_map(|setting| ["-c", setting]).map(Into::into));
        command.push("-D".into());
        command.push(database.into());
        let program = Program { command, data, user, stop: "QUIT" };
        program.start(|line| line.contains("database system is ready to accept connections").then(|| local(port)))
    })
}

/// Starts MariaDB, without durability. Its user, who has all rights, the user's password and its database are `claimant`.
///
/// # Errors
/// When it is not installed or does not start.
pub fn mariadb() -> io::Result<Server> {
    let server = program(&["mariadbd"], &SERVER_DIRECTORIES)?;
    let install = program(&["mariadb-install-db"], &SERVER_DIRECTORIES)?;
    on_port(None, |port| {
        let user = user_if_root("mysql")?;
        let data = data_directory("mariadb", user)?;
        let within = |name: &str, file: &str| format!("--{name}={}", data.path().join(file).display());
        std::fs::write(data.path().join("users.sql"), MARIADB_USERS)?;
        // A starting server deletes what others have in their directory for temporary files: each has its own.
        let places = ["--no-defaults".to_owned(), within("datadir", "db"), within("tmpdir", "")];
        let mut installs = Command::new(&install);
        installs.args(&places).args([
            "--skip-test-db",
            "--skip-name-resolve",
            "--auth-root-authentication-method=socket",
        ]);
        run(&mut installs, &data, user, "")?;
        let mut command = words(&server, &places.each_ref().map(String::as_str));
        let files = [within("socket", "socket"), within("pid-file", "pid"), within("init-file", "users.sql")];
        command.extend(files.into_iter().chain([format!("--port={port}")]).map(OsString::from));
        let options = [
            "--bind-address=127.0.0.1",
            "--max-connections=100",
            "--character-set-server=utf8mb4",
            "--skip-name-resolve",
            "--skip-log-bin",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-doublewrite=OFF",
            "--innodb-buffer-pool-size=32M",
            "--innodb-log-file-size=16M",
            "--skip-innodb-buffer-pool-dump-at-shutdown",
            "--skip-innodb-buffer-pool-load-at-startup",
        ];
        command.extend(options.map(Into::into));
        let program = Program { command, data, user, stop: "KILL" };
        program.start(|line| line.contains("ready for connections").then(|| local(port)))
    })
}

/// Starts Amazon's DynamoDB Local, in memory, as `make tools` installs it into the `.tools` of this repository.
///
/// # Errors
/// When it is not installed or does not start.
pub fn dynamodb_local() -> io::Result<Server> {
    let home = repository()?.join(".tools/dynamodb-local");
    if !home.join("classes").exists() {
        return Err(not_installed("DynamoDB Local"));
    }
    let (home, data) = (home.canonicalize()?, data_directory("dynamodb", None)?);
    let lib = home.join("lib");
    // A small heap and the quick compiler: it lives for seconds.
    let mut command = words(&program(&["java"], &[])?, &["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"]);
    command.push(format!("-Djava.library.path={}", lib.display()).into());
    command.extend(["-cp".into(), format!("{}:{}/*", home.join("classes").display(), lib.display()).into()]);
    command.extend(["LoopbackDynamoDb", "0"].map(Into::into));
    let program = Program { command, data, user: None, stop: "KILL" };
    program.start(|line| line.strip_prefix("listening on ").map(str::to_owned))
}

/// Finds the repository: from the package that cargo runs, or else from the current directory, upwards. What is built may be
/// moved or shared between copies of the repository, so it does not know its own.
///
/// # Errors
/// When there is none.
pub fn repository() -> io::Result<PathBuf> {
    let from =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(std::env::current_dir, |package| Ok(package.into()))?;
    let found = from.ancestors().find(|directory| directory.join("Cargo.lock").is_file());
    found.map(Path::to_owned).ok_or_else(|| {
        io::Error::other(format!("{} is in no copy of claimant's repository: run this from within one", from.display()))
    })
}

pub(crate) fn local(port: &str) -> String {
    format!("127.0.0.1:{port}")
}

/// Starts a server on this port; or on a free one, and again on another where that was taken meanwhile.
pub(crate) fn on_port<S>(port: Option<u16>, start: impl Fn(&str) -> io::Result<S>) -> io::Result<S> {
    if let Some(port) = port {
        return start(&port.to_string());
    }
    let mut started = Err(io::Error::other("no port was tried"));
    for _ in 0..STARTS_MAX {
        started = start(&free_port().to_string());
        if started.is_ok() {
            break;
        }
    }
    started
}

/// Draws a port that is free now, and so is the one that a node of a cluster needs beside it. Each only once in a process: who still
/// talks to a server that has ended would meet another one.
fn free_port() -> u16 {
    static DRAWN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let is_new = |port: &u16| !drawn.contains(port) && free(*port) && free(*port + CLUSTER_BUS);
    let port = std::iter::repeat_with(|| fastrand::u16(PORTS)).find(is_new).unwrap_or_default();
    drawn.insert(port);
    port
}

pub(crate) fn words(program: &Path, arguments: &[&str]) -> Vec<OsString> {
    std::iter::once(program.into()).chain(arguments.iter().map(OsString::from)).collect()
}

/// Runs a command of a server's set-up to its end.
fn run(command: &mut Command, data: &TempDir, user: Option<(u32, u32)>, input: &str) -> io::Result<()> {
    run_as(command, user);
    command.current_dir(data.path()).env("TMPDIR", data.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(io::Error::other(format!("{command:?} failed: {}{}", text(&output.stdout), text(&output.stderr))))
}

/// Makes a directory for a server's data, which belongs to this user.
pub(crate) fn data_directory(server: &str, user: Option<(u32, u32)>) -> io::Result<TempDir> {
    let data = tempfile::Builder::new().prefix(&format!("claimant-{server}.")).tempdir()?;
    if let Some((uid, gid)) = user {
        chown(data.path(), Some(uid), Some(gid))?;
    }
    Ok(data)
}

/// Returns the ids of this user where we are root, as whom PostgreSQL and MariaDB refuse to run.
fn user_if_root(name: &str) -> io::Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let id = |option: &str| -> io::Result<u32> {
        let output = Command::new("id").args([option, name]).output()?;
        let id = String::from_utf8_lossy(&output.stdout).trim().parse();
        id.map_err(|_| io::Error::other(format!("there is no user {name} to run the server as instead of root")))
    };
    Ok(Some((id("-u")?, id("-g")?)))
}

/// Finds the first of these programs that is on the PATH or in one of these directories.
fn program(names: &[&str], directories: &[&str]) -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<_> = std::env::split_paths(&path).chain(directories.iter().map(PathBuf::from)).collect();
    let found =
        names.iter().flat_map(|name| places.iter().map(move |place| place.join(name))).find(|path| path.is_file());
    found.ok_or_else(|| not_installed(&names.join(" or ")))
}

/// Finds the programs of the newest PostgreSQL. Debian keeps each version in a directory of its own.
fn postgres_directory() -> io::Result<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let numbered = versions.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())));
    if let Some((_, newest)) = numbered.filter(|(_, path)| path.join("bin/initdb").is_file()).max() {
        return Ok(newest.join("bin"));
    }
    Ok(program(&["initdb"], &[])?.with_file_name(""))
}

pub(crate) fn not_installed(what: &str) -> io::Error {
    io::Error::other(format!("{what} is not installed: run make tools"))
}
