//! Clusters: API servers, reached with kube and asked for their nodes.
//!
//! The only module that opens a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clustermesh::diagnostic::Finding;
use clustermesh::name::{ClusterName, ServiceName};
use clustermesh::net::Cidr;
use clustermesh::rules::clusters::{self, Fault, UNREADABLE, Weakness};
use clustermesh::snapshot::listing::Listing;
use clustermesh::snapshot::pods::PodSample;
use clustermesh::snapshot::services::FoundServices;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::{runtime, time};

use self::connection::Connection;
use self::failure::endless;
pub(crate) use self::failure::useless;
pub(crate) use self::kubeconfig::{Kubeconfigs, SelectedContext};
pub(crate) use self::meshes::{SecretKey, Store, meshes, wrong_secret};
pub(crate) use self::objects::PeerList;
use self::turn::Turns;
use crate::clock;
use crate::secrets::Redactions;

mod objects;
mod request;
mod connection;
mod credentials;
mod failure;
mod kubeconfig;
mod login;
mod meshes;
mod pages;
mod proxy;
mod turn;

/// The limit for all answers of a cluster together, as a multiple of the limit for one answer.
const ANSWERS: u32 = 10;

/// The names of Services, by cluster.
pub(crate) type ServiceNames = BTreeMap<ClusterName, BTreeSet<ServiceName>>;

/// The objects that are requested from a cluster.
#[derive(Debug)]
pub(crate) enum Wanted {
    Nodes,
    /// Nodes, and the ranges of Services if there is the right to list them.
    NodesAndServiceRanges,
    Peers,
    NodesAndPeers,
    /// Both, the guard, and pods if there is the right to list them.
    All,
    /// Those of these Services that it has.
    Services(ServiceNames),
}

impl Wanted {
    /// Returns what the answers contain, for people.
    fn answers(&self) -> &'static str {
        match self {
            Self::Nodes | Self::NodesAndServiceRanges => "node list",
            Self::Peers => "Peers",
            Self::NodesAndPeers | Self::All => "nodes and the Peers",
            Self::Services(_) => "Services",
        }
    }
}

/// The way in which a cluster is contacted.
pub(crate) enum ClusterRoute {
    /// The service account of the pod in which clustermesh runs.
    InCluster,
    /// A context of a kubeconfig.
    Context(Box<SelectedContext>),
    /// It is the cluster that holds the Secrets.
    Store(Arc<Store>),
    /// A kubeconfig in a Secret.
    Secret(Arc<Store>, SecretKey),
}

/// The result of contacting a cluster.
pub(crate) struct Arrival {
    pub(crate) cluster: ClusterName,
    /// The answer, or the fault that prevented one.
    pub(crate) answer: Result<ClusterAnswer, Fault>,
    /// The time that it took.
    pub(crate) took: Duration,
}

/// The requested objects of a cluster.
pub(crate) struct ClusterAnswer {
    /// The nodes.
    pub(crate) listing: Listing,
    /// The time at which their list began, in Unix seconds.
    pub(crate) listed_at: i64,
    /// The number of pages of the list.
    pub(crate) pages: usize,
    pub(crate) peers: PeerList,
    /// The policy and the binding of the guard, as far as they are there, or the fault that prevented an answer.
    pub(crate) guard: Result<Vec<Value>, Fault>,
    /// A pod of each node, if there is the right to list pods.
    pub(crate) pods: PodSample,
    /// The Services that were found.
    pub(crate) services: FoundServices,
    /// The ranges of its Services, if the API server shows them.
    pub(crate) service_ranges: Vec<Cidr>,
    /// Reasons for which another server may have answered.
    weaknesses: Vec<Weakness>,
    /// The secrets that no message may show.
    pub(crate) hidden: Redactions,
    /// The name of the answers, for people.
    answers: &'static str,
}

impl ClusterAnswer {
    /// Returns the findings about what weakens the trust in it.
    pub(crate) fn findings(&self, cluster: &ClusterName) -> Vec<Finding> {
        let weaknesses = self.weaknesses.iter();
        weaknesses.map(|it| clusters::weakness(cluster, *it, self.answers)).collect()
    }
}

/// The time of a cluster, without what it waits for its turn.
struct Time {
    answers: &'static str,
    limit: Duration,
    taken: Duration,
}

impl Time {
    fn new(answers: &'static str, limit: Duration) -> Self {
        let taken = Duration::ZERO;
        Self { answers, limit, taken }
    }

    /// A server that answers many times, each in time, must not keep the others waiting. `waited` returns how
    /// long the work has waited for its turn.
    async fn limit<T>(
        &mut self,
        work: impl Future<Output = Result<T, Fault>>,
        waited: impl Fn() -> Duration,
    ) -> Result<T, Fault> {
        let started = Instant::now();
        let before = self.taken;
        let mut work = pin!(work);
        loop {
            let left = self.limit.saturating_sub(self.taken);
            let done = time::timeout(left, &mut work).await;
            self.taken = before + started.elapsed().saturating_sub(waited());
            match done {
                Ok(done) => return done,
                Err(_) if self.limit <= self.taken => {
                    return Err(endless(self.answers, self.limit));
                }
                Err(_) => {}
            }
        }
    }
}

