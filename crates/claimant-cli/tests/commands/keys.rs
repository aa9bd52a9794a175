//! Acts on keys and limits, as people call them, on a local cloud.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use claimant_core::{Clock as _, ConsumerName, Key, RecordId, SystemClock};
use claimant_local::sqs::NewMessage;
use serde_json::{Value, json};

use crate::aws::Server;
use crate::console::shop::shop;
use crate::dead::World;
use crate::deployed::resources;

pub(crate) const TABLE: &str = "
  Locks:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: Locks
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_none_is_told_before_the_others_are_acted_on() {
    let world = World::of(TABLE).await;
    let (code, out, err) = world.claimant(&["release", "order#1", "none", "--table", "Locks", "--yes"]).await;
    assert!(code == 2 && err.contains("none: the key has no consumer"), "{err}");
    assert!(err.contains("claimant list running stuck completed failed rejected parked --text"), "{err}");
    assert_eq!(out, "");
    world.cloud.stop().await;
}

/// As where FIPS is required: the SDK refuses an endpoint that is named with it.
#[tokio::test(flavor = "multi_thread")]
async fn the_kinds_of_endpoints_that_a_profile_asks_for_are_not_asked_of_a_local_cloud() {
    let world = World::of(TABLE).await;
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    let config = "[default]\nuse_fips_endpoint = true\nuse_dualstack_endpoint = true\n";
    std::fs::write(home.path().join(".aws/config"), config).unwrap();
    for args in [["list"].as_slice(), &["dead", "list"]] {
        let mut command = world.command(args);
        let command = command.env("HOME", home.path()).env_remove("AWS_CONFIG_FILE");
        let output = command.output().await.unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !err.contains("FIPS"), "{args:?}: {err}");
    }
    world.cloud.stop().await;
}

