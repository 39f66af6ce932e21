//! Which resolved addresses may be dialled.

use std::net::IpAddr;

use super::address::{AddressClass, classify};

/// What the matching entry, or the workload, says about addresses.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Consent {
    /// A name, or a wildcard: no address was spelled.
    None,
    /// The entry is this address.
    Literal,
    /// The entry is a range that holds this address.
    Cidr,
    /// The workload has the private-network flag.
    PrivateNetwork,
}

/// What a policy does with one class of addresses.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum RangeRule {
    /// Dial.
    Allow,
    /// Dial only under a [`Consent`] other than `None`.
    NeedsConsent,
    /// Refuse.
    Never,
}

/// Which classes of addresses may be dialled; the default is what the executor ships with.
///
/// By default public addresses are allowed, private ones need consent, and all others are refused
/// whatever an entry says. Loopback opens by [`HostSet::HostInternal`](super::HostSet::HostInternal)
/// and the operator's flag, a path that never asks this policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RangePolicy {
    rules: Vec<(AddressClass, RangeRule)>,
}

impl Default for RangePolicy {
    fn default() -> Self {
        let rule = |class: AddressClass| match class {
            AddressClass::Public => RangeRule::Allow,
            AddressClass::Private | AddressClass::CarrierNat | AddressClass::UniqueLocal => {
                RangeRule::NeedsConsent
            }
            AddressClass::Loopback
            | AddressClass::LinkLocal
            | AddressClass::Metadata
            | AddressClass::Multicast
            | AddressClass::Broadcast
            | AddressClass::Unspecified
            | AddressClass::Documentation
            | AddressClass::Benchmarking
            | AddressClass::Reserved => RangeRule::Never,
        };
        Self { rules: AddressClass::ALL.map(|class| (class, rule(class))).to_vec() }
    }
}

impl RangePolicy {
    /// The policy with another rule for one class. For tests and embedders; no flag leads here.
    #[must_use]
    pub fn with(mut self, class: AddressClass, rule: RangeRule) -> Self {
        self.rules.retain(|(own, _)| *own != class);
        self.rules.push((class, rule));
        self.rules.sort_unstable();
        self
    }

    /// The rule for one class.
    pub fn rule(&self, class: AddressClass) -> RangeRule {
        self.rules.iter().find(|(own, _)| *own == class).map_or(RangeRule::Never, |(_, rule)| *rule)
    }

    /// Judges one resolved address.
    ///
    /// # Errors
    ///
    /// The class of the address, if it may not be dialled.
    ///
    /// # Examples
    ///
    /// ```
    /// # use ambit_engine::grant::{Consent, RangePolicy};
    /// let policy = RangePolicy::default();
    /// assert!(policy.allows("10.0.0.1".parse()?, Consent::None).is_err());
    /// assert!(policy.allows("10.0.0.1".parse()?, Consent::Literal).is_ok());
    /// assert!(policy.allows("169.254.169.254".parse()?, Consent::Literal).is_err());
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    pub fn allows(&self, address: IpAddr, consent: Consent) -> Result<(), AddressClass> {
        let class = classify(address);
        match (self.rule(class), consent) {
            (RangeRule::Allow, _)
            | (
                RangeRule::NeedsConsent,
                Consent::Literal | Consent::Cidr | Consent::PrivateNetwork,
            ) => Ok(()),
            (RangeRule::NeedsConsent, Consent::None) | (RangeRule::Never, _) => Err(class),
        }
    }
}
