//! Answering HTTP requests: one instance for each, dropped afterwards.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use ambit_engine::catalogue::Verb;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use wasmtime_wasi_http::Error;
use wasmtime_wasi_http::p2::bindings::ProxyPre;
use wasmtime_wasi_http::p2::bindings::http::types::Scheme;

use crate::egress::Body;
use crate::egress::body::{Bounded, Count, End, Ended};
use crate::error::ExecutorError;
use crate::instance::{ended, within};
use crate::limits::{Trip, TripCell};
use crate::program::Program;
use crate::record::{Effect, Outcome, Recorder, Ruling, Ticket};
use crate::scope::Scope;
use crate::state::State;
use crate::stdio::Stdio;

const INTERFACE: &str = "wasi:http/incoming-handler@0.2";

/// The longest subject on record.
const MAX_SUBJECT: usize = 512;

/// A component that answers HTTP requests.
pub struct Handler {
    program: Program,
    pre: ProxyPre<State>,
    stdio: Stdio,
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handler").field("program", &self.program).finish_non_exhaustive()
    }
}

impl Handler {
    /// Prepares a program that exports `wasi:http/incoming-handler`.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::NoExport`] if it doesn't, or not in a form that this host can call.
    pub fn new(program: &Program, stdio: Stdio) -> Result<Arc<Self>, ExecutorError> {
        let pre = ProxyPre::new(program.pre().clone()).map_err(|_| ExecutorError::NoExport {
            component: program.scope().who().component.clone(),
            wanted: "`wasi:http/incoming-handler` that this host can call".to_owned(),
        })?;
        let slots = program.scope().limits().concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Ok(Arc::new(Self {
            program: program.clone(),
            pre,
            stdio,
            slots: Arc::new(Semaphore::new(slots)),
            waiting: AtomicUsize::new(0),
        }))
    }

    /// Returns what its instances share.
    #[must_use]
    pub fn scope(&self) -> &Arc<Scope> {
        self.program.scope()
    }

    /// Answers one request. There is always an answer: what goes wrong becomes a status and a line
    /// that names the code, and is on record.
    ///
    /// The response's body ends with an error if the component traps or meets a bound after its
    /// head, so that a broken answer never looks whole.
    pub async fn handle<B>(self: Arc<Self>, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Error>,
    {
        let limits = self.scope().limits();
        let head = request.method() == http::Method::HEAD;
        let length = request.headers().get(http::header::CONTENT_LENGTH);
        let length = length.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let Some(slot) = self.slot().await else {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "limit-concurrency", "it is busy");
        };
        let subject = subject(&request);
        let instance = self.scope().next_instance();
        let effect = Effect {
            who: self.scope().who(),
            instance,
            verb: Verb::ServeRequests,
            interface: INTERFACE,
            function: "handle",
            subject: subject.into(),
            ruling: Ruling::Allowed(None),
        };
        let recorder = Arc::clone(&self.scope().setup().recorder);
        let Ok(ticket) = recorder.begin(&effect) else {
            return refusal(
                StatusCode::INTERNAL_SERVER_ERROR,
                "record-failed",
                "the record can't be written",
            );
        };
        let received = Count::default();
        let mut told = Told {
            recorder,
            ticket: Some(ticket),
            since: Instant::now(),
            received: received.clone(),
            sent: Count::default(),
            detail: String::new(),
            failed: Arc::default(),
        };
        if length.is_some_and(|length| length > limits.request_body_bytes) {
            told.end("limit-body");
            return refusal(
                StatusCode::PAYLOAD_TOO_LARGE,
                "limit-body",
                "the request is too large",
            );
        }
        let (sender, answered) = oneshot::channel();
        let failed = Arc::clone(&told.failed);
        let call = Arc::clone(&self).call(instance, request, (received, sender), slot, failed);
        let task = AbortOnDrop(Some(tokio::spawn(call)));
        match answered.await {
            Ok(Ok(response)) => {
                told.detail = response.status().as_u16().to_string();
                let length = response.headers().get(http::header::CONTENT_LENGTH);
                let left = match length.and_then(|value| value.to_str().ok()?.parse().ok()) {
                    _ if head => Some(0),
                    length => length,
                };
                let count = told.sent.clone();
                let limit = limits.response_body_bytes;
                let over = || Error::HttpResponseBodySize(None);
                response.map(|body| {
                    let failed = Arc::clone(&told.failed);
                    let body = Answer { inner: body, failed, left, task: Some(task) };
                    Bounded::new(body.boxed_unsync(), count, limit, over, told).boxed()
                })
            }
            Ok(Err(error)) => {
                told.detail = format!("the component answered with the error {error:?}");
                told.end("guest-error");
                refusal(StatusCode::BAD_GATEWAY, "guest-error", "it answered with an error")
            }
            // The sender is gone: the component ended without an answer, or was ended.
            Err(_) => match task.result().await {
                Err(error) => {
                    told.detail = error.to_string();
                    told.end(error.code());
                    refusal(status(&error), error.code(), &short(&error))
                }
                Ok(()) => {
                    told.end("guest-no-answer");
                    refusal(
                        StatusCode::BAD_GATEWAY,
                        "guest-no-answer",
                        "it ended without an answer",
                    )
                }
            },
        }
    }

