//! Names, ranges and whether meshes overlap.

use super::*;

pub(super) fn peer_name(vector: &Vector) -> Verdict {
    let input = |key: &str| vector.input()[key].as_str().unwrap();
    let name = name::peer_name(input("mesh"), input("cluster"), input("node"));
    let theirs = &vector.result("t3");
    unless(name == theirs["name"] && json!(name.len()) == theirs["len"], &name)
}

pub(super) fn labels(vector: &Vector) -> Verdict {
    let theirs = vector.result("t3");
    let run = match one_node(vector) {
        Ok(run) => run,
        Err(codes) => {
            let refused = codes.contains("invalid-value") && theirs["apiServerAccepts"] == false;
            return reason_if(refused, Why::UnusableName, &codes);
        }
    };
    let peer = run.peers.values().next().unwrap();
    let mut ours = peer.metadata.clone();
    let labels = ours["labels"].as_object_mut().unwrap();
    let ours_too = labels.remove("app.kubernetes.io/managed-by");
    let same = ours["labels"] == theirs["labels"]
        && ours.as_object().unwrap().keys().eq(["labels", "name"])
        && ours_too == Some(json!("clustermesh"));
    reason_if(same, Why::ManagedBy, &peer.metadata)
}

/// The operator owns a Peer if both labels are those of the mesh and the cluster.
pub(super) fn ownership(vector: &Vector) -> Verdict {
    let run = one_node(vector).map_err(|codes| format!("{codes:?}"))?;
    let ours = &run.peers.values().next().unwrap().metadata["labels"];
    let theirs = &vector.input()["peerLabels"];
    let keys = [manifest::MESH_LABEL, manifest::SOURCE_LABEL];
    let owned = keys.iter().all(|key| ours[*key] == theirs[*key]);
    unless(json!(owned) == *vector.result("t3"), ours)
}

/// A mesh with one node, under the names of a vector.
pub(super) fn one_node(vector: &Vector) -> Result<Run, BTreeSet<&'static str>> {
    let input = vector.input();
    let entry =
        json!({"name": input["cluster"], "allowedNetworks": ["10.244.0.0/16", "10.4.0.0/24"]});
    let node =
        json!({"name": "node", "annotations": {"kilo.squat.ai/force-endpoint": "203.0.113.1:1"}});
    run(&input["mesh"], &entry, &[completed(&node, 1)], &[])
}

pub(super) fn cidr_parse(vector: &Vector) -> Verdict {
    let theirs = vector.result("t3");
    match (vector.input()["text"].as_str().unwrap().parse::<Interface>(), theirs["error"] == true) {
        (Err(_), true) => Ok(BTreeSet::new()),
        (Err(CidrError::Mapped(_)), false) => Ok(BTreeSet::from([Why::Mapped])),
        (Ok(ours), false) => {
            let ours = json!({
                "host": ours.address,
                "hostRoute": Cidr::host(ours.address).to_string(),
                "network": ours.network.to_string(),
            });
            unless(ours == *theirs, &ours)
        }
        (ours, _) => Err(format!("{ours:?}")),
    }
}

pub(super) fn cidr_contains(vector: &Vector) -> Verdict {
    pair(vector, ["outer", "inner"], Cidr::contains)
}

pub(super) fn cidr_overlap(vector: &Vector) -> Verdict {
    pair(vector, ["a", "b"], |a, b| {
        let overlap = a.overlaps(b);
        assert_eq!(b.overlaps(a), overlap);
        assert_eq!(net::overlaps(&[a, b], 9, |_| false).len(), usize::from(overlap));
        overlap
    })
}

pub(super) fn pair(
    vector: &Vector,
    keys: [&str; 2],
    judge: impl Fn(Cidr, Cidr) -> bool,
) -> Verdict {
    let [one, other] = keys.map(|key| vector.input()[key].as_str().unwrap().parse::<Cidr>());
    match (one, other) {
        (Ok(one), Ok(other)) => {
            let ours = judge(one, other);
            unless(json!(ours) == *vector.result("t3"), &ours)
        }
        (Err(CidrError::Mapped(_)), _) | (_, Err(CidrError::Mapped(_))) => {
            Ok(BTreeSet::from([Why::Mapped]))
        }
        (one, other) => unless(!vector.result("t3").is_boolean(), &(one, other)),
    }
}

pub(super) fn mesh_overlap(vector: &Vector) -> Verdict {
    let theirs = vector.result("t3");
    let meshes: Vec<&Value> = vector.input()["meshes"].as_array().unwrap().iter().collect();
    let documents: Vec<Value> = meshes.iter().map(|it| document(it)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
    let reading = mesh::read(&[Source::parse("mesh.json", list.to_string()).unwrap()]);
    let errors: Vec<_> =
        reading.diagnostics.iter().filter(|it| it.severity == Severity::Error).collect();
    if errors.is_empty() {
        for document in &documents {
            crate::docs::schemas::assert_fits(&document.to_string());
        }
    }
    let codes: BTreeSet<&str> = errors.iter().map(|it| it.rule.name()).collect();
    if theirs["blocked"] == codes.is_empty() {
        let disagree = ["duplicate-name", "inconsistent-cluster", "linked-twice"];
        let strangers = theirs["first"]["kind"] == "crossMesh" && codes.is_empty();
        return if strangers && !is_seen_by_one(&meshes, &theirs["first"]) {
            Ok(BTreeSet::from([Why::Strangers]))
        } else {
            let known = codes.iter().all(|it| disagree.contains(it)) && !codes.is_empty();
            reason_if(known, Why::OneClusterOneTruth, &codes)
        };
    }
    let first = &theirs["first"];
    let quoted = |report: &str, side: &Value| {
        let cidr: Cidr = side["cidr"].as_str().unwrap().parse().unwrap();
        report.contains(&cidr.to_string()) && report.contains(side["cluster"].as_str().unwrap())
    };
    let same = match first["kind"].as_str() {
        None => codes.is_empty(),
        Some("invalidCIDR") => codes.contains("invalid-range"),
        Some(_) => errors.iter().any(|report| {
            let (a, b) = (&first["a"], &first["b"]);
            report.rule.name() == "overlapping-ranges"
                && quoted(report.message.shown(), a)
                && quoted(report.message.shown(), b)
        }),
    };
    unless(same, &reading.diagnostics)
}

/// A mesh of flat entries; one that is alone gets a neighbour.
pub(super) fn document(mesh: &Value) -> Value {
    let clusters = mesh["clusters"].as_array().unwrap();
    let entry = |it: &Value| json!({"name": it["name"], "allowedNetworks": it["cidrs"]});
    let mut entries: Vec<Value> = clusters.iter().map(entry).collect();
    if entries.len() < 2 {
        entries.push(json!({"name": "neighbour", "allowedNetworks": ["198.18.0.0/24"]}));
    }
    mesh_of(&mesh["name"], &entries)
}

/// Whether any cluster is in a mesh with both sides of an overlap, or is one of them.
pub(super) fn is_seen_by_one(meshes: &[&Value], first: &Value) -> bool {
    let names = |mesh: &&Value| -> BTreeSet<String> {
        let clusters = mesh["clusters"].as_array().unwrap().iter();
        clusters.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    let around = |side: &Value| -> BTreeSet<String> {
        let sets = meshes.iter().map(names);
        let cluster = side["cluster"].as_str().unwrap();
        sets.filter(|it| it.contains(cluster)).flatten().collect()
    };
    !around(&first["a"]).is_disjoint(&around(&first["b"]))
}
