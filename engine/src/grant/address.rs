//! What kind of place an address is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::host::Cidr;

/// The kind of place an address leads to.
///
/// Sources: IANA IPv4 and IPv6 special-purpose address registries (RFC 6890 and its updates), and
/// the cloud providers' own documentation for [`AddressClass::Metadata`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum AddressClass {
    /// An ordinary address of the internet.
    Public,
    /// RFC 1918: 10/8, 172.16/12, 192.168/16.
    Private,
    /// RFC 6598: 100.64/10, shared with the provider.
    CarrierNat,
    /// RFC 4193: fc00::/7.
    UniqueLocal,
    /// 127/8 and ::1.
    Loopback,
    /// 169.254/16 and fe80::/10.
    LinkLocal,
    /// An address where a cloud hands out credentials.
    Metadata,
    /// 224/4 and ff00::/8.
    Multicast,
    /// 255.255.255.255.
    Broadcast,
    /// 0/8 and ::, which operating systems take for the machine itself.
    Unspecified,
    /// 192.0.2/24, 198.51.100/24, 203.0.113/24, 2001:db8::/32, 3fff::/20.
    Documentation,
    /// 198.18/15 and 2001:2::/48.
    Benchmarking,
    /// Set aside for protocols or the future.
    Reserved,
}

impl AddressClass {
    /// Every class, in order.
    pub const ALL: [Self; 13] = [
        Self::Public,
        Self::Private,
        Self::CarrierNat,
        Self::UniqueLocal,
        Self::Loopback,
        Self::LinkLocal,
        Self::Metadata,
        Self::Multicast,
        Self::Broadcast,
        Self::Unspecified,
        Self::Documentation,
        Self::Benchmarking,
        Self::Reserved,
    ];

    /// The stable word for machine output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::CarrierNat => "carrier-nat",
            Self::UniqueLocal => "unique-local",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Metadata => "metadata",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Unspecified => "unspecified",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Reserved => "reserved",
        }
    }

    /// Whether the class is somebody's inside network, which a literal or a range may open.
    pub fn is_private(self) -> bool {
        matches!(self, Self::Private | Self::CarrierNat | Self::UniqueLocal)
    }

    /// Whether no entry opens the class under the default range policy.
    pub fn is_special(self) -> bool {
        self != Self::Public && !self.is_private()
    }

    pub(super) fn word(self) -> Option<&'static str> {
        (self != Self::Public).then(|| self.as_str())
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Single addresses at which clouds serve instance data or credentials.
const METADATA: [IpAddr; 12] = [
    // EC2, also Azure, Google Cloud, OCI, OpenStack, DigitalOcean: instance metadata.
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    // Amazon ECS: task metadata and task role credentials.
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    // Amazon EKS Pod Identity agent, IPv4 and IPv6.
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    // EC2 on Nitro: instance metadata over IPv6.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    // Google Compute Engine: metadata server over IPv6.
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    // Alibaba Cloud ECS: instance metadata, inside the carrier range.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    // Azure WireServer: a public address that is served by the machine's own host.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // Oracle Cloud Infrastructure Classic: instance metadata.
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    // Scaleway: instance metadata, IPv4 and IPv6.
    IpAddr::V4(Ipv4Addr::new(169, 254, 42, 42)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
    // Tencent Cloud: instance metadata.
    IpAddr::V4(Ipv4Addr::new(169, 254, 0, 23)),
];

/// IPv4 ranges; the first that holds an address names it.
const V4: [(Ipv4Addr, u8, AddressClass); 16] = [
    (Ipv4Addr::BROADCAST, 32, AddressClass::Broadcast),
    (Ipv4Addr::new(0, 0, 0, 0), 8, AddressClass::Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, AddressClass::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, AddressClass::CarrierNat),
    (Ipv4Addr::new(127, 0, 0, 0), 8, AddressClass::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, AddressClass::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, AddressClass::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, AddressClass::Documentation),
    (Ipv4Addr::new(192, 88, 99, 0), 24, AddressClass::Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, AddressClass::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, AddressClass::Benchmarking),
    (Ipv4Addr::new(198, 51, 100, 0), 24, AddressClass::Documentation),
    (Ipv4Addr::new(203, 0, 113, 0), 24, AddressClass::Documentation),
    (Ipv4Addr::new(224, 0, 0, 0), 4, AddressClass::Multicast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, AddressClass::Reserved),
];

/// IPv6 ranges; the first that holds an address names it. What none holds, and what lies outside
/// 2000::/3, is reserved.
const V6: [(Ipv6Addr, u8, AddressClass); 11] = [
    (Ipv6Addr::UNSPECIFIED, 128, AddressClass::Unspecified),
    (Ipv6Addr::LOCALHOST, 128, AddressClass::Loopback),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, AddressClass::LinkLocal),
    // Site-local, deprecated by RFC 3879, still an inside network where it is in use.
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, AddressClass::UniqueLocal),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, AddressClass::UniqueLocal),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, AddressClass::Multicast),
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48, AddressClass::Benchmarking),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, AddressClass::Documentation),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, AddressClass::Documentation),
    // IETF protocol assignments (RFC 2928): ORCHID, AMT, AS112 and others.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, AddressClass::Reserved),
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, AddressClass::Public),
];

