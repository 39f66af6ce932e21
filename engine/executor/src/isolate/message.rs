//! What parent and worker say to each other.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use ambit_engine::grant::classify;
use serde::{Deserialize, Serialize};

use super::confine::Confined;
use crate::egress::EgressError;
use crate::limits::Limits;

/// The descriptor on which a worker finds its orders.
pub(super) const CONTROL: i32 = 3;

/// The descriptor on which a worker asks.
pub(super) const CALLS: i32 = 4;

/// The largest memory file with a worker's terms, in bytes.
pub(super) const MAX_TERMS: u64 = 256 << 20;

/// The largest memory file with compiled code, in bytes.
pub(super) const MAX_CODE: u64 = 1 << 30;

/// The largest memory file with the text of an answer, in bytes.
pub(super) const MAX_ANSWER: u64 = 32 << 20;

/// What the parent orders.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Order {
    /// The terms, as a memory file: the first order.
    Terms,
    /// The compiled code of the next component, as a memory file.
    Code,
    /// Everything is here: load it.
    Load,
    /// Answer HTTP on this socket.
    Connection,
    /// Run the command.
    Command,
    /// Call a function; its text is a memory file.
    Invoke,
}

/// Everything that a worker works with.
#[derive(Deserialize, Serialize)]
pub(super) struct Terms {
    /// As [`ambit_engine::admitted::Admitted::to_child`] writes it.
    pub(super) admitted: String,
    pub(super) limits: Limits,
    pub(super) pooled: bool,
    /// Kind, name, and the keys with their values, of the Secrets and ConfigMaps that the workload
    /// refers to.
    pub(super) values: Vec<Object>,
    pub(super) loopback: Vec<u16>,
    pub(super) private_network: bool,
    pub(super) state_dir: Option<PathBuf>,
    pub(super) temporary: PathBuf,
    pub(super) arguments: Vec<String>,
}

/// One Secret or ConfigMap.
#[derive(Deserialize, Serialize)]
pub(super) struct Object {
    pub(super) is_secret: bool,
    pub(super) name: String,
    pub(super) keys: Vec<(String, Vec<u8>)>,
}

/// What a worker reports.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Report {
    /// It is loaded.
    Loaded { confined: Confined, entry: Entry, hosts: Vec<String>, warnings: Vec<String> },
    /// A command ended.
    Ended { status: i32 },
    /// A call gave a result; its text is a memory file.
    Answer,
    /// What was ordered failed.
    Failed { code: String, message: String, help: String },
}

/// What starting a workload means; [`crate::workload::Entry`] without the program.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Entry {
    /// It answers HTTP requests.
    Handler,
    /// It runs to its end.
    Command,
    /// It is called.
    Library,
}

/// What a worker asks.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Ask {
    /// May this effect begin?
    Begin(Effect),
    /// It ended. There is no reply.
    End {
        ticket: u64,
        result: String,
        bytes_out: u64,
        bytes_in: u64,
        duration: Duration,
        detail: String,
    },
    /// A component wrote a line. There is no reply.
    Line { component: String, is_error: bool, text: String },
    /// A component logged. There is no reply.
    Log { component: String, instance: u64, level: String, context: String, message: String },
    /// Take requests on this socket. There is no reply.
    Egress,
}

/// An effect as a worker names it. Whose it is, the parent knows.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Effect {
    pub(super) component: String,
    pub(super) instance: u64,
    pub(super) verb: String,
    pub(super) interface: String,
    pub(super) function: String,
    pub(super) subject: String,
    /// Code, reason and help of a denial.
    pub(super) denied: Option<(String, String, String)>,
    /// Text, file and line of what gives it.
    pub(super) grant: Option<(String, String, u32)>,
}

/// The reply to [`Ask::Begin`]: the ticket, or nothing if the record can't be written.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Begun(pub(super) Option<u64>);

/// The header in which a request names what was decided on.
pub(super) const CALL: &str = "ambit-call";

/// The header in which a response says who answered, or an error what was wrong.
pub(super) const SENT: &str = "ambit-sent";

/// What a worker wants sent. The parent decides by itself whether it may be.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Call {
    pub(super) component: String,
    pub(super) scheme: String,
    pub(super) authority: String,
    pub(super) connect: Duration,
    pub(super) first_byte: Duration,
    pub(super) between_bytes: Duration,
    pub(super) total: Duration,
}

/// What became of a request.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Sent {
    /// There is a response.
    Answered { address: std::net::SocketAddr, note: String },
    /// There is none.
    Failed(Failure),
}

/// Why there is no response: an [`EgressError`] on its way.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Failure {
    Closed,
    NotFound { name: String },
    Prohibited { name: String, address: IpAddr },
    Connect { reason: String },
    Tls { reason: String },
    Timeout { phase: String },
    TooLarge { what: String },
    Abandoned { reason: String },
    Protocol { reason: String },
}

/// The phases and things that an error may name.
const NAMED: [&str; 6] = [
    "the connection",
    "the response",
    "the body",
    "the request's body",
    "the response's body",
    "the response's head",
];

impl From<EgressError> for Failure {
    fn from(error: EgressError) -> Self {
        match error {
            EgressError::Closed => Self::Closed,
            EgressError::NotFound { name } => Self::NotFound { name },
            EgressError::Prohibited { name, address, class: _ } => {
                Self::Prohibited { name, address }
            }
            EgressError::Connect { reason } => Self::Connect { reason },
            EgressError::Tls { reason } => Self::Tls { reason },
            EgressError::Timeout { phase } => Self::Timeout { phase: phase.to_owned() },
            EgressError::TooLarge { what } => Self::TooLarge { what: what.to_owned() },
            EgressError::Abandoned { reason } => Self::Abandoned { reason },
            EgressError::Protocol { reason } => Self::Protocol { reason },
        }
    }
}

impl Failure {
    /// Returns the error that it was.
    pub(super) fn error(self) -> EgressError {
        let named = |text: &str| {
            NAMED.into_iter().find(|named| *named == text).unwrap_or("a part of the exchange")
        };
        match self {
            Self::Closed => EgressError::Closed,
            Self::NotFound { name } => EgressError::NotFound { name },
            Self::Prohibited { name, address } => {
                EgressError::Prohibited { name, address, class: classify(address) }
            }
            Self::Connect { reason } => EgressError::Connect { reason },
            Self::Tls { reason } => EgressError::Tls { reason },
            Self::Timeout { phase } => EgressError::Timeout { phase: named(&phase) },
            Self::TooLarge { what } => EgressError::TooLarge { what: named(&what) },
            Self::Abandoned { reason } => EgressError::Abandoned { reason },
            Self::Protocol { reason } => EgressError::Protocol { reason },
        }
    }
}
