//! Dead letters.
//!
//! | module | holds |
//! | --- | --- |
//! | `fingerprint` | [`Fingerprint`]: what dead letters of one cause have in common |

mod fingerprint;

pub use fingerprint::Fingerprint;
