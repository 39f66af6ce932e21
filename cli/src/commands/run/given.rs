//! What the operator gives beside the manifest: values, certificates, ports, places.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::Stdio as Pipe;
use std::sync::Arc;

use ambit_engine::grant::{Dialect, HostGrants, HostPattern};
use ambit_engine::workload::Private;
use ambit_executor::aot::Cache;
use ambit_executor::egress::{BoundSecret, Client};
use ambit_executor::services::{
    Backing, ConfigMapFlag, FlagError, SecretFlag, SecretSource, Values, ValuesBuilder, entries,
};
use ambit_executor::{Limits, PrivateNetwork, Setup};

use crate::args::Run;
use crate::fetch::default_cache;
use crate::output::{Failure, Output};
use crate::source::read_file;

use super::failure;
use super::record::Recording;

/// The part of the cache folder for compiled components.
const COMPILED: &str = "compiled";

/// The largest file of values or certificates.
const MAX_FILE: usize = 1 << 20;

/// What the operator gives, read.
pub(crate) struct Given {
    pub(crate) setup: Setup,
    pub(crate) recording: Recording,
    /// Under which ephemeral volumes are made.
    pub(crate) temporary: PathBuf,
    /// Compiled components of earlier runs.
    pub(crate) cache: Option<Cache>,
}

impl Given {
    /// Reads variables, files and commands. Nothing is run or opened for a component yet.
    pub(crate) fn read(command: &Run, limits: Limits, output: &Output) -> Result<Self, Failure> {
        let mut client = Client::builder();
        for path in &command.given.ca {
            let pem = read_file(path, MAX_FILE)?;
            client = client.authorities(&pem).map_err(|error| {
                Failure::new(error.code(), format!("{}: {error}", path.display()), None)
            })?;
        }
        let client =
            client.build().map_err(|error| Failure::new(error.code(), error.to_string(), None))?;
        let (values, secrets) = bound(command, values(command)?)?;
        if let Some(dir) = &command.given.state_dir {
            std::fs::create_dir_all(dir).map_err(|error| {
                let message = format!("{}: {error}", dir.display());
                Failure::new("file-not-written", message, Some("name another folder".to_owned()))
            })?;
        }
        let recording = Recording::start(&command.recording, output)?;
        let private_network = if command.given.allow_private_network {
            PrivateNetwork::Open
        } else {
            PrivateNetwork::Closed
        };
        let setup = Setup {
            limits,
            recorder: recording.recorder(),
            egress: Arc::new(client),
            loopback: command.given.allow_host_loopback.clone(),
            private_network,
            values: Arc::new(values),
            secrets,
            services: Backing::new(Arc::new(super::serve::Logs { output: *output })),
            state_dir: command.given.state_dir.clone(),
        };
        let cache = cache(command)?;
        Ok(Self { setup, recording, temporary: std::env::temp_dir(), cache })
    }
}

/// Opens the cache of compiled components. As with the one of fetched blobs, the one that is named
/// has to work, and without a home folder there is none.
fn cache(command: &Run) -> Result<Option<Cache>, Failure> {
    if let Some(dir) = &command.inputs.registry.cache_dir {
        return Cache::open(&dir.join(COMPILED)).map(Some).map_err(|error| failure(&error));
    }
    Ok(default_cache().and_then(|dir| Cache::open(&dir.join(COMPILED)).ok()))
}

fn values(command: &Run) -> Result<ValuesBuilder, Failure> {
    let mut values = Values::builder();
    for text in &command.given.secret {
        let flag = SecretFlag::parse(text).map_err(|error| bad("--secret", &error, None))?;
        let bytes = secret(&flag)?;
        values = match &flag.key {
            Some(key) => values.secret_bytes(&flag.name, key, bytes),
            None => all(values, &flag.name, &bytes)?,
        };
    }
    for text in &command.given.config_map {
        let flag = ConfigMapFlag::parse(text).map_err(|error| bad("--config-map", &error, None))?;
        let bytes = read_file(&flag.file, MAX_FILE)?;
        let file = flag.file.display().to_string();
        let found = entries(&bytes).map_err(|error| bad("--config-map", &error, Some(&file)))?;
        let texts = found.into_iter().map(|(key, value)| {
            String::from_utf8(value).map(|value| (key, value)).map_err(|_| {
                Failure::new("value-not-text", format!("{file}: a value isn't text"), None)
            })
        });
        values = values.config_map(&flag.name, texts.collect::<Result<_, _>>()?);
    }
    Ok(values)
}

