//! Reads the source of the crates that users depend on, and measures what the house rules limit; and what they are built with.
//!
//! | module | holds |
//! | --- | --- |
//! | [`source`] | a crate's files, parsed |
//! | [`sizes`] | lines of files and functions, fields of types, parameters of functions |
//! | [`contents`] | modules that the table of a `lib.rs` does not have |
//! | [`circles`] | files of one crate that import each other |
//! | [`facade`] | what examples import from the crate that users depend on, and documents name of it |
//! | [`words`] | names of other systems in a crate that must know none |
//! | [`loaded`] | how much of a program is loaded when it starts |
//! | [`dependencies`] | licences, sources, and which crate may use which |

pub mod circles;
pub mod contents;
pub mod dependencies;
pub mod facade;
pub mod loaded;
pub mod sizes;
pub mod source;
pub mod words;

/// The most lines of a file, without its tests. The rule says about 300.
pub const FILE_LINES_MAX: usize = 330;
/// The most lines of a function. The rule says about 70.
pub const FUNCTION_LINES_MAX: usize = 75;
/// The most fields of a struct, or of a variant.
pub const FIELDS_MAX: usize = 10;
/// The most parameters of a function, besides `self`.
pub const PARAMETERS_MAX: usize = 6;
