//! Properties of every mesh, for any claims of its nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use clustermesh::config::Limits;
use clustermesh::diagnostic::Finding;
use clustermesh::document::Source;
use clustermesh::fleet::{Fleet, Member, external_snapshots};
use clustermesh::granularity::Granularity;
use clustermesh::kilo::cluster::ClusterNode;
use clustermesh::kilo::peer::Translation;
use clustermesh::manifest::{self, Kustomization, Tree};
use clustermesh::membership::{LocalNode, PeerCandidate};
use clustermesh::name::ClusterName;
use clustermesh::net::{self, Cidr};
use clustermesh::place::Place;
use clustermesh::plan::{self, Plan};
use clustermesh::policy::{self, Policy};
use clustermesh::rules;
use clustermesh::rules::verified::unproved_nodes::unproved_nodes;
use clustermesh::tree_diff::{ChangedContent, ChangedFile, Loss, changes};
use proptest::prelude::*;
use proptest::sample::Index;
use serde::Deserialize as _;

use crate::support::{Snapshots, meshes, snapshots};

use world::{Claims, EXTERNALS, World, claims, key, mesh, mesh_of, name, node, world};

mod admission;
mod anchors;
mod changes;
mod external;
mod families;
mod node_claims;
mod one_node;
mod proposal;
mod reach;
mod world;

fn render(world: &World) -> Tree {
    render_meshes(world, &mesh(world))
}

/// Renders also the WireGuard of each external peer, as the folder of a cluster.
fn render_all(world: &World) -> Tree {
    in_fleet(world, &mesh(world), |_, plan| tree_of_all(plan))
}

fn tree_of_all(plan: &Plan) -> Tree {
    let mut tree = manifest::tree(plan).unwrap();
    for external in &plan.externals {
        for set in plan.sets_of(external) {
            let path = format!("{}/{}", external.cluster, manifest::file(set));
            tree.insert(path, manifest::text(set));
        }
    }
    tree
}

/// Renders other meshes of the same clusters.
fn render_meshes(world: &World, yaml: &str) -> Tree {
    in_fleet(world, yaml, |_, plan| manifest::tree(plan).unwrap())
}

/// Hands out the fleet of a world and what is planned for it.
fn in_fleet<T>(world: &World, yaml: &str, look: impl FnOnce(&Fleet, &Plan) -> T) -> T {
    let names: Vec<String> = (0..world.clusters.len()).map(name).collect();
    let nodes = names
        .iter()
        .zip(&world.clusters)
        .map(|(name, cluster)| (name.as_str(), cluster.nodes.iter().map(node).collect()))
        .collect();
    let (mut meshes, mut snapshots): (_, Snapshots) = (meshes(yaml), snapshots(nodes));
    snapshots.extend(external_snapshots(&meshes));
    policy::apply(&policies(world), &mut meshes, true);
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    let plan = plan::plan(&fleet).unwrap();
    // Every cut has a message.
    let findings = rules::findings(&fleet, Some(&plan));
    assert!(findings.iter().all(|it| !it.message.shown().contains('\u{1b}')));
    look(&fleet, &plan)
}

/// Returns the world with other claims of one node of a cluster.
fn attacked(world: &World, cluster: usize, (victim, claims): (Index, Claims)) -> World {
    let mut world = world.clone();
    let nodes = &mut world.clusters[cluster].nodes;
    match nodes.len() {
        0 => nodes.push(claims),
        count => {
            let position = victim.index(count);
            let name = nodes[position].name.clone();
            nodes[position] = Claims { name, ..claims };
        }
    }
    world
}

/// Returns what a render over a tree would take away that only a person may want.
fn losses(before: &Tree, plan: &Plan) -> Vec<Loss> {
    let after = manifest::tree(plan).unwrap();
    let (same, old): (Vec<_>, Vec<_>) =
        before.iter().partition(|(path, text)| after.get(*path) == Some(text));
    let same = same.into_iter().map(|(path, _)| path.clone()).collect();
    let old: Vec<ChangedFile> = old
        .into_iter()
        .map(|(path, text)| ChangedFile {
            path: path.clone(),
            source: path.as_str().into(),
            is_stale: !after.contains_key(path),
            content: if is_kustomization(path) {
                ChangedContent::Kustomization(Kustomization::read(text).unwrap())
            } else {
                ChangedContent::Peers(Arc::new(manifest::reading(text)))
            },
        })
        .collect();
    changes(plan, &old, &same, &Limits::default()).losses
}

