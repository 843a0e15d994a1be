//! A channel from other threads to a running scheduler and back: requests in, answers out.
//!
//! An HTTP API, a command or a test asks through a [`Requester`]. The scheduler takes waiting requests from its
//! [`Requests`] at [`Event::Wake`](crate::Event::Wake), and answers at once or later. The queue is limited; a request
//! to a full queue fails.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Maximum number of requests in the queue.
const WAITING_MAX: usize = 1024;

/// Reason why a request was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The queue is full.
    #[error("the scheduler has {WAITING_MAX} requests waiting; try again later")]
    Busy,
    /// The scheduler has ended, or dropped the request.
    #[error("the scheduler has ended")]
    Gone,
}

/// Creates both ends of a channel: a [`Requester`], which can be cloned, and the scheduler's [`Requests`].
///
/// The driver must know which notification wakes the scheduler: `options.wake_signal = Some(requester.wake_signal())`.
pub fn requests<Q, A>() -> (Requester<Q, A>, Requests<Q, A>) {
    let shared = Arc::new(Mutex::new(Queue { waiting: VecDeque::new(), closed: false }));
    let requester = Requester {
        queue: shared.clone(),
        #[cfg(feature = "driver")]
        wake_signal: Arc::default(),
    };
    (requester, Requests(shared))
}

/// The end of the channel that sends requests.
pub struct Requester<Q, A> {
    queue: Arc<Mutex<Queue<Q, A>>>,
    #[cfg(feature = "driver")]
    wake_signal: Arc<tokio::sync::Notify>,
}

/// The scheduler's end of the channel: an iterator over the waiting requests.
pub struct Requests<Q, A>(Arc<Mutex<Queue<Q, A>>>);

struct Queue<Q, A> {
    waiting: VecDeque<Request<Q, A>>,
    closed: bool,
}

/// A request that must be answered. If it is dropped without an answer, the requester receives [`AskError::Gone`].
pub struct Request<Q, A> {
    /// Content of the request.
    pub question: Q,
    slot: Reply<A>,
}

/// A future of the answer; it can also be polled with [`take`](Answer::take).
pub struct Answer<A>(Arc<Mutex<AnswerSlot<A>>>);

/// The answering side of a request, which reports when it is dropped.
struct Reply<A>(Arc<Mutex<AnswerSlot<A>>>);

enum AnswerSlot<A> {
    Empty(Option<Waker>),
    Answered(A),
    Over,
}

impl<Q, A> Requester<Q, A> {
    /// Sends a request, and waits for the answer. Dropping the future does not cancel the request.
    ///
    /// # Errors
    /// The queue is full, or the scheduler has ended or dropped the request.
    pub async fn ask(&self, question: Q) -> Result<A, AskError> {
        let answer = put(&self.queue, question)?;
        #[cfg(feature = "driver")]
        self.wake_signal.notify_one();
        answer.await
    }

    /// Sends a request without waking the scheduler, as laboratories do; it must then receive
    /// [`Event::Wake`](crate::Event::Wake).
    ///
    /// # Errors
    /// The queue is full, or the scheduler has ended.
    pub fn put(&self, question: Q) -> Result<Answer<A>, AskError> {
        put(&self.queue, question)
    }

    /// Returns the notification that [`ask`](Requester::ask) sends, for the driver's `Options::wake_signal`.
    #[cfg(feature = "driver")]
    pub fn wake_signal(&self) -> Arc<tokio::sync::Notify> {
        self.wake_signal.clone()
    }
}

/// Yields the requests that wait now, the oldest first. After `None` there may be more later.
impl<Q, A> Iterator for Requests<Q, A> {
    type Item = Request<Q, A>;

    fn next(&mut self) -> Option<Request<Q, A>> {
        lock(&self.0).waiting.pop_front()
    }
}

impl<Q, A> Requests<Q, A> {
    /// Sends a request without a requester, as tests and laboratories do; the scheduler must then receive
    /// [`Event::Wake`](crate::Event::Wake).
    ///
    /// # Errors
    /// The queue is full.
    pub fn put(&self, question: Q) -> Result<Answer<A>, AskError> {
        put(&self.0, question)
    }
}

fn put<Q, A>(queue: &Mutex<Queue<Q, A>>, question: Q) -> Result<Answer<A>, AskError> {
    let mut queue = lock(queue);
    if queue.closed {
        return Err(AskError::Gone);
    }
    if queue.waiting.len() >= WAITING_MAX {
        return Err(AskError::Busy);
    }
    let slot = Arc::new(Mutex::new(AnswerSlot::Empty(None)));
    queue.waiting.push_back(Request { question, slot: Reply(slot.clone()) });
    Ok(Answer(slot))
}

