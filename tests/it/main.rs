//! Integration tests, one binary: each AWS SDK is linked once.
//!
//! Those marked `ignore` need services; `make test` runs them.

mod cloud;
mod contract;
mod lock_table;
