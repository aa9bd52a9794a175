//! One page: opened, clicked and typed as a person does it, by positions and keys; and everything that the browser said of it.

use std::cell::RefCell;
use std::time::Instant;

use serde_json::{Value, json};

use super::{PATIENCE, Tab};

/// Sums the shifts of the layout that no input explains, from the first paint on.
const WATCH_SHIFTS: &str = "window.shifted = 0; window.shifts = [];
    new PerformanceObserver(list => { for (const e of list.getEntries()) if (!e.hadRecentInput) {
        window.shifted += e.value;
        for (const s of e.sources) window.shifts.push(s.node ? (s.node.outerHTML || s.node.data || '').slice(0, 120) : '?');
    } }).observe({ type: 'layout-shift', buffered: true });";

/// Finds an element by a selector, or, after `text=`, the innermost one of those that can be used whose text is this.
const FIND: &str = "(wanted => {
    if (!wanted.startsWith('text=')) return document.querySelector(wanted);
    const usable = [...document.querySelectorAll('a,button,summary,label,option')];
    const shown = e => e.getClientRects().length > 0;
    return usable.find(e => shown(e) && e.textContent.trim().replace(/\\s+/g, ' ') === wanted.slice(5)) || null;
})";

/// A tab of the browser.
pub struct Page {
    tab: Tab,
    said: RefCell<Said>,
}

/// What the browser said of the page that is open.
#[derive(Default)]
struct Said {
    complaints: Vec<String>,
    bytes: u64,
}

