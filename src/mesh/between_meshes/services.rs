//! Mirrored Services: which ones of all meshes would be one object.

use std::collections::BTreeMap;

use crate::diagnostic::{Finding, mistake};
use crate::mesh::{Mesh, MirroredService};
use crate::name::ServiceName;

pub(super) fn check(meshes: &[Mesh]) -> Vec<Finding> {
    let services = || meshes.iter().flat_map(|it| &it.services);
    let mut by_name: BTreeMap<&ServiceName, usize> = BTreeMap::new();
    for service in services() {
        *by_name.entry(&service.local).or_default() += 1;
    }
    let mut first: BTreeMap<_, &MirroredService> = BTreeMap::new();
    let mut findings = Vec::new();
    for service in services().filter(|it| by_name.get(&it.local).is_some_and(|it| 1 < *it)) {
        let mut others = service.targets.iter().filter_map(|target| {
            let known = first.get(&(target, &service.local))?;
            Some((target, *known))
        });
        if let Some((target, other)) = others.next() {
            let message = format!("`{target}` gets two Services with the name `{}`", service.local);
            let finding = Finding::new(&mistake::DUPLICATE_NAME, message);
            findings.push(
                finding
                    .at_both(service.place.clone(), other.place.clone())
                    .help("give one of them another name: `as: {name: …}`"),
            );
        }
        for target in &service.targets {
            first.entry((target, &service.local)).or_insert(service);
        }
    }
    findings
}