/// The policies of clusters, with the ranges that they accept.
fn policies(world: &World) -> Vec<Policy> {
    let clusters = world.clusters.iter().enumerate();
    let policies = clusters.filter_map(|(i, cluster)| {
        let accepted = cluster.accepted[1].as_ref()?;
        let text = format!(
            "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: {{ acceptedNetworks: {accepted:?} }}\n"
        );
        let source = Source::parse("policy.yaml", text).unwrap();
        Some(policy::read(&name(i).parse().unwrap(), &source).unwrap())
    });
    policies.collect()
}

/// A Peer as read by the tool that applies it.
fn peers(text: &str) -> Vec<serde_json::Value> {
    serde_yaml::Deserializer::from_str(text)
        .map(|document| serde_json::Value::deserialize(document).unwrap())
        .collect()
}

/// A node of which `verify` proves no path has a finding of `validate` with the reason. One about the leader of a location
/// is about the location.
fn reasons_are_findings(fleet: &Fleet, plan: &Plan) -> Result<(), TestCaseError> {
    let findings = rules::findings(fleet, Some(plan));
    for unproved in unproved_nodes(fleet, Some(plan)) {
        let member = unproved.member;
        for unproved in &unproved.nodes {
            let rule = unproved.rule();
            let own = member.cluster.node(&unproved.node.name).unwrap();
            let are_meant = |other: &&ClusterNode| {
                let is_beside = other.kilo.location == own.kilo.location;
                other.node.name == own.node.name || rule.name() == "uncertain-leader" && is_beside
            };
            let meant = member.cluster.nodes.iter().filter(are_meant);
            let meant: Vec<Place> = meant.map(|it| member.place(it.node)).collect();
            let is_about = |it: &&Finding| {
                let is_of_cluster = it.cluster.as_deref() == Some(member.entry.name.as_str());
                let is_named = is_of_cluster && it.node.as_ref() == Some(&own.node.name);
                let mut places = it.labels.iter().map(|it| &it.place);
                let is_at = places.any(|place| meant.iter().any(|it| is_within(place, it)));
                // It is about all nodes without an endpoint, or about what the mesh declares of all nodes.
                let is_of_all = is_of_cluster
                    && ["no-initiator", "contradicted-declaration"].contains(&rule.name());
                it.rule == rule && (is_named || is_at || is_of_all)
            };
            prop_assert!(
                findings.iter().any(|it| is_about(&it)),
                "{} of {}: {} ({}) {:#?}",
                own.node.name,
                member.entry.name,
                rule.name(),
                unproved.reason(),
                findings
                    .iter()
                    .map(|it| format!("{}: {}", it.rule.name(), it.message.shown()))
                    .collect::<Vec<_>>()
            );
        }
    }
    Ok(())
}

fn is_within(place: &Place, node: &Place) -> bool {
    let pointer = format!("{}/", node.pointer);
    place.source == node.source && place.pointer.to_string().starts_with(&pointer)
}

/// What one target gets of one source.
fn given(tree: &Tree, target: usize, source: usize) -> Vec<serde_json::Value> {
    let path = format!("{}/world--{}.yaml", name(target), name(source));
    tree.get(&path).map(|text| peers(text)).unwrap_or_default()
}

fn ranges(peer: &serde_json::Value) -> Vec<Cidr> {
    let allowed = peer["spec"]["allowedIPs"].as_array().unwrap().iter();
    allowed.map(|it| it.as_str().unwrap().parse().unwrap()).collect()
}

fn endpoint(peer: &serde_json::Value) -> Option<IpAddr> {
    let address = &peer["spec"]["endpoint"]["dnsOrIP"]["ip"];
    Some(address.as_str()?.parse().unwrap())
}

/// Everything that one target may route into tunnels, with its source.
fn routed(tree: &Tree, world: &World, target: usize) -> Vec<(usize, Cidr)> {
    let sources = world.members();
    let routed = sources.flat_map(|source| {
        let peers = given(tree, target, source).into_iter();
        peers.flat_map(move |peer| ranges(&peer).into_iter().map(move |it| (source, it)))
    });
    routed.collect()
}

