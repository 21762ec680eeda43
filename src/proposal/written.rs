//! The text of a proposal. Of what nodes report, it contains only ranges, numbers and domains that were
//! checked, and names of Peers, which are DNS-1123 subdomains.

use std::fmt::Write as _;

use super::externals::{Externals, LeftPeer, ProposedExternal};
use super::{AgreedRange, EndpointAdvice, Proposal, ProposedCluster, RangeUse, WireguardRange};
use crate::diagnostic::escaped;
use crate::mesh::Distribution;
use crate::net::Cidr;
use crate::text;
use crate::yaml::scalar;

const HEAD: &str = "\
# Proposed by `clustermesh init` from the nodes of each cluster. Check every line before you commit it.
# The order is the order of trust: if two clusters claim the same key, the first one keeps it. Ranges must not
# overlap. `clustermesh schema mesh` describes all fields.
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata:
  # The name of every Peer begins with it, so choose it before the first render.
";

/// The text before the entries for Peers that were made by hand. They are comments, because the first render would give
/// the clusters a second Peer with the same key.
const EXTERNALS: &str =
    "  # Peers that were made by hand. To take them over, remove `# ` from the lines of `externalPeers` and its entries,
  # and follow \"Peers of laptops\" in docs/how-to/from-kgctl.md.
";

/// Returns the document.
pub(super) fn yaml(proposal: &Proposal) -> String {
    let mut yaml = of_clusters(proposal);
    let Externals { proposed, left } = &proposal.externals;
    if !proposed.is_empty() {
        yaml.push_str(EXTERNALS);
        for line in entries(proposed).lines() {
            let _ = writeln!(yaml, "  # {}", line.get(2..).unwrap_or_default());
        }
    }
    if !left.is_empty() {
        yaml.push_str(
            "  # Peers that were made by hand and cannot be entries of `externalPeers`:\n",
        );
    }
    for LeftPeer { name, clusters, reason } in left {
        let clusters = text::listed(clusters);
        let _ = writeln!(yaml, "  # - {name} in {clusters}: {}", escaped(reason, usize::MAX));
    }
    yaml
}

/// Returns the document with the entries for Peers that were made by hand in effect.
pub(super) fn checked_yaml(proposal: &Proposal) -> String {
    of_clusters(proposal) + &entries(&proposal.externals.proposed)
}

/// Returns entries of `externalPeers`.
fn entries(externals: &[ProposedExternal]) -> String {
    let mut yaml = "  externalPeers:\n".to_owned();
    for external in externals {
        let _ = writeln!(yaml, "    - name: {}", scalar(&external.name));
        let mut field = |name: &str, value: &str| {
            let _ = writeln!(yaml, "      {name}: {value}");
        };
        field("publicKey", &external.key.to_string());
        let ranges = external.ranges.iter().map(ToString::to_string);
        field("ranges", &list(&ranges.collect::<Vec<_>>()));
        if let Some(endpoint) = &external.endpoint {
            field("endpoint", &scalar(&endpoint.to_string()));
        }
        // A host without an endpoint has one of 25 seconds unless another one is written.
        if let Some(seconds) = external.keepalive {
            field("persistentKeepalive", &seconds.to_string());
        }
        let clusters = external.clusters.iter().map(|it| scalar(it.as_str()).into_owned());
        field("clusters", &list(&clusters.collect::<Vec<_>>()));
    }
    yaml
}

fn of_clusters(proposal: &Proposal) -> String {
    let mut yaml = HEAD.to_owned();
    let _ = writeln!(yaml, "  name: {}", scalar(proposal.name.as_str()));
    yaml.push_str("spec:\n");
    push_undialled(&mut yaml, proposal, "  ");
    yaml.push_str("  clusters:\n");
    for cluster in &proposal.clusters {
        let _ = writeln!(yaml, "    - name: {}", scalar(cluster.name.as_str()));
        push_cluster(&mut yaml, proposal, cluster);
    }
    yaml
}

/// Returns the entries for a mesh that exists, in the form of its last entry.
pub(super) fn added_entries(proposal: &Proposal) -> String {
    let mut yaml = String::new();
    for (number, cluster) in proposal.clusters.iter().enumerate() {
        let _ = write!(
            yaml,
            "    - name: {}\n      state: Joining # until you remove this line, its ranges are reserved, and no cluster gets its Peers\n",
            scalar(cluster.name.as_str())
        );
        if number == 0 {
            push_undialled(&mut yaml, proposal, "      ");
        }
        let defaults = &proposal.existing.defaults;
        if !defaults.is_empty() {
            let _ = writeln!(
                yaml,
                "      # `defaults` of this mesh apply where this entry has no value: {}.",
                text::list(defaults)
            );
        }
        push_cluster(&mut yaml, proposal, cluster);
    }
    yaml
}

