//! Name look-ups under their own grants, and the number of sockets.
//!
//! A look-up alone can carry data out, in the labels of a name, so each is judged and on record. It
//! goes through our resolver, and what no consent could ever open is left out of the answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use std::vec::IntoIter;

use ambit_engine::catalogue::Verb;
use ambit_engine::grant::{Consent, Target};
use futures_util::FutureExt as _;
use tokio::task::JoinHandle;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{
    self, Host, HostResolveAddressStream, ResolveAddressStream,
};
use wasmtime_wasi::p2::bindings::sockets::network::{
    self, ErrorCode, IpAddress, IpAddressFamily, Network,
};
use wasmtime_wasi::p2::bindings::sockets::{tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{SocketError, SocketResult, TcpSocket, UdpSocket};
use wasmtime_wasi::sockets::WasiSocketsCtxView;
use wasmtime_wasi_io::poll::{DynPollable, Pollable, subscribe};

use crate::limits::Trip;
use crate::record::{Effect, Outcome, Recorder, Ruling, Ticket};
use crate::scope::Scope;
use crate::state::{Instance, State};

/// The longest name that is looked at; the longest of DNS has 253 characters.
const MAX_NAME: usize = 256;

const INTERFACE: &str = "wasi:sockets/ip-name-lookup@0.2";

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    ip_name_lookup::add_to_linker::<State, HasNames>(linker, view)
}

pub(super) fn link_tcp_create(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    tcp_create_socket::add_to_linker::<State, HasNames>(linker, view)
}

pub(super) fn link_udp_create(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    udp_create_socket::add_to_linker::<State, HasNames>(linker, view)
}

fn view(state: &mut State) -> Names<'_> {
    Names {
        scope: Arc::clone(&state.scope),
        instance: state.instance.clone(),
        sockets: state.sockets(),
    }
}

struct HasNames;

impl HasData for HasNames {
    type Data<'a> = Names<'a>;
}

struct Names<'a> {
    scope: Arc<Scope>,
    instance: Instance,
    sockets: WasiSocketsCtxView<'a>,
}

/// A look-up under way, or its answer. The bindings have a type of wasmtime's in its place, which
/// is only ever a number to them.
struct Lookup {
    task: Option<JoinHandle<Result<Vec<IpAddr>, ErrorCode>>>,
    found: Result<IntoIter<IpAddr>, ErrorCode>,
}

impl Lookup {
    fn took(&mut self, joined: Result<Result<Vec<IpAddr>, ErrorCode>, tokio::task::JoinError>) {
        self.task = None;
        let found = joined.unwrap_or(Err(ErrorCode::NameUnresolvable));
        self.found = found.map(Vec::into_iter);
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

#[async_trait::async_trait]
impl Pollable for Lookup {
    async fn ready(&mut self) {
        if let Some(task) = &mut self.task {
            let joined = task.await;
            self.took(joined);
        }
    }
}

fn own(stream: &Resource<ResolveAddressStream>) -> Resource<Lookup> {
    Resource::new_own(stream.rep())
}

/// A look-up on record, until it ends.
struct Told {
    recorder: Arc<dyn Recorder>,
    ticket: Option<Ticket>,
    since: Instant,
}

impl Told {
    fn end(&mut self, result: &'static str, detail: String) {
        let Some(ticket) = self.ticket.take() else { return };
        let duration = self.since.elapsed();
        let outcome = Outcome { result: result.into(), duration, detail, ..Outcome::default() };
        self.recorder.end(ticket, outcome);
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.end("dropped", String::new());
    }
}

impl Names<'_> {
    /// Judges a look-up, and writes it down. Returns the name in canonical form.
    fn begin(&self, name: &str) -> Result<(String, Told), ErrorCode> {
        let component = self.scope.component();
        let shown: String = name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
        let target = Target::socket("dns", name, 53);
        let line = match &target {
            Ok(target) if name.len() <= MAX_NAME => component
                .lookups()
                .iter()
                .find(|(pattern, _)| pattern.matches(target.host()))
                .map(|(_, line)| line),
            Ok(_) | Err(_) => None,
        };
        let granted = component.plan().grants(INTERFACE);
        let ruling = match line.filter(|_| granted) {
            Some(line) => Ruling::Allowed(Some(line)),
            None => Ruling::Denied {
                code: "lookup-not-granted",
                reason: "no entry of `allowedIpNameLookups` covers it".into(),
                help: if component.hosts_at().line == 0 {
                    "a bare component is granted nothing: run it by a manifest".into()
                } else {
                    let name = component.name();
                    format!("add `{shown}` to `allowedIpNameLookups` of `{name}`").into()
                },
            },
        };
        let limit = self.scope.limits().requests;
        if !self.instance.uses.count(limit) {
            self.instance.trip.set(Trip::Requests(limit));
            return Err(ErrorCode::AccessDenied);
        }
        let allowed = matches!(ruling, Ruling::Allowed(_));
        let effect = Effect {
            who: self.scope.who(),
            instance: self.instance.number,
            verb: Verb::LookUpNames,
            interface: INTERFACE,
            function: "resolve-addresses",
            subject: shown.as_str().into(),
            ruling,
        };
        let recorder = Arc::clone(&self.scope.setup().recorder);
        let ticket = recorder.begin(&effect).map_err(|_| ErrorCode::AccessDenied)?;
        match target {
            Ok(target) if allowed => {
                let told = Told { recorder, ticket: Some(ticket), since: Instant::now() };
                Ok((target.host().to_string(), told))
            }
            Ok(_) | Err(_) => Err(ErrorCode::AccessDenied),
        }
    }
}

/// Resolves, leaves out what nothing opens, and remembers which name led where.
async fn resolve(
    scope: Arc<Scope>,
    instance: Instance,
    name: String,
    mut told: Told,
) -> Result<Vec<IpAddr>, ErrorCode> {
    let egress = Arc::clone(&scope.setup().egress);
    let wait = scope.limits().request_time;
    let found = tokio::time::timeout(wait, egress.resolve(&name)).await;
    let found = match found {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            told.end("host-not-found", error.to_string());
            return Err(ErrorCode::NameUnresolvable);
        }
        Err(_) => {
            told.end("host-timeout", String::new());
            return Err(ErrorCode::TemporaryResolverFailure);
        }
    };
    let count = found.len();
    let kept: Vec<IpAddr> = found
        .into_iter()
        .take(super::resolve::MAX_ADDRESSES)
        .map(|address| address.to_canonical())
        .filter(|address| egress.ranges().allows(*address, Consent::Literal).is_ok())
        .collect();
    let refused = count.saturating_sub(kept.len());
    instance.uses.looked_up(&name, &kept);
    if kept.is_empty() {
        told.end("address-refused", format!("{refused} addresses left out"));
        return Err(ErrorCode::NameUnresolvable);
    }
    told.end("ok", format!("{} addresses, {refused} left out", kept.len()));
    Ok(kept)
}