    /// Waits for a place; `None` if too many wait already, or it takes too long.
    async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            return Some(slot);
        }
        let limits = self.scope().limits();
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= limits.queue {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let _leave = Leave(&self.waiting);
        let slot = Arc::clone(&self.slots).acquire_owned();
        tokio::time::timeout(limits.wall, slot).await.ok()?.ok()
    }

    /// Runs one instance to its end.
    async fn call<B>(
        self: Arc<Self>,
        instance: u64,
        request: Request<B>,
        (received, sender): (Count, oneshot::Sender<Result<Response<Body>, Code>>),
        slot: OwnedSemaphorePermit,
        failed: Arc<OnceLock<&'static str>>,
    ) -> Result<(), ExecutorError>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Error>,
    {
        let limits = self.scope().limits();
        let wall = limits.wall;
        let mut store = self.program.store(&self.stdio, instance, wall);
        let (deadline, trip, cpu) = {
            let instance = &store.data().instance;
            (instance.deadline, instance.trip.clone(), instance.cpu.clone())
        };
        let limit = limits.request_body_bytes;
        let request = request.map(|body| {
            let over = || Error::HttpRequestBodySize(None);
            let body = body.map_err(Into::into).boxed_unsync();
            Bounded::new(body, received, limit, over, ()).boxed()
        });
        let call = async {
            let mut view = store.data_mut().http();
            let request = view.new_incoming_request(Scheme::Http, request)?;
            let out = view.new_response_outparam_from_callback(move |answer| {
                let answer = answer
                    .map(|response| response.map(|body| body.map_err(Into::into).boxed_unsync()));
                // The client may be gone, which is no concern of the component.
                let _ = sender.send(answer);
            })?;
            let proxy = self.pre.instantiate_async(&mut store).await?;
            proxy.wasi_http_incoming_handler().call_handle(&mut store, request, out).await
        };
        let result = within(deadline, (&trip, &cpu), wall, call).await;
        let result = result.map_err(|error| self.failure(&trip, &error));
        if let Err(error) = &result {
            // Noted before the store goes, since its end closes the body as if it were whole.
            let _ = failed.set(error.code());
        }
        drop(store);
        drop(slot);
        result
    }

    fn failure(&self, trip: &TripCell, error: &wasmtime::Error) -> ExecutorError {
        ended(&self.program, trip, error)
    }
}

type Code = wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;

struct Leave<'a>(&'a AtomicUsize);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A task that ends when nobody wants its answer any more.
struct AbortOnDrop(Option<tokio::task::JoinHandle<Result<(), ExecutorError>>>);

impl AbortOnDrop {
    async fn result(mut self) -> Result<(), ExecutorError> {
        let Some(task) = &mut self.0 else { return Ok(()) };
        match task.await {
            Ok(result) => result,
            // The task was aborted or panicked; neither is an answer.
            Err(error) => Err(ExecutorError::Engine { reason: error.to_string() }),
        }
    }

    /// Lets the task go on until its own deadline.
    fn let_go(mut self) {
        self.0 = None;
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// The body that a component streams. Where the component failed, it ends with an error.
struct Answer {
    inner: Body,
    failed: Arc<OnceLock<&'static str>>,
    /// Bytes that are still to come, where the component has said how many there are.
    left: Option<u64>,
    task: Option<AbortOnDrop>,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            None if self.failed.get().is_some() => {
                Poll::Ready(Some(Err(Error::HttpResponseIncomplete)))
            }
            None => {
                self.left = Some(0);
                Poll::Ready(None)
            }
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                let length = u64::try_from(length).unwrap_or(u64::MAX);
                self.left = self.left.map(|left| left.saturating_sub(length));
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // What the component does after a whole answer has time until its deadline.
        if let Some(task) = self.task.take()
            && self.left == Some(0)
        {
            task.let_go();
        }
    }
}

/// Writes the outcome when the answer ends, however it ends.
struct Told {
    recorder: Arc<dyn Recorder>,
    ticket: Option<Ticket>,
    since: Instant,
    received: Count,
    sent: Count,
    detail: String,
    failed: Arc<OnceLock<&'static str>>,
}

impl Told {
    fn end(&mut self, result: &'static str) {
        let Some(ticket) = self.ticket.take() else { return };
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
}

impl Ended for Told {
    fn ended(mut self, how: End) {
        let failed = self.failed.get().copied();
        self.end(match how {
            End::Whole => "ok",
            End::TooLarge => "limit-body",
            End::Timeout | End::Broken => failed.unwrap_or("guest-error"),
            End::Dropped => "dropped",
        });
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // The client went away before there was an answer.
        self.end("dropped");
    }
}

/// What a request is called on record: method, host and path, without a query.
fn subject<B>(request: &Request<B>) -> String {
    let host = request.headers().get(http::header::HOST).and_then(|host| host.to_str().ok());
    let mut subject = String::with_capacity(64);
    for part in [request.method().as_str(), " ", host.unwrap_or_default(), request.uri().path()] {
        let room = MAX_SUBJECT.saturating_sub(subject.len());
        // Everything here is ASCII, so any cut is between two characters.
        subject.push_str(part.get(..part.len().min(room)).unwrap_or_default());
    }
    subject
}

fn status(error: &ExecutorError) -> StatusCode {
    let ExecutorError::Tripped { trip, .. } = error else { return StatusCode::BAD_GATEWAY };
    if matches!(trip, Trip::Wall(_) | Trip::Cpu(_)) {
        StatusCode::GATEWAY_TIMEOUT
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    }
}

fn short(error: &ExecutorError) -> String {
    if let ExecutorError::Tripped { trip, .. } = error {
        trip.to_string()
    } else {
        "it failed".to_owned()
    }
}

/// An answer of the host's own.
pub(crate) fn refusal(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let text = format!("{code}: {message}\n");
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(http::header::CONTENT_TYPE, plain);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("1"));
    }
    response
}
