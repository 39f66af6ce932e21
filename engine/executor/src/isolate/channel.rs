//! Messages with file descriptors between a parent and its child.
//!
//! One message is one datagram of a `SOCK_SEQPACKET` pair, so a reader never sees half of one, and
//! a message comes with at most [`MAX_HANDLES`] descriptors. What the child sends is hostile to the
//! parent: sizes are bounded by the buffer, and a message that isn't one ends the child.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest message; larger things go by memory files.
pub(crate) const MAX_MESSAGE: usize = 128 * 1024;

/// The most descriptors of one message.
pub(crate) const MAX_HANDLES: usize = 4;

/// One end of a channel.
#[derive(Debug)]
pub(crate) struct Channel(pub(super) OwnedFd);

/// A message that came in; `None` in place of it if the other side is gone.
pub(crate) type Received<T> = Option<(T, Vec<OwnedFd>)>;

impl Channel {
    /// Makes a pair of ends.
    ///
    /// # Errors
    ///
    /// If the machine has no descriptors left.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(one), Self(other)))
    }

    /// Takes over a descriptor that is one end.
    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Gives up the descriptor.
    pub(crate) fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Sends one message, waiting for room.
    ///
    /// # Errors
    ///
    /// If the other side is gone, or the message is over its bounds.
    pub(crate) fn send<T: Serialize>(
        &self,
        message: &T,
        handles: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let bytes = serde_json::to_vec(message).map_err(io::Error::other)?;
        if bytes.len() > MAX_MESSAGE || handles.len() > MAX_HANDLES {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too large"));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_HANDLES))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !handles.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(handles)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
        }
        loop {
            let sent = sendmsg(
                self.0.as_fd(),
                &[IoSlice::new(&bytes)],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            );
            match sent {
                Ok(count) if count == bytes.len() => return Ok(()),
                Ok(_) => return Err(io::Error::new(io::ErrorKind::WriteZero, "half a message")),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sets how long [`receive`](Self::receive) waits; `None` waits as long as it takes.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub(crate) fn patience(&self, time: Option<std::time::Duration>) -> io::Result<()> {
        rustix::net::sockopt::set_socket_timeout(
            &self.0,
            rustix::net::sockopt::Timeout::Recv,
            time,
        )?;
        Ok(())
    }

    /// Waits for one message.
    ///
    /// # Errors
    ///
    /// If what came is no message of this kind, or is over its bounds.
    pub(crate) fn receive<T: DeserializeOwned>(&self) -> io::Result<Received<T>> {
        let mut bytes = vec![0; MAX_MESSAGE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_HANDLES))];
        let (count, flags, handles) = loop {
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let received = recvmsg(
                self.0.as_fd(),
                &mut [IoSliceMut::new(&mut bytes)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            );
            match received {
                Ok(message) => {
                    let mut handles = Vec::new();
                    for part in ancillary.drain() {
                        if let RecvAncillaryMessage::ScmRights(rights) = part {
                            handles.extend(rights);
                        }
                    }
                    break (message.bytes, message.flags, handles);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        if count == 0 && handles.is_empty() {
            return Ok(None);
        }
        if flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too large"));
        }
        let bytes = bytes.get(..count).unwrap_or_default();
        let message = serde_json::from_slice(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Some((message, handles)))
    }
}

/// Puts bytes into a memory file that nobody can change afterwards.
///
/// # Errors
///
/// If the machine has no memory or descriptors left.
#[cfg(target_os = "linux")]
pub(crate) fn memory_file(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    use std::io::Write as _;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = std::fs::File::from(fd);
    file.write_all(bytes)?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// Reads a whole memory file of at most `limit` bytes.
///
/// # Errors
///
/// If it is larger, or can't be read.
pub(crate) fn read_memory(fd: OwnedFd, limit: u64) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt as _;

    let file = std::fs::File::from(fd);
    let size = file.metadata()?.len();
    if size > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the memory file is too large"));
    }
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
