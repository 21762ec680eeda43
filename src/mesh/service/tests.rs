//! Services as they are written, and what is wrong with them.

use crate::mesh::tests::report;

/// Returns the findings about a mesh with a Service.
fn services(services: &str) -> String {
    accepting("shop", services)
}

/// Returns the same where a cluster accepts Services in other namespaces.
fn accepting(accepted: &str, services: &str) -> String {
    report(&format!(
            "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: {{ name: m }}
spec:
  topology: {{ mode: Links, links: [[a, b], [b, c]] }}
  clusters:
  - {{ name: a, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.201.0.0/24, acceptedServices: [shop, default] }}
  - {{ name: b, podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.202.0.0/24, serviceCIDR: 10.102.0.0/16 }}
  - {{ name: c, allowedNetworks: [10.3.0.0/16], acceptedServices: [{accepted}] }}
  services:
{services}
"
        ))
}

#[test]
fn names_clusters_and_addresses_are_checked() {
    insta::assert_snapshot!(accepting(
            "kube-system, shop, shop, X",
            "
  - { name: api, namespace: Shop, cluster: b, clusterIPs: [10.102.0.1], ports: [{ port: 80 }], in: [a] }
  - { name: 1api, namespace: shop, cluster: d, clusterIPs: [x, 10.102.0.1], ports: [{ port: 80 }], in: [a, a, e] }
  - { name: web, namespace: shop, cluster: b, clusterIPs: [10.102.0.1, 10.103.0.1], ports: [{ port: 80 }], in: [a] }
"
        ), @"
        error[invalid-value]: `kube-system` is a namespace of Kubernetes
          10:67 | kube-system
          help: accept Services of other clusters in a namespace of yours
        error[duplicate-item]: duplicate namespace `shop`
          10:86 | shop | second here
          10:80 | shop | first here
          help: remove one of the two
        error[invalid-value]: `X` is not a valid namespace name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
          10:92 | X
          help: write `x`
        error[invalid-value]: `Shop` is not a valid namespace name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
          13:29 | Shop
          help: write `shop`
        error[unknown-cluster]: this mesh has no cluster `d`
          14:45 | d
          help: correct or remove `d`, or declare a cluster of this name; known clusters: `a`, `b`, `c`
        error[invalid-value]: `1api` is not a valid Service name: expected a lowercase letter, then lowercase letters, digits and inner dashes (a DNS-1035 label)
          14:13 | 1api
        error[invalid-value]: `x` is not an IP address
          14:61 | x
          help: write a cluster IP that `kubectl get service` prints; a headless Service has none, and cannot be mirrored
        error[duplicate-item]: duplicate cluster `a`
          14:108 | a | second here
          14:105 | a | first here
          help: remove one of the two
        error[unknown-cluster]: this mesh has no cluster `e`
          14:111 | e
          help: correct or remove `e`, or declare a cluster of this name; known clusters: `a`, `b`, `c`
        error[duplicate-item]: a second IPv4 address
          15:72 | 10.103.0.1
          help: write one of each family
        error[invalid-value]: the cluster IP is outside of `serviceCIDR` (10.102.0.0/16)
          15:72 | 10.103.0.1
          help: write the cluster IP that `kubectl get service` prints, or correct `serviceCIDR`
        ");
}

#[test]
fn only_linked_clusters_that_accept_the_namespace_get_it() {
    let service = |fields: &str| {
        format!(
            "  - {{ cluster: b, clusterIPs: [10.102.0.1], ports: [{{ port: 80 }}], {fields} }}\n"
        )
    };
    let all = [
        service("name: api, namespace: shop, in: [a, b]"),
        service("name: web, namespace: other, in: [a]"),
        service("name: kubernetes, namespace: default, in: [a]"),
        service("name: api, namespace: other, in: [a], as: { namespace: shop }"),
    ];
    insta::assert_snapshot!(services(&all.concat()), @"
    error[contradicting-fields]: `b` has the Service itself
      12:104 | b
      help: write into `in` only the clusters that should get it from `b`
    error[contradicting-fields]: `acceptedServices` of `a` does not have the namespace `other`
      13:102 | a
      help: write a namespace that `a` accepts (`default`, `shop`), or add `other` to its `acceptedServices`
    error[contradicting-fields]: `default/kubernetes` of `a` is its own API server
      14:111 | a
      help: give it another name: `as: {name: …}`
    ");
    let far = "  - { name: api, namespace: shop, cluster: c, clusterIPs: [10.3.0.9], ports: [{ port: 80 }], in: [a] }\n";
    insta::assert_snapshot!(services(far), @"
        error[contradicting-fields]: `a` is not linked to `c`
          12:99 | a
          help: link them in `topology`, or remove `a`
        ");
}

#[test]
fn ports_are_as_kubernetes_wants_them() {
    insta::assert_snapshot!(services(
            "
  - name: api
    namespace: shop
    cluster: b
    clusterIPs: [10.102.0.1]
    in: [a]
    ports: [{ port: 80 }, { name: b, port: 81, appProtocol: 'a b' }, { name: b, port: 82 }, { name: c, port: 81 }, { name: D, port: 83 }]
"
        ), @"
        error[missing-field]: a Service with several ports needs a name for each
          18:13 | { port: 80 }
          help: write the `name` that the Service has
        error[invalid-value]: `a b` is not an application protocol
          18:61 | 'a b'
          help: write a name such as `http` or `kubernetes.io/h2c`
        error[duplicate-item]: duplicate port name `b`
          18:78 | b | second here
          18:35 | b | first here
          help: give each port a name of its own, or remove one of the two
        error[duplicate-item]: duplicate port 81
          18:110 | 81 | second here
          18:44 | 81 | first here
          help: remove one of the two
        error[invalid-value]: `D` is not a DNS-1123 label
          18:124 | D
          help: write the `name` that the Service has
        ");
}
