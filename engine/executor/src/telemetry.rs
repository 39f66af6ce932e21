//! What a running system tells of itself: metrics for Prometheus, traces over OTLP.
//!
//! Both stand before a [`Recorder`](crate::record::Recorder) and see what it sees, so that counts,
//! spans and record agree. Neither ever carries what the record may not: no value, no header, no
//! query. Neither can stop an effect; only the record can.

mod metrics;
mod traces;

pub use metrics::Metrics;
pub use traces::{TraceError, Traces};
