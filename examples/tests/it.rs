//! Each example prints what its head says. Those that need a server are run with the others that do.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::path::PathBuf;
use std::process::Command;

use claimant_tests::services::{MariaDb, Postgres, Redis};

/// Those that need a server, and the variable that names it.
const WITH_SERVER: [(&str, &str); 8] = [
    ("inbox", "CLAIMANT_DATABASE_URL"),
    ("mysql", "CLAIMANT_DATABASE_URL"),
    ("mysql_transaction", "CLAIMANT_DATABASE_URL"),
    ("outbox", "CLAIMANT_DATABASE_URL"),
    ("postgres", "CLAIMANT_DATABASE_URL"),
    ("postgres_batch", "CLAIMANT_DATABASE_URL"),
    ("postgres_transaction", "CLAIMANT_DATABASE_URL"),
    ("redis", "CLAIMANT_REDIS_URL"),
];

fn directory() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap().into()
}

/// The names of all examples, by their files.
fn names() -> Vec<String> {
    let files = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let programs = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let names = programs.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    names.filter(|name| !["main", "support"].contains(&name.as_str())).collect()
}

/// What the head of an example's file says that it prints.
fn promised(name: &str) -> String {
    let text = std::fs::read_to_string(directory().join(name).with_extension("rs")).unwrap();
    let head =
        text.lines().map_while(|line| line.strip_prefix("//!")).map(|line| line.strip_prefix(' ').unwrap_or(line));
    let block: Vec<_> = head.skip_while(|line| *line != "```text").skip(1).take_while(|line| *line != "```").collect();
    assert!(!block.is_empty(), "{name}.rs says nothing of what it prints");
    block.join("\n") + "\n"
}

fn check(name: &str, variables: &[(&str, &str)]) {
    let mut example = Command::new(env!("CARGO_BIN_EXE_example"));
    let output = example.arg(name).envs(variables.iter().copied()).output().unwrap();
    let [printed, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{name}: {}\n{printed}{errors}", output.status);
    assert_eq!(printed, promised(name), "{name}: {errors}");
}

fn needs_server(name: &str) -> bool {
    WITH_SERVER.iter().any(|(with, _)| *with == name)
}

#[test]
fn examples_print_what_they_say() {
    let names = names();
    let local: Vec<_> = names.iter().filter(|name| !needs_server(name)).collect();
    assert_eq!(names.len() - local.len(), WITH_SERVER.len());
    for name in local {
        check(name, &[]);
    }
}

#[test]
fn the_table_lists_them_all() {
    let table = std::fs::read_to_string(directory().join("README.md")).unwrap();
    for name in names() {
        assert!(table.contains(&format!("| [`{name}`]({name}.rs) |")), "README.md has no line of {name}");
    }
}

#[test]
fn each_has_a_test_with_the_kit() {
    for name in names() {
        let text = std::fs::read_to_string(directory().join(&name).with_extension("rs")).unwrap();
        let (_, tests) = text.split_once("mod tests {").unwrap_or_else(|| panic!("{name}.rs has no test"));
        // A worker outside Lambda receives by itself, and the kit stands for Lambda.
        let with = if name == "worker" { "#[tokio::test" } else { "TestQueue::new" };
        assert!(tests.contains(with), "{name}.rs has no test with {with}");
    }
}

#[test]
fn without_their_server_they_name_the_variable() {
    for (name, variable) in WITH_SERVER {
        let output = Command::new(env!("CARGO_BIN_EXE_example")).arg(name).env_remove(variable).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(variable), "{name}: {errors}");
    }
}

#[test]
#[ignore = "needs Redis, PostgreSQL and MariaDB"]
fn examples_on_servers_print_what_they_say() {
    let (redis, postgres, mariadb) = (Redis::start(), Postgres::start(), MariaDb::start());
    for (name, variable) in WITH_SERVER {
        let url = match name {
            "redis" => redis.url(),
            "mysql" | "mysql_transaction" => mariadb.url(),
            _ => postgres.url(),
        };
        check(name, &[(variable, &url)]);
    }
}
