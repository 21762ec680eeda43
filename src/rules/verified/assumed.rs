//! Words for declared paths that work only under a condition that no snapshot shows.

use std::collections::BTreeSet;

use super::between;
use crate::agent::fabric::{DialPremise, Dials, Fabric, NodeRef, Site, SiteId};
use crate::agent::model::{Model, Tunnel};
use crate::agent::peers::PeerId;
use crate::diagnostic::Severity;
use crate::kilo::id::NodeId;
use crate::net::{Cidr, Family, family, merged, private_network};
use crate::packet::premise::{Distant, MaskedPod, Premise, Unencapsulated};
use crate::packet::{AssumedDial, messages};
use crate::proof::rule::ASSUMED_REACH;
use crate::proof::verify::Assumption;
use crate::rules::kilo::mismatched_pod_addresses;
use crate::rules::{Finding, bare};
use crate::text::listed;
use crate::wireguard::{Endpoint, Host};

/// The paths that share a condition, in words.
struct AssumedGroup {
    /// The number of paths, and the clusters.
    paths: String,
    /// The nodes that must meet the condition.
    nodes: String,
    /// Whether that is one node.
    is_one: bool,
}

/// Reports promises that hold only under a premise. A route of an anchor into a network that no node shows
/// is listed elsewhere: such routes are normal, and no change of the mesh can confirm them. Pods with other addresses
/// have one finding for their cluster, see [`mismatched_pods`].
pub(super) fn assumed(fabric: &Fabric, assumption: &Assumption) -> Option<Finding> {
    let nodes = assumption.nodes.iter();
    let number = match assumption.pairs {
        1 => "1 declared path is assumed to work".to_owned(),
        pairs => format!("{pairs} declared paths are assumed to work"),
    };
    let assumed = AssumedGroup {
        paths: format!("{number} ({})", between(fabric, &assumption.between)),
        nodes: listed(nodes.map(|it| messages::called(fabric, *it))),
        is_one: assumption.nodes.len() == 1,
    };
    match assumption.premise {
        Premise::Dial(it) => assumed.dial(fabric, it),
        Premise::Distant(it) => assumed.distant(fabric, it),
        Premise::Unencapsulated(it) => Some(assumed.unencapsulated(fabric, it)),
        Premise::Plugin(it) => Some(assumed.plugin(fabric, it)),
        Premise::Masqueraded(it) => Some(assumed.masqueraded(fabric, it)),
        Premise::Route(_) | Premise::Pods(_) => None,
    }
}

/// Reports the clusters with declared paths that hold only if pods have the addresses that Kilo routes.
pub(super) fn mismatched_pods(fabric: &Fabric, assumptions: &[Assumption]) -> Vec<Finding> {
    let of_pods = assumptions.iter().filter(|it| matches!(it.premise, Premise::Pods(_)));
    let sites: BTreeSet<SiteId> =
        of_pods.flat_map(|it| &it.between).flat_map(|it| it.both()).collect();
    let findings = sites.into_iter().map(|it| mismatched_pod_addresses(&fabric.site(it).reading));
    findings.flatten().collect()
}

/// Returns what gives a Peer the endpoint that the mesh has for it, with the semicolon behind it. A render changes nothing if the
/// rendered tree is up to date.
fn renewed(fabric: &Fabric, site: SiteId, peer: PeerId) -> String {
    let Some(delivered) = fabric.delivered() else {
        return "run `clustermesh render`; ".to_owned();
    };
    let endpoint = |model: &Model, peer| model.endpoint(Tunnel::Peer(peer)).cloned();
    let (has, shall) = (&fabric.site(site).model, &delivered.site(site).model);
    let peers = has.key(Tunnel::Peer(peer)).map(|it| shall.peers_with(&it)).unwrap_or_default();
    let is_current = peers.iter().any(|it| endpoint(shall, *it) == endpoint(has, peer));
    if is_current { String::new() } else { format!("{}; ", messages::delivery(fabric, site)) }
}

