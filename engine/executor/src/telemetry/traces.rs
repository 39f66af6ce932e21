//! Traces over OTLP: a span for each call from outside, and one below it for each effect.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ambit_engine::catalogue::Verb;
use opentelemetry::trace::{
    Span as _, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _,
    TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};

use crate::record::{Effect, Outcome, RecordError, Recorder, Ruling, Ticket};

/// How long one export may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Calls under way whose effects find their parent.
const MAX_PARENTS: usize = 1 << 16;

/// Why traces can't be sent.
#[derive(Debug, thiserror::Error)]
#[error("traces can't be sent to {endpoint}: {reason}")]
pub struct TraceError {
    endpoint: String,
    reason: String,
}

impl TraceError {
    /// Returns a stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "trace-endpoint"
    }
}

/// Sends spans to a collector, in batches and from a thread of its own. A collector that is away
/// loses spans, and stops nothing.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Makes the exporter. `endpoint` is the collector's base address: spans go to
    /// `ENDPOINT/v1/traces` as protobuf over HTTP (OTLP 1).
    ///
    /// # Errors
    ///
    /// [`TraceError`] if the address is no http or https one.
    pub fn start(endpoint: &str) -> Result<Self, TraceError> {
        let failed = |reason: String| TraceError { endpoint: endpoint.to_owned(), reason };
        if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
            return Err(failed("the address begins with http:// or https://".to_owned()));
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(TIMEOUT)
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("ambit").with_attribute(version);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Self { provider })
    }

    /// Returns a recorder that makes spans of what goes to `inner`.
    #[must_use]
    pub fn recorder(&self, inner: Arc<dyn Recorder>) -> Arc<dyn Recorder> {
        let tracer = self.provider.tracer("ambit-executor");
        Arc::new(Tracing { tracer, inner, open: Mutex::default(), parents: Mutex::default() })
    }

    /// Sends what is left, for at most some seconds.
    pub fn finish(&self) {
        // Nobody is left to be told that a collector is away.
        let _ = self.provider.shutdown_with_timeout(TIMEOUT);
    }
}

type Instance = (String, u64);

struct Tracing {
    tracer: SdkTracer,
    inner: Arc<dyn Recorder>,
    open: Mutex<HashMap<u64, (Span, Option<Instance>)>>,
    parents: Mutex<HashMap<Instance, SpanContext>>,
}

/// Whether an effect is a call from outside, below which the others of its instance belong.
fn is_call(verb: Verb) -> bool {
    matches!(verb, Verb::ServeRequests | Verb::None)
}

impl Recorder for Tracing {
    fn begin(&self, effect: &Effect<'_>) -> Result<Ticket, RecordError> {
        let ticket = self.inner.begin(effect)?;
        let own = (effect.who.component.clone(), effect.instance);
        let call = is_call(effect.verb);
        let parent = match self.parents.lock() {
            Ok(parents) if !call => parents.get(&own).cloned(),
            _ => None,
        };
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None => Context::new(),
        };
        let outward = [Verb::ReachHosts, Verb::OpenSockets, Verb::LookUpNames];
        let kind = if effect.verb == Verb::ServeRequests {
            SpanKind::Server
        } else if outward.contains(&effect.verb) {
            SpanKind::Client
        } else {
            SpanKind::Internal
        };
        let mut span = self
            .tracer
            .span_builder(format!("{}#{}", effect.interface, effect.function))
            .with_kind(kind)
            .with_attributes([
                KeyValue::new("ambit.workload", effect.who.workload.clone()),
                KeyValue::new("ambit.component", effect.who.component.clone()),
                KeyValue::new("ambit.digest", effect.who.digest.clone()),
                KeyValue::new("ambit.instance", i64::try_from(effect.instance).unwrap_or(i64::MAX)),
                KeyValue::new("ambit.verb", effect.verb.as_str()),
                KeyValue::new("ambit.subject", effect.subject.to_string()),
            ])
            .start_with_context(&self.tracer, &context);
        match &effect.ruling {
            Ruling::Denied { code, reason, .. } => {
                span.set_attribute(KeyValue::new("ambit.denied", (*code).to_owned()));
                span.set_status(Status::error(reason.to_string()));
                span.end();
            }
            Ruling::Allowed(_) => {
                let mut instance = None;
                if call
                    && let Ok(mut parents) = self.parents.lock()
                    && parents.len() < MAX_PARENTS
                {
                    parents.insert(own.clone(), span.span_context().clone());
                    instance = Some(own);
                }
                if let Ok(mut open) = self.open.lock() {
                    open.insert(ticket.0, (span, instance));
                }
            }
        }
        Ok(ticket)
    }

    fn end(&self, ticket: Ticket, outcome: Outcome) {
        let open = self.open.lock().ok().and_then(|mut open| open.remove(&ticket.0));
        if let Some((mut span, instance)) = open {
            let number = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            span.set_attribute(KeyValue::new("ambit.result", outcome.result.to_string()));
            span.set_attribute(KeyValue::new("ambit.bytes_out", number(outcome.bytes_out)));
            span.set_attribute(KeyValue::new("ambit.bytes_in", number(outcome.bytes_in)));
            if outcome.result != "ok" {
                span.set_status(Status::error(outcome.result.to_string()));
            }
            span.end();
            if let (Some(instance), Ok(mut parents)) = (instance, self.parents.lock()) {
                parents.remove(&instance);
            }
        }
        self.inner.end(ticket, outcome);
    }
}
