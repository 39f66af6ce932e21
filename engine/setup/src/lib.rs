//! From the files that an operator keeps to what a decision is made by: `ambit.yaml`, packs,
//! catalogue files, trust policies with their roots, registries and their credentials.
//!
//! The front ends share this so that the same files mean the same to each of them. Nothing here
//! prints, and nothing is fetched.

mod configuration;
mod failure;
mod files;
mod registries;
mod trusted;

pub use configuration::{Configuration, FILE_NAME};
pub use failure::{Failure, Spot};
pub use files::{Files, read_all, read_file};
pub use registries::{Credentials, Mirrors, RegistryOptions, client, docker_files};
pub use trusted::{Given, PublicGood, Trusted};
