//! The command as people call it. One program for all of it: each would link everything that the command is made of.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod aws;
mod cli;
mod console;
mod cost;
mod dead;
mod deployed;
mod doctor;
mod ends;
mod keys;
mod questions;
mod secrets;
mod sends;
mod unread;
