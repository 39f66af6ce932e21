//! `ambit keygen`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ambit_trust::keys::SigningKey;

use crate::args::{Format, Keygen};
use crate::exit::Exit;
use crate::key;
use crate::output::{Failure, Output};

/// Makes a key pair.
pub(crate) fn run(command: &Keygen, output: &Output) -> Result<Exit, Failure> {
    output.only(&[Format::Human, Format::Json])?;
    let (private, public) = (with(&command.output, "key"), with(&command.output, "pub"));
    for path in [&private, &public] {
        if path.symlink_metadata().is_ok() {
            return Err(Failure::new(
                "key-exists",
                format!("{} is there already", path.display()),
                Some(
                    "name another start with `--output`; a key that signed something is kept"
                        .to_owned(),
                ),
            ));
        }
    }
    let pair = SigningKey::generate().map_err(|error| key::failure(&error))?;
    let text = if command.no_password {
        pair.to_pkcs8_pem().map_err(|error| key::failure(&error))?
    } else {
        let asked =
            command.password_file.is_none() && std::env::var_os("COSIGN_PASSWORD").is_none();
        let password =
            key::password(command.password_file.as_deref(), "Password for the new key: ")?;
        if asked {
            let again = key::password(None, "The same again: ")?;
            if *again != *password {
                return Err(Failure::new("key-password", "the two passwords differ", None));
            }
        }
        let sealed = pair.to_encrypted_pem(password.as_bytes());
        zeroize::Zeroizing::new(sealed.map_err(|error| key::failure(&error))?)
    };
    write(&private, text.as_bytes(), 0o600)?;
    write(&public, pair.public_pem().as_bytes(), 0o644)?;
    let fingerprint = pair.fingerprint();
    if output.format == Format::Json {
        output.json(&serde_json::json!({
            "schema": "ambit.keygen/v1",
            "private": private.display().to_string(),
            "public": public.display().to_string(),
            "fingerprint": fingerprint.to_string(),
        }))?;
    } else {
        output.answer(&format!(
            "private key  {}\npublic key   {}\nfingerprint  {fingerprint}\n",
            private.display(),
            public.display()
        ))?;
    }
    Ok(Exit::Done)
}

/// Adds an extension to what may hold dots already.
fn with(start: &Path, extension: &str) -> PathBuf {
    let mut name = start.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// Writes a new file. One that appeared meanwhile is not written over.
fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let failure = |error: std::io::Error| {
        let help = "check the folder and its permissions".to_owned();
        Failure::new("file-not-written", format!("{}: {error}", path.display()), Some(help))
    };
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(failure)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failure)
}
