//! What is said of requests: never what they hold. In an account that a server on loopback plays.

use std::process::Command;

use serde_json::json;

use crate::aws::Server;
use crate::console::shop::shop;
use crate::dead::World;

const QUEUE: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders";

/// Takes the message of each request.
fn taking(request: &str) -> (u16, String) {
    match request.contains("SendMessageBatch") {
        true => (200, json!({"Successful": [{"Id": "0", "MessageId": "m-1", "MD5OfMessageBody": "x"}]}).to_string()),
        false => shop(request),
    }
}

/// Runs the command with these variables beside those of the account, and this configuration file; returns whether it succeeded, and all
/// that it says.
fn run(server: &Server, variables: &[(&str, &str)], config: &str, args: &[&str]) -> (bool, String) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("config");
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
    command.args(args).envs(server.variables()).env("AWS_CONFIG_FILE", file).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.success(), said)
}

/// The SDK's own words about an endpoint that is no URL quote the whole request, and it panics at an empty one.
#[test]
fn endpoints_that_are_no_urls_are_refused_and_empty_ones_count_as_unset() {
    let server = Server::start(taking);
    let send = ["send", "--queue", QUEUE, "--body", "secret", "--yes"];
    let of_service = "[default]\nservices = own\n[services own]\nsqs =\n  endpoint_url = localhost:4566\n";
    for (variables, config, refused) in [
        ([("AWS_ENDPOINT_URL", "http://127.0.0.1:1 ")].as_slice(), "", "AWS_ENDPOINT_URL sets"),
        (&[("AWS_ENDPOINT_URL_SQS", "localhost:4566")], "", "AWS_ENDPOINT_URL_SQS sets"),
        (
            &[("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "/x"), ("AWS_ENDPOINT_URL_SNS", "x")],
            "",
            "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS sets",
        ),
        (&[("AWS_ENDPOINT_URL", "http://:4566")], "", "AWS_ENDPOINT_URL sets"),
        (&[("AWS_ENDPOINT_URL_SNS", "x")], "", ""),
        (&[("AWS_ENDPOINT_URL", "")], "[default]\nendpoint_url = localhost\n", "endpoint_url of the profile sets"),
        (&[("AWS_ENDPOINT_URL", "")], of_service, "endpoint_url of the profile sets"),
        (&[("AWS_ENDPOINT_URL_SQS", ""), ("AWS_ENDPOINT_URL_DYNAMODB", "")], "", ""),
        (&[("AWS_ENDPOINT_URL", ""), ("AWS_ENDPOINT_URL_SQS", &server.url)], "", ""),
        (&[("AWS_ENDPOINT_URL", "")], &format!("[default]\nendpoint_url = {}\n", server.url), ""),
        (
            &[("AWS_ENDPOINT_URL", ""), ("AWS_ENDPOINT_URL_SQS", "")],
            &format!("[default]\nendpoint_url = {}\n", server.url),
            "",
        ),
    ] {
        let (sent, said) = run(&server, variables, config, &send);
        assert_eq!(sent, refused.is_empty(), "{variables:?} {config}: {said}");
        assert!(said.contains(refused) && !said.contains("secret") && !said.contains("panicked"), "{said}");
        assert_eq!(said.contains("is no endpoint: it has to be a URL with a host"), !sent, "{said}");
    }
}

/// The SDK asks STS by itself, and panics.
#[test]
fn an_empty_endpoint_is_refused_where_the_sdk_asks_sts_for_credentials() {
    let server = Server::start(taking);
    let profiles = "[default]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = keys\n[profile keys]\naws_access_key_id = a\n\
                    aws_secret_access_key = b\n";
    let no_keys = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    for (profile, variables, is_refused) in [
        (None, no_keys.as_slice(), true),
        (None, &[no_keys[0], no_keys[1], ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")], true),
        (None, &[], false),
        (Some("default"), &[], true),
        (Some("keys"), &[no_keys[0], no_keys[1], ("AWS_WEB_IDENTITY_TOKEN_FILE", "/x")], false),
    ] {
        let variables = [variables, &[("AWS_ENDPOINT_URL_STS", "")]].concat();
        let mut args = vec!["send", "--queue", QUEUE, "--body", "secret", "--yes"];
        args.extend(profile.into_iter().flat_map(|profile| ["--profile", profile]));
        let (sent, said) = run(&server, &variables, profiles, &args);
        assert!(sent != is_refused && !said.contains("panicked"), "{args:?} {variables:?}: {said}");
        assert_eq!(said.contains("AWS_ENDPOINT_URL_STS is empty: leave it out"), is_refused, "{said}");
    }
}

/// It can be that of another tool.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_asks_nothing_of_aws_passes_over_its_endpoints() {
    let server = Server::start(taking);
    let (function, store) = ("arn:aws:lambda:eu-west-1:123456789012:function:f", "redis://127.0.0.1:1");
    for (args, says) in [
        (["list", "--store", store].as_slice(), "Redis gave no answer"),
        (&["pause", function, "--store", store, "--yes"], "AWS_ENDPOINT_URL sets is no endpoint"),
    ] {
        let (done, said) = run(&server, &[("AWS_ENDPOINT_URL", "localhost:4566")], "", args);
        assert!(!done && said.contains(says), "{args:?}: {said}");
        assert_eq!(said.contains("is no endpoint"), args[0] == "pause", "{args:?}: {said}");
    }
    let world = World::start().await;
    let output = world.command(&["dead", "list"]).env("AWS_ENDPOINT_URL", "localhost:4566").output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// As something else than a service may: it writes to the clipboard, is red, and is read from right to left.
fn steering(_: &str) -> (u16, String) {
    let message = "\u{1b}]52;c;eA==\u{7}\u{202e}evil\r\u{2028}\u{9b}31m";
    (400, json!({"__type": "ValidationException", "message": message}).to_string())
}

#[test]
fn what_a_service_says_steers_no_terminal() {
    let server = Server::start(steering);
    for args in [
        ["list", "--table", "locks"].as_slice(),
        &["inspect", "order#1", "--table", "locks"],
        &["forget", "order#1", "--table", "locks", "--yes"],
        &["limit", "gateway", "--table", "locks"],
        &["dead", "list", "--queue", QUEUE],
        &["send", "--queue", QUEUE, "--body", "x", "--yes"],
    ] {
        let (done, said) = run(&server, &[], "", args);
        assert!(!done && said.contains(r"\u{1b}]52;c;eA==\u{7}\u{202e}evil\r\u{2028}\u{9b}31m"), "{args:?}: {said}");
        assert!(
            !said.contains(|c: char| c != '\n' && (c.is_control() || "\u{202e}\u{2028}".contains(c))),
            "{args:?}: {said:?}"
        );
    }
}

/// As some services do: the session's token is among the headers that are signed.
fn doubting(_: &str) -> (u16, String) {
    let message = "The signature does not match.\n\nThe Canonical String for this request should have been\n'GET\nx-amz-security-token:secret";
    (403, json!({"__type": "InvalidSignatureException", "message": message}).to_string())
}

#[test]
fn a_refused_signature_does_not_show_what_was_signed() {
    let server = Server::start(doubting);
    let function = "arn:aws:lambda:eu-west-1:123456789012:function:f";
    for args in [
        ["list", "--table", "locks"].as_slice(),
        &["inspect", "order#1", "--table", "locks", "--json"],
        &["forget", "order#1", "--table", "locks", "--yes", "--json"],
        &["limit", "gateway", "--table", "locks"],
        &["dead", "list", "--queue", QUEUE],
        &["send", "--queue", QUEUE, "--body", "x", "--yes"],
        &["pause", function, "--table", "locks", "--yes"],
        &["list", "--stack", "shop"],
        &["doctor", "--stack", "shop"],
    ] {
        let (done, said) = run(&server, &[("AWS_SESSION_TOKEN", "secret")], "", args);
        assert!(!done && said.contains("InvalidSignatureException"), "{args:?}: {said}");
        assert!(!said.contains("secret") && !said.contains("Canonical"), "{args:?}: {said}");
    }
}
