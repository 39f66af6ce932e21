//! Where the configuration of a run is found. What it means is `ambit-setup`'s business.

use std::path::PathBuf;

pub(crate) use ambit_setup::Configuration;
use ambit_setup::{FILE_NAME, Files};

use crate::args::Global;
use crate::output::Failure;

/// Finds and reads the configuration.
pub(crate) fn read(global: &Global) -> Result<Configuration, Failure> {
    let file = match &global.config {
        Some(file) => Some(file.clone()),
        None => discover(),
    };
    Ok(Configuration::read(file, &global.catalogue, &mut Files::default())?)
}

/// Looks for the configuration from the working directory upward.
fn discover() -> Option<PathBuf> {
    let start = std::env::current_dir().ok()?;
    let found = start.ancestors().map(|dir| dir.join(FILE_NAME)).find(|path| path.is_file())?;
    // Shown as a person would name it: relative where it is in the working directory or above.
    let depth = start.ancestors().position(|dir| dir.join(FILE_NAME) == found)?;
    Some(std::iter::repeat_n("..", depth).collect::<PathBuf>().join(FILE_NAME))
}