/// Writes a record to the table of this cloud.
fn put(world: &World, id: &str, status: &str, message: &str) {
    let now_ms = SystemClock.now().as_millis();
    let number = |ms: u64| json!({ "N": ms.to_string() });
    let item = json!({
        "id": {"S": id}, "status": {"S": status}, "owner": {"S": "o"}, "fence": number(1), "lease_until": number(now_ms),
        "attempts": number(1), "message_id": {"S": message}, "fingerprint": {"B": format!("{}=", "A".repeat(43))},
        "created_at": number(now_ms - 2_000), "updated_at": number(now_ms - 2_000), "expires_at": number(now_ms / 1_000 + 3_600),
    });
    let (url, request) = (&world.cloud.endpoints().dynamodb, json!({"TableName": "Locks", "Item": item}).to_string());
    let (host, length) = (url.trim_start_matches("http://"), request.len());
    let signed =
        "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0";
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST / HTTP/1.1\r\nHost: {host}\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\nContent-Type: application/x-amz-json-1.0\r\n\
         Authorization: {signed}\r\nX-Amz-Date: 20260101T000000Z\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{request}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// As within 15 days after `.hashed_keys()` was added, or removed. An act on the one that no function goes by would change nothing, and say so.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_records_of_a_key_both_are_shown_and_none_is_acted_on_unless_it_is_named() {
    let world = World::of(TABLE).await;
    let hashed = RecordId::hashed(&ConsumerName::new("order").unwrap(), &Key::new("7").unwrap());
    let hashed = hashed.as_str();
    put(&world, "order#7", "REJECTED", "m-1");
    world.letter("old", "rejected", "a");
    // As long as there is one, it is what the text means.
    let (_, alone) = world.json(&["inspect", "order#7", "--table", "Locks"]).await;
    assert_eq!((&alone["record"], &alone["other"]), (&json!("order#7"), &Value::Null), "{alone}");
    let (_, out, _) = world.claimant(&["inspect", "order#7", "--table", "Locks"]).await;
    assert!(!out.contains("two records") && !out.contains(", of order"), "{out}");

    put(&world, hashed, "PARKED", "m-2");
    world.letter_of(hashed, "Dead", ("new", "parked"), "b");
    // As for the acts, the text means both, and the id of the hashed one that alone.
    for (record, letters) in [("order#7", &["old", "new"][..]), (hashed, &["new"])] {
        let (code, found) = world.json(&["dead", "list", "--record", record]).await;
        let errors =
            found["queues"][0]["letters"].as_array().unwrap().iter().map(|letter| letter["error"].as_str().unwrap());
        assert_eq!((code, errors.collect::<Vec<_>>()), (1, letters.to_vec()), "{record}: {found}");
    }
    let (code, _, err) = world.claimant(&["dead", "discard", "--record", "7", "--yes"]).await;
    assert!(code == 2 && err.contains("--record 7: the key has no consumer"), "{err}");
    let names = format!("order#7 (rejected) and {hashed} (parked)");
    for key in [&["order#7"][..], &["7", "--consumer", "order"]] {
        let (code, out, err) = world.claimant(&[&["inspect", "--table", "Locks"], key].concat()).await;
        assert!(code == 1 && out.starts_with(&format!("The key has two records, {names}: ")), "{out}{err}");
        for shown in ["order#7  (Locks, rejected)\n".to_owned(), format!("{hashed}  (Locks, parked)\n")] {
            assert!(out.contains(&shown), "{shown}: {out}");
        }
        for (id, error) in [("order#7", "old"), (hashed, "new")] {
            let its = |line: &str| line.contains(&format!(", of {id}")) && line.ends_with(&format!(": {error}"));
            assert!(out.lines().any(its), "{id}: {out}");
        }
        let (_, shown) = world.json(&[&["inspect", "--table", "Locks"], key].concat()).await;
        let letters: Vec<_> = shown["dead_letters"].as_array().unwrap().iter().map(|one| &one["record"]).collect();
        assert_eq!(letters, ["order#7", hashed], "{shown}");
        assert_eq!(shown["dead_letters"][0]["queue"], json!("Dead"), "{shown}");
        let found = [&shown["found"]["status"], &shown["other"]["found"]["status"]];
        assert_eq!(found, ["REJECTED", "PARKED"], "{shown}");
        assert_eq!((&shown["other"]["record"], &shown["other"]["store"]), (&json!(hashed), &json!("Locks")));
        for act in ["release", "reset", "forget", "resolve"] {
            for force in [&[][..], &["--force"]] {
                let args = [&[act, "--yes", "--table", "Locks"], key, force].concat();
                let (code, out, err) = world.claimant(&args).await;
                let refused = format!("order#7: refused: the key has two records, {names}. ");
                assert!(code == 1 && out.starts_with(&refused) && out.contains("--exact"), "{args:?}: {out}{err}");
            }
        }
        let (code, refused) = world.json(&[&["release", "--yes", "--table", "Locks"], key].concat()).await;
        let came = &refused["keys"][0];
        assert_eq!((code, &came["outcome"], &came["why"]), (1, &json!("refused"), &json!("two_records")), "{refused}");
        assert_eq!(came["records"], json!(["order#7", hashed]), "{refused}");
    }

    // What SQS moved names no record: it is of that of its message, where one alone is.
    let moved = world.cloud.sqs().send("Dead", NewMessage::new("moved")).unwrap().message_id;
    let of_moved = async |of_hashed: &str| {
        put(&world, "order#7", "REJECTED", &moved);
        put(&world, hashed, "PARKED", of_hashed);
        let (_, shown) = world.json(&["inspect", "order#7", "--table", "Locks"]).await;
        let mut letters = shown["dead_letters"].as_array().unwrap().iter();
        letters.find(|one| one["message_id"] == json!(moved)).unwrap()["record"].clone()
    };
    assert_eq!((of_moved("m-2").await, of_moved(&moved).await), (json!("order#7"), Value::Null));
    put(&world, hashed, "PARKED", "m-2");

    let (code, out, err) = world.claimant(&["resolve", hashed, "--yes", "--table", "Locks"]).await;
    assert!(code == 0 && out.starts_with(&format!("{hashed}: was PARKED; counts as done")), "{out}{err}");
    let (code, out, err) = world.claimant(&["forget", "order#7", hashed, "--exact", "--yes", "--table", "Locks"]).await;
    assert!(code == 1 && out.starts_with("order#7: was REJECTED; forgotten"), "{out}{err}");
    assert!(out.contains(&format!("\n{hashed}: refused: it is done.")), "{out}");
    // The forgotten one is over, and stands in the way of no act on the other.
    let (_, alone) = world.json(&["inspect", "order#7", "--table", "Locks"]).await;
    assert_eq!((&alone["record"], &alone["other"]), (&json!(hashed), &Value::Null), "{alone}");
    let (_, out, err) = world.claimant(&["release", "order#7", "--yes", "--table", "Locks"]).await;
    assert!(out.starts_with(&format!("{hashed}: refused: it is done.")), "{out}{err}");
    let (code, _, err) = world.claimant(&["forget", "7", "--exact", "--consumer", "order", "--table", "Locks"]).await;
    assert!(code == 2 && err.contains("--consumer"), "{err}");
    world.cloud.stop().await;
}

