//! The course of one request: when it was there, and what was done for it. It goes along with the work that is done
//! for the request, whichever task does it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

tokio::task_local! {
    static COURSE: Arc<Course>;
}

/// One request.
#[derive(Debug)]
pub(crate) struct Course {
    /// When all of it was there.
    read: OnceLock<Instant>,
    /// Calls to upstreams that were made for it.
    calls: AtomicU64,
}

impl Course {
    /// A request that begins now.
    pub(crate) fn begin() -> Arc<Self> {
        Arc::new(Self { read: OnceLock::new(), calls: AtomicU64::new(0) })
    }

    /// The request the present task works for.
    pub(crate) fn current() -> Option<Arc<Self>> {
        COURSE.try_with(Arc::clone).ok()
    }

    /// Does something for this request.
    pub(crate) async fn follow<F: Future>(self: Arc<Self>, work: F) -> F::Output {
        COURSE.scope(self, work).await
    }

    /// All of the request is there: from now on, time is the gateway's.
    pub(crate) fn is_read() {
        let _ = COURSE.try_with(|course| course.read.set(Instant::now()));
    }

    /// How long after that the first call to an upstream is made; `None` for every further call.
    pub(crate) fn until_first_call(&self) -> Option<Duration> {
        let is_first = self.calls.fetch_add(1, Ordering::Relaxed) == 0;
        self.read.get().filter(|_| is_first).map(Instant::elapsed)
    }
}

/// Work that another task does for the request the present one works for.
pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let course = Course::current();
    async move {
        match course {
            Some(course) => course.follow(work).await,
            None => work.await,
        }
    }
}
