//! A person at the console: pages that stay true while they are open, the keyboard alone, and no scripts.

use claimant_tests::browser::{PHONE, Page};
use serde_json::json;

use super::stage::Stage;
use crate::cloud::wait_for;

/// What tells that a page was never loaded anew.
const MARK: &str = "window.still_here === true";

/// What pauses and resumes the first function.
const SWITCH: &str = "form[action='/mappings'] button:enabled";

fn focused(page: &Page) -> String {
    let name = page.eval("document.activeElement.textContent.trim().replace(/\\s+/g, ' ')");
    name.as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries and a browser: make test"]
async fn a_page_that_is_open_stays_true_and_still() {
    let stage = Stage::start(&["order-confirmation"]).await;
    let page = stage.browser.page();
    page.view(PHONE);
    stage.open(&page, "/messages");
    page.eval("window.still_here = true");
    // What someone fills in is not taken away by what is drawn again.
    page.fill("main input[type=search], main input[type=text]", "ord");
    let id = stage.order("ord-live", "ada@example.com");
    page.until("the message in the list", &format!("!!document.querySelector('a[title=\"{id}\"]')"));
    assert_eq!(page.eval("document.activeElement.value"), "ord");
    page.click(&format!("a[title='{id}']"));
    page.until("the message's page", &format!("decodeURIComponent(location.pathname) === '/messages/{id}'"));
    stage.drained().await;
    page.eval("window.still_here = true");
    page.until("the end of its timeline", "/deleted/i.test(document.querySelector('main').innerText)");
    assert_eq!(page.eval(MARK), true, "the page was loaded anew");
    // What comes moves what is below it.
    page.eval("window.shifted = 0");
    assert_eq!(page.faults(), [""; 0]);

    // The number of a form stays until its act can be done again: then it is another one.
    stage.open(&page, "/");
    let pause = "document.querySelector(\"form[action='/mappings']\")";
    page.eval(&format!("window.drawn = {pause}.form.value"));
    for (enabled, changes) in [(false, true), (true, true)] {
        stage.post("/mappings", &json!({ "function": "OrderConfirmationFunction", "enabled": enabled }));
        page.until("the button", &format!("{pause}.querySelector('button').disabled !== {enabled}"));
        assert_eq!(page.eval(&format!("{pause}.form.value !== drawn")), changes);
        page.eval(&format!("drawn = {pause}.form.value"));
    }

    // An act is what its button said at the first click: drawn again before the answer, no button has become another under the pointer.
    stage.open(&page, "/");
    stage.post("/faults", &json!({ "act": "freeze", "function": "OrderConfirmationFunction", "frozen_s": 5 }));
    stage.order("ord-frozen", "ada@example.com");
    wait_for("a process to be frozen", || stage.json("/faults")["faults"][0]["acted"] == 1).await;
    // Clicked by a script: while a page waits for the answer to a form, the browser hears nothing from outside.
    page.eval(&format!(
        "const button = document.querySelector(\"{SWITCH}\"), again = setInterval(() => {{
            if (!button.disabled) return;
            clearInterval(again);
            sessionStorage.clicked = button.textContent;
            button.click();
        }}, 20); 0"
    ));
    page.click(SWITCH);
    page.until("the notice", "!!document.querySelector('.notice')");
    let said = page.text(".notice");
    assert!(said.contains("gets no more messages"), "{said}");
    assert_eq!(page.eval("sessionStorage.clicked"), "Pause", "the answer came before the second click");
    assert_eq!(stage.json("/")["functions"][0]["mappings"][0]["is_on"], false);
    stage.end().await;
}