/// Answers as [`shop`] does, but has an item without attributes, which is no record.
fn spoilt(request: &str) -> (u16, String) {
    match request.contains("DynamoDB_20120810.GetItem") && request.contains("order#bad") {
        true => (200, json!({"Item": {"id": {"S": "order#bad"}}}).to_string()),
        false => shop(request),
    }
}

#[test]
fn keys_that_are_not_reached_for_want_of_an_answer_are_named() {
    let server = Server::start(spoilt);
    let release = ["release", "order#bad", "order#o-9", "order#o-7", "--table", "locks", "--json"];
    let (code, out, err) = server.claimant(&release);
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    assert!(code == Some(2) && err.contains("There is no terminal to ask on"), "{err}");
    assert_eq!(shown["not_reached"], json!(["order#o-9", "order#o-7"]), "{shown}");
}

#[test]
fn a_store_error_at_one_key_hides_no_act_on_the_others() {
    let server = Server::start(spoilt);
    let release = |args: &[&str]| {
        let all = ["release", "order#o-9", "order#bad", "order#o-7", "--table", "locks", "--yes"];
        server.claimant(&[&all[..], args].concat())
    };
    let (code, out, err) = release(&["--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    let keys = shown["keys"].as_array().unwrap();
    let came: Vec<_> =
        keys.iter().map(|key| (key["record"].as_str().unwrap(), key["outcome"].as_str().unwrap())).collect();
    assert_eq!(came, [("order#o-9", "done"), ("order#bad", "failed"), ("order#o-7", "refused")], "{shown}");
    assert!(keys[1]["why"].as_str().is_some_and(|why| !why.is_empty()), "{shown}");
    assert!(code == Some(2) && err.contains("for 1 of 3 keys, of which order#bad is the first"), "{err}");
    let (code, out, _) = release(&[]);
    let lines: Vec<_> = out.lines().collect();
    assert!(code == Some(2) && lines.len() == 3 && lines[0].contains("may run again"), "{out}");
    assert!(lines[1].starts_with("order#bad: failed, and nothing was written: "), "{out}");
}

/// Answers as [`shop`] does, of a key with a tab and a NUL.
fn with_a_nul(request: &str) -> (u16, String) {
    let (status, answer) = shop(&request.replace(r"order#\t\u00009", "order#o-9"));
    (status, answer.replace("order#o-9", r"order#\t\u00009"))
}

/// Else a key that is typed as it is shown is another one, or none.
#[test]
fn a_key_is_shown_as_a_shell_takes_it() {
    let (server, shown) = (Server::start(with_a_nul), r"$'order#\t\300\2009'");
    for args in ["list rejected", &format!("inspect {shown}"), &format!("release {shown} --yes")] {
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(format!("{} {args} --table locks", env!("CARGO_BIN_EXE_claimant")));
        let output = shell.envs(server.variables()).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(out.contains(shown) && !out.contains("no record"), "{args}: {out}{err}");
    }
}

/// Else the command would act on the account whose keys happen to be in the environment.
#[test]
fn a_profile_that_is_named_is_the_account_that_is_acted_on() {
    let server = Server::start(shop);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("credentials-of-prod");
    std::fs::write(&file, "[prod]\naws_access_key_id = AKIAPROD\naws_secret_access_key = s3cret\n").unwrap();
    let run = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
        command.args(["inspect", "order#o-9", "--table", "locks"]).args(options).envs(server.variables());
        let output = command.env("AWS_SHARED_CREDENTIALS_FILE", &file).env("PATH", bare()).output().unwrap();
        let requests = std::mem::take(&mut *server.requests.lock().unwrap());
        (requests, String::from_utf8(output.stderr).unwrap())
    };
    for (options, key) in [(&[][..], "AKIDEXAMPLE"), (&["--profile", "prod"][..], "AKIAPROD")] {
        let (requests, err) = run(options);
        let credential = format!("Credential={key}/");
        assert!(
            !requests.is_empty() && requests.iter().all(|request| request.contains(&credential)),
            "{requests:?}{err}"
        );
    }
    // One that is not there is no reason to use others.
    let (requests, err) = run(&["--profile", "pord"]);
    assert!(requests.is_empty() && err.contains("pord"), "{requests:?}{err}");
}

/// As most people's are: signed in with a browser, which the AWS CLI does.
#[test]
fn a_profile_that_only_the_aws_cli_can_sign_in_with_is_asked_of_it() {
    let server = Server::start(shop);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("profiles-of-people");
    std::fs::create_dir_all(&dir).unwrap();
    let printed = |key: &str| {
        format!(r#"{{"Version":1,"AccessKeyId":"{key}","SecretAccessKey":"s3cret","SessionToken":"t0ken"}}"#)
    };
    std::fs::write(dir.join("printed"), printed("AKIAPROCESS")).unwrap();
    let sso = "sso_session = corp\nsso_account_id = 123456789012\nsso_role_name = ops\n";
    let config = format!(
        "[sso-session corp]\nsso_start_url = https://corp.awsapps.com/start\nsso_region = eu-west-1\n[profile people]\n{sso}\
         [profile out]\n{sso}[profile process]\ncredential_process = cat '{}'\n",
        dir.join("printed").display()
    );
    std::fs::write(dir.join("config"), config).unwrap();
    // It notes what it was asked, and is signed in with one profile.
    let cli = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{asked}'\ncase $* in *people*) sleep 3; echo '{answer}' ;;\n\
         *) sleep 3; echo 'Token has expired and refresh failed' >&2; exit 255 ;;\nesac\n",
        asked = dir.join("asked").display(),
        answer = printed("AKIAPEOPLE"),
    );
    executable(&dir.join("bin/aws"), &cli);
    let _ = std::fs::remove_file(dir.join("asked"));
    let run = |with_cli: bool, options: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
        command.args(["inspect", "order#o-9", "--table", "locks"]).args(options).envs(server.variables());
        if with_cli {
            let path = std::env::var("PATH").unwrap_or_default();
            command.env("PATH", format!("{}:{path}", dir.join("bin").display()));
        } else {
            command.env("PATH", bare());
        }
        let output =
            command.env("AWS_CONFIG_FILE", dir.join("config")).envs(variables.iter().copied()).output().unwrap();
        let requests = std::mem::take(&mut *server.requests.lock().unwrap());
        (requests, String::from_utf8(output.stderr).unwrap())
    };
    let asked = || std::fs::read_to_string(dir.join("asked")).unwrap_or_default();
    let by_variable = [("AWS_PROFILE", "people"), ("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    for (options, variables, key) in [
        (&["--profile", "process"][..], &[][..], "AKIAPROCESS"),
        (&["--profile", "people"], &[], "AKIAPEOPLE"),
        (&[], &by_variable, "AKIAPEOPLE"),
    ] {
        let (requests, err) = run(true, options, variables);
        let credential = format!("Credential={key}/");
        assert!(!requests.is_empty() && requests.iter().all(|r| r.contains(&credential)), "{requests:?}{err}");
    }
    let export = "configure export-credentials --format process";
    assert_eq!(asked(), format!("{export} --profile people\n{export} --profile people\n"));
    for (with_cli, why) in [(true, "Token has expired and refresh failed"), (false, "not found")] {
        let (requests, err) = run(with_cli, &["--profile", "out"], &[]);
        assert!(requests.is_empty() && err.contains("aws sso login") && err.contains(why), "{requests:?}{err}");
    }
    assert_eq!(asked().matches("--profile out").count(), 1, "{}", asked());
}

/// A directory of programs with the shell alone, without an `aws` that the machine may have.
fn bare() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare");
    std::fs::create_dir_all(&dir).unwrap();
    // It may be there.
    let _ = std::os::unix::fs::symlink("/bin/sh", dir.join("sh"));
    dir
}

