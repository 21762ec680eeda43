//! The result of the program for a vector.

use super::*;

/// What a source cluster gives to targets of both families.
pub(super) struct Run {
    pub(super) nodes: Vec<String>,
    /// What both get together, by name.
    pub(super) peers: BTreeMap<String, PeerObject>,
    pub(super) excluded: BTreeMap<String, (String, ExcludedReason)>,
    /// Nodes whose WireGuard address another node keeps.
    pub(super) robbed: BTreeSet<String>,
    /// Ranges that nodes claim in vain, and why.
    pub(super) lost: BTreeMap<Cidr, WithheldReason>,
    /// Ranges of the cluster as a whole that no node claims as they are.
    pub(super) shared: Vec<Cidr>,
}

pub(super) struct PeerObject {
    pub(super) metadata: Value,
    pub(super) spec: Value,
    pub(super) ranges: Vec<Cidr>,
}

impl Run {
    pub(super) fn code(&self, node: &str) -> &str {
        self.excluded.get(node).map_or("valid", |(code, _)| code)
    }

    pub(super) fn peer(&self, node: &str) -> &PeerObject {
        let suffix = format!("--{node}");
        let mut found = self.peers.iter().filter(|(name, _)| name.ends_with(&suffix));
        found.next().unwrap().1
    }

    /// The endpoint of the only Peer.
    pub(super) fn endpoint(&self) -> Option<Endpoint> {
        let endpoint = self.peers.values().next()?.spec.get("endpoint")?;
        let host = &endpoint["dnsOrIP"];
        let host = match host["ip"].as_str() {
            Some(address) => Host::Ip(address.parse().unwrap()),
            None => Host::Dns(host["dns"].as_str().unwrap().to_owned()),
        };
        let port = u16::try_from(endpoint["port"].as_u64().unwrap()).unwrap();
        Some(Endpoint { host, port: port.try_into().unwrap() })
    }
}

/// Runs one node, completed with all that the vector leaves out.
pub(super) fn run_node(node: &Value, fields: &Value) -> Run {
    let mut entry = json!({"name": "source", "allowedNetworks": ["10.244.0.0/16", "10.4.0.0/24"]});
    let node = completed(node, 1);
    entry = with_domains(&entry, &[&node]);
    let fields = fields.as_object().unwrap().clone();
    entry.as_object_mut().unwrap().extend(fields);
    run(&json!("mesh"), &entry, &[node], &[]).unwrap()
}

/// Renders for one target of each family, and for `others`.
///
/// Returns the codes of what is wrong with the mesh, if anything is.
pub(super) fn run(
    mesh: &Value,
    entry: &Value,
    nodes: &[Value],
    others: &[Value],
) -> Result<Run, BTreeSet<&'static str>> {
    let mut entry = entry.clone();
    if entry["wireguardPort"] == 0 {
        entry.as_object_mut().unwrap().remove("wireguardPort");
    }
    let mut taken = declared(&entry);
    let mut entries = vec![entry.clone()];
    let targets = [json!({"name": "target-four"}), json!({"name": "target-six"})];
    for other in targets.iter().chain(others) {
        let mut free = (0..=255).map(|i| {
            if other["name"] == "target-six" {
                format!("3fff:{i:x}::/32")
            } else {
                format!("198.18.{i}.0/24")
            }
        });
        let is_free = |text: &String| taken.iter().all(|it| !it.overlaps(text.parse().unwrap()));
        let range = free.find(is_free).unwrap();
        taken.push(range.parse().unwrap());
        let mut other = other.clone();
        other["allowedNetworks"] = json!([range]);
        entries.push(other);
    }
    let text = mesh_of(mesh, &entries).to_string();
    let reading = mesh::read(&[Source::parse("mesh.json", text.as_str()).unwrap()]);
    let errors = reading.diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let codes: BTreeSet<&str> = errors.map(|it| it.rule.name()).collect();
    if !codes.is_empty() {
        return Err(codes);
    }
    crate::docs::schemas::assert_fits(&text);
    let source: ClusterName = entry["name"].as_str().unwrap().parse().unwrap();
    let clusters =
        entries.iter().map(|it| it["name"].as_str().unwrap().parse::<ClusterName>().unwrap());
    let snapshots = clusters
        .map(|cluster| {
            let snapshot = if cluster == source {
                snapshot(&cluster, nodes)
            } else {
                Snapshot::new(cluster.clone(), Vec::new()).unwrap()
            };
            let file = SnapshotFile {
                snapshot: snapshot.into(),
                source: format!("{cluster}.json").into(),
            };
            (cluster, file)
        })
        .collect();
    let fleet = Fleet::new(&reading.meshes, &snapshots).unwrap();
    Ok(outcome(&fleet, &source, nodes))
}

