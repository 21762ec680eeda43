//! The WireGuard configuration of an external peer, which its owner installs on the host.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use crate::mesh::ExternalPeer;
use crate::name::{ClusterName, MeshName};
use crate::net::{Cidr, Family};
use crate::plan::{Plan, Target, TargetReason};
use crate::schema::ExampleFile;
use crate::text::shell_word;
use crate::wireguard::Endpoint;

/// The text where the private key has to be. Only the host should know it.
const KEY_PLACEHOLDER: &str = "REPLACE-WITH-THE-PRIVATE-KEY";

/// The longest name of a network device in Linux, in bytes.
const DEVICE_LIMIT: usize = 15;

/// The WireGuard of a host: itself, and a Peer for each segment of each of its clusters.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "WireGuardConfiguration", example = ExampleFile(include_str!("host_config/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct HostConfig {
    /// The external peer.
    name: String,
    /// Its mesh.
    mesh: String,
    /// Its public key. The configuration needs the private key for it.
    public_key: String,
    /// Its own addresses: those of its ranges that are one address.
    addresses: Vec<String>,
    /// The port at which the clusters dial it; missing if they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    listen_port: Option<u16>,
    /// Its DNS servers.
    dns: Vec<String>,
    /// The largest packet; missing for the default of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<u16>,
    /// The segments of the clusters, in the order of the names of their Peers.
    peers: Vec<HostPeer>,
    /// The number of segments that are left out because neither they nor the host can be dialled.
    left_out: usize,
    /// The clusters of its entry without a tunnel.
    clusters_without_tunnel: Vec<String>,
}

/// A segment of a cluster, as the host sees it.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct HostPeer {
    /// The name that the Peer has in clusters.
    name: String,
    /// The cluster.
    cluster: String,
    /// Its public key.
    public_key: String,
    /// The ranges that are routed to it and accepted from it.
    #[serde(rename = "allowedIPs")]
    allowed_ips: Vec<String>,
    /// The endpoint; missing if it is behind NAT, so that it must dial the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// The seconds between keepalives; 0 disables them.
    persistent_keepalive: u16,
}

/// The values that no mesh contains.
#[derive(Debug, Default)]
pub struct HostOptions {
    /// DNS servers.
    pub dns: Vec<String>,
    /// The largest packet.
    pub mtu: Option<u16>,
    /// The seconds between keepalives.
    pub keepalive: u16,
    /// The file on the host with its private key, if it is known.
    pub private_key_file: Option<String>,
}

impl HostConfig {
    /// Returns the configuration of an external peer of a mesh, which is `target` in the plan.
    pub fn new(
        mesh: &MeshName,
        external: &ExternalPeer,
        plan: &Plan,
        target: &Target,
        options: &HostOptions,
    ) -> Self {
        let ranges = external.entry.networks.all();
        let has = |family: Family| ranges.iter().any(|it| it.cidr.family() == family);
        // `wg-quick` gives up at a route for IPv6 on a host that has none.
        let is_reached = |it: &&Cidr| ranges.is_empty() || has(it.family());
        let mut peers = Vec::new();
        for set in plan.sets_of(target) {
            for peer in &set.peers {
                let endpoint = peer.endpoint.as_ref().filter(|it| !it.is_placeholder());
                peers.push(HostPeer {
                    name: peer.name.to_string(),
                    cluster: set.source.to_string(),
                    public_key: peer.key.to_string(),
                    allowed_ips: peer
                        .allowed_ips
                        .iter()
                        .filter(is_reached)
                        .map(Cidr::to_string)
                        .collect(),
                    endpoint: endpoint.map(Endpoint::to_string),
                    persistent_keepalive: options.keepalive,
                });
            }
        }
        let own = plan.withheld.iter().filter(|it| it.target == target.cluster);
        let left_out = own.map(|it| match *it.reason {
            TargetReason::NoInitiator { peers } => peers,
            _ => 0,
        });
        let left_out = left_out.sum();
        let reached: BTreeSet<&str> = peers.iter().map(|it| it.cluster.as_str()).collect();
        let clusters = external.clusters.iter().map(ClusterName::as_str);
        let without_tunnel = clusters.filter(|it| !reached.contains(it));
        let clusters_without_tunnel = without_tunnel.map(str::to_owned).collect();
        let addresses = ranges.iter().filter(|it| it.cidr.first() == it.cidr.last());
        Self {
            name: external.entry.name.external().unwrap_or_default().to_owned(),
            mesh: mesh.to_string(),
            public_key: external.key.to_string(),
            addresses: addresses.map(|it| it.cidr.to_string()).collect(),
            listen_port: external.endpoint.as_ref().map(|it| it.port.get()),
            dns: options.dns.clone(),
            mtu: options.mtu,
            peers,
            left_out,
            clusters_without_tunnel,
        }
    }

