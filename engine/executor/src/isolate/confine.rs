//! What a child process gives up before it looks at a component.
//!
//! Each wall stands by itself, and none of them is what holds a component: that is the sandbox of
//! the engine and the linker. They hold what is left if that sandbox breaks. The kernel decides
//! which it has, so [`Confined`] says which of them stand.

use std::io;
use std::path::PathBuf;

/// What the process may still do afterwards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowance {
    /// Folders that it may read.
    pub(crate) read: Vec<PathBuf>,
    /// Folders that it may read and change.
    pub(crate) write: Vec<PathBuf>,
    /// The most file descriptors.
    pub(crate) descriptors: u64,
    /// Whether it may use sockets beyond those to its parent.
    pub(crate) network: bool,
}

/// How far a wall stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
pub enum Wall {
    /// As far as it can.
    Whole,
    /// The kernel knows a part of it.
    Part,
    /// The kernel doesn't have it.
    None,
}

/// Which walls stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Confined {
    /// Files: Landlock.
    pub files: Wall,
    /// System calls: seccomp.
    pub calls: Wall,
}

/// Confines the calling thread and every thread that it starts from now on.
///
/// # Errors
///
/// If a wall that the kernel has can't be put up, or a limit can't be set. The process must end
/// then.
#[cfg(target_os = "linux")]
pub(crate) fn confine(allowance: &Allowance) -> io::Result<Confined> {
    limits(allowance)?;
    rustix::thread::set_no_new_privs(true)?;
    // The process dies with its parent, so that nothing runs unwatched.
    let signal = Some(rustix::process::Signal::KILL);
    rustix::process::set_parent_process_death_signal(signal)?;
    // No other process of the user may look into it or take its memory for a dump.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    let files = linux::landlock(allowance)?;
    let calls = linux::seccomp(allowance.network)?;
    Ok(Confined { files, calls })
}

/// Confines nothing: this system has none of the walls.
///
/// # Errors
///
/// Always.
#[cfg(not(target_os = "linux"))]
pub(crate) fn confine(_allowance: &Allowance) -> io::Result<Confined> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "isolation needs Linux"))
}

#[cfg(target_os = "linux")]
fn limits(allowance: &Allowance) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let set = |resource, most: u64| {
        // A limit that stands already is never raised.
        let now = getrlimit(resource);
        let most = now.maximum.map_or(most, |maximum| maximum.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
    };
    set(Resource::Core, 0)?;
    set(Resource::Nofile, allowance.descriptors)?;
    set(Resource::Memlock, 0)?;
    set(Resource::Msgqueue, 0)?;
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd,
        Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
    };

    use super::{Allowance, Wall};

    const NEWEST: ABI = ABI::V6;

    fn failed(error: impl std::fmt::Display) -> io::Error {
        io::Error::other(error.to_string())
    }

    /// Takes away all files but those of the allowance, all TCP ports, and abstract sockets and
    /// signals to other processes.
    pub(super) fn landlock(allowance: &Allowance) -> io::Result<Wall> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))
            .and_then(|ruleset| {
                if allowance.network {
                    Ok(ruleset)
                } else {
                    ruleset.handle_access(AccessNet::from_all(NEWEST))
                }
            })
            .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
            .and_then(Ruleset::create)
            .map_err(failed)?;
        let read = allowance.read.iter().map(|path| (path, AccessFs::from_read(NEWEST)));
        let write = allowance.write.iter().map(|path| (path, AccessFs::from_all(NEWEST)));
        for (path, access) in read.chain(write) {
            // Nothing in a folder of data is a program to this process.
            let access = access & !AccessFs::Execute;
            // What isn't there needs no rule; whoever opens it says so.
            if !path.exists() {
                continue;
            }
            let handle = PathFd::new(path).map_err(failed)?;
            ruleset = ruleset.add_rule(PathBeneath::new(handle, access)).map_err(failed)?;
        }
        let status = ruleset.restrict_self().map_err(failed)?;
        Ok(match status.ruleset {
            RulesetStatus::FullyEnforced => Wall::Whole,
            RulesetStatus::PartiallyEnforced => Wall::Part,
            RulesetStatus::NotEnforced => Wall::None,
        })
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) fn seccomp(_network: bool) -> io::Result<Wall> {
        Ok(Wall::None)
    }

    /// Takes away system calls that a component never needs and a broken sandbox would: other
    /// programs, other processes, sockets of the network, kernel facilities with a record of holes.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) fn seccomp(network: bool) -> io::Result<Wall> {
        use std::collections::BTreeMap;

        use seccompiler::{
            BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
            SeccompFilter, SeccompRule,
        };

        let arch = std::env::consts::ARCH.try_into().map_err(failed)?;
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            DENIED.iter().map(|call| (*call, Vec::new())).collect();
        // Sockets between processes of this program go on; every other family is refused.
        let family = i64::from(libc::AF_UNIX);
        let family = u64::try_from(family).map_err(failed)?;
        let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
            .and_then(|condition| SeccompRule::new(vec![condition]))
            .map_err(failed)?;
        if !network {
            rules.insert(libc::SYS_socket, vec![other]);
        }
        let denied = SeccompAction::Errno(u32::try_from(libc::EPERM).map_err(failed)?);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch);
        let program: BpfProgram = filter.map_err(failed)?.try_into().map_err(failed)?;
        seccompiler::apply_filter(&program).map_err(failed)?;
        Ok(Wall::Whole)
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    const DENIED: [i64; 42] = [
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_process_madvise,
        libc::SYS_pidfd_getfd,
        libc::SYS_pidfd_open,
        libc::SYS_kcmp,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_fsmount,
        libc::SYS_fsconfig,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_setns,
        libc::SYS_unshare,
        libc::SYS_kexec_load,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_acct,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_personality,
        libc::SYS_quotactl,
        libc::SYS_open_by_handle_at,
    ];
}
