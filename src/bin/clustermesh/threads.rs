//! Threads: how many work at the same time, under limits of the system too.

use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::{env, thread};

use anyhow::Context as _;
use rayon::ThreadPoolBuilder;

/// Returns how many threads work at the same time: one for each processor, or fewer if the variable of rayon
/// is set. More of them would only wait for each other.
fn wanted() -> usize {
    let available = thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = env::var("RAYON_NUM_THREADS").ok();
    let wanted = wanted.and_then(|it| it.parse::<NonZero<usize>>().ok());
    wanted.map_or(available, |it| it.get().min(available))
}

/// Makes do with the thread that we have where no more can be started, as under a limit of processes
/// or of memory: the work is the same, only slower.
pub(crate) fn start() -> anyhow::Result<()> {
    let wanted = wanted();
    let builder = ThreadPoolBuilder::new();
    let builder = if can_start(wanted) {
        builder.num_threads(wanted)
    } else {
        builder.num_threads(1).use_current_thread()
    };
    builder.build_global().context("cannot start threads")
}

/// Returns whether the system can start this many threads together: as long as they wait, they count.
pub(crate) fn can_start(wanted: usize) -> bool {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock();
    let started: Vec<_> = (0..wanted)
        .map_while(|_| {
            let gate = Arc::clone(&gate);
            let wait = move || drop(gate.lock());
            thread::Builder::new().spawn(wait).ok()
        })
        .collect();
    drop(closed);
    let count = started.len();
    for thread in started {
        let _ = thread.join();
    }
    count == wanted
}
