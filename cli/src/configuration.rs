//! The configuration of a run: what `ambit.yaml` says, what flags replace, and where each value
//! comes from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ambit_engine::catalogue::Catalogue;
use ambit_engine::config::Config;
use ambit_engine::digest::Digest;
use ambit_engine::limits::Limits;
use ambit_engine::policy::{
    Origin, Pack, PackError, PackFile, PolicyLimits, PolicySet, Profile, embedded,
};

use crate::args::Global;
use crate::output::Failure;
use crate::source::read_file;

/// The file's name, looked for from the working directory upward.
const FILE_NAME: &str = "ambit.yaml";

/// The largest configuration or catalogue file.
const MAX_CONFIG_BYTES: usize = 1 << 20;

/// The configuration with what it was made of.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) config: Config,
    pub(crate) catalogue: Catalogue,
    pub(crate) limits: Limits,
    /// The file that was used.
    pub(crate) file: Option<PathBuf>,
    /// Digests of the files that took part, by name.
    pub(crate) digests: BTreeMap<String, String>,
    base: PathBuf,
}

fn failure(error: &dyn std::error::Error, code: &str, help: Option<String>) -> Failure {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    Failure::new(code, message, help)
}

impl Configuration {
    /// Finds and reads the configuration.
    pub(crate) fn read(global: &Global) -> Result<Self, Failure> {
        let file = match &global.config {
            Some(file) => Some(file.clone()),
            None => discover(),
        };
        let mut digests = BTreeMap::new();
        let (config, base) = match &file {
            Some(path) => {
                let name = shown(path);
                let bytes = read_file(path, MAX_CONFIG_BYTES)?;
                digests.insert(name.clone(), Digest::of(&bytes).to_string());
                let config = Config::read(&name, &bytes)
                    .map_err(|error| failure(&error, error.code(), error.help()))?;
                (config, path.parent().map(Path::to_path_buf).unwrap_or_default())
            }
            None => (Config::default(), PathBuf::new()),
        };
        let mut catalogue =
            Catalogue::builtin().map_err(|error| failure(&error, error.code(), error.help()))?;
        let from_config = config.catalogue.iter().map(|path| base.join(path));
        for path in from_config.chain(global.catalogue.iter().cloned()) {
            let name = shown(&path);
            let bytes = read_file(&path, MAX_CONFIG_BYTES)?;
            digests.insert(name.clone(), Digest::of(&bytes).to_string());
            catalogue = catalogue
                .with_file(&name, &bytes)
                .map_err(|error| failure(&error, error.code(), error.help()))?;
        }
        let mut limits = Limits::default();
        if let Some(bytes) = config.max_component_bytes {
            limits = limits.with_max_component_bytes(bytes);
        }
        Ok(Self { config, catalogue, limits, file, digests, base })
    }

    /// Loads the shipped packs and those that configuration and flags name.
    pub(crate) fn policies(&mut self, flags: &[PathBuf]) -> Result<PolicySet, Failure> {
        self.policies_with(embedded(&PolicyLimits::default()), flags)
    }

    /// As [`policies`](Self::policies), with the shipped packs at hand.
    pub(crate) fn policies_with(
        &mut self,
        shipped: Result<Vec<Pack>, PackError>,
        flags: &[PathBuf],
    ) -> Result<PolicySet, Failure> {
        let limits = PolicyLimits::default();
        let pack_failure = |error: PackError| failure(&error, error.code(), error.help());
        let mut packs = shipped.map_err(pack_failure)?;
        let from_config = self.config.policies.iter().map(|path| self.base.join(path));
        for path in from_config.chain(flags.iter().cloned()).collect::<Vec<_>>() {
            let pack = read_pack(&path, &limits)?;
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
        PolicySet::prepare(packs, &self.config.parameters, limits).map_err(pack_failure)
    }

    /// The folder from which the paths in the configuration count.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// The profile: the flag's, else the file's, else the default.
    pub(crate) fn profile(&self, flag: Option<Profile>) -> Profile {
        flag.or(self.config.profile).unwrap_or_default()
    }
}

/// Looks for the configuration from the working directory upward.
fn discover() -> Option<PathBuf> {
    let start = std::env::current_dir().ok()?;
    let found = start.ancestors().map(|dir| dir.join(FILE_NAME)).find(|path| path.is_file())?;
    // Shown as a person would name it: relative where it is in the working directory or above.
    let depth = start.ancestors().position(|dir| dir.join(FILE_NAME) == found)?;
    Some(std::iter::repeat_n("..", depth).collect::<PathBuf>().join(FILE_NAME))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Reads a pack from a folder or a single file.
fn read_pack(path: &Path, limits: &PolicyLimits) -> Result<Pack, Failure> {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or("policy").to_owned();
    let pack_failure = |error: PackError| failure(&error, error.code(), error.help());
    if !path.is_dir() {
        let text = read_file(path, limits.max_file_bytes)?;
        let files = [PackFile { name: shown(path), text }];
        return Pack::read(&name, &files, Origin::Given, limits).map_err(pack_failure);
    }
    let entries = std::fs::read_dir(path).map_err(|error| {
        Failure::new("file-unreadable", format!("{}: {error}", shown(path)), None)
    })?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let wanted = path.extension().is_some_and(|extension| extension == "rego")
            || path.file_name().is_some_and(|name| name == "pack.yaml");
        if wanted && path.is_file() {
            let text = read_file(&path, limits.max_file_bytes)?;
            files.push(PackFile { name: shown(&path), text });
        }
        if files.len() > limits.max_files {
            break;
        }
    }
    Pack::read(&name, &files, Origin::Given, limits).map_err(pack_failure)
}
