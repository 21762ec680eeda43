//! Tenants around a hub: the mesh and the snapshots of `examples/two-hundred-tenants`, in every form of `advertise`.
#![allow(dead_code, reason = "each target needs a part of it")]

use std::fmt::{self, Write as _};
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::{Value, json};

use super::random::Random;

/// The nodes of the hub, which has a Peer for each of them in every tenant.
const HOST_NODES: u32 = 30;

/// Some tenants of one hub, all alike.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Tenants {
    /// The number of tenants.
    pub(crate) count: u32,
    /// The number of nodes of each tenant.
    pub(crate) nodes: u32,
    /// The ranges that tenants advertise.
    pub(crate) form: Form,
    /// The pod CIDRs of the nodes of a tenant in two locations.
    pub(crate) placement: Placement,
    /// Whether tenants are also linked with each other.
    pub(crate) are_linked: bool,
}

/// The example in `examples/two-hundred-tenants`.
pub(crate) const EXAMPLE: Tenants = Tenants::new(Form::Declared, Placement::Together);

/// The ranges that tenants advertise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// The default, with a Peer for each node.
    Full,
    /// The default, with a Peer for each location.
    Location,
    /// The pod CIDRs of a location in as few ranges as possible, and no WireGuard addresses.
    Merged,
    /// The declared pod ranges, and no WireGuard addresses.
    Declared,
}

/// The locations of a tenant's nodes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Placement {
    /// One location.
    Together,
    /// Two locations, each with a pool of pod addresses of its own.
    Pools,
}

impl Tenants {
    /// Two hundred tenants of 20 nodes.
    pub(crate) const fn new(form: Form, placement: Placement) -> Self {
        Self { count: 200, nodes: 20, form, placement, are_linked: false }
    }

    /// Writes the mesh and the snapshots.
    pub(crate) fn write(self, folder: &Path) -> std::io::Result<()> {
        fs::create_dir_all(folder.join("snapshots"))?;
        fs::write(folder.join("mesh.yaml"), self.mesh())?;
        let mut random = Random(0x7465_6e61);
        for index in 0..=self.count {
            let name = name(index);
            let nodes = if index == 0 { HOST_NODES } else { self.nodes };
            let nodes = (0..nodes).map(|place| self.node(&mut random, index, place));
            let snapshot = json!({
                "apiVersion": "kilo-clustermesh.io/v1",
                "cluster": name,
                "kind": "NodeSnapshot",
                "nodes": nodes.collect::<Vec<_>>(),
            });
            let file = folder.join("snapshots").join(format!("{name}.json"));
            fs::write(file, format!("{snapshot:#}\n"))?;
        }
        Ok(())
    }

    /// Returns the number of Peers in the hub.
    pub(crate) fn peers(self) -> u32 {
        let of_each = match self.form {
            Form::Full => self.nodes,
            Form::Location | Form::Merged | Form::Declared => self.placement.locations(),
        };
        self.count * of_each
    }

    /// Returns the text of `mesh.yaml`.
    pub(crate) fn mesh(self) -> String {
        let topology =
            if self.are_linked { "{ mode: FullMesh }" } else { "{ mode: Hub, hubs: [hub] }" };
        let mut text = format!(
            "\
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata:
  name: platform
spec:
  topology: {topology}
  clusters:
    - name: hub
      podCIDRs: [172.20.0.0/16]
      wireguardCIDR: 100.127.0.0/20
      granularity: Full
"
        );
        for index in 1..=self.count {
            text.push_str(&self.entry(index));
        }
        text
    }

    fn entry(self, index: u32) -> String {
        let name = name(index);
        let pools = self.pools(index);
        let mut entry = format!("    - name: {name}\n      podCIDRs: [{}]\n", pools.join(", "));
        // No other cluster gets addresses in it, so all tenants may have Kilo's default.
        let wireguard = if self.is_default() {
            format!("{}/20", Ipv4Addr::from_bits(0x6440_0000 + (index << 12)))
        } else {
            "10.4.0.0/16".to_owned()
        };
        let _ = writeln!(entry, "      wireguardCIDR: {wireguard}");
        let granularity = match self.form {
            Form::Full => "Full",
            Form::Location | Form::Merged | Form::Declared => "Location",
        };
        let _ = writeln!(entry, "      granularity: {granularity}");
        if self.form == Form::Declared {
            entry.push_str("      anchors:\n");
            for (location, pool) in (0..).zip(&pools) {
                let step = usize::try_from(self.placement.locations()).unwrap_or(1);
                let nodes: Vec<String> = (location..self.nodes)
                    .step_by(step)
                    .take(3)
                    .map(|place| node_name(index, place))
                    .collect();
                let nodes = nodes.join(", ");
                let _ = writeln!(entry, "        - {{ ranges: [{pool}], nodes: [{nodes}] }}");
            }
        }
        if !self.is_default() {
            let pods = self.form;
            let _ = writeln!(
                entry,
                "      advertise: {{ podCIDRs: {pods:?}, nodeAddresses: false, wireguardAddresses: None }}"
            );
        }
        entry
    }

