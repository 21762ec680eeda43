//! Services of other clusters: which ones a cluster does not get, and which do not work.

use super::Finding;
use crate::diagnostic::{FindingCause, Severity};
use crate::mesh::MirroredService;
use crate::mirror::{Flaw, Flawed, Mirrors};
use crate::name::{ClusterName, ServiceName};
use crate::net::{Family, family};
use crate::text::{self, listed};

rules! {
    "Services of other clusters" in "services" about Plan;
    CHANGED_SERVICE = "changed-service" Error;
    MISSING_SERVICES = "missing-services" Error;
    UNCARRIED_SERVICE = "uncarried-service" Warning;
    UNMIRRORED_SERVICE = "unmirrored-service" Error;
}

/// Returns what is wrong with Services as clusters have them. Clusters cause it, so that none of it stops a render, and what
/// is not known, which does.
pub(super) fn findings(mirrors: &Mirrors) -> Vec<Finding> {
    let flawed = mirrors.flaws.iter().map(flawed);
    unknown(mirrors).into_iter().chain(flawed).collect()
}

/// Returns the same without Services that no Peer carries: a proof of their paths finds these.
pub fn without_paths(mirrors: &Mirrors) -> impl Iterator<Item = Finding> {
    let findings = findings(mirrors).into_iter();
    findings.filter(|it| it.rule != &UNCARRIED_SERVICE)
}

/// Returns whether a finding holds back Services of other clusters, and no Peer.
pub fn holds_back_services(finding: &Finding) -> bool {
    finding.rule == &MISSING_SERVICES
}

/// Returns the clusters of which it is not known what they have under the names of Services.
fn unknown(mirrors: &Mirrors) -> Vec<Finding> {
    let unknown = mirrors.unknown.iter().map(|(cluster, services_of)| {
        let services = listed(services_of.iter().map(|it| format!("`{it}`")));
        let message = if mirrors.unread.contains(cluster) {
            format!("it has no snapshot of Services, so {services} cannot be checked")
        } else {
            format!("its snapshot of Services lacks {services}")
        };
        let help = "run `clustermesh snapshot --services`, or with `--from` a file of each cluster";
        let help = match mirrors.unnamed.get(cluster) {
            Some(unnamed) => format!(
                "correct the name if another Service is meant ({}); otherwise {help}",
                listed(unnamed.iter().map(|it| format!("`{it}`")))
            ),
            None => help.to_owned(),
        };
        // Clusters lack a misspelled name together, and one of them shows what is meant.
        let is_lead = |it: &&&ClusterName| mirrors.unknown.get(**it) == Some(services_of);
        let lead = mirrors.unnamed.keys().find(is_lead).filter(|it| **it != *cluster);
        let lead = lead.map(|it| FindingCause::of(&MISSING_SERVICES, it));
        let finding = Finding::on_cluster(&MISSING_SERVICES, cluster, message).with_cause(lead);
        finding.of_name(cluster.as_str()).help(help)
    });
    unknown.collect()
}

fn flawed(flawed: &Flawed) -> Finding {
    let Flawed { service, target, flaw } = flawed;
    let rule = match flaw {
        Flaw::Vanished | Flaw::Moved(_) | Flaw::NoPort(..) => &CHANGED_SERVICE,
        Flaw::Uncarried(_) => &UNCARRIED_SERVICE,
        _ => &UNMIRRORED_SERVICE,
    };
    let cluster = target.unwrap_or(&service.source);
    let mut finding = Finding::on_cluster(rule, cluster, message(service, flaw));
    if *flaw == Flaw::Vanished {
        finding.severity = Severity::Warning;
    }
    finding.is_of_nodes = true;
    finding.named = Some(service.source.as_str().into());
    finding.at(service.place.clone(), "").help(help(service, cluster, flaw))
}

fn message(service: &MirroredService, flaw: &Flaw) -> String {
    let (name, local) = (&service.name, &service.local);
    let source = &service.source;
    match flaw {
        Flaw::Headless => format!("`{name}` is headless, so no cluster gets it"),
        Flaw::ExternalName => format!("`{name}` is an ExternalName, so no cluster gets it"),
        Flaw::LocalEndpoints => format!(
            "`{name}` has `internalTrafficPolicy: Local`, so no cluster gets it: its packets would end at nodes without its pods"
        ),
        Flaw::IsMirror => {
            format!("`{name}` is itself the Service of another cluster, so no cluster gets it")
        }
        Flaw::Taken => format!(
            "does not get `{local}` of `{source}`, because it has another Service of this name"
        ),
        Flaw::OtherFamily(family) => format!(
            "does not get `{local}` of `{source}`, because Kilo routes {family} there, and `clusterIPs` has no {family} address"
        ),
        Flaw::Vanished => {
            format!("`{name}` does not exist, but `render` writes it for other clusters")
        }
        Flaw::Moved(addresses) => format!(
            "`{name}` has the cluster IP {}, but `clusterIPs` has {}",
            text::list(addresses),
            text::list(&service.addresses)
        ),
        Flaw::NoPort(port, _) => format!("`{name}` has no port {port}"),
        Flaw::Uncarried(address) => {
            format!("gets `{local}`, but no Peer of `{source}` contains {address}")
        }
    }
}

fn help(service: &MirroredService, cluster: &ClusterName, flaw: &Flaw) -> String {
    let again = "then run `clustermesh snapshot --services`";
    match flaw {
        Flaw::Headless | Flaw::ExternalName => format!(
            "name a Service with a cluster IP and the same pods, or remove this item; {again}"
        ),
        Flaw::LocalEndpoints => format!(
            "set `internalTrafficPolicy: Cluster` in the Service, or name another one with the same pods; {again}"
        ),
        Flaw::IsMirror => format!("name the cluster that has its pods; {again}"),
        Flaw::Taken => format!(
            "write `as: {{ name: {} }}` in the item, or delete the Service in `{cluster}`; {again}",
            another_name(service)
        ),
        Flaw::OtherFamily(_) => format!(
            "add the other cluster IP of the Service to `clusterIPs`, or remove `{cluster}` from `in`"
        ),
        Flaw::Vanished => {
            "correct the name if it is wrong; otherwise create the Service, or remove this item"
                .to_owned()
        }
        Flaw::Moved(addresses) => {
            let families: Vec<Family> = service.addresses.iter().map(|it| family(*it)).collect();
            let same = addresses.iter().filter(|it| families.contains(&family(**it)));
            format!("write `clusterIPs: [{}]`", text::list(same))
        }
        Flaw::NoPort(_, unnamed) if unnamed.is_empty() => {
            format!("remove the port from the item, or add it to the Service; {again}")
        }
        Flaw::NoPort(_, unnamed) => format!(
            "write a port that the Service has ({}), or add this one to the Service; {again}",
            listed(unnamed)
        ),
        Flaw::Uncarried(address) => format!(
            "run `clustermesh render`, then `clustermesh trace {cluster} {address}`, which shows the reason"
        ),
    }
}

/// Returns a name for a Service in a cluster where another one has its name.
fn another_name(service: &MirroredService) -> String {
    let (source, name) = (&service.source, service.name.name());
    let names = [format!("{source}-{name}"), format!("{name}-of-{source}")];
    let is_possible = |it: &String| {
        let name = ServiceName::new(service.local.namespace.clone(), it);
        name.is_ok_and(|it| it != service.local)
    };
    let mut names = names.into_iter();
    names.find(is_possible).unwrap_or_else(|| "NAME".to_owned())
}
