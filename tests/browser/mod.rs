//! A real browser for the tests of the console: headless Chromium, driven by its DevTools protocol over two pipes. No port is
//! opened, no driver is needed. Tests that run at the same time share one, and it ends with the last of them.

mod page;
mod view;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

pub use page::Page;
pub use view::{DESKTOP, HALF, NARROW, PHONE, View};

/// How long anything may take that a page waits for; nothing is decided by how long it took.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Chromium speaks over its descriptors 3 and 4, which a shell makes of the two that every child has.
const ON_PIPES: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >&2"#;

/// What the browser is told: nothing that leaves this machine, and nothing that is decided by what the machine has.
const OPTIONS: [&str; 15] = [
    "--remote-debugging-pipe",
    "--headless",
    // Tests run as root in containers, and open no page but their own.
    "--no-sandbox",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    // Names of others that lead to this machine.
    "--host-resolver-rules=MAP *.example 127.0.0.1",
    "--lang=en-US",
];

/// A browser, which ends when this is dropped.
pub struct Browser {
    child: Child,
    wire: Arc<Wire>,
    /// Its profile, removed with it.
    _profile: TempDir,
}

/// What a command's caller waits for.
type Answer = Result<Value, String>;

/// The two pipes: commands go out, answers go to who waits for them and events to their page.
struct Wire {
    commands: Mutex<ChildStdin>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Sender<Answer>>>,
    pages: Mutex<HashMap<String, Sender<Value>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Browser {
    /// Returns the browser that other tests of this process have at this time; else starts the one that `scripts/tools browser` found
    /// or installed.
    ///
    /// # Panics
    /// When there is none, or it does not start.
    #[must_use]
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Browser>> = Mutex::new(Weak::new());
        let mut shared = lock(&SHARED);
        shared.upgrade().unwrap_or_else(|| {
            let browser = Arc::new(Self::start());
            *shared = Arc::downgrade(&browser);
            browser
        })
    }

    fn start() -> Self {
        let program = claimant_servers::repository().expect("tests run in the repository").join(".tools/bin/browser");
        assert!(program.exists(), "there is no {}: run scripts/tools browser", program.display());
        let profile = TempDir::new().expect("a temporary directory");
        let mut child = Command::new("sh")
            .args(["-c", ON_PIPES])
            .arg(&program)
            .args(OPTIONS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is a shell");
        let (commands, answers) = (child.stdin.take(), child.stdout.take());
        let wire = Arc::new(Wire {
            commands: Mutex::new(commands.expect("it is a pipe")),
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            pages: Mutex::default(),
        });
        let (reader, answers) = (Arc::clone(&wire), answers.expect("it is a pipe"));
        std::thread::spawn(move || reader.read(answers));
        wire.call(None, "Browser.getVersion", json!({})).unwrap_or_else(|e| panic!("{}: {e}", program.display()));
        Self { child, wire, _profile: profile }
    }

    /// Opens a tab with cookies and storage of its own, on no page yet. It is closed when the page is dropped.
    ///
    /// # Panics
    /// When the browser does not answer.
    #[must_use]
    pub fn page(&self) -> Page {
        let call = |method: &str, parameters: Value| self.wire.call(None, method, parameters).expect("a tab opens");
        let context = call("Target.createBrowserContext", json!({}))["browserContextId"].clone();
        let target = call("Target.createTarget", json!({ "url": "about:blank", "browserContextId": context }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = call("Target.attachToTarget", attach)["sessionId"].as_str().expect("it has a name").to_owned();
        let (sender, events) = channel();
        lock(&self.wire.pages).insert(session.clone(), sender);
        Page::new(Tab { wire: Arc::clone(&self.wire), context, session, events })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It removes its processes itself when it is asked to, which a signal would not let it.
        let _ = self.wire.call(None, "Browser.close", json!({}));
        let _ = self.child.wait();
    }
}

impl Wire {
    /// Reads until the browser has ended; what waits then learns of it.
    fn read(&self, answers: ChildStdout) {
        for text in BufReader::new(answers).split(0) {
            let Some(message) = text.ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok()) else { break };
            let waiting = message["id"].as_u64().and_then(|id| lock(&self.waiting).remove(&id));
            if let Some(waiting) = waiting {
                let error = message["error"]["message"].as_str().map(str::to_owned);
                // Who no longer waits needs no answer.
                let _ = waiting.send(error.map_or_else(|| Ok(message["result"].clone()), Err));
            } else if let Some(session) = message["sessionId"].as_str() {
                let pages = lock(&self.pages);
                let _ = pages.get(session).map(|page| page.send(message.clone()));
            }
        }
        lock(&self.waiting).clear();
        lock(&self.pages).clear();
    }

    fn call(&self, session: Option<&str>, method: &str, parameters: Value) -> Answer {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut command = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        let (sender, answer) = channel();
        lock(&self.waiting).insert(id, sender);
        let text = format!("{command}\0");
        let sent = lock(&self.commands).write_all(text.as_bytes());
        sent.map_err(|e| format!("the browser has ended: {e}"))?;
        answer.recv_timeout(PATIENCE).map_err(|e| format!("no answer to {method}: {e}"))?
    }
}

/// A page's line to the browser.
struct Tab {
    wire: Arc<Wire>,
    /// Whose cookies and storage it has: its own.
    context: Value,
    session: String,
    events: Receiver<Value>,
}

impl Drop for Tab {
    fn drop(&mut self) {
        lock(&self.wire.pages).remove(&self.session);
        // OK to fail: then the browser has ended, and the tab with it.
        let _ = self.wire.call(None, "Target.disposeBrowserContext", json!({ "browserContextId": self.context }));
    }
}

impl Tab {
    fn call(&self, method: &str, parameters: Value) -> Answer {
        self.wire.call(Some(&self.session), method, parameters)
    }
}
