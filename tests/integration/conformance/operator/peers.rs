//! The Peers of a cluster, and what one of them carries for all.

use super::*;

pub(super) fn whole_peers_of(vector: &Vector) -> Verdict {
    let input = vector.input();
    let nodes: Vec<Value> = input["nodes"].as_array().unwrap().iter().map(rekeyed).collect();
    let mut reasons = BTreeSet::new();
    for (form, generation) in FORMS {
        let Some(entry) = input["source"].get(form) else {
            continue;
        };
        let entry = with_domains(entry, &nodes.iter().collect::<Vec<_>>());
        let others = input["otherClusters"].as_array().cloned().unwrap_or_default();
        let run = run(&input["mesh"], &entry, &nodes, &others)
            .map_err(|codes| format!("{form}: {codes:?}"))?;
        let theirs = vector.result(generation);
        let found =
            same_peers(&entry, &nodes, theirs, &run).map_err(|how| format!("{form}: {how}"))?;
        reasons.extend(found);
    }
    Ok(reasons)
}

pub(super) fn same_peers(entry: &Value, nodes: &[Value], theirs: &Value, run: &Run) -> Verdict {
    let mut reasons = BTreeSet::new();
    let skipped = theirs["skipped"].as_array().unwrap();
    for name in &run.nodes {
        let skip = skipped.iter().find(|it| it["node"] == name.as_str());
        let code = skip.map_or("valid", |it| it["reason"].as_str().unwrap());
        if code == "WGIPDuplicate" && run.robbed.contains(name) {
            reasons.insert(Why::RouteNotNode);
        } else {
            reasons.extend(same_outcome(code, run, name)?);
        }
    }
    let peers = theirs["peers"].as_array().unwrap();
    for theirs in peers {
        let Some(ours) = run.peers.get(theirs["name"].as_str().unwrap()) else {
            // Then its node is left out, which was explained before.
            unless(!reasons.is_empty(), theirs)?;
            continue;
        };
        let mut labels = ours.metadata["labels"].clone();
        labels.as_object_mut().unwrap().remove("app.kubernetes.io/managed-by");
        let key = real_key(theirs["spec"]["publicKey"].as_str().unwrap());
        let field = |key: &str| (ours.spec.get(key), theirs["spec"].get(key));
        let (keepalive, other) = field("persistentKeepalive");
        if labels != theirs["labels"] || ours.spec["publicKey"] != key || keepalive != other {
            return Err(format!("{labels} {}", ours.spec));
        }
        reasons.extend(same_endpoint(&theirs["spec"]["endpoint"], ours)?);
        reasons.extend(same_ranges(
            entry,
            nodes,
            (&theirs["spec"]["allowedIPs"], ours),
            &run.lost,
        )?);
    }
    let surplus = run.peers.keys().any(|name| peers.iter().all(|it| it["name"] != name.as_str()));
    unless(!surplus || reasons.contains(&Why::RouteNotNode), &run.peers.keys())?;
    Ok(reasons)
}

/// Compares allowed IPs: every range that only one side has, has a reason, and the rest is in order.
pub(super) fn same_ranges(
    entry: &Value,
    nodes: &[Value],
    (theirs, ours): (&Value, &PeerObject),
    lost: &BTreeMap<Cidr, WithheldReason>,
) -> Verdict {
    let mut reasons = BTreeSet::new();
    let ours: Vec<Cidr> = ours.ranges.clone();
    let theirs = deduplicated(texts(theirs));
    let canonical: Vec<Cidr> = theirs.iter().map(|it| it.parse().unwrap()).collect();
    if canonical.iter().zip(&theirs).any(|(cidr, text)| cidr.to_string() != *text) {
        reasons.insert(Why::Canonical);
    }
    let families: BTreeSet<Family> = canonical.iter().map(|it| it.family()).collect();
    if 1 < families.len() {
        reasons.insert(Why::FamilyOfTarget);
    }
    let declared = declared(entry);
    let second: Vec<Cidr> = nodes
        .iter()
        .flat_map(|node| texts(&node["podCIDRs"]).into_iter().skip(1))
        .filter_map(|text| text.parse().ok())
        .collect();
    let reported: Vec<Cidr> = nodes.iter().flat_map(internal_hosts).collect();
    let sorted = nodes.is_sorted_by_key(|it| it["name"].as_str());
    for range in &ours {
        if !canonical.contains(range) {
            reasons.insert(match range {
                it if second.contains(it) => Why::SecondPodCidr,
                it if declared.contains(it) && !sorted => Why::OrderOfNames,
                it if declared.contains(it) => Why::MostNotAny,
                it if reported.contains(it) => Why::InternalAddress,
                _ => return Err(format!("{range} is ours only")),
            });
        }
    }
    for range in &canonical {
        if !ours.contains(range) {
            reasons.insert(match range {
                it if declared.contains(it) && second.iter().any(|pod| it.contains(*pod)) => {
                    Why::SecondPodCidr
                }
                it if declared.contains(it) && !sorted => Why::OrderOfNames,
                it => match lost.get(it) {
                    Some(WithheldReason::Taken { .. }) => Why::RouteNotNode,
                    Some(WithheldReason::InPodCidr { .. }) => Why::SharedPodCidr,
                    None if is_second_address(nodes, *it) => Why::OneInternalAddress,
                    _ => return Err(format!("{range} is theirs only")),
                },
            });
        }
    }
    for family in families {
        let common = |list: &[Cidr], other: &[Cidr]| -> Vec<Cidr> {
            let own = list.iter().copied().filter(|it| it.family() == family);
            own.filter(|it| other.contains(it)).collect()
        };
        let (one, other) = (common(&ours, &canonical), common(&canonical, &ours));
        unless(one == other, &(one, other))?;
    }
    Ok(reasons)
}