impl Host for Names<'_> {
    fn resolve_addresses(
        &mut self,
        network: Resource<Network>,
        name: String,
    ) -> Result<Resource<ResolveAddressStream>, SocketError> {
        // The handle stands for the right to ask.
        self.sockets.table.get(&network)?;
        let (name, told) = self.begin(&name)?;
        let found = resolve(Arc::clone(&self.scope), self.instance.clone(), name, told);
        let lookup = Lookup { task: Some(tokio::spawn(found)), found: Ok(Vec::new().into_iter()) };
        let lookup = self.sockets.table.push(lookup)?;
        Ok(Resource::new_own(lookup.rep()))
    }
}

impl HostResolveAddressStream for Names<'_> {
    fn resolve_next_address(
        &mut self,
        stream: Resource<ResolveAddressStream>,
    ) -> Result<Option<IpAddress>, SocketError> {
        let lookup = self.sockets.table.get_mut(&own(&stream))?;
        if let Some(task) = &mut lookup.task {
            let Some(joined) = task.now_or_never() else {
                return Err(ErrorCode::WouldBlock.into());
            };
            lookup.took(joined);
        }
        match &mut lookup.found {
            Ok(found) => Ok(found.next().map(IpAddress::from)),
            Err(error) => Err((*error).into()),
        }
    }

    fn subscribe(
        &mut self,
        stream: Resource<ResolveAddressStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(self.sockets.table, own(&stream))
    }

    fn drop(&mut self, stream: Resource<ResolveAddressStream>) -> wasmtime::Result<()> {
        self.sockets.table.delete(own(&stream))?;
        Ok(())
    }
}

impl network::Host for Names<'_> {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        self.sockets.convert_error_code(error)
    }

    fn network_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        self.sockets.network_error_code(error)
    }
}

impl network::HostNetwork for Names<'_> {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        network::HostNetwork::drop(&mut self.sockets, network)
    }
}

impl Names<'_> {
    /// Each socket is a descriptor of the host's, so there are no more than of files.
    fn one_more(&mut self) -> SocketResult<()> {
        let open = self
            .sockets
            .table
            .iter_mut()
            .filter(|entry| entry.is::<TcpSocket>() || entry.is::<UdpSocket>())
            .count();
        if open >= self.scope.limits().descriptors {
            return Err(ErrorCode::NewSocketLimit.into());
        }
        Ok(())
    }
}

impl tcp_create_socket::Host for Names<'_> {
    fn create_tcp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.one_more()?;
        tcp_create_socket::Host::create_tcp_socket(&mut self.sockets, family)
    }
}

impl udp_create_socket::Host for Names<'_> {
    async fn create_udp_socket(
        &mut self,
        family: IpAddressFamily,
    ) -> SocketResult<Resource<UdpSocket>> {
        self.one_more()?;
        udp_create_socket::Host::create_udp_socket(&mut self.sockets, family).await
    }
}