    /// Returns whether it has no address of its own, so that the host uses one that it has already.
    pub fn is_without_address(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Returns whether an endpoint is a DNS name.
    pub fn has_names(&self) -> bool {
        let endpoints = self.peers.iter().filter_map(|it| it.endpoint.as_ref());
        let mut endpoints = endpoints.filter_map(|it| it.parse::<Endpoint>().ok());
        endpoints.any(|it| it.address().is_none())
    }

    /// Returns the number of segments that are left out because neither they nor the host can be dialled.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Returns the clusters of its entry without a tunnel.
    pub fn clusters_without_tunnel(&self) -> &[String] {
        &self.clusters_without_tunnel
    }

    /// Returns it as a file of `wg-quick`.
    pub fn wg_quick(&self, options: &HostOptions) -> String {
        let mut text = self.head();
        text.push_str("[Interface]\n");
        let mut line = |key: &str, value: &str| push(&mut text, key, value);
        match &options.private_key_file {
            None => line("PrivateKey", KEY_PLACEHOLDER),
            Some(path) => {
                let command = format!("wg set %i private-key {}", shell_word(path));
                line("PostUp", &command);
            }
        }
        for (key, values) in [("Address", &self.addresses), ("DNS", &self.dns)] {
            if !values.is_empty() {
                line(key, &values.join(", "));
            }
        }
        for (key, value) in [("MTU", self.mtu), ("ListenPort", self.listen_port)] {
            if let Some(value) = value {
                line(key, &value.to_string());
            }
        }
        for peer in &self.peers {
            let _ = write!(text, "\n# {}\n[Peer]\n", peer.name);
            peer.push_to(&mut text);
        }
        text
    }

    /// Returns it as the two files of `systemd-networkd`, each behind a comment with its path.
    pub fn networkd(&self, options: &HostOptions) -> String {
        let device = self.device();
        let default_path = || format!("/etc/systemd/network/{device}.key");
        let key_file = options.private_key_file.clone().unwrap_or_else(default_path);
        let mut text = self.head();
        let _ = write!(text, "# /etc/systemd/network/{device}.netdev\n[NetDev]\n");
        push(&mut text, "Name", &device);
        push(&mut text, "Kind", "wireguard");
        if let Some(mtu) = self.mtu {
            push(&mut text, "MTUBytes", &mtu.to_string());
        }
        text.push_str("\n[WireGuard]\n");
        push(&mut text, "PrivateKeyFile", &key_file);
        if let Some(port) = self.listen_port {
            push(&mut text, "ListenPort", &port.to_string());
        }
        push(&mut text, "RouteTable", "main");
        for peer in &self.peers {
            let _ = write!(text, "\n# {}\n[WireGuardPeer]\n", peer.name);
            peer.push_to(&mut text);
        }
        let _ = write!(
            text,
            "\n# /etc/systemd/network/{device}.network\n[Match]\nName = {device}\n\n[Network]\n"
        );
        for (key, values) in [("Address", &self.addresses), ("DNS", &self.dns)] {
            for value in values {
                push(&mut text, key, value);
            }
        }
        text
    }

    /// Returns the name of the network device.
    fn device(&self) -> String {
        let name = format!("wg-{}", self.name);
        name.get(..DEVICE_LIMIT).unwrap_or(&name).trim_end_matches('-').to_owned()
    }

    fn head(&self) -> String {
        format!(
            "# External peer {} of mesh {}, generated by clustermesh\n# Public key: {}\n",
            self.name, self.mesh, self.public_key
        )
    }
}

impl HostPeer {
    fn push_to(&self, text: &mut String) {
        push(text, "PublicKey", &self.public_key);
        push(text, "AllowedIPs", &self.allowed_ips.join(", "));
        if let Some(endpoint) = &self.endpoint {
            push(text, "Endpoint", endpoint);
        }
        if 0 < self.persistent_keepalive {
            let seconds = self.persistent_keepalive.to_string();
            push(text, "PersistentKeepalive", &seconds);
        }
    }
}

fn push(text: &mut String, key: &str, value: &str) {
    // Writing into a `String` cannot fail.
    let _ = writeln!(text, "{key} = {value}");
}
