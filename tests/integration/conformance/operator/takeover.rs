//! The operator's Peers, taken over: `diff --peers` finds no change, or names each one.
//!
//! All vectors are meshes of one repository, so that few runs compare all of them.

use std::fs;
use std::path::Path;

use super::*;
use crate::support::{Run, clustermesh};

/// Generations of the operator, by the form of their entries.
const GENERATIONS: [(&str, &[&str]); 2] =
    [("typed", &["t0", "t1", "t2", "t3"]), ("flat", &["f0", "f1", "f2"])];

/// A mesh with a source, as a vector has it, and a target.
struct Case {
    number: usize,
    entries: Vec<Value>,
    nodes: Vec<Value>,
    /// Peers that the operator gives to the target, by generation.
    theirs: BTreeMap<&'static str, BTreeMap<String, Value>>,
}

impl Case {
    fn new(number: usize, vector: &Vector, form: usize) -> Self {
        let (form, generations) = GENERATIONS[form];
        let input = vector.input();
        let nodes = input["nodes"].as_array().unwrap();
        let nodes: Vec<Value> = nodes.iter().map(rekeyed).collect();
        let mut source = with_domains(&input["source"][form], &nodes.iter().collect::<Vec<_>>());
        let old =
            format!("{}--{}--", input["mesh"].as_str().unwrap(), source["name"].as_str().unwrap());
        let new = format!("m{number}--source-{number}--");
        source["name"] = json!(format!("source-{number}"));
        if source["wireguardPort"] == 0 {
            source.as_object_mut().unwrap().remove("wireguardPort");
        }
        let theirs = generations.iter().map(|generation| {
            let peers = vector.result(generation)["peers"].as_array().unwrap();
            let named = |peer: &Value| {
                let mut peer = peer.clone();
                let name = peer["name"].as_str().unwrap().replacen(&old, &new, 1);
                let key = real_key(peer["spec"]["publicKey"].as_str().unwrap());
                peer["spec"]["publicKey"] = json!(key);
                (name, peer)
            };
            (*generation, peers.iter().map(named).collect())
        });
        let is_v6 = declared(&source).iter().all(|it| it.family() == Family::V6);
        let ranges =
            if is_v6 { ["3fff:1::/48", "3fff:2::/64"] } else { ["198.18.0.0/16", "198.19.0.0/24"] };
        let target = json!({
            "name": format!("target-{number}"),
            "podCIDRs": [ranges[0]],
            "wireguardCIDR": ranges[1],
        });
        Self { number, theirs: theirs.collect(), entries: vec![source, target], nodes }
    }

    /// Writes the mesh and the snapshots.
    fn write(&self, folder: &Path) {
        let number = self.number;
        let mesh = mesh_of(&json!(format!("m{number}")), &self.entries);
        fs::write(folder.join(format!("meshes/{number}.yaml")), mesh.to_string()).unwrap();
        let cluster = format!("source-{number}").parse().unwrap();
        let source = snapshot(&cluster, &self.nodes).to_json().unwrap();
        fs::write(folder.join(format!("snapshots/source-{number}.json")), source).unwrap();
        let cluster = format!("target-{number}").parse().unwrap();
        let range = |field: &Value| field.as_str().unwrap().parse::<Cidr>().unwrap();
        let node = json!({
            "name": "t",
            "podCIDRs": [range(&self.entries[1]["podCIDRs"][0]).to_string().replace("/16", "/24").replace("/48", "/64")],
            "annotations": {
                "kilo.squat.ai/force-endpoint": "203.0.113.200:51820",
                "kilo.squat.ai/key": real_key(&format!("target {number}")),
                "kilo.squat.ai/wireguard-ip":
                    self.entries[1]["wireguardCIDR"].as_str().unwrap().replace(".0/", ".1/").replace("::/", "::1/"),
            },
        });
        let target = snapshot(&cluster, &[node]).to_json().unwrap();
        fs::write(folder.join(format!("snapshots/target-{number}.json")), target).unwrap();
    }

    /// Writes what the operator's target has in a generation.
    fn write_peers(&self, generation: &str, path: &Path) {
        let items = self.theirs[generation].iter().map(|(name, peer)| {
            let metadata = json!({ "labels": peer["labels"], "name": name });
            json!({
                "apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer",
                "metadata": metadata, "spec": peer["spec"],
            })
        });
        let items: Vec<Value> = items.collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
        fs::write(path, list.to_string()).unwrap();
    }

