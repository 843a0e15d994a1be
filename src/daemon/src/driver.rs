//! Runs a core: batches inputs, wakes it when its timers are due, makes its entries durable, and then carries out its
//! outputs.
//!
//! It serves master and agent: a [`CoreShell`] implements persisting and outputs. All of it runs on the one thread of
//! the reactor, except the writes to disk.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::{Time, lock};
use cores::{Core, Level, Line, Outbox};
use tokio::sync::{Notify, mpsc, watch};

use crate::audit::Audit;
use crate::clock::Clock;
use crate::log_limit::{COUNTED, admits};

/// Maximum number of inputs in a batch, after which its outputs are carried out.
const BATCH_LIMIT: usize = 4096;

/// The shell's side of a core.
pub trait CoreShell<C: Core>: Send + Sync + 'static {
    /// Makes entries durable, in order. Called on a thread that may block.
    ///
    /// # Errors
    /// Ends the process: a core must not continue with entries that are not durable.
    fn persist(&self, entries: Vec<C::Persist>) -> anyhow::Result<()>;

    /// Carries out an output. Called on the reactor's thread; must not block, nor read the core.
    fn carry_out(&self, output: C::Output);
}

/// A core with its queue of inputs. Cheap to clone.
pub struct Driver<C: Core> {
    shared: Arc<Shared<C>>,
}

impl<C: Core> Clone for Driver<C> {
    fn clone(&self) -> Self {
        Driver { shared: self.shared.clone() }
    }
}

struct Shared<C: Core> {
    queue: Mutex<Vec<C::Input>>,
    core: Mutex<C>,
    pending: Mutex<Vec<Batch<C>>>,
    notify: Notify,
    clock: Clock,
    /// Audit log for refusals that no answer to a request reports.
    audit: Audit,
    /// Number of batches so far with entries to write.
    to_write: AtomicU64,
    /// Number of those batches that are durable.
    durable: watch::Sender<u64>,
    /// Receiver of batches while the driver runs. Locked while outputs are carried out, so that they keep their order.
    committer: Mutex<Option<Committer<C>>>,
}

/// The result of a batch of a core's inputs.
type Batch<C> = Outbox<<C as Core>::Persist, <C as Core>::Output>;

impl<C: Core> Driver<C> {
    /// Creates a driver for `core`. It carries out nothing before [`Driver::run`].
    pub fn new(core: C, clock: Clock) -> Driver<C> {
        Driver::audited(core, clock, Audit::default())
    }

    /// Creates a driver as [`Driver::new`] does, with an audit log.
    pub(crate) fn audited(core: C, clock: Clock, audit: Audit) -> Driver<C> {
        Driver {
            shared: Arc::new(Shared {
                queue: Mutex::new(Vec::new()),
                core: Mutex::new(core),
                pending: Mutex::new(Vec::new()),
                notify: Notify::new(),
                clock,
                audit,
                to_write: AtomicU64::new(0),
                durable: watch::Sender::new(0),
                committer: Mutex::new(None),
            }),
        }
    }

    /// Returns the current time.
    pub fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// Queues an input. It is handled soon, after those that were queued before.
    pub fn submit(&self, input: C::Input) {
        let mut queue = lock(&self.shared.queue);
        let first = queue.is_empty();
        queue.push(input);
        drop(queue);
        if first {
            self.shared.notify.notify_one();
        }
    }

    /// Handles an input now, after those that were queued before, and carries out its outputs unless they wait for a
    /// write.
    ///
    /// For clients that wait for an answer: if it is immediate, the client's next request is handled in the same turn
    /// of the reactor, and the output of a turn is sent together.
    pub fn handle_now(&self, input: C::Input) {
        lock(&self.shared.queue).push(input);
        self.turn();
    }

    fn turn(&self) {
        self.handle_queue();
        if let Some(committer) = &mut *lock(&self.shared.committer) {
            committer.commit_all(&self.shared);
        }
    }

    /// Calls `look` with the core after all queued inputs have been handled: a reader sees its own writes. The state
    /// that it sees is durable when this returns.
    pub async fn read<R>(&self, look: impl FnOnce(&mut C) -> R) -> R {
        let (seen, written) = {
            self.handle_queue();
            let mut core = lock(&self.shared.core);
            (look(&mut core), self.shared.to_write.load(Ordering::Relaxed))
        };
        let mut durable = self.shared.durable.subscribe();
        // The sender lives as long as this driver. If the disk fails, the process ends.
        let _ = durable.wait_for(|count| *count >= written).await;
        seen
    }

    /// Calls `look` with the core after all queued inputs have been handled. The state that it sees need not be
    /// durable.
    pub fn read_undurable<R>(&self, look: impl FnOnce(&C) -> R) -> R {
        self.handle_queue();
        look(&lock(&self.shared.core))
    }

    fn handle_queue(&self) {
        loop {
            let mut inputs = std::mem::take(&mut *lock(&self.shared.queue));
            if inputs.is_empty() {
                return;
            }
            let rest = inputs.split_off(inputs.len().min(BATCH_LIMIT));
            if !rest.is_empty() {
                let mut queue = lock(&self.shared.queue);
                let later = std::mem::replace(&mut *queue, rest);
                queue.extend(later);
            }
            self.handle(inputs);
        }
    }

