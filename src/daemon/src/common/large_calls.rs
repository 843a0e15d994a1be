//! Decodes and checks large calls on a thread that may block.

use wire::http::{Body, Query, Request, Response};

use crate::audit;

/// Size in bytes from which a body is large: it takes milliseconds to decode, in which the reactor's thread would do
/// nothing else.
const LARGE: usize = 1 << 20;

/// Returns the result of `judge` for a request. If the body is large, `judge` runs on another thread than the
/// reactor's, with method, headers and body only.
///
/// # Errors
/// The response of `judge`; 500 if it panics.
pub async fn check_off_reactor<T: Send + 'static>(
    request: &Request,
    judge: impl FnOnce(&Request) -> Result<T, Box<Response>> + Send + 'static,
) -> Result<T, Box<Response>> {
    let Body::Full(body) = &request.body else { return judge(request) };
    if body.len() <= LARGE {
        return judge(request);
    }
    let request = Request {
        method: request.method.clone(),
        path: request.path.clone(),
        raw_query: None,
        query: Query::default(),
        headers: request.headers.clone(),
        body: Body::Full(body.clone()),
        peer: request.peer,
        connection: request.connection,
        principal: request.principal.clone(),
    };
    let notes = audit::current();
    let judged = tokio::task::spawn_blocking(move || audit::within(notes, || judge(&request))).await;
    judged.unwrap_or_else(|error| Err(Box::new(Response::internal(error.to_string()))))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use wire::http::{HeaderMap, Method};
    use wire::libprocess::ConnectionId;

    use super::*;

    #[tokio::test]
    async fn a_large_body_is_read_on_another_thread() {
        let here = std::thread::current().id();
        for (length, elsewhere) in [(LARGE, false), (LARGE + 1, true)] {
            let request = Request {
                method: Method::POST,
                path: "/".to_owned(),
                raw_query: None,
                query: Query::default(),
                headers: HeaderMap::new(),
                body: Body::Full(vec![b' '; length].into()),
                peer: SocketAddr::from(([127, 0, 0, 1], 1)),
                connection: ConnectionId(1),
                principal: None,
            };
            let judge = |request: &Request| Ok((request.body.full().len(), std::thread::current().id()));
            let (read, thread) = check_off_reactor(&request, judge).await.expect("nothing is refused");
            assert_eq!((read, thread != here), (length, elsewhere));
        }
    }
}
