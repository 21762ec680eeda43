//! Which nodes take part, and where they are dialled.

use super::*;

pub(super) fn endpoint_string(vector: &Vector) -> Verdict {
    let text = &vector.input()["annotation"];
    let node = json!({"name": "node", "annotations": {"kilo.squat.ai/force-endpoint": text}});
    let theirs = vector.result("t3");
    let run = run_node(&node, &json!({}));
    if let Some(Host::Dns(name)) = run.endpoint().map(|it| it.host) {
        let strict = run_node(&node, &json!({"endpointDomains": [format!("not.{name}")]}));
        assert_eq!(strict.code("node"), "NodeEndpointInvalid", "an undeclared name is refused");
    }
    endpoint_verdict(theirs, &run)
}

pub(super) fn endpoint_chain(vector: &Vector) -> Verdict {
    let theirs = vector.result("t3");
    let (node, port) = (&vector.input()["node"], &vector.input()["wireguardPort"]);
    let fields = json!({"wireguardPort": port});
    let run = run_node(node, &fields);
    if theirs["result"] == "none" {
        // Only if declared, whereas the newest generation always does it; that one writes no
        // endpoint at all ([`Why::Placeholder`]).
        let behind_nat = json!({"wireguardPort": port, "persistentKeepalive": 25});
        let roaming = run_node(node, &behind_nat);
        assert!(
            roaming.excluded.is_empty() && roaming.endpoint() == Some(Endpoint::PLACEHOLDER),
            "{}",
            vector.id()
        );
    }
    if let (Some(source), Some(ExcludedReason::EndpointInvalid { origin, .. })) =
        (theirs["source"].as_str(), run.excluded.values().map(|it| &it.1).next())
        && theirs["result"] == "invalid"
    {
        assert!(format!("{origin:?}").contains(source), "{}: {origin:?}", vector.id());
    }
    endpoint_verdict(theirs, &run)
}

/// Compares the endpoint of the only node, or why it has none.
pub(super) fn endpoint_verdict(theirs: &Value, run: &Run) -> Verdict {
    let name = run.nodes.first().unwrap();
    let code = run.code(name);
    match theirs["result"].as_str().unwrap() {
        "none" => unless(code == "NodeNoEndpoint", &code),
        "invalid" => unless(code == "NodeEndpointInvalid", &code),
        _ => match run.excluded.get(name) {
            Some((_, reason)) => explained(reason),
            None => same_endpoint(&theirs["endpoint"], run.peer(name)),
        },
    }
}

pub(super) fn same_endpoint(theirs: &Value, ours: &PeerObject) -> Verdict {
    let ours = &ours.spec["endpoint"];
    if ours == theirs {
        return Ok(BTreeSet::new());
    }
    if theirs.is_null() {
        let placeholder = json!({"dnsOrIP": {"ip": "192.0.2.1"}, "port": 9});
        return reason_if(*ours == placeholder, Why::Placeholder, ours);
    }
    let address =
        |it: &Value| it["dnsOrIP"]["ip"].as_str().and_then(|it| it.parse::<IpAddr>().ok());
    let same = address(theirs).map(|it| it.to_canonical()) == address(ours);
    reason_if(
        same && address(ours).is_some() && ours["port"] == theirs["port"],
        Why::Canonical,
        ours,
    )
}

/// The operator writes the endpoint onto the node; `endpointFrom` makes us look for it.
pub(super) fn internal_endpoint(vector: &Vector) -> Verdict {
    let (node, port) = (&vector.input()["node"], &vector.input()["wireguardPort"]);
    let theirs = vector.result("t3");
    let fields = |sources: &[&str]| json!({"wireguardPort": port, "endpointFrom": sources});
    let ours = run_node(node, &fields(&["Annotation", "ExternalIP", "InternalIP"]));
    let endpoint = ours.endpoint().map(|it| it.to_string());
    if theirs["patched"] == true {
        return unless(endpoint.as_deref() == theirs["force-endpoint"].as_str(), &endpoint);
    }
    let without =
        run_node(node, &fields(&["Annotation", "ExternalIP"])).endpoint().map(|it| it.to_string());
    if endpoint == without {
        return Ok(BTreeSet::new());
    }
    let annotations = node["annotations"].as_object().unwrap();
    if annotations.iter().any(|(key, value)| key.ends_with("-endpoint") && value == "") {
        return Ok(BTreeSet::from([Why::EmptyIsUnset]));
    }
    let six = ours.endpoint().is_some_and(|it| matches!(it.host, Host::Ip(IpAddr::V6(_))));
    reason_if(six, Why::InternalIpv6, &endpoint)
}

