//! Folders: the views that stand between a component and the file system.
//!
//! Every folder is opened once, at start, as a handle. Paths of a component are resolved beneath
//! that handle by the kernel (`openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_MAGICLINKS`), so no
//! link, `..` or rename leads out of it. Only regular files and folders are opened: a pipe could
//! hang a thread, a device could do anything.
//!
//! All changes pass `judge`, one decision point for all modes.

mod folder;
mod handle;
mod open;
mod stream;
mod view;
mod volume;

use std::sync::Arc;

use ambit_engine::admitted::PlannedImport;
use wasmtime::component::Linker;
use wasmtime_wasi::p2::bindings::filesystem;

pub use folder::Folders;
pub use volume::Volumes;

pub(crate) use handle::Files;

use crate::linker::Linked;
use crate::state::State;
use folder::{Folder, Mode};
use view::HasFiles;

/// What a component wants to do with a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wish {
    /// Open or list it.
    Read,
    /// Change it: create, write, rename, remove, link, touch.
    Change,
}

/// What was decided about a wish.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Judgement {
    Allowed,
    /// The folder is granted for reading only.
    ReadOnly,
}

/// Decides whether something may be done in a folder. Undo and asking hang on here: it is called
/// before every change, where there is time to write a journal or to ask somebody.
fn judge(folder: &Folder, wish: Wish) -> Judgement {
    match (folder.mode, wish) {
        (Mode::ReadOnly | Mode::ReadWrite, Wish::Read) | (Mode::ReadWrite, Wish::Change) => {
            Judgement::Allowed
        }
        (Mode::ReadOnly, Wish::Change) => Judgement::ReadOnly,
    }
}

/// Links `wasi:filesystem`.
pub(crate) fn link(linker: &mut Linker<State>, import: &PlannedImport) -> wasmtime::Result<Linked> {
    match import.track.as_str() {
        "wasi:filesystem/types@0.2" => {
            filesystem::types::add_to_linker::<State, HasFiles>(linker, State::files)?;
        }
        "wasi:filesystem/preopens@0.2" => {
            filesystem::preopens::add_to_linker::<State, HasFiles>(linker, State::files)?;
        }
        _ => return Ok(Linked::NotMine),
    }
    Ok(Linked::Yes)
}

impl State {
    fn files(&mut self) -> view::View<'_> {
        view::View {
            scope: Arc::clone(&self.scope),
            instance: &self.instance,
            files: &mut self.files,
            inner: wasmtime_wasi::filesystem::WasiFilesystemCtxView {
                ctx: self.wasi.filesystem(),
                table: &mut self.table,
            },
        }
    }
}
