//! The scripts of the repository, as people start them: beside stubs in the place of what they call.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::root;

/// What scripts call that every machine has; `timeout` is not among it, nor a browser.
const PROGRAMS: &str = "bash cat chmod cp cut dirname env ln mkdir mktemp perl rm sed sha256sum sleep sort uname";

/// A clone with nothing but scripts, on a machine with nothing but what they call.
struct Clone(TempDir);

impl Clone {
    fn new() -> Self {
        let clone = Self(TempDir::new().unwrap());
        for directory in [".tools/bin", "bin", "scripts", "scripts/pins"] {
            fs::create_dir_all(clone.path(directory)).unwrap();
        }
        for entry in fs::read_dir(root().join("scripts")).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), clone.path("scripts").join(entry.file_name())).unwrap();
            }
        }
        PROGRAMS.split(' ').for_each(|program| clone.link(program));
        clone
    }

    /// Puts one of the machine's programs there.
    fn link(&self, program: &str) {
        let places = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|place| place.join(program))
            .collect::<Vec<_>>();
        let place = places.iter().find(|place| place.exists()).unwrap_or_else(|| panic!("there is no {program}"));
        symlink(place, self.path("bin").join(program)).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn file(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    /// Puts a program there that does this.
    fn stub(&self, path: &str, does: &str) {
        self.file(path, &format!("#!/bin/sh\n{does}\n"));
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A command in it, such as one of its scripts.
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(self.path(program));
        command.args(args).env_clear().env("PATH", self.path("bin")).current_dir(self.0.path());
        command
    }
}

