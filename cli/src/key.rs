//! Private keys and passwords, for the commands that sign.

use std::io::IsTerminal as _;
use std::path::Path;

use ambit_trust::keys::{KeyError, KeyFile, MAX_KEY_BYTES, SigningKey};
use zeroize::Zeroizing;

use crate::args;
use crate::output::Failure;
use crate::source::read_file;

/// The variable in which cosign looks for a password.
const PASSWORD_VARIABLE: &str = "COSIGN_PASSWORD";

/// The longest password, in bytes.
const MAX_PASSWORD_BYTES: usize = 4096;

pub(crate) fn failure(error: &KeyError) -> Failure {
    Failure::new(error.code(), error.to_string(), Some(error.help().to_owned()))
}

/// Reads the private key, and its password if it has one.
pub(crate) fn read(arguments: &args::SigningKey) -> Result<SigningKey, Failure> {
    let path = &arguments.key;
    let named = |error: &KeyError| {
        let mut failure = failure(error);
        failure.message = format!("{}: {}", path.display(), failure.message);
        failure
    };
    let bytes = Zeroizing::new(read_file(path, MAX_KEY_BYTES)?);
    match KeyFile::parse(&bytes).map_err(|error| named(&error))? {
        KeyFile::Plain(key) => Ok(key),
        KeyFile::Encrypted(key) => {
            let prompt = format!("Password of {}: ", path.display());
            let password = password(arguments.password_file.as_deref(), &prompt)?;
            key.open(password.as_bytes()).map_err(|error| named(&error))
        }
    }
}

/// Returns a password: from the file, else from the environment, else from the terminal.
pub(crate) fn password(file: Option<&Path>, prompt: &str) -> Result<Zeroizing<String>, Failure> {
    if let Some(file) = file {
        let bytes = Zeroizing::new(read_file(file, MAX_PASSWORD_BYTES)?);
        let text = std::str::from_utf8(&bytes).map_err(|_| {
            let message = format!("{}: the password is no text", file.display());
            Failure::new("key-password", message, Some("save it as UTF-8".to_owned()))
        })?;
        // An editor's line end is no part of the password.
        return Ok(Zeroizing::new(text.trim_end_matches(['\r', '\n']).to_owned()));
    }
    if let Some(text) = std::env::var_os(PASSWORD_VARIABLE) {
        let text = text.into_string().map_err(|_| {
            Failure::new("key-password", format!("`{PASSWORD_VARIABLE}` is no text"), None)
        })?;
        return Ok(Zeroizing::new(text));
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(
            "key-password",
            "a password is needed, and there is no terminal to ask at",
            Some(format!("set `{PASSWORD_VARIABLE}`, or name a file with `--password-file`")),
        ));
    }
    rpassword::prompt_password(prompt)
        .map(Zeroizing::new)
        .map_err(|error| Failure::new("key-password", format!("the terminal: {error}"), None))
}