/// Puts placeholders in the place of the values that leave in headers only.
fn bound(command: &Run, mut values: ValuesBuilder) -> Result<(Values, Vec<BoundSecret>), Failure> {
    let mut secrets = Vec::new();
    for text in &command.given.secret_header {
        let wrong = |reason: &str| {
            let help = "write it as `mail.TOKEN=authorization@https://api.example.com`".to_owned();
            Failure::new("value-flag", format!("--secret-header: {reason}"), Some(help))
        };
        let parts = text.split_once('=').and_then(|(secret, place)| {
            let (name, key) = secret.split_once('.')?;
            let (header, host) = place.split_once('@')?;
            Some((name, key, header, host))
        });
        let (name, key, header, host) = parts.ok_or_else(|| wrong("it has another form"))?;
        let header = header.parse().map_err(|_| wrong("there is no header of this name"))?;
        let pattern = HostPattern::parse(host, Dialect::Ambit)
            .map_err(|error| wrong(&format!("`{host}`: {error}")))?;
        let value = values.secret_value(name, key).map(<[u8]>::to_vec);
        let value = value.ok_or_else(|| {
            let message = format!("--secret-header: `{name}.{key}` isn't given");
            let help = format!("give it with `--secret {name}.{key}=…`");
            Failure::new("value-missing", message, Some(help))
        })?;
        let value = String::from_utf8(value).map_err(|_| wrong("the value isn't text"))?;
        let hosts = HostGrants::new(vec![pattern]);
        let secret = BoundSecret::new(Private::new(&value), header, hosts)
            .map_err(|error| wrong(&error.to_string()))?;
        values = values.secret_bytes(name, key, secret.placeholder().as_bytes().to_vec());
        secrets.push(secret);
    }
    Ok((values.build(), secrets))
}

fn bad(flag: &str, error: &FlagError, file: Option<&str>) -> Failure {
    // The text of a flag may hold a secret, so it isn't repeated.
    let place = file.map_or_else(|| flag.to_owned(), |file| format!("{flag}: {file}"));
    Failure::new(error.code(), format!("{place}: {error}"), None)
}

fn all(values: ValuesBuilder, name: &str, bytes: &[u8]) -> Result<ValuesBuilder, Failure> {
    let keys = entries(bytes).map_err(|error| {
        let mut failure = bad(&format!("--secret {name}"), &error, None);
        failure.help = Some(format!("give one key with `--secret {name}.KEY=…`"));
        failure
    })?;
    Ok(keys.into_iter().fold(values, |values, (key, value)| values.secret_bytes(name, &key, value)))
}

fn secret(flag: &SecretFlag) -> Result<Vec<u8>, Failure> {
    let missing = |message: String| Failure::new("value-missing", message, None);
    let name = &flag.name;
    match &flag.source {
        SecretSource::Environment(variable) => match std::env::var_os(variable) {
            Some(value) => Ok(std::os::unix::ffi::OsStringExt::into_vec(value)),
            None => Err(missing(format!("`--secret {name}`: the variable `{variable}` isn't set"))),
        },
        SecretSource::File(path) => read_file(path, MAX_FILE).map(without_line_end),
        SecretSource::Command(command) => {
            let child = std::process::Command::new("sh")
                .args(["-c", command])
                .stdin(Pipe::null())
                .stdout(Pipe::piped())
                .spawn();
            let failed =
                |reason: String| missing(format!("`--secret {name}`: its command {reason}"));
            let mut child = child.map_err(|error| failed(format!("can't be started: {error}")))?;
            let mut bytes = Vec::new();
            let cap = u64::try_from(MAX_FILE).unwrap_or(u64::MAX);
            if let Some(out) = child.stdout.take() {
                out.take(cap)
                    .read_to_end(&mut bytes)
                    .map_err(|error| failed(format!("can't be read: {error}")))?;
            }
            match child.wait() {
                Ok(status) if status.success() => Ok(without_line_end(bytes)),
                Ok(status) => Err(failed(format!("ended with {status}"))),
                Err(error) => Err(failed(format!("didn't end: {error}"))),
            }
        }
    }
}

/// A line end after a value belongs to the file or the command, not to the value.
fn without_line_end(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    bytes
}
