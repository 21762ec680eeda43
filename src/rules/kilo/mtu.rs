//! MTU: do the packets of pods fit into the tunnels?

use std::collections::BTreeMap;

use super::EXCEEDED_MTU;
use crate::diagnostic::Severity;
use crate::fleet::{Fleet, Member};
use crate::mesh::LEAST_WITH_IPV6;
use crate::name::ClusterName;
use crate::net::Family;
use crate::rules::Finding;
use crate::text::{NAMED, listed};

/// The part of the paths of a cluster that carries the smallest packets.
#[derive(Clone, Copy)]
struct Bottleneck<'f> {
    /// The cluster of the part.
    member: &'f Member<'f>,
    /// The largest packet that it carries.
    carries: u16,
    /// Whether it is the network between nodes of a location, or the tunnels.
    is_location: bool,
}

/// A cluster whose pods send larger packets than its paths carry.
struct LargeSender<'f> {
    member: &'f Member<'f>,
    /// The size of their largest packets.
    pods: u16,
    bottleneck: Bottleneck<'f>,
}

/// Returns findings about clusters whose pods send larger packets than their paths carry. One part that carries too little
/// for several clusters is one mistake.
pub(super) fn findings(fleet: &Fleet) -> Vec<Finding> {
    let mut by_part: BTreeMap<_, Vec<LargeSender>> = BTreeMap::new();
    for sender in fleet.first_memberships().filter_map(|it| LargeSender::of(fleet, it)) {
        let part = &sender.bottleneck;
        let part = (&part.member.entry.name, part.carries, part.is_location);
        by_part.entry(part).or_default().push(sender);
    }
    let unknown = fleet.first_memberships().filter_map(|it| uncompared(fleet, it));
    let findings = by_part.values().filter_map(|senders| match senders.as_slice() {
        [sender] => Some(sender.finding()),
        senders => of_several(senders),
    });
    findings.chain(unknown).collect()
}

/// Returns the parts of all paths of a cluster whose size is known.
fn parts<'f>(fleet: &'f Fleet, member: &'f Member<'f>) -> impl Iterator<Item = Bottleneck<'f>> {
    let targets = fleet.memberships(&member.entry.name).flat_map(Member::targets);
    let partners = targets.filter_map(|it| fleet.memberships(it).next());
    let partners: Vec<&Member> = partners.collect();
    let own = partners.first().map(|_| member);
    own.into_iter().chain(partners).flat_map(Bottleneck::all)
}

/// Reports the MTU of pods of which no path has a known size.
fn uncompared(fleet: &Fleet, member: &Member) -> Option<Finding> {
    let (entry, pods) = (member.entry, member.entry.mtu.pods?);
    if parts(fleet, member).next().is_some() {
        return None;
    }
    let message =
        format!("`pods: {pods}` in `mtu` is compared with no tunnel: no `underlay` is declared");
    let mut finding = Finding::on_cluster(&EXCEEDED_MTU, &entry.name, message);
    finding.severity = Severity::Notice;
    let finding = finding.at(entry.place.key("mtu").key("pods"), "");
    Some(finding.help(
        "add `underlay` to `mtu`: the MTU of the interface with the default route, such as `underlay: 1500`",
    ))
}

impl<'f> LargeSender<'f> {
    fn of(fleet: &'f Fleet, member: &'f Member<'f>) -> Option<Self> {
        let pods = member.entry.mtu.pods?;
        let bottleneck = parts(fleet, member).min_by_key(|it| it.carries);
        let bottleneck = bottleneck.filter(|it| it.carries < pods)?;
        Some(Self { member, pods, bottleneck })
    }

    fn finding(&self) -> Finding {
        let Self { member, pods, bottleneck } = self;
        let entry = member.entry;
        let words = bottleneck.words(&entry.name);
        let message = format!("pods send packets of up to {pods} bytes, but {words}");
        let finding = Finding::on_cluster(&EXCEEDED_MTU, &entry.name, message)
            .at(entry.place.key("mtu").key("pods"), "")
            .at(bottleneck.member.entry.place.key("mtu"), "carries less");
        finding.help(help(member, bottleneck.carries))
    }
}