    /// Returns the rendered Peers of the target.
    fn ours(&self, folder: &Path) -> BTreeMap<String, Value> {
        let number = self.number;
        let path = format!("rendered/target-{number}/m{number}--source-{number}.yaml");
        let text = fs::read_to_string(folder.join(path)).unwrap_or_default();
        let documents = serde_yaml::Deserializer::from_str(&text);
        let values = documents.map(|it| Value::deserialize(it).unwrap());
        let peers = values.filter(|it| it["kind"] == "Peer");
        let named = peers.map(|it| (it["metadata"]["name"].as_str().unwrap().to_owned(), it));
        named.collect()
    }
}

/// Returns the change of each Peer that has to be named.
fn expected(
    theirs: &BTreeMap<String, Value>,
    ours: &BTreeMap<String, Value>,
) -> BTreeMap<String, &'static str> {
    let names = theirs.keys().chain(ours.keys());
    let changes = names.filter_map(|name| {
        let change = match (theirs.get(name), ours.get(name)) {
            (Some(_), None) => "removed",
            (None, Some(_)) => "added",
            (Some(old), Some(new)) if old["spec"] != new["spec"] => "changed",
            _ => return None,
        };
        Some((name.clone(), change))
    });
    changes.collect()
}

/// Fails unless there is a cure for each Peer that goes while another one with its key stays.
fn assert_cured(
    theirs: &BTreeMap<String, Value>,
    wanted: &BTreeMap<String, &str>,
    target: Option<&Value>,
) {
    let removed = wanted.iter().filter(|(_, change)| **change == "removed");
    for (gone, _) in removed {
        let key = &theirs[gone]["spec"]["publicKey"];
        let stays = |name: &String| wanted.get(name) != Some(&"removed");
        let mut others = theirs.iter().filter(|(name, _)| stays(name));
        let Some((other, _)) = others.find(|(_, peer)| peer["spec"]["publicKey"] == *key) else {
            continue;
        };
        let moves = target.unwrap()["keyMoves"].as_array().unwrap();
        let with_both = |it: &&Value| {
            let peers = texts(&it["peers"]);
            peers.contains(&&**gone) && peers.contains(&&**other)
        };
        let found = moves.iter().find(with_both);
        assert!(found.is_some_and(|it| it["help"].is_string()), "{gone}: {moves:#?}");
    }
}

fn must(run: Run) -> Run {
    assert_eq!(run.code, 0, "{}", run.stderr);
    run
}

#[test]
fn the_operator_s_peers_are_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["meshes", "snapshots", "peers"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let vectors = vectors();
    // The hash in a long name is that of its mesh and cluster, which have other names here.
    let usable =
        vectors.iter().filter(|it| it.0["group"] == "peers" && it.id() != "peer/long-node-name");
    let pairs = usable.flat_map(|vector| [(vector, 0), (vector, 1)]);
    let cases: Vec<(&Vector, Case)> = pairs
        .enumerate()
        .map(|(number, (vector, form))| (vector, Case::new(number, vector, form)))
        .collect();
    for (_, case) in &cases {
        case.write(folder);
    }
    let render = clustermesh(folder, &["render", "--allow-empty", "*"]);
    assert_eq!(render.code, 0, "{}", render.stderr);
    let mut unchanged = BTreeMap::new();
    for (form, (_, generations)) in GENERATIONS.iter().enumerate() {
        for generation in *generations {
            let of_form = cases.iter().skip(form).step_by(2);
            let mut arguments = vec!["diff".to_owned(), "--output=json".to_owned()];
            for (_, case) in of_form.clone() {
                let path = folder.join(format!("peers/{}.json", case.number));
                case.write_peers(generation, &path);
                arguments.push(format!("--peers=target-{0}=peers/{0}.json", case.number));
            }
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let run = must(clustermesh(folder, &arguments));
            let changes = run.json();
            for (vector, case) in of_form {
                let name = format!("target-{}", case.number);
                let targets = changes["targets"].as_array().unwrap();
                let target = targets.iter().find(|it| it["cluster"] == *name);
                let named = target.into_iter().flat_map(|it| it["peers"].as_array().unwrap());
                let named: BTreeMap<String, &str> = named
                    .map(|it| {
                        (it["name"].as_str().unwrap().to_owned(), it["change"].as_str().unwrap())
                    })
                    .collect();
                let ours = case.ours(folder);
                let wanted = expected(&case.theirs[generation], &ours);
                assert_eq!(named, wanted, "{generation} {}: {target:#?}\n{ours:#?}", vector.id());
                assert_cured(&case.theirs[generation], &wanted, target);
                if wanted.is_empty() {
                    *unchanged.entry(*generation).or_insert(0) += 1;
                }
            }
        }
    }
    // Of 20 vectors. The others differ in the way that their names describe.
    insta::assert_snapshot!(format!("{unchanged:?}"), @r#"{"f0": 18, "f1": 17, "f2": 13, "t0": 11, "t1": 13, "t2": 16, "t3": 19}"#);
}