impl<Q, A> Request<Q, A> {
    /// Answers the request at once. If the requester is gone, the answer is dropped. State saved in the same event may
    /// not be durable yet: see [`Calls::answer`](crate::Calls::answer).
    pub fn answer(self, answer: A) {
        self.slot.fill(AnswerSlot::Answered(answer));
    }

    /// Returns the answer as a value, to be delivered later.
    pub(crate) fn deferred(self, answer: A) -> Deferred
    where
        A: Send + 'static,
    {
        let slot = self.slot;
        let deliver = move || slot.fill(AnswerSlot::Answered(answer));
        Deferred(Arc::new(Mutex::new(Some(Box::new(deliver)))))
    }
}

/// An answer that is not delivered yet. If it is dropped, the requester receives [`AskError::Gone`].
#[derive(Clone)]
pub struct Deferred(Arc<Mutex<Option<Delivery>>>);

type Delivery = Box<dyn FnOnce() + Send>;

impl Deferred {
    /// Delivers the answer.
    pub fn deliver(self) {
        let deliver = lock(&self.0).take();
        if let Some(deliver) = deliver {
            deliver();
        }
    }
}

/// A deferred answer is equal to itself only.
impl PartialEq for Deferred {
    fn eq(&self, other: &Deferred) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").finish_non_exhaustive()
    }
}

impl<A> Reply<A> {
    fn fill(&self, content: AnswerSlot<A>) {
        let mut slot = lock(&self.0);
        if let AnswerSlot::Empty(waker) = &mut *slot {
            let waker = waker.take();
            *slot = content;
            drop(slot);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<A> Answer<A> {
    /// Takes the answer, if it has arrived; it can be taken once.
    pub fn take(&mut self) -> Option<Result<A, AskError>> {
        let mut slot = lock(&self.0);
        if let AnswerSlot::Empty(_) = *slot {
            return None;
        }
        match std::mem::replace(&mut *slot, AnswerSlot::Over) {
            AnswerSlot::Answered(answer) => Some(Ok(answer)),
            AnswerSlot::Empty(_) | AnswerSlot::Over => Some(Err(AskError::Gone)),
        }
    }
}

impl<A> Future for Answer<A> {
    type Output = Result<A, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let AnswerSlot::Empty(waker) = &mut *lock(&self.0) {
            *waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        self.take().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<A> Drop for Reply<A> {
    fn drop(&mut self) {
        self.fill(AnswerSlot::Over);
    }
}

impl<Q, A> Drop for Requests<Q, A> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0);
        queue.closed = true;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        drop(waiting);
    }
}

impl<Q, A> Clone for Requester<Q, A> {
    fn clone(&self) -> Requester<Q, A> {
        Requester {
            queue: self.queue.clone(),
            #[cfg(feature = "driver")]
            wake_signal: self.wake_signal.clone(),
        }
    }
}

/// Locks a mutex. A poisoned lock is used all the same, since a panic leaves no change half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

macro_rules! opaque {
    ($($name:ident<$($of:ident),+>),+) => {$(
        impl<$($of),+> fmt::Debug for $name<$($of),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )+};
}

opaque!(Requester<Q, A>, Requests<Q, A>, Request<Q, A>, Answer<A>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_answered_in_their_order_or_refused() {
        let (requester, mut requests) = requests::<u32, String>();
        let mut first = requests.put(1).unwrap();
        let mut second = requests.put(2).unwrap();
        assert!(first.take().is_none());
        let request = requests.next().unwrap();
        assert_eq!(request.question, 1);
        request.answer("one".to_owned());
        assert_eq!(first.take(), Some(Ok("one".to_owned())));
        assert_eq!(first.take(), Some(Err(AskError::Gone)), "it can be taken once");
        drop(requests.next());
        assert_eq!(second.take(), Some(Err(AskError::Gone)), "a dropped question is not waited for");
        for n in 0..WAITING_MAX {
            requests.put(n as u32).unwrap();
        }
        assert_eq!(requests.put(0).unwrap_err(), AskError::Busy);
        let mut last = requests.next().map(|r| Answer(r.slot.0.clone())).unwrap();
        drop(requests);
        assert_eq!(last.take(), Some(Err(AskError::Gone)));
        let mut ask = Box::pin(requester.ask(1));
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(ask.as_mut().poll(&mut cx), Poll::Ready(Err(AskError::Gone)));
    }

    #[test]
    fn waiting_calls_are_woken() {
        let (requester, mut requests) = requests::<u32, u32>();
        let mut ask = Box::pin(requester.ask(20));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(ask.as_mut().poll(&mut cx).is_pending());
        let request = requests.next().unwrap();
        let twice = request.question * 2;
        request.answer(twice);
        assert_eq!(ask.as_mut().poll(&mut cx), Poll::Ready(Ok(40)));
    }
}
