//! Answers the calls about the group of masters (`--peers`): its members, and changes of them.

use ::peers::ChangeError;
use serde_json::Value;
use wire::http::{Response, StatusCode};

use super::handler::Handler;
use super::peers::{MembershipChange, Peers, address_of};
use super::tepui_calls::reply;

/// Returns the handle of this master's member of the group.
fn group(handler: &Handler) -> Result<&Peers, Box<Response>> {
    let why = "This master has no group of peers: it was started without --peers. With --etcd or --zk a master joins \
               when it starts and leaves when it stops, and GET /redirect of each names the leader";
    handler.peers.get().ok_or_else(|| Box::new(Response::text(StatusCode::CONFLICT, why)))
}

/// Answers GET_MASTERS. Any master answers it, with what it knows.
pub(super) async fn show(handler: &Handler) -> Response {
    match group(handler) {
        Ok(peers) => match peers.status().await {
            Some(status) => reply("GET_MASTERS", "get_masters", status),
            None => Response::text(StatusCode::SERVICE_UNAVAILABLE, "This master is shutting down"),
        },
        Err(refusal) => *refusal,
    }
}

/// Answers ADD_MASTER and REMOVE_MASTER.
pub(super) async fn change(
    handler: &Handler,
    call: &Value,
    membership_change: impl FnOnce(String) -> MembershipChange,
) -> Response {
    match call["address"].as_str() {
        Some(address) => match address_of(address) {
            Ok(address) => carry_out(handler, membership_change(address)).await,
            Err(why) => Response::bad_request(format!("Invalid 'address': '{address}' {why}")),
        },
        None => Response::bad_request("Expecting 'address' to be present"),
    }
}

/// Answers TRANSFER_LEADERSHIP, to the master at an address or to any other one.
pub(super) async fn transfer(handler: &Handler, call: &Value) -> Response {
    let address = match call["address"].as_str().map(address_of).transpose() {
        Ok(address) => address,
        Err(why) => return Response::bad_request(format!("Invalid 'address': it {why}")),
    };
    carry_out(handler, MembershipChange::TransferLeadership(address)).await
}

async fn carry_out(handler: &Handler, membership_change: MembershipChange) -> Response {
    let peers = match group(handler) {
        Ok(peers) => peers,
        Err(refusal) => return *refusal,
    };
    match peers.change(membership_change).await {
        Ok(()) => Response::text(StatusCode::ACCEPTED, ""),
        Err(why @ (ChangeError::NotLeading | ChangeError::UnderWay)) => {
            Response::text(StatusCode::SERVICE_UNAVAILABLE, why.to_string())
        }
        Err(why) => Response::text(StatusCode::CONFLICT, why.to_string()),
    }
}