/// Writes a program that a shell can find.
fn executable(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, script).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_json_where_that_is_asked_for() {
    let world = World::of(TABLE).await;
    let limit = ["limit", "ses", "--rate", "20/s", "--table", "Locks", "--json"];
    for more in ["--dry-run", "--yes"] {
        let (code, out, err) = world.claimant(&[&limit[..], &[more]].concat()).await;
        let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{more}: {e}: {out}{err}"));
        assert_eq!((code, &shown["limit"]), (0, &Value::from("ses")), "{shown}");
        let is_dry_run = more == "--dry-run";
        let of = if is_dry_run { &shown["would_set"] } else { &shown["set"] };
        assert_eq!(of["calls"], 20, "{shown}");
        assert_eq!((shown["slots"].is_array(), shown["slots_not_known"].is_string()), (!is_dry_run, is_dry_run));
    }
    world.cloud.stop().await;
}

/// Answers as [`shop`] does, but has the record of a limit, and refuses to show its slots.
fn without_slots(request: &str) -> (u16, String) {
    let number = |value: &str| json!({ "N": value });
    let own = json!({
        "id": {"S": "claimant-rate#ses"}, "status": {"S": "IN_PROGRESS"}, "owner": {"S": "12e456aa"}, "fence": number("3"),
        "lease_until": number("1700000000000"), "attempts": number("0"), "message_id": {"S": "claimant limit"},
        "fingerprint": {"B": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}, "created_at": number("1700000000000"),
        "updated_at": number("1700000000000"), "expires_at": number("2000000000"),
    });
    match request.contains("DynamoDB_20120810.GetItem") {
        true if request.contains("claimant-rate#ses/") => {
            (400, json!({"__type": "AccessDeniedException", "message": "not you"}).to_string())
        }
        true => (200, json!({ "Item": own }).to_string()),
        false => shop(request),
    }
}

