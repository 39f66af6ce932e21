//! `wasi:filesystem` as a component sees it: each call judged, on record, and passed on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ambit_engine::catalogue::Verb;
use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
    DirectoryEntryStream, ErrorCode, Filesize, HostDescriptor, HostDirectoryEntryStream,
    MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::{FsPerms, OpenMode};
use wasmtime_wasi_io::streams::{DynInputStream, DynOutputStream};

use super::folder::Mode;
use super::handle::{Files, Held, Open, Slot};
use super::open::{self, How, Opened};
use super::stream::{Reader, Writer};
use super::{Judgement, Wish, judge};
use crate::limits::Trip;
use crate::record::{Effect, Outcome, Ruling, Ticket};
use crate::scope::Scope;
use crate::state::Instance;

const INTERFACE: &str = "wasi:filesystem/types@0.2";

/// The longest path on record.
const MAX_SHOWN: usize = 512;

/// What a name in a folder counts as, in bytes written: about what a file system keeps for one.
const NAME_BYTES: u64 = 4096;

/// Marks the bindings of `wasi:filesystem`.
pub(super) struct HasFiles;

impl HasData for HasFiles {
    type Data<'a> = View<'a>;
}

/// The view of one call.
pub(super) struct View<'a> {
    pub(super) scope: Arc<Scope>,
    pub(super) instance: &'a Instance,
    pub(super) files: &'a mut Files,
    pub(super) inner: WasiFilesystemCtxView<'a>,
}

type Fd = Resource<Descriptor>;

fn again(fd: &Fd) -> Fd {
    Resource::new_borrow(fd.rep())
}

