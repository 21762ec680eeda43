//! Paths end only with nodes or addresses that the new version does not have.

use clustermesh::changes::NamedNode;

use super::sound::any_versions;
use super::*;

/// A path that worked between addresses that still exist works in the end if the change is graded brief or better. Addresses
/// of a node exist while any node of the cluster reports them, or while the node is there and left out.
#[test]
fn only_paths_to_ends_that_are_gone_end() {
    let (ended, cleaned) = (Cell::new(0), Cell::new(0));
    let is_enough = || 20 < ended.get() && 2 < cleaned.get();
    holds_for(&any_versions(), cases(), is_enough, |(before, after)| {
        let (before, after) = (Rendered::new(&before), Rendered::new(&after));
        let changes = compared(&before, &after);
        let present = Present::new(&after);
        for path in &changes.paths {
            let of_path = &path.ended;
            prop_assert_eq!(
                of_path.paths.is_empty(),
                of_path.left.is_empty() && of_path.moved.is_empty()
            );
            for node in &of_path.left {
                prop_assert!(!present.has_node(node), "{node:?}");
            }
            for node in &of_path.moved {
                prop_assert!(present.takes_part(node), "{node:?}");
            }
            ended.set(ended.get() + of_path.paths.all());
        }
        if Grade::Brief < changes.grade() {
            return Ok(());
        }
        if changes.grade() == Grade::Cleanup {
            cleaned.set(cleaned.get() + 1);
        }
        let (was, is) = (before.fabric(&before, |_| false), after.fabric(&after, |_| false));
        for path in paths(&was).iter().filter(|it| present.has_ends(it)) {
            prop_assert!(path.holds(&is), "{:?}: {path:?}", changes.grade());
        }
        Ok(())
    });
}

/// A path between two addresses, in any version.
#[derive(Debug)]
struct AddressPath {
    ends: [PathEnd; 2],
}

/// An address, and the node that has it in the old version, if one has.
#[derive(Debug)]
struct PathEnd {
    cluster: ClusterName,
    node: Option<String>,
    address: IpAddr,
}

/// Returns the paths that work between the first addresses of all blocks.
fn paths(fabric: &Fabric) -> Vec<AddressPath> {
    let ends = fabric.sites.numbered().flat_map(|(_, site)| {
        let blocks = address_blocks(site).into_iter();
        blocks.map(move |block| PathEnd {
            cluster: site.cluster.clone(),
            node: block.owner.node().map(|it| site.node(it).kilo.name.clone()),
            address: block.span.first_address(),
        })
    });
    let ends: Vec<PathEnd> = ends.collect();
    let copy = |it: &PathEnd| PathEnd {
        cluster: it.cluster.clone(),
        node: it.node.clone(),
        address: it.address,
    };
    let pairs = ends.iter().flat_map(|from| ends.iter().map(move |to| (from, to)));
    let paths = pairs.filter(|(from, to)| {
        from.cluster != to.cluster && from.address.is_ipv4() == to.address.is_ipv4()
    });
    let paths = paths.map(|(from, to)| AddressPath { ends: [copy(from), copy(to)] });
    paths.filter(|it| it.holds(fabric)).collect()
}

impl AddressPath {
    /// Follows a packet.
    fn holds(&self, fabric: &Fabric) -> bool {
        let [from, to] = &self.ends;
        let owner = |end: &PathEnd| {
            let site = fabric.site_named(end.cluster.as_str())?;
            Some((site, fabric.site(site).owner(end.address)?))
        };
        let (Some((sender, source)), Some((receiver, goal))) = (owner(from), owner(to)) else {
            return false;
        };
        let Some(node) = source.node() else {
            return false;
        };
        let trace = fabric.exchange(Packet {
            from: NodeRef { site: sender, node },
            source: from.address,
            to: goal.goal(receiver),
            destination: to.address,
            session: Session::New,
        });
        trace.ending().is_delivered()
    }
}

/// What the nodes of a version report.
struct Present<'r> {
    version: &'r Rendered,
    fleet: Fleet<'r>,
}

impl<'r> Present<'r> {
    fn new(version: &'r Rendered) -> Self {
        Self { version, fleet: Fleet::new(&version.meshes, &version.snapshots).unwrap() }
    }

    fn nodes(&self, cluster: &ClusterName) -> &[Node] {
        let file = self.version.snapshots.get(cluster);
        file.map_or(&[], |it| &it.snapshot.nodes)
    }

    fn has_node(&self, node: &NamedNode) -> bool {
        let mut nodes = self.nodes(&node.cluster).iter();
        nodes.any(|it| it.name == node.node)
    }

    /// Returns whether a node is there, and given to others.
    fn takes_part(&self, node: &NamedNode) -> bool {
        let mut members = self.fleet.memberships(&node.cluster);
        self.has_node(node) && members.all(|it| it.membership.usable.contains(&node.node))
    }

    fn has_ends(&self, path: &AddressPath) -> bool {
        path.ends.iter().all(|it| self.has(it))
    }

    /// Returns whether an end is there. A node that is left out is there with all of its old addresses.
    fn has(&self, end: &PathEnd) -> bool {
        let Some(node) = &end.node else {
            return true;
        };
        let node = NamedNode { cluster: end.cluster.clone(), node: node.clone() };
        let is_left_out = self.has_node(&node) && !self.takes_part(&node);
        let mut nodes = self.nodes(&end.cluster).iter();
        is_left_out || nodes.any(|it| reports(it, end.address))
    }
}

/// Returns whether a node reports an address as its own.
fn reports(node: &Node, address: IpAddr) -> bool {
    let ranges = node.pod_cidrs.iter();
    let mut ranges = ranges.filter_map(|it| it.parse::<Cidr>().ok());
    let annotations = ["internal-ip", "force-internal-ip", "wireguard-ip"];
    let mut annotated = annotations.iter().filter_map(|it| {
        let text = node.annotations.get(format!("kilo.squat.ai/{it}"))?;
        text.split('/').next()?.parse::<IpAddr>().ok()
    });
    let mut addresses = node.addresses.iter();
    ranges.any(|it| it.holds(address))
        || annotated.any(|it| it == address)
        || addresses.any(|it| it.address.parse() == Ok(address))
}
