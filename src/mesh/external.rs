//! External peers: laptops, routers and other hosts that belong to no cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::granularity::Granularity;
use crate::name::ClusterName;
use crate::net::{Cidr, Interface};
use crate::place::Place;
use crate::selector::Selector;
use crate::wireguard::{Endpoint, Host, Keepalive, PublicKey};

use super::defaults::Inherited;
use super::entry::Draft;
use super::mistakes::{REMOVE_ONE, name_or_finding};
use super::networks::{list, range};
use super::raw::RawExternalPeer;
use super::underlay::underlays;
use super::{
    Advertise, DEFAULT_PORT, DEFAULT_TOPOLOGY_LABEL, EndpointSource, Entry, Mtu, Networks,
    PodRanges, Range, State, WireguardAddresses, fields, unknown_cluster,
};

/// The seconds between keepalives of a host that clusters cannot dial.
const DEFAULT_KEEPALIVE: u16 = 25;

/// A host that belongs to no cluster: a laptop, or a router with networks behind it. The clusters see it as
/// one more cluster with one node, which has all its ranges and is linked to these clusters only.
#[derive(Clone, Debug)]
pub struct ExternalPeer {
    /// Its entry in the form of a cluster's, with the name [`ClusterName::of_external`].
    pub entry: Entry,
    /// The clusters that get it as a Peer.
    pub clusters: BTreeSet<ClusterName>,
    /// Its public key.
    pub key: PublicKey,
    /// The address and port at which the clusters dial it.
    pub endpoint: Option<Endpoint>,
}

/// The entries of a mesh by the names of their clusters.
pub(super) type Drafts<'d> = BTreeMap<&'d str, &'d Draft>;