/// A page that is drawn again says nothing, however long it is open; one that is not says since when.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries and a browser: make test"]
async fn a_page_that_is_old_says_so() {
    let stage = Stage::start(&["order-confirmation"]).await;
    let page = stage.browser.page();
    page.view(PHONE);
    stage.open(&page, "/");
    let seen = "getComputedStyle(document.querySelector('.old')).visibility";
    assert_eq!(page.eval(seen), "hidden");
    let age = "document.querySelector('.old').getAnimations()[0]";
    assert_eq!(page.eval(&format!("{age}.currentTime = 60000; {seen}")), "visible");
    assert!(page.text(".old").starts_with("Not drawn again since 20"), "{}", page.text(".old"));
    page.until("the page to be drawn again", &format!("{age}.currentTime < 10000"));
    assert_eq!(page.eval(seen), "hidden");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries and a browser: make test"]
async fn the_keyboard_alone_is_enough() {
    let stage = Stage::start(&["order-confirmation"]).await;
    let page = stage.browser.page();
    stage.open(&page, "/");
    page.press("Tab");
    assert_eq!(focused(&page), "Skip to the content");
    page.press("Enter");
    page.until("the content to have the focus", "document.activeElement.id === 'main'");
    // From the top, every link and button is reached, in the order in which they stand, and each can be seen to be.
    stage.open(&page, "/");
    let usable = "[...document.querySelectorAll('a[href],button,summary,input,select,textarea')].filter(e =>
        e.getClientRects().length && !e.disabled && !e.closest('details:not([open]) > :not(summary)'))";
    let wanted = page.eval(&format!("{usable}.length")).as_u64().expect("a number");
    page.eval(&format!("window.reached = []; window.usable = {usable}; 0"));
    for _ in 0..wanted {
        page.press("Tab");
        let plain = page.eval(
            "(e => { const s = getComputedStyle(e); reached.push(usable.indexOf(e));
                return s.outlineStyle === 'none' && s.boxShadow === 'none' ? e.outerHTML : null; })(document.activeElement)",
        );
        assert!(plain.is_null(), "the focus is not seen on {plain}");
    }
    let order = page.eval("JSON.stringify(reached)");
    assert_eq!(order, json!((0..wanted).collect::<Vec<_>>()).to_string(), "the order of Tab");
    // An act by its key: the function is paused.
    let is_on = || stage.json("/")["functions"][0]["mappings"][0]["is_on"].clone();
    page.eval(&format!("document.querySelector(\"{SWITCH}\").focus()"));
    page.press("Enter");
    page.until("the notice", "!!document.querySelector('.notice')");
    assert_eq!(is_on(), false);
    // What became of it has the focus, so that it is spoken, and the next link is one of the content.
    page.until("the notice to have the focus", "document.activeElement.matches('.notice')");
    let said = "OrderConfirmationFunction gets no more messages";
    let tree = page.call("Accessibility.getFullAXTree", json!({}))["nodes"].clone();
    let spoken =
        tree.as_array().expect("a list").iter().find(|node| node["role"]["value"] == "status").expect("the notice");
    assert!(spoken["name"]["value"].as_str().is_some_and(|name| name.starts_with(said)), "{spoken}");
    page.press("Tab");
    assert_eq!(
        page.eval("document.activeElement.matches('main a, main button, main summary')"),
        true,
        "{}",
        focused(&page)
    );
    // So has what did not work.
    stage.open(&page, "/nowhere");
    page.until("the error to have the focus", "document.activeElement.matches('.error')");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries and a browser: make test"]
async fn everything_works_without_scripts() {
    let stage = Stage::start(&["order-confirmation"]).await;
    let page = stage.browser.page();
    page.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    stage.open(&page, "/");
    let is_on = || stage.json("/")["functions"][0]["mappings"][0]["is_on"].clone();
    page.click(SWITCH);
    page.until("the notice", "!!document.querySelector('.notice')");
    assert_eq!(is_on(), false);
    let id = stage.order("ord-1", "ada@example.com");
    page.click(SWITCH);
    stage.drained().await;
    assert_eq!((is_on(), stage.cloud.mailbox().mails().len()), (true.into(), 1));
    page.click("text=Messages");
    page.click(&format!("a[title='{id}']"));
    page.until("the message's page", &format!("decodeURIComponent(location.pathname) === '/messages/{id}'"));
    stage.end().await;
}
