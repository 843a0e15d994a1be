//! The HTTP API of an uplink: the stream of pictures, and its status.

use std::sync::{Arc, Mutex};

use sdk::driver::api::{Api, Call, Response, StatusCode, error, json};
use serde::Serialize;
use wire::auth::check_basic;

use super::STREAM;
use super::capture::CaptureStatus;
use crate::abr::BitratePolicy;
use crate::abr::live::{POLICY_NAMES, RUNGS, Viewer, policy_named};
use crate::picture_stream::Views;

/// Realm of the API.
const REALM: &str = "tepui-uplink";
/// Policy of readers that ask for no other. Where a query counts on the pictures it is the best adaptive one
/// (docs/papers/bitrate.md); the linear policy is trained for people.
const DEFAULT_POLICY: BitratePolicy = BitratePolicy::Rate;

/// Answers calls:
///
/// | call | answer |
/// |---|---|
/// | `GET /` | the pictures as a stream of JPEG, adapted to the connection; `?most=` is the highest rung that the reader has a use for, `?policy=` another policy, for comparisons |
/// | `GET /status` | the source's state and size, and the number of readers of each rung |
#[derive(Debug)]
pub(super) struct UplinkApi {
    pub(super) views: Arc<Views>,
    pub(super) status: Arc<Mutex<CaptureStatus>>,
    pub(super) credential: Option<(String, String)>,
}

#[derive(Serialize)]
struct UplinkStatus {
    #[serde(flatten)]
    source: CaptureStatus,
    readers: [usize; RUNGS.len()],
}

impl Api for UplinkApi {
    async fn answer(&self, call: Call) -> Response {
        if let Some((user, password)) = &self.credential {
            let is_known = |one: &str, two: &str| base::same_text(one, user) & base::same_text(two, password);
            if let Err(refusal) = check_basic(call.request.header("authorization"), REALM, is_known) {
                return *refusal;
            }
        }
        match call.route() {
            ("GET", path) if path.is_empty() => {
                let policy = match call.query.get("policy") {
                    None => DEFAULT_POLICY,
                    Some(name) => match policy_named(name) {
                        Some(policy) => policy,
                        None => return error(StatusCode::BAD_REQUEST, format!("policy must be {POLICY_NAMES}")),
                    },
                };
                let most = match call.query.get("most").map(str::parse) {
                    None => RUNGS.len() - 1,
                    Some(Ok(rung)) if rung < RUNGS.len() => rung,
                    Some(_) => return error(StatusCode::BAD_REQUEST, "most must be a rung from 0 to 5"),
                };
                self.views.open(STREAM, Viewer::new(policy).steady().at_most(most)).unwrap_or_else(|_| {
                    error(StatusCode::SERVICE_UNAVAILABLE, "the maximum number of readers is connected")
                })
            }
            ("GET", path) if path == ["status"] => {
                let status =
                    UplinkStatus { source: base::lock(&self.status).clone(), readers: self.views.viewers(STREAM) };
                json(StatusCode::OK, &status)
            }
            (method, path) => {
                let path = path.join("/");
                error(StatusCode::NOT_FOUND, format!("there is no {method} /{path}: there are GET / and GET /status"))
            }
        }
    }
}
