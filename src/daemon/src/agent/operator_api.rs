//! `POST /api/v1`: the operator API of the agent (docs/mesos/agent-api.md).
//!
//! A snapshot answers calls that read; the core answers calls about containers.

use agent::{AgentState, Answer, ContainerName, Done, Input, RequestId};
use authorizer::Action;
use protos::mesos::agent::call::Type;
use protos::mesos::agent::{Call, Response as Message, response};
use wire::http::{Request, Response, StatusCode};
use wire::negotiate::{Encoding, MediaTypes};

use super::handler::Handler;
use super::{attach, metrics, views};
use crate::acls::{Caller, forbidden};
use crate::audit;
use crate::codec;
use crate::common::{calls, unknown_call};
use crate::rejection::rejection;
use crate::streams::encode_v1;

pub(super) async fn answer(handler: &Handler, request: &Request, caller: Caller) -> Response {
    if handler.snapshot().await.state == AgentState::Recovering {
        return Response::unavailable("Agent has not finished recovery");
    }
    match check(request) {
        Ok((call, media)) => {
            if let Err(refusal) = authorize(handler, &call, &caller).await {
                return *refusal;
            }
            match call.r#type() {
                Type::LaunchNestedContainerSession => attach::launch(handler, call, media).await,
                Type::AttachContainerOutput => attach::output(handler, &call, media),
                _ => act(handler, call, media.response, caller).await,
            }
        }
        Err(refusal) => *refusal,
    }
}

/// Checks that the sender may make a call. Calls that read are not refused; their answers leave out what the sender may
/// not view.
///
/// # Errors
/// 403.
pub(super) async fn authorize(handler: &Handler, call: &Call, caller: &Caller) -> Result<(), Box<Response>> {
    if !caller.authorizer.is_on() {
        return Ok(());
    }
    match call.r#type() {
        Type::GetFlags => caller.authorize(Action::ViewFlags, None),
        Type::SetLoggingLevel => caller.authorize(Action::SetLogLevel, None),
        Type::PruneImages => caller.authorize(Action::PruneImages, None),
        Type::AddResourceProviderConfig | Type::UpdateResourceProviderConfig | Type::RemoveResourceProviderConfig => {
            caller.authorize(Action::ModifyResourceProviderConfig, None)
        }
        Type::MarkResourceProviderGone => caller.authorize(Action::MarkResourceProvidersGone, None),
        Type::ListFiles => handler.authorize_file(call.list_files.as_ref().map_or("", |list| &list.path), caller).await,
        Type::ReadFile => handler.authorize_file(call.read_file.as_ref().map_or("", |read| &read.path), caller).await,
        _ => {
            if let Some(container) = agent::container_of(call).filter(|_| caller.executor.is_some()) {
                return must_be_inside(caller, call.r#type(), &container);
            }
            let actions = handler.snapshot().await.container_actions(call);
            actions.into_iter().try_for_each(|(action, user)| caller.authorize(action, user.as_deref()))
        }
    }
}

/// Checks that an executor's token permits a call about a container: only containers in its own, and not their input
/// (SEC-40).
///
/// # Errors
/// 403.
fn must_be_inside(caller: &Caller, kind: Type, container: &ContainerName) -> Result<(), Box<Response>> {
    if kind != Type::AttachContainerInput && caller.executor.as_ref() == Some(&container.root()) {
        return Ok(());
    }
    let own = caller.executor.as_ref().map_or("", ContainerName::as_str);
    tracing::info!("refusing {} of the executor in container {own} for container {container}", kind.as_str_name());
    Err(Box::new(forbidden()))
}

fn check(request: &Request) -> Result<(Call, MediaTypes), Box<Response>> {
    let media = MediaTypes::negotiate(&request.method, &request.headers)?;
    let call: Call = media.decode(request.body.full(), codec::agent_call)?;
    audit::note_call(|| audit::agent_call(&call));
    if let Err(why) = super::validate::operator_call(&call) {
        unknown_call::log(request, |number| Some(Type::try_from(number).ok()?.as_str_name()));
        return Err(Box::new(Response::bad_request(format!("Failed to validate agent::Call: {why}"))));
    }
    let kind = call.r#type();
    let takes = kind == Type::AttachContainerInput;
    let gives = matches!(kind, Type::AttachContainerOutput | Type::LaunchNestedContainerSession);
    media.check_streams(kind.as_str_name(), takes, gives)?;
    Ok((call, media))
}