impl Page {
    pub(super) fn new(tab: Tab) -> Self {
        let page = Self { tab, said: RefCell::default() };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH_SHIFTS }));
        page
    }

    /// Sends a command of the DevTools protocol.
    ///
    /// # Panics
    /// When the browser refuses it.
    pub fn call(&self, method: &str, parameters: Value) -> Value {
        self.tab.call(method, parameters).unwrap_or_else(|e| panic!("{method}: {e}"))
    }

    /// Opens this address, and returns when it has loaded. What was said of an earlier page is forgotten.
    ///
    /// # Panics
    /// When there is nothing there.
    pub fn open(&self, url: &str) {
        self.said();
        *self.said.borrow_mut() = Said::default();
        let opened = self.call("Page.navigate", json!({ "url": url }));
        assert!(opened["errorText"].is_null(), "{url}: {}", opened["errorText"]);
        // A page of before may still have been there when it was asked.
        self.until(
            url,
            &format!("location.href === new URL({}).href && document.readyState === 'complete'", json!(url)),
        );
    }

    /// Evaluates an expression in the page, waits for it if it is a promise, and returns its value.
    ///
    /// # Panics
    /// When it throws.
    pub fn eval(&self, expression: &str) -> Value {
        self.try_eval(expression).unwrap_or_else(|e| panic!("{expression}: {e}"))
    }

    fn try_eval(&self, expression: &str) -> Result<Value, String> {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.tab.call("Runtime.evaluate", asked)?;
        let thrown = &answer["exceptionDetails"];
        if thrown.is_null() { Ok(answer["result"]["value"].clone()) } else { Err(thrown.to_string()) }
    }

    /// Waits until an expression is true and the page has arrived.
    ///
    /// # Panics
    /// When it is not in time, with the page's text and what the browser said.
    pub fn until(&self, what: &str, expression: &str) {
        let start = Instant::now();
        // Of a page that is still arriving, not.
        let expression = &format!("document.readyState === 'complete' && ({expression})");
        while self.try_eval(expression).ok() != Some(Value::Bool(true)) {
            if start.elapsed() > PATIENCE {
                let text = self.try_eval("document.body.innerText");
                panic!("waited {PATIENCE:?} for {what}, {expression}: {:?}\n{text:?}", self.complaints());
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Waits until the page's text has this.
    pub fn until_text(&self, text: &str) {
        self.until(&format!("«{text}»"), &format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Returns the text of the page as a person sees it, or of the first element of a selector.
    pub fn text(&self, selector: &str) -> String {
        let text = self.eval(&format!("{FIND}({}).innerText", json!(selector)));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Returns how many elements a selector has.
    pub fn count(&self, selector: &str) -> u64 {
        self.eval(&format!("document.querySelectorAll({}).length", json!(selector))).as_u64().unwrap_or(0)
    }

    /// Clicks the middle of an element: a selector, or `text=` and the text of a link, a button or a label. It has to be
    /// there, in sight and on top.
    ///
    /// # Panics
    /// When no click would reach it.
    pub fn click(&self, wanted: &str) {
        let there = format!(
            "(e => {{
                if (!e) return null;
                e.scrollIntoView({{ block: 'center', inline: 'nearest', behavior: 'instant' }});
                const b = e.getClientRects()[0];
                if (!b) return null;
                const [x, y] = [b.left + b.width / 2, b.top + b.height / 2], top = document.elementFromPoint(x, y);
                const reached = top && (e.contains(top) || top.contains(e) || e.control === top);
                return reached ? {{ x, y }} : null;
            }})({FIND}({}))",
            json!(wanted)
        );
        self.until(&format!("{wanted} to be where a click reaches it"), &format!("!!{there}"));
        let at = self.eval(&there);
        assert!(!at.is_null(), "{wanted} moved while it was clicked");
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({ "type": kind, "x": at["x"], "y": at["y"], "button": button, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Types into a field in place of what it has.
    ///
    /// # Panics
    /// When it cannot be clicked.
    pub fn fill(&self, selector: &str, text: &str) {
        self.click(selector);
        self.eval(&format!("document.querySelector({}).select()", json!(selector)));
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Chooses an option of a field by its value, as the keyboard would.
    ///
    /// # Panics
    /// When the field has no such option.
    pub fn choose(&self, selector: &str, value: &str) {
        let chosen = self.eval(&format!(
            "(e => {{ e.focus(); e.value = {1}; for (const n of ['input', 'change']) e.dispatchEvent(new Event(n, {{ bubbles: true }}));
                return e.value; }})(document.querySelector({0}))",
            json!(selector),
            json!(value)
        ));
        assert_eq!(chosen, value, "{selector} has no such option");
    }

    /// Presses a key, by its name in the DOM: `Tab`, `Enter`, `Escape`.
    pub fn press(&self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            " " => 32,
            _ => 0,
        };
        let text = match key {
            "Enter" => "\r",
            " " => " ",
            _ => "",
        };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Returns what the browser said against the page since it was opened: errors and warnings of the console, exceptions,
    /// breaches of the content security policy, and requests that failed.
    pub fn complaints(&self) -> Vec<String> {
        self.said();
        self.said.borrow().complaints.clone()
    }

    /// Returns how many bytes came over the wire since the page was opened, of the page and all that it fetched.
    pub fn bytes(&self) -> u64 {
        self.said();
        self.said.borrow().bytes
    }

    /// Takes what has been said since it was last looked at.
    fn said(&self) {
        let mut said = self.said.borrow_mut();
        for event in self.tab.events.try_iter() {
            let about = &event["params"];
            let bad = |level: &Value| ["error", "warning"].iter().any(|bad| level == bad);
            let complaint = match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => Some(about["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" if bad(&about["type"]) => Some(about["args"].to_string()),
                "Log.entryAdded" if bad(&about["entry"]["level"]) => {
                    Some(format!("{} {}", about["entry"]["text"], about["entry"]["url"]))
                }
                "Network.loadingFailed" if about["canceled"] != true => Some(about.to_string()),
                "Network.loadingFinished" => {
                    said.bytes += about["encodedDataLength"].as_f64().unwrap_or(0.0) as u64;
                    None
                }
                _ => None,
            };
            said.complaints.extend(complaint);
        }
    }
}
