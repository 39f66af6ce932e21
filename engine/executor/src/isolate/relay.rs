//! Requests of a worker: decided on once more, given their secrets, and sent by the parent.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ambit_engine::admitted::{Admitted, AdmittedComponent};
use ambit_engine::catalogue::Verb;
use ambit_engine::grant::HostGrants;
use http::header::{CONNECTION, HOST, HeaderValue};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::message::{CALL, Call, SENT, Sent};
use crate::egress::{self, Body, Decided, Denial, EgressError, OUTGOING, Openings, decide, secret};
use crate::record::{Effect, Ruling, Who};
use crate::scope::Setup;

/// What the parent needs to decide about and send the requests of one workload.
pub(super) struct Relay {
    setup: Setup,
    components: Vec<Sender>,
    /// How many requests to each target are on record as under way.
    begun: Mutex<HashMap<String, u32>>,
}

struct Sender {
    who: Who,
    component: AdmittedComponent,
    hosts: Arc<HostGrants>,
    owner: Arc<str>,
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").finish_non_exhaustive()
    }
}

impl Relay {
    pub(super) fn new(admitted: &Admitted, components: &[Who], setup: &Setup) -> Self {
        let senders = admitted.components().iter().zip(components);
        let components = senders
            .map(|(component, who)| Sender {
                who: who.clone(),
                component: component.clone(),
                hosts: Arc::new(component.hosts().clone()),
                owner: egress::owner(who),
            })
            .collect();
        Self { setup: setup.clone(), components, begun: Mutex::default() }
    }

    /// A request to `target` is on record.
    pub(super) fn begun(&self, target: &str) {
        if let Ok(mut begun) = self.begun.lock() {
            let count = begun.entry(target.to_owned()).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// It ended.
    pub(super) fn ended(&self, target: &str) {
        if let Ok(mut begun) = self.begun.lock()
            && let Some(count) = begun.get_mut(target)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                begun.remove(target);
            }
        }
    }

    /// Serves one socket of the worker.
    pub(super) async fn serve(self: Arc<Self>, socket: OwnedFd) {
        let stream = StdStream::from(socket);
        // A worker may send a socket of any kind; what blocks would hold a thread.
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let Ok(stream) = UnixStream::from_std(stream) else { return };
        let service = service_fn(move |request| {
            let relay = Arc::clone(&self);
            async move { Ok::<_, std::convert::Infallible>(relay.send(request).await) }
        });
        // How it ends is seen by the worker.
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    async fn send(&self, request: Request<Incoming>) -> Response<Body> {
        match self.sent(request).await {
            Ok(sent) => {
                let answered = Sent::Answered { address: sent.address, note: sent.note };
                let mut response = sent.response;
                response.headers_mut().remove(CONNECTION);
                told(response, &answered)
            }
            Err(error) => {
                let nothing = Empty::new().map_err(|never| match never {}).boxed_unsync();
                told(Response::new(nothing), &Sent::Failed(error.into()))
            }
        }
    }

    async fn sent(&self, request: Request<Incoming>) -> Result<egress::Sent, EgressError> {
        let call = request.headers().get(CALL).map(HeaderValue::as_bytes);
        let call = call.and_then(|call| serde_json::from_slice::<Call>(call).ok());
        let call = call.ok_or(EgressError::Closed)?;
        let sender = self.components.iter().find(|one| one.who.component == call.component);
        let sender = sender.ok_or(EgressError::Closed)?;
        let allowed = self.decide(sender, &call)?;
        let limits = &self.setup.limits;
        let at_most = |asked: Duration| asked.min(limits.request_time);
        let (mut parts, body) = request.into_parts();
        parts.headers.remove(CALL);
        parts.headers.remove(HOST);
        parts.headers.remove(CONNECTION);
        secret::reveal(&self.setup.secrets, &allowed.target, &mut parts.headers);
        let request = Request::from_parts(parts, body.map_err(Into::into).boxed_unsync());
        let call = egress::Call {
            owner: Arc::clone(&sender.owner),
            component: sender.who.component.clone(),
            target: allowed.target,
            hosts: Arc::clone(&sender.hosts),
            consent: allowed.consent,
            connect: at_most(call.connect),
            first_byte: at_most(call.first_byte),
            between_bytes: at_most(call.between_bytes),
            total: at_most(call.total),
            request_body: limits.request_body_bytes,
            response_body: limits.response_body_bytes,
            header_bytes: limits.header_bytes,
        };
        let target = call.target.clone();
        let mut sent = self.setup.egress.send(call, request).await?;
        secret::conceal(&self.setup.secrets, &target, sent.response.headers_mut());
        Ok(sent)
    }

    /// Decides as the worker has to have decided. If it decided otherwise, or put nothing on
    /// record, its sandbox is broken, and that is on record.
    fn decide(&self, sender: &Sender, call: &Call) -> Result<Allowed, EgressError> {
        let setup = &self.setup;
        let openings = Openings::of(setup);
        let component = &sender.component;
        let decided = decide(component, openings, &call.scheme, &call.authority);
        let breach = match decided {
            Decided::Allowed { target, consent, .. } => {
                let subject = target.to_string();
                let on_record = self.begun.lock().is_ok_and(|begun| begun.contains_key(&subject));
                if component.plan().grants(OUTGOING) && on_record {
                    return Ok(Allowed { target, consent });
                }
                subject
            }
            Decided::Denied(Denial { subject, .. }) => subject,
        };
        // The request isn't sent either way.
        let _ = setup.recorder.begin(&Effect {
            who: &sender.who,
            instance: 0,
            verb: Verb::ReachHosts,
            interface: OUTGOING,
            function: "handle",
            subject: breach.into(),
            ruling: Ruling::Denied {
                code: "isolate-breach",
                reason: "its process asked for what it has to know is denied".into(),
                help: "stop the workload: its component may have left its sandbox".into(),
            },
        });
        Err(EgressError::Closed)
    }
}

struct Allowed {
    target: ambit_engine::grant::Target,
    consent: ambit_engine::grant::Consent,
}

fn told(mut response: Response<Body>, sent: &Sent) -> Response<Body> {
    let text = serde_json::to_string(sent).unwrap_or_default();
    // Text that can't be a header leaves the worker without an answer, which it takes for a failure.
    if let Ok(text) = HeaderValue::try_from(text) {
        response.headers_mut().insert(SENT, text);
    }
    response
}