/// Adds a comment if some clusters cannot dial each other.
fn push_undialled(yaml: &mut String, proposal: &Proposal, indent: &str) {
    let undialled = proposal.undialled();
    if 1 < undialled.len() {
        let _ = write!(
            yaml,
            "{indent}# No node of {} has an endpoint that others can dial, so these clusters cannot be joined to each\n\
             {indent}# other. In all but one of them, forward a UDP port to a node, and annotate it with\n\
             {indent}# `kilo.squat.ai/clustermesh-endpoint=ADDRESS:PORT`.\n",
            text::listed(&undialled)
        );
    }
}

fn push_cluster(yaml: &mut String, proposal: &Proposal, cluster: &ProposedCluster) {
    let common = proposal.common_networks(cluster);
    let mut field = |comment: &str, name: &str, value: &str| {
        for line in comment.lines() {
            let _ = writeln!(yaml, "      # {line}");
        }
        let _ = writeln!(yaml, "      {name}: {value}");
    };
    let with_pods = cluster.pods.first().and_then(|it| Distribution::with_pods(it.cidr));
    let known = with_pods.map_or_else(String::new, |it| format!(", the default of {}", it.name));
    let pods: Vec<String> = cluster.pods.iter().map(|it| it.cidr.to_string()).collect();
    let mut counts: Vec<String> = cluster.pods.iter().map(agreement).collect();
    counts.dedup();
    let is_narrow = |it: &AgreedRange| it.cidr == it.core && 1 < it.all;
    let narrow = if cluster.pods.iter().any(is_narrow) {
        " No wider range, as it would overlap\nthat of another cluster."
    } else {
        ""
    };
    let family = match (cluster.pods.first(), cluster.unrouted_pods.is_empty()) {
        (Some(range), false) => format!("{} ", range.cidr.family()),
        _ => String::new(),
    };
    let unrouted = cluster.unrouted_pods.iter().map(|it| {
        let (range, family) = (it.cidr, it.cidr.family());
        format!("\nThe pods also have addresses in {range}. They are left out, as no cluster here routes {family}.")
    });
    let of_pods = format!(
        "Contains the {family}pod CIDRs of {}{known}.{narrow}{}\n\
         Put the `--cluster-cidr` of the cluster here if it is another range.",
        text::list(counts),
        unrouted.collect::<String>()
    );
    let (of_wireguard, wireguard) = wireguard(&cluster.wireguard);
    if proposal.existing.is_flat {
        let ranges = [pods, vec![wireguard]].concat();
        field(&format!("{of_pods}\n{of_wireguard}"), "allowedNetworks", &list(&ranges));
    } else {
        field(&of_pods, "podCIDRs", &list(&pods));
        field(&of_wireguard, "wireguardCIDR", &wireguard);
    }
    if let Some(granularity) = cluster.granularity {
        let comment = "Kilo's `--mesh-granularity`, as most nodes report it.";
        field(comment, "granularity", &granularity.to_string());
    }
    push_endpoints(&mut field, &cluster.endpoints);
    if !common.is_empty() {
        let cidrs: Vec<String> = common.iter().map(ToString::to_string).collect();
        let cidrs = list(&cidrs);
        let _ = write!(
            yaml,
            "      # Nodes of another cluster have addresses in the same range. If it is one network, the nodes\n      \
             # can be dialled at their internal addresses:\n      \
             # endpointFrom: [Annotation, ExternalIP, InternalIP]\n      \
             # underlays: [{{ name: lan, cidrs: {cidrs} }}]\n"
        );
    }
    yaml.push_str(&service_lines(proposal, cluster));
}

/// Returns the lines about the ranges of the Services: those that the API server shows, else a comment.
fn service_lines(proposal: &Proposal, cluster: &ProposedCluster) -> String {
    let Some(first) = cluster.services.first() else {
        return format!("      # {}\n", service_hint(proposal, cluster));
    };
    let declare = if !cluster.endpoints.is_reached() {
        "No node has an endpoint, so none can carry them to other clusters.".to_owned()
    } else if proposal.existing.is_flat {
        "If other clusters should reach the Services, add them to `allowedNetworks` instead."
            .to_owned()
    } else {
        format!(
            "If other clusters should reach the Services, write instead:\n      # serviceCIDR: {first}"
        )
    };
    format!(
        "      # Ranges of the Services, from the API server. The line keeps Peers of other clusters out of them.\n      \
         # {declare}\n      localNetworks: {}\n",
        list(&cluster.services.iter().map(Cidr::to_string).collect::<Vec<_>>())
    )
}

