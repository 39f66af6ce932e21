//! The record of a run, and what is told of it while it runs.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use ambit_engine::catalogue::Verb;
use ambit_executor::Limits;
use ambit_executor::record::{
    Effect, Options, Outcome, RecordError, Recorder, Ruling, SEGMENT_BYTES, Seal, Ticket, Who,
    Writer,
};
use ambit_executor::telemetry::{Metrics, Traces};
use ambit_trust::keys::SigningKey;

use crate::commands::record::default_dir;
use crate::output::{Failure, Output};
use crate::render::style::safe;
use crate::{args, key};

/// How many different denials are told; the record has them all.
const MAX_TOLD: usize = 50;

/// The smallest size at which a record goes on in a new file, in bytes.
const MIN_SEGMENT_BYTES: u64 = 64 << 10;

/// The record of a run, while it is written.
pub(crate) struct Recording {
    writer: Arc<Writer>,
    recorder: Arc<dyn Recorder>,
    metrics: Option<(Metrics, SocketAddr)>,
    traces: Option<Traces>,
    output: Output,
}

impl Recording {
    /// Begins the record. Without one nothing is run.
    pub(super) fn start(flags: &args::Recording, output: &Output) -> Result<Self, Failure> {
        let dir = flags.record.clone().or_else(default_dir).ok_or_else(|| {
            let message = "there is no home folder to keep the record in";
            let help = "name a folder with `--record`".to_owned();
            Failure::new("record-failed", message, Some(help))
        })?;
        let seal = flags.record_key.as_ref().map(|path| {
            let password_file = flags.record_password_file.clone();
            key::read(&args::SigningKey { key: path.clone(), password_file })
        });
        let seal = seal.transpose()?.map(|key| Box::new(Sealing(key)) as Box<dyn Seal>);
        let segment_bytes = match &flags.record_rotate {
            Some(text) => segment_bytes(text)?,
            None => SEGMENT_BYTES,
        };
        let options = Options { sync: flags.record_sync, segment_bytes, seal };
        let writer = Writer::create(&dir, options).map_err(|error| failed(&error))?;
        let writer = Arc::new(writer);
        let mut recorder: Arc<dyn Recorder> = Arc::<Writer>::clone(&writer);
        let traces = flags.otlp.as_deref().map(Traces::start).transpose().map_err(|error| {
            let help = "name a collector's address, as `http://127.0.0.1:4318`".to_owned();
            Failure::new(error.code(), error.to_string(), Some(help))
        })?;
        if let Some(traces) = &traces {
            recorder = traces.recorder(recorder);
        }
        let metrics = flags.metrics.map(|address| (Metrics::new(), address));
        if let Some((metrics, _)) = &metrics {
            recorder = metrics.recorder(recorder);
        }
        let told = Mutex::new(BTreeSet::new());
        let recorder = Arc::new(Telling { inner: recorder, output: *output, told });
        Ok(Self { writer, recorder, metrics, traces, output: *output })
    }

    pub(super) fn recorder(&self) -> Arc<dyn Recorder> {
        Arc::clone(&self.recorder)
    }

    /// Records that a component may run.
    pub(super) fn component(&self, who: &Who, verdict: &str) -> Result<(), Failure> {
        self.writer.component(who, verdict).map_err(|error| failed(&error))
    }

    /// Serves metrics, if that is asked for.
    pub(super) async fn serve_metrics(&self) -> Result<(), Failure> {
        let Some((metrics, address)) = &self.metrics else { return Ok(()) };
        let address = metrics.serve(*address).await.map_err(|error| {
            let help = "choose another address with `--metrics`".to_owned();
            Failure::new("metrics-address", format!("{address}: {error}"), Some(help))
        })?;
        self.output.about(&format!("metrics at http://{address}/metrics\n"));
        Ok(())
    }

    /// Ends the record, and tells where it is.
    pub(super) fn finish(&self) -> Result<(), Failure> {
        if let Some(traces) = &self.traces {
            traces.finish();
        }
        let head = self.writer.finish().map_err(|error| failed(&error))?;
        let path = head.path.display();
        self.output.about(&format!("record {path}: {} lines, sha256:{}\n", head.lines, head.hash));
        Ok(())
    }
}

fn segment_bytes(text: &str) -> Result<u64, Failure> {
    let failure = |message: String| Failure::new("run-limit", message, None);
    let bytes =
        Limits::bytes(text).map_err(|error| failure(format!("`--record-rotate`: {error}")))?;
    if bytes < MIN_SEGMENT_BYTES {
        return Err(failure(format!("`--record-rotate` is at least {MIN_SEGMENT_BYTES} bytes")));
    }
    Ok(bytes)
}

pub(super) fn failed(error: &RecordError) -> Failure {
    let help = "make room there, or name another folder with `--record`".to_owned();
    Failure::new("record-failed", format!("the record can't be written: {error}"), Some(help))
}

/// Signs with the key that the operator names.
struct Sealing(SigningKey);

impl Seal for Sealing {
    fn key(&self) -> String {
        self.0.fingerprint().to_string()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        self.0.sign(message).map_err(|error| error.to_string())
    }
}

/// A verb before the one thing that it is about.
fn act(verb: Verb) -> &'static str {
    let acts = [
        (Verb::ReachHosts, "reach"),
        (Verb::LookUpNames, "look up"),
        (Verb::OpenSockets, "open a socket to"),
        (Verb::UseMachinePorts, "use"),
        (Verb::ReadFolder, "read"),
        (Verb::ChangeFolder, "change"),
        (Verb::UseHostService, "use"),
    ];
    let found = acts.into_iter().find(|(known, _)| *known == verb);
    found.map_or(verb.as_str(), |(_, act)| act)
}

/// Tells of each denial once, with the line of the manifest that would allow it.
struct Telling {
    inner: Arc<dyn Recorder>,
    output: Output,
    told: Mutex<BTreeSet<(String, String)>>,
}

impl Recorder for Telling {
    fn begin(&self, effect: &Effect<'_>) -> Result<Ticket, RecordError> {
        let ticket = self.inner.begin(effect)?;
        if let Ruling::Denied { code, reason, help } = &effect.ruling
            && let Ok(mut told) = self.told.lock()
            && told.len() < MAX_TOLD
            && told.insert((effect.who.component.clone(), format!("{code} {}", effect.subject)))
        {
            let verb = act(effect.verb);
            let message =
                format!("`{}` may not {verb} {}: {reason}", effect.who.component, effect.subject);
            self.output.denied(code, &safe(&message), help);
            if told.len() == MAX_TOLD {
                self.output.note("further denials are on record only");
            }
        }
        Ok(ticket)
    }

    fn end(&self, ticket: Ticket, outcome: Outcome) {
        self.inner.end(ticket, outcome);
    }
}