impl View<'_> {
    /// The folder and the path of something beneath a descriptor, as the component sees it.
    fn place(&self, fd: &Fd, path: &str) -> FsResult<(usize, String)> {
        let open = self.files.open.get(&fd.rep()).ok_or(ErrorCode::BadDescriptor)?;
        let mut shown = open.path.clone();
        if !path.is_empty() && path != "." {
            if !shown.ends_with('/') {
                shown.push('/');
            }
            shown.push_str(path);
        }
        if shown.len() > MAX_SHOWN {
            let mut cut = MAX_SHOWN;
            while !shown.is_char_boundary(cut) {
                cut = cut.saturating_sub(1);
            }
            shown.truncate(cut);
            shown.push('…');
        }
        Ok((open.folder, shown))
    }

    /// Judges a wish and writes it down. Nothing may happen unless this gives a ticket.
    fn begin(
        &self,
        function: &'static str,
        wish: Wish,
        (folder, path): (usize, &str),
    ) -> FsResult<Ticket> {
        let folder = self.scope.folders().get(folder).ok_or(ErrorCode::BadDescriptor)?;
        let judgement = judge(folder, wish);
        let ruling = match judgement {
            Judgement::Allowed => Ruling::Allowed(Some(&folder.source)),
            Judgement::ReadOnly => Ruling::Denied {
                code: "folder-read-only",
                reason: format!("`{}` is granted for reading only", folder.guest).into(),
                help: format!(
                    "remove `readOnly: true` from the mount ({}:{})",
                    folder.source.file, folder.source.line
                )
                .into(),
            },
        };
        let effect = Effect {
            who: self.scope.who(),
            instance: self.instance.number,
            verb: match wish {
                Wish::Read => Verb::ReadFolder,
                Wish::Change => Verb::ChangeFolder,
            },
            interface: INTERFACE,
            function,
            subject: path.into(),
            ruling,
        };
        let begun = self.scope.setup().recorder.begin(&effect);
        match (begun, judgement) {
            (Ok(ticket), Judgement::Allowed) => Ok(ticket),
            (Ok(_), Judgement::ReadOnly) => Err(ErrorCode::NotPermitted.into()),
            // Without a record nothing happens.
            (Err(_), _) => Err(ErrorCode::Io.into()),
        }
    }

    /// Writes how it went.
    fn end<T>(&self, ticket: Ticket, since: Instant, result: &FsResult<T>) {
        let word = match result {
            Ok(_) => "ok".into(),
            Err(error) => match error.downcast_ref() {
                Some(code) => format!("{code:?}").into(),
                None => "trapped".into(),
            },
        };
        let outcome = Outcome { result: word, duration: since.elapsed(), ..Outcome::default() };
        self.scope.setup().recorder.end(ticket, outcome);
    }

    fn trip(&self, trip: Trip) -> FsError {
        self.instance.trip.set(trip);
        FsError::trap(wasmtime::Error::msg(trip.code()))
    }

    /// Counts a name that is asked for. One that is there already counts too: finding out costs as
    /// much as making it.
    fn name(&self) -> FsResult<()> {
        if self.files.written.take(NAME_BYTES) {
            return Ok(());
        }
        Err(self.trip(Trip::Written(self.files.written.limit)))
    }

    /// Judges a change beneath a descriptor.
    fn change(&self, function: &'static str, fd: &Fd, path: &str) -> FsResult<Ticket> {
        let (folder, shown) = self.place(fd, path)?;
        self.begin(function, Wish::Change, (folder, &shown))
    }

    /// Opens beneath a descriptor what was allowed.
    async fn opened(
        &mut self,
        fd: &Fd,
        folder: usize,
        path: String,
        how: How,
    ) -> FsResult<(Fd, Slot)> {
        let slot = self.slot()?;
        if how.open.contains(OpenFlags::CREATE) {
            self.name()?;
        }
        let root = match self.inner.table.get(fd)? {
            Descriptor::Dir(dir) => Arc::clone(&dir.dir),
            Descriptor::File(_) => return Err(ErrorCode::NotDirectory.into()),
        };
        let opening = tokio::task::spawn_blocking(move || open::open(&root, &path, how));
        let opened = opening.await.map_err(|_| ErrorCode::Io)??;
        let reads = how.flags.contains(DescriptorFlags::READ) || !how.writes();
        let mutates = how.flags.contains(DescriptorFlags::MUTATE_DIRECTORY);
        let bit = |set: bool, bit: OpenMode| if set { bit } else { OpenMode::empty() };
        let mode = bit(reads, OpenMode::READ) | bit(how.writes(), OpenMode::WRITE);
        let perms = self.perms(folder);
        let descriptor = match opened {
            Opened::File(file) => Descriptor::File(File::new(file, perms, mode, false)),
            Opened::Folder(dir) => {
                let mutates = mutates && perms == FsPerms::ReadWrite;
                let mode = mode | bit(mutates, OpenMode::WRITE);
                Descriptor::Dir(Dir::new(dir, perms, mode, false))
            }
        };
        Ok((self.inner.table.push(descriptor)?, slot))
    }

    /// A place for one more open file or folder.
    fn slot(&self) -> FsResult<Slot> {
        let slots = &self.files.slots;
        slots.take().ok_or_else(|| self.trip(Trip::Descriptors(slots.limit)))
    }

    fn register(&mut self, fd: &Fd, folder: usize, path: String, held: Arc<Held>) {
        self.files.open.insert(fd.rep(), Open { folder, path, held });
    }

    fn perms(&self, folder: usize) -> FsPerms {
        match self.scope.folders().get(folder).map(|folder| folder.mode) {
            Some(Mode::ReadWrite) => FsPerms::ReadWrite,
            Some(Mode::ReadOnly) | None => FsPerms::ReadOnly,
        }
    }

    fn held(&self, fd: &Fd) -> FsResult<Arc<Held>> {
        let open = self.files.open.get(&fd.rep()).ok_or(ErrorCode::BadDescriptor)?;
        Ok(Arc::clone(&open.held))
    }

    /// The handle of a descriptor.
    fn handle(&self, fd: &Fd) -> FsResult<Arc<std::fs::File>> {
        Ok(match self.inner.table.get(fd)? {
            Descriptor::File(file) => Arc::clone(&file.file),
            Descriptor::Dir(dir) => Arc::clone(&dir.dir),
        })
    }

    /// Sets the times of what lies at a path. It is opened first, so that what was looked at is
    /// what is changed; a link itself can't be opened, so its times stay.
    async fn touch(
        &mut self,
        fd: &Fd,
        path: String,
        follow: bool,
        (accessed, modified): (NewTimestamp, NewTimestamp),
    ) -> FsResult<()> {
        let root = match self.inner.table.get(fd)? {
            Descriptor::Dir(dir) => Arc::clone(&dir.dir),
            Descriptor::File(_) => return Err(ErrorCode::NotDirectory.into()),
        };
        let flags = DescriptorFlags::READ;
        let how = How { follow, open: OpenFlags::empty(), flags };
        let opening = tokio::task::spawn_blocking(move || match open::open(&root, &path, how)? {
            Opened::Folder(folder) => Ok(folder),
            Opened::File(file) if open::is_linked(&file)? => Err(ErrorCode::NotPermitted),
            Opened::File(file) => Ok(file),
        });
        let file = opening.await.map_err(|_| ErrorCode::Io)??;
        let file = File::new(file, FsPerms::ReadWrite, OpenMode::READ, false);
        let touched = self.inner.table.push(Descriptor::File(file))?;
        let result = self.inner.set_times(again(&touched), accessed, modified).await;
        self.inner.table.delete(touched)?;
        result
    }

    /// Wraps an output stream that was just made.
    fn bounded(
        &mut self,
        fd: &Fd,
        stream: Resource<DynOutputStream>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let held = self.held(fd)?;
        let inner = self.inner.table.delete(stream)?;
        let writer: DynOutputStream = Box::new(Writer {
            inner,
            written: self.files.written.clone(),
            held,
            trip: self.instance.trip.clone(),
        });
        Ok(self.inner.table.push(writer)?)
    }
}

