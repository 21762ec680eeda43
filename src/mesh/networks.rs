//! Networks: the ranges that a cluster declares, in one of the two forms.

use std::net::IpAddr;

use crate::diagnostic::{Finding, Mistakes, Quoted, Slip, escaped, mistake};
use crate::net::{Cidr, CidrError, Interface};
use crate::place::Place;
use crate::text;

use super::raw::RawCluster;
use super::{Networks, Range};

/// The networks that one entry declares.
pub(super) struct DeclaredNetworks {
    /// Every range that is one, in the order in which the operator compares them.
    pub(super) ranges: Vec<Range>,
    /// The whole, if all of it is right.
    pub(super) networks: Option<Networks>,
}

/// The ranges under one field; `None` for an invalid one.
pub(super) type Ranges = Vec<Option<Range>>;

impl Networks {
    /// Returns every range, in the order in which the operator compares them.
    pub fn all(&self) -> Vec<&Range> {
        match self {
            Self::Typed { pods, wireguard, services, additional } => {
                pods.iter().chain([wireguard]).chain(services).chain(additional).collect()
            }
            Self::Flat { allowed } => allowed.iter().collect(),
        }
    }

    /// Returns the field for ranges that are of no pod, no Service and not of WireGuard.
    pub fn other_ranges(&self) -> &'static str {
        match self {
            Self::Typed { .. } => "additionalCIDRs",
            Self::Flat { .. } => "allowedNetworks",
        }
    }

    /// Returns the ranges in which only the cluster itself has addresses: those of pods, services and WireGuard. Clusters may
    /// share the others. The ranges of a flat list do not show what they are for.
    pub fn exclusive(&self) -> Vec<&Range> {
        match self {
            Self::Typed { pods, wireguard, services, .. } => {
                pods.iter().chain([wireguard]).chain(services).collect()
            }
            Self::Flat { .. } => Vec::new(),
        }
    }
}

impl Networks {
    /// Returns whether an address is in a range that the whole cluster shares, as cluster IPs are.
    pub(super) fn has_common(&self, address: IpAddr) -> bool {
        let (services, others) = match self {
            Self::Typed { services, additional, .. } => (services.as_ref(), additional),
            Self::Flat { allowed } => (None, allowed),
        };
        let mut common = services.into_iter().chain(others);
        common.any(|it| it.cidr.contains(Cidr::host(address)))
    }

    /// Returns the finding about a cluster IP that is in none.
    /// It does not name the cluster IP, so that it is one finding for all in which the range is wrong.
    pub(super) fn not_common(&self, place: Place) -> Finding {
        let (outside_of, help) = match self {
            Self::Typed { services: Some(range), .. } => (
                format!("`serviceCIDR` ({})", range.cidr),
                "write the cluster IP that `kubectl get service` prints, or correct `serviceCIDR`"
                    .to_owned(),
            ),
            Self::Typed { .. } => (
                "all ranges of the cluster".to_owned(),
                "write the Service range of the cluster in `serviceCIDR`".to_owned(),
            ),
            Self::Flat { .. } => (
                "`allowedNetworks`".to_owned(),
                "add the Service range of the cluster to `allowedNetworks`".to_owned(),
            ),
        };
        let message = format!("the cluster IP is outside of {outside_of}");
        Finding::new(&mistake::INVALID_VALUE, message).at(place, "").help(help)
    }
}

/// Returns the networks of an entry, and reports mistakes in them.
pub(super) fn declared(
    cluster: &RawCluster,
    place: &Place,
    findings: &mut Mistakes,
) -> DeclaredNetworks {
    let wrong = wrong_form(cluster, place);
    let is_mixed = wrong.as_ref().is_some_and(|it| it.rule == &mistake::CONTRADICTING_FIELDS);
    findings.extend(wrong);
    let list = |field: &str, texts: &Option<Vec<String>>, findings: &mut Mistakes| {
        list(texts.iter().flatten(), &place.key(field), findings, range)
    };
    let one = |field: &str, text: &Option<String>, findings: &mut Mistakes| -> Ranges {
        // The operator writes `serviceCIDR: ""` for a cluster without one.
        let text = text.iter().filter(|text| !text.is_empty());
        text.map(|text| range(text, place.key(field), findings)).collect()
    };
    let pods = list("podCIDRs", &cluster.pod_cidrs, findings);
    let wireguard = one("wireguardCIDR", &cluster.wireguard_cidr, findings);
    let services = one("serviceCIDR", &cluster.service_cidr, findings);
    let additional = list("additionalCIDRs", &cluster.additional_cidrs, findings);
    let allowed = list("allowedNetworks", &cluster.allowed_networks, findings);
    let all = [&allowed, &pods, &wireguard, &services, &additional];
    // Only a person knows the right one of two forms.
    let meant = all.into_iter().skip(usize::from(is_mixed));
    DeclaredNetworks {
        ranges: meant.flatten().flatten().cloned().collect(),
        networks: if is_mixed {
            None
        } else if cluster.allowed_networks.is_some() {
            flat(allowed)
        } else {
            typed(pods, wireguard, services, additional)
        },
    }
}

