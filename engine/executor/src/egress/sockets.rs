//! Raw sockets under the host list: each address is judged before it is used.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use ambit_engine::admitted::GrantSource;
use ambit_engine::catalogue::Verb;
use ambit_engine::grant::Target;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::sockets::{SocketAddrUse, WasiSocketsCtxView};

use super::decide::{Decided, Denial, Openings, of_target};
use crate::limits::Trip;
use crate::record::{Effect, Outcome, Ruling};
use crate::scope::Scope;
use crate::state::{Instance, State};

/// The most names that are remembered for one address, and addresses that have names.
const MAX_NAMES: usize = 64;
const MAX_LOOKED_UP: usize = 4096;

impl State {
    /// Returns the view that `wasi:sockets` works on.
    pub(crate) fn sockets(&mut self) -> WasiSocketsCtxView<'_> {
        WasiSocketsCtxView { ctx: self.wasi.sockets(), table: &mut self.table }
    }
}

/// What the sockets and look-ups of one instance came to.
#[derive(Debug, Default)]
pub(crate) struct Uses(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Addresses that names led to.
    names: HashMap<IpAddr, BTreeSet<String>>,
    /// What was said about each address of a datagram.
    datagrams: HashMap<SocketAddr, bool>,
    /// Uses that are on record.
    recorded: u64,
}

impl Uses {
    fn known<T>(&self, ask: impl FnOnce(&mut Known) -> T) -> T {
        ask(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Remembers that a name led to addresses, so that a grant for the name covers them.
    pub(super) fn looked_up(&self, name: &str, addresses: &[IpAddr]) {
        self.known(|known| {
            for address in addresses {
                if known.names.len() >= MAX_LOOKED_UP && !known.names.contains_key(address) {
                    return;
                }
                let names = known.names.entry(*address).or_default();
                if names.len() < MAX_NAMES {
                    names.insert(name.to_owned());
                }
            }
        });
    }

    fn names(&self, address: IpAddr) -> Vec<String> {
        self.known(|known| known.names.get(&address).into_iter().flatten().cloned().collect())
    }

    /// Counts one more line of the record; `false` once there are as many as may be.
    pub(super) fn count(&self, limit: u64) -> bool {
        self.known(|known| {
            known.recorded = known.recorded.saturating_add(1);
            known.recorded <= limit
        })
    }
}

/// Puts the grants between sockets and the network.
///
/// Sockets can be made by whoever links them, so that each use is judged and on record; without a
/// grant every use is refused.
pub(crate) fn configure(builder: &mut WasiCtxBuilder, scope: &Arc<Scope>, instance: &Instance) {
    let plan = scope.component().plan();
    let linked = plan.imports().iter().any(|import| import.track.starts_with("wasi:sockets/"));
    if !linked {
        return;
    }
    let judge = Judge::new(scope, instance);
    builder.allow_tcp(true).allow_udp(true);
    builder.socket_addr_check(move |address, usage| {
        Box::pin(std::future::ready(judge.may_use(address, usage)))
    });
}

/// Judges the uses of one instance.
pub(super) struct Judge {
    scope: Arc<Scope>,
    instance: Instance,
}

/// A use that is allowed: what goes on record, and the line that gives it.
type Granted<'a> = (String, Option<&'a GrantSource>);

impl Judge {
    pub(super) fn new(scope: &Arc<Scope>, instance: &Instance) -> Self {
        Self { scope: Arc::clone(scope), instance: instance.clone() }
    }

    pub(super) fn may_use(&self, address: SocketAddr, usage: SocketAddrUse) -> bool {
        let (protocol, function) = match usage {
            SocketAddrUse::TcpConnect => ("tcp", "connect"),
            // An answer comes from where a datagram may go to.
            SocketAddrUse::UdpSend | SocketAddrUse::UdpReceive => {
                return self.datagram(address, usage);
            }
            // A connection binds the wildcard address by itself, which opens nothing.
            SocketAddrUse::TcpBind | SocketAddrUse::UdpBind
                if address.ip().is_unspecified() && address.port() == 0 =>
            {
                return true;
            }
            SocketAddrUse::TcpBind | SocketAddrUse::TcpListen | SocketAddrUse::TcpAccept => {
                return self.refuse("listen", listening("tcp", address));
            }
            SocketAddrUse::UdpBind => return self.refuse("bind", listening("udp", address)),
        };
        match self.judge(protocol, address) {
            Ok(granted) => self.allow(function, &granted),
            Err(denial) => self.refuse(function, denial),
        }
    }

