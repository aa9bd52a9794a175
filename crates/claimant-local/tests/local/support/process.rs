//! The function's side: a blocking client of the runtime API that does what its event says.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// Takes events until the runtime API ends. Does nothing when the test binary was not started as a function.
pub(crate) fn run() {
    let Ok(api) = std::env::var("AWS_LAMBDA_RUNTIME_API") else { return };
    match std::env::var("INIT").as_deref() {
        Ok("exit") => std::process::exit(7),
        Ok("hang") => hang(),
        Ok("error") => {
            post(&api, "init/error", br#"{"errorType": "Config", "errorMessage": "TABLE is not set"}"#);
            std::process::exit(1);
        }
        _ => {}
    }
    loop {
        let event = call(&api, "GET", "invocation/next", b"");
        let id = event.headers["lambda-runtime-aws-request-id"].clone();
        let payload: Value = serde_json::from_slice(&event.body).unwrap();
        match payload["Records"].as_array() {
            Some(records) => handle_records(&api, &id, records),
            None => handle_order(&api, &id, &event, &payload),
        }
    }
}

fn handle_order(api: &str, id: &str, event: &Answer, payload: &Value) {
    let respond = |value: &Value| post(api, &format!("invocation/{id}/response"), value.to_string().as_bytes());
    let status = match payload["do"].as_str().unwrap() {
        "echo" => respond(payload),
        "pid" => respond(&json!(std::process::id())),
        "context" => respond(&json!({"headers": event.headers, "env": std::env::vars().collect::<BTreeMap<_, _>>()})),
        "error" => post(
            api,
            &format!("invocation/{id}/error"),
            br#"{"errorType": "Boom", "errorMessage": "it broke", "stackTrace": []}"#,
        ),
        "stale" => {
            let stale = post(api, "invocation/00000000-0000-0000-0000-000000000000/response", b"null");
            respond(&json!({"stale": stale}))
        }
        "large" => {
            let size = usize::try_from(payload["bytes"].as_u64().unwrap()).unwrap();
            post(api, &format!("invocation/{id}/response"), &vec![b' '; size])
        }
        "exit" => std::process::exit(3),
        "hang" => {
            println!("\nhanging {}", std::process::id());
            hang()
        }
        "spawn" => {
            let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
            println!("\nspawned {}", child.id());
            child.wait().unwrap();
            0
        }
        "wait" => {
            println!("\nwaiting {}", std::process::id());
            wait_for(payload["file"].as_str().unwrap());
            respond(payload)
        }
        other => panic!("an event that says {other}"),
    };
    println!("\nstatus {status}");
    eprintln!("done {}", payload["do"]);
}

fn handle_records(api: &str, id: &str, records: &[Value]) {
    println!("\nbatch {}", records.len());
    let mut failures = Vec::new();
    for record in records {
        let body = record["body"].as_str().unwrap();
        println!("\ngot {body}");
        match body.split_once(' ').unwrap_or((body, "")) {
            ("exit", _) => std::process::exit(3),
            ("hang", _) => hang(),
            ("wait", file) => wait_for(file),
            ("fail", _) => failures.push(json!({"itemIdentifier": record["messageId"]})),
            _ => {}
        }
    }
    let reply = std::env::var("REPLY");
    let reply = reply.unwrap_or_else(|_| json!({"batchItemFailures": failures}).to_string());
    post(api, &format!("invocation/{id}/response"), reply.as_bytes());
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1_000));
    }
}

fn wait_for(file: &str) {
    while !Path::new(file).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn post(api: &str, path: &str, body: &[u8]) -> u16 {
    call(api, "POST", path, body).status
}

fn call(api: &str, method: &str, path: &str, body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(api).unwrap();
    let length = body.len();
    let head = format!(
        "{method} /2018-06-01/runtime/{path} HTTP/1.1\r\nhost: {api}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.filter_map(|line| line.split_once(": "));
    Answer {
        status,
        headers: headers.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        body: answer[end + 4..].to_vec(),
    }
}
