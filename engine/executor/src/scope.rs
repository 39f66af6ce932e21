//! What all instances of one component share: whose they are, what they may reach, and who is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ambit_engine::admitted::{Admitted, AdmittedComponent};

use ambit_engine::grant::HostGrants;
use tokio::sync::Semaphore;

use crate::egress::{BoundSecret, Egress};
use crate::error::ExecutorError;
use crate::files::Folders;
use crate::limits::Limits;
use crate::record::{Recorder, Who};
use crate::services::{Backing, Services, Values};

/// What the operator brings to a run, the same for all components of a workload.
#[derive(Clone)]
pub struct Setup {
    /// The bounds of each instance.
    pub limits: Limits,
    /// Who is told of effects.
    pub recorder: Arc<dyn Recorder>,
    /// What sends outgoing requests and opens sockets, after the decision.
    pub egress: Arc<dyn Egress>,
    /// Ports of this machine's own loopback that the operator opens, beside the document.
    pub loopback: Vec<u16>,
    /// Whether private addresses may be reached without an entry that names them.
    pub private_network: PrivateNetwork,
    /// Values of Secrets and ConfigMaps.
    pub values: Arc<Values>,
    /// Secrets that leave in a header, for one host each.
    pub secrets: Vec<BoundSecret>,
    /// Where host services keep what they store; `None` where nothing may be kept.
    pub state_dir: Option<std::path::PathBuf>,
    /// What stands behind host services; the components of a workload share one.
    pub services: Backing,
}

/// Whether private addresses may be reached without an entry that names them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PrivateNetwork {
    /// Only where an address literal or a CIDR grants them.
    #[default]
    Closed,
    /// Wherever a granted name leads.
    Open,
}

/// What all instances of one component share.
pub struct Scope {
    who: Who,
    component: AdmittedComponent,
    setup: Setup,
    folders: Folders,
    services: Services,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
    instances: AtomicU64,
    owner: Arc<str>,
    hosts: Arc<HostGrants>,
    request_slots: Arc<Semaphore>,
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("who", &self.who).finish_non_exhaustive()
    }
}

impl Scope {
    /// Opens a component's folders and services, and resolves its values.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Setup`] if a folder, a value or a service that is granted isn't there.
    pub fn open(
        admitted: &Admitted,
        component: &AdmittedComponent,
        setup: &Setup,
        folders: Folders,
        arguments: Vec<String>,
    ) -> Result<Arc<Self>, ExecutorError> {
        let who = Who {
            workload: format!("{}/{}", admitted.namespace(), admitted.name()),
            component: component.name().to_owned(),
            digest: component.digest().to_string(),
        };
        let mut limits = setup.limits.clone();
        if let Some(bytes) = component.memory_bytes() {
            limits.memory_bytes = limits.memory_bytes.min(bytes);
        }
        if let Some(calls) = component.max_concurrency().filter(|calls| *calls > 0) {
            limits.concurrency =
                limits.concurrency.min(usize::try_from(calls).unwrap_or(usize::MAX));
        }
        let setup = Setup { limits, ..setup.clone() };
        let environment = setup.values.resolve(component.environment())?;
        let services = Services::open(admitted, component, &setup)?;
        let owner = crate::egress::owner(&who);
        let slots = setup.limits.requests_in_flight.min(Semaphore::MAX_PERMITS);
        Ok(Arc::new(Self {
            owner,
            hosts: Arc::new(component.hosts().clone()),
            request_slots: Arc::new(Semaphore::new(slots)),
            who,
            component: component.clone(),
            setup,
            folders,
            services,
            environment,
            arguments,
            instances: AtomicU64::new(0),
        }))
    }

    /// Returns whose effects they are.
    #[must_use]
    pub fn who(&self) -> &Who {
        &self.who
    }

    /// Returns what was admitted.
    #[must_use]
    pub fn component(&self) -> &AdmittedComponent {
        &self.component
    }

    /// Returns the bounds of each instance.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.setup.limits
    }

    /// Returns what the operator brings.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the opened folders.
    pub(crate) fn folders(&self) -> &Folders {
        &self.folders
    }

    /// Returns the opened services.
    pub(crate) fn services(&self) -> &Services {
        &self.services
    }

    /// Returns the environment; secrets are in it.
    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Returns the arguments.
    pub(crate) fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Returns the name under which connections are kept.
    pub(crate) fn owner(&self) -> Arc<str> {
        Arc::clone(&self.owner)
    }

    /// Returns the host list.
    pub(crate) fn hosts(&self) -> Arc<HostGrants> {
        Arc::clone(&self.hosts)
    }

    /// Returns the places for outgoing requests.
    pub(crate) fn request_slots(&self) -> Arc<Semaphore> {
        Arc::clone(&self.request_slots)
    }

    /// Returns the secrets that leave in headers.
    pub(crate) fn secrets(&self) -> &[BoundSecret] {
        &self.setup.secrets
    }

    /// Returns a number for a new instance.
    pub(crate) fn next_instance(&self) -> u64 {
        self.instances.fetch_add(1, Ordering::Relaxed)
    }
}
