//! Every page, in every window: whole, reachable, legible, and nothing of a message is markup.

use std::collections::{BTreeMap, BTreeSet};

use claimant_tests::browser::{DESKTOP, HALF, NARROW, PHONE, Page};

use super::stage::Stage;

/// The most that a page weighs, with all that it fetches.
const BYTES_MAX: u64 = 1024 * 1024;

/// A body that would run where it were taken for markup; `ran` says that it did.
const HOSTILE: &str =
    r#"<script>window.ran = 1</script><img src=x onerror="window.ran = 2">"'--><svg onload="window.ran = 3">"#;

/// Returns where the links of a page lead within the console, one for each kind of page: of `/messages/…` the first only.
fn links(page: &Page) -> Vec<(String, String)> {
    let links = page.eval(
        "[...document.querySelectorAll('a[href]')].filter(a => a.origin === location.origin).map(a => a.pathname + a.search)",
    );
    let links = links.as_array().cloned().unwrap_or_default();
    let links = links.iter().filter_map(|link| link.as_str().map(str::to_owned));
    links.map(|link| (kind(&link), link)).collect()
}

/// What kind of page a path leads to: its parts but for names, and the names of its query's fields.
fn kind(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts: Vec<_> = path.split('/').collect();
    let parts = if parts.len() > 2 { format!("/{}/…", parts[1]) } else { path.to_owned() };
    let fields: BTreeSet<_> = query.split('&').filter_map(|field| field.split('=').next()).collect();
    format!("{parts}?{}", fields.into_iter().collect::<Vec<_>>().join("&"))
}

/// Gives each kind of page something to show: work done, doubled, malformed, refused, dead-lettered.
async fn fill(stage: &Stage) {
    for id in ["ord-1", "ord-1", "ord-2"] {
        stage.order(id, "ada@example.com");
    }
    stage.order("ord-3", "nobody");
    stage.order(HOSTILE, "ada@example.com");
    stage.send("OrderQueue", HOSTILE);
    stage.send("PaymentQueue", r#"{"order_id": "declined-1", "amount_cents": 3390, "currency": "EUR"}"#);
    stage.send("PaymentQueue", r#"{"order_id": "pay-1", "amount_cents": 3390, "currency": "EUR"}"#);
    stage.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries and a browser: make test"]
async fn every_page_is_whole_in_every_window() {
    let stage = Stage::start(&["order-confirmation", "payment"]).await;
    fill(&stage).await;
    let page = stage.browser.page();
    let (mut found, mut seen) = (vec!["/".to_owned()], BTreeMap::new());
    let mut faults = Vec::new();
    while let Some(path) = found.pop() {
        if seen.contains_key(&kind(&path)) {
            continue;
        }
        seen.insert(kind(&path), path.clone());
        for (view, loads) in [(DESKTOP, true), (DESKTOP.dark(), false), (PHONE, true), (PHONE.dark(), path == "/")] {
            page.view(view);
            // What dark changes are colours: one page is loaded in the dark, and shows that the others could be.
            if loads {
                stage.open(&page, &path);
            }
            let bad = page.faults().into_iter();
            faults.extend(
                bad.map(|fault| format!("{path} {}{}: {fault}", view.width, if view.dark { " dark" } else { "" })),
            );
            assert_eq!(page.eval("window.ran"), serde_json::Value::Null, "{path}: a message's text was run");
        }
        for view in [NARROW, HALF] {
            page.view(view);
            faults.extend(page.too_wide().into_iter().map(|fault| format!("{path} {}: {fault}", view.width)));
        }
        if page.bytes() > BYTES_MAX {
            faults.push(format!("{path} weighs {} bytes", page.bytes()));
        }
        stage.json(&path);
        found.extend(links(&page).into_iter().rev().map(|(_, link)| link));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    let tabs = ["/", "/messages", "/keys", "/dead", "/effects", "/send", "/faults", "/doctor"];
    let wanted = tabs.into_iter().map(|path| format!("{path}?"));
    let wanted = wanted.chain(["/messages/…?", "/keys/…?", "/dead/…?queue", "/dead/…?edit&queue"].map(str::to_owned));
    let missing: Vec<_> = wanted.filter(|kind| !seen.contains_key(kind)).collect();
    assert!(missing.is_empty(), "no link leads to {missing:?}: {seen:#?}");
    stage.end().await;
}
