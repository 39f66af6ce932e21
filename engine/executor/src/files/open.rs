//! Opening beneath a folder, by the kernel's own rules.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};

/// The longest path that is looked at.
const MAX_PATH: usize = 4096;

/// How often a path is resolved again because something was renamed meanwhile.
const MAX_RETRIES: usize = 1000;

/// The permissions of a new file.
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// Tells whether the system can resolve beneath a folder.
pub(super) fn probe() -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(CWD, ".", flags, Mode::empty(), BENEATH)?;
    Ok(())
}

/// Opens a folder by a path without a link anywhere in it, so that nobody can lead it elsewhere after
/// it was looked at.
pub(super) fn straight(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);
    Ok(openat2(CWD, path, flags, Mode::empty(), resolve)?)
}

/// What was opened.
pub(super) enum Opened {
    Folder(File),
    File(File),
}

/// How something is to be opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) follow: bool,
    pub(super) open: OpenFlags,
    pub(super) flags: DescriptorFlags,
}

impl How {
    /// Whether it may change something.
    pub(super) fn changes(self) -> bool {
        self.flags.contains(DescriptorFlags::WRITE)
            || self.flags.contains(DescriptorFlags::MUTATE_DIRECTORY)
            || self.open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE)
    }

    /// Whether it writes to a file.
    pub(super) fn writes(self) -> bool {
        self.flags.contains(DescriptorFlags::WRITE)
            || self.open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE)
    }
}

/// Opens a regular file or a folder beneath `root`, and nothing else.
///
/// The call blocks, so it belongs on a thread for that. It can't hang on a pipe: those are opened
/// without waiting, looked at, and closed.
pub(super) fn open(root: &File, path: &str, how: How) -> Result<Opened, ErrorCode> {
    if path.len() > MAX_PATH {
        return Err(ErrorCode::NameTooLong);
    }
    let unsupported = DescriptorFlags::FILE_INTEGRITY_SYNC
        | DescriptorFlags::DATA_INTEGRITY_SYNC
        | DescriptorFlags::REQUESTED_WRITE_SYNC;
    if how.flags.intersects(unsupported) {
        return Err(ErrorCode::Unsupported);
    }
    let makes = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
    if how.open.contains(OpenFlags::DIRECTORY) && how.open.intersects(makes) {
        return Err(ErrorCode::Invalid);
    }
    let writes = how.writes();
    let mut flags = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    flags |= match (writes, how.flags.contains(DescriptorFlags::READ)) {
        (true, true) => OFlags::RDWR,
        (true, false) => OFlags::WRONLY,
        (false, _) => OFlags::RDONLY,
    };
    let flag = |set: bool, flag: OFlags| if set { flag } else { OFlags::empty() };
    flags |= flag(how.open.contains(OpenFlags::CREATE), OFlags::CREATE);
    flags |= flag(how.open.contains(OpenFlags::EXCLUSIVE), OFlags::EXCL);
    flags |= flag(how.open.contains(OpenFlags::DIRECTORY), OFlags::DIRECTORY);
    flags |= flag(!how.follow, OFlags::NOFOLLOW);
    let mode = if how.open.contains(OpenFlags::CREATE) { NEW_FILE } else { Mode::empty() };
    // What is there is looked at before it is opened, since opening a device can act by itself.
    let look = OFlags::PATH | OFlags::CLOEXEC | flag(!how.follow, OFlags::NOFOLLOW);
    match beneath(root, path, look, Mode::empty()) {
        Ok(there) => plain(&there).map(drop)?,
        Err(Errno::NOENT) if how.open.contains(OpenFlags::CREATE) => {}
        Err(error) => return Err(code(error)),
    }
    let opened = beneath(root, path, flags, mode).map_err(code)?;
    // Another process may have put something else there in between.
    let status = plain(&opened)?;
    let file = File::from(opened);
    if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
        return Ok(Opened::Folder(file));
    }
    if how.open.contains(OpenFlags::DIRECTORY) {
        return Err(ErrorCode::NotDirectory);
    }
    if writes && is_linked(&file)? {
        return Err(ErrorCode::NotPermitted);
    }
    if how.open.contains(OpenFlags::TRUNCATE) {
        file.set_len(0).map_err(|error| ErrorCode::from(&error))?;
    }
    Ok(Opened::File(file))
}

/// Opens beneath `root`. While anything on the machine is renamed, the kernel can't always say that a
/// `..` stays beneath, and asks to be asked again (`EAGAIN`, openat2(2)).
fn beneath(root: &File, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut opened = openat2(root, path, flags, mode, BENEATH);
    for _ in 0..MAX_RETRIES {
        if opened.as_ref().err() != Some(&Errno::AGAIN) {
            break;
        }
        opened = openat2(root, path, flags, mode, BENEATH);
    }
    opened
}

/// Tells whether a file has several names. The others may lie outside of every folder that was
/// granted, so nothing of it is changed.
pub(super) fn is_linked(file: &File) -> Result<bool, ErrorCode> {
    let status = fstat(file).map_err(code)?;
    let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    Ok(regular && status.st_nlink > 1)
}

/// Refuses everything but regular files and folders.
fn plain(there: impl AsFd) -> Result<rustix::fs::Stat, ErrorCode> {
    let status = fstat(there).map_err(code)?;
    let kind = FileType::from_raw_mode(status.st_mode);
    if matches!(kind, FileType::RegularFile | FileType::Directory) {
        return Ok(status);
    }
    // A link that isn't followed is what the caller asked for, and can't be opened.
    Err(if kind == FileType::Symlink { ErrorCode::Loop } else { ErrorCode::NotPermitted })
}

fn code(error: Errno) -> ErrorCode {
    match error {
        // What leaves the folder is a cross-device link to the kernel; pipes and devices are the rest.
        Errno::XDEV | Errno::NXIO | Errno::NODEV => ErrorCode::NotPermitted,
        other => ErrorCode::from(&io::Error::from(other)),
    }
}

/// Counts the entries of a folder, up to one over `limit`.
pub(super) fn count(folder: &File, limit: usize) -> io::Result<usize> {
    let mut entries = rustix::fs::Dir::read_from(folder)?;
    let mut count = 0_usize;
    while count <= limit {
        match entries.read() {
            Some(entry) => {
                entry?;
                count = count.saturating_add(1);
            }
            None => break,
        }
    }
    Ok(count)
}
