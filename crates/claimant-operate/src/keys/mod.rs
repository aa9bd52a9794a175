//! Keys: what their records say, what would happen next, and what can be done about it.
//!
//! | module | holds |
//! | --- | --- |
//! | `access` | [`Keys`]: a store, a clock and the clock-skew margin; who acts |
//! | `inspect` | one record, and what becomes of its key's next message by the production decision |
//! | `list` | records by state, consumer, age and text; what asking costs |
//! | `limit` | what a limit allows, who has its slots |
//! | `act` | release, reset, forget, resolve: guarded as the runtime's writes are |
//! | `beside` | records that are not of work: of a breaker, of a limit |
//! | `times` | how long ago, and how long, as text |
//! | `shown` | all of these as text for people and as JSON |

mod access;
mod act;
mod beside;
mod inspect;
mod limit;
mod list;
mod shown;
mod times;

pub use access::{Keys, operator};
pub use act::{Acted, Order, Version};
pub use beside::Beside;
pub use inspect::{Forecast, Inspection, Possible};
pub use limit::{LimitOrder, LimitSet, LimitState, LimitUse, SlotState};
pub use list::{Cost, Found, LIST_MAX, Listed, Progress, Query, ReadOn};
pub use shown::{record_json, record_lines};
pub use times::{age, span, when};
