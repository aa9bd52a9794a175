//! What someone sees in the first minute: one command, then a click each for a duplicate, a killed process and a dead letter.

use std::fs::{copy, create_dir_all, read_to_string, write};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use claimant_servers::repository;
use claimant_tests::browser::{Browser, PHONE, Page, View};
use tempfile::TempDir;

use super::stage::Stage;
use crate::cloud::built;

/// The windows of the book's pictures: for some of a page, for the whole overview, for a whole timeline.
const BOOK: View = View { width: 1120, height: 760, dark: false };
const TALL: View = View { height: 1420, ..BOOK };
const WHOLE: View = View { height: 1120, ..BOOK };

/// What is changed of the project's template: a minute until a message is visible again is long for a test.
const SHORTER: [(&str, &str); 3] = [
    ("VisibilityTimeout: 60", "VisibilityTimeout: 6"),
    (" Timeout: 30", " Timeout: 6"),
    (" Timeout: 10", " Timeout: 6"),
];

/// `claimant local`, as a person starts it; ends with this.
struct Local {
    child: Child,
    /// Its template and samples, removed with it.
    _here: TempDir,
}

impl Local {
    /// Starts it, and returns the address that its first line says.
    fn start() -> (Self, String) {
        let (repository, here) =
            (repository().expect("tests run in the repository"), TempDir::new().expect("a directory"));
        let template = read_to_string(repository.join("template.yaml")).expect("it is there");
        let template = SHORTER.iter().fold(template, |template, (from, to)| template.replace(from, to));
        write(here.path().join("template.yaml"), template).expect("it is writable");
        let samples = "tests/samples/order-confirmation.json";
        create_dir_all(here.path().join("tests/samples")).expect("it is writable");
        copy(repository.join(samples), here.path().join(samples)).expect("it is there");
        let binaries = built(&["claimant", "order-confirmation"]);
        let mut child = Command::new(binaries.join("claimant"))
            .args(["local", "--function", "order-confirmation", "--binaries"])
            .arg(&binaries)
            .current_dir(here.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
        let local = Self { child, _here: here };
        let first = lines.next().expect("a line").expect("it is text");
        // What is not read would hold it up.
        std::thread::spawn(move || lines.for_each(drop));
        let address = first.strip_prefix("console   ").unwrap_or_else(|| panic!("the first line is {first:?}"));
        (local, address.trim_end_matches('/').to_owned())
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

/// Writes what the window shows for the book, where that is asked for: `make pictures`.
fn picture(page: &Page, name: &str) {
    if let Some(directory) = std::env::var_os("CLAIMANT_PICTURES") {
        let directory = repository().expect("tests run in the repository").join(Path::new(&directory));
        // Nothing is marked as if someone pointed at it.
        page.call("Input.dispatchMouseEvent", serde_json::json!({ "type": "mouseMoved", "x": 0, "y": 0 }));
        page.picture(&directory.join(format!("{name}.png")));
    }
}

/// Chooses a sample on *Send*, clicks a button, and follows the last message that was sent.
fn send(page: &Page, address: &str, sample: &str, button: &str) {
    page.open(&format!("{address}/send"));
    page.click(&format!("text={sample}"));
    page.until("its form", "location.search.includes('sample=')");
    page.click(button);
    page.until("what was sent", "!!document.querySelector('.sent a') && document.readyState === 'complete'");
    page.click(".sent a:last-of-type");
    page.until("its page", "location.pathname.startsWith('/messages/') && document.readyState === 'complete'");
}

/// Waits until the page of a message says all of these, without being loaded again.
fn says(page: &Page, words: &[&str]) {
    page.eval("window.still_here = true");
    for word in words {
        page.until(word, &format!("/{word}/im.test(document.querySelector('main').innerText)"));
    }
    assert_eq!(page.eval("window.still_here"), true);
}

#[test]
#[ignore = "needs the functions' binaries and a browser: make test"]
fn one_command_and_a_click_each_show_what_it_is_about() {
    let (_local, address) = Local::start();
    let browser = Browser::shared();
    let page = browser.page();
    page.view(BOOK);

    // A duplicate is absorbed: the second of two copies has no effect.
    send(&page, &address, "An order", "button[value=twice]");
    says(&page, &["duplicate", "^deleted"]);
    // Of twenty more, too.
    send(&page, &address, "An order", "button[value=bulk]");

    // A process is killed as it has claimed a message; another takes the key over when the lease is over.
    page.open(&format!("{address}/faults"));
    page.choose("select[name=function]", "OrderConfirmationFunction");
    page.click("text=Kill a process at its next claim");
    page.until("the fault", "!!document.querySelector('.notice')");
    send(&page, &address, "An order whose mail takes two seconds", "button[value='']");
    says(&page, &["killed"]);
    page.open(&format!("{address}/"));
    page.view(WHOLE);
    page.until_text("order-confirmation");
    picture(&page, "overview");
    page.view(BOOK);
    page.eval("history.back()");
    page.until(
        "the message's page",
        "location.pathname.startsWith('/messages/') && document.readyState === 'complete'",
    );
    says(&page, &["took .*over|taken over", "^deleted from its queue"]);
    page.view(TALL);
    picture(&page, "message");
    page.view(PHONE.dark());
    picture(&page, "message-phone");
    page.view(BOOK);

    // A dead letter is corrected and sent back.
    send(&page, &address, "An order without its id", "button[value='']");
    says(&page, &["dead-letter"]);
    page.open(&format!("{address}/dead"));
    page.click("main tbody a");
    page.until("the letter", "!!document.querySelector('.letter')");
    picture(&page, "dead");
    page.click("text=Edit and send");
    page.until("its form", "!!document.querySelector('textarea[name=body]')");
    page.fill("textarea[name=body]", &Stage::body_of("corrected", "ada@example.com"));
    page.click("text=Send and take it out of here");
    page.until("the notice", "!!document.querySelector('.notice')");

    // 23 pieces of work, each done, and no letter left. The process that was killed may have sent its mail already: SES knows no keys, so
    // that one alone may be there twice.
    page.open(&format!("{address}/effects"));
    page.until("a mail for each", "document.querySelectorAll('main tbody td')[1].innerText === '23'");
    let main = page.text("main");
    let repeated =
        main.contains("Done more than once: 1 key.") && main.contains("2 mails of ") && main.contains(": slow-");
    assert!(main.contains("Nothing was done twice.") || repeated, "{main}");
    page.open(&format!("{address}/dead"));
    page.until_text("There is no dead letter.");
}
