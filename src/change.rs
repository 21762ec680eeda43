//! Changes: what a new tree takes away from the one that is there.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::manifest::{KUSTOMIZATION, SOURCE_LABEL};
use crate::plan::Plan;

/// Peers that a target would no longer have at all: how GitOps tears down a mesh.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Loss {
    /// A target would have no Peer, and its folder does not say so already.
    EmptyTarget {
        /// The target.
        target: String,
    },
    /// No mesh names the target any more.
    Target {
        /// The target.
        target: String,
        /// How many Peers its folder has.
        peers: usize,
    },
    /// A source would give the target nothing any more.
    Source {
        /// The target.
        target: String,
        /// The source.
        source: String,
        /// How many Peers it gives now.
        peers: usize,
    },
}

/// A file of ours that is there but no longer wanted.
pub struct Stale {
    /// Its path in the tree.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// What of a Peer tells where it leads.
#[derive(Deserialize)]
struct Document {
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    labels: Option<BTreeMap<String, String>>,
}

/// Returns what `plan` takes away, given the `stale` files and the paths that stay as they are.
pub fn losses(plan: &Plan, stale: &[Stale], same: &BTreeSet<String>) -> Vec<Loss> {
    let mut losses: BTreeSet<Loss> = plan
        .targets
        .iter()
        .filter(|target| target.blocks.is_empty())
        .map(|target| target.cluster.to_string())
        .filter(|target| !same.contains(&format!("{target}/{KUSTOMIZATION}")))
        .map(|target| Loss::EmptyTarget { target })
        .collect();
    for (target, sources) in lost_peers(stale) {
        let Some(planned) = plan.targets.iter().find(|it| it.cluster.as_str() == target) else {
            let peers = sources.values().sum();
            losses.insert(Loss::Target { target, peers });
            continue;
        };
        let given: BTreeSet<&str> = planned
            .blocks
            .iter()
            .filter_map(|&block| plan.blocks.get(block))
            .map(|block| block.source.as_str())
            .collect();
        losses.extend(
            sources
                .into_iter()
                .filter(|(source, peers)| 0 < *peers && !given.contains(source.as_str()))
                // Nodes must not be able to stop everybody's render by copying keys. But if keys
                // do not account for all that is lost, a person has a part in it.
                .filter(|(source, peers)| plan.outranked(source, &target) < *peers)
                .map(|(source, peers)| Loss::Source {
                    target: target.clone(),
                    source,
                    peers,
                }),
        );
    }
    losses.into_iter().collect()
}

/// Returns the Peers in stale files by target and source.
fn lost_peers(stale: &[Stale]) -> BTreeMap<String, BTreeMap<String, usize>> {
    let mut lost: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for Stale { path, text } in stale {
        let Some((target, file)) = path.split_once('/') else {
            continue;
        };
        let sources = lost.entry(target.to_owned()).or_default();
        if file == KUSTOMIZATION {
            continue;
        }
        let stem = file.strip_suffix(".yaml").unwrap_or(file);
        for source in sources_of(text, stem) {
            *sources.entry(source).or_default() += 1;
        }
    }
    lost
}

/// Returns the source of each Peer in a file; the file's own name where a Peer does not say.
fn sources_of(text: &str, stem: &str) -> Vec<String> {
    let mut sources = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let Ok(document) = Document::deserialize(document) else {
            // Behind a mistake the reader finds the same mistake again, without end.
            sources.push(stem.to_owned());
            break;
        };
        let label = document
            .metadata
            .and_then(|it| it.labels?.remove(SOURCE_LABEL));
        sources.push(label.unwrap_or_else(|| stem.to_owned()));
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Place;
    use crate::plan::{Cut, CutOff, Target};

    /// A plan for targets that get nothing.
    fn plan(targets: &[&str]) -> Plan {
        let targets = targets.iter().map(|target| Target {
            cluster: target.parse().unwrap(),
            blocks: Vec::new(),
        });
        Plan {
            blocks: Vec::new(),
            targets: targets.collect(),
            cuts: Vec::new(),
        }
    }

    fn stale(path: &str, text: &str) -> Stale {
        Stale {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    const PEERS: &str = "
metadata: { labels: { kilo-clustermesh.io/source-cluster: west } }
---
metadata: { labels: { kilo-clustermesh.io/source-cluster: west } }
";

    #[test]
    fn tells_sources_and_targets_that_lose_their_peers() {
        let stale = [
            stale("east/m--west.yaml", PEERS),
            stale("north/kustomization.yaml", "resources: []"),
            stale("north/m--west.yaml", PEERS),
        ];
        insta::assert_debug_snapshot!(losses(&plan(&["east"]), &stale, &BTreeSet::new()), @r#"
        [
            EmptyTarget {
                target: "east",
            },
            Target {
                target: "north",
                peers: 2,
            },
            Source {
                target: "east",
                source: "west",
                peers: 2,
            },
        ]
        "#);
    }

    #[test]
    fn copied_keys_excuse_as_many_peers_as_they_cost() {
        let place = Place::document(&"".into(), 0);
        let mut plan = plan(&["east"]);
        plan.cuts.push(Cut {
            target: "east".parse().unwrap(),
            source: "west".parse().unwrap(),
            what: CutOff::SharedKey {
                node: "a".parse().unwrap(),
                place: place.clone(),
                keeper: "north".parse().unwrap(),
                keeper_node: "b".parse().unwrap(),
                keeper_place: place,
            },
        });
        let same = BTreeSet::from(["east/kustomization.yaml".to_owned()]);
        let one = PEERS.split("---").next().unwrap();
        let lost = |text| losses(&plan, &[stale("east/m--west.yaml", text)], &same);
        assert_eq!(lost(one), []);
        assert!(matches!(&lost(PEERS)[..], [Loss::Source { peers: 2, .. }]));
    }

    #[test]
    fn a_target_that_was_emptied_before_may_stay_empty() {
        let same = BTreeSet::from(["east/kustomization.yaml".to_owned()]);
        assert_eq!(losses(&plan(&["east"]), &[], &same), []);
    }

    #[test]
    fn what_does_not_say_its_source_is_told_by_its_file() {
        let stale = [stale("east/m--west.yaml", "{ not: [a, Peer")];
        let same = BTreeSet::from(["east/kustomization.yaml".to_owned()]);
        let losses = losses(&plan(&["east"]), &stale, &same);
        assert!(matches!(&losses[..], [Loss::Source { source, .. }] if source == "m--west"));
    }
}
