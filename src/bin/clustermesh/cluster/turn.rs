//! Turns: limits on the number of clusters that are read in parallel, and blocking work, on a thread of its own and
//! with a limit to the wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clustermesh::rules::clusters::Fault;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, oneshot};
use tokio::time;

/// The number of clusters that are opened in parallel: programs run, and may wait for the network.
const OPENED_AT_ONCE: usize = 16;

/// The number of clusters that are waited for in parallel. An open connection takes memory, and a cluster that never
/// answers must not keep the others waiting.
const CONNECTED_AT_ONCE: usize = 100;

/// The number of clusters that are listed in parallel. All nodes of each are in memory, and a page of its
/// answer.
const LISTED_AT_ONCE: usize = 3;

/// Limits on the number of clusters in parallel.
pub(super) struct Turns {
    opening: Semaphore,
    connecting: Arc<Semaphore>,
    listing: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            opening: Semaphore::new(OPENED_AT_ONCE),
            connecting: Arc::new(Semaphore::new(CONNECTED_AT_ONCE)),
            listing: Arc::new(Semaphore::new(LISTED_AT_ONCE)),
        }
    }
}

impl Turns {
    /// Waits until a cluster may be opened.
    pub(super) async fn open(&self) -> Option<SemaphorePermit<'_>> {
        self.opening.acquire().await.ok()
    }

    /// Waits until a cluster may be connected to.
    pub(super) async fn connect(&self) -> ListingTurn {
        let connecting = Arc::clone(&self.connecting).acquire_owned().await.ok();
        ListingTurn(Arc::new(Turn {
            listing: Arc::clone(&self.listing),
            state: Mutex::new(TurnState { connecting, ..TurnState::default() }),
        }))
    }
}

/// The turn of a cluster to be listed. It begins when its server answers, and ends when the result is taken.
#[derive(Clone)]
pub(super) struct ListingTurn(Arc<Turn>);

struct Turn {
    listing: Arc<Semaphore>,
    state: Mutex<TurnState>,
}

#[derive(Default)]
struct TurnState {
    connecting: Option<OwnedSemaphorePermit>,
    listing: Option<OwnedSemaphorePermit>,
    waiting_since: Option<Instant>,
    waited: Duration,
}

impl ListingTurn {
    /// Waits for the turn, once.
    pub(super) async fn begin(&self) {
        let is_begun = self.with(|state| {
            let is_begun = state.listing.is_some();
            if !is_begun {
                state.waiting_since = Some(Instant::now());
            }
            is_begun
        });
        if is_begun {
            return;
        }
        let listing = Arc::clone(&self.0.listing).acquire_owned().await.ok();
        self.with(|state| {
            state.listing = listing;
            state.connecting = None;
            state.waited = state.waited();
            state.waiting_since = None;
        });
    }

    /// Returns how long it has been waited for.
    pub(super) fn waited(&self) -> Duration {
        self.with(|state| TurnState::waited(state))
    }

    /// Returns what a result holds until it is taken.
    pub(super) fn end(&self) -> Option<OwnedSemaphorePermit> {
        self.with(|state| {
            state.connecting = None;
            state.listing.take()
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut TurnState) -> T) -> T {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut state)
    }
}

impl TurnState {
    fn waited(&self) -> Duration {
        let now = self.waiting_since.map(|it| it.elapsed());
        self.waited + now.unwrap_or_default()
    }
}

/// Does what blocks; if it hangs, its thread is left behind. A failure is `origin`'s fault.
pub(super) async fn aside<T: Send + 'static>(
    origin: &str,
    patience: Duration,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let (sender, receiver) = oneshot::channel();
    // A client can only be made within the runtime.
    let runtime = Handle::current();
    apart(move || {
        let _within = runtime.enter();
        // If the receiver no longer waits, the answer is dropped.
        drop(sender.send(work()));
    });
    let problem = match time::timeout(patience, receiver).await {
        Ok(Ok(done)) => return done,
        Ok(Err(_)) => "a mistake in this program".to_owned(),
        Err(_) => format!("its files were not read within {} s", patience.as_secs()),
    };
    Err(Fault::of_kubeconfig(origin, &problem))
}

/// Does something on a thread of its own, or here if the system gives us none.
pub(super) fn apart(work: impl FnOnce() + Send + 'static) {
    let here = Arc::new(Mutex::new(Some(work)));
    let there = Arc::clone(&here);
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let started = thread::Builder::new().spawn(move || take(&there).map(|work| work()));
    if started.is_err()
        && let Some(work) = take(&here)
    {
        work();
    }
}
