//! Docker's credential helpers: programs named `docker-credential-…` that hold passwords
//! (<https://github.com/docker/docker-credential-helpers>).

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use zeroize::Zeroizing;

use super::{Credential, Secret};

/// The time for one answer, and the longest one.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_OUTPUT: u64 = 64 << 10;

/// What a helper says.
#[derive(Clone, Debug)]
pub enum HelperAnswer {
    /// It has this.
    Found(Credential),
    /// It has nothing for the server.
    Nothing,
}

/// The boxed answer of [`Helpers`]; the error is text for people and holds nothing secret.
pub type HelperFuture<'a> = Pin<Box<dyn Future<Output = Result<HelperAnswer, String>> + Send + 'a>>;

/// Asks credential helpers.
pub trait Helpers: Send + Sync {
    /// Asks `docker-credential-NAME get` about a server.
    fn get<'a>(&'a self, name: &'a str, server: &'a str) -> HelperFuture<'a>;
}

/// Runs the helpers of these folders; with none it runs nothing.
#[derive(Clone, Debug, Default)]
pub struct HelperFolders {
    folders: Vec<PathBuf>,
}

impl HelperFolders {
    /// Looks for helpers in `folders`, in order. Those that aren't absolute are passed over, so
    /// that the current folder brings no program in.
    #[must_use]
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders: folders.into_iter().filter(|folder| folder.is_absolute()).collect() }
    }
}

impl Helpers for HelperFolders {
    fn get<'a>(&'a self, name: &'a str, server: &'a str) -> HelperFuture<'a> {
        Box::pin(async move {
            if !name_is_valid(name) {
                return Err("its name has characters that no helper has".to_owned());
            }
            let file = format!("docker-credential-{name}");
            let mut program = None;
            for folder in &self.folders {
                let path = folder.join(&file);
                if tokio::fs::metadata(&path).await.is_ok_and(|found| found.is_file()) {
                    program = Some(path);
                    break;
                }
            }
            let program = program.ok_or_else(|| "there is no such program".to_owned())?;
            match tokio::time::timeout(TIMEOUT, run(program, server)).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
            }
        })
    }
}

/// A name becomes part of a path, so nothing that means something there may be in it.
pub(super) fn name_is_valid(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

async fn run(program: PathBuf, server: &str) -> Result<HelperAnswer, String> {
    let reason = |error: std::io::Error| error.kind().to_string();
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(reason)?;
    if let Some(mut input) = child.stdin.take() {
        // A helper may end without reading; what it wrote and how it ended says the rest.
        let _ = input.write_all(server.as_bytes()).await;
    }
    let mut output = Zeroizing::new(Vec::new());
    if let Some(from) = child.stdout.take() {
        from.take(MAX_OUTPUT.saturating_add(1)).read_to_end(&mut output).await.map_err(reason)?;
    }
    if u64::try_from(output.len()).unwrap_or(u64::MAX) > MAX_OUTPUT {
        return Err(format!("its answer is over {MAX_OUTPUT} bytes"));
    }
    let status = child.wait().await.map_err(reason)?;
    if !status.success() {
        let text = String::from_utf8_lossy(&output);
        // The one error text that the protocol fixes.
        if text.trim() == "credentials not found in native keychain" {
            return Ok(HelperAnswer::Nothing);
        }
        return Err("it ended with an error".to_owned());
    }
    answer(&output)
}

#[derive(Deserialize)]
struct Output {
    #[serde(rename = "Username", default)]
    user: String,
    #[serde(rename = "Secret", default)]
    secret: String,
}

fn answer(output: &[u8]) -> Result<HelperAnswer, String> {
    let read: Output =
        serde_json::from_slice(output).map_err(|_| "its answer can't be read".to_owned())?;
    let secret = Secret::new(read.secret);
    Ok(match (read.user.as_str(), secret.reveal()) {
        (_, "") => HelperAnswer::Nothing,
        ("<token>", _) => HelperAnswer::Found(Credential::Identity { token: secret }),
        _ => HelperAnswer::Found(Credential::Password { user: read.user, password: secret }),
    })
}
