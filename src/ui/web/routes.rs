//! Maps requests to answers: the page, its files, and the JSON API.

use super::access::{AccessRefusal, add_headers};
use super::assets::{ASSETS, Asset, PAGE};
use super::stats_json::{self, StatsQuery};
use super::{SteeringRequest, Web, history_json, live, loop_json};
use crate::engine::plain_text::visible;
use crate::store::{LoopDir, StoreError};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// The longest body of a request, in bytes.
const BODY_MAX: usize = 64 << 10;
/// The longest text in an answer, in bytes.
const TEXT_MAX: usize = 256 << 10;

type WebState = State<Arc<Web>>;

pub(super) fn router(web: &Arc<Web>) -> Router {
    let api = Router::new()
        .route("/loops", get(loops))
        .route("/events", get(overview_events))
        .route("/stats", get(stats))
        .route("/loops/{name}", get(one_loop))
        .route("/loops/{name}/events", get(loop_events))
        .route("/loops/{name}/history", get(history))
        .route("/loops/{name}/diff", get(whole_diff))
        .route("/loops/{name}/iterations/{number}", get(iteration))
        .route(
            "/loops/{name}/iterations/{number}/diff",
            get(iteration_diff),
        )
        .route("/loops/{name}/{action}", post(steer))
        .fallback(async || error(StatusCode::NOT_FOUND, "there is no such path"))
        .layer(middleware::from_fn_with_state(
            Arc::clone(web),
            require_token,
        ));
    let mut page = Router::new().route("/", get(async || file(&PAGE)));
    for asset in ASSETS {
        page = page.route(&format!("/{}", asset.path), get(async || file(asset)));
    }
    let base = web.access.base();
    Router::new()
        .route("/", get(enter))
        .nest("/api", api.clone())
        // `nest` does not match the slash at the end.
        .route(&format!("{base}/"), get(async || file(&PAGE)))
        .nest(&format!("{base}/api"), api)
        .nest(base, page)
        .fallback(async || error(StatusCode::NOT_FOUND, "there is no such path"))
        .layer(middleware::from_fn_with_state(Arc::clone(web), guard))
        .with_state(Arc::clone(web))
}

/// Refuses requests from elsewhere, before anything else looks at them.
async fn guard(State(web): WebState, request: Request, next: Next) -> Response {
    let mut response = match web.access.check_source(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refuse(refusal),
    };
    add_headers(response.headers_mut());
    response
}

