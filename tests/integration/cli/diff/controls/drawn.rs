//! Any controls and any edits: an edit that opens a path that old controls forbid is found, and one that only adds
//! clusters, nodes or stricter controls is not. Which paths are open is asked of `trace`.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use super::*;

/// The clusters of the first version, by the second number of their pods.
const ORIGINS: [u8; 4] = [1, 2, 3, 4];

/// A cluster to which all are linked, so that none is cut off.
const HUB: u8 = 7;

/// A cluster that joins later.
const JOINING: u8 = 9;

/// The pods of a node of an origin, and those of another one.
type Path = [(u8, usize); 2];

/// Two origins.
type Pair = (u8, u8);

/// A fleet and its controls. Clusters are named by their origin, under which they may have any name or be split.
#[derive(Clone, Debug)]
struct Model {
    /// The nodes of each origin: the version of the key of each.
    nodes: BTreeMap<u8, Vec<u8>>,
    /// The names of the parts of each origin.
    names: BTreeMap<u8, Vec<String>>,
    links: BTreeSet<Pair>,
    denied: BTreeSet<Pair>,
    denies_undeclared: bool,
    /// The origins whose ranges each accepts.
    accepted: BTreeMap<u8, BTreeSet<u8>>,
    /// The origins that the policy of each accepts.
    policies: BTreeMap<u8, BTreeSet<u8>>,
    /// Whether the expectations are where the config finds them.
    are_found: bool,
}

#[derive(Clone, Copy, Debug)]
enum Edit {
    DropExpectations,
    MoveExpectations,
    DropDenial(usize),
    DropUndeclared,
    DropAccepted(u8),
    DropPolicy(u8),
    Accept(u8, u8),
    Link(u8, u8),
    Unlink(u8, u8),
    Rename(u8, bool),
    Split(u8, bool),
    AddNode(u8),
    AddCluster(u8),
    Deny(u8, u8),
    Narrow(u8, u8),
}

fn members() -> impl Iterator<Item = u8> {
    ORIGINS.into_iter().chain([HUB])
}

fn origin() -> impl Strategy<Value = u8> {
    select(ORIGINS.to_vec())
}

fn subset() -> impl Strategy<Value = BTreeSet<u8>> {
    let others = proptest::collection::btree_set(origin(), 0..4);
    others.prop_map(|others| others.into_iter().chain([HUB]).collect())
}

fn pairs(most: usize) -> impl Strategy<Value = BTreeSet<Pair>> {
    let pairs = proptest::collection::btree_set((origin(), origin()), 1..most);
    pairs.prop_map(|it| it.into_iter().filter(|(one, other)| one != other).collect())
}

fn model() -> impl Strategy<Value = Model> {
    let limits = || proptest::collection::btree_map(origin(), subset(), 0..2);
    (pairs(5), pairs(5), any::<bool>(), limits(), limits()).prop_map(
        |(mut links, denied, denies_undeclared, accepted, policies)| {
            links.extend(ORIGINS.map(|it| (HUB, it)));
            Model {
                nodes: members().map(|it| (it, vec![0, 0])).collect(),
                names: members().map(|it| (it, vec![format!("c{it}")])).collect(),
                links,
                denied,
                denies_undeclared,
                accepted,
                policies,
                are_found: true,
            }
        },
    )
}

fn any_edit() -> impl Strategy<Value = Edit> {
    let two = || (origin(), origin());
    let of_files = prop_oneof![
        Just(Edit::DropExpectations),
        Just(Edit::MoveExpectations),
        (0..4usize).prop_map(Edit::DropDenial),
        Just(Edit::DropUndeclared),
        origin().prop_map(Edit::DropAccepted),
        origin().prop_map(Edit::DropPolicy),
        two().prop_map(|(one, other)| Edit::Accept(one, other)),
    ];
    prop_oneof![
        7 => of_files,
        3 => two().prop_map(|(one, other)| Edit::Link(one, other)),
        1 => two().prop_map(|(one, other)| Edit::Unlink(one, other)),
        2 => (origin(), any::<bool>()).prop_map(|(it, new)| Edit::Rename(it, new)),
        2 => (origin(), any::<bool>()).prop_map(|(it, new)| Edit::Split(it, new)),
        2 => adding(),
    ]
}

