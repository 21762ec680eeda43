//! The DNS service of a cluster, which other clusters ask for the names of its Services.

use std::fmt;
use std::net::IpAddr;

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::name::is_dns_subdomain;
use crate::place::Place;

use super::mistakes::invalid_address;
use super::networks::DeclaredNetworks;
use super::raw::RawDns;

/// The domain of a cluster in which nothing else is configured.
pub(super) const DEFAULT_DOMAIN: &str = "cluster.local";

/// The DNS service of a cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClusterDns {
    /// The cluster IP of the Service.
    pub service: IpAddr,
    /// The domain of the cluster: a lowercase DNS name.
    pub domain: String,
}

/// Returns the DNS service of an entry, or reports mistakes in it.
#[expect(clippy::option_option, reason = "a field, and whether it is right")]
pub(super) fn dns(
    written: Option<RawDns>,
    declared: &DeclaredNetworks,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Option<ClusterDns>> {
    let Some(RawDns { service, domain }) = written else {
        return Some(None);
    };
    let domain = domain.unwrap_or_else(|| DEFAULT_DOMAIN.to_owned());
    let is_domain = is_dns_subdomain(&domain);
    if !is_domain {
        let message = format!("{} is not a lowercase DNS name", Quoted(&domain));
        let finding = Finding::new(&mistake::INVALID_VALUE, message).at(place.key("domain"), "");
        findings.push(
            finding.help("write the `clusterDomain` of the kubelets, such as `cluster.local`"),
        );
    }
    let place = place.key("service");
    let Ok(address) = service.parse::<IpAddr>() else {
        let help = "write the cluster IP that `kubectl -n kube-system get service kube-dns` prints";
        findings.push(invalid_address(&service, place, help));
        return None;
    };
    let address = address.to_canonical();
    // Mistakes in the ranges are reported already.
    if let Some(networks) = &declared.networks
        && !networks.has_common(address)
    {
        findings.push(networks.not_common(place));
        return None;
    }
    is_domain.then_some(Some(ClusterDns { service: address, domain }))
}

impl fmt::Display for ClusterDns {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{} ({})", self.service, self.domain)
    }
}