    fn is_default(self) -> bool {
        matches!(self.form, Form::Full | Form::Location)
    }

    /// Returns the number of bits of the addresses in a pod CIDR.
    fn pod_bits(self) -> u32 {
        if self.nodes <= 128 { 8 } else { 6 }
    }

    /// Returns the number of pod CIDRs in each pool of a tenant.
    fn pool_size(self) -> u32 {
        match self.placement {
            Placement::Together => self.nodes.next_power_of_two(),
            Placement::Pools => self.nodes.div_ceil(2).next_power_of_two(),
        }
    }

    /// Returns the first address of a tenant's pods.
    fn pods(self, index: u32) -> u32 {
        let pools = if self.placement == Placement::Pools { 2 } else { 1 };
        0x0a10_0000 + (index - 1) * pools * (self.pool_size() << self.pod_bits())
    }

    /// Returns the declared pod ranges of a tenant.
    fn pools(self, index: u32) -> Vec<String> {
        let length = 32 - self.pod_bits() - self.pool_size().ilog2();
        let pools = if self.placement == Placement::Pools { 2 } else { 1 };
        let first = self.pods(index);
        let pool =
            |number| Ipv4Addr::from_bits(first + number * (self.pool_size() << self.pod_bits()));
        (0..pools).map(|it| format!("{}/{length}", pool(it))).collect()
    }

    /// Returns a node as its snapshot has it. The first node of each location leads it.
    fn node(self, random: &mut Random, index: u32, place: u32) -> Value {
        let is_hub = index == 0;
        let locations = self.placement.locations();
        let is_by_location = !is_hub && self.form != Form::Full;
        let subnet = match (is_hub, self.is_default()) {
            (true, _) => Ipv4Addr::new(100, 127, 0, 0),
            (false, true) => Ipv4Addr::from_bits(0x6440_0000 + (index << 12)),
            (false, false) => Ipv4Addr::new(10, 4, 0, 0),
        };
        let pods = match (is_hub, self.placement) {
            (true, _) => 0xac14_0000 + (place << 8),
            (false, Placement::Together) => self.pods(index) + (place << self.pod_bits()),
            (false, Placement::Pools) => {
                let pool = (place % locations) * (self.pool_size() << self.pod_bits());
                self.pods(index) + pool + ((place / locations) << self.pod_bits())
            }
        };
        let external = Ipv4Addr::from_bits(0x0b00_0000 + (index << 9) + place + 1);
        let internal = Ipv4Addr::from_bits(0xc0a8_0000 + place + 10);
        let length = if is_hub { 24 } else { 32 - self.pod_bits() };
        let mut annotations = json!({
            "kilo.squat.ai/endpoint": format!("{external}:51820"),
            "kilo.squat.ai/force-endpoint": format!("{external}:51820"),
            "kilo.squat.ai/granularity": if is_by_location { "location" } else { "full" },
            "kilo.squat.ai/internal-ip": format!("{internal}/16"),
            "kilo.squat.ai/key": random.key(),
            "kilo.squat.ai/persistent-keepalive": "25",
        });
        if is_by_location {
            annotations["kilo.squat.ai/location"] = ["x", "y"][(place % locations) as usize].into();
        }
        if !is_by_location || place < locations {
            let address = Ipv4Addr::from_bits(u32::from(subnet) + place + 1);
            let length = if is_hub || self.is_default() { 20 } else { 16 };
            annotations["kilo.squat.ai/wireguard-ip"] = format!("{address}/{length}").into();
        }
        json!({
            "addresses": [{ "address": internal, "type": "InternalIP" }],
            "annotations": annotations,
            "labels": {},
            "name": node_name(index, place),
            "podCIDRs": [format!("{}/{length}", Ipv4Addr::from_bits(pods))],
            "uid": random.uid(),
        })
    }
}

impl Placement {
    fn locations(self) -> u32 {
        match self {
            Self::Together => 1,
            Self::Pools => 2,
        }
    }
}

impl fmt::Display for Tenants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            Form::Full => "`Full`",
            Form::Location => "`Location`",
            Form::Merged => "`Merged`",
            Form::Declared => "`Declared`",
        };
        f.write_str(form)?;
        match (self.form, self.placement) {
            (Form::Full, _) => Ok(()),
            (_, Placement::Together) => f.write_str(", one location"),
            (_, Placement::Pools) => f.write_str(", two pools"),
        }
    }
}

/// Returns the name of a cluster; the first is the hub.
fn name(index: u32) -> String {
    match index {
        0 => "hub".to_owned(),
        index => format!("tenant-{index:03}"),
    }
}

fn node_name(index: u32, place: u32) -> String {
    match index {
        0 => format!("hub-{:02}", place + 1),
        index => format!("t{index:03}-{:02}", place + 1),
    }
}