    fn handle(&self, inputs: Vec<C::Input>) {
        let now = self.now();
        let mut core = lock(&self.shared.core);
        let mut batch = Outbox::default();
        inputs.into_iter().for_each(|input| core.handle(input, now, &mut batch));
        core.end_batch(now, &mut batch);
        self.queue(batch);
        drop(core);
    }

    /// Queues the outbox of the core's construction. Call it before [`Driver::run`].
    pub fn begin(&self, batch: Batch<C>) {
        self.queue(batch);
    }

    fn queue(&self, mut batch: Batch<C>) {
        write_log(&mut batch.log);
        batch.refusals.drain(..).for_each(|refusal| self.shared.audit.refused(refusal));
        if !batch.persist.is_empty() {
            self.shared.to_write.fetch_add(1, Ordering::Relaxed);
        }
        if !batch.is_empty() {
            lock(&self.shared.pending).push(batch);
            self.shared.notify.notify_one();
        }
    }

    /// Drives the core until persisting fails. Call it once, from one task.
    ///
    /// # Errors
    /// The error of [`CoreShell::persist`].
    pub async fn run(&self, world: Arc<impl CoreShell<C>>) -> anyhow::Result<()> {
        let (committer, mut from_disk) = Committer::start(world);
        *lock(&self.shared.committer) = Some(committer);
        // The writing thread and the shell live as long as this future, regardless of other references to the driver.
        let _end = Ending(&self.shared);
        loop {
            self.wait(&mut from_disk).await?;
            if lock(&self.shared.core).is_due(self.now()) {
                self.handle(vec![C::WAKE]);
            }
            self.turn();
        }
    }

    /// Waits for an input, a timer or a finished write. Carries out the outputs that waited for a write.
    async fn wait(&self, from_disk: &mut FromDisk<C>) -> anyhow::Result<()> {
        let wake = lock(&self.shared.core).next_wake();
        let timer = async {
            match wake {
                Some(at) => tokio::time::sleep_until(self.shared.clock.instant(at).into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            written = from_disk.recv() => match (written, &mut *lock(&self.shared.committer)) {
                (Some(written), Some(committer)) => committer.written(written?, &self.shared),
                _ => anyhow::bail!("the thread that writes to disk has ended"),
            },
            () = self.shared.notify.notified() => {}
            () = timer => {}
        }
        Ok(())
    }
}

/// Writes the log lines of a core.
pub fn write_log(lines: &mut Vec<Line>) {
    for Line { level, text, place } in lines.drain(..) {
        let text = single(text);
        // The target says that the line is counted already, by its place in the core.
        match level {
            Level::Error => tracing::error!(target: COUNTED, "{text}"),
            Level::Warning if !admits(place.into(), tracing::Level::WARN, || text.clone()) => {}
            Level::Warning => tracing::warn!(target: COUNTED, "{text}"),
            Level::Info if !admits(place.into(), tracing::Level::INFO, || text.clone()) => {}
            Level::Info => tracing::info!(target: COUNTED, "{text}"),
            Level::Debug => tracing::debug!(target: COUNTED, "{text}"),
        }
    }
}

/// Returns a text as one line: names that clients choose may contain line feeds.
fn single(text: String) -> String {
    if text.contains(char::is_control) { text.escape_debug().to_string() } else { text }
}

/// A guard that drops the committer when the driver's task ends.
struct Ending<'a, C: Core>(&'a Shared<C>);

impl<C: Core> Drop for Ending<'_, C> {
    fn drop(&mut self) {
        let committer = lock(&self.0.committer).take();
        // Outside of the lock: dropping the shell may notify owners of the driver.
        drop(committer);
    }
}

/// Batches that have become durable.
struct Written<C: Core> {
    count: usize,
    /// Number of these batches with entries to write.
    writes: u64,
    outputs: Vec<C::Output>,
}

type FromDisk<C> = mpsc::UnboundedReceiver<anyhow::Result<Written<C>>>;

/// A writer of batches on a thread of its own; it delays later outputs until earlier writes are done.
struct Committer<C: Core> {
    to_disk: mpsc::UnboundedSender<Batch<C>>,
    /// Number of batches that are being written or wait behind such a batch.
    in_flight: usize,
    world: Arc<dyn CoreShell<C>>,
}

