//! What is around: the directory that a person is in, and the workspaces above a new project.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::{claimant_new, files, written};

/// A program that says where it was started, and with what.
const STUB: &str = "#!/bin/sh\necho \"$PWD: ${0##*/} $*\"\n";

#[test]
fn what_to_do_next_is_typed_as_it_is_printed() {
    let here = TempDir::new().unwrap();
    let top = here.path().canonicalize().unwrap();
    let (bin, office) = (top.join("bin"), top.join("Büro\u{301} l'été"));
    for directory in [&bin, &office] {
        fs::create_dir(directory).unwrap();
    }
    for program in ["cargo", "claimant"] {
        fs::write(bin.join(program), STUB).unwrap();
        fs::set_permissions(bin.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let project = office.join("welcome-mail");
    for (from, name, options) in [
        (&*top, "welcome-mail", &["--directory", office.to_str().unwrap()][..]),
        (&office, "second", &["--directory", "welcome-mail"]),
        (&project.join("functions/second/src"), "third", &[]),
        (&project, "fourth", &[]),
    ] {
        let mut new = Command::new(env!("CARGO_BIN_EXE_claimant"));
        new.args(["new", name]).args(options).current_dir(from).env("CARGO", bin.join("cargo"));
        let output = new.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (_, next) =
            said.split_once("\nNext:\n").unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        let (commands, _) = next.split_once("\nWrite your handler").unwrap();
        let typed = Command::new("bash").args(["-c", commands]).current_dir(from).env("PATH", &path).output().unwrap();
        let ran: String = [
            format!("cargo test -p {name}"),
            format!("cargo build -p {name}"),
            format!("claimant local --function {name}"),
        ]
        .map(|command| format!("{}: {command}\n", project.display()))
        .concat();
        assert_eq!(String::from_utf8(typed.stdout).unwrap(), ran, "{said}{}", String::from_utf8_lossy(&typed.stderr));
        assert_eq!(commands.contains("cd "), from != project, "{commands}");
    }
}

/// Cargo does nothing in a workspace that another one is in.
#[test]
fn a_workspace_above_takes_no_new_project_in() {
    for (lists, directory, in_the_way) in [
        ("members = [\"services/*\"]", "services", Some("has \"services/*\", which takes")),
        (
            "members = [ # all\n  'services/one',\n  '*/*/functions/*',\n]",
            "services",
            Some("has \"*/*/functions/*\", which takes"),
        ),
        ("members = [\"services/*\"]\nexclude = [\"./services/pay-mail\"]", "services", None),
        // Cargo excludes nothing of what is below a member that is named.
        (
            "members = [\"./services\", \"services/*\"]\nexclude = [\"services/pay-mail\"]",
            "services",
            Some("another: choose another directory"),
        ),
        ("members = [\"./services/pay-mail\"]", "services", Some("another: choose another directory")),
        ("members = [\"services/*\"]", ".", None),
    ] {
        let outer = TempDir::new().unwrap();
        fs::create_dir_all(outer.path().join("services/one/src")).unwrap();
        fs::write(outer.path().join("Cargo.toml"), format!("[workspace]\nresolver = \"3\"\n{lists}\n")).unwrap();
        fs::write(outer.path().join("services/one/Cargo.toml"), "[package]\nname = \"one\"\n").unwrap();
        fs::write(outer.path().join("services/one/src/lib.rs"), "").unwrap();
        let place = outer.path().join(directory);
        let Some(in_the_way) = in_the_way else {
            written(&place, "pay-mail", &[]);
            assert!(is_read_by_cargo(outer.path()), "{lists}");
            continue;
        };
        let before = files(outer.path());
        for options in [&["--dry-run"][..], &[]] {
            let output = claimant_new(&place, "pay-mail", options);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(2) && errors.contains(in_the_way), "{lists}: {errors}");
            let helps = !in_the_way.contains("choose");
            assert_eq!(errors.contains("add \"services/pay-mail\" to its `exclude`"), helps, "{errors}");
        }
        assert_eq!(files(outer.path()), before, "{lists}");
    }
}

fn is_read_by_cargo(workspace: &Path) -> bool {
    let command = ["metadata", "--no-deps", "--offline", "--format-version=1"];
    Command::new("cargo").args(command).current_dir(workspace).output().unwrap().status.success()
}
