//! Distributions of Kubernetes whose default ranges are known.

use crate::net::Cidr;

/// The default ranges of some distributions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Distribution {
    /// The range of the pods.
    pub pods: &'static str,
    /// The range of the Services.
    pub services: &'static str,
    /// The distribution with these pods.
    pub name: &'static str,
    /// The distributions with these Services.
    pub with_services: &'static str,
}

/// Kubernetes as it is without a distribution's own defaults. It has no default for pods; the range is flannel's.
pub const KUBEADM: Distribution = Distribution {
    pods: "10.244.0.0/16",
    services: "10.96.0.0/12",
    name: "kubeadm with flannel",
    with_services: "kubeadm and Talos",
};

/// Kubernetes as k3s and RKE2 install it.
pub const K3S: Distribution = Distribution {
    pods: "10.42.0.0/16",
    services: "10.43.0.0/16",
    name: "k3s",
    with_services: "k3s and RKE2",
};

impl Distribution {
    /// Returns the distribution that has a range of pods by default.
    pub fn with_pods(pods: Cidr) -> Option<Self> {
        [K3S, KUBEADM].into_iter().find(|it| it.pods == pods.to_string())
    }
}