fn adding() -> impl Strategy<Value = Edit> {
    let two = || (origin(), origin());
    prop_oneof![
        origin().prop_map(Edit::AddNode),
        origin().prop_map(Edit::AddCluster),
        two().prop_map(|(one, other)| Edit::Deny(one, other)),
        two().prop_map(|(one, other)| Edit::Narrow(one, other)),
    ]
}

impl Edit {
    fn apply(self, model: &mut Model) {
        let accept = |all: &mut BTreeMap<u8, BTreeSet<u8>>, one, other| {
            all.get_mut(&one).map(|it| it.insert(other))
        };
        match self {
            Self::DropExpectations => {
                model.denied.clear();
                model.denies_undeclared = false;
            }
            Self::MoveExpectations => model.are_found = false,
            Self::DropDenial(place) => {
                let gone = model.denied.iter().nth(place).copied();
                model.denied.retain(|it| Some(*it) != gone);
            }
            Self::DropUndeclared => model.denies_undeclared = false,
            Self::DropAccepted(it) => drop(model.accepted.remove(&it)),
            Self::DropPolicy(it) => drop(model.policies.remove(&it)),
            Self::Accept(one, other) => {
                accept(&mut model.accepted, one, other);
                accept(&mut model.policies, one, other);
            }
            Self::Link(one, other) if one != other => drop(model.links.insert((one, other))),
            Self::Unlink(one, other) => {
                model.links.retain(|it| ![(one, other), (other, one)].contains(it));
            }
            Self::Rename(it, is_anew) => {
                model.names.insert(it, vec![format!("r{it}")]);
                model.renew(it, is_anew);
            }
            Self::Split(it, is_anew) => {
                model.names.insert(it, vec![format!("a{it}"), format!("b{it}")]);
                model.renew(it, is_anew);
            }
            Self::AddNode(it) => model.nodes.entry(it).or_default().push(0),
            Self::AddCluster(it) => {
                model.nodes.entry(JOINING).or_insert_with(|| vec![0]);
                model.names.entry(JOINING).or_insert_with(|| vec![format!("c{JOINING}")]);
                model.links.extend([(JOINING, it), (HUB, JOINING)]);
            }
            Self::Deny(one, other) if one != other => drop(model.denied.insert((one, other))),
            Self::Narrow(one, other) => {
                if let Some(accepted) = model.accepted.get_mut(&one) {
                    accepted.remove(&other);
                }
                if let Some(policy) = model.policies.get_mut(&one) {
                    policy.remove(&other);
                }
            }
            Self::Link(..) | Self::Deny(..) => {}
        }
    }
}

impl Model {
    fn renew(&mut self, origin: u8, is_anew: bool) {
        if is_anew {
            self.nodes.entry(origin).or_default().iter_mut().for_each(|it| *it += 1);
        }
    }

    fn has(&self, one: u8, other: u8) -> bool {
        self.links.contains(&(one, other)) || self.links.contains(&(other, one))
    }

    /// Returns whether its controls forbid paths, where `new` has the links.
    fn forbids(&self, from: u8, to: u8, new: &Self) -> bool {
        let refuses = |limits: &BTreeMap<u8, BTreeSet<u8>>, one: u8, other: u8| {
            limits.get(&one).is_some_and(|it| !it.contains(&other))
        };
        let limits = [&self.accepted, &self.policies];
        self.denied.contains(&(from, to))
            || self.denies_undeclared && !new.has(from, to)
            || limits.iter().any(|it| refuses(it, from, to) || refuses(it, to, from))
    }

    /// Returns the part of an origin in which a node is, and the names of all parts.
    fn part(&self, origin: u8, node: usize) -> &str {
        let names = &self.names[&origin];
        &names[node % names.len()]
    }

    fn list(&self, origins: impl IntoIterator<Item = u8>) -> String {
        let names = origins.into_iter().filter_map(|it| self.names.get(&it)).flatten();
        names.cloned().collect::<Vec<_>>().join(", ")
    }