pub(super) fn outcome(fleet: &Fleet, source: &ClusterName, nodes: &[Value]) -> Run {
    let plan = plan::plan(fleet).unwrap();
    let findings = rules::findings(fleet, Some(&plan));
    let member = fleet.memberships(source).next().unwrap();
    let tree = manifest::tree(&plan).unwrap();
    let mut peers: BTreeMap<String, PeerObject> = BTreeMap::new();
    for target in ["target-four", "target-six"] {
        let path = format!("{target}/{}--{source}.yaml", member.mesh.name);
        let text = tree.get(&path).map(AsRef::as_ref).unwrap_or_default();
        for document in serde_yaml::Deserializer::from_str(text) {
            let value = Value::deserialize(document).unwrap();
            let Some(name) = value["metadata"]["name"].as_str() else {
                continue;
            };
            let ranges: Vec<Cidr> = texts(&value["spec"]["allowedIPs"])
                .into_iter()
                .map(|it| it.parse().unwrap())
                .collect();
            let peer = peers.entry(name.to_owned()).or_insert_with(|| PeerObject {
                metadata: value["metadata"].clone(),
                spec: value["spec"].clone(),
                ranges: Vec::new(),
            });
            assert_eq!(peer.spec.get("endpoint"), value["spec"].get("endpoint"));
            peer.ranges.extend(ranges);
        }
    }
    let excluded = member.membership.excluded.iter().map(|it| {
        let subject = format!("{source}/{}", it.node);
        let found = findings.iter().find(|finding| {
            finding.subject().as_deref() == Some(&*subject)
                && finding.message.shown().starts_with("left out: ")
        });
        let rule = found.unwrap().rule;
        let code = rule.aliases.first().copied().unwrap_or(rule.name());
        (it.node.clone(), (code.to_owned(), it.reason.clone()))
    });
    let robbed = member
        .membership
        .withheld
        .iter()
        .filter(|it| matches!(it.reason, WithheldReason::Taken { .. }));
    let lost = member
        .membership
        .withheld
        .iter()
        .filter_map(|it| Some((it.range.parse().ok()?, it.reason.clone())));
    let claimed = |range: &&Cidr| {
        member.membership.candidates.iter().any(|it| it.claims().any(|it| it == **range))
    };
    Run {
        nodes: nodes.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect(),
        peers,
        excluded: excluded.collect(),
        robbed: robbed.map(|it| it.node.clone()).collect(),
        lost: lost.collect(),
        shared: member.cluster.shared.iter().filter(|it| !claimed(it)).copied().collect(),
    }
}

pub(super) fn mesh_of(name: &Value, entries: &[Value]) -> Value {
    json!({
        "apiVersion": "kilo.squat.ai/v1alpha1",
        "kind": "ClusterMesh",
        "metadata": {"name": name},
        "spec": {"clusters": entries},
    })
}

/// Takes the snapshot from objects as the API has them.
pub(super) fn snapshot(cluster: &ClusterName, nodes: &[Value]) -> Snapshot {
    let object = |node: &Value| {
        json!({
            "metadata": {"name": node["name"], "annotations": node["annotations"]},
            "spec": {"podCIDRs": node["podCIDRs"]},
            "status": {"addresses": node["addresses"]},
        })
    };
    if nodes.is_empty() {
        return Snapshot::new(cluster.clone(), Vec::new()).unwrap();
    }
    let items: Vec<Value> = nodes.iter().map(object).collect();
    let list = json!({"kind": "NodeList", "items": items}).to_string();
    dump::listing(&list).unwrap().snapshot(cluster.clone(), 300, None).unwrap().0
}

