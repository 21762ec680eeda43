//! The tracer: packets between ends as people write them.

use super::TraceResult;
use crate::agent::fabric::{Fabric, Site};
use crate::diagnostic::Quoted;
use crate::document::nearest;
use crate::mesh::{AddressClass, Mesh, State, separating};
use crate::name::ClusterName;
use crate::packet::messages;
use crate::packet::trace::{EndFinder, NamedEnd, NoEnd};
use crate::results::source_texts::SourceTexts;
use crate::rules::{Finding, granularity_advice};
use crate::text;

/// Traces packets between named ends.
pub struct Tracer<'r, 'f, 't> {
    files: &'t dyn SourceTexts,
    meshes: &'r [Mesh],
    fabric: &'r Fabric<'f>,
    finder: EndFinder<'r, 'f>,
    class: Option<AddressClass>,
    /// The same clusters with the Peers that a render would write, and what a person does for it, if they have others.
    rendered: Option<(&'r Fabric<'f>, String)>,
}

/// An end as it was written, and what was found.
struct GivenEnd<'t> {
    argument: &'static str,
    text: &'t str,
    found: Result<NamedEnd, NoEnd>,
}

impl<'r, 'f, 't> Tracer<'r, 'f, 't> {
    /// Returns a tracer between ends of this class.
    pub fn new(
        files: &'t dyn SourceTexts,
        meshes: &'r [Mesh],
        fabric: &'r Fabric<'f>,
        class: Option<AddressClass>,
    ) -> Self {
        Self { files, meshes, fabric, finder: EndFinder::new(fabric), class, rendered: None }
    }

    /// Returns the same, beside the Peers that a render would write.
    #[must_use]
    pub fn beside(self, rendered: Option<(&'r Fabric<'f>, String)>) -> Self {
        Self { rendered, ..self }
    }

    /// Follows a packet, or explains why none can be sent.
    ///
    /// # Errors
    /// An end is written wrongly.
    pub fn trace(&mut self, from: &str, to: &str) -> Result<TraceResult<'t>, String> {
        let of_sender = match self.class {
            // Nothing is sent from what a cluster has as a whole.
            Some(AddressClass::Service | AddressClass::Network) => None,
            class => class,
        };
        let given = [("FROM", from, of_sender), ("TO", to, self.class)];
        let [from, to] = given.map(|(argument, text, class)| GivenEnd {
            argument,
            text,
            found: self.finder.find(text, class),
        });
        let (Ok(mut sender), Ok(mut receiver)) = (from.found.clone(), to.found.clone()) else {
            let answers = [
                self.missing(&from, to.found.as_ref().ok())?,
                self.missing(&to, from.found.as_ref().ok())?,
            ];
            let mut answers = answers.into_iter().flatten();
            return answers.next().ok_or_else(|| "nothing to trace".to_owned());
        };
        if let Err(reason) = NamedEnd::pair(&mut sender, &mut receiver) {
            let finding = messages::unsent(self.fabric, &reason, None);
            return Ok(self.unsent(finding.ok_or_else(|| reason.to_string())?));
        }
        let trace = self.fabric.trace(sender.end, receiver.end);
        let trace = trace.map_err(|it| it.to_string())?;
        let sites = [&sender, &receiver].map(|it| self.fabric.site(it.end.site));
        let advice = sites
            .into_iter()
            .find_map(|it| granularity_advice(&it.reading))
            .or_else(|| messages::unprovided(self.fabric, self.meshes, &trace))
            .or_else(|| self.of_render([&sender, &receiver]));
        let separating = separating(self.meshes, sites[0].cluster, sites[1].cluster);
        let ends = [&sender, &receiver];
        Ok(TraceResult::new(self.fabric, self.files, ends, &trace, advice, separating))
    }

    /// Returns the remedy for a packet that a render lets through. A file that cannot be read has its own.
    fn of_render(&self, ends: [&NamedEnd; 2]) -> Option<String> {
        let (fabric, help) = self.rendered.as_ref()?;
        let [from, to] = ends.map(|it| it.end);
        let mut files = [from.site, to.site].into_iter().flat_map(|it| self.fabric.site(it).files);
        let is_meant = !files.any(|it| it.content.is_broken());
        (is_meant && fabric.trace(from, to).ok()?.is_delivered()).then(|| help.clone())
    }

    /// Answers if an end is missing that was written correctly.
    fn missing(
        &self,
        given: &GivenEnd,
        other: Option<&NamedEnd>,
    ) -> Result<Option<TraceResult<'t>>, String> {
        let Err(reason) = &given.found else {
            return Ok(None);
        };
        match messages::unsent(self.fabric, reason, other.map(|it| it.end.site)) {
            Some(finding) => Ok(Some(self.unsent(finding))),
            None => Err(self.mistake(given, reason)),
        }
    }

    fn unsent(&self, finding: Finding) -> TraceResult<'t> {
        TraceResult::unsent(self.files, finding)
    }

    /// Returns what is wrong with an end, and what may have been meant.
    fn mistake(&self, given: &GivenEnd, reason: &NoEnd) -> String {
        let GivenEnd { argument, text, .. } = given;
        let fabric = self.fabric;
        let advice = match reason {
            NoEnd::Cluster(name) => {
                if let Some(state) = self.state(name) {
                    return without_snapshot(argument, name, state);
                }
                if text.contains("://") {
                    return format!(
                        "{argument}: {} is a URL; write a cluster, `CLUSTER/NODE` or an address",
                        Quoted(text)
                    );
                }
                of_clusters(fabric, text)
            }
            NoEnd::Unreadable(name) => {
                if let Some(state) = self.state(name) {
                    return without_snapshot(argument, name, state);
                }
                of_clusters(fabric, text)
            }
            NoEnd::Node { cluster, node } => {
                let site = fabric.site_named(cluster).map(|it| fabric.site(it));
                site.map_or_else(String::new, |site| of_nodes(site, node))
            }
            NoEnd::Range(_) => "write one address of it".to_owned(),
            NoEnd::NoAddress { class, .. } => of_class(*class).to_owned(),
            NoEnd::PortOfName(..) => {
                "no route depends on a port, so leave it out; for a Service, write its address"
                    .to_owned()
            }
            NoEnd::Nobody { .. }
            | NoEnd::Unassigned { .. }
            | NoEnd::Families { .. }
            | NoEnd::Several { .. }
            | NoEnd::Silent { .. }
            | NoEnd::Port(_)
            | NoEnd::OneCluster(_) => String::new(),
        };
        let error = format!("{argument}: {reason}");
        if advice.is_empty() { error } else { format!("{error}; {advice}") }
    }

    /// Returns the state of a cluster that a mesh names.
    fn state(&self, name: &str) -> Option<State> {
        let mut entries = self.meshes.iter().flat_map(Mesh::all_entries);
        let entry = entries.find(|it| it.name.as_str() == name)?;
        Some(entry.state)
    }
}

