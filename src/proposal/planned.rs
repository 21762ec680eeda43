//! Planned clusters: free ranges for clusters that do not exist yet, and the settings that give them to a cluster.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::str::FromStr;

use super::ExistingMesh;
use crate::name::ClusterName;
use crate::net::{Cidr, merged};
use crate::yaml::scalar;

/// The range in which free ranges are looked for, without its lowest part, which many networks of nodes have.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 16, 0, 0);

/// The last address of that range.
const LAST: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 255);

/// The defaults of distributions, which clusters of no mesh have: `10.42.0.0/15` of k3s, `10.96.0.0/12` and
/// `10.244.0.0/16` of kubeadm, Talos and Cozystack.
const DEFAULTS: [(Ipv4Addr, u8); 3] = [
    (Ipv4Addr::new(10, 42, 0, 0), 15),
    (Ipv4Addr::new(10, 96, 0, 0), 12),
    (Ipv4Addr::new(10, 244, 0, 0), 16),
];

/// The prefix lengths of the ranges of a planned cluster.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RangeSizes {
    /// Of the pods.
    pub pods: u8,
    /// Of the Services.
    pub services: u8,
    /// Of the WireGuard addresses.
    pub wireguard: u8,
}

/// A cluster that does not exist yet, with ranges that nothing else uses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlannedCluster {
    name: ClusterName,
    pods: Cidr,
    services: Cidr,
    wireguard: Cidr,
    is_flat: bool,
}

impl FromStr for RangeSizes {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lengths =
            text.split(',').map(|it| it.trim().trim_start_matches('/').parse::<u8>().ok());
        let [Some(pods), Some(services), Some(wireguard)] = *lengths.collect::<Vec<_>>() else {
            return Err("expected three prefix lengths, such as 16,16,24");
        };
        // A node has a /24 of the pod range, and the API server takes no wider range of Services.
        let limits = [(pods, 12..=24), (services, 12..=28), (wireguard, 12..=28)];
        if limits.iter().all(|(length, limit)| limit.contains(length)) {
            Ok(Self { pods, services, wireguard })
        } else {
            Err("pods need a prefix length from 12 to 24, Services and WireGuard from 12 to 28")
        }
    }
}

/// Chooses ranges for clusters in this order; the same input has the same ranges.
///
/// # Errors
/// The first cluster for which no range is free.
pub fn plan(
    names: &[ClusterName],
    sizes: RangeSizes,
    existing: &ExistingMesh,
) -> Result<Vec<PlannedCluster>, ClusterName> {
    let defaults = DEFAULTS.iter().filter_map(|it| Cidr::host(it.0.into()).widened(it.1));
    let declared = existing.uses.iter().map(|it| it.cidr);
    let mut used = merged(declared.chain(existing.avoided.iter().copied()).chain(defaults));
    let mut take = |length: u8| {
        let free = free(length, &used)?;
        used.push(free);
        Some(free)
    };
    let mut planned = Vec::new();
    for name in names {
        let ranges = (take(sizes.pods), take(sizes.services), take(sizes.wireguard));
        let (Some(pods), Some(services), Some(wireguard)) = ranges else {
            return Err(name.clone());
        };
        let (name, is_flat) = (name.clone(), existing.is_flat);
        planned.push(PlannedCluster { name, pods, services, wireguard, is_flat });
    }
    Ok(planned)
}

/// Returns the lowest range of this prefix length that shares no address with others.
fn free(length: u8, used: &[Cidr]) -> Option<Cidr> {
    let mut start = FIRST;
    while start <= LAST {
        let around = Cidr::host(start.into()).widened(length)?;
        let taken = used.iter().filter(|it| it.overlaps(around)).map(|it| it.last());
        let last = match taken.max() {
            _ if around.first() < start => around.last(),
            Some(last) => last.max(around.last()),
            None => return Some(around),
        };
        let std::net::IpAddr::V4(last) = last else {
            return None;
        };
        start = last.to_bits().checked_add(1)?.into();
    }
    None
}

impl PlannedCluster {
    /// Returns its entry, and the settings of each distribution that give it these ranges.
    pub fn to_text(&self) -> String {
        let Self { name, pods, services, wireguard, .. } = self;
        let named = scalar(name.as_str());
        let mut text =
            format!("# {name}: the entry in spec.clusters of the mesh\n    - name: {named}\n");
        text.push_str("      state: Joining\n");
        if self.is_flat {
            let _ = writeln!(text, "      allowedNetworks: [{pods}, {services}, {wireguard}]");
        } else {
            let _ = write!(
                text,
                "      podCIDRs: [{pods}]\n      serviceCIDR: {services}\n      wireguardCIDR: {wireguard}\n"
            );
        }
        let address = |range: &Cidr, offset| range.address(offset).unwrap_or(range.first());
        let (dns, gateway) = (address(services, 10), address(pods, 1));
        let _ = write!(
            text,
            "
# {name}: Kilo
--subnet={wireguard}

# {name}: k3s, /etc/rancher/k3s/config.yaml of each server, before the first start
cluster-cidr: {pods}
service-cidr: {services}
cluster-dns: {dns}

# {name}: kubeadm, in the ClusterConfiguration
networking:
  podSubnet: {pods}
  serviceSubnet: {services}

# {name}: Talos, in the configuration of each machine
cluster:
  network:
    podSubnets: [{pods}]
    serviceSubnets: [{services}]

# {name}: Cozystack 1, in spec.components.platform.values of the Package, beside the settings of Talos
networking:
  podCIDR: {pods}
  podGateway: {gateway}
  serviceCIDR: {services}
"
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_range_is_aligned_and_free() {
        let cidr = |text: &str| text.parse::<Cidr>().unwrap();
        let used = ["10.16.3.0/24", "10.17.0.0/16", "10.18.0.1/32"].map(cidr);
        let found = [12, 16, 24, 28].map(|it| free(it, &used).unwrap().to_string());
        assert_eq!(found, ["10.32.0.0/12", "10.19.0.0/16", "10.16.0.0/24", "10.16.0.0/28"]);
        assert_eq!(free(16, &[cidr("10.0.0.0/8")]), None);
        assert_eq!(free(16, &[cidr("0.0.0.0/0")]), None);
    }

    #[test]
    fn sizes_have_limits() {
        let sizes = |text: &str| text.parse::<RangeSizes>();
        let expected = RangeSizes { pods: 16, services: 20, wireguard: 24 };
        assert_eq!(sizes("16,/20, 24"), Ok(expected));
        for wrong in ["16", "16,16", "16,16,16,16", "25,16,16", "16,11,16", "16,16,29", "a,b,c"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }
}
