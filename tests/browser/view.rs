//! How a page looks: windows, light and dark, pictures, what overflows or moves, and what axe finds.

use std::path::Path;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::Page;

/// A window, and how its person wants pages to look.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
    /// Whether dark colours are preferred.
    pub dark: bool,
}

/// The smallest screen that counts, in daylight.
pub const PHONE: View = View { width: 360, height: 740, dark: false };

/// The narrowest window in which nothing may have to be scrolled sideways: a desk's at 400 % (WCAG 1.4.10).
pub const NARROW: View = View { width: 320, height: 640, dark: false };

/// A small window on a desk at 200 % (WCAG 1.4.10), in daylight.
pub const HALF: View = View { width: 640, height: 512, dark: false };

/// A window on a desk, in daylight.
pub const DESKTOP: View = View { width: 1440, height: 900, dark: false };

/// The most that a page may move by itself: what Web Vitals calls good. A row that learns more while it is looked at may grow.
const SHIFTED_MAX: f64 = 0.1;

/// What reaches over the right edge of the page, the innermost first: as it is, and as it is tomorrow, when each time has its date.
const TOO_WIDE: &str = "(() => {
    const page = document.scrollingElement;
    const wide = () => {
        const over = page.scrollWidth - page.clientWidth;
        if (over <= 0) return [];
        const out = e => e.getBoundingClientRect().right > page.clientWidth + 0.5;
        const found = [...document.body.querySelectorAll('*')].filter(out).reverse();
        return [over + ' px', ...found.slice(0, 5).map(e => e.outerHTML.slice(0, 160))];
    };
    const today = [...document.querySelectorAll('time')].filter(e => !e.textContent.includes('-')).map(e => [e, e.textContent]);
    const now = wide();
    today.forEach(([e]) => e.textContent = e.dateTime.replace('T', ' ').replace('Z', ''));
    const tomorrow = wide().map(fault => 'tomorrow: ' + fault);
    today.forEach(([e, clock]) => e.textContent = clock);
    return now.concat(tomorrow);
})()";

/// What axe finds against the rules of WCAG 2.2 A and AA, and its best practices; and a name that browsers drop, which it leaves to a
/// person to see.
const AXE: &str = "axe.run(document, { resultTypes: ['violations', 'incomplete'] }).then(found =>
    [...found.violations, ...found.incomplete.filter(v => v.id === 'aria-prohibited-attr')].flatMap(v =>
    v.nodes.map(n => v.id + ': ' + n.target.join(' ') + ': ' + n.failureSummary.replace(/\\s+/g, ' '))))";

/// Has axe look at texts of one character, too, such as a zero; the rest is as axe has it.
const ZEROS: &str =
    "axe.configure({ checks: [{ id: 'color-contrast', options: { ...axe._audit.checks['color-contrast'].options,
    ignoreLength: true } }] })";

impl View {
    /// The same window in the dark.
    #[must_use]
    pub const fn dark(self) -> Self {
        Self { dark: true, ..self }
    }
}

fn axe() -> &'static str {
    static AXE_CORE: OnceLock<String> = OnceLock::new();
    AXE_CORE.get_or_init(|| {
        let repository = claimant_servers::repository().expect("tests run in the repository");
        let path = repository.join(".tools/axe/node_modules/axe-core/axe.min.js");
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}: run scripts/tools browser", path.display()))
    })
}

impl Page {
    /// Gives the page this window. Motion is reduced: what is looked at stands still.
    pub fn view(&self, view: View) {
        let size = json!({ "width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if view.dark { "dark" } else { "light" };
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Writes what the window shows as a picture.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn picture(&self, path: &Path) {
        let taken = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let data = BASE64_STANDARD.decode(taken["data"].as_str().unwrap_or_default()).expect("it is a picture");
        std::fs::write(path, data).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Returns what has to be scrolled sideways to be seen.
    pub fn too_wide(&self) -> Vec<String> {
        listed(self.eval(TOO_WIDE)).into_iter().map(|wide| format!("too wide: {wide}")).collect()
    }

    /// Returns what is wrong with the page as it is: what axe finds, what has to be scrolled sideways, what moved by itself,
    /// and what the browser said of it.
    pub fn faults(&self) -> Vec<String> {
        if self.eval("typeof axe") == "undefined" {
            self.eval(&format!("{};{ZEROS};0", axe()));
        }
        let mut faults = listed(self.eval(AXE));
        faults.extend(self.too_wide());
        let shifted = self.eval("window.shifted").as_f64().unwrap_or(f64::MAX);
        if shifted > SHIFTED_MAX {
            faults.push(format!("the layout moved by {shifted}: {}", self.eval("window.shifts")));
        }
        faults.extend(self.complaints());
        faults
    }
}

fn listed(found: serde_json::Value) -> Vec<String> {
    let found = found.as_array().cloned().unwrap_or_default();
    found.iter().map(|fault| fault.as_str().unwrap_or_default().to_owned()).collect()
}
