//! The browser of these tests sees what is wrong with a page: each fault that the pages must not have is found on one that has it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use claimant_tests::browser::{Browser, DESKTOP, PHONE};

const GOOD: &str = "<!doctype html><html lang=en><title>Good</title><main><h1>Good</h1>
    <form method=post action=/sent><label>Name <input name=name></label> <button>Send it</button></form></main>";

/// What is said against each, and the page.
const BAD: [(&str, &str); 8] = [
    ("color-contrast", "<!doctype html><html lang=en><title>Bad</title><main><h1>Bad</h1><p style='color:#ccc'>Pale</p></main>"),
    ("color-contrast", "<!doctype html><html lang=en><title>Bad</title><main><h1>Bad</h1><p style='color:#999'>0</p></main>"),
    ("label", "<!doctype html><html lang=en><title>Bad</title><main><h1>Bad</h1><input></main>"),
    (
        "aria-prohibited-attr",
        "<!doctype html><html lang=en><title>Bad</title><main><h1>Bad</h1><pre tabindex=0 aria-label=Body>{}</pre></main>",
    ),
    ("too wide", "<!doctype html><html lang=en><title>Bad</title><main><h1>Bad</h1><p style='width:2000px'>Wide</p></main>"),
    (
        "the layout moved",
        "<!doctype html><html lang=en><title>Bad</title><main><h1>Bad</h1><p style='height: 400px; background: silver'>Moved</p></main>
        <script>requestAnimationFrame(() => setTimeout(() => { document.querySelector('h1').style.marginTop = '400px'; }, 50))</script>",
    ),
    ("worn out", "<!doctype html><html lang=en><title>Bad</title><main><h1>Bad</h1></main><script>throw new Error('worn out')</script>"),
    (
        "Content Security Policy",
        "<!doctype html><html lang=en><title>Bad</title><meta http-equiv=content-security-policy content=\"script-src 'none'\">
        <main><h1>Bad</h1></main><script>console.log('run')</script>",
    ),
];

/// Serves these pages at `/0`, `/1`, …; what is sent to `/sent` is answered with what it was.
fn serve(pages: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = format!("http://{}", listener.local_addr().expect("it is bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("it is up");
            let mut lines = BufReader::new(stream.try_clone().expect("it is open"));
            let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
            lines.read_line(&mut first).expect("a request");
            while lines.read_line(&mut line).is_ok_and(|read| read > 2) {
                let (name, value) = line.trim().split_once(':').expect("a header");
                length =
                    if name.eq_ignore_ascii_case("content-length") { value.trim().parse().unwrap() } else { length };
                line.clear();
            }
            let mut sent = vec![0; length];
            std::io::Read::read_exact(&mut lines, &mut sent).expect("a body");
            let page = match first.split(' ').nth(1).and_then(|path| path[1..].parse::<usize>().ok()) {
                Some(index) => pages[index].clone(),
                None => format!("<!doctype html><title>Sent</title>{}", String::from_utf8_lossy(&sent)),
            };
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n";
            write!(stream, "{head}content-length: {}\r\n\r\n{page}", page.len()).expect("it reads");
        }
    });
    address
}

#[test]
#[ignore = "needs a browser: make test"]
fn the_browser_sees_what_is_wrong_with_a_page() {
    let pages = [GOOD].into_iter().chain(BAD.iter().map(|(_, page)| *page)).map(str::to_owned);
    let address = serve(pages.collect());
    let browser = Browser::shared();
    let page = browser.page();
    for view in [PHONE, DESKTOP.dark()] {
        page.view(view);
        page.open(&format!("{address}/0"));
        assert_eq!(page.faults(), [""; 0], "{view:?}");
        assert_eq!(page.eval("innerWidth"), view.width);
        assert_eq!(page.eval("matchMedia('(prefers-color-scheme: dark)').matches"), view.dark);
    }
    for (index, (wanted, _)) in BAD.iter().enumerate() {
        page.open(&format!("{address}/{}", index + 1));
        page.until("what a page does later", "new Promise(done => setTimeout(() => done(true), 200))");
        let faults = page.faults();
        assert!(faults.iter().any(|fault| fault.contains(wanted)), "{wanted}: {faults:?}");
    }
}

#[test]
#[ignore = "needs a browser: make test"]
fn the_browser_types_and_clicks_as_a_person_does() {
    let address = serve(vec![GOOD.to_owned()]);
    let browser = Browser::shared();
    let page = browser.page();
    page.open(&format!("{address}/0"));
    page.fill("input", "Ada");
    page.click("text=Send it");
    page.until_text("name=Ada");
    page.open(&format!("{address}/0"));
    for _ in 0..2 {
        page.press("Tab");
    }
    assert_eq!(page.text(":focus"), "Send it");
    page.press("Enter");
    page.until_text("name=");
}