fn without_snapshot(argument: &str, name: &str, state: State) -> String {
    let quoted = Quoted(name);
    match state {
        State::Leaving => format!("{argument}: {quoted} leaves the mesh, so it has no paths"),
        State::Joined | State::Joining => {
            format!("{argument}: {quoted} has no snapshot; run `clustermesh snapshot {name}`")
        }
    }
}

fn of_class(class: AddressClass) -> &'static str {
    match class {
        AddressClass::Service => {
            "choose a cluster with a `serviceCIDR`, or give an address in it; ranges in `allowedNetworks` have the \
             class `network`"
        }
        AddressClass::Network => {
            "choose a cluster with `additionalCIDRs`, or give an address in them"
        }
        AddressClass::Pod => "the node has no pod CIDR",
        AddressClass::Node => "the node has no internal address and no WireGuard address",
    }
}

/// Returns what was meant by an end whose first part is not the name of a cluster.
fn of_clusters(fabric: &Fabric, end: &str) -> String {
    let names = || fabric.sites.iter().map(|it| it.cluster);
    let (name, is_pair) = end.split_once('/').map_or((end, false), |it| (it.0, true));
    if let Some(meant) = nearest(name, names().map(ClusterName::as_str)) {
        return format!("did you mean `{meant}`?");
    }
    let nodes = fabric.sites.iter().flat_map(|site| {
        let nodes = site.model.topology.nodes.iter();
        nodes.map(|it| (site.cluster, it.kilo.name.as_str()))
    });
    if let Some((cluster, _)) = nodes.take(SEARCHED).find(|it| it.1 == end) {
        return format!("did you mean {}?", Quoted(&format!("{cluster}/{end}")));
    }
    // Pods and Services are named like this.
    let pair = if is_pair { "for a pod or a Service, write its address; " } else { "" };
    format!("{pair}known clusters: {}", text::first(LISTED, names()))
}

fn of_nodes(site: &Site, name: &str) -> String {
    let names = || site.model.topology.nodes.iter().map(|it| it.kilo.name.as_str());
    // A batch may have thousands of mistakes.
    let compared = names().take(COMPARED);
    match nearest(name, compared) {
        Some(meant) => format!("did you mean {}?", Quoted(meant)),
        None => format!("known nodes: {}", text::first(LISTED, names().map(Quoted))),
    }
}

/// The number of names that a misspelled one is compared with.
const COMPARED: usize = 200;

/// The number of nodes of all clusters among which one of that name is searched.
const SEARCHED: usize = 10_000;

/// The number of names that are listed.
const LISTED: usize = 8;
