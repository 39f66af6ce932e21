//! What a worker has in place of record, network and terminal: the parent's, over the channel.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex};

use ambit_engine::grant::RangePolicy;
use http::{HeaderValue, Request};
use http_body_util::BodyExt as _;

use super::channel::Channel;
use super::message::{self, Ask, Begun, CALL, SENT, Sent};
use super::pool::Pool;
use crate::egress::{self, Body, BoxFuture, Egress, EgressError, Resolver as _, SystemResolver};
use crate::record::{Effect, Outcome, RecordError, Recorder, Ruling, Ticket, Who};
use crate::services::{LogLine, LogSink};
use crate::stdio::{LineSink, Stream};

/// The parent, as a worker reaches it.
#[derive(Clone, Debug)]
pub(super) struct Parent {
    calls: Arc<Mutex<Channel>>,
}

impl Parent {
    pub(super) fn new(calls: Channel) -> Self {
        Self { calls: Arc::new(Mutex::new(calls)) }
    }

    /// Tells something that has no reply. If the parent is gone so is this process, soon.
    fn tell(&self, ask: &Ask) {
        if let Ok(calls) = self.calls.lock() {
            let _ = calls.send(ask, &[]);
        }
    }

    pub(super) fn egress(&self) -> RemoteEgress {
        let parent = self.clone();
        let pool = Pool::new(Box::new(move |fd| {
            let calls = parent.calls.lock().map_err(|_| io::Error::other("the channel broke"))?;
            calls.send(&Ask::Egress, &[fd.as_fd()])
        }));
        RemoteEgress {
            pool: Arc::new(pool),
            ranges: RangePolicy::default(),
            resolver: SystemResolver::default(),
        }
    }
}

impl Recorder for Parent {
    fn begin(&self, effect: &Effect<'_>) -> Result<Ticket, RecordError> {
        let (denied, grant) = match &effect.ruling {
            Ruling::Allowed(source) => {
                let grant = source.map(|s| (s.text.clone(), s.file.clone(), s.line));
                (None, grant)
            }
            Ruling::Denied { code, reason, help } => {
                (Some(((*code).to_owned(), reason.to_string(), help.to_string())), None)
            }
        };
        let ask = Ask::Begin(message::Effect {
            component: effect.who.component.clone(),
            instance: effect.instance,
            verb: effect.verb.as_str().to_owned(),
            interface: effect.interface.to_owned(),
            function: effect.function.to_owned(),
            subject: effect.subject.to_string(),
            denied,
            grant,
        });
        let calls = self.calls.lock().map_err(|_| RecordError::Broken)?;
        calls.send(&ask, &[]).map_err(|_| RecordError::Broken)?;
        let reply = calls.receive::<Begun>().map_err(|_| RecordError::Broken)?;
        match reply {
            Some((Begun(Some(ticket)), _)) => Ok(Ticket(ticket)),
            Some((Begun(None), _)) | None => Err(RecordError::Broken),
        }
    }

    fn end(&self, ticket: Ticket, outcome: Outcome) {
        self.tell(&Ask::End {
            ticket: ticket.0,
            result: outcome.result.into_owned(),
            bytes_out: outcome.bytes_out,
            bytes_in: outcome.bytes_in,
            duration: outcome.duration,
            detail: outcome.detail,
        });
    }
}

impl LineSink for Parent {
    fn line(&self, who: &Who, stream: Stream, line: &str) {
        let is_error = stream == Stream::Err;
        let (component, text) = (who.component.clone(), line.to_owned());
        self.tell(&Ask::Line { component, is_error, text });
    }
}

impl LogSink for Parent {
    fn line(&self, line: LogLine) {
        self.tell(&Ask::Log {
            component: line.who.component,
            instance: line.instance,
            level: line.level.as_str().to_owned(),
            context: line.context,
            message: line.message,
        });
    }
}

/// Sends requests by way of the parent, which decides once more, knows the secrets, and dials.
#[derive(Debug)]
pub(super) struct RemoteEgress {
    pool: Arc<Pool>,
    ranges: RangePolicy,
    resolver: SystemResolver,
}

impl Egress for RemoteEgress {
    fn send(
        &self,
        call: egress::Call,
        request: Request<Body>,
    ) -> BoxFuture<Result<egress::Sent, EgressError>> {
        let pool = Arc::clone(&self.pool);
        Box::pin(async move { send(&pool, &call, request).await })
    }

    fn ranges(&self) -> &RangePolicy {
        &self.ranges
    }

    fn resolve(&self, name: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        // Where sockets are granted the process has a network of its own, else this fails.
        self.resolver.resolve(name)
    }
}

async fn send(
    pool: &Pool,
    call: &egress::Call,
    mut request: Request<Body>,
) -> Result<egress::Sent, EgressError> {
    let broken = |reason: String| EgressError::Connect { reason };
    let target = call.target.to_string();
    let (scheme, authority) = target.split_once("://").unwrap_or_default();
    let header = message::Call {
        component: call.component.clone(),
        scheme: scheme.to_owned(),
        authority: authority.to_owned(),
        connect: call.connect,
        first_byte: call.first_byte,
        between_bytes: call.between_bytes,
        total: call.total,
    };
    let header = serde_json::to_string(&header).map_err(|error| broken(error.to_string()))?;
    let header = HeaderValue::try_from(header).map_err(|error| broken(error.to_string()))?;
    request.headers_mut().insert(CALL, header);
    request.headers_mut().insert(http::header::HOST, HeaderValue::from_static("ambit"));
    let response = pool.send(request).await.map_err(|error| broken(error.to_string()))?;
    let (mut parts, body) = response.into_parts();
    let sent = parts.headers.remove(SENT);
    let sent = sent.and_then(|sent| serde_json::from_slice::<Sent>(sent.as_bytes()).ok());
    match sent {
        Some(Sent::Answered { address, note }) => {
            let body = body.map_err(Into::into).boxed_unsync();
            let response = http::Response::from_parts(parts, body);
            Ok(egress::Sent { response, address, note })
        }
        Some(Sent::Failed(failure)) => Err(failure.error()),
        None => Err(broken("the process that sends gave no answer".to_owned())),
    }
}
