//! Changes of Peers that have nothing to do with each other, so that no order of them matters.

use super::arrival::Object;
use crate::agent::fabric::Fabric;
use crate::agent::peers::has_same_routes;

/// Returns whether nothing of any object depends on another one: each keeps its key and its ranges, and
/// no other has them or leads to its segment.
pub(super) fn are_apart(objects: &[Object], fabric: &Fabric) -> bool {
    let (mut keys, mut segments, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    for object in objects {
        let (Some(old), Some(new)) = (object.old, object.new) else {
            return false;
        };
        let Ok(spec) = &new.spec else {
            return false;
        };
        if !has_same_routes(old, new) {
            return false;
        }
        keys.push(spec.key);
        ranges.extend(spec.allowed_ips.iter().map(|it| it.interface.network));
        let holders = fabric.holders(&spec.key).iter();
        segments.extend(
            holders.filter_map(|at| Some((at.site, fabric.site(at.site).segment(at.node)?))),
        );
    }
    are_unique(keys) && are_unique(segments) && are_unique(ranges)
}

fn are_unique<T: Ord>(mut all: Vec<T>) -> bool {
    all.sort_unstable();
    all.windows(2).all(|pair| match pair {
        [one, other] => one != other,
        _ => true,
    })
}