/// Adds what a node needs and the vector does not mention.
pub(super) fn completed(node: &Value, index: usize) -> Value {
    let mut node = node.clone();
    let host = index + 1;
    if node["podCIDRs"].is_null() {
        node["podCIDRs"] = json!([format!("10.244.{host}.0/24")]);
    }
    let annotations = node["annotations"].as_object_mut().unwrap();
    let mut default = |key: &str, value: String| {
        let key = format!("kilo.squat.ai/{key}");
        annotations.entry(key).or_insert(json!(value));
    };
    default("wireguard-ip", format!("10.4.0.{host}/32"));
    default("key", real_key(&index.to_string()));
    node
}

pub(super) fn dialable(node: &Value, index: usize) -> Value {
    let mut node = node.clone();
    let endpoint = json!(format!("203.0.113.{}:51820", index + 1));
    node["annotations"]["kilo.squat.ai/force-endpoint"] = endpoint;
    node
}

/// Many vectors have invalid keys. Unless the vector tests keys, they get valid ones.
pub(super) fn rekeyed(node: &Value) -> Value {
    let mut node = node.clone();
    if let Some(key) = node["annotations"].get_mut("kilo.squat.ai/key")
        && key != ""
    {
        *key = json!(real_key(key.as_str().unwrap()));
    }
    node
}

pub(super) fn real_key(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}

/// Declares the names under which the nodes can be dialled.
pub(super) fn with_domains(entry: &Value, nodes: &[&Value]) -> Value {
    let texts = nodes
        .iter()
        .filter_map(|it| it["annotations"].as_object())
        .flatten()
        .filter(|(key, _)| key.ends_with("-endpoint"));
    let names: BTreeSet<String> = texts
        .filter_map(|(_, text)| match text.as_str()?.parse::<Endpoint>().ok()?.host {
            Host::Dns(name) if is_dns_subdomain(&name) => Some(name),
            _ => None,
        })
        .collect();
    let mut entry = entry.clone();
    entry["endpointDomains"] = json!(names);
    entry
}

/// The ranges that an entry declares, in order.
pub(super) fn declared(entry: &Value) -> Vec<Cidr> {
    let keys = ["podCIDRs", "wireguardCIDR", "serviceCIDR", "additionalCIDRs", "allowedNetworks"];
    let texts = keys.iter().flat_map(|key| match &entry[*key] {
        Value::String(text) => vec![text.as_str()],
        list => texts(list),
    });
    texts.filter_map(|it| it.parse().ok()).collect()
}

/// The first pod CIDR, the WireGuard address and the internal addresses of a node.
pub(super) fn own_ranges(node: &Value) -> Vec<Cidr> {
    let pod = texts(&node["podCIDRs"]).first().and_then(|it| it.parse().ok());
    let wireguard = node["annotations"]["kilo.squat.ai/wireguard-ip"]
        .as_str()
        .and_then(|it| it.parse::<Interface>().ok())
        .map(|it| Cidr::host(it.address));
    pod.into_iter().chain(wireguard).chain(internal_hosts(node)).collect()
}

pub(super) fn internal_hosts(node: &Value) -> Vec<Cidr> {
    let addresses = node["addresses"].as_array().into_iter().flatten();
    addresses
        .filter(|it| it["type"] == "InternalIP")
        .filter_map(|it| Some(Cidr::host(it["address"].as_str()?.parse().ok()?)))
        .collect()
}

pub(super) fn deduplicated(texts: Vec<&str>) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    texts.into_iter().filter(|it| seen.insert(*it)).collect()
}

pub(super) fn texts(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap()).collect()
}

pub(super) fn unless(same: bool, ours: &impl std::fmt::Debug) -> Verdict {
    if same { Ok(BTreeSet::new()) } else { Err(format!("{ours:?}")) }
}

pub(super) fn reason_if(holds: bool, why: Why, ours: &impl std::fmt::Debug) -> Verdict {
    if holds { Ok(BTreeSet::from([why])) } else { Err(format!("{ours:?}")) }
}
