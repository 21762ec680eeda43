//! Services of other clusters: which ones a cluster does not get, and which do not work.

use super::Finding;
use crate::diagnostic::Severity;
use crate::mesh::MirroredService;
use crate::mirror::{Flaw, Flawed, Mirrors};
use crate::name::ClusterName;
use crate::text::quoted;

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
    let unknown = mirrors.unknown.iter().map(|(cluster, service)| {
        let message = format!("it is unknown whether the cluster has a Service `{service}`");
        let help = format!("run `clustermesh snapshot {cluster} --services`");
        Finding::on_cluster(&MISSING_SERVICES, cluster, message).help(help)
    });
    unknown.chain(mirrors.flaws.iter().map(flawed)).collect()
}

fn flawed(flawed: &Flawed) -> Finding {
    let Flawed {
        service,
        target,
        flaw,
    } = flawed;
    let rule = match flaw {
        Flaw::Vanished | Flaw::Moved(_) | Flaw::NoPort(_) => &CHANGED_SERVICE,
        Flaw::Uncarried(_) => &UNCARRIED_SERVICE,
        _ => &UNMIRRORED_SERVICE,
    };
    let cluster = target.unwrap_or(&service.source);
    let mut finding = Finding::on_cluster(rule, cluster, message(service, flaw));
    if *flaw == Flaw::Vanished {
        finding.severity = Severity::Warning;
    }
    finding.is_of_nodes = true;
    finding
        .at(service.place.clone(), "")
        .help(help(cluster, flaw))
}

fn message(service: &MirroredService, flaw: &Flaw) -> String {
    let (name, local) = (&service.name, &service.local);
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
            "does not get `{local}` of `{}`, because it has another Service of this name",
            service.source
        ),
        Flaw::OtherFamily(family) => format!(
            "does not get `{local}` of `{}`, because its Kilo routes {family}, and no address in `clusterIPs` is of this family",
            service.source
        ),
        Flaw::Vanished => format!("has no Service `{name}` any more; other clusters keep theirs"),
        Flaw::Moved(addresses) => {
            format!("`{name}` has the cluster IPs {} now", quoted(addresses))
        }
        Flaw::NoPort(port) => format!("`{name}` has no port {port}"),
        Flaw::Uncarried(address) => {
            format!(
                "gets `{local}`, but no Peer with {address} of `{}`",
                service.source
            )
        }
    }
}

fn help(cluster: &ClusterName, flaw: &Flaw) -> String {
    let again = format!("then run `clustermesh snapshot {cluster} --services`");
    match flaw {
        Flaw::Headless | Flaw::ExternalName => format!(
            "mirror a Service with a cluster IP that leads to the same pods, or remove this item; {again}"
        ),
        Flaw::LocalEndpoints => format!(
            "mirror a Service without `internalTrafficPolicy` that leads to the same pods, or set it to `Cluster`, {again}"
        ),
        Flaw::IsMirror => "name the cluster that has the pods".to_owned(),
        Flaw::Taken => format!(
            "give it another name there: `as: {{name: …}}`; or delete the Service in `{cluster}`, {again}"
        ),
        Flaw::OtherFamily(_) => format!(
            "add the other cluster IP of the Service to `clusterIPs`, or remove `{cluster}` from `in`"
        ),
        Flaw::Vanished => "remove this item if that is for good".to_owned(),
        Flaw::Moved(_) => "write these in `clusterIPs`".to_owned(),
        Flaw::NoPort(_) => "remove the port, or add it to the Service".to_owned(),
        Flaw::Uncarried(address) => {
            format!(
                "run `clustermesh render`, then `clustermesh trace {cluster} {address}`, which shows the reason"
            )
        }
    }
}
