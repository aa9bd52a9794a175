//! The parts that all pages use.
//!
//! | module | holds |
//! | --- | --- |
//! | `layout` | the whole page around its content; its live part |
//! | `harmless` | characters that nobody sees, or that turn the direction of text, escaped |
//! | `nav` | the parts of the console |
//! | `table` | lists, which become cards where the window is narrow |
//! | `badge` | a state, by word and shape and colour |
//! | `text` | times, ids, counts, durations, what is empty |
//! | `state` | states of messages and of keys, as badges |
//! | `steps` | the timeline of a message |
//! | `plot` | values over time, and parts of a whole |
//! | `form` | buttons, fields, an act that asks first |
//!
//! No `style` attribute and no inline script: the content security policy has the browser ignore them.

pub(crate) mod badge;
pub(crate) mod form;
pub(crate) mod harmless;
pub(crate) mod layout;
pub(crate) mod nav;
pub(crate) mod plot;
pub(crate) mod state;
pub(crate) mod steps;
pub(crate) mod table;
pub(crate) mod text;
