//! Families: what Kilo routes between the nodes of a cluster is of one family, or reported.

use proptest::prelude::*;

use clustermesh::agent::fabric::Site;
use clustermesh::plan;
use clustermesh::rules;

use super::in_fleet;
use super::world::{mesh, mixed, name};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_kernels_refuse_between_nodes_has_a_finding((world, families) in mixed()) {
        in_fleet(&world, &mesh(&world), |fleet, _| {
            let plan = plan::plan(fleet).unwrap();
            let findings = rules::findings(fleet, Some(&plan));
            for (i, (member, families)) in fleet.members().iter().zip(&families).enumerate() {
                let site = Site::new(member.entry, &member.file.snapshot, &[]);
                prop_assert_eq!(!site.has_refused_routes(), families.are_one());
                let mut findings = findings.iter().filter(|it| it.cluster == Some(name(i)));
                let is_reported = findings.any(|it| it.rule.name() == "mismatched-subnet");
                prop_assert_eq!(is_reported, !families.are_one());
            }
            Ok(())
        })?;
    }
}
