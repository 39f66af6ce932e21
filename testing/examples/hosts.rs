//! What an entry of wasmCloud's `allowedHosts` lets through, for a comparison with its host
//! (`.ci/differential-wasmcloud`): a line in, `ENTRY SCHEME AUTHORITY`; a line out, `allow`, `deny`, or
//! `invalid` for an entry that is none.
#![expect(clippy::print_stdout, reason = "it answers another program")]

use std::io::BufRead as _;

use ambit_engine::grant::{Dialect, HostDecision, HostGrants, HostPattern, Target};

fn main() -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split(' ').map(str::to_owned);
        let (Some(entry), Some(scheme), Some(authority)) =
            (words.next(), words.next(), words.next())
        else {
            return Err(std::io::Error::other(format!("`{line}` is no question")));
        };
        println!("{}", answer(&entry, &scheme, &authority));
    }
    Ok(())
}

fn answer(entry: &str, scheme: &str, authority: &str) -> &'static str {
    let Ok(pattern) = HostPattern::parse(entry, Dialect::WasmCloud) else { return "invalid" };
    // What has no canonical form is refused wherever it goes.
    let Ok(target) = Target::http(scheme, authority) else { return "deny" };
    match HostGrants::new(vec![pattern]).decide(&target) {
        HostDecision::Allowed { .. } => "allow",
        HostDecision::DeniedByEntry { .. } | HostDecision::NotGranted => "deny",
    }
}
