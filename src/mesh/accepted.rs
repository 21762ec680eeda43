//! Accepted networks: the ranges that a cluster accepts from others, from the mesh or the config.

use crate::diagnostic::Mistakes;
use crate::place::Place;

use super::Range;
use super::networks::{any_range, list};

/// Returns the ranges of the list at `place`, or reports what is wrong with it.
///
/// That there is at least one is a matter of structure.
pub fn accepted(texts: &[String], place: &Place, findings: &mut Mistakes) -> Option<Vec<Range>> {
    list(texts, place, findings, any_range)
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::report;

    #[test]
    fn ranges_are_ranges_and_may_be_everything() {
        insta::assert_snapshot!(report("
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
    - { name: a, allowedNetworks: [10.1.0.0/16], acceptedNetworks: [0.0.0.0/0, '::/0', 10.2.0.1/16] }
    - { name: b, allowedNetworks: [10.2.0.0/16], acceptedNetworks: [10.0.0.0] }
    - { name: c, allowedNetworks: [10.3.0.0/16], acceptedNetworks: [] }
    - { name: d, allowedNetworks: [10.4.0.0/16], acceptedNetworks: null }
"), @"
error[invalid-value]: `acceptedNetworks` needs at least 1 item, not 0
  9:68 | []
warning[host-bits]: `10.2.0.1/16` has host bits set; clustermesh reads it as 10.2.0.0/16
  7:88 | 10.2.0.1/16
  help: write `10.2.0.0/16`
error[invalid-range]: invalid range: `10.0.0.0` has no prefix length such as `/16`
  8:69 | 10.0.0.0
  help: write ADDRESS/LENGTH, for example `10.42.0.0/16` or `fd00:42::/56`
");
    }
}