/// The longest time that is waited.
#[derive(Clone, Copy)]
pub(crate) struct TimeLimits {
    /// For an answer, and for a login. All answers of a cluster may take ten times as long.
    pub(crate) answer: Duration,
    /// For all clusters together, if that is limited.
    pub(crate) total: Option<Duration>,
}

/// Lists the wanted objects of clusters, several in parallel, and passes each list on as it
/// arrives. Clusters that do not answer are waited for together.
pub(crate) fn ask(
    routes: BTreeMap<ClusterName, ClusterRoute>,
    wanted: Wanted,
    limits: TimeLimits,
    mut arrived: impl FnMut(Arrival),
) -> io::Result<()> {
    // One thread waits for many servers, and is all that some systems give.
    let mut builder = runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build()?;
    runtime.block_on(async {
        let started = Instant::now();
        let (turns, wanted) = (Arc::new(Turns::default()), Arc::new(wanted));
        let (mut tasks, mut clusters) = (JoinSet::new(), BTreeMap::new());
        for (cluster, route) in routes {
            let request = ClusterRequest {
                cluster: cluster.clone(),
                route,
                wanted: Arc::clone(&wanted),
                patience: limits.answer,
            };
            let task = tasks.spawn(request.send(Arc::clone(&turns)));
            clusters.insert(task.id(), cluster);
        }
        loop {
            let next = tasks.join_next_with_id();
            let next = match limits.total {
                Some(total) => time::timeout(total.saturating_sub(started.elapsed()), next).await,
                None => Ok(next.await),
            };
            let Ok(Some(joined)) = next else {
                break;
            };
            let (id, answer, took) = match joined {
                Ok((id, done)) => (id, done.answer, done.took),
                Err(panicked) => {
                    let fault = useless(&UNREADABLE, "a mistake in this program");
                    (panicked.id(), Err(fault), Duration::ZERO)
                }
            };
            if let Some(cluster) = clusters.remove(&id) {
                arrived(Arrival { cluster, answer, took });
            }
        }
        let took = started.elapsed();
        for cluster in clusters.into_values() {
            arrived(Arrival { cluster, answer: Err(endless(wanted.answers(), took)), took });
        }
    });
    // Do not wait for a plugin that hangs.
    runtime.shutdown_background();
    Ok(())
}

/// The question to one cluster.
struct ClusterRequest {
    cluster: ClusterName,
    route: ClusterRoute,
    wanted: Arc<Wanted>,
    patience: Duration,
}

/// The answer of one cluster.
struct TimedAnswer {
    answer: Result<ClusterAnswer, Fault>,
    took: Duration,
    /// Its turn ends when the answer is taken, so that answers don't pile up.
    _turn: Option<OwnedSemaphorePermit>,
}

impl ClusterRequest {
    /// Waits for the turn of the cluster, and asks it.
    async fn send(self, turns: Arc<Turns>) -> TimedAnswer {
        let Self { cluster, route, wanted, patience } = self;
        let opening = turns.open().await;
        let mut time = Time::new(wanted.answers(), patience * ANSWERS);
        let opened = time.limit(open(route, patience), Duration::default).await;
        drop(opening);
        let connection = match opened {
            Ok(connection) => connection,
            Err(fault) => {
                return TimedAnswer { answer: Err(fault), took: time.taken, _turn: None };
            }
        };
        let turn = turns.connect().await;
        let connection = Connection { turn: Some(turn.clone()), ..connection };
        let answer = time.limit(list(connection, &cluster, &wanted), || turn.waited());
        TimedAnswer { answer: answer.await, took: time.taken, _turn: turn.end() }
    }
}

async fn open(route: ClusterRoute, patience: Duration) -> Result<Connection, Fault> {
    match route {
        ClusterRoute::InCluster => Connection::in_cluster(patience).await,
        ClusterRoute::Context(selected) => Connection::open(*selected, patience).await,
        ClusterRoute::Store(store) => store.connection(patience).await,
        ClusterRoute::Secret(store, key) => store.another(&key, patience).await,
    }
}

async fn list(
    connection: Connection,
    cluster: &ClusterName,
    wanted: &Wanted,
) -> Result<ClusterAnswer, Fault> {
    let listed_at = clock::now();
    let (listing, pages) = match wanted {
        Wanted::Peers | Wanted::Services(_) => <(Listing, usize)>::default(),
        _ => objects::nodes(&connection).await?,
    };
    let peers = match wanted {
        Wanted::Peers | Wanted::NodesAndPeers | Wanted::All => objects::peers(&connection).await?,
        _ => PeerList::default(),
    };
    let guard = match wanted {
        Wanted::All => objects::guard(&connection).await,
        _ => Ok(Vec::new()),
    };
    let pods = match wanted {
        Wanted::All => objects::pods(&connection).await,
        _ => PodSample::default(),
    };
    let service_ranges = match wanted {
        Wanted::NodesAndServiceRanges => objects::service_ranges(&connection).await,
        _ => Vec::new(),
    };
    let services = match wanted {
        Wanted::Services(names) => match names.get(cluster) {
            Some(names) => objects::services(&connection, cluster, names).await?,
            None => FoundServices::new(),
        },
        _ => FoundServices::new(),
    };
    Ok(ClusterAnswer {
        listing,
        listed_at,
        pages,
        peers,
        guard,
        pods,
        services,
        service_ranges,
        weaknesses: connection.weaknesses,
        hidden: connection.hidden,
        answers: wanted.answers(),
    })
}

#[cfg(test)]
mod tests;