/// Returns the finding about a part that carries too little for several clusters.
fn of_several(senders: &[LargeSender]) -> Option<Finding> {
    let Bottleneck { member, carries, is_location } = senders.first()?.bottleneck;
    let name = &member.entry.name;
    let sizes = senders.iter().map(|it| format!("{}: {}", it.member.entry.name, it.pods));
    let words = senders.first()?.bottleneck.words(name);
    let message =
        format!("{words}, and pods of {} clusters send more ({})", senders.len(), listed(sizes));
    let names = listed(senders.iter().map(|it| format!("`{}`", it.member.entry.name)));
    let field = if is_location { "internal" } else { "underlay" };
    let places = senders.iter().take(NAMED).map(|it| it.member.entry.place.key("mtu").key("pods"));
    let finding = Finding::on_cluster(&EXCEEDED_MTU, name, message)
        .at(member.entry.place.key("mtu").key(field), "carries less")
        .at_each(places.map(|it| (it, "sends more")));
    Some(finding.help(format!(
        "correct `{field}` of `{name}` if it is wrong; otherwise set the MTU of pods to {carries} in the CNI of {names}, \
         and write `pods: {carries}` in their `mtu`; for TCP alone, run {} on their nodes",
        clamp(senders.first()?.member, carries)
    )))
}

impl<'f> Bottleneck<'f> {
    /// Returns the parts of a cluster whose size is known.
    fn all(member: &'f Member<'f>) -> impl Iterator<Item = Self> {
        let mtu = &member.entry.mtu;
        let mut segments = member.cluster.topology.segments.iter();
        let has_location = segments.any(|it| 1 < it.members.len());
        let has_vxlan = member.cluster.pod_network.has_vxlan;
        let location = mtu.within_location(has_vxlan).filter(|_| has_location);
        let parts = [(mtu.tunnel(), false), (location, true)].into_iter();
        parts.filter_map(move |(carries, is_location)| {
            Some(Self { member, carries: carries?, is_location })
        })
    }

    /// Describes it, given the cluster of the pods.
    fn words(&self, sending: &ClusterName) -> String {
        let (entry, carries) = (self.member.entry, self.carries);
        let name = &entry.name;
        if !self.is_location {
            return format!("the tunnels of {name} carry {carries}, 80 less than its `underlay`");
        }
        // A leader reports it from its internal address, unless Kilo of the sender drops that.
        let silence = if name != sending && !entry.advertise.node_addresses {
            "; as `nodeAddresses` is false there, pods do not get ICMP messages about it"
        } else {
            ""
        };
        let headers = if self.member.cluster.pod_network.has_vxlan {
            "70 less than the MTU between its nodes because of IPIP in VXLAN"
        } else {
            "20 less than the MTU between its nodes because of IPIP"
        };
        format!("a location of {name} carries {carries}, {headers}{silence}")
    }
}

/// Returns the MTU to set, and what helps TCP until then.
fn help(member: &Member, carries: u16) -> String {
    let entry = member.entry;
    let name = &entry.name;
    let clamp = format!("{} on its nodes", clamp(member, carries));
    let mut ranges = entry.networks.all().into_iter();
    if carries < LEAST_WITH_IPV6 && ranges.any(|it| it.cidr.family() == Family::V6) {
        return format!(
            "run {clamp}, and ignore this rule for `{name}`: pods with IPv6 cannot have an MTU below {LEAST_WITH_IPV6}"
        );
    }
    format!(
        "set the MTU of pods to {carries} in the CNI of `{name}` and write `pods: {carries}` in its `mtu`; for TCP alone, run \
         {clamp}"
    )
}

