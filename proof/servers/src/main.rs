//! `claimant-server`: one of the servers of the tests, by hand.

use std::io;
use std::process::{Command, ExitCode};

use claimant_servers::Server;
use clap::{Parser, ValueEnum};

/// Run a server for tests on 127.0.0.1, with data of its own that go when it ends.
///
/// Prints its URL. With COMMAND, runs that with the URL in DATABASE_URL, and ends with it; else Ctrl-C ends the server.
#[derive(Debug, Parser)]
struct Args {
    server: Which,

    /// What to run beside the server
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Which {
    DynamodbLocal,
    Mariadb,
    Postgres,
    Redis,
}

impl Which {
    fn start(self) -> io::Result<(Server, String)> {
        let (server, scheme, path) = match self {
            Self::DynamodbLocal => (claimant_servers::dynamodb_local()?, "http://", ""),
            Self::Mariadb => (claimant_servers::mariadb()?, "mysql://claimant:claimant@", "/claimant"),
            Self::Postgres => (claimant_servers::postgres()?, "postgres://claimant:claimant@", "/claimant"),
            Self::Redis => (claimant_servers::redis(None, &[])?, "redis://claimant:claimant@", "/"),
        };
        let url = format!("{scheme}{}{path}", server.address);
        Ok((server, url))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<ExitCode> {
    let Args { server, command } = Args::parse();
    let (_server, url) = server.start()?;
    let Some((program, arguments)) = command.split_first() else {
        println!("{url}");
        tokio::signal::ctrl_c().await?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut command = tokio::process::Command::from(Command::new(program));
    let mut child = command.args(arguments).env("DATABASE_URL", &url).spawn()?;
    loop {
        tokio::select! {
            status = child.wait() => {
                let code = status?.code().and_then(|code| u8::try_from(code).ok());
                return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
            }
            // Ctrl-C went to the command as well, which may need the server to end in order.
            interrupted = tokio::signal::ctrl_c() => interrupted?,
        }
    }
}