    fn write(&self, folder: &Folder) {
        for path in ["policies", "snapshots", "rendered"] {
            let _ = fs::remove_dir_all(folder.path(path));
        }
        for path in ["expectations.yaml", "moved.yaml"] {
            let _ = fs::remove_file(folder.path(path));
        }
        folder.write("mesh.yaml", self.mesh());
        for (origin, nodes) in &self.nodes {
            for name in &self.names[origin] {
                let all = nodes.iter().enumerate();
                let own = all.filter(|it| self.part(*origin, it.0) == name);
                let nodes = own.map(|(number, version)| {
                    numbered_node(*origin, number, *version, self.names[origin].len())
                });
                folder.keep(name, &nodes.collect::<Vec<_>>());
            }
        }
        let path = if self.are_found { "expectations.yaml" } else { "moved.yaml" };
        folder.write(path, self.expectations());
        for (origin, accepted) in &self.policies {
            let accepted = self.list(accepted.iter().copied());
            for name in &self.names[origin] {
                folder.write(
                    &format!("policies/{name}.yaml"),
                    format!(
                        "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec: {{ acceptedClusters: [{accepted}] }}\n"
                    ),
                );
            }
        }
    }

    fn mesh(&self) -> String {
        let mut links = Vec::new();
        for (one, other) in &self.links {
            for one in &self.names[one] {
                for other in &self.names[other] {
                    let link = (one.min(other), one.max(other));
                    links.push(format!("[{}, {}]", link.0, link.1));
                }
            }
        }
        links.sort();
        links.dedup();
        let mut text = format!(
            "apiVersion: kilo.squat.ai/v1alpha1\nkind: ClusterMesh\nmetadata: {{ name: m }}\nspec:\n  topology: {{ mode: \
             Links, links: [{}] }}\n  clusters:\n",
            links.join(", ")
        );
        for (origin, nodes) in &self.nodes {
            let names = &self.names[origin];
            for (part, name) in names.iter().enumerate() {
                let pods = (0..nodes.len()).filter(|it| self.part(*origin, *it) == name);
                let pods = pods.map(|it| format!("10.{origin}.{it}.0/24"));
                let pods: Vec<String> = match names.len() {
                    1 => vec![format!("10.{origin}.0.0/16")],
                    _ => pods.collect(),
                };
                let _ = write!(
                    text,
                    "    - {{ name: {name}, granularity: Full, podCIDRs: [{}], wireguardCIDR: 10.{}.{part}.0/24",
                    pods.join(", "),
                    100 + origin
                );
                if let Some(accepted) = self.accepted.get(origin) {
                    let ranges =
                        accepted.iter().map(|it| format!("10.{it}.0.0/16, 10.{}.0.0/16", 100 + it));
                    let _ = write!(
                        text,
                        ", acceptedNetworks: [{}]",
                        ranges.collect::<Vec<_>>().join(", ")
                    );
                }
                text.push_str(" }\n");
            }
        }
        text
    }

    fn expectations(&self) -> String {
        let mut text = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n".to_owned();
        if self.denies_undeclared {
            text.push_str("  undeclared: Deny\n");
        }
        text.push_str("  expectations:\n");
        for (from, to) in &self.denied {
            let (one, other) = (self.list([*from]), self.list([*to]));
            let _ = writeln!(
                text,
                "  - {{ name: {from} to {to}, from: {{ clusters: [{one}] }}, to: {{ clusters: [{other}] }}, expect: Deny }}"
            );
        }
        if self.denied.is_empty() {
            text = text.replace("  expectations:\n", "  expectations: []\n");
        }
        text
    }

    /// Returns the pods of two origins between which packets arrive, by their numbers: nothing if the mesh is wrong.
    fn open(&self, folder: &Folder) -> Option<BTreeSet<Path>> {
        self.write(folder);
        if folder.run(&["render"]).code != 0 {
            return None;
        }
        let nodes = self.nodes.iter();
        let nodes = nodes.flat_map(|(it, nodes)| (0..nodes.len()).map(move |node| (*it, node)));
        let nodes: Vec<(u8, usize)> = nodes.collect();
        let both = nodes.iter().flat_map(|one| nodes.iter().map(move |other| [*one, *other]));
        let both: Vec<Path> = both.filter(|[one, other]| one.0 != other.0).collect();
        let ends = |(origin, node): (u8, usize)| {
            format!("{}/10.{origin}.{node}.1", self.part(origin, node))
        };
        let input = both.iter().map(|[from, to]| format!("{} {}\n", ends(*from), ends(*to)));
        let run = folder.run_with_input(&["trace", "--batch"], input.collect::<String>());
        let lines = run.stdout.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
        let delivered = lines.filter(|it| it["verdict"] == "delivered");
        let open = delivered.map(|it| {
            let line = usize::try_from(it["line"].as_u64().unwrap()).unwrap();
            both[line - 1]
        });
        Some(open.collect())
    }
}

