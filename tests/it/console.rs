//! The console in a real browser.

mod harness;