/// Returns the comment about the range of the Services, which no node reports. Peers of other clusters must not take it over,
/// even if it is not declared.
fn service_hint(proposal: &Proposal, cluster: &ProposedCluster) -> String {
    let known = cluster.distribution.map(|it| it.services);
    let services = known.unwrap_or("RANGE");
    let range: Option<Cidr> = known.and_then(|it| it.parse().ok());
    let is_used = |it: &&RangeUse| range.is_some_and(|range| it.cidr.overlaps(range));
    let other = proposal.existing.uses.iter().find(is_used).map(|it| &it.cluster);
    let otherwise = "Otherwise, this keeps their Peers out of that range:".to_owned();
    let (declare, local) = if !cluster.endpoints.is_reached() {
        (
            "No node has an endpoint, so none can carry a Service range to other clusters."
                .to_owned(),
            "This keeps Peers of other clusters out of the `--service-cidr`:".to_owned(),
        )
    } else if proposal.existing.is_flat {
        let known = known.map_or_else(String::new, |it| format!(" ({it})"));
        (
            format!(
                "Add the `--service-cidr`{known} to the list, if other clusters should reach the Services."
            ),
            otherwise,
        )
    } else {
        let (other_range, range, local) = match other {
            Some(it) => (
                format!("; it must not overlap with {services} of {it}"),
                "RANGE",
                format!(
                    "If it does, this keeps it for the Services of this cluster, whose pods then cannot reach {it} there:"
                ),
            ),
            None => (String::new(), services, otherwise),
        };
        (
            format!(
                "`--service-cidr`, if other clusters should reach the Services{other_range}:\n      # serviceCIDR: {range}"
            ),
            local,
        )
    };
    format!("{declare}\n      # {local}\n      # localNetworks: [{services}]")
}

/// Returns the range of the WireGuard addresses, after its comment.
fn wireguard(range: &WireguardRange) -> (String, String) {
    match range {
        WireguardRange::Agreed(range) => {
            let comment = format!(
                "Kilo's `--subnet`: the network of `kilo.squat.ai/wireguard-ip` on {}.",
                match range.all {
                    1 => "the only node that has it".to_owned(),
                    _ => agreement(range),
                }
            );
            (comment, range.cidr.to_string())
        }
        WireguardRange::Free(range) => {
            let comment = format!(
                "Kilo does not run on the nodes yet. Start it with `--subnet={range}`, which no other\n\
                 cluster here uses."
            );
            (comment, range.to_string())
        }
    }
}

fn push_endpoints(field: &mut impl FnMut(&str, &str, &str), endpoints: &EndpointAdvice) {
    let leaders = endpoints.leaders;
    if !endpoints.names.is_empty() {
        let comment = "The endpoints of most nodes are these names. The owner of their domain may change where\n\
                       they lead, so trust it, or use addresses.";
        let names = endpoints.names.iter().map(|it| scalar(it).into_owned());
        field(comment, "endpointDomains", &list(&names.collect::<Vec<_>>()));
    }
    if let Some(port) = endpoints.port {
        let comment = "Most nodes listen on this port (Kilo's `--port`).";
        field(comment, "wireguardPort", &port.to_string());
    }
    if let Some(sources) = endpoints.sources() {
        let comment = "Kilo has found public endpoints for nodes that have neither an annotation nor an external\n\
                       address.";
        let sources: Vec<String> = sources.iter().map(|it| format!("{it:?}")).collect();
        field(comment, "endpointFrom", &list(&sources));
    }
    if 0 < endpoints.unreached() {
        let comment = format!(
            "Nodes behind NAT, or without an endpoint ({} of {}), dial the other clusters and keep\n\
             the tunnel open. They need the annotation `kilo.squat.ai/persistent-keepalive: \"25\"`.",
            endpoints.unreached(),
            text::count(leaders, "node")
        );
        field(&comment, "persistentKeepalive", "25");
    }
}

fn agreement(range: &AgreedRange) -> String {
    let AgreedRange { inside, all, .. } = range;
    let nodes = text::count(*all, "node");
    match (inside == all, all) {
        (true, 1) => "the only node".to_owned(),
        (true, _) => format!("all {nodes}"),
        (false, _) => format!("{inside} of {nodes}"),
    }
}

fn list(items: &[String]) -> String {
    let items =
        items.iter().map(|it| if it.contains(':') { format!("\"{it}\"") } else { it.clone() });
    format!("[{}]", text::list(items))
}