/// Returns the external peers of a mesh, or reports what is wrong with them.
pub(super) fn externals(
    written: Vec<RawExternalPeer>,
    drafts: &[Draft],
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Vec<ExternalPeer>> {
    let drafts: Drafts = drafts.iter().map(|it| (&*it.text, it)).collect();
    let mut names: BTreeMap<String, Place> = BTreeMap::new();
    let externals: Vec<Option<ExternalPeer>> = written
        .into_iter()
        .enumerate()
        .map(|(index, written)| {
            let place = place.index(index);
            let own = place.key("name");
            if let Some(first) = names.get(&written.name) {
                let message = format!("duplicate external peer {}", Quoted(&written.name));
                let finding = Finding::new(&mistake::DUPLICATE_NAME, message);
                let help =
                    "give each external peer a name of its own, or remove one of the two entries";
                findings.push(finding.at_both(own, first.clone()).help(help));
            } else {
                names.insert(written.name.clone(), own);
            }
            external(&written, &drafts, place, findings)
        })
        .collect();
    externals.into_iter().collect()
}

fn external(
    written: &RawExternalPeer,
    drafts: &Drafts,
    place: Place,
    findings: &mut Mistakes,
) -> Option<ExternalPeer> {
    let name = ClusterName::of_external(&written.name);
    let own = place.key("name");
    let name = name_or_finding("external peer", &written.name, name, &own, findings);
    let ranges = list(&written.ranges, &place.key("ranges"), findings, own_range);
    let ranges: Option<Vec<_>> = ranges.into_iter().collect();
    let clusters = clusters(&written.clusters, drafts, &place.key("clusters"), findings);
    let key = public_key(&written.public_key, place.key("publicKey"), findings);
    let endpoint = endpoint(written, drafts, &place, findings);
    let keepalive = keepalive(written, &place, findings);
    let place_of_underlays = place.key("underlays");
    let underlays = underlays(written.underlays.as_deref(), &place_of_underlays, findings);
    let endpoint = endpoint?;
    let domains = match endpoint.as_ref().map(|it| &it.host) {
        Some(Host::Dns(name)) => vec![name.clone()],
        Some(Host::Ip(_)) | None => Vec::new(),
    };
    Some(ExternalPeer {
        entry: Entry {
            name: name?,
            state: State::Joined,
            local: false,
            kubeconfig: None,
            networks: Networks::Flat { allowed: ranges? },
            port: DEFAULT_PORT,
            keepalive: keepalive?,
            selector: Selector::default(),
            granularity: Some(Granularity::Full),
            topology_label: DEFAULT_TOPOLOGY_LABEL.to_owned(),
            endpoint_from: vec![EndpointSource::Annotation],
            endpoint_domains: domains,
            accepted: None,
            accepted_by_policy: None,
            accepted_services: BTreeSet::new(),
            local_networks: Vec::new(),
            anchors: Vec::new(),
            advertise: Advertise {
                pods: PodRanges::PerNode,
                node_addresses: false,
                wireguard: WireguardAddresses::None,
            },
            dns: None,
            pod_source: None,
            mtu: Mtu::default(),
            underlays: underlays?,
            inherited: Inherited::default(),
            place,
        },
        clusters: clusters?,
        key: key?,
        endpoint,
    })
}

/// Returns the clusters of a list, or reports those that the mesh does not have.
pub(super) fn clusters(
    written: &[String],
    drafts: &Drafts,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<BTreeSet<ClusterName>> {
    let before = findings.len();
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut clusters = BTreeSet::new();
    for (index, text) in written.iter().enumerate() {
        let own = place.index(index);
        if let Some(&first) = first.get(&**text) {
            let message = format!("duplicate cluster {}", Quoted(text));
            let finding = Finding::new(&mistake::DUPLICATE_ITEM, message);
            findings.push(finding.at_both(own, place.index(first)).help(REMOVE_ONE));
            continue;
        }
        first.insert(text, index);
        if let Some(draft) = drafts.get(&**text) {
            clusters.extend(draft.name.clone());
        } else {
            findings.push_with(&mistake::UNKNOWN_CLUSTER, || {
                unknown_cluster(text, own, drafts.keys().copied(), "this mesh has no cluster")
            });
        }
    }
    (findings.len() == before).then_some(clusters)
}

/// Returns a range of an external peer. Host bits are a mistake: of a laptop, only the address is meant.
fn own_range(text: &str, place: Place, findings: &mut Mistakes) -> Option<Range> {
    if let Ok(address) = text.parse::<IpAddr>() {
        let host = Cidr::host(address).to_string();
        let message = format!("{} has no prefix length", Quoted(text));
        let finding = Finding::new(&mistake::INVALID_RANGE, message).at(place, "");
        findings.push(finding.corrected(&host, format!("write `{host}`")));
        return None;
    }
    let parsed = text.parse::<Interface>().ok();
    let Some(interface) = parsed.filter(|it| !it.is_network()) else {
        return range(text, place, findings);
    };
    let message = format!("{} has host bits", Quoted(text));
    let help = format!(
        "write `{}` for the address of the host, or `{}` for a network behind it",
        Cidr::host(interface.address),
        interface.network
    );
    findings.push(Finding::new(&mistake::INVALID_RANGE, message).at(place, "").help(help));
    None
}

fn public_key(text: &str, place: Place, findings: &mut Mistakes) -> Option<PublicKey> {
    let key = text.parse::<PublicKey>();
    key.map_err(|error| {
        let message = format!("invalid public key: {error}");
        let finding = Finding::new(&mistake::INVALID_VALUE, message).at(place, "");
        findings
            .push(finding.help("write what `wg pubkey` prints for the private key of the host"));
    })
    .ok()
}

/// Returns its endpoint, or reports why its clusters cannot dial it.
#[expect(clippy::option_option, reason = "a field, and whether it is right")]
fn endpoint(
    written: &RawExternalPeer,
    drafts: &Drafts,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Option<Endpoint>> {
    let Some(text) = &written.endpoint else {
        return Some(None);
    };
    let place = place.key("endpoint");
    let endpoint = text.parse::<Endpoint>();
    match endpoint.and_then(|it| it.check().map(|()| it)) {
        Err(error) => {
            let message = format!("invalid endpoint {}: {error}", Quoted(text));
            let finding = Finding::new(&mistake::INVALID_VALUE, message).at(place, "");
            findings.push(finding.help(
                "write `ADDRESS:PORT`; if the clusters cannot dial the host, remove `endpoint`",
            ));
            None
        }
        Ok(endpoint) => {
            let undeclared = undeclared(&endpoint, &written.clusters, drafts);
            if let Some(cluster) = undeclared {
                let message =
                    format!("{} is not under `endpointDomains` of `{cluster}`", Quoted(text));
                let finding = Finding::new(&mistake::INVALID_VALUE, message).at(place, "");
                let help = format!(
                    "write the address of the host, add its domain to `endpointDomains` of `{cluster}`, or \
                     remove `endpoint` if its address changes"
                );
                findings.push(finding.help(help));
                return None;
            }
            Some(Some(endpoint))
        }
    }
}

/// Returns the first of its clusters under whose `endpointDomains` a DNS endpoint is not.
fn undeclared<'d>(
    endpoint: &Endpoint,
    clusters: &[String],
    drafts: &Drafts<'d>,
) -> Option<&'d str> {
    let Host::Dns(name) = &endpoint.host else {
        return None;
    };
    let targets = clusters.iter().filter_map(|it| drafts.get(&**it));
    let mut undeclared = targets.filter(|it| !it.declares_domain(name));
    Some(&undeclared.next()?.text)
}

/// Returns how often clusters send to it unasked, or reports that they must.
#[expect(clippy::option_option, reason = "a field, and whether it is right")]
fn keepalive(
    written: &RawExternalPeer,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<Option<Keepalive>> {
    let is_dialled = written.endpoint.is_some();
    let default = if is_dialled { 0 } else { DEFAULT_KEEPALIVE };
    let seconds = written.persistent_keepalive.unwrap_or(default);
    if seconds == 0 && !is_dialled {
        let message = format!(
            "{} has no `endpoint`, so `persistentKeepalive` cannot be 0",
            Quoted(&written.name)
        );
        let finding = Finding::new(&mistake::CONTRADICTING_FIELDS, message);
        let finding = finding.at(place.key("persistentKeepalive"), "");
        findings.push(finding.help("remove `persistentKeepalive`; the default is 25 seconds"));
        return None;
    }
    Some(fields::keepalive(Some(seconds), place, findings))
}
