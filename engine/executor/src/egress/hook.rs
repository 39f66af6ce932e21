//! What stands between `wasi:http` and the client: decision, record, counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ambit_engine::catalogue::Verb;
use http::Request;
use http::uri::Scheme;
use tokio::sync::OwnedSemaphorePermit;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiHttpCtx,
    WasiHttpCtxView, WasiHttpHooks,
};

use super::body::{Bounded, Count, End, Ended};
use super::decide::{Decided, Denial, Openings, decide};
use super::{Body, Call, EgressError, OUTGOING as INTERFACE, secret};
use crate::limits::Trip;
use crate::record::{Effect, Outcome, Recorder, Ruling, Ticket};
use crate::scope::Scope;
use crate::state::{Instance, State};

/// The time until a connection stands, unless the guest asks for less.
const CONNECT: Duration = Duration::from_secs(10);

/// What one instance needs for `wasi:http`.
pub(crate) struct Outgoing {
    ctx: WasiHttpCtx,
    hooks: Hooks,
}

impl Outgoing {
    pub(crate) fn new(scope: &Arc<Scope>, instance: &Instance) -> Self {
        let mut ctx = WasiHttpCtx::new();
        ctx.set_field_size_limit(scope.limits().header_bytes);
        let requests = AtomicU64::new(0);
        Self {
            ctx,
            hooks: Hooks { scope: Arc::clone(scope), instance: instance.clone(), requests },
        }
    }
}

impl State {
    /// Returns the view that `wasi:http` works on.
    pub(crate) fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            ctx: &mut self.outgoing.ctx,
            hooks: &mut self.outgoing.hooks,
            table: &mut self.table,
        }
    }
}

struct Hooks {
    scope: Arc<Scope>,
    instance: Instance,
    requests: AtomicU64,
}