impl preopens::Host for View<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Fd, String)>> {
        let scope = Arc::clone(&self.scope);
        let mut found = Vec::new();
        for (index, folder) in scope.folders().iter().enumerate() {
            let mode = match folder.mode {
                Mode::ReadOnly => OpenMode::READ,
                Mode::ReadWrite => OpenMode::READ | OpenMode::WRITE,
            };
            let Some(slot) = self.files.slots.take() else {
                let trip = Trip::Descriptors(self.files.slots.limit);
                self.instance.trip.set(trip);
                return Err(wasmtime::Error::msg(trip.code()));
            };
            let dir = Dir::new(folder.handle()?, self.perms(index), mode, false);
            let fd = self.inner.table.push(Descriptor::Dir(dir))?;
            let held = self.files.held(slot, None);
            self.register(&fd, index, folder.guest.clone(), held);
            found.push((fd, folder.guest.clone()));
        }
        Ok(found)
    }
}

impl types::Host for View<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        types::Host::convert_error_code(&mut self.inner, error)
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        types::Host::filesystem_error_code(&mut self.inner, error)
    }
}

impl HostDescriptor for View<'_> {
    async fn open_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        let how = How { follow: path_flags.contains(PathFlags::SYMLINK_FOLLOW), open, flags };
        let (folder, shown) = self.place(&fd, &path)?;
        // A folder that is opened to be changed later changes nothing yet.
        let asks = how.writes() || (how.changes() && self.perms(folder) == FsPerms::ReadWrite);
        let wish = if asks { Wish::Change } else { Wish::Read };
        let ticket = self.begin("open-at", wish, (folder, &shown))?;
        let since = Instant::now();
        match self.opened(&fd, folder, path, how).await {
            Ok((opened, slot)) => {
                let held = self.files.held(slot, Some(ticket));
                self.register(&opened, folder, shown, held);
                Ok(opened)
            }
            Err(error) => {
                let error = Err(error);
                self.end(ticket, since, &error);
                error
            }
        }
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let ticket = self.change("create-directory-at", &fd, &path)?;
        let since = Instant::now();
        let result = match self.name() {
            Ok(()) => self.inner.create_directory_at(fd, path).await,
            Err(error) => Err(error),
        };
        self.end(ticket, since, &result);
        result
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let ticket = self.change("unlink-file-at", &fd, &path)?;
        let since = Instant::now();
        let result = self.inner.unlink_file_at(fd, path).await;
        self.end(ticket, since, &result);
        result
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let ticket = self.change("remove-directory-at", &fd, &path)?;
        let since = Instant::now();
        let result = self.inner.remove_directory_at(fd, path).await;
        self.end(ticket, since, &result);
        result
    }

    async fn rename_at(
        &mut self,
        fd: Fd,
        old_path: String,
        new_fd: Fd,
        new_path: String,
    ) -> FsResult<()> {
        let from = self.change("rename-at", &fd, &old_path)?;
        let since = Instant::now();
        let to = self.change("rename-at", &new_fd, &new_path);
        let result = match &to {
            Ok(_) => self.inner.rename_at(again(&fd), old_path, again(&new_fd), new_path).await,
            Err(_) => Err(ErrorCode::NotPermitted.into()),
        };
        self.end(from, since, &result);
        if let Ok(to) = to {
            self.end(to, since, &result);
        }
        result
    }

    async fn link_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        old_path: String,
        new_fd: Fd,
        new_path: String,
    ) -> FsResult<()> {
        // A second name makes a file writable by way of it, so the first counts as changed too.
        let from = self.change("link-at", &fd, &old_path)?;
        let since = Instant::now();
        let to = self.change("link-at", &new_fd, &new_path);
        let result = match (&to, self.name()) {
            (_, Err(error)) => Err(error),
            (Ok(_), Ok(())) => {
                self.inner.link_at(again(&fd), flags, old_path, again(&new_fd), new_path).await
            }
            (Err(_), Ok(())) => Err(ErrorCode::NotPermitted.into()),
        };
        self.end(from, since, &result);
        if let Ok(to) = to {
            self.end(to, since, &result);
        }
        result
    }

    async fn symlink_at(&mut self, fd: Fd, target: String, path: String) -> FsResult<()> {
        let ticket = self.change("symlink-at", &fd, &path)?;
        let since = Instant::now();
        // The component can't follow a link that leaves the folder, and a person's tools could.
        let leaves = target.starts_with('/') || target.split('/').any(|part| part == "..");
        let result = match self.name() {
            Err(error) => Err(error),
            Ok(()) if leaves => Err(ErrorCode::NotPermitted.into()),
            Ok(()) => self.inner.symlink_at(fd, target, path).await,
        };
        self.end(ticket, since, &result);
        result
    }

    async fn set_times_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let ticket = self.change("set-times-at", &fd, &path)?;
        let since = Instant::now();
        let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
        let result = self.touch(&fd, path, follow, (accessed, modified)).await;
        self.end(ticket, since, &result);
        result
    }

    async fn set_times(
        &mut self,
        fd: Fd,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let ticket = self.change("set-times", &fd, "")?;
        let since = Instant::now();
        let result = match self.handle(&fd) {
            Ok(handle) => match open::is_linked(&handle) {
                Ok(false) => self.inner.set_times(fd, accessed, modified).await,
                Ok(true) => Err(ErrorCode::NotPermitted.into()),
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(error),
        };
        self.end(ticket, since, &result);
        result
    }

    async fn set_size(&mut self, fd: Fd, size: Filesize) -> FsResult<()> {
        let ticket = self.change("set-size", &fd, "")?;
        let since = Instant::now();
        let now = self.inner.stat(again(&fd)).await.map_or(0, |stat| stat.size);
        let result = if self.files.written.take(size.saturating_sub(now)) {
            self.inner.set_size(fd, size).await
        } else {
            Err(self.trip(Trip::Written(self.files.written.limit)))
        };
        self.end(ticket, since, &result);
        result
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        let held = self.held(&fd)?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if !self.files.written.take(length) {
            return Err(self.trip(Trip::Written(self.files.written.limit)));
        }
        let count = self.inner.write(fd, bytes, offset).await?;
        held.wrote.fetch_add(count, Ordering::Relaxed);
        Ok(count)
    }

    async fn read(
        &mut self,
        fd: Fd,
        length: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        let held = self.held(&fd)?;
        let (bytes, end) = self.inner.read(fd, length, offset).await?;
        held.read.fetch_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok((bytes, end))
    }

    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        let held = self.held(&fd)?;
        let stream = self.inner.read_via_stream(again(&fd), offset)?;
        let inner = self.inner.table.delete(stream)?;
        let reader: DynInputStream = Box::new(Reader { inner, held });
        Ok(self.inner.table.push(reader)?)
    }

    fn write_via_stream(
        &mut self,
        fd: Fd,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.inner.write_via_stream(again(&fd), offset)?;
        self.bounded(&fd, stream)
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.inner.append_via_stream(again(&fd))?;
        self.bounded(&fd, stream)
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<DirectoryEntryStream>> {
        let (folder, shown) = self.place(&fd, "")?;
        let ticket = self.begin("read-directory", Wish::Read, (folder, &shown))?;
        let since = Instant::now();
        let limit = self.scope.limits().listing;
        // The folder itself and the one above it are in every listing.
        let most = limit.saturating_sub(self.files.listed()).saturating_add(2);
        let dir = match self.inner.table.get(&fd)? {
            Descriptor::Dir(dir) => Some(Arc::clone(&dir.dir)),
            Descriptor::File(_) => None,
        };
        let result = match dir {
            None => Err(ErrorCode::NotDirectory.into()),
            // wasmtime reads a whole listing into memory, so it is counted before.
            Some(dir) => {
                let counted = tokio::task::spawn_blocking(move || open::count(&dir, most)).await;
                match counted {
                    Ok(Ok(count)) if count > most => Err(self.trip(Trip::Listing(limit))),
                    Ok(Ok(count)) => self.inner.read_directory(fd).await.inspect(|listing| {
                        let entries = count.saturating_sub(2);
                        self.files.listings.insert(listing.rep(), entries);
                    }),
                    Ok(Err(error)) => Err(ErrorCode::from(&error).into()),
                    Err(_) => Err(ErrorCode::Io.into()),
                }
            }
        };
        self.end(ticket, since, &result);
        result
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        self.files.open.remove(&fd.rep());
        HostDescriptor::drop(&mut self.inner, fd)
    }

    async fn advise(
        &mut self,
        fd: Fd,
        offset: Filesize,
        length: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        self.inner.advise(fd, offset, length, advice).await
    }

    async fn sync_data(&mut self, fd: Fd) -> FsResult<()> {
        self.inner.sync_data(fd).await
    }

    async fn sync(&mut self, fd: Fd) -> FsResult<()> {
        self.inner.sync(fd).await
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<DescriptorFlags> {
        self.inner.get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<DescriptorType> {
        self.inner.get_type(fd).await
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<DescriptorStat> {
        self.inner.stat(fd).await
    }

    async fn stat_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        self.inner.stat_at(fd, flags, path).await
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        self.inner.readlink_at(fd, path).await
    }

    async fn is_same_object(&mut self, one: Fd, other: Fd) -> wasmtime::Result<bool> {
        self.inner.is_same_object(one, other).await
    }

    async fn metadata_hash(&mut self, fd: Fd) -> FsResult<MetadataHashValue> {
        self.inner.metadata_hash(fd).await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        self.inner.metadata_hash_at(fd, flags, path).await
    }
}

impl HostDirectoryEntryStream for View<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.inner.read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.files.listings.remove(&stream.rep());
        HostDirectoryEntryStream::drop(&mut self.inner, stream)
    }
}
