//! Mirrored Services: Services of one cluster that other clusters get as Services of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU16;

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::document::nearest;
use crate::name::{ClusterName, Namespace, ServiceName, is_dns_label, is_label_key};
use crate::net;
use crate::place::Place;
use crate::port::{Protocol, ServicePort};
use crate::text::listed;

use super::entry::Draft;
use super::external::{Drafts, clusters};
use super::mistakes::{REMOVE_ONE, invalid_address, name_or_finding};
use super::raw::{RawService, RawServicePort};
use super::{Mesh, Networks, Topology, unknown_cluster};

/// A Service of one cluster that others get.
#[derive(Clone, Debug)]
pub struct MirroredService {
    /// The cluster that has it.
    pub source: ClusterName,
    /// Its name there.
    pub name: ServiceName,
    /// Its cluster IPs, at most one of each family.
    pub addresses: Vec<IpAddr>,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// The clusters that get it.
    pub targets: BTreeSet<ClusterName>,
    /// Its name in these.
    pub local: ServiceName,
    /// The item.
    pub place: Place,
}

impl Mesh {
    /// Returns the Services of a cluster that this mesh is about: those that it has, and those that it gets.
    pub fn services_of(&self, cluster: &ClusterName) -> impl Iterator<Item = &ServiceName> {
        self.services.iter().flat_map(move |it| {
            let own = (it.source == *cluster).then_some(&it.name);
            let mirror = it.targets.contains(cluster).then_some(&it.local);
            own.into_iter().chain(mirror)
        })
    }
}

/// Returns the Services that clusters mirror, or reports what is wrong with them.
pub(super) fn services(
    written: &[RawService],
    drafts: &[Draft],
    topology: Option<&Topology>,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<MirroredService>> {
    let drafts: Drafts = drafts.iter().map(|it| (&*it.text, it)).collect();
    let services: Vec<Option<MirroredService>> = (0..)
        .zip(written)
        .map(|(index, written)| {
            ServiceGate { drafts: &drafts, topology, place: place.index(index) }
                .service(written, findings)
        })
        .collect();
    services.into_iter().collect()
}

/// The check of one item.
struct ServiceGate<'g> {
    drafts: &'g Drafts<'g>,
    topology: Option<&'g Topology>,
    place: Place,
}

impl ServiceGate<'_> {
    fn service(&self, written: &RawService, findings: &mut Mistakes) -> Option<MirroredService> {
        let source = self.source(&written.cluster, findings);
        let name = service_name([&written.namespace, &written.name], &self.place, findings);
        let local = match &written.r#as {
            Some(it) => {
                let namespace = it.namespace.as_ref().unwrap_or(&written.namespace);
                let name = it.name.as_ref().unwrap_or(&written.name);
                service_name([namespace, name], &self.place.key("as"), findings)
            }
            None => name.clone(),
        };
        let addresses = self.addresses(&written.cluster_ips, source, findings);
        let ports = ports(&written.ports, &self.place.key("ports"), findings);
        let place = self.place.key("in");
        let targets = clusters(&written.r#in, self.drafts, &place, findings);
        let (source, local, targets) = (source?.name.clone()?, local?, targets?);
        let before = findings.len();
        for (index, text) in written.r#in.iter().enumerate() {
            // With wrong addresses, another cluster may be meant as the source.
            let target = self.drafts.get(&**text);
            let target =
                target.filter(|it| addresses.is_some() || it.name.as_ref() != Some(&source));
            let refusal = target.and_then(|it| self.refusal(&source, it, &local));
            findings.extend(refusal.map(|it| it.at(place.index(index), "")));
        }
        (findings.len() == before).then_some(MirroredService {
            source,
            name: name?,
            addresses: addresses?,
            ports: ports?,
            targets,
            local,
            place: self.place.clone(),
        })
    }

    fn source(&self, text: &str, findings: &mut Mistakes) -> Option<&Draft> {
        let draft = self.drafts.get(text).copied();
        if draft.is_none() {
            let (place, known) = (self.place.key("cluster"), self.drafts.keys().copied());
            findings.push_with(&mistake::UNKNOWN_CLUSTER, || {
                unknown_cluster(text, place, known, "this mesh has no cluster")
            });
        }
        draft
    }

    /// Returns the cluster IPs of the Service, which only the whole cluster has.
    fn addresses(
        &self,
        written: &[String],
        source: Option<&Draft>,
        findings: &mut Mistakes,
    ) -> Option<Vec<IpAddr>> {
        let place = self.place.key("clusterIPs");
        let mut addresses: Vec<IpAddr> = Vec::new();
        let before = findings.len();
        for (index, text) in written.iter().enumerate() {
            let Ok(address) = text.parse::<IpAddr>() else {
                let help = "write a cluster IP that `kubectl get service` prints; a headless Service has none, and cannot be mirrored";
                findings.push(invalid_address(text, place.index(index), help));
                continue;
            };
            let address = address.to_canonical();
            let family = net::family(address);
            if addresses.iter().any(|it| net::family(*it) == family) {
                let message = format!("a second {family} address");
                let finding = Finding::new(&mistake::DUPLICATE_ITEM, message);
                findings.push(finding.at(place.index(index), "").help("write one of each family"));
            }
            // Mistakes in the ranges are reported already.
            let networks = source.and_then(|it| it.declared.networks.as_ref());
            if let Some(networks) = networks
                && !networks.has_common(address)
            {
                let place = place.index(index);
                let owner = self.owner(address);
                findings.push(match owner {
                    Some(owner) => self.of_other(source, owner, place),
                    None => networks.not_common(place),
                });
            }
            addresses.push(address);
        }
        (findings.len() == before).then_some(addresses)
    }

    /// Returns the cluster that declares an address as one of a Service.
    fn owner(&self, address: IpAddr) -> Option<&Draft> {
        let has = |it: &&&Draft| match &it.declared.networks {
            Some(Networks::Typed { services, .. }) => {
                services.iter().any(|it| it.cidr.holds(address))
            }
            Some(Networks::Flat { .. }) | None => false,
        };
        self.drafts.values().find(has).copied()
    }

    /// Reports a cluster IP of another cluster than the one that is named.
    fn of_other(&self, source: Option<&Draft>, owner: &Draft, place: Place) -> Finding {
        let [named, owner] = [source.map_or("", |it| &*it.text), &*owner.text];
        let message = format!("the cluster IP is in `serviceCIDR` of `{owner}`, not of `{named}`");
        let finding = Finding::new(&mistake::INVALID_VALUE, message);
        let finding = finding.at(self.place.key("cluster"), "").at(place, "the cluster IP");
        finding.corrected(
            owner,
            format!("write `cluster: {owner}`, or the cluster IP of a Service of `{named}`"),
        )
    }

    /// Returns why a cluster does not get the Service.
    fn refusal(
        &self,
        source: &ClusterName,
        target: &Draft,
        local: &ServiceName,
    ) -> Option<Finding> {
        let name = target.name.as_ref()?;
        let (message, help) = if name == source {
            let message = format!("`{name}` has the Service itself");
            (message, format!("write into `in` only the clusters that should get it from `{name}`"))
        } else if self.topology.is_some_and(|it| !it.links(source, name)) {
            let message = format!("`{name}` is not linked to `{source}`");
            (message, format!("link them in `topology`, or remove `{name}`"))
        } else if local.is_of_api_server() {
            let message = format!("`{local}` of `{name}` is its own API server");
            (message, "give it another name: `as: {name: …}`".to_owned())
        } else if !target.accepted_services.as_ref()?.contains(&local.namespace) {
            let namespace = &local.namespace;
            let message =
                format!("`acceptedServices` of `{name}` does not have the namespace `{namespace}`");
            let accepted = target.accepted_services.iter().flatten().map(Namespace::as_str);
            let help = match nearest(namespace.as_str(), accepted) {
                Some(meant) => format!(
                    "did you mean `{meant}`? Otherwise, add `{namespace}` to `acceptedServices` of `{name}`"
                ),
                None if target.accepted_services.iter().all(BTreeSet::is_empty) => {
                    format!("add `{namespace}` to `acceptedServices` of `{name}`")
                }
                None => format!(
                    "write a namespace that `{name}` accepts ({}), or add `{namespace}` to its `acceptedServices`",
                    listed(target.accepted_services.iter().flatten().map(|it| format!("`{it}`")))
                ),
            };
            (message, help)
        } else {
            return None;
        };
        Some(Finding::new(&mistake::CONTRADICTING_FIELDS, message).help(help))
    }
}

