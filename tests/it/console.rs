//! The console in a real browser.

mod acts;
mod guard;
mod harness;
mod many;
mod pages;
mod person;
mod stage;
mod story;
