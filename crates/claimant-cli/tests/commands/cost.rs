//! `claimant cost` as people call it, and what the book shows of it.

mod several;
mod tables;
mod templates;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The pages whose blocks of commands are what the command prints.
const PAGES: [&str; 1] = ["docs/scale.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the command at the top of the repository.
fn cost(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_claimant")).arg("cost").args(args).current_dir(root()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(args: &[&str]) -> Value {
    let output = cost(&[args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Writes a file of the test that calls it: others have files of the same names.
fn file(name: &str, content: &str) -> String {
    let test = std::thread::current().name().unwrap_or("cost").replace(':', "-");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// One function that is as simple to compute by hand as can be: 1,000,000 messages in batches of 10, none twice.
const PLAIN: [&str; 12] = [
    "--per-day",
    "1000000",
    "--filled",
    "10",
    "--duplicates",
    "0",
    "--retries",
    "0",
    "--function",
    "OrderConfirmationFunction",
    "--window-days",
    "15",
];

/// What the page's chart is made with.
const PLAIN_RATE: [&str; 4] = ["--per-day", "1000000", "--function", "OrderConfirmationFunction"];

/// These options, and of [`PLAIN`] those that are not among them.
fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let others = PLAIN.chunks(2).filter(|one| !options.contains(&one[0]));
    options.iter().copied().chain(others.flatten().copied()).collect()
}

fn lines(bill: &Value) -> Vec<(String, f64, f64)> {
    let lines = bill["functions"][0]["lines"].as_array().unwrap().iter();
    let line = |line: &Value| {
        (line["what"].as_str().unwrap().to_owned(), line["quantity"].as_f64().unwrap(), line["usd"].as_f64().unwrap())
    };
    lines.map(line).collect()
}

#[test]
fn a_bill_is_what_one_computes_by_hand() {
    let bill = json(&PLAIN);
    let found = lines(&bill);
    for (what, quantity, usd) in [
        ("Receives", 3e6, 1.2),
        ("Deletes", 3e6, 1.2),
        ("Invocations", 3e6, 0.6),
        ("Write units", 60e6, 37.5),
        // 43 ms: handlers 20, two answers 10, 1.8 ms of a core at 256 / 1,769 of it. A quarter of a GB.
        ("Duration", 3e6 * 0.043 / 4.0, 3e6 * 0.043 / 4.0 * 13.3334e-6),
        // 17 days of a million records of 400 bytes.
        ("Storage", 17.0 * 4e8 / 1_073_741_824.0, 17.0 * 4e8 / 1_073_741_824.0 / 4.0),
        ("Metrics", 7.0, 2.1),
    ] {
        let line = found.iter().find(|line| line.0 == what).unwrap_or_else(|| panic!("no {what} in {found:?}"));
        assert!((line.1 - quantity).abs() < 0.01 * quantity && (line.2 - usd).abs() < 0.01 * usd, "{line:?}");
    }
    let sum: f64 = found.iter().map(|line| line.2).sum();
    assert!((bill["usd"].as_f64().unwrap() - sum).abs() < 0.01);
}

#[test]
fn options_change_what_they_say() {
    let usd = |more: &[&str]| json(&[&PLAIN[..], more].concat())["usd"].as_f64().unwrap();
    let plain = usd(&[]);
    let transactional = usd(&["--guarantee", "transactional"]);
    assert!((transactional - plain - 90e6 * 0.625e-6).abs() < 0.5, "a unit more for the completion, two for its write");
    assert!(usd(&["--guarantee", "optimistic"]) < transactional);
    assert!((usd(&["--guarantee", "at-most-once"]) - plain).abs() < 1e-6);
    let database = ["--store", "database", "--instance-usd", "100"];
    let without: f64 = lines(&json(&PLAIN)).iter().filter(|line| line.0.starts_with("Write")).map(|line| line.2).sum();
    assert!(usd(&database) > plain - without && usd(&database) < plain + 100.0);
    assert!(usd(&["--store", "provisioned"]) < plain);
    assert!(
        (plain - usd(&["--free-tier"]) - 6.84).abs() < 0.01,
        "of SQS 0.40, Lambda 0.63, DynamoDB 1.58, CloudWatch 4.23"
    );
    assert!((usd(&["--sent-in", "10"]) - plain - 1.2).abs() < 1e-6);
    assert!((usd(&["--result-bytes", "1500"]) - plain) > 30e6 * 0.625e-6, "a record above 1 KB takes two units");
    for (more, wanted, quantity) in [
        (&["--retries", "100", "--filled", "1"][..], "Deletes", 30e6),
        // A lease that is renewed once: the claim, the renewal, and a completion of two units.
        (&["--handler-ms", "15000", "--renewed-lease", "30", "--result-bytes", "1500"], "Write units", 120e6),
        (&["--handler-ms", "15000", "--renewed-lease", "30"], "Changes of visibility", 60e6),
        (&["--handler-ms", "15000", "--renewed-lease", "30", "--guarantee", "optimistic"], "Write units", 120e6),
        (&["--duplicates", "90"], "Write units", 6e6),
        (&["--duplicates", "90"], "Read units", 30e6),
    ] {
        let found = lines(&json(&with(more)));
        let line = found.iter().find(|line| line.0 == wanted).unwrap_or_else(|| panic!("no {wanted} in {found:?}"));
        assert!((line.1 - quantity).abs() < 1.0, "{more:?}: {line:?}");
    }
    let prices = file("prices.yaml", "region: eu-west-1\nprices: {dynamodb_write: {usd: 1.25}}\n");
    let own = usd(&["--prices", &prices, "--region", "eu-west-1"]);
    let shown = text(&cost(&[&PLAIN[..], &["--prices", &prices]].concat()).stdout);
    assert!(shown.contains("without the free tier; yours where you gave one\n"), "{shown}");
    assert!((own - plain - 37.5).abs() < 1e-6, "{own} {plain}");
    let rate = json(&["--per-second", "10", "--parameter", "MaximumConcurrency=20"]);
    assert_eq!(rate["functions"].as_array().unwrap().len(), 5);
    assert_eq!(rate["functions"][0]["limits"].as_array().unwrap().iter().filter(|l| l["limit"] == 20.0).count(), 1);
}

#[test]
fn what_is_computed_without_the_free_tier_says_so() {
    let options = ["--per-day", "1000000", "--function", "OrderConfirmationFunction", "--free-tier"];
    let free = text(&cost(&options).stdout);
    assert_eq!(free.matches("without the free tier").count(), 2, "{free}");
    let prices = |name: &str| file("free.yaml", &format!("free: {{{name}: 0}}\n"));
    let duration = |prices: &str| {
        let bill = json(&[&PLAIN[..], &["--free-tier", "--prices", prices]].concat());
        lines(&bill).into_iter().find(|line| line.0 == "Duration").unwrap().2
    };
    let (of_arm64, of_x86) = (duration(&prices("lambda_arm64")), duration(&prices("lambda_x86")));
    assert!(of_arm64 > 0.1 && (of_arm64 - of_x86).abs() < 1e-6, "one allowance for both: {of_arm64} {of_x86}");
}

#[test]
fn what_cannot_be_computed_is_refused() {
    for (wrong, says) in [
        (&[][..], "--per-day"),
        (&["--per-day", "0"], "above 0"),
        (&["--per-day", "1,000,000"], "without commas"),
        (&["--per-day", "1e13"], "to 1e12"),
        (&["--per-day", "1", "--per-second", "1"], "cannot be used with"),
        (&["--per-day", "1", "--duplicates", "101"], "from 0 to 100"),
        (&["--per-day", "1", "--body-bytes", "5000000"], "from 0 to 1,048,576"),
        (&["--per-day", "1", "--filled", "20000"], "from 1 to 10,000"),
        (&["--per-day", "1", "--template", "/none/there.yaml"], "check that it exists"),
        (&["--per-day", "1", "--function", "Nobody"], "those that do: OrderConfirmationFunction"),
        (&["--per-day", "1", "--region", "eu-west-1"], "the prices are those of us-east-1"),
        (&["--per-day", "1", "--prices", "/none/there.yaml"], "cannot be read"),
        (&["--per-day", "1", "--template", "infra/alarms.yaml"], "no function reads a queue: give"),
        (&["--per-day", "1", "--store", "database", "--guarantee", "optimistic"], "is for DynamoDB"),
        (&["--per-day", "1", "--batch-size", "20000", "--batching-window", "5"], "20000 is not in 1..=10000"),
        (&["--per-day", "1", "--batching-window", "900"], "900 is not in 0..=300"),
        (&["--per-day", "1", "--batch-size", "50"], "batches of more than 10 need a window: OrderConfirmationFunction"),
    ] {
        let output = cost(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(text(&output.stderr).contains(says), "{wrong:?}: {}", text(&output.stderr));
    }
}

#[test]
fn text_fits_the_terminal() {
    for rate in ["10", "1000", "1000000", "1000000000", "100000000000"] {
        for more in [
            &[][..],
            &["--function", "LoyaltyFunction"],
            &["--function", "AuditFunction", "--guarantee", "transactional"],
        ] {
            let output = cost(&[&["--per-day", rate][..], more].concat());
            let shown = text(&output.stdout);
            assert!(shown.lines().all(|line| line.chars().count() <= 120), "{shown}");
            let table = shown.lines().filter(|line| line.starts_with("total ") || line.contains("Function  "));
            assert!(!more.is_empty() || table.into_iter().all(|line| line.chars().count() <= 100), "{shown}");
            assert!(shown.contains("they may have changed") && shown.contains("Not counted"), "{shown}");
        }
    }
}

/// Blocks of the book that begin with `$ claimant cost …` hold what it prints. `CLAIMANT_WRITE_BOOK=yes` writes them instead.
#[test]
fn the_book_has_what_the_command_prints() {
    for page in PAGES {
        let path = root().join(page);
        let book = fs::read_to_string(&path).unwrap();
        let (mut written, mut rest, mut seen) = (String::new(), book.as_str(), 0);
        while let Some((before, block)) = rest.split_once("```console\n$ claimant cost ") {
            let (command, shown) = block.split_once('\n').unwrap();
            let (_, after) = shown.split_once("```\n").unwrap();
            let args: Vec<_> = command.split_whitespace().collect();
            let output = text(&cost(&args).stdout);
            written += &format!("{before}```console\n$ claimant cost {command}\n{output}```\n");
            (rest, seen) = (after, seen + 1);
        }
        written += rest;
        assert!(seen >= 3, "{page} shows commands");
        if std::env::var_os("CLAIMANT_WRITE_BOOK").is_some() {
            fs::write(&path, written).unwrap();
        } else {
            assert!(
                written == book,
                "{page} is not what the command prints: CLAIMANT_WRITE_BOOK=yes cargo test writes it"
            );
        }
    }
}

/// The picture of the page. `CLAIMANT_WRITE_BOOK=yes` writes it instead.
#[test]
fn the_book_has_the_chart_of_the_command() {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cost.svg");
    let output = cost(&[&PLAIN_RATE[..], &["--chart", made.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let (made, kept) = (fs::read_to_string(made).unwrap(), root().join("docs/cost.svg"));
    if std::env::var_os("CLAIMANT_WRITE_BOOK").is_some() {
        fs::write(&kept, &made).unwrap();
    }
    assert!(
        made == fs::read_to_string(kept).unwrap(),
        "docs/cost.svg is not what the command makes: CLAIMANT_WRITE_BOOK=yes"
    );
    let output = cost(&[&PLAIN_RATE[..], &["--chart", "/none/there.svg"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
}
