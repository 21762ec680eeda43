//! Granularity: is it known how the cluster is cut?

use super::inspected_cluster::InspectedCluster;
use super::{MISSING_GRANULARITY, UNCONFIRMED_CROSS};
use crate::granularity::Granularity;
use crate::rules::Finding;

/// Returns a finding if no node reports the granularity of its cluster.
pub(super) fn finding(inspected: &InspectedCluster) -> Option<Finding> {
    let entry = &inspected.member.entry;
    if inspected.member.membership.usable.is_empty()
        || inspected.all_nodes().any(|it| it.1.granularity.is_some())
    {
        return None;
    }
    let (rule, message, help, place) = match entry.granularity {
        None => {
            let message = "no node shows Kilo's granularity; `Location` is assumed";
            let help = "set `granularity` in the mesh to the value of Kilo's `--mesh-granularity`";
            (&MISSING_GRANULARITY, message, help, entry.place.key("name"))
        }
        Some(Granularity::Cross) => {
            let message = "no node shows that its Kilo supports `Cross`, and no release up to \
                0.7.0 does";
            let help = "set `granularity` to the value of Kilo's `--mesh-granularity`: `Location` \
                (the default) or `Full`";
            let place = entry.field("granularity");
            (&UNCONFIRMED_CROSS, message, help, place)
        }
        Some(_) => return None,
    };
    let finding = Finding::on_cluster(rule, &entry.name, message);
    Some(finding.at(place, "").help(help))
}

#[cfg(test)]
mod tests {
    use crate::rules::tests::report;

    fn report_on(fields: &str, says: &str) -> String {
        let node = "n pod=10.1.1.0/24 wg=10.101.0.1/24 key=A endpoint=198.18.0.1:51820 external=198.18.0.1 internal-ip=192.168.0.1/24";
        let nodes = format!("{node} {says}");
        report(
            super::super::tests::findings,
            &[("east", fields, &nodes), ("west", "granularity: Full", "")],
        )
    }

    #[test]
    fn silence_is_reported_where_something_hangs_on_it() {
        insta::assert_snapshot!(report_on("", ""), @"
        notice[missing-granularity] east: no node shows Kilo's granularity; `Location` is assumed
          mesh.yaml#/spec/clusters/0/name 
          help: set `granularity` in the mesh to the value of Kilo's `--mesh-granularity`
        ");
        insta::assert_snapshot!(report_on("granularity: Cross", ""), @"
        warning[unconfirmed-cross] east: no node shows that its Kilo supports `Cross`, and no release up to 0.7.0 does
          mesh.yaml#/spec/clusters/0/granularity 
          help: set `granularity` to the value of Kilo's `--mesh-granularity`: `Location` (the default) or `Full`
        ");
        assert_eq!(report_on("granularity: Full", ""), "");
        assert_eq!(report_on("granularity: Location", ""), "");
    }

    #[test]
    fn quiet_where_a_node_says_it() {
        assert_eq!(report_on("", "granularity=full"), "");
        assert_eq!(report_on("granularity: Cross", "granularity=cross"), "");
    }
}
