//! Roaming nodes: can those of two clusters open a tunnel between them?

use std::collections::BTreeMap;

use super::NO_INITIATOR;
use crate::fleet::Member;
use crate::kilo::node::annotation;
use crate::membership::PeerCandidate;
use crate::rules::Finding;
use crate::rules::command::{annotate_endpoint, blank};
use crate::text::{self, NAMED, count};

/// The most nodes of one side of which a message has the names.
const PAIRED: usize = 10;

/// The nodes without an endpoint of a cluster, and those of others that get their Peers: each of them and
/// each of the others are a pair that cannot open a tunnel.
struct RoamingPairs<'f> {
    /// The cluster.
    member: &'f Member<'f>,
    /// Its nodes, by their Peers.
    nodes: Vec<&'f PeerCandidate>,
    /// The nodes of other clusters, with these.
    others: Vec<(&'f Member<'f>, &'f PeerCandidate)>,
}

/// Returns findings about nodes behind NAT in two clusters, each pair at the cluster whose name comes first.
///
/// Of two clusters most of whose nodes have no endpoint, neither gets Peers of the other one: that is a
/// finding of the plan.
pub(super) fn findings(members: &[&Member]) -> Vec<Finding> {
    let by_name: BTreeMap<_, &Member> =
        members.iter().map(|member| ((&member.mesh.name, &member.entry.name), *member)).collect();
    let pairs = members.iter().map(|&member| {
        let later = member.targets().filter(|it| member.entry.name < **it);
        let linked = later.filter_map(|it| by_name.get(&(&member.mesh.name, it)).copied());
        let open = linked.filter(|other| !(member.roams() && other.roams()));
        let others = open.flat_map(|other| roaming(other).map(move |it| (other, it)));
        RoamingPairs { member, nodes: roaming(member).collect(), others: others.collect() }
    });
    pairs.filter_map(|it| it.finding()).collect()
}

/// Returns the Peers of a cluster that others cannot dial.
fn roaming<'f>(member: &'f Member<'f>) -> impl Iterator<Item = &'f PeerCandidate> {
    let candidates = member.membership.candidates.iter();
    candidates.filter(|it| it.endpoint.is_none())
}

impl RoamingPairs<'_> {
    /// Reports the nodes, if there are any pairs.
    fn finding(&self) -> Option<Finding> {
        if self.others.is_empty() {
            return None;
        }
        let cluster = &self.member.entry.name;
        let called = |member: &Member, candidate: &PeerCandidate| {
            format!("{}/{}", member.entry.name, candidate.leader)
        };
        let first = self.nodes.first()?.leader.as_str();
        let nodes = self.nodes.iter().map(|it| called(self.member, it));
        let others = self.others.iter().map(|it| called(it.0, it.1));
        let message = format!(
            "{} and {} cannot dial each other: none of them has an endpoint ({} of nodes)",
            text::first(PAIRED, nodes),
            text::first(PAIRED, others),
            count(self.nodes.len().saturating_mul(self.others.len()), "pair"),
        );
        let own = self.nodes.iter().copied().take(NAMED);
        let others = self.others.iter().map(|it| it.1).take(NAMED);
        let mut finding = Finding::on_cluster(&NO_INITIATOR, cluster, message);
        let change = blank(annotation::CLUSTERMESH_ENDPOINT);
        let sides = self.nodes.iter().map(|&it| (self.member, it));
        for (member, candidate) in sides.chain(self.others.iter().copied()) {
            let node = [candidate.leader.as_str()];
            finding = finding.resolved_by(&change, &member.entry.name, node);
        }
        let places = own.chain(others).map(|it| it.place.key("name"));
        let finding = finding.at_each(places.map(|it| (it, "has no endpoint")));
        Some(finding.help(format!(
            "give the nodes of one side an endpoint, for example `{}`, then run `clustermesh snapshot {cluster}`",
            annotate_endpoint(first)
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use crate::rules::tests::report;

    /// Nodes of a cluster, of which the last ones have no endpoint.
    fn nodes(cluster: u8, all: u8, roaming: u8) -> String {
        let mut text = String::new();
        for node in 1..=all {
            let key = STANDARD.encode([16 * cluster + node; 32]);
            let outside = if all - roaming < node {
                "persistent-keepalive=25".to_owned()
            } else {
                format!("external=198.18.{cluster}.{node}")
            };
            writeln!(
                text,
                "n{node} pod=10.{cluster}.{node}.0/24 wg=10.10{cluster}.0.{node}/24 key={key} \
                 internal=192.168.{cluster}.{node} granularity=full {outside}"
            )
            .unwrap();
        }
        text
    }

    fn report_on(clusters: &[(&str, u8, u8)]) -> String {
        let all: Vec<(&str, String)> = clusters
            .iter()
            .map(|(name, all, roaming)| {
                let number = ["east", "west", "north"].iter().position(|it| it == name);
                let number = u8::try_from(number.unwrap() + 1).unwrap();
                (*name, nodes(number, *all, *roaming))
            })
            .collect();
        let entry = "persistentKeepalive: 25";
        let all: Vec<_> = all.iter().map(|(name, nodes)| (*name, entry, nodes.as_str())).collect();
        report(super::super::findings, &all)
    }

    #[test]
    fn names_the_nodes_of_which_neither_can_dial_the_other() {
        insta::assert_snapshot!(report_on(&[("east", 3, 1), ("west", 3, 1)]), @"
        warning[no-initiator] east: east/n3 and west/n3 cannot dial each other: none of them has an endpoint (1 pair of nodes)
          east.json#/nodes/2/name has no endpoint
          west.json#/nodes/2/name has no endpoint
          help: give the nodes of one side an endpoint, for example `kubectl annotate nodes n3 kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`
        ");
        insta::assert_snapshot!(report_on(&[("east", 5, 2), ("west", 5, 2), ("north", 3, 1)]), @"
        warning[no-initiator] east: east/n4, east/n5 and west/n4, west/n5, north/n3 cannot dial each other: none of them has an endpoint (6 pairs of nodes)
          east.json#/nodes/3/name has no endpoint
          east.json#/nodes/4/name has no endpoint
          west.json#/nodes/3/name has no endpoint
          west.json#/nodes/4/name has no endpoint
          north.json#/nodes/2/name has no endpoint
          help: give the nodes of one side an endpoint, for example `kubectl annotate nodes n4 kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`
        warning[no-initiator] north: north/n3 and west/n4, west/n5 cannot dial each other: none of them has an endpoint (2 pairs of nodes)
          north.json#/nodes/2/name has no endpoint
          west.json#/nodes/3/name has no endpoint
          west.json#/nodes/4/name has no endpoint
          help: give the nodes of one side an endpoint, for example `kubectl annotate nodes n3 kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot north`
        ");
    }

    #[test]
    fn one_of_two_sides_may_be_behind_nat_as_a_whole() {
        let report = report_on(&[("east", 3, 3), ("west", 3, 1)]);
        let pairs = "east/n1, east/n2, east/n3 and west/n3 cannot dial each other";
        assert!(report.contains(pairs), "{report}");
        assert_eq!(report_on(&[("east", 3, 3), ("west", 3, 0)]), "");
    }

    /// Then neither gets a Peer of the other, which the plan reports.
    #[test]
    fn two_clusters_that_both_are_mostly_behind_nat_have_no_pairs() {
        assert_eq!(report_on(&[("east", 3, 2), ("west", 3, 3)]), "");
    }
}
