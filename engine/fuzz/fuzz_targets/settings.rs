//! What people write for `ambit` itself: `ambit.yaml`, catalogue files, policy packs; and what
//! credentials and keys are read from. No panic, no hang.
#![no_main]

use std::sync::LazyLock;

use ambit_engine::catalogue::Catalogue;
use ambit_engine::config::Config;
use ambit_engine::policy::{Origin, Pack, PackFile, PolicyLimits};
use ambit_trust::keys::KeyFile;
use ambit_trust::registry::credentials::{Credentials, PullSecret};
use libfuzzer_sys::fuzz_target;

static CATALOGUE: LazyLock<Catalogue> =
    LazyLock::new(|| Catalogue::builtin().expect("the built-in catalogue"));

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    match kind % 6 {
        0 => drop(Config::read("ambit.yaml", rest)),
        1 => drop(CATALOGUE.clone().with_file("more.yaml", rest)),
        2 => {
            let rego = b"package x\n\ndeny contains \"no\" if false\n".to_vec();
            let files = [
                PackFile { name: "pack.yaml".to_owned(), text: rest.to_vec() },
                PackFile { name: "x.rego".to_owned(), text: rego },
            ];
            drop(Pack::read("x", &files, Origin::Given, &PolicyLimits::default()));
        }
        3 => {
            let files = [PackFile { name: "x.rego".to_owned(), text: rest.to_vec() }];
            drop(Pack::read("x", &files, Origin::Given, &PolicyLimits::default()));
        }
        4 => {
            drop(Credentials::default().with_docker_config("config.json", rest));
            let form = PullSecret::DockerCfg;
            drop(Credentials::default().with_pull_secret("secret", form, rest));
        }
        _ => drop(KeyFile::parse(rest)),
    }
});