/// Whether a node has another internal address of the same family before this one.
pub(super) fn is_second_address(nodes: &[Value], host: Cidr) -> bool {
    nodes.iter().map(internal_hosts).any(|hosts| {
        let mut own = hosts.iter().filter(|it| it.family() == host.family());
        own.position(|it| *it == host).is_some_and(|it| 0 < it)
    })
}

pub(super) fn anchor_residual(vector: &Vector) -> Verdict {
    let nodes: Vec<Value> =
        vector.input()["validNodes"].as_array().unwrap().iter().map(rekeyed).collect();
    let nodes: Vec<Value> =
        nodes.iter().enumerate().map(|(index, it)| dialable(it, index)).collect();
    let allowed: Vec<Cidr> =
        texts(&vector.input()["allowedNetworks"]).iter().map(|it| it.parse().unwrap()).collect();
    let mut ranges = allowed.clone();
    for own in nodes.iter().flat_map(own_ranges) {
        // The vector assumes that the nodes are valid for any declared ranges.
        if !ranges.iter().any(|it| it.contains(own)) {
            ranges.push(own);
        }
    }
    let strings: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    let entry = json!({"name": "source", "allowedNetworks": strings});
    let theirs: Vec<Cidr> =
        texts(vector.result("f1")).iter().map(|it| it.parse().unwrap()).collect();
    let run = match run(&json!("mesh"), &entry, &nodes, &[]) {
        Ok(run) => run,
        Err(codes) => {
            let disjoint = codes == BTreeSet::from(["overlapping-ranges"]);
            return reason_if(disjoint, Why::DisjointRanges, &codes);
        }
    };
    let shared = run.shared.iter().copied();
    let ours: Vec<Cidr> = shared.filter(|it| allowed.contains(it)).collect();
    let mut reasons = BTreeSet::new();
    for range in &allowed {
        let inside = |node: &&Value| own_ranges(node).iter().any(|it| range.contains(*it));
        let second = |node: &Value| {
            let further = texts(&node["podCIDRs"]).into_iter().skip(1);
            further.filter_map(|it| it.parse().ok()).any(|it: Cidr| range.contains(it))
        };
        let inhabited = nodes.iter().filter(inside).count();
        match (ours.contains(range), theirs.contains(range)) {
            (false, true) if nodes.iter().any(second) => reasons.insert(Why::SecondPodCidr),
            (true, false) if 2 * inhabited <= nodes.len() => reasons.insert(Why::MostNotAny),
            (one, other) if one == other => false,
            _ => return Err(format!("{ours:?}")),
        };
    }
    let in_order =
        |list: &[Cidr]| list.iter().map(|it| allowed.iter().position(|own| own == it)).is_sorted();
    unless(in_order(&ours) && in_order(&theirs), &ours)?;
    Ok(reasons)
}

pub(super) fn keepalive_floor(vector: &Vector) -> Verdict {
    let seconds = vector.input()["persistentKeepalivePerCluster"].as_array().unwrap();
    let floor = vector.result("f2");
    assert_eq!(seconds.iter().max_by_key(|it| it.as_u64()), Some(floor));
    let mut reasons = BTreeSet::new();
    for (index, own) in seconds.iter().enumerate() {
        let networks = [format!("10.{index}.0.0/16"), format!("100.64.{index}.0/24")];
        let entry =
            json!({"name": "source", "allowedNetworks": networks, "persistentKeepalive": own});
        let others = seconds.iter().enumerate().filter(|(other, _)| *other != index).map(
            |(other, it)| json!({"name": format!("other-{other}"), "persistentKeepalive": it}),
        );
        let annotations = json!({
            "kilo.squat.ai/wireguard-ip": format!("100.64.{index}.1/24"),
            "kilo.squat.ai/force-endpoint": "203.0.113.1:51820",
        });
        let node = json!({"name": "node", "podCIDRs": [format!("10.{index}.0.0/24")], "annotations": annotations});
        let run = run(&json!("mesh"), &entry, &[completed(&node, 1)], &others.collect::<Vec<_>>())
            .map_err(|codes| format!("{codes:?}"))?;
        let ours = &run.peer("node").spec["persistentKeepalive"];
        unless(ours.as_u64().unwrap_or(0) == own.as_u64().unwrap(), ours)?;
        if own != floor {
            reasons.insert(Why::OwnKeepalive);
        }
    }
    Ok(reasons)
}