impl AssumedGroup {
    fn dial(&self, fabric: &Fabric, dial: AssumedDial) -> Option<Finding> {
        let Self { paths, nodes, is_one } = self;
        let AssumedDial { premise, at, peer } = dial;
        let site = fabric.site(at.site);
        let endpoint = site.model.endpoint(Tunnel::Peer(peer))?;
        let dialled = fabric.held_by(at.site, peer)?;
        let whose = messages::called(fabric, dialled);
        let owner = fabric.site(dialled.site).cluster;
        let verb = if *is_one { "dials" } else { "dial" };
        let (message, help) = match premise {
            DialPremise::Private => self.private(fabric, dial, dialled, endpoint)?,
            DialPremise::Claimed => (
                format!("{paths}: the endpoint {endpoint} of {whose} is that of another node too (dialled by {nodes})"),
                "run `clustermesh validate`: `shared-endpoint` names the nodes, and which of them has the address"
                    .to_owned(),
            ),
            DialPremise::Family(family) => self.family(site, endpoint, family),
            DialPremise::Stranger => (
                format!(
                    "{paths}: {nodes} {verb} endpoints such as {}, which is not the address of any node",
                    endpoint.address()?
                ),
                format!(
                    "{}if the address is that of a load balancer or NAT in front of a node, annotate this node with \
                     `kilo.squat.ai/clustermesh-endpoint` and the address",
                    renewed(fabric, at.site, peer)
                ),
            ),
            DialPremise::Name => {
                let Host::Dns(name) = &endpoint.host else {
                    return None;
                };
                (
                    format!(
                        "{paths}: {nodes} {verb} `{name}` ({whose}), and `endpointDomains` of `{owner}` does not list \
                         this whole name"
                    ),
                    format!(
                        "if the name is that of the node, add `{name}` to `endpointDomains` of `{owner}`"
                    ),
                )
            }
        };
        let mut finding = Finding::on_cluster(&ASSUMED_REACH, site.cluster, message);
        if let DialPremise::Private = premise {
            finding.severity = Severity::Warning;
        }
        let place = site.model.peers[peer].place().key("spec").key("endpoint");
        Some(finding.at(place, "this endpoint").help(help))
    }

    /// Returns the message about private endpoints, and what helps.
    fn private(
        &self,
        fabric: &Fabric,
        AssumedDial { at, .. }: AssumedDial,
        dialled: NodeRef,
        endpoint: &Endpoint,
    ) -> Option<(String, String)> {
        let (site, owner) = (fabric.site(at.site), fabric.site(dialled.site));
        let whose = messages::called(fabric, dialled);
        let named = |site: &Site| -> BTreeSet<String> {
            site.entry.underlays.iter().map(|it| it.name.clone()).collect()
        };
        let common: Vec<String> = named(site).intersection(&named(owner)).cloned().collect();
        let joined = if common.is_empty() {
            "no `underlays` of the mesh join the two clusters".to_owned()
        } else {
            let common = listed(common.iter().map(|it| format!("`{it}`")));
            format!("the endpoint or the nodes that dial it are outside of the `cidrs` of {common}")
        };
        let message = format!(
            "{}: endpoints such as {endpoint} ({whose}) are private addresses, and {joined}",
            self.paths
        );
        let kind = family(endpoint.address()?);
        let mut own = site.reading.nodes[at.node].internal_addresses();
        let joining = if own.any(|it| family(it) == kind) {
            joining([site, owner], kind, common.first())
        } else {
            format!(
                "let the kubelets of `{}` report {kind} addresses (`--node-ip`), or give {whose} an endpoint that they can \
                 dial (`kilo.squat.ai/force-endpoint`)",
                site.cluster
            )
        };
        let key = fabric.node(at).kilo.key?;
        let is_called = match owner.model.peers_with(&key) {
            [back] => fabric.dials(dialled, *back, at) == Ok(Dials::Shown),
            _ => false,
        };
        if !is_called {
            return Some((message, joining));
        }
        let calling = if owner.cluster.is_external() {
            "remove its `endpoint` from the mesh".to_owned()
        } else {
            format!(
                "add `persistentKeepalive: 25` to `{}` in the mesh, and annotate its nodes with \
                 `kilo.squat.ai/persistent-keepalive=25`",
                owner.cluster
            )
        };
        let help = format!("if only {whose} can dial, {calling}; {joining}");
        Some((message, help))
    }

    /// Returns the message about endpoints of a kind of address that nodes do not show, and what helps.
    fn family(&self, site: &Site, endpoint: &Endpoint, family: Family) -> (String, String) {
        let Self { paths, nodes, is_one } = self;
        let (their, they) = if *is_one {
            ("its snapshot shows", "the node has")
        } else {
            ("their snapshot shows", "the nodes have")
        };
        let message = format!(
            "{paths}: {nodes} must dial {family} endpoints such as {endpoint}, and {their} no {family} address"
        );
        let help = format!(
            "ignore this rule for `{}` if {they} {family} addresses; otherwise annotate the other nodes with \
             `kilo.squat.ai/clustermesh-endpoint` and an {} address",
            site.cluster,
            family.other()
        );
        (message, help)
    }

    fn masqueraded(&self, fabric: &Fabric, MaskedPod { at, address }: MaskedPod) -> Finding {
        let Self { paths, nodes, .. } = self;
        let site = fabric.site(at.site);
        let address = match address {
            Some(address) => format!("an address of their node such as {address}"),
            None => "an address that is not known".to_owned(),
        };
        let message = format!(
            "{paths}: a network plugin may masquerade packets of pods on {nodes}, and with {address} they are lost"
        );
        let cluster = site.cluster;
        let finding = Finding::on_cluster(&ASSUMED_REACH, cluster, message);
        finding.help(format!(
            "if pods keep their addresses on the way to other clusters, write `podSource: Kept` for `{cluster}`; \
             otherwise advertise the WireGuard addresses and internal IPs of its nodes"
        ))
    }