impl<C: Core> Committer<C> {
    fn start(world: Arc<impl CoreShell<C>>) -> (Committer<C>, FromDisk<C>) {
        let (to_disk, mut batches) = mpsc::unbounded_channel::<Batch<C>>();
        let (done, from_disk) = mpsc::unbounded_channel();
        let writer = world.clone();
        tokio::task::spawn_blocking(move || {
            let mut waiting: Vec<Batch<C>> = Vec::new();
            while batches.blocking_recv_many(&mut waiting, 64) > 0 {
                let count = waiting.len();
                let writes = waiting.iter().filter(|batch| !batch.persist.is_empty()).count() as u64;
                let (mut entries, mut outputs) = (Vec::new(), Vec::new());
                for batch in waiting.drain(..) {
                    entries.extend(batch.persist);
                    outputs.extend(batch.outputs);
                }
                let written = writer.persist(entries).map(|()| Written { count, writes, outputs });
                let failed = written.is_err();
                if done.send(written).is_err() || failed {
                    return;
                }
            }
        });
        (Committer { to_disk, in_flight: 0, world }, from_disk)
    }

    /// Carries out at once the outputs that need not wait for a write, and sends the other batches to the disk.
    fn commit_all(&mut self, shared: &Shared<C>) {
        for mut batch in std::mem::take(&mut *lock(&shared.pending)) {
            batch.at_once.drain(..).for_each(|output| self.world.carry_out(output));
            if batch.persist.is_empty() && self.in_flight == 0 {
                batch.outputs.into_iter().for_each(|output| self.world.carry_out(output));
                continue;
            }
            self.in_flight += 1;
            // The writer ends only after an error, which the driver's task receives.
            let _ = self.to_disk.send(batch);
        }
    }

    /// Carries out the outputs that waited for a write.
    fn written(&mut self, written: Written<C>, shared: &Shared<C>) {
        self.in_flight -= written.count;
        shared.durable.send_modify(|count| *count += written.writes);
        written.outputs.into_iter().for_each(|output| self.world.carry_out(output));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core that persists even numbers and echoes every number, those from 1000 on at once.
    struct Echo;

    impl Core for Echo {
        type Input = u32;
        type Persist = u32;
        type Output = u32;

        const WAKE: u32 = 0;

        fn handle(&mut self, n: u32, _: Time, out: &mut Outbox<u32, u32>) {
            match n {
                1000.. => out.at_once.push(n),
                _ => out.push(n),
            }
            if n < 1000 && n.is_multiple_of(2) {
                out.persist.push(n);
            }
        }

        fn end_batch(&mut self, _: Time, _: &mut Outbox<u32, u32>) {}

        fn next_wake(&self) -> Option<Time> {
            None
        }
    }

    /// A world that records what happens. It fails to write the number 26, and writes 100 only when it is allowed to.
    struct Notes {
        log: Mutex<Vec<String>>,
        seen: Notify,
        room: std::sync::Barrier,
    }

    impl Notes {
        fn new() -> Arc<Notes> {
            Arc::new(Notes { log: Mutex::default(), seen: Notify::new(), room: std::sync::Barrier::new(2) })
        }
    }

    impl CoreShell<Echo> for Notes {
        fn persist(&self, entries: Vec<u32>) -> anyhow::Result<()> {
            anyhow::ensure!(!entries.contains(&26), "disk full");
            if entries.contains(&100) {
                self.room.wait();
            }
            lock(&self.log).extend(entries.iter().map(|n| format!("write {n}")));
            Ok(())
        }

        fn carry_out(&self, output: u32) {
            lock(&self.log).push(format!("show {output}"));
            self.seen.notify_one();
        }
    }

    #[tokio::test]
    async fn durable_before_visible_and_in_order() {
        let world = Notes::new();
        let driver = Driver::new(Echo, Clock::start());
        let running = tokio::spawn({
            let (driver, world) = (driver.clone(), world.clone());
            async move { driver.run(world).await }
        });
        for n in 1..=20 {
            driver.submit(n);
            tokio::task::yield_now().await;
        }
        let shown = || lock(&world.log).iter().filter(|l| l.starts_with("show")).cloned().collect::<Vec<_>>();
        while shown().len() < 20 {
            world.seen.notified().await;
        }
        assert_eq!(shown(), (1..=20).map(|n| format!("show {n}")).collect::<Vec<_>>());
        for n in (2..=20).step_by(2) {
            let position = |what: &str| lock(&world.log).iter().position(|l| *l == format!("{what} {n}"));
            assert!(position("write") < position("show"), "{n}");
        }
        driver.submit(26);
        assert_eq!(running.await.unwrap().unwrap_err().to_string(), "disk full");
        assert!(!shown().contains(&"show 26".to_owned()));
    }

    #[tokio::test]
    async fn what_promises_nothing_passes_a_write_that_does_not_end() {
        let world = Notes::new();
        let driver = Driver::new(Echo, Clock::start());
        driver.submit(100);
        let running = tokio::spawn({
            let (driver, world) = (driver.clone(), world.clone());
            async move { driver.run(world).await }
        });
        for n in [1, 1001] {
            driver.submit(n);
        }
        world.seen.notified().await;
        assert_eq!(*lock(&world.log), ["show 1001"]);
        let room = world.clone();
        tokio::task::spawn_blocking(move || room.room.wait()).await.unwrap();
        while lock(&world.log).len() < 4 {
            world.seen.notified().await;
        }
        assert_eq!(*lock(&world.log), ["show 1001", "write 100", "show 100", "show 1"]);
        running.abort();
    }
}
