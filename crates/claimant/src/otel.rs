//! Spans of messages in OpenTelemetry: each linked to its producer's, with its claim, its handler and its settlement under it.
//!
//! The provider and its exporter are yours:
//!
//! ```no_run
//! use claimant::dynamodb::LockTable;
//! use claimant::otel::OtelSpans;
//! use claimant::{Consumer, Consumers, Context, HandlerError};
//! use opentelemetry_sdk::trace::SdkTracerProvider;
//!
//! #[derive(serde::Deserialize)]
//! struct Order { order_id: String }
//!
//! async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> { Ok(()) }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), claimant::Error> {
//!     let provider = SdkTracerProvider::builder().build(); // with your exporter: `.with_batch_exporter(…)`
//!     let table = LockTable::from_env().await?;
//!     let consumer = Consumer::new("order-confirmation", table, confirm).key(|order| &order.order_id);
//!     // At the end of each invocation, since Lambda then freezes the process.
//!     let spans = OtelSpans::new(&provider).flush_with(move || provider.force_flush());
//!     claimant::lambda::run(Consumers::from(consumer).spans(spans)).await
//! }
//! ```

#[doc(inline)]
pub use claimant_otel::OtelSpans;
