//! What the person on call needs: a library that the command `claimant` only calls.
//!
//! | module | holds |
//! | --- | --- |
//! | [`dead`] | dead letters: what is alike in them |

pub mod dead;