/// It is when much is asked of a table that limits are lowered.
#[test]
fn a_limit_is_set_and_shown_though_its_slots_cannot_be_read() {
    let server = Server::start(without_slots);
    // A reason is of a change.
    let (code, _, err) = server.claimant(&["limit", "ses", "--table", "locks", "--why", "half the quota"]);
    assert!(code == Some(2) && err.contains("--rate"), "{err}");
    for (act, ends, says, set, changed) in [
        (&["--rate", "20/s", "--yes"][..], 0, "ses: 20 a second (", json!(20), json!(false)),
        (&[], 2, "ses: as the functions set it\n", Value::Null, Value::Null),
    ] {
        let limit = [&["limit", "ses", "--table", "locks"], act].concat();
        let (code, out, err) = server.claimant(&limit);
        assert!(code == Some(ends) && out.starts_with(says), "{out}{err}");
        assert!(err.contains("Who has its slots is not known: ") && err.contains("not you"), "{err}");
        let (code, out, err) = server.claimant(&[&limit[..], &["--json"]].concat());
        let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        assert_eq!((code, &shown["set"]["calls"], &shown["slots"]), (Some(ends), &set, &Value::Null), "{shown}");
        assert!(shown["slots_not_known"].is_string() && shown["changed"] == changed, "{shown}");
    }
}

