//! Made-up clusters as their API servers list them: fat nodes, of which Kilo needs a tenth.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::support::random::Random;

/// How many nodes are in a page.
pub(crate) const LIMIT: u32 = 250;
/// What a node has beside its name and its networks.
const IMAGES: u32 = 50;
/// Who writes to a node.
const MANAGERS: [&str; 4] = ["kubelet", "kube-controller-manager", "kilo", "node-labeller"];

/// Clusters of one size.
#[derive(Clone, Copy)]
pub(crate) struct Fleet {
    pub(crate) clusters: u32,
    pub(crate) nodes: u32,
}

impl Fleet {
    pub(crate) fn cluster(cluster: u32) -> String {
        format!("cluster-{cluster:03}")
    }

    /// One mesh of all of them.
    pub(crate) fn mesh(self) -> String {
        let mut mesh = "apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: fleet }
spec:
  clusters:
"
        .to_owned();
        for cluster in 0..self.clusters {
            let (name, host) = (Self::cluster(cluster), cluster * self.room());
            let pods = Ipv4Addr::from_bits(PODS + (host << 6));
            let wireguard = Ipv4Addr::from_bits(WIREGUARD + host);
            let bits = self.room().ilog2();
            let (pod_bits, wireguard_bits) = (26 - bits, 32 - bits);
            // Writing to a text cannot fail.
            let _ = writeln!(
                mesh,
                "    - {{ name: {name}, podCIDRs: [{pods}/{pod_bits}], wireguardCIDR: {wireguard}/{wireguard_bits} }}"
            );
        }
        mesh
    }

    /// The pages of a cluster, in order.
    pub(crate) fn pages(self, cluster: u32) -> impl Iterator<Item = Value> {
        let mut random = Random(u64::from(cluster));
        let images = images(&mut random);
        (0..self.nodes).step_by(LIMIT as usize).map(move |start| self.page(cluster, start, &images))
    }

    fn page(self, cluster: u32, start: u32, images: &Value) -> Value {
        let end = self.nodes.min(start + LIMIT);
        let items: Vec<Value> = (start..end).map(|node| self.node(cluster, node, images)).collect();
        let mut metadata = json!({ "resourceVersion": "471147114711" });
        if end < self.nodes {
            metadata["continue"] = end.to_string().into();
            metadata["remainingItemCount"] = (self.nodes - end).into();
        }
        json!({
            "kind": "NodeList",
            "apiVersion": "v1",
            "metadata": metadata,
            "items": items,
        })
    }

    fn node(self, cluster: u32, node: u32, images: &Value) -> Value {
        let place = cluster * self.room() + node;
        let mut random = Random(u64::from(place) << 32);
        let name = format!("{}-pool-{node:05}", Self::cluster(cluster));
        let pods = format!("{}/26", Ipv4Addr::from_bits(PODS + (place << 6)));
        let internal = Ipv4Addr::from_bits(LANS + place);
        let external = Ipv4Addr::from_bits(ENDPOINTS + place);
        json!({
            "metadata": {
                "name": name,
                "uid": random.uid(),
                "resourceVersion": (random.word() >> 40).to_string(),
                "creationTimestamp": "2025-11-20T08:15:30Z",
                "labels": labels(&name),
                "annotations": self.annotations(&mut random, place),
                "managedFields": managed_fields(),
            },
            "spec": {
                "podCIDR": pods,
                "podCIDRs": [pods],
                "providerID": format!("aws:///eu-central-1a/i-{:016x}", random.word()),
            },
            "status": {
                "capacity": resources("8", "15946412Ki"),
                "allocatable": resources("7910m", "14929580Ki"),
                "conditions": conditions(),
                "addresses": [
                    { "type": "InternalIP", "address": internal },
                    { "type": "ExternalIP", "address": external },
                    { "type": "Hostname", "address": name },
                ],
                "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
                "nodeInfo": system(&mut random),
                "images": images,
            },
        })
    }

