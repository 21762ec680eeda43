//! Underlays: the networks under the tunnels, which people name because no snapshot shows them.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::name::{ClusterName, NameError};
use crate::place::Place;

use super::Range;
use super::mistakes::{REMOVE_ONE, name_or_finding};
use super::networks::{list, range};
use super::raw::RawUnderlay;

/// A network that connects nodes of several clusters, as one of them knows it. Clusters whose entries have the same
/// name for it are in it; the ranges may differ, as those of two peered VPCs do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Underlay {
    /// The name that entries have in common: a DNS-1123 label.
    pub name: String,
    /// The addresses of the cluster's nodes in it.
    pub cidrs: Vec<Range>,
}

impl Display for Underlay {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ranges = self.cidrs.iter().map(|it| it.cidr.to_string());
        write!(f, "{}: {}", self.name, ranges.collect::<Vec<_>>().join(", "))
    }
}

impl Underlay {
    /// Returns whether an address is one of the cluster's in this network.
    pub fn holds(&self, address: IpAddr) -> bool {
        self.cidrs.iter().any(|it| it.cidr.holds(address))
    }
}

/// Returns the networks of an entry, or reports what is wrong with them.
pub(super) fn underlays(
    written: Option<&[RawUnderlay]>,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<Underlay>> {
    let mut named: BTreeMap<&str, Place> = BTreeMap::new();
    let mut underlays = Vec::new();
    for (index, written) in written.unwrap_or_default().iter().enumerate() {
        let own = place.index(index).key("name");
        if let Some(first) = named.get(&*written.name) {
            let message = format!("duplicate underlay {}", Quoted(&written.name));
            let finding = Finding::new(&mistake::DUPLICATE_NAME, message);
            findings.push(finding.at_both(own.clone(), first.clone()).help(REMOVE_ONE));
        }
        let parsed: Result<ClusterName, NameError> = written.name.parse();
        let name = name_or_finding("underlay", &written.name, parsed, &own, findings);
        let is_new = named.insert(&written.name, own).is_none();
        let cidrs = list(&written.cidrs, &place.key("cidrs"), findings, range);
        let cidrs: Option<Vec<Range>> = cidrs.into_iter().collect();
        underlays.push(
            name.zip(cidrs)
                .filter(|_| is_new)
                .map(|(name, cidrs)| Underlay { name: name.to_string(), cidrs }),
        );
    }
    underlays.into_iter().collect()
}