pub(super) fn node_validation(vector: &Vector) -> Verdict {
    let keep_keys = vector.id().starts_with("node/key-");
    let node =
        if keep_keys { vector.input()["node"].clone() } else { rekeyed(&vector.input()["node"]) };
    let mut reasons = BTreeSet::new();
    for (form, generation) in FORMS {
        let Some(entry) = vector.input()["entry"].get(form) else {
            continue;
        };
        let theirs = vector.result(generation).as_str().unwrap();
        let run = match run(
            &json!("mesh"),
            &with_domains(entry, &[&node]),
            std::slice::from_ref(&node),
            &[],
        ) {
            Ok(run) => run,
            Err(codes) => {
                reasons.extend(reason_if(
                    codes == BTreeSet::from(["invalid-range"]),
                    Why::MistakeFails,
                    &codes,
                )?);
                continue;
            }
        };
        let name = node["name"].as_str().unwrap();
        reasons.extend(same_outcome(theirs, &run, name)?);
    }
    Ok(reasons)
}

/// Compares what becomes of a node: `valid`, or the code of the reason why it is left out.
pub(super) fn same_outcome(theirs: &str, run: &Run, node: &str) -> Verdict {
    match run.excluded.get(node) {
        None => unless(theirs == "valid", &"valid"),
        Some((code, _)) if code == theirs => Ok(BTreeSet::new()),
        Some((_, reason)) if theirs == "valid" => explained(reason),
        Some((code, _)) => Err(format!("{code} instead of {theirs}")),
    }
}

/// Why we leave out a node that the operator does not.
pub(super) fn explained(reason: &ExcludedReason) -> Verdict {
    let why = match reason {
        ExcludedReason::PublicKeyInvalid { .. } => Why::UnusableKey,
        ExcludedReason::DuplicateKey(_) => Why::SharedKey,
        ExcludedReason::PodCidrTaken { .. } => Why::SharedPodCidr,
        ExcludedReason::NameInvalid(_) => Why::UnusableName,
        ExcludedReason::PodCidrInvalid { error: CidrError::Mapped(_), .. }
        | ExcludedReason::WireguardIpInvalid { error: CidrError::Mapped(_), .. } => Why::Mapped,
        ExcludedReason::EndpointInvalid { error: EndpointProblem::Endpoint(error), .. } => {
            match error {
                EndpointError::Unreachable { .. } => Why::Undialable,
                EndpointError::Dns(_) => Why::NoDnsName,
                _ => return Err(format!("{reason:?}")),
            }
        }
        _ => return Err(format!("{reason:?}")),
    };
    Ok(BTreeSet::from([why]))
}

pub(super) fn duplicate_wireguard_ip(vector: &Vector) -> Verdict {
    let nodes: Vec<Value> = vector.input()["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(index, node)| {
            let annotations = json!({
                "kilo.squat.ai/wireguard-ip": node["wireguard-ip"],
                "kilo.squat.ai/force-endpoint": "203.0.113.1:51820",
            });
            completed(&json!({"name": node["name"], "annotations": annotations}), index)
        })
        .collect();
    let entry = json!({"name": "source", "allowedNetworks": ["10.0.0.0/8", "fd00::/8"]});
    let run = run(&json!("mesh"), &entry, &nodes, &[]).map_err(|codes| format!("{codes:?}"))?;
    let theirs: BTreeSet<&str> = texts(vector.result("t3")).into_iter().collect();
    let ours: BTreeSet<&str> = run.robbed.iter().map(String::as_str).collect();
    let mut reasons = BTreeSet::new();
    if !ours.is_empty() {
        // Its other ranges stay.
        assert!(ours.iter().all(|node| run.peers.contains_key(&format!("mesh--source--{node}"))));
        reasons.insert(Why::RouteNotNode);
    }
    let sorted = nodes.is_sorted_by_key(|it| it["name"].as_str());
    for node in theirs.symmetric_difference(&ours) {
        // It, or one before it with the address, is left out and does not count.
        let names = nodes.iter().map(|it| it["name"].as_str().unwrap());
        let mut before = names.take_while(|it| it != node).chain([*node]);
        let is_invalid = |it: &str| !["valid", "NodeNoWireguardIP"].contains(&run.code(it));
        let why = if theirs.contains(node) && before.any(is_invalid) {
            Why::InvalidFirst
        } else if !sorted {
            Why::OrderOfNames
        } else {
            return Err(format!("{ours:?}"));
        };
        reasons.insert(why);
    }
    Ok(reasons)
}