/// Returns the command that keeps TCP packets small on the nodes of a cluster.
fn clamp(member: &Member, carries: u16) -> String {
    let (program, headers) = match member.cluster.family {
        Some(Family::V6) => ("ip6tables", 60),
        Some(Family::V4) | None => ("iptables", 40),
    };
    format!(
        "`{program} -t mangle -A FORWARD -i kilo0 -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss {}`",
        carries.saturating_sub(headers)
    )
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    const EAST: &str =
        "n pod=10.1.1.0/24 wg=10.101.0.1/24 key=A granularity=full external=198.18.0.1";
    /// A location of two nodes.
    const WEST: &str = "
w1 pod=10.2.1.0/24 wg=10.102.0.1/24 key=B granularity=location external=198.18.0.2 internal-ip=192.168.0.1/24 endpoint=198.18.0.2:51820
w2 pod=10.2.2.0/24 key=C granularity=location internal-ip=192.168.0.2/24 endpoint=198.18.0.3:51820";

    fn report_on(east: &str, west: &str) -> String {
        let clusters = [("east", east, EAST), ("west", west, WEST)];
        report(super::super::tests::findings, &clusters)
    }

    #[test]
    fn the_smaller_of_two_tunnels_counts() {
        insta::assert_snapshot!(report_on("mtu: { underlay: 9001, pods: 8900 }", "mtu: { underlay: 1500 }"), @"
        warning[exceeded-mtu] east: pods send packets of up to 8900 bytes, but the tunnels of west carry 1420, 80 less than its `underlay`
          mesh.yaml#/spec/clusters/0/mtu/pods 
          mesh.yaml#/spec/clusters/1/mtu carries less
          help: set the MTU of pods to 1420 in the CNI of `east` and write `pods: 1420` in its `mtu`; for TCP alone, run `iptables -t mangle -A FORWARD -i kilo0 -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1380` on its nodes
        ");
        insta::assert_snapshot!(report_on("mtu: { underlay: 1460, pods: 1381 }", ""), @"
        warning[exceeded-mtu] east: pods send packets of up to 1381 bytes, but the tunnels of east carry 1380, 80 less than its `underlay`
          mesh.yaml#/spec/clusters/0/mtu/pods 
          mesh.yaml#/spec/clusters/0/mtu carries less
          help: set the MTU of pods to 1380 in the CNI of `east` and write `pods: 1380` in its `mtu`; for TCP alone, run `iptables -t mangle -A FORWARD -i kilo0 -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1340` on its nodes
        ");
        assert_eq!(
            report_on("mtu: { underlay: 9001, pods: 1420 }", "mtu: { underlay: 1500, pods: 1420 }"),
            ""
        );
        assert_eq!(report_on("mtu: { underlay: 1500 }", "mtu: { underlay: 1280 }"), "");
        let uncompared =
            "notice[exceeded-mtu] east: `pods: 9000` in `mtu` is compared with no tunnel";
        assert!(report_on("mtu: { pods: 9000 }", "mtu: {}").starts_with(uncompared));
        assert_eq!(report_on("mtu: { pods: 1420 }", "mtu: { underlay: 1500 }"), "");
    }

    #[test]
    fn ipip_and_a_tunnel_are_not_nested() {
        let mtu = "mtu: { underlay: 1500, pods: 1420 }";
        assert_eq!(report_on(mtu, mtu), "");
        insta::assert_snapshot!(report_on(mtu, "mtu: { internal: 1400 }, advertise: { nodeAddresses: false }"), @"
        warning[exceeded-mtu] east: pods send packets of up to 1420 bytes, but a location of west carries 1380, 20 less than the MTU between its nodes because of IPIP; as `nodeAddresses` is false there, pods do not get ICMP messages about it
          mesh.yaml#/spec/clusters/0/mtu/pods 
          mesh.yaml#/spec/clusters/1/mtu carries less
          help: set the MTU of pods to 1380 in the CNI of `east` and write `pods: 1380` in its `mtu`; for TCP alone, run `iptables -t mangle -A FORWARD -i kilo0 -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1340` on its nodes
        ");
        insta::assert_snapshot!(report_on("", "mtu: { internal: 1400, pods: 1420 }"), @"
        warning[exceeded-mtu] west: pods send packets of up to 1420 bytes, but a location of west carries 1380, 20 less than the MTU between its nodes because of IPIP
          mesh.yaml#/spec/clusters/1/mtu/pods 
          mesh.yaml#/spec/clusters/1/mtu carries less
          help: set the MTU of pods to 1380 in the CNI of `west` and write `pods: 1380` in its `mtu`; for TCP alone, run `iptables -t mangle -A FORWARD -i kilo0 -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1340` on its nodes
        ");
        // No node of east shares a location.
        assert!(!report_on("mtu: { internal: 1400, pods: 1420 }", "").contains("warning"));
    }
}