/// Answers as [`with_a_second_table`] does, but the first table never ends.
fn first_endless(request: &str) -> (u16, String) {
    let (status, answer) = with_a_second_table(request);
    if !request.contains("DynamoDB_20120810.Scan") {
        return (status, answer);
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    let mut page: Value = serde_json::from_str(&answer).unwrap();
    page["LastEvaluatedKey"] = json!({"id": {"S": "order#o-7"}});
    (status, page.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_list_found_before_ctrl_c_is_shown() {
    let server = Server::start(first_endless);
    let list = ["list", "completed", "rejected", "--stack", "shop", "--yes"];
    let (code, out, err) = server.interrupted(&list, "DynamoDB_20120810.Scan").await;
    assert_eq!(code, Some(130), "{out}{err}");
    assert!(out.contains("order#o-9") && out.contains("… and perhaps more: it was ended before"), "{out}{err}");
    assert!(out.ends_with("Not read: more.\n"), "{out}");
}

/// Answers as [`shop`] does, but its table has an item whose attributes have names that the command does not know.
fn renamed(request: &str) -> (u16, String) {
    let items = json!({"Items": [{"id": {"S": "order#o-9"}}], "Count": 1, "ScannedCount": 1});
    if request.contains("DynamoDB_20120810.Scan") { (200, items.to_string()) } else { shop(request) }
}

#[test]
fn a_list_that_finds_only_what_it_does_not_know_does_not_end_well() {
    let server = Server::start(renamed);
    for more in [&[][..], &["--json"]] {
        let (code, out, err) = server.claimant(&[&["list", "--table", "locks"], more].concat());
        assert!(code == Some(2) && err.contains("not known whether all is well in locks"), "{out}{err}");
    }
    // Of Redis alone; nothing is asked.
    let (code, _, err) = server.claimant(&["list", "--store", "postgres://db.invalid/shop", "--prefix", "orders"]);
    assert!(code == Some(2) && err.contains("leave --prefix out"), "{err}");
}

/// A name that is mistyped is no all-clear.
#[test]
fn a_list_that_finds_nothing_says_what_it_looked_for() {
    let server = Server::start(shop);
    for (filter, says) in [
        (&["failed", "running"][..], "No key is failed or running. Records read: "),
        (&["failed", "--consumer", "oder"], "No key of oder is failed. Records read: "),
        (
            &["failed", "--text", "a\u{7}b"],
            "No key with a\\u{7}b in its id, error, note or message id is failed. Records read: ",
        ),
        (
            &["completed", "--consumer", "oder", "--text", "x"],
            "No key of oder with x in its id, error, note or message id is completed. Records read: ",
        ),
    ] {
        let (code, out, err) = server.claimant(&[&["list", "--table", "locks"], filter].concat());
        assert!(code == Some(0) && out.starts_with(says), "{filter:?}: {out}{err}");
    }
}

#[test]
fn more_keys_than_one_command_takes_are_counted() {
    let keys = |count: usize| (0..count).map(|n| format!("order#{n}")).collect::<Vec<_>>();
    let server = Server::start(shop);
    for (act, max, what) in [
        (&["release", "--table", "locks", "--yes"][..], 1_000, "keys"),
        (&["dead", "redrive", "--queue", "q", "--yes"], 1_000, "ids"),
        (&["dead", "discard", "--queue", "q", "--yes"], 1_000, "ids"),
        (&["dead", "show", "--queue", "q"], 100, "ids"),
    ] {
        let keys = keys(max + 1);
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        let (code, out, err) = server.claimant(&[act, &keys].concat());
        let says = format!("error: give {max} {what} at most; {} were given (xargs -n {max} divides them)", max + 1);
        assert!(code == Some(2) && err.trim() == says, "{act:?}: {out}{err}");
    }
    assert!(server.requests.lock().unwrap().is_empty());
}

/// As a table is whose name is misspelt in the template. No other table is taken for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_table_that_is_not_there_is_told_with_its_function() {
    let function = |name: &str, table: &str| {
        format!(
            "  {name}:
    Type: AWS::Serverless::Function
    Metadata: {{BuildMethod: rust-cargolambda, BuildProperties: {{Binary: {name}}}}}
    Properties: {{Handler: bootstrap, Runtime: provided.al2023, Environment: {{Variables: {{CLAIMANT_TABLE: {table}}}}}}}
"
        )
    };
    let said = "Pack has CLAIMANT_TABLE=Lokcs, and there is no such table";
    let world = World::of(&format!("{TABLE}{}", function("Pack", "Lokcs"))).await;
    for command in [&["list"][..], &["inspect", "order#7"], &["release", "order#7", "--yes"]] {
        let (code, out, err) = world.claimant(command).await;
        let says =
            format!("has no table of records: {said}; a table that is there is read with --table NAME, of Locks\n");
        assert!(code == 2 && err.contains(&says), "{command:?}: {out}{err}");
    }
    let (code, out, err) = world.claimant(&["list", "--table", "Locks"]).await;
    assert!(code == 0 && !err.contains("no such table"), "{out}{err}");
    world.cloud.stop().await;
    // Beside one that is there.
    let world = World::of(&format!("{TABLE}{}{}", function("Pack", "Lokcs"), function("Ship", "!Ref Locks"))).await;
    let (code, out, err) = world.claimant(&["list"]).await;
    assert!(code == 0 && out.starts_with("No key is ") && err.contains(&format!("{said}\n")), "{out}{err}");
    assert!(!err.contains("Ship") && !err.contains("\nIn "), "{err}");
    world.cloud.stop().await;
    // Whose name is shown to no one, nor is it known by that what it is called that is there.
    let hidden = |value: &str| format!("Parameters: {{Hidden: {{Type: String, NoEcho: true, Default: {value}}}}}\n");
    let pack = function("Pack", "!Ref Hidden");
    let world = World::of(&format!("{TABLE}{pack}{}", hidden("s3cret"))).await;
    for command in [&["list"][..], &["inspect", "order#7"]] {
        let (code, out, err) = world.claimant(command).await;
        let says = "Pack has CLAIMANT_TABLE=****, and there is no such table";
        assert!(code == 2 && err.contains(says) && !err.contains("s3cret"), "{command:?}: {out}{err}");
    }
    world.cloud.stop().await;
    let world = World::of(&format!("{TABLE}{pack}{}", hidden("Locks"))).await;
    let (code, out, err) = world.claimant(&["list"]).await;
    assert!(code == 0 && out.starts_with("No key is ") && !err.contains("****"), "{out}{err}");
    world.cloud.stop().await;
}

/// Answers as [`shop`] does, where Lambda says in which account its function is.
fn shop_in_account(request: &str) -> (u16, String) {
    let (status, answer) = shop(request);
    let arn = "arn:aws:lambda:eu-west-1:123456789012:function:worker";
    let function = "\"FunctionName\":\"worker\"";
    (status, answer.replace(function, &format!("{function},\"FunctionArn\":\"{arn}\"")))
}

/// The same names are in other accounts and Regions. What asks says it in its question, too.
#[test]
fn what_reads_and_what_does_not_ask_says_where_that_is() {
    let server = Server::start(shop_in_account);
    // The account is played by a server.
    let endpoint = format!("the endpoint {}.\n", server.url.trim_start_matches("http://"));
    let (stack, table) = (&*format!("In the stack shop, {endpoint}"), &*format!("In {endpoint}"));
    for (args, says) in [
        ("list --stack shop", stack),
        ("inspect order#o-9 --stack shop", stack),
        ("limit ses --stack shop", stack),
        ("dead list --stack shop", stack),
        ("dead show 1 --stack shop", stack),
        ("forget order#none --stack shop --yes", stack),
        ("dead discard 1 --yes --stack shop", stack),
        ("resume worker --yes --wait 0 --stack shop", stack),
        ("list --table locks", table),
        ("inspect order#o-9 --table locks", table),
        ("dead list --queue https://sqs.eu-west-1.amazonaws.com/123456789012/orders-dead", table),
    ] {
        let args: Vec<_> = args.split(' ').collect();
        let (_, out, err) = server.claimant(&args);
        assert_eq!(err.matches(says).count(), 1, "{args:?}: {out}{err}");
        let (_, out, err) = server.claimant(&[&args[..], &["--json"]].concat());
        assert!(!err.contains(says), "{args:?}: {out}{err}");
    }
}

/// Answers as [`shop`] does, of a stack with a second table, of which nothing may be read.
fn second_refused(request: &str) -> (u16, String) {
    match request.contains("DynamoDB_20120810.") && request.contains("\"more\"") {
        true => (403, json!({"__type": "AccessDeniedException", "message": "not you"}).to_string()),
        false => with_a_second_table(request),
    }
}

/// Answers as [`shop`] does, of a stack with a second table, which is large.
pub(crate) fn with_a_second_table(request: &str) -> (u16, String) {
    if request.contains("Action=ListStackResources") {
        return resources(&[("AWS::Lambda::Function", "worker"), ("AWS::Lambda::Function", "xtra")], "");
    }
    if request.starts_with("GET /2015-03-31/functions/xtra ") {
        let variables = json!({"Variables": {"CLAIMANT_TABLE": "more"}});
        return (200, json!({"Configuration": {"FunctionName": "xtra", "Environment": variables}}).to_string());
    }
    let (status, answer) = shop(request);
    let is_large = request.contains("DynamoDB_20120810.DescribeTable") && request.contains("\"more\"");
    (status, if is_large { answer.replace("81920", "99000000000") } else { answer })
}

/// Who takes the keys from it does not look at each field.
#[test]
fn json_that_is_not_all_is_said_beside_it() {
    let server = Server::start(shop);
    for (limit, is_said) in [("1", true), ("100", false)] {
        let (code, out, err) =
            server.claimant(&["list", "completed", "rejected", "--table", "locks", "--json", "--limit", limit]);
        let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        assert_eq!((code, &shown["stores"][0]["more"]), (Some(1), &json!(is_said)), "{shown}");
        assert_eq!(
            err.contains("locks: … and more, older ones perhaps: 1 of them are shown (--limit)."),
            is_said,
            "{err}"
        );
    }
}

/// What it cost to read the others is paid.
#[test]
fn what_was_read_before_a_store_that_cannot_be_is_shown() {
    let server = Server::start(second_refused);
    let (code, out, err) = server.claimant(&["list", "--stack", "shop"]);
    assert!(code == Some(2) && err.contains("error: ") && err.contains("DescribeTable"), "{out}{err}");
    assert!(out.starts_with("locks:\n") && out.contains("order#o-9") && out.ends_with("Not read: more.\n"), "{out}");
    let (code, out, err) = server.claimant(&["list", "--stack", "shop", "--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    assert_eq!((code, &shown["not_read"], &shown["stores"][0]["store"]), (Some(2), &json!(["more"]), &json!("locks")));
}