    /// Judges a datagram. Each address is on record once, however many go there.
    fn datagram(&self, address: SocketAddr, usage: SocketAddrUse) -> bool {
        let uses = &self.instance.uses;
        if let Some(known) = uses.known(|known| known.datagrams.get(&address).copied()) {
            return known;
        }
        let answer = match (self.judge("udp", address), usage) {
            (Ok(granted), _) => self.allow("send", &granted),
            // Whoever sends to a socket is nobody that the component has chosen.
            (Err(_), SocketAddrUse::UdpReceive) => return false,
            (Err(denial), _) => self.refuse("send", denial),
        };
        let limit = usize::try_from(self.scope.limits().requests).unwrap_or(usize::MAX);
        uses.known(|known| {
            if known.datagrams.len() < limit {
                known.datagrams.insert(address, answer);
            }
        });
        answer
    }

    fn judge(&self, protocol: &str, address: SocketAddr) -> Result<Granted<'_>, Denial> {
        let scope = &self.scope;
        let component = scope.component();
        let granted = component.plan().grants(match protocol {
            "tcp" => "wasi:sockets/tcp@0.2",
            _ => "wasi:sockets/udp@0.2",
        });
        let setup = scope.setup();
        let openings = Openings::of(setup);
        let ip = address.ip().to_canonical();
        let target = Target::socket_address(protocol, ip, address.port());
        let Ok(target) = target else { return Err(not_granted(protocol, address)) };
        // A port of this machine needs the document's line and the operator's flag.
        let ports = component.loopback();
        let loopback = ip.is_loopback()
            && setup.loopback.contains(&address.port())
            && ports
                .iter()
                .any(|port| port.port() == address.port() && port.protocol().as_str() == protocol);
        if granted && loopback {
            return Ok((target.to_string(), None));
        }
        let by_address = of_target(component, openings, target);
        let denial = match by_address {
            Decided::Allowed { target, entry, .. } if granted => {
                return Ok((target.to_string(), component.host_lines().get(entry)));
            }
            Decided::Allowed { .. } => return Err(not_granted(protocol, address)),
            // An entry that denies the address holds, whatever name led to it.
            Decided::Denied(denial) if !granted || denial.code == "host-denied" => {
                return Err(denial);
            }
            Decided::Denied(denial) => denial,
        };
        for name in self.instance.uses.names(ip) {
            let Ok(target) = Target::socket(protocol, &name, address.port()) else { continue };
            let Decided::Allowed { target, entry, consent } =
                of_target(component, openings, target)
            else {
                continue;
            };
            if setup.egress.ranges().allows(ip, consent).is_ok() {
                let subject = format!("{target} at {ip}");
                return Ok((subject, component.host_lines().get(entry)));
            }
        }
        Err(denial)
    }

    fn allow(&self, function: &'static str, (subject, line): &Granted<'_>) -> bool {
        match self.begin(function, subject, Ruling::Allowed(*line)) {
            Some(ticket) => {
                // What goes over the connection passes outside of any choke point.
                let outcome = Outcome { result: "ok".into(), ..Outcome::default() };
                self.scope.setup().recorder.end(ticket, outcome);
                true
            }
            None => false,
        }
    }

    fn refuse(&self, function: &'static str, denial: Denial) -> bool {
        let ruling = Ruling::Denied {
            code: denial.code,
            reason: denial.reason.into(),
            help: denial.help.into(),
        };
        // It doesn't happen either way.
        let _ = self.begin(function, &denial.subject, ruling);
        false
    }

    fn begin(
        &self,
        function: &'static str,
        subject: &str,
        ruling: Ruling<'_>,
    ) -> Option<crate::record::Ticket> {
        let limit = self.scope.limits().requests;
        if !self.instance.uses.count(limit) {
            self.instance.trip.set(Trip::Requests(limit));
            return None;
        }
        let effect = Effect {
            who: self.scope.who(),
            instance: self.instance.number,
            verb: Verb::OpenSockets,
            interface: "wasi:sockets@0.2",
            function,
            subject: subject.into(),
            ruling,
        };
        self.scope.setup().recorder.begin(&effect).ok()
    }
}

fn listening(protocol: &str, address: SocketAddr) -> Denial {
    Denial {
        code: "host-not-granted",
        subject: format!("{protocol}://{address}"),
        reason: "listening is never granted".to_owned(),
        help: "requests come by way of `wasi:http/incoming-handler`".to_owned(),
    }
}

fn not_granted(protocol: &str, address: SocketAddr) -> Denial {
    Denial {
        code: "host-not-granted",
        subject: format!("{protocol}://{address}"),
        reason: "it is not granted".to_owned(),
        help: format!("add `{protocol}://{address}` to `allowedHosts`"),
    }
}
