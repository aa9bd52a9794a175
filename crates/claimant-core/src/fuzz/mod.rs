//! Fuzz targets and properties. What is generated, and how often, is in `claimant_testkit::fuzz`.
//!
//! | module | holds |
//! | --- | --- |
//! | `bodies` | any body: decoded or rejected; its key, its record's name, its fingerprint |
//! | `fields` | any body: the field by which it is routed |
//! | `values` | names of records, fingerprints of values and numbers |
//! | `json_texts` | fingerprints of JSON texts |
//! | `batches` | the plan and the report |
//! | `times` | delays, times of invocations, and what is claimed when |

mod batches;
mod bodies;
mod fields;
mod json_texts;
mod times;
mod values;