fn flat(allowed: Ranges) -> Option<Networks> {
    Some(Networks::Flat { allowed: allowed.into_iter().collect::<Option<_>>()? })
}

fn typed(
    pods: Ranges,
    wireguard: Ranges,
    services: Ranges,
    additional: Ranges,
) -> Option<Networks> {
    Some(Networks::Typed {
        pods: pods.into_iter().collect::<Option<_>>()?,
        wireguard: wireguard.into_iter().next()??,
        services: services.into_iter().next().map_or(Some(None), |range| range.map(Some))?,
        additional: additional.into_iter().collect::<Option<_>>()?,
    })
}

/// Reports an entry that does not have the fields of exactly one form.
fn wrong_form(cluster: &RawCluster, place: &Place) -> Option<Finding> {
    let filled = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let listed = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let fields = [
        ("podCIDRs", listed(&cluster.pod_cidrs)),
        ("wireguardCIDR", filled(&cluster.wireguard_cidr)),
        ("serviceCIDR", filled(&cluster.service_cidr)),
        ("additionalCIDRs", listed(&cluster.additional_cidrs)),
    ];
    let typed = fields.iter().find(|(_, there)| *there);
    let name = Quoted(&cluster.name);
    match (typed, listed(&cluster.allowed_networks)) {
        (Some((field, _)), true) => Some(mixed(&name, field, place)),
        (None, true) => None,
        (None, false) => {
            let message = format!("{name} declares no networks");
            let help = "add `podCIDRs` and `wireguardCIDR`, or `allowedNetworks`";
            Some(
                Finding::new(&mistake::MISSING_FIELD, message)
                    .at(place.clone(), "")
                    .help(help)
                    .shadow(),
            )
        }
        (Some(_), false) => {
            let required = fields.iter().take(2).filter(|(_, there)| !there);
            let missing: Vec<&str> = required.map(|(field, _)| *field).collect();
            let first = missing.first()?;
            let what = missing.join("` and no `");
            let message = format!("{name} has ranges but no `{what}`");
            let lines = missing.iter().map(|it| match *it {
                "podCIDRs" => "`podCIDRs`: the `--cluster-cidr` of the controller manager",
                _ => "`wireguardCIDR`: the `--subnet` of Kilo, by default 10.4.0.0/16",
            });
            let help = format!("write {}", text::listed(lines));
            let finding = Finding::new(&mistake::MISSING_FIELD, message).help(help);
            Some(finding.at(place.key(first), "").shadow())
        }
    }
}

fn mixed(name: &Quoted, field: &str, place: &Place) -> Finding {
    let message = format!("{name} has both `{field}` and `allowedNetworks`");
    Finding::new(&mistake::CONTRADICTING_FIELDS, message)
        .at(place.key("allowedNetworks").named(), "")
        .at(place.key(field).named(), "")
        .help("use either `allowedNetworks` or the fields that end in `CIDR` or `CIDRs`")
}

/// Reads each text of the list at `place` with `read`, which is [`range`], [`any_range`] or a
/// stricter one.
pub(super) fn list<'t>(
    texts: impl IntoIterator<Item = &'t String>,
    place: &Place,
    findings: &mut Mistakes,
    mut read: impl FnMut(&str, Place, &mut Mistakes) -> Option<Range>,
) -> Ranges {
    texts
        .into_iter()
        .enumerate()
        .map(|(index, text)| read(text, place.index(index), findings))
        .collect()
}

/// Returns the ranges that a cluster accepts from others, or reports what is wrong with them. That there is at
/// least one is a matter of structure.
pub fn accepted(texts: &[String], place: &Place, findings: &mut Mistakes) -> Option<Vec<Range>> {
    let ranges = list(texts, place, findings, any_range);
    ranges.into_iter().collect()
}