async fn require_token(State(web): WebState, request: Request, next: Next) -> Response {
    match web.access.check_api(request.method(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refuse(refusal),
    }
}

fn refuse(refusal: AccessRefusal) -> Response {
    let status = match refusal {
        AccessRefusal::NoToken => StatusCode::UNAUTHORIZED,
        AccessRefusal::WrongHost | AccessRefusal::WrongOrigin => StatusCode::FORBIDDEN,
    };
    error(status, refusal.message())
}

/// Exchanges the token for a cookie, and leads to an address without the token.
async fn enter(State(web): WebState, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let token = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("token="));
    if !token.is_some_and(|token| web.access.is_token(token)) {
        let text = format!("{}\n", AccessRefusal::NoToken.message());
        return (StatusCode::UNAUTHORIZED, text).into_response();
    }
    let headers = [
        (header::LOCATION, format!("{}/", web.access.base())),
        (header::SET_COOKIE, web.access.cookie()),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn file(asset: &'static Asset) -> Response {
    let headers = [(header::CONTENT_TYPE, asset.content_type)];
    (headers, asset.text).into_response()
}

async fn loops(State(web): WebState, request: Request) -> Response {
    let wants_archived = request.uri().query() == Some("archived");
    if wants_archived {
        let state_dir = web.state_dir.clone();
        return answer(move || Ok(Some(json!({"loops": loop_json::archived(&state_dir)})))).await;
    }
    let found = web.overviews.scan_all().await;
    let rows: Vec<&str> = found.rows.values().map(|row| &**row).collect();
    let control = web.steer.is_some();
    let version = env!("CARGO_PKG_VERSION");
    json_text(format!(
        "{{\"control\":{control},\"version\":\"{version}\",\"loops\":[{}]}}",
        rows.join(",")
    ))
}

async fn one_loop(State(web): WebState, Path(name): Path<String>) -> Response {
    let state_dir = web.state_dir.clone();
    let control = web.steer.is_some();
    answer(move || {
        let dir = loop_json::find(&state_dir, &name)?;
        let mut detail = loop_json::detail(&state_dir, &dir)?;
        detail["control"] = json!(control);
        Ok(Some(detail))
    })
    .await
}

async fn iteration(State(web): WebState, Path((name, number)): Path<(String, u32)>) -> Response {
    let state_dir = web.state_dir.clone();
    answer(move || loop_json::one_iteration(&loop_json::find(&state_dir, &name)?, number)).await
}

async fn history(State(web): WebState, Path(name): Path<String>) -> Response {
    let state_dir = web.state_dir.clone();
    answer(move || history_json::history(&loop_json::find(&state_dir, &name)?).map(Some)).await
}

async fn stats(State(web): WebState, request: Request) -> Response {
    let Some(query) = StatsQuery::parse(request.uri().query().unwrap_or_default()) else {
        let text = "the query has other parts than by=day|agent|model|repository and hours=N";
        return error(StatusCode::BAD_REQUEST, text);
    };
    let _turn = web.stats.lock().await;
    let state_dir = web.state_dir.clone();
    answer(move || stats_json::stats(&state_dir, query).map(Some)).await
}

async fn whole_diff(State(web): WebState, Path(name): Path<String>) -> Response {
    diff(&web, name, None).await
}

async fn iteration_diff(
    State(web): WebState,
    Path((name, number)): Path<(String, u32)>,
) -> Response {
    diff(&web, name, Some(number)).await
}

async fn diff(web: &Arc<Web>, name: String, number: Option<u32>) -> Response {
    let state_dir = web.state_dir.clone();
    answer(move || loop_json::diff(&loop_json::find(&state_dir, &name)?, number).map(Some)).await
}

async fn overview_events(State(web): WebState) -> Response {
    let Ok(permit) = Arc::clone(&web.streams).try_acquire_owned() else {
        return too_many_streams();
    };
    event_stream(live::overview_stream(&web, permit))
}

async fn loop_events(State(web): WebState, Path(name): Path<String>) -> Response {
    let state_dir = web.state_dir.clone();
    let found = spawn_blocking(move || loop_json::find(&state_dir, &name)).await;
    let dir: LoopDir = match found {
        Ok(Ok(dir)) => dir,
        Ok(Err(why)) => return error(StatusCode::NOT_FOUND, &why.to_string()),
        Err(why) => return error(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    };
    let Ok(permit) = Arc::clone(&web.streams).try_acquire_owned() else {
        return too_many_streams();
    };
    event_stream(live::loop_stream(&web, dir, permit))
}

fn event_stream(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn too_many_streams() -> Response {
    error(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open")
}

/// Pauses, resumes or stops a loop, or sends a message to it.
async fn steer(
    State(web): WebState,
    Path((name, action)): Path<(String, String)>,
    request: Request,
) -> Response {
    debug_assert_eq!(request.method(), Method::POST);
    let Some(steer) = web.steer.clone() else {
        let text = "this page only shows loops; start `ralph ui --control` to steer them";
        return error(StatusCode::FORBIDDEN, text);
    };
    let Ok(body) = to_bytes(request.into_body(), BODY_MAX).await else {
        return error(StatusCode::PAYLOAD_TOO_LARGE, "the message is too long");
    };
    let request = match (action.as_str(), String::from_utf8(body.to_vec())) {
        ("pause", _) => SteeringRequest::Pause,
        ("resume", _) => SteeringRequest::Resume,
        ("stop", _) => SteeringRequest::Stop,
        ("say", Ok(text)) => SteeringRequest::Say(text),
        ("say", Err(_)) => return error(StatusCode::BAD_REQUEST, "the message is not UTF-8"),
        _ => return error(StatusCode::NOT_FOUND, "there is no such path"),
    };
    // It may take as long as the loop's agent needs to stop, and must not keep readers waiting.
    let (sender, done) = tokio::sync::oneshot::channel();
    let state_dir = web.state_dir.clone();
    std::thread::spawn(move || {
        let found = state_dir.find_loop(&name).map_err(Into::into);
        let _ = sender.send(found.and_then(|_| steer(&name, &request)));
    });
    match done.await {
        Ok(Ok(message)) => json_text(to_text(json!({"ok": true, "message": message}))),
        Ok(Err(why)) => {
            let status = if why.is_usage() {
                StatusCode::CONFLICT
            } else {
                StatusCode::INTERNAL_SERVER_ERROR
            };
            let hint = why.hint().map(|hint| format!("; {hint}"));
            error(
                status,
                &format!("{}{}", why.message(), hint.unwrap_or_default()),
            )
        }
        Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "the request failed"),
    }
}

/// Reads files on another thread, and answers with the value; `None` means that it does not exist.
async fn answer(
    read: impl FnOnce() -> Result<Option<Value>, StoreError> + Send + 'static,
) -> Response {
    match spawn_blocking(move || read().map(|value| value.map(to_text))).await {
        Ok(Ok(Some(text))) => json_text(text),
        Ok(Ok(None)) => error(StatusCode::NOT_FOUND, "there is no such iteration"),
        Ok(Err(why)) => error(StatusCode::NOT_FOUND, &why.to_string()),
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}

fn json_text(text: String) -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], text).into_response()
}

fn error(status: StatusCode, message: &str) -> Response {
    let text = to_text(json!({"error": message}));
    (status, json_text(text)).into_response()
}

/// Writes a value as JSON. Hidden characters in its texts become visible, and long texts are cut.
pub(super) fn to_text(mut value: Value) -> String {
    make_visible(&mut value);
    value.to_string()
}

fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) => {
            if text.len() > TEXT_MAX {
                let mut end = TEXT_MAX;
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                text.truncate(end);
                text.push('…');
            }
            if let Cow::Owned(shown) = visible(text) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_visible),
        Value::Object(fields) => fields.values_mut().for_each(make_visible),
        _ => {}
    }
}