/// Whether this many nodes of a cluster are sufficient to determine its LAN.
fn is_lan(member: &Member, standing: &[&LocalNode]) -> bool {
    let local_nodes = &member.membership.local_nodes;
    let of = |location: &str, local_nodes: &mut dyn Iterator<Item = &LocalNode>| {
        local_nodes.filter(|it| it.location == location).count()
    };
    let is_most = |it: &&LocalNode| {
        let here = of(&it.location, &mut standing.iter().copied());
        2 <= here && of(&it.location, &mut local_nodes.iter()) < 2 * here
    };
    match member.cluster.granularity {
        _ if local_nodes.len() == 1 => !standing.is_empty(),
        Granularity::Full => 2 <= standing.len(),
        Granularity::Location | Granularity::Cross => standing.iter().any(is_most),
    }
}

fn member<'f>(fleet: &'f Fleet<'f>, i: usize) -> &'f Member<'f> {
    let cluster = ClusterName::of_member(&name(i)).unwrap();
    let mut members = fleet.members().iter();
    members.find(|it| it.entry.name == cluster).unwrap()
}

fn is_kustomization(path: &str) -> bool {
    path.ends_with("/kustomization.yaml")
}

/// Returns the rank of a cluster's index: external peers come first, as people write all of them, and then a hub.
fn rank(world: &World, i: usize) -> (bool, bool, usize) {
    (i < EXTERNALS, !world.topology.contains(&format!("[{}]", name(i))), i)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn same_input_gives_same_bytes_in_any_order_of_nodes(world in world()) {
        let mut reversed = world.clone();
        for cluster in &mut reversed.clusters {
            cluster.nodes.reverse();
        }
        prop_assert_eq!(render_all(&world), render_all(&reversed));
    }

    #[test]
    fn the_order_of_documents_changes_only_who_keeps_what_is_contested(world in world()) {
        let mut world = world;
        // A key of its own for every node, so that nothing follows rank.
        for (i, cluster) in world.clusters.iter_mut().enumerate() {
            for (position, node) in cluster.nodes.iter_mut().enumerate() {
                node.key = node.key.map(|_| 50 + 10 * i + position);
                // And a place of its own.
                node.endpoint = Some(format!("198.51.{i}.{position}:51820"));
                node.kilo_endpoint = None;
                node.internal = Some(format!("192.168.{i}.{position}/24"));
                node.addresses = Vec::new();
            }
        }
        let full = "{ mode: FullMesh }";
        let documents: Vec<String> = (1..world.clusters.len())
            .map(|i| mesh_of(&format!("mesh{i}"), full, &world, &[0, i]))
            .collect();
        let mut reversed = documents.clone();
        reversed.reverse();
        prop_assert_eq!(
            render_meshes(&world, &documents.join("---\n")),
            render_meshes(&world, &reversed.join("---\n"))
        );
    }

    #[test]
    fn nothing_is_given_away_that_was_not_declared_and_accepted_and_nothing_twice(world in world()) {
        let tree = render_all(&world);
        let read = |texts: &[String]| -> Vec<Cidr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        for target in world.members() {
            let accepted: Vec<Vec<Cidr>> = world.accepted(target).iter().map(|it| read(it)).collect();
            let (mut keys, mut cidrs) = (BTreeSet::new(), BTreeSet::new());
            for source in world.members() {
                let lists: Vec<Vec<Cidr>> = accepted.iter().cloned().chain([read(&world.declared(source))]).collect();
                for peer in given(&tree, target, source) {
                    prop_assert_eq!(Translation::of_manifest(&peer["spec"]).err(), None);
                    let allowed = ranges(&peer);
                    prop_assert!(!allowed.is_empty());
                    for (cidr, text) in allowed.iter().zip(peer["spec"]["allowedIPs"].as_array().unwrap()) {
                        prop_assert_eq!(&cidr.to_string(), text.as_str().unwrap());
                        let is_in = |list: &Vec<Cidr>| list.iter().any(|it| it.contains(*cidr));
                        prop_assert!(lists.iter().all(is_in), "{} of {} in {}", cidr, name(source), name(target));
                        prop_assert!(cidrs.insert(*cidr), "{} twice in {}", cidr, name(target));
                    }
                    let key = peer["spec"]["publicKey"].as_str().unwrap().to_owned();
                    prop_assert!(keys.insert(key), "a key twice in {}", name(target));
                }
            }
        }
    }

    /// Merged ranges have exactly the addresses of those that they replace, in every Peer of every target.
    #[test]
    fn merged_ranges_have_the_same_addresses(world in world()) {
        let rendered = |advertise| {
            let mut world = world.clone();
            for cluster in &mut world.clusters {
                cluster.advertise = advertise;
            }
            render_all(&world)
        };
        let (merged, single) = (rendered(Some("{ podCIDRs: Merged }")), rendered(None));
        for target in world.members() {
            for source in world.members() {
                let addresses = |tree| -> BTreeMap<String, Vec<Cidr>> {
                    let peers = given(tree, target, source).into_iter();
                    let key = |peer: &serde_json::Value| peer["spec"]["publicKey"].to_string();
                    peers.map(|peer| (key(&peer), net::merged(ranges(&peer)))).collect()
                };
                prop_assert_eq!(addresses(&merged), addresses(&single));
            }
        }
    }

    #[test]
    fn no_tunnel_has_to_go_through_one(world in world()) {
        in_fleet(&world, &mesh(&world), |fleet, plan| {
            let tree = tree_of_all(plan);
            for target in world.members() {
                let routed = routed(&tree, &world, target);
                for source in world.members() {
                    let given = given(&tree, target, source);
                    let keys: BTreeSet<&str> = given.iter().filter_map(|it| it["spec"]["publicKey"].as_str()).collect();
                    // Behind NAT, where others see the node.
                    let candidates = &member(fleet, source).membership.candidates;
                    let peered = candidates.iter().filter(|it| keys.contains(it.key.to_string().as_str()));
                    let seen = peered.filter_map(PeerCandidate::outer_address);
                    for address in given.iter().filter_map(endpoint).chain(seen) {
                        let loops = routed.iter().find(|(_, range)| range.holds(address));
                        prop_assert!(loops.is_none(), "{} in {:?} in {}", address, loops, name(target));
                    }
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn every_reason_of_an_unproved_node_is_a_finding(world in world()) {
        in_fleet(&world, &mesh(&world), reasons_are_findings)?;
    }

    #[test]
    fn no_target_gets_a_peer_with_the_key_of_a_node_of_its_own(world in world()) {
        let tree = render(&world);
        for (target, cluster) in world.clusters.iter().enumerate() {
            let own: BTreeSet<String> = cluster.nodes.iter().filter_map(|it| Some(key(it.key?))).collect();
            for source in world.members() {
                for peer in given(&tree, target, source) {
                    let key = peer["spec"]["publicKey"].as_str().unwrap();
                    prop_assert!(!own.contains(key), "{} of {} in {}", key, name(source), name(target));
                }
            }
        }
    }

    #[test]
    fn no_target_loses_what_its_nodes_reach_by_themselves(world in world()) {
        in_fleet(&world, &mesh(&world), |fleet, plan| {
            let tree = manifest::tree(plan).unwrap();
            for target in 0..world.clusters.len() {
                let member = member(fleet, target);
                let local_nodes = &member.membership.local_nodes;
                let addresses = |home: &LocalNode| -> Vec<IpAddr> {
                    home.addresses.iter().chain(&home.endpoints).copied().collect()
                };
                for (source, range) in routed(&tree, &world, target) {
                    let subject = format!("{range} of {} in {}", name(source), name(target));
                    let standing: Vec<&LocalNode> = local_nodes.iter().filter(|it| it.networks.lan.is_some_and(|lan| lan.contains(range))).collect();
                    let hit = local_nodes.iter().filter(|it| addresses(it).iter().any(|it| range.holds(*it))).count();
                    // Only where cutting hosts out would take too many prefixes may one stay.
                    let declared: Vec<Cidr> = world.declared(source).iter().map(|it| it.parse().unwrap()).collect();
                    let whole = declared.into_iter().find(|it| it.contains(range)).unwrap();
                    let hosts: Vec<Cidr> = local_nodes.iter().flat_map(addresses).map(Cidr::host).collect();
                    let is_dear = 33 < whole.without(&hosts).len();
                    prop_assert!(is_dear || !is_lan(member, &standing), "LAN: {}", subject);
                    prop_assert!(hit == 0 || is_dear && 2 * hit <= local_nodes.len(), "address: {}", subject);
                    let mut local = member.entry.local_networks.iter();
                    prop_assert!(local.all(|it| !it.cidr.overlaps(range)), "local: {}", subject);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_node_changes_what_a_cluster_that_ranks_first_gives_to_others(
        world in world(),
        attacker in any::<Index>(),
        victim in any::<Index>(),
        claims in (0..4usize, 2..5usize).prop_flat_map(|(i, n)| claims(i, n, 0)),
    ) {
        let attacker = attacker.index(world.clusters.len());
        let attacked = attacked(&world, attacker, (victim, claims));
        let (before, after) = (render(&world), render(&attacked));
        for source in world.members() {
            if rank(&world, attacker) <= rank(&world, source) {
                continue;
            }
            let file = format!("/world--{}.yaml", name(source));
            let given = |tree: &Tree| -> Vec<(String, String)> {
                // Its own cluster may have nodes that are better off without.
                let own = format!("{}/", name(attacker));
                tree.iter()
                    .filter(|(path, _)| path.ends_with(&file) && !path.starts_with(&own))
                    .map(|(path, text)| (path.clone(), text.to_string()))
                    .collect()
            };
            prop_assert_eq!(given(&before), given(&after));
        }
    }

    #[test]
    fn no_node_stops_a_render(
        world in world(),
        attacker in any::<Index>(),
        victim in any::<Index>(),
        claims in (0..4usize, 2..5usize).prop_flat_map(|(i, n)| claims(i, n, 0)),
    ) {
        let attacker = attacker.index(world.clusters.len());
        let attacked = attacked(&world, attacker, (victim, claims));
        let before = render(&world);
        in_fleet(&attacked, &mesh(&attacked), |fleet, plan| {
            // The guards of its snapshot protect a cluster that has lost everything.
            let is_gone = member(fleet, attacker).membership.candidates.is_empty();
            let of_hosts: Vec<Cidr> = world.externals.iter().flat_map(|it| &it.ranges).map(|it| it.parse().unwrap()).collect();
            for loss in losses(&before, plan) {
                // If its nodes leave a LAN, a range of an external peer that the LAN kept away can reach its cluster, and endpoints
                // in this range are no longer dialled from there.
                if let Loss::Source { target, source, .. } = &loss
                    && *target == name(attacker)
                    && let Some(text) = before.get(&format!("{target}/world--{source}.yaml"))
                    && peers(text).iter().filter_map(endpoint).any(|it| of_hosts.iter().any(|range| range.holds(it)))
                {
                    continue;
                }
                let is_its_own = match &loss {
                    Loss::Source { source, .. } => *source == name(attacker),
                    Loss::EmptyTarget { target } => before
                        .keys()
                        .filter(|path| path.starts_with(&format!("{target}/")))
                        .all(|path| is_kustomization(path) || path.ends_with(&format!("--{}.yaml", name(attacker)))),
                    Loss::Target { .. }
                    | Loss::SilentSource { .. }
                    | Loss::RenamedMesh(_)
                    | Loss::Unrecorded { .. } => false,
                };
                prop_assert!(is_gone && is_its_own, "{:?}", loss);
            }
            Ok(())
        })?;
    }

    /// No range, no key and no endpoint of an external peer takes the place of anything.
    #[test]
    fn no_external_peer_takes_anything_from_others(world in world()) {
        let mut world = world;
        for (number, external) in world.externals.iter_mut().enumerate() {
            // No node claims these.
            external.rename(number + 5, 60 + number);
        }
        let with = render_all(&world);
        while let Some(left) = world.externals.pop() {
            let without = render_all(&world);
            for target in world.members() {
                for source in world.members() {
                    let before = given(&without, target, source);
                    prop_assert_eq!(before, given(&with, target, source), "{:?} of {} in {}", left, name(source), name(target));
                }
            }
        }
    }

    #[test]
    fn a_kustomization_names_what_is_beside_it(world in world()) {
        let tree = render(&world);
        for (path, text) in tree.iter().filter(|(path, _)| is_kustomization(path)) {
            let folder = path.split_once('/').unwrap().0;
            let beside: Vec<String> = tree
                .keys()
                .filter(|it| !is_kustomization(it))
                .filter_map(|it| it.strip_prefix(&format!("{folder}/")).map(str::to_owned))
                .collect();
            let value: serde_json::Value = peers(text).remove(0);
            let named: Vec<&str> = value["resources"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
            prop_assert_eq!(named, beside);
        }
    }
}