    fn annotations(self, random: &mut Random, place: u32) -> Value {
        let internal = Ipv4Addr::from_bits(LANS + place);
        let endpoint = format!("{}:51820", Ipv4Addr::from_bits(ENDPOINTS + place));
        let wireguard = Ipv4Addr::from_bits(WIREGUARD + place + 1);
        let bits = 32 - self.room().ilog2();
        json!({
            "csi.volume.kubernetes.io/nodeid": format!("{{\"ebs.csi.aws.com\":\"i-{:016x}\"}}", random.word()),
            "kilo.squat.ai/discovered-endpoints": "{}",
            "kilo.squat.ai/endpoint": endpoint,
            "kilo.squat.ai/force-endpoint": endpoint,
            "kilo.squat.ai/granularity": "full",
            "kilo.squat.ai/internal-ip": format!("{internal}/19"),
            "kilo.squat.ai/key": random.key(),
            "kilo.squat.ai/last-seen": "1763600000",
            "kilo.squat.ai/wireguard-ip": format!("{wireguard}/{bits}"),
            "node.alpha.kubernetes.io/ttl": "0",
            "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        })
    }

    /// How many nodes a cluster may have: a power of two, so that it is a range.
    fn room(self) -> u32 {
        (self.nodes + 1).next_power_of_two()
    }
}

/// Where pods are, 64 addresses a node.
const PODS: u32 = Ipv4Addr::new(10, 0, 0, 0).to_bits();
const WIREGUARD: u32 = Ipv4Addr::new(100, 64, 0, 0).to_bits();
/// Where nodes meet their neighbours; no declared range covers it.
const LANS: u32 = Ipv4Addr::new(172, 16, 0, 0).to_bits();
/// Where nodes are met from outside; no declared range covers it.
const ENDPOINTS: u32 = Ipv4Addr::new(203, 0, 0, 0).to_bits();

fn labels(name: &str) -> Value {
    json!({
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/instance-type": "c5.2xlarge",
        "beta.kubernetes.io/os": "linux",
        "failure-domain.beta.kubernetes.io/region": "eu-central-1",
        "failure-domain.beta.kubernetes.io/zone": "eu-central-1a",
        "k8s.io/cloud-provider-aws": "c0ffeec0ffeec0ffeec0ffeec0ffee00",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "c5.2xlarge",
        "topology.ebs.csi.aws.com/zone": "eu-central-1a",
        "topology.kubernetes.io/region": "eu-central-1",
        "topology.kubernetes.io/zone": "eu-central-1a",
    })
}

fn managed_fields() -> Vec<Value> {
    let fields: Value = (0..12)
        .map(|number| (format!("f:example.com/field-{number:02}"), json!({})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    MANAGERS
        .iter()
        .map(|manager| {
            json!({
                "manager": manager,
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2025-11-20T08:15:30Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": { "f:annotations": fields, "f:labels": { ".": {} } },
                    "f:status": { "f:conditions": {
                        "k:{\"type\":\"Ready\"}": { "f:lastHeartbeatTime": {}, "f:status": {} },
                    } },
                },
                "subresource": "status",
            })
        })
        .collect()
}

fn conditions() -> Vec<Value> {
    let kinds = [
        ("MemoryPressure", "KubeletHasSufficientMemory"),
        ("DiskPressure", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "KubeletHasSufficientPID"),
        ("Ready", "KubeletReady"),
        ("NetworkUnavailable", "WeHaveANetwork"),
    ];
    let condition = |(kind, reason): (&str, &str)| {
        json!({
            "type": kind,
            "status": if kind == "Ready" { "True" } else { "False" },
            "lastHeartbeatTime": "2025-11-20T09:15:30Z",
            "lastTransitionTime": "2025-11-20T08:15:30Z",
            "reason": reason,
            "message": format!("{reason}, says the kubelet of this node"),
        })
    };
    kinds.into_iter().map(condition).collect()
}

fn resources(processors: &str, memory: &str) -> Value {
    json!({
        "cpu": processors,
        "ephemeral-storage": "104845292Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": memory,
        "pods": "58",
    })
}

fn system(random: &mut Random) -> Value {
    json!({
        "machineID": format!("{:016x}{:016x}", random.word(), random.word()),
        "systemUUID": random.uid(),
        "bootID": random.uid(),
        "kernelVersion": "6.1.115-126.197.amzn2023.x86_64",
        "osImage": "Amazon Linux 2023.6.20241121",
        "containerRuntimeVersion": "containerd://1.7.23",
        "kubeletVersion": "v1.31.2-eks-94953ac",
        "kubeProxyVersion": "v1.31.2-eks-94953ac",
        "operatingSystem": "linux",
        "architecture": "amd64",
    })
}

/// What the nodes of a cluster all have pulled.
fn images(random: &mut Random) -> Value {
    let image = |number| {
        let repository =
            format!("registry.example.com/platform/team-{}/service-{number:02}", number % 7);
        let [a, b, c, d] = std::array::from_fn(|_| random.word());
        let digest = format!("{a:016x}{b:016x}{c:016x}{d:016x}");
        json!({
            "names": [
                format!("{repository}@sha256:{digest}"),
                format!("{repository}:v1.{number}.0"),
            ],
            "sizeBytes": random.word() >> 36,
        })
    };
    (0..IMAGES).map(image).collect()
}