async fn act(handler: &Handler, call: Call, encoding: Encoding, caller: Caller) -> Response {
    match call.r#type() {
        Type::Unknown => Response::error(StatusCode::NOT_IMPLEMENTED),
        Type::GetState
        | Type::GetFrameworks
        | Type::GetExecutors
        | Type::GetTasks
        | Type::GetOperations
        | Type::GetResourceProviders
        | Type::GetAgent => {
            let snapshot = handler.snapshot().await;
            let body = views::calls::answer(&snapshot, &caller, call.r#type(), encoding);
            Response::ok_body(encoding.media_type(), body)
        }
        Type::GetHealth
        | Type::GetFlags
        | Type::GetVersion
        | Type::GetMetrics
        | Type::GetLoggingLevel
        | Type::SetLoggingLevel
        | Type::ListFiles
        | Type::ReadFile => match of_the_daemon(handler, call).await {
            Ok(Some(message)) => Response::ok_body(encoding.media_type(), encode_v1(encoding, &message)),
            Ok(None) => Response::empty(StatusCode::OK),
            Err(refusal) => *refusal,
        },
        Type::GetContainers => get_containers(handler, call, encoding, caller).await,
        Type::PruneImages => prune(handler, call),
        // This agent has no resource providers.
        Type::AddResourceProviderConfig | Type::UpdateResourceProviderConfig | Type::RemoveResourceProviderConfig => {
            Response::internal("Missing required flag --resource_provider_config_dir")
        }
        Type::MarkResourceProviderGone => {
            let id = call.mark_resource_provider_gone.unwrap_or_default().resource_provider_id.value;
            Response::internal(format!("Unknown resource provider {id}"))
        }
        _ => core(handler, call, encoding).await,
    }
}

/// Answers PRUNE_IMAGES at once. Deleting may take long, and waits for images that are being downloaded.
fn prune(handler: &Handler, call: Call) -> Response {
    let excluded = call.prune_images.unwrap_or_default().excluded_images;
    let keep: Vec<String> = excluded.into_iter().filter_map(|image| Some(image.docker?.name)).collect();
    let images = handler.shell.containers.images();
    tokio::task::spawn_blocking(move || match images.prune(&keep) {
        Ok(pruned) => tracing::info!("{} images and {} layers were pruned", pruned.images, pruned.layers),
        Err(error) => tracing::warn!("images cannot be pruned: {error:#}"),
    });
    Response::empty(StatusCode::OK)
}

/// Answers a call about the process rather than the node. Returns `None` if the response has no content.
async fn of_the_daemon(handler: &Handler, call: Call) -> Result<Option<Message>, Box<Response>> {
    calls::of_the_daemon!(agent, &handler.common, call, metrics::collect(handler))
}

async fn get_containers(handler: &Handler, call: Call, encoding: Encoding, caller: Caller) -> Response {
    let get = call.get_containers.unwrap_or_default();
    let containers = match containers(handler, get.show_nested(), get.show_standalone(), caller).await {
        Ok(containers) => containers,
        Err(refusal) => return *refusal,
    };
    Response::ok_body(encoding.media_type(), encode_v1(encoding, &container_list(containers)))
}

/// Creates the answer to GET_CONTAINERS. Without containers it has only its type, as Mesos's has.
fn container_list(containers: Vec<response::get_containers::Container>) -> Message {
    let mut message = Message::default();
    message.set_type(response::Type::GetContainers);
    message.get_containers = (!containers.is_empty()).then_some(response::GetContainers { containers });
    message
}

async fn containers(
    handler: &Handler,
    show_nested: bool,
    show_standalone: bool,
    caller: Caller,
) -> Result<Vec<response::get_containers::Container>, Box<Response>> {
    let (snapshot, live, now) = (handler.snapshot().await, handler.shell.containers.clone(), handler.driver.now());
    let listed = tokio::task::spawn_blocking(move || {
        let measured = views::statistics::Measured { snapshot, usage: live.usage(), now };
        let hidden = caller.hidden_containers(&measured.snapshot);
        let show_standalone = show_standalone && caller.may(Action::ViewStandaloneContainer, None);
        views::statistics::messages(&measured, &live, show_nested, show_standalone, &hidden)
    });
    listed.await.map_err(|error| Box::new(Response::internal(error.to_string())))
}

/// Passes a call about a container to the core, and answers with its result.
async fn core(handler: &Handler, call: Call, encoding: Encoding) -> Response {
    let (number, outcome) = handler.shell.pending_requests.ask();
    handler.driver.handle_now(Input::OperatorCall { request: RequestId(number), call: Box::new(call) });
    match outcome.await {
        Ok(answer) => respond(answer, encoding),
        Err(_) => Response::error(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// Converts an answer of the core to a response.
pub(super) fn respond(answer: Answer, encoding: Encoding) -> Response {
    match answer {
        Ok(Done::Complete | Done::Stream) => Response::empty(StatusCode::OK),
        Ok(Done::Accepted) => Response::empty(StatusCode::ACCEPTED),
        Ok(Done::Response(message)) => Response::ok_body(encoding.media_type(), encode_v1(encoding, &*message)),
        Err(error) => rejection(error),
    }
}