    fn distant(&self, fabric: &Fabric, distant: Distant) -> Option<Finding> {
        let Self { paths, nodes, .. } = self;
        let Distant { node, carrier, range } = distant;
        let site = fabric.site(carrier.site);
        let leader = site.leader(site.segment(node.node)?).node();
        let leader = bare(&site.node(leader).kilo.name);
        let message = format!(
            "{paths}: {nodes} carries {range}, but only {} is on that LAN",
            messages::called(fabric, node)
        );
        let finding = Finding::on_cluster(&ASSUMED_REACH, site.cluster, message);
        Some(finding.help(format!(
            "if the LAN exists, add `anchors: [{{ ranges: ['{range}'], nodes: [{leader}] }}]` \
             to `{}` in the mesh",
            site.cluster
        )))
    }

    fn unencapsulated(&self, fabric: &Fabric, unencapsulated: Unencapsulated) -> Finding {
        let Self { paths, nodes, .. } = self;
        let Unencapsulated { leader, peer, range, .. } = unencapsulated;
        let site = fabric.site(leader.site);
        let peer = &site.model.peers[peer];
        let message = format!(
            "{paths}: {} hands packets to the pods of {nodes} over a LAN that the Peer {} takes with {range}, \
             so they are lost if Kilo encapsulates them",
            messages::called(fabric, leader),
            bare(&peer.applied.name)
        );
        let finding = Finding::on_cluster(&ASSUMED_REACH, site.cluster, message)
            .at(peer.place().key("spec").key("allowedIPs"), "takes the LAN");
        finding.help(format!("remove {range} from the Peer"))
    }

    fn plugin(&self, fabric: &Fabric, at: NodeRef) -> Finding {
        let Self { paths, nodes, .. } = self;
        let message = format!(
            "{paths}: Kilo has no unique route between {nodes} and the leader, because nodes have the same internal IPs or \
             pod CIDRs, so only the network plugin may have one"
        );
        let finding = Finding::on_cluster(&ASSUMED_REACH, fabric.site(at.site).cluster, message);
        finding.help(
            "run `clustermesh validate`: `shared-internal-ip` and `overlapping-node-pod-cidr` name the nodes",
        )
    }
}

/// The number of characters of the longest DNS-1123 label.
const LONGEST_LABEL: usize = 63;

/// Returns how people declare that one network joins two clusters, or what to do where none does.
fn joining(sites: [&Site; 2], family: Family, known: Option<&String>) -> String {
    // A name of its own joins no third cluster.
    let names = sites.map(|it| it.cluster.external().unwrap_or(it.cluster.as_str()));
    let name = names.join("-");
    let name = if name.len() <= LONGEST_LABEL { &*name } else { "lan" };
    let lines = sites.map(|site| {
        let cidrs: Vec<String> =
            networks(site, family).iter().map(|it| format!("'{it}'")).collect();
        let cidrs = match cidrs.as_slice() {
            [] => "RANGE".to_owned(),
            cidrs => cidrs.join(", "),
        };
        match known {
            Some(_) => format!("`[{cidrs}]` for `{}`", site.cluster),
            None => format!(
                "`{{ name: {name}, cidrs: [{cidrs}] }}` to `underlays` of `{}`",
                site.cluster
            ),
        }
    });
    let lines = lines.join(" and ");
    let join = match known {
        Some(name) => format!(
            "if `{name}` joins the nodes of both, write `cidrs` that contain them, such as {lines}"
        ),
        None => format!("if one network joins the nodes of both, add {lines}"),
    };
    format!(
        "{join}; otherwise give the nodes of one side an endpoint that the others can dial (`kilo.squat.ai/force-endpoint`)"
    )
}

/// Returns the networks of the addresses of a kind at which leaders are dialled, and from which they dial.
fn networks(site: &Site, kind: Family) -> Vec<Cidr> {
    let leaders: BTreeSet<NodeId> =
        site.model.topology.segments.iter().map(|it| it.leader.node()).collect();
    let addresses = leaders.iter().flat_map(|it| {
        let endpoint = site.node(*it).endpoint().and_then(Endpoint::address);
        let private = endpoint.filter(|it| private_network(*it).is_some());
        private.into_iter().chain(site.reading.nodes[*it].internal_addresses())
    });
    let own = addresses.filter(|it| family(*it) == kind);
    merged(own.map(|it| private_network(it).unwrap_or_else(|| Cidr::host(it))))
}
