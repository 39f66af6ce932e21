//! Folders that no component should hold.

use self::SensitiveKind::{ContainerSocket, Credentials, Home, Root, ServiceAccount, System};

/// Why a folder of the machine is refused.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Sensitive {
    /// What the folder is.
    pub kind: SensitiveKind,
    /// For which modes it is refused.
    pub refused: RefusedFor,
}

/// What a sensitive folder is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SensitiveKind {
    /// `/`.
    Root,
    /// The operating system's own.
    System,
    /// Keys, tokens and passwords of a person or of the cluster's software.
    Credentials,
    /// A socket or state folder of a container runtime: control of the machine.
    ContainerSocket,
    /// The home folders of all, or of the administrator.
    Home,
    /// A service account's token, or the kubelet's folder that holds all of them.
    ServiceAccount,
    /// The folder holds this one; a `*` stands for any one segment.
    AncestorOf(&'static str),
}

/// For which modes a folder is refused.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum RefusedFor {
    /// Every mode.
    ReadAndWrite,
    /// Every mode that can change something.
    Write,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Extent {
    Tree,
    Itself,
}

struct Rule {
    path: &'static str,
    kind: SensitiveKind,
    refused: RefusedFor,
    extent: Extent,
}

const fn tree(path: &'static str, kind: SensitiveKind) -> Rule {
    Rule { path, kind, refused: RefusedFor::ReadAndWrite, extent: Extent::Tree }
}

const fn no_write(path: &'static str) -> Rule {
    let refused = RefusedFor::Write;
    Rule { path, kind: System, refused, extent: Extent::Tree }
}

const fn itself(path: &'static str, kind: SensitiveKind) -> Rule {
    Rule { path, kind, refused: RefusedFor::ReadAndWrite, extent: Extent::Itself }
}

/// The first rule that holds a path names it, so the narrower ones come first.
const RULES: [Rule; 68] = [
    itself("/", Root),
    // Service accounts and the kubelet.
    tree("/var/lib/kubelet", ServiceAccount),
    tree("/var/run/secrets", ServiceAccount),
    tree("/run/secrets", ServiceAccount),
    // Container runtimes: whoever holds the socket starts privileged containers.
    tree("/var/run/docker.sock", ContainerSocket),
    tree("/run/docker.sock", ContainerSocket),
    tree("/var/run/docker", ContainerSocket),
    tree("/run/docker", ContainerSocket),
    tree("/var/run/containerd", ContainerSocket),
    tree("/run/containerd", ContainerSocket),
    tree("/var/run/crio", ContainerSocket),
    tree("/run/crio", ContainerSocket),
    tree("/var/run/podman", ContainerSocket),
    tree("/run/podman", ContainerSocket),
    tree("/var/run/cri-dockerd.sock", ContainerSocket),
    tree("/run/cri-dockerd.sock", ContainerSocket),
    tree("/run/k3s", ContainerSocket),
    tree("/run/user/*/docker.sock", ContainerSocket),
    tree("/run/user/*/podman", ContainerSocket),
    tree("/var/lib/docker", ContainerSocket),
    tree("/var/lib/containerd", ContainerSocket),
    tree("/var/lib/containers", ContainerSocket),
    // Credentials of the cluster's software.
    tree("/etc/kubernetes", Credentials),
    tree("/etc/ssh", Credentials),
    tree("/etc/ssl/private", Credentials),
    tree("/var/lib/etcd", Credentials),
    tree("/var/lib/rancher", Credentials),
    // Credentials of a person.
    tree("/home/*/.ssh", Credentials),
    tree("/home/*/.aws", Credentials),
    tree("/home/*/.kube", Credentials),
    tree("/home/*/.config/gcloud", Credentials),
    tree("/home/*/.config/gh", Credentials),
    tree("/home/*/.azure", Credentials),
    tree("/home/*/.docker", Credentials),
    tree("/home/*/.gnupg", Credentials),
    tree("/home/*/.netrc", Credentials),
    tree("/home/*/.git-credentials", Credentials),
    tree("/home/*/.local/share/keyrings", Credentials),
    tree("/root/.ssh", Credentials),
    tree("/root/.aws", Credentials),
    tree("/root/.kube", Credentials),
    tree("/root/.config/gcloud", Credentials),
    tree("/root/.docker", Credentials),
    tree("/root/.gnupg", Credentials),
    tree("/Users/*/.ssh", Credentials),
    tree("/Users/*/.aws", Credentials),
    tree("/Users/*/.kube", Credentials),
    tree("/Users/*/.config/gcloud", Credentials),
    tree("/Users/*/.docker", Credentials),
    tree("/Users/*/.gnupg", Credentials),
    tree("/Users/*/Library/Keychains", Credentials),
    // Homes.
    tree("/root", Home),
    itself("/home", Home),
    itself("/Users", Home),
    // The system.
    tree("/etc", System),
    tree("/proc", System),
    tree("/sys", System),
    tree("/dev", System),
    tree("/var/run", System),
    tree("/run", System),
    tree("/private/etc", System),
    no_write("/boot"),
    no_write("/usr"),
    no_write("/bin"),
    no_write("/sbin"),
    no_write("/lib"),
    no_write("/lib64"),
    no_write("/var/spool/cron"),
];

/// Judges a normalised absolute path.
pub(super) fn judge(path: &str) -> Option<Sensitive> {
    let inside = RULES.iter().find(|rule| match (rule.extent, relation(path, rule.path)) {
        (_, Relation::Same) | (Extent::Tree, Relation::Below) => true,
        (Extent::Itself, Relation::Below) | (_, Relation::Above | Relation::Apart) => false,
    });
    if let Some(rule) = inside {
        return Some(Sensitive { kind: rule.kind, refused: rule.refused });
    }
    let above = |refused| {
        RULES
            .iter()
            .find(|rule| rule.refused == refused && relation(path, rule.path) == Relation::Above)
    };
    above(RefusedFor::ReadAndWrite)
        .or_else(|| above(RefusedFor::Write))
        .map(|rule| Sensitive { kind: SensitiveKind::AncestorOf(rule.path), refused: rule.refused })
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Relation {
    Same,
    Below,
    Above,
    Apart,
}

/// Where `path` stands to `pattern`, by whole segments.
fn relation(path: &str, pattern: &str) -> Relation {
    let mut own = path.split('/').filter(|segment| !segment.is_empty());
    let mut theirs = pattern.split('/').filter(|segment| !segment.is_empty());
    loop {
        match (own.next(), theirs.next()) {
            (None, None) => return Relation::Same,
            (Some(_), None) => return Relation::Below,
            (None, Some(_)) => return Relation::Above,
            (Some(_), Some("*")) => {}
            (Some(a), Some(b)) if a == b => {}
            (Some(_), Some(_)) => return Relation::Apart,
        }
    }
}