/// Returns a name, given with its namespace.
fn service_name(
    [namespace, name]: [&str; 2],
    place: &Place,
    findings: &mut Mistakes,
) -> Option<ServiceName> {
    let own = place.key("namespace");
    let namespace = name_or_finding("namespace", namespace, namespace.parse(), &own, findings);
    let of = |namespace| ServiceName::new(namespace, name);
    name_or_finding("Service", name, of(namespace?), &place.key("name"), findings)
}

/// Returns the ports of a Service, or reports what Kubernetes would refuse.
fn ports(
    written: &[RawServicePort],
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<ServicePort>> {
    let (mut names, mut numbers) = (BTreeMap::new(), BTreeMap::new());
    let before = findings.len();
    let mut ports = Vec::new();
    for (index, port) in written.iter().enumerate() {
        let place = place.index(index);
        let name = port.name.clone().unwrap_or_default();
        let protocol = port.protocol.unwrap_or(Protocol::Tcp);
        let wrong = |rule, field: &str, message: String, help: &str| {
            Finding::new(rule, message).at(place.key(field), "").help(help)
        };
        let duplicate = |field: &str, what: String, first: Place, help: &str| {
            let finding = Finding::new(&mistake::DUPLICATE_ITEM, format!("duplicate {what}"));
            finding.at_both(place.key(field), first).help(help)
        };
        let of_the_service = "write the `name` that the Service has";
        if port.name.is_none() && 1 < written.len() {
            let message = "a Service with several ports needs a name for each".to_owned();
            findings.push(wrong(&mistake::MISSING_FIELD, "name", message, of_the_service));
        } else if port.name.is_some() && !is_dns_label(&name) {
            let message = format!("{} is not a DNS-1123 label", Quoted(&name));
            findings.push(wrong(&mistake::INVALID_VALUE, "name", message, of_the_service));
        } else if let Some(first) = names.insert(name.clone(), place.key("name")) {
            let help = "give each port a name of its own, or remove one of the two";
            findings.push(duplicate("name", format!("port name {}", Quoted(&name)), first, help));
        } else if let Some(first) = numbers.insert((port.port, protocol), place.key("port")) {
            findings.push(duplicate("port", format!("port {}", port.port), first, REMOVE_ONE));
        }
        if let Some(application) = port.app_protocol.as_ref().filter(|it| !is_label_key(it)) {
            let message = format!("{} is not an application protocol", Quoted(application));
            let help = "write a name such as `http` or `kubernetes.io/h2c`";
            findings.push(wrong(&mistake::INVALID_VALUE, "appProtocol", message, help));
        }
        // The schema keeps zero out.
        ports.extend(NonZeroU16::new(port.port).map(|number| ServicePort {
            app_protocol: port.app_protocol.clone(),
            name,
            port: number,
            protocol,
        }));
    }
    (findings.len() == before).then_some(ports)
}

#[cfg(test)]
mod tests;