/// Returns the networks that no Peer may take over, or reports what is wrong with them.
pub fn local_networks(
    texts: &[String],
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<Range>> {
    let ranges = list(texts, place, findings, range);
    ranges.into_iter().collect()
}

/// Returns a range that a cluster can call its own.
pub(super) fn range(text: &str, place: Place, findings: &mut Mistakes) -> Option<Range> {
    let interface = interface(text, &place, findings)?;
    let cidr = interface.network;
    if cidr.prefix_length() == 0 {
        let family = cidr.family();
        let message = format!("{} contains every {family} address", Quoted(text));
        findings.push(
            Finding::new(&mistake::INVALID_RANGE, message)
                .at(place, "")
                .help("write only the ranges that are used, such as `10.42.0.0/16`, or `10.200.0.5/32` for one machine"),
        );
        return None;
    }
    Some(masked(text, interface, place, findings))
}

/// Returns a range of any addresses, or of all addresses.
pub(super) fn any_range(text: &str, place: Place, findings: &mut Mistakes) -> Option<Range> {
    let interface = interface(text, &place, findings)?;
    Some(masked(text, interface, place, findings))
}

fn interface(text: &str, place: &Place, findings: &mut Mistakes) -> Option<Interface> {
    let parsed = text.parse();
    parsed
        .map_err(|error: CidrError| {
            let several = text.split([',', ' ']).filter(|it| !it.is_empty()).count();
            let slip = Slip::find::<Interface>(text);
            let (reason, help) = if let Some(Slip { problem, help }) = slip {
                (format!("invalid range: {} {problem}", Quoted(text)), help)
            } else if 1 < several && text.contains('/') {
                let last = place.pointer.steps().last();
                let is_item = last.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
                let item = "write each range as an item of its own";
                let help = if is_item { item } else { "write only one of them" };
                (format!("one range is expected here, not {several}"), help.to_owned())
            } else {
                let help = "write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`";
                (escaped(&format!("invalid range: {error}"), 240), help.to_owned())
            };
            let finding = Finding::new(&mistake::INVALID_RANGE, reason).at(place.clone(), "");
            findings.push(finding.help(help));
        })
        .ok()
}

/// Drops host bits, and reports it.
fn masked(text: &str, interface: Interface, place: Place, findings: &mut Mistakes) -> Range {
    let cidr = interface.network;
    if !interface.is_network() {
        let message = format!("{} has host bits set; clustermesh reads it as {cidr}", Quoted(text));
        let finding = Finding::new(&mistake::HOST_BITS, message).at(place.clone(), "");
        findings.push(finding.corrected(&cidr.to_string(), format!("write `{cidr}`")));
    }
    Range { cidr, place }
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::{mesh, report};

    #[test]
    fn an_entry_has_exactly_one_form() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - { name: a }
    - { name: b, podCIDRs: [10.0.0.0/16] }
    - { name: c, serviceCIDR: 10.1.0.0/16 }
    - { name: d, allowedNetworks: [10.2.0.0/16], wireguardCIDR: 10.3.0.0/24 }
    - { name: e, allowedNetworks: [10.4.0.0/16], serviceCIDR: '', additionalCIDRs: [] }
"), @"
        error[missing-field]: `a` declares no networks
          7:7 | { name: a }
          help: add `podCIDRs` and `wireguardCIDR`, or `allowedNetworks`
        error[missing-field]: `b` has ranges but no `wireguardCIDR`
          8:7 | { name: b, podCIDRs: [10.0.0.0/16] }
          help: write `wireguardCIDR`: the `--subnet` of Kilo, by default 10.4.0.0/16
        error[missing-field]: `c` has ranges but no `podCIDRs` and no `wireguardCIDR`
          9:7 | { name: c, serviceCIDR: 10.1.0.0/16 }
          help: write `podCIDRs`: the `--cluster-cidr` of the controller manager, `wireguardCIDR`: the `--subnet` of Kilo, by default 10.4.0.0/16
        error[contradicting-fields]: `d` has both `wireguardCIDR` and `allowedNetworks`
          10:18 | allowedNetworks
          10:50 | wireguardCIDR
          help: use either `allowedNetworks` or the fields that end in `CIDR` or `CIDRs`
        ");
    }

    #[test]
    fn accepted_networks_may_be_everything() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - { name: a, allowedNetworks: [10.1.0.0/16], acceptedNetworks: [0.0.0.0/0, '::/0', 10.2.0.1/16] }
    - { name: b, allowedNetworks: [10.2.0.0/16], acceptedNetworks: [10.0.0.0] }
    - { name: c, allowedNetworks: [10.3.0.0/16], acceptedNetworks: [] }
    - { name: d, allowedNetworks: [10.4.0.0/16], acceptedNetworks: null }
"), @"
error[invalid-value]: `acceptedNetworks` needs at least 1 item, not 0
  9:68 | []
error[missing-field]: `acceptedNetworks` is empty
  10:50 | acceptedNetworks
  help: write a value, or remove the line
warning[host-bits]: `10.2.0.1/16` has host bits set; clustermesh reads it as 10.2.0.0/16
  7:88 | 10.2.0.1/16
  help: write `10.2.0.0/16`
error[invalid-range]: invalid range: `10.0.0.0` has no prefix length such as `/16`
  8:69 | 10.0.0.0
  help: write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`
");
    }

    #[test]
    fn local_networks_are_ranges_like_any_other() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - { name: a, allowedNetworks: [10.1.0.0/16], localNetworks: [192.168.1.0/24, 'fd00::/64'] }
    - { name: b, allowedNetworks: [10.2.0.0/16], localNetworks: [192.168.1.9/24] }
    - { name: c, allowedNetworks: [10.3.0.0/16], localNetworks: [192.168.1.9] }
    - { name: d, allowedNetworks: [10.4.0.0/16], localNetworks: [0.0.0.0/0] }
    - { name: e, allowedNetworks: [10.5.0.0/16], localNetworks: [] }
"), @"
error[invalid-value]: `localNetworks` needs at least 1 item, not 0
  11:65 | []
warning[host-bits]: `192.168.1.9/24` has host bits set; clustermesh reads it as 192.168.1.0/24
  8:66 | 192.168.1.9/24
  help: write `192.168.1.0/24`
error[invalid-range]: invalid range: `192.168.1.9` has no prefix length such as `/16`
  9:66 | 192.168.1.9
  help: write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`
error[invalid-range]: `0.0.0.0/0` contains every IPv4 address
  10:66 | 0.0.0.0/0
  help: write only the ranges that are used, such as `10.42.0.0/16`, or `10.200.0.5/32` for one machine
");
    }

    #[test]
    fn ranges_are_ranges() {
        let ranges = [
            "a: 10.0.0.0",
            "b: 010.1.0.0/16",
            "c: 10.2.0.0/33",
            "d: '::ffff:10.3.0.0/112'",
            "e: ' 10.4.0.0/16'",
            "f: \"\\e[31m\"",
            "g: 10.5.0.9/16",
            "h: fd00::1/64",
            "i: 10.0.0.0/0",
            "j: '::/0'",
        ];
        insta::assert_snapshot!(report(&mesh("m", &ranges)), @r#"
        error[invalid-range]: invalid range: `10.0.0.0` has no prefix length such as `/16`
          6:36 | 10.0.0.0
          help: write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`
        error[invalid-range]: invalid range: `010.1.0.0/16` has a leading zero
          7:36 | 010.1.0.0/16
          help: write `10.1.0.0/16`
        error[invalid-range]: invalid range: `33` is not a prefix length from 0 to 32
          8:36 | 10.2.0.0/33
          help: write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`
        error[invalid-range]: invalid range: `::ffff:10.3.0.0/112` is an IPv4-mapped IPv6 range; write it as IPv4
          9:36 | '::ffff:10.3.0.0/112'
          help: write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`
        error[invalid-range]: invalid range: ` 10.4.0.0/16` contains a space
          10:36 | ' 10.4.0.0/16'
          help: write `10.4.0.0/16`
        error[invalid-range]: invalid range: `\u{1b}[31m` has no prefix length such as `/16`
          11:36 | "\e[31m"
          help: write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`
        warning[host-bits]: `10.5.0.9/16` has host bits set; clustermesh reads it as 10.5.0.0/16
          12:36 | 10.5.0.9/16
          help: write `10.5.0.0/16`
        warning[host-bits]: `fd00::1/64` has host bits set; clustermesh reads it as fd00::/64
          13:36 | fd00::1/64
          help: write `fd00::/64`
        error[invalid-range]: `10.0.0.0/0` contains every IPv4 address
          14:36 | 10.0.0.0/0
          help: write only the ranges that are used, such as `10.42.0.0/16`, or `10.200.0.5/32` for one machine
        error[invalid-range]: `::/0` contains every IPv6 address
          15:36 | '::/0'
          help: write only the ranges that are used, such as `10.42.0.0/16`, or `10.200.0.5/32` for one machine
        "#);
    }
}
