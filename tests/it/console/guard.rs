//! Who may not: other pages, under other names, from other places; and what a page itself may not do.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use super::stage::Stage;

/// Serves one page at a port of its own: to the browser that is another site than the console.
fn another_page(html: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("it is up");
            let _ = stream.read(&mut [0; 4096]).expect("a request");
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n";
            write!(stream, "{head}content-length: {}\r\n\r\n{html}", html.len()).expect("it reads");
        }
    });
    format!("http://localhost:{port}")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries and a browser: make test"]
async fn no_other_page_reads_the_console_or_acts_on_it() {
    let stage = Stage::start(&["order-confirmation"]).await;
    let page = stage.browser.page();
    let pauses = "function=OrderConfirmationFunction&enabled=false";
    let is_on = || stage.json("/")["functions"][0]["mappings"][0]["is_on"].clone();
    assert_eq!(is_on(), true);

    // A name of another that resolves to this machine: DNS rebinding.
    let port = stage.address.rsplit(':').next().expect("a port");
    page.open(&format!("http://rebound.example:{port}/"));
    assert!(!page.text("body").contains("OrderQueue"), "{}", page.text("body"));
    // A form of another page, which the browser sends with what it knows of it.
    let form = format!(
        "<form method=post action='{}/mappings'><input name=function value=OrderConfirmationFunction>
         <input name=enabled value=false><button>Win a prize</button></form>",
        stage.address
    );
    page.open(&another_page(form));
    page.click("text=Win a prize");
    page.until("the answer", &format!("location.origin === '{}'", stage.address));
    assert_eq!(is_on(), true, "another page paused a function");
    // A frame of another page, in which a person would click what is not seen.
    page.open(&another_page(format!("<p>Prizes<iframe src='{}/'></iframe>", stage.address)));
    let complaints = page.complaints().join("\n");
    assert!(complaints.contains("frame"), "{complaints}");
    // What another page may fetch it may not read.
    page.open(&another_page("<p>Prizes".to_owned()));
    let read = page.eval(&format!("fetch('{}/').then(a => a.text()).catch(() => 'not read')", stage.address));
    assert_eq!(read, "not read");

    // Programs that say what no browser would let a page say.
    for headers in [
        [("host", "evil.example"), ("x", "x")],
        [("host", "127.0.0.1:1"), ("x", "x")],
        [("origin", "null"), ("x", "x")],
        [("origin", "http://evil.example"), ("x", "x")],
        [("sec-fetch-site", "same-site"), ("origin", stage.address.as_str())],
        [("sec-fetch-site", "cross-site"), ("x", "x")],
    ] {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let (status, _, body) = stage.ask("POST", "/mappings", &[headers[0], headers[1], form], pauses);
        assert_eq!(status, 403, "{headers:?}: {body}");
        if headers[0].0 == "host" {
            let (status, _, body) = stage.ask("GET", "/", &headers, "");
            assert!(status == 403 && !body.contains("OrderQueue"), "{headers:?}: {body}");
        }
    }
    assert_eq!(is_on(), true);
    // Every answer has the rules that keep a page from loading or running anything else.
    for path in ["/", "/messages", "/assets/console.css", "/nowhere"] {
        let (_, head, _) = stage.ask("GET", path, &[], "");
        for rule in ["default-src 'none'", "frame-ancestors 'none'", "nosniff", "no-referrer"] {
            assert!(head.contains(rule), "{path}: {head}");
        }
        assert!(!head.contains("unsafe"), "{path}: {head}");
    }
    stage.end().await;
}