/// Says what kind of place `address` leads to.
///
/// An IPv6 address that carries an IPv4 address (v4-mapped, v4-compatible, SIIT, NAT64, 6to4,
/// Teredo) is judged by the carried one, since a translator on the way may send it there.
///
/// # Examples
///
/// ```
/// # use ambit_engine::grant::{AddressClass, classify};
/// let nat64 = "64:ff9b::a9fe:a9fe".parse()?;
/// assert_eq!(classify(nat64), AddressClass::Metadata);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn classify(address: IpAddr) -> AddressClass {
    if METADATA.contains(&address) {
        return AddressClass::Metadata;
    }
    match address {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => classify_v6(v6),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    if METADATA.contains(&IpAddr::V4(address)) {
        return AddressClass::Metadata;
    }
    first(V4.map(|(network, prefix, class)| (IpAddr::V4(network), prefix, class)), address.into())
        .unwrap_or(AddressClass::Public)
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    let own = first(V6.map(|(n, prefix, class)| (IpAddr::V6(n), prefix, class)), address.into())
        .unwrap_or(AddressClass::Reserved);
    if address.is_unspecified() || address.is_loopback() {
        return own;
    }
    // The strictest reading wins: what a translator makes of the address isn't known here. 0/8 is
    // also what the unused bits of its prefix look like, so that it only counts if nothing else
    // is there.
    carried(address)
        .into_iter()
        .map(classify_v4)
        .max_by_key(|class| strictness(*class))
        .unwrap_or(own)
}

fn strictness(class: AddressClass) -> u8 {
    match class {
        AddressClass::Unspecified => 0,
        AddressClass::Public => 1,
        AddressClass::Private | AddressClass::CarrierNat | AddressClass::UniqueLocal => 2,
        AddressClass::Loopback
        | AddressClass::LinkLocal
        | AddressClass::Multicast
        | AddressClass::Broadcast
        | AddressClass::Documentation
        | AddressClass::Benchmarking
        | AddressClass::Reserved => 3,
        AddressClass::Metadata => 4,
    }
}

/// The IPv4 addresses that an IPv6 address carries.
fn carried(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let bits = u128::from(address);
    let take = |shift: u32| {
        let low = bits.checked_shr(shift).unwrap_or(0) & u128::from(u32::MAX);
        Ipv4Addr::from(u32::try_from(low).unwrap_or(0))
    };
    let halves = |high: u32, high_mask: u128, low: u32, low_mask: u128, join: u32| {
        let high = bits.checked_shr(high).unwrap_or(0) & high_mask;
        let low = bits.checked_shr(low).unwrap_or(0) & low_mask;
        let joined = high.checked_shl(join).unwrap_or(0) | low;
        Ipv4Addr::from(u32::try_from(joined).unwrap_or(0))
    };
    match address.segments() {
        // v4-compatible (RFC 4291, 2.5.5.1), v4-mapped (2.5.5.2), SIIT (RFC 2765, 2.1), and the
        // well-known NAT64 prefix (RFC 6052, 2.1).
        [0, 0, 0, 0, 0, 0, _, _]
        | [0, 0, 0, 0, 0, 0xffff, _, _]
        | [0, 0, 0, 0, 0xffff, 0, _, _]
        | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => vec![take(0)],
        // Local NAT64 prefixes (RFC 8215). Which of the layouts of RFC 6052, 2.2 is in use isn't
        // known, so every one that fits below a /48 is read.
        [0x64, 0xff9b, 1, _, _, _, _, _] => vec![
            take(0),
            halves(64, 0xffff, 40, 0xffff, 16),
            halves(64, 0xff, 32, 0x00ff_ffff, 24),
            take(24),
        ],
        // 6to4 (RFC 3056, 2).
        [0x2002, _, _, _, _, _, _, _] => vec![take(80)],
        // Teredo (RFC 4380, 4): the server, and the client with its bits inverted.
        [0x2001, 0, _, _, _, _, _, _] => {
            vec![Ipv4Addr::from(!u32::from(take(0))), take(64)]
        }
        _ => Vec::new(),
    }
}

fn first<const N: usize>(
    ranges: [(IpAddr, u8, AddressClass); N],
    address: IpAddr,
) -> Option<AddressClass> {
    ranges
        .into_iter()
        .find(|(network, prefix, _)| {
            Cidr::new(*network, *prefix).is_some_and(|range| range.contains(address))
        })
        .map(|(_, _, class)| class)
}

/// The classes other than public of which `range` holds at least one address, in order.
pub(super) fn classes_in(range: &Cidr) -> Vec<AddressClass> {
    let v4 = V4.map(|(network, prefix, class)| (IpAddr::V4(network), prefix, class));
    let v6 = V6.map(|(network, prefix, class)| (IpAddr::V6(network), prefix, class));
    let metadata = METADATA
        .map(|address| (address, if address.is_ipv4() { 32 } else { 128 }, AddressClass::Metadata));
    let mut classes: Vec<AddressClass> = v4
        .into_iter()
        .chain(v6)
        .chain(metadata)
        .filter_map(|(network, prefix, class)| Some((Cidr::new(network, prefix)?, class)))
        .filter(|(known, _)| known.covers(range) || range.covers(known))
        .map(|(_, class)| class)
        .chain([classify(range.network())])
        .filter(|class| *class != AddressClass::Public)
        .collect();
    classes.sort_unstable();
    classes.dedup();
    classes
}

/// Whether `name` is one by which a cloud serves instance data or credentials; case and one
/// trailing dot don't matter.
pub fn metadata_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    matches!(
        name.as_str(),
        // Google Compute Engine.
        "metadata.google.internal" | "metadata.goog" | "metadata"
        // EC2.
        | "instance-data" | "instance-data.ec2.internal"
        // Azure.
        | "metadata.azure.internal" | "metadata.azure.com"
        // Alibaba, Tencent, Packet/Equinix Metal, Oracle.
        | "metadata.aliyun.com" | "metadata.aliyuncs.com" | "metadata.tencentyun.com"
        | "metadata.packet.net" | "metadata.platformequinix.com" | "metadata.oraclecloud.com"
    )
}
