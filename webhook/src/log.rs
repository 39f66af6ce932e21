//! One JSON line for each review and event, on standard output.
//!
//! A reader that stands still must not stop reviews: lines wait in a bounded queue, and what finds
//! it full is counted as lost.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use ambit_setup::{Failure, Spot};
use jiff::Timestamp;
use serde::Serialize;

/// An event for the log.
#[derive(Debug, Serialize)]
pub struct Event<'a> {
    /// When.
    pub time: String,
    /// What happened.
    pub event: &'a str,
    /// `info` or `error`.
    pub level: &'a str,
    /// More about it.
    pub message: String,
}

impl Event<'_> {
    /// Something that happened now.
    #[must_use]
    pub fn now<'a>(event: &'a str, level: &'a str, message: String) -> Event<'a> {
        Event { time: Timestamp::now().to_string(), event, level, message }
    }
}

/// Writes a failure in one line: what is wrong, each mistake of a file, what to do, and the code.
#[must_use]
pub fn told(failure: &Failure) -> String {
    let mut line = failure.message.clone();
    for Spot { message, help, .. } in failure.spots.iter().take(MAX_SPOTS) {
        line.push_str("; ");
        line.push_str(message);
        if !help.is_empty() {
            line.push_str(": ");
            line.push_str(help);
        }
    }
    if let Some(help) = &failure.help {
        line.push_str("; ");
        line.push_str(help);
    }
    format!("{line} [{}]", failure.code)
}

/// The most mistakes of a file that a line tells.
const MAX_SPOTS: usize = 8;

/// How many lines wait.
const QUEUE: usize = 4096;

/// Where lines go. Clones share everything.
#[derive(Clone, Debug)]
pub struct Log {
    lines: SyncSender<Line>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Line {
    Text(String),
    /// The last one; whoever waits for it knows that all before it are written.
    End(SyncSender<()>),
}

impl Log {
    /// Writes to `out`, in a thread that ends after [`finish`](Self::finish).
    #[must_use]
    pub fn to(out: impl Write + Send + 'static) -> (Self, JoinHandle<()>) {
        let (lines, rest) = sync_channel(QUEUE);
        let writer = std::thread::spawn(move || write(rest, out));
        (Self { lines, lost: Arc::default() }, writer)
    }

    /// Writes a line.
    pub fn line(&self, line: &impl Serialize) {
        let Ok(mut text) = serde_json::to_string(line) else { return };
        text.push('\n');
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Line::Text(text)) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how many lines were lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until everything so far is written, and ends.
    pub fn finish(&self) {
        let (done, wait) = sync_channel(1);
        if self.lines.send(Line::End(done)).is_ok() {
            // An error means that the writer is gone, and there is nothing to wait for.
            let _ = wait.recv();
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the thread owns its end of the queue")]
fn write(lines: Receiver<Line>, mut out: impl Write) {
    for line in &lines {
        match line {
            // Where the log can't be written there is nobody to tell.
            Line::Text(text) => {
                let _ = out.write_all(text.as_bytes());
                let _ = out.flush();
            }
            Line::End(done) => {
                let _ = done.send(());
                return;
            }
        }
    }
}