/// Runs it to its end; returns its exit code and all that it said.
fn ended(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

#[test]
fn invoke_says_what_is_missing_and_does_not_wait_for_it() {
    let invoke = |function: &str, event: &str| {
        // No server listens on port 1 of 127.0.0.1.
        let output =
            Command::new(root().join("scripts/invoke")).args([function, event]).env("WATCH_PORT", "1").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    for (function, event, wanted) in [
        ("no-such-function", "order", &["no function no-such-function", "order-confirmation"][..]),
        ("payment", "no-such-event", &["no event no-such-event", "payment.json"]),
        ("payment", "payment", &["nothing listens on port 1", "make watch"]),
    ] {
        let said = invoke(function, event);
        assert!(wanted.iter().all(|wanted| said.contains(wanted)), "{function} {event}: {said}");
    }
}

/// Where it is not there, as on macOS.
#[test]
fn invoke_ends_after_its_time_without_the_program_timeout() {
    let clone = Clone::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    clone.stub("scripts/tools", "");
    clone.file("functions/payment/Cargo.toml", "");
    clone.file("tests/events/payment.json", "{}");
    for (cargo, code, wanted) in
        [("echo answered", 0, "answered"), ("exec sleep 100", 1, "no answer from payment within 1 s")]
    {
        clone.stub("bin/cargo", cargo);
        let mut invoke = clone.command("scripts/invoke", &["payment", "payment"]);
        let (ended, said) = ended(invoke.env("WATCH_PORT", &port).env("INVOKE_TIMEOUT", "1"));
        assert!(ended == Some(code) && said.contains(wanted), "{cargo}: {ended:?} {said}");
    }
}

/// A clone whose programs are built: they say how they were called.
fn built() -> Clone {
    let clone = Clone::new();
    for program in ["claimant", "inventory"] {
        clone.stub(
            &format!("target/debug/{program}"),
            &format!("echo {program} \"$@\" \"${{CLAIMANT_DATABASE_URL:+with a URL}}\""),
        );
    }
    clone
}

#[test]
fn run_shows_no_list_of_processes_the_password_of_a_database() {
    let clone = built();
    let mut run = clone.command("scripts/run", &["--quiet"]);
    let (code, said) = ended(run.env("POSTGRES", "env:STOCK_URL").env("STOCK_URL", "postgres://u:s3cret@h/d"));
    assert!(code == Some(0) && !said.contains("s3cret"), "{said}");
    let called =
        ["inventory migrate with a URL", "claimant local --workload --parameter DatabaseUrl=env:STOCK_URL --quiet "];
    assert!(called.iter().all(|line| said.lines().any(|other| other == *line)), "{said}");
}

/// A shell has `DATABASE_URL` for another project, as many tools want it.
#[test]
fn run_touches_a_database_only_where_it_is_named() {
    let clone = built();
    let with = |postgres: &str| {
        let mut run = clone.command("scripts/run", &[]);
        let url = "postgres://nobody:s3cret@127.0.0.1:1/shop";
        ended(run.envs([("POSTGRES", postgres), ("DATABASE_URL", url), ("REDIS_URL", "redis://h")]))
    };
    assert_eq!(with(""), (Some(0), "claimant local --workload \n".to_owned()));
    for (postgres, wanted) in [
        ("DATABASE_URL", "POSTGRES is env:NAME"),
        ("env:DATABASE URL", "POSTGRES is env:NAME"),
        ("env:NOT_SET", "the variable NOT_SET has no URL"),
        ("env:REDIS_URL", "the variable REDIS_URL has no URL"),
    ] {
        let (code, said) = with(postgres);
        assert!(code == Some(1) && said.contains(wanted) && !said.contains("local --workload"), "{postgres}: {said}");
    }
}

#[test]
fn what_a_person_has_no_proxy_for_stays_so() {
    let clone = Clone::new();
    let script = "source scripts/common.sh; echo \"$NO_PROXY $no_proxy\"";
    for (variables, wanted) in [
        (&[][..], "127.0.0.1,localhost"),
        (&[("NO_PROXY", ".corp.example")], "127.0.0.1,localhost,.corp.example"),
        (&[("NO_PROXY", ".a"), ("no_proxy", ".b")], "127.0.0.1,localhost,.a,.b"),
    ] {
        let (_, said) = ended(clone.command("bin/bash", &["-c", script]).envs(variables.iter().copied()));
        assert_eq!(said, format!("{wanted} {wanted}\n"));
    }
}

fn is_there(path: &Path) -> bool {
    fs::metadata(path).is_ok()
}

/// As after an upgrade of Python, whose links lead nowhere then.
#[test]
fn tools_are_made_again_where_their_python_is_gone() {
    let clone = Clone::new();
    clone.file("scripts/pins/requirements.txt", "");
    let venv = "for at; do :; done; case \"$*\" in *venv*) mkdir -p \"$at/bin\"; for name in python pip sam; do printf '#!/bin/sh\\n' >\"$at/bin/$name\"; chmod +x \"$at/bin/$name\"; done ;; esac";
    clone.stub("bin/python3", venv);
    let tools = || ended(&mut clone.command("scripts/tools", &["python"]));
    let python = clone.path(".tools/venv/bin/python");
    let (code, said) = tools();
    assert!(code == Some(0) && said.contains("tools: cargo-lambda and sam") && is_there(&python), "{code:?} {said}");
    assert_eq!(tools(), (Some(0), String::new()));
    fs::remove_file(&python).unwrap();
    symlink("/nowhere/python3.11", &python).unwrap();
    let (code, said) = tools();
    assert!(code == Some(0) && is_there(&python) && is_there(&clone.path(".tools/bin/sam")), "{code:?} {said}");
    // A newer one starts, and does not find what was installed for the older one.
    fs::remove_file(&python).unwrap();
    clone.stub(".tools/venv/bin/python", "[ \"$2\" != 'import pip' ]");
    let (code, said) = tools();
    assert!(code == Some(0) && said.contains("tools: cargo-lambda and sam"), "{code:?} {said}");
    assert_eq!(tools(), (Some(0), String::new()));
}

/// Every file is checked: also one that nobody expects.
#[test]
fn what_maven_fetches_beside_the_list_is_refused() {
    let clone = Clone::new();
    for (program, does) in [
        (
            "mvn",
            "for at; do :; done; at=${at#*=}; mkdir -p \"$at\"; for jar in $JARS; do echo \"$jar\" >\"$at/$jar\"; done",
        ),
        ("javac", ""),
        ("uname", "echo x86_64"),
    ] {
        fs::remove_file(clone.path("bin").join(program)).ok();
        clone.stub(&format!("bin/{program}"), does);
    }
    clone.file("scripts/pins/dynamodb-local.xml", "");
    clone.file("scripts/java/LoopbackDynamoDb.java", "");
    let sums = "41956f2cedbef836a03d17334aa3eae7165f33199b7081f7bb4f1475bb0b1251  a.jar\n\
                158885f885b4861b8b8d8f92df81d7db1bc93440c91b86c26c448a1f1d0994d8  b.jar\n";
    clone.file("scripts/pins/dynamodb-local.sha256", sums);
    let tools = |jars: &str| ended(clone.command("scripts/tools", &["dynamodb-local"]).env("JARS", jars));
    for wrong in ["a.jar", "a.jar b.jar c.jar"] {
        let (code, said) = tools(wrong);
        assert!(code == Some(1) && said.contains("differs from"), "{wrong}: {code:?} {said}");
    }
    let (code, said) = tools("a.jar b.jar");
    assert_eq!(code, Some(0), "{said}");
}

/// Its version is raised by hand, so the pins are mostly the same again, and with them what it was made from.
#[test]
fn dynamodb_local_is_whole_again_after_its_pins_were_renewed() {
    let clone = Clone::new();
    for file in ["scripts/pins/dynamodb-local.xml", "scripts/java/LoopbackDynamoDb.java"] {
        clone.file(file, "");
    }
    for peer in ["python/requirements.in", "node/package.json", "java/pom.xml", "rust/Cargo.toml"] {
        clone.file(&format!("proof/bench/peers/{peer}"), "");
    }
    let venv = "for at; do :; done; case \"$*\" in *venv*) mkdir -p \"$at/bin\"; for name in pip pip-compile; do printf '#!/bin/sh\\n' >\"$at/bin/$name\"; chmod +x \"$at/bin/$name\"; done ;; esac";
    let mvn = "for arg; do case $arg in -DoutputDirectory=*) mkdir -p \"${arg#*=}\"; echo jar >\"${arg#*=}/a.jar\" ;; esac; done";
    let javac = "for arg; do if [ \"$last\" = -d ]; then mkdir -p \"$arg\"; fi; last=$arg; done";
    for (program, does) in [
        ("python3", venv),
        ("mvn", mvn),
        ("javac", javac),
        ("npm", ""),
        ("cargo", ""),
        // It comes with SQLite for this one only.
        ("uname", "echo x86_64"),
    ] {
        let _ = fs::remove_file(clone.path("bin").join(program));
        clone.stub(&format!("bin/{program}"), does);
    }
    let tools = |tool: &str| ended(&mut clone.command("scripts/tools", &[tool]));
    for _ in 0..2 {
        assert_eq!(tools("pins"), (Some(0), String::new()));
        let (code, said) = tools("dynamodb-local");
        assert!(code == Some(0) && said.contains("tools: DynamoDB Local"), "{code:?} {said}");
        assert!(is_there(&clone.path(".tools/dynamodb-local/classes")), "{said}");
    }
    assert_eq!(tools("dynamodb-local"), (Some(0), String::new()));
}

#[test]
fn a_browser_that_was_unpacked_is_found_where_the_clone_is_now() {
    let clone = Clone::new();
    clone.file("scripts/pins/axe/package-lock.json", "{}");
    clone.stub("bin/npm", "");
    clone.stub(".tools/chromium/browser", "exec /old/place/chromium/root/usr/lib/chromium/chromium-headless-shell");
    let browser = clone.path(".tools/bin/browser");
    symlink("/old/place/chromium/browser", &browser).unwrap();
    let (code, said) = ended(&mut clone.command("scripts/tools", &["browser"]));
    assert!(code == Some(0) && is_there(&browser), "{code:?} {said}");
    let starts = fs::read_to_string(&browser).unwrap();
    assert!(starts.contains(clone.path(".tools/chromium/root").to_str().unwrap()), "{starts}");
}

/// A clone with a commit, work that is not in it, and a stand-in for cargo-mutants: that says where it is started and finds nothing.
fn with_work() -> Clone {
    let clone = Clone::new();
    ["git", "wc"].into_iter().for_each(|program| clone.link(program));
    clone.stub("scripts/tools", "");
    let finds = "for at; do if [ \"$last\" = --output ]; then break; fi; last=$at; done; mkdir -p \"$at/mutants.out\"";
    clone.stub(
        "bin/cargo",
        &format!("pwd; {finds}; for list in missed caught unviable timeout; do : >\"$at/mutants.out/$list.txt\"; done"),
    );
    clone.file("README.md", "committed\n");
    let git = |args: &[&str]| {
        let person = ["-c", "user.name=A person", "-c", "user.email=person@example.com"];
        let (code, said) = ended(&mut clone.command("bin/git", &[&person, args].concat()));
        assert_eq!(code, Some(0), "{args:?}: {said}");
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    git(&["add", "README.md"]);
    git(&["commit", "--quiet", "--message", "A commit"]);
    clone.file("README.md", "work of the day\n");
    clone
}

/// Asserts that the work is still there, and the branch.
fn assert_untouched(clone: &Clone, after: &str) {
    let (_, branch) = ended(&mut clone.command("bin/git", &["branch", "--show-current"]));
    let work = fs::read_to_string(clone.path("README.md")).unwrap();
    assert_eq!((&*branch, &*work), ("main\n", "work of the day\n"), "{after}");
}

#[test]
fn mutants_removes_nothing_for_a_part_that_there_is_not() {
    let clone = with_work();
    clone.file("target/important", "");
    clone.file("target/mutants/tree/what is left of one", "");
    for parts in [&["tree"][..], &["typo"], &["../../target"], &["core", "tree"], &[""]] {
        let (code, said) = ended(&mut clone.command("scripts/mutants", parts));
        assert!(code == Some(1) && said.contains("there is no part"), "{parts:?}: {code:?} {said}");
        assert_untouched(&clone, &format!("{parts:?}"));
        let kept = ["target/important", "target/mutants/tree/what is left of one"];
        assert!(kept.iter().all(|file| is_there(&clone.path(file))), "{parts:?}");
        let made = fs::read_dir(clone.path("target/mutants")).unwrap().count();
        assert_eq!(made, 1, "{parts:?}: nothing but the tree is there");
    }
}

/// What is left of an old tree is none, and git would take the repository around it for it; and where `git worktree add` was killed, its
/// lock stays.
#[test]
fn mutants_works_in_a_tree_of_its_own_whatever_is_left_of_an_old_one() {
    let clone = with_work();
    let tree = clone.path("target/mutants/tree");
    let run = |left: &str| {
        let (code, said) = ended(&mut clone.command("scripts/mutants", &["lock-table"]));
        let is_in_it = said.lines().any(|line| Path::new(line).ends_with("target/mutants/tree"));
        assert!(code == Some(0) && is_in_it && said.contains("lock-table: 0 survived"), "{left}: {code:?} {said}");
        assert_eq!(fs::read_to_string(tree.join("README.md")).unwrap(), "committed\n", "{left}");
        assert_untouched(&clone, left);
    };
    run("nothing");
    fs::write(tree.join("README.md"), "a mutant").unwrap();
    run("a tree with a mutant");
    fs::remove_file(tree.join(".git")).unwrap();
    run("a tree without its link");
    let (code, said) = ended(&mut clone.command("bin/git", &["worktree", "lock", "target/mutants/tree"]));
    assert_eq!(code, Some(0), "{said}");
    fs::remove_dir_all(clone.path("target/mutants")).unwrap();
    run("a lock");
}

/// That takes minutes.
#[test]
fn make_refuses_wrong_values_before_it_builds_for_them() {
    let clone = Clone::new();
    fs::copy(root().join("Makefile"), clone.path("Makefile")).unwrap();
    ["make", "nice"].into_iter().for_each(|program| clone.link(program));
    clone.stub("scripts/tools", "echo tools");
    clone.stub("bin/cargo", "echo \"cargo $*\"");
    let make = |args: &str| ended(&mut clone.command("bin/make", &args.split(' ').collect::<Vec<_>>()));
    for (args, wanted) in [
        ("model WORLD=typo", "WORLD is small, large or ablation"),
        ("fuzz MINUTES=abc", "MINUTES is a whole number, from 1 on"),
        ("storm MINUTES=0.5", "MINUTES is a whole number, from 1 on"),
        ("storm SEED=x", "SEED is a whole number, from 0 on"),
        ("throughput MINUTES=0", "MINUTES is a whole number, from 1 on"),
        ("throughput RATE=-1", "RATE is a whole number, from 1 on"),
        ("simulate SEED=x", "SEED is a whole number, from 0 on"),
        ("simulate SEEDS=0", "SEEDS is a whole number, from 1 on"),
        ("simulate FROM=08", "FROM is a whole number, from 0 on"),
        ("simulate MUTANTS=0", "MUTANTS is 1"),
        ("simulate MUTANTS=1 SEED=4", "SEED, SCENARIO and MUTANTS say what is run: give one of them"),
        ("simulate SEED=1 SCENARIO=f", "SEED, SCENARIO and MUTANTS say what is run: give one of them"),
        ("simulate SEED=1 SEEDS=5", "SEED is one run: SEEDS and FROM are for many"),
        ("simulate SCENARIO=f FROM=0", "SCENARIO is one run: SEEDS and FROM are for many"),
        ("simulate MUTANT=x", "MUTANT goes with MUTANTS=1, SEED or SCENARIO"),
    ] {
        let (code, said) = make(args);
        let begins = said.lines().any(|line| line == "tools" || line.starts_with("cargo"));
        assert!(code == Some(2) && said.contains(wanted) && !begins, "{args}: {code:?} {said}");
    }
    for args in ["model WORLD=small", "fuzz", "fuzz MINUTES=", "fuzz MINUTES=10"] {
        let (code, said) = make(args);
        assert!(code == Some(0) && said.contains("cargo "), "{args}: {code:?} {said}");
    }
    // A trace needs no optimised build; many runs do.
    for (args, options) in [
        ("simulate", ""),
        ("simulate SEED=0", "--seed 0"),
        ("simulate SCENARIO=f MUTANT=x", "--scenario f --mutant x"),
        ("simulate SEEDS=5 FROM=0", "--seeds 5 --from 0"),
        ("simulate MUTANTS=1 MUTANT=x SEEDS=5", "--mutants --mutant x --seeds 5"),
    ] {
        let (code, said) = make(args);
        let profile =
            if options.contains("--seed ") || options.contains("--scenario ") { "" } else { "--profile simulate " };
        let wanted = format!("cargo run --locked {profile}-p claimant-sim -- {options}");
        assert_eq!((code, said.lines().last()), (Some(0), Some(wanted.trim_end())), "{args}: {said}");
    }
}