/// A node with a key for each version.
fn numbered_node(origin: u8, number: usize, version: u8, parts: usize) -> Value {
    let part = number % parts;
    let number = u8::try_from(number).unwrap();
    let mut node = node(origin, 1 + number);
    let mut key = [1; 32];
    key[..3].copy_from_slice(&[version, origin, number]);
    node["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode(key));
    node["podCIDRs"] = json!([format!("10.{origin}.{number}.0/24")]);
    // The parts of a cluster that is split have a subnet each.
    node["annotations"]["kilo.squat.ai/wireguard-ip"] =
        json!(format!("10.{}.{part}.{}/24", 100 + origin, 1 + number));
    node
}

/// Applies edits, and returns whether `diff` calls the result weaker, with a path that is forbidden and opens.
fn judged(model: &Model, edits: &[Edit]) -> Option<(bool, Option<Path>, String)> {
    let folder = Folder::empty();
    let before = model.open(&folder)?;
    let repository = Repository::of(folder);
    repository.commit();
    let mut edited = model.clone();
    for edit in edits {
        edit.apply(&mut edited);
    }
    let after = edited.open(&repository.folder)?;
    let was = |it: &Path| {
        it.iter().all(|(origin, node)| model.nodes.get(origin).is_some_and(|it| *node < it.len()))
    };
    let mut cells = before.iter().map(|it| (it[0].0, it[1].0));
    let opened = after.iter().find(|it| {
        let (from, to) = (it[0].0, it[1].0);
        let is_new =
            if was(it) { !before.contains(*it) } else { !cells.clone().any(|it| it == (from, to)) };
        is_new && model.forbids(from, to, &edited)
    });
    let _ = cells.next();
    let run = repository.diff(&["--fail-on-weaker"]);
    assert!(run.code < 2, "{}", run.stderr);
    Some((run.code == 1, opened.copied(), run.stdout))
}

/// Checks a rule with random values until enough of them matter to it.
fn holds<S: Strategy>(values: &S, is_enough: usize, rule: impl Fn(S::Value) -> Option<bool>) {
    let config = ProptestConfig {
        cases: 24,
        max_shrink_iters: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let counted = Cell::new(0);
    // Each round draws its own values, and the same ones for the same seed. A runner itself runs no second round.
    let mut rounds = TestRunner::new(config.clone());
    for _ in 0..8 {
        let mut runner = TestRunner::new_with_rng(config.clone(), rounds.new_rng());
        let run = runner.run(values, |value| {
            let matters = rule(value) == Some(true);
            counted.set(counted.get() + usize::from(matters));
            Ok(())
        });
        run.unwrap();
        if is_enough <= counted.get() {
            return;
        }
    }
    panic!("only {} cases matter", counted.get());
}

#[test]
fn a_forbidden_path_that_opens_is_found() {
    let edits = proptest::collection::vec(any_edit(), 2..6);
    holds(&(model(), edits), 3, |(model, edits)| {
        let (is_weaker, opened, text) = judged(&model, &edits)?;
        assert!(is_weaker || opened.is_none(), "{opened:?} {edits:?}\n{text}");
        if let (Some([from, to]), false) =
            (opened, edits.iter().any(|it| matches!(it, Edit::AddCluster(_))))
        {
            assert!(text.contains("no longer kept"), "{from:?} {to:?} {edits:?}\n{text}");
        }
        Some(opened.is_some())
    });
}

#[test]
fn additions_are_not_weaker() {
    let edits = proptest::collection::vec(adding(), 1..4);
    holds(&(model(), edits), 10, |(model, edits)| {
        let (is_weaker, _, text) = judged(&model, &edits)?;
        assert!(!is_weaker, "{edits:?}\n{text}");
        Some(true)
    });
}
