//! What `ambit.yaml` says, with the catalogue and the packs that go with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ambit_engine::catalogue::Catalogue;
use ambit_engine::config::Config;
use ambit_engine::digest::Digest;
use ambit_engine::limits::Limits;
use ambit_engine::policy::{
    Origin, Pack, PackError, PackFile, PolicyLimits, PolicySet, Profile, embedded,
};

use crate::{Failure, Files};

/// The configuration's usual name.
pub const FILE_NAME: &str = "ambit.yaml";

/// The largest configuration or catalogue file.
const MAX_CONFIG_BYTES: usize = 1 << 20;

/// The configuration with what it was made of.
#[derive(Debug)]
pub struct Configuration {
    /// What the file says; the defaults where there is none.
    pub config: Config,
    /// The built-in catalogue with the files that add to it.
    pub catalogue: Catalogue,
    /// How much a component may ask of the parser.
    pub limits: Limits,
    /// The file that was used.
    pub file: Option<PathBuf>,
    /// Digests of the files that took part, by name.
    pub digests: BTreeMap<String, String>,
    base: PathBuf,
}

impl Configuration {
    /// Reads a configuration, or takes the defaults without one. `catalogue` files come after those
    /// that it names.
    ///
    /// # Errors
    ///
    /// [`Failure`] for the first file that can't be read or makes no sense.
    pub fn read(
        file: Option<PathBuf>,
        catalogue: &[PathBuf],
        files: &mut Files,
    ) -> Result<Self, Failure> {
        let mut digests = BTreeMap::new();
        let (config, base) = match &file {
            Some(path) => {
                let name = shown(path);
                let bytes = files.read(path, MAX_CONFIG_BYTES)?;
                digests.insert(name.clone(), Digest::of(&bytes).to_string());
                let config = Config::read(&name, &bytes)
                    .map_err(|error| Failure::of(&error, error.code(), error.help()))?;
                (config, path.parent().map(Path::to_path_buf).unwrap_or_default())
            }
            None => (Config::default(), PathBuf::new()),
        };
        let mut known = Catalogue::builtin()
            .map_err(|error| Failure::of(&error, error.code(), error.help()))?;
        let from_config = config.catalogue.iter().map(|path| base.join(path));
        for path in from_config.chain(catalogue.iter().cloned()) {
            let name = shown(&path);
            let bytes = files.read(&path, MAX_CONFIG_BYTES)?;
            digests.insert(name.clone(), Digest::of(&bytes).to_string());
            known = known
                .with_file(&name, &bytes)
                .map_err(|error| Failure::of(&error, error.code(), error.help()))?;
        }
        let mut limits = Limits::default();
        if let Some(bytes) = config.max_component_bytes {
            limits = limits.with_max_component_bytes(bytes);
        }
        Ok(Self { config, catalogue: known, limits, file, digests, base })
    }

    /// Loads the shipped packs, those that the configuration names, and `more`.
    ///
    /// # Errors
    ///
    /// [`Failure`] for the first pack that can't be read or evaluated.
    pub fn policies(&mut self, more: &[PathBuf], files: &mut Files) -> Result<PolicySet, Failure> {
        self.policies_with(embedded(&PolicyLimits::default()), more, files)
    }

    /// As [`policies`](Self::policies), with the shipped packs at hand.
    ///
    /// # Errors
    ///
    /// As [`policies`](Self::policies).
    pub fn policies_with(
        &mut self,
        shipped: Result<Vec<Pack>, PackError>,
        more: &[PathBuf],
        files: &mut Files,
    ) -> Result<PolicySet, Failure> {
        let limits = PolicyLimits::default();
        let mut packs = shipped.map_err(|error| pack_failure(&error))?;
        let from_config = self.config.policies.iter().map(|path| self.base.join(path));
        for path in from_config.chain(more.iter().cloned()).collect::<Vec<_>>() {
            let pack = read_pack(&path, &limits, files)?;
            if packs.iter().any(|known| known.name() == pack.name()) {
                return Err(Failure::new(
                    "pack-form",
                    format!("{}: a pack named `{}` is loaded already", shown(&path), pack.name()),
                    Some("give it another name in `pack.yaml`".to_owned()),
                ));
            }
            packs.push(pack);
        }
        for pack in &packs {
            self.digests.insert(format!("pack {}", pack.name()), pack.digest().to_string());
        }
        PolicySet::prepare(packs, &self.config.parameters, limits)
            .map_err(|error| pack_failure(&error))
    }

    /// The folder from which the paths in the configuration count.
    #[must_use]
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The profile: `given`, else the file's, else the default.
    #[must_use]
    pub fn profile(&self, given: Option<Profile>) -> Profile {
        given.or(self.config.profile).unwrap_or_default()
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn pack_failure(error: &PackError) -> Failure {
    Failure::of(error, error.code(), error.help())
}

/// Reads a pack from a folder or a single file.
fn read_pack(path: &Path, limits: &PolicyLimits, files: &mut Files) -> Result<Pack, Failure> {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or("policy").to_owned();
    if !path.is_dir() {
        let text = files.read(path, limits.max_file_bytes)?;
        let file = [PackFile { name: shown(path), text }];
        return Pack::read(&name, &file, Origin::Given, limits)
            .map_err(|error| pack_failure(&error));
    }
    let mut found = Vec::new();
    for path in files.list(path)? {
        let wanted = path.extension().is_some_and(|extension| extension == "rego")
            || path.file_name().is_some_and(|name| name == "pack.yaml");
        if wanted && path.is_file() {
            let text = files.read(&path, limits.max_file_bytes)?;
            found.push(PackFile { name: shown(&path), text });
        }
        if found.len() > limits.max_files {
            break;
        }
    }
    Pack::read(&name, &found, Origin::Given, limits).map_err(|error| pack_failure(&error))
}