type Answer =
    Result<(http::Response<Body>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>;

impl WasiHttpHooks for Hooks {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        // Both ways in go through this one: headers and trailers.
        Arc::new(|name| {
            DEFAULT_FORBIDDEN_HEADERS.contains(name) || name.as_str().starts_with("proxy-")
        })
    }

    fn default_scheme(&mut self) -> Option<Scheme> {
        None
    }

    fn set_host_header(&mut self) -> bool {
        // The client writes it from the target that was decided on.
        false
    }

    fn send_request(
        &mut self,
        request: Request<Body>,
        options: Option<RequestOptions>,
        _done: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Answer> + Send> {
        match self.begin(&request) {
            Ok(begun) => Box::new(begun.send(request, options.unwrap_or_default())),
            Err(error) => Box::new(std::future::ready(Err(error))),
        }
    }
}

impl Hooks {
    /// Decides, and writes the intent.
    fn begin(&self, request: &Request<Body>) -> Result<Begun, Error> {
        let limits = self.scope.limits();
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        if before >= limits.requests {
            self.instance.trip.set(Trip::Requests(limits.requests));
            // One line says so, however often it goes on asking.
            if before == limits.requests {
                let ruling = Ruling::Denied {
                    code: "limit-requests",
                    reason: format!("it made more than {} requests", limits.requests).into(),
                    help: "`run.limits` in `ambit.yaml` raises it".into(),
                };
                let authority = request.uri().authority().map_or("", |a| a.as_str());
                let _denied = self.effect(authority, ruling)?;
            }
            return Err(Error::ConnectionLimitReached);
        }
        let scheme = request.uri().scheme_str().unwrap_or_default();
        let authority = request.uri().authority().map_or("", |authority| authority.as_str());
        let setup = self.scope.setup();
        let openings = Openings::of(setup);
        let component = self.scope.component();
        // An inert import has no grant behind it, whatever the list says.
        let decided = if component.plan().grants(INTERFACE) {
            decide(component, openings, scheme, authority)
        } else {
            match decide(component, openings, scheme, authority) {
                Decided::Allowed { target, .. } => Decided::Denied(Denial {
                    code: "host-not-granted",
                    subject: target.to_string(),
                    reason: "outgoing requests are not granted".to_owned(),
                    help: String::new(),
                }),
                denied @ Decided::Denied(_) => denied,
            }
        };
        match decided {
            Decided::Denied(denial) => {
                let ruling = Ruling::Denied {
                    code: denial.code,
                    reason: denial.reason.as_str().into(),
                    help: denial.help.as_str().into(),
                };
                // A denied effect is one line; there is no end to write.
                let _denied = self.effect(&denial.subject, ruling)?;
                Err(if denial.code == "address-refused" {
                    Error::DestinationIpProhibited
                } else {
                    Error::HttpRequestDenied
                })
            }
            Decided::Allowed { target, entry, consent } => {
                let line = component.host_lines().get(entry);
                let ticket = self.effect(&target.to_string(), Ruling::Allowed(line))?;
                let call = Call {
                    owner: self.scope.owner(),
                    component: self.scope.who().component.clone(),
                    target,
                    hosts: self.scope.hosts(),
                    consent,
                    connect: CONNECT.min(limits.request_time),
                    first_byte: limits.request_time,
                    between_bytes: limits.request_time,
                    total: limits.request_time,
                    request_body: limits.request_body_bytes,
                    response_body: limits.response_body_bytes,
                    header_bytes: limits.header_bytes,
                };
                let told = Told {
                    recorder: Arc::clone(&setup.recorder),
                    ticket: Some(ticket),
                    since: Instant::now(),
                    sent: Count::default(),
                    received: Count::default(),
                    detail: String::new(),
                    permit: None,
                };
                Ok(Begun { scope: Arc::clone(&self.scope), call, told })
            }
        }
    }

    fn effect(&self, subject: &str, ruling: Ruling<'_>) -> Result<Ticket, Error> {
        let effect = Effect {
            who: self.scope.who(),
            instance: self.instance.number,
            verb: Verb::ReachHosts,
            interface: INTERFACE,
            function: "handle",
            subject: subject.into(),
            ruling,
        };
        let begun = self.scope.setup().recorder.begin(&effect);
        // Without a record nothing leaves.
        begun.map_err(|_| Error::InternalError(Some("the record can't be written".to_owned())))
    }
}

/// A request that is on record and not yet sent.
struct Begun {
    scope: Arc<Scope>,
    call: Call,
    told: Told,
}

impl Begun {
    async fn send(mut self, request: Request<Body>, options: RequestOptions) -> Answer {
        let call = &mut self.call;
        let shorter = |own: Duration, asked: Option<Duration>| asked.map_or(own, |a| a.min(own));
        call.connect = shorter(call.connect, options.connect_timeout);
        call.first_byte = shorter(call.first_byte, options.first_byte_timeout);
        call.between_bytes = shorter(call.between_bytes, options.between_bytes_timeout);
        let slots = self.scope.request_slots();
        let slot = tokio::time::timeout(call.connect, slots.acquire_owned()).await;
        let Ok(Ok(slot)) = slot else {
            self.told.end("limit-requests-in-flight");
            return Err(Error::ConnectionLimitReached);
        };
        self.told.permit = Some(slot);
        let (mut parts, body) = request.into_parts();
        secret::reveal(self.scope.secrets(), &self.call.target, &mut parts.headers);
        // Bytes are counted here for the record and bounded by the client.
        let over = || Error::HttpRequestBodySize(None);
        let body = Bounded::new(body, self.told.sent.clone(), u64::MAX, over, ()).boxed();
        let request = Request::from_parts(parts, body);
        let limit = self.call.response_body;
        let target = self.call.target.clone();
        let sent = self.scope.setup().egress.send(self.call, request).await;
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) => return Err(self.told.failed(&error)),
        };
        self.told.detail =
            format!("{} from {}", sent.response.status().as_u16(), sent.address.ip());
        if !sent.note.is_empty() {
            self.told.detail = format!("{}; {}", self.told.detail, sent.note);
        }
        let mut sent = sent;
        secret::conceal(self.scope.secrets(), &target, sent.response.headers_mut());
        let received = self.told.received.clone();
        let told = self.told;
        let over = || Error::HttpResponseBodySize(None);
        let response =
            sent.response.map(|body| Bounded::new(body, received, limit, over, told).boxed());
        Ok((response, Box::new(std::future::ready(Ok(())))))
    }
}

/// Writes the outcome when the request ends, however it ends.
struct Told {
    recorder: Arc<dyn Recorder>,
    ticket: Option<Ticket>,
    since: Instant,
    sent: Count,
    received: Count,
    detail: String,
    permit: Option<OwnedSemaphorePermit>,
}

impl Told {
    fn end(&mut self, result: &'static str) {
        if let Some(ticket) = self.ticket.take() {
            self.recorder.end(
                ticket,
                Outcome {
                    result: result.into(),
                    bytes_out: self.sent.get(),
                    bytes_in: self.received.get(),
                    duration: self.since.elapsed(),
                    detail: std::mem::take(&mut self.detail),
                },
            );
        }
        self.permit = None;
    }

    fn failed(&mut self, error: &EgressError) -> Error {
        self.detail = error.to_string();
        self.end(error.code());
        error.for_guest()
    }
}

impl Ended for Told {
    fn ended(mut self, how: End) {
        self.end(match how {
            End::Whole => "ok",
            End::TooLarge => "limit-body",
            End::Timeout => "host-timeout",
            End::Broken => "host-protocol",
            End::Dropped => "dropped",
        });
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // The guest dropped the request, or its instance ended, before there was a response.
        self.end("dropped");
    }
}
