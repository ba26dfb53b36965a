//! A scripted model service on the loopback interface. It answers with a scenario's steps, in the protocol of each request.
//!
//! Clients also send small side requests, such as one for a session title. Only a request that offers tools takes a step;
//! others get a short answer.

mod anthropic;
mod chat;
mod gemini;
mod http;
mod responses;
mod step;
#[cfg(test)]
mod tests;

pub(crate) use step::{Step, Tokens, refuse, say, use_tool};

use http::{Reply, Request};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running scenario. Dropping it stops the service.
pub(crate) struct Model {
    address: SocketAddr,
    scene: Arc<Scene>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Scene {
    steps: Mutex<VecDeque<Step>>,
    asked: Mutex<Vec<Value>>,
    is_over: Mutex<bool>,
}

impl Model {
    /// Starts a service that answers with these steps, in this order.
    pub(crate) fn play(steps: impl IntoIterator<Item = Step>) -> Self {
        let scene = Arc::new(Scene {
            steps: Mutex::new(steps.into_iter().collect()),
            ..Scene::default()
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of the loopback");
        let address = listener.local_addr().expect("an address");
        let last_input = Arc::clone(&scene);
        let listening = std::thread::spawn(move || listen(&listener, &last_input));
        Self {
            address,
            scene,
            listening: Some(listening),
        }
    }

    /// Adds steps to the end of the scenario.
    pub(crate) fn add(&self, steps: impl IntoIterator<Item = Step>) {
        self.scene.steps.lock().unwrap().extend(steps);
    }

    /// Replaces the remaining steps.
    pub(crate) fn play_instead(&self, steps: impl IntoIterator<Item = Step>) {
        *self.scene.steps.lock().unwrap() = steps.into_iter().collect();
    }

    /// Returns the service's URL, without a trailing slash.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the bodies of the requests that took a step or found none left.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.scene.asked.lock().unwrap().clone()
    }

    /// Asserts that every step was taken, and that no client asked for more.
    #[track_caller]
    pub(crate) fn assert_played(&self, steps: usize) {
        assert_eq!(
            (self.asked().len(), self.scene.steps.lock().unwrap().len()),
            (steps, 0),
            "steps, steps left"
        );
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        *self.scene.is_over.lock().unwrap() = true;
        // Connect once, so that the waiting thread wakes up and sees that the service is closed.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

fn listen(listener: &TcpListener, scene: &Arc<Scene>) {
    for stream in listener.incoming().flatten() {
        if *scene.is_over.lock().unwrap() {
            return;
        }
        let scene = Arc::clone(scene);
        std::thread::spawn(move || {
            if let Some(request) = http::read(&stream) {
                http::write(&stream, &request, &scene.reply(&request));
            }
        });
    }
}

impl Scene {
    fn reply(&self, request: &Request) -> Reply {
        let Some(encode) = language(&request.path) else {
            return side_request(request);
        };
        let has_tools = request.body["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty());
        let step = if has_tools {
            self.take(&request.body)
        } else {
            say("ok").with_tokens(Tokens::NONE)
        };
        while step.gate.as_ref().is_some_and(|gate| !gate.exists())
            && !*self.is_over.lock().unwrap()
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        match step.status {
            Some(status) => Reply::json(status, &step.body).with(step.headers),
            None => encode(request, &step).with(step.headers),
        }
    }

    fn take(&self, body: &Value) -> Step {
        self.asked.lock().unwrap().push(body.clone());
        self.steps
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or_else(|| say("The scenario is over."))
    }
}

type Language = fn(&Request, &Step) -> Reply;

fn language(path: &str) -> Option<Language> {
    let languages: [(&str, Language); 5] = [
        ("/v1/messages", anthropic::encode),
        ("/responses", responses::encode),
        ("/chat/completions", chat::encode),
        (":streamGenerateContent", gemini::encode),
        (":generateContent", gemini::encode),
    ];
    languages
        .into_iter()
        .find(|(end, _)| path.ends_with(end))
        .map(|(_, encode)| encode)
}

/// Answers other requests that clients send at startup.
fn side_request(request: &Request) -> Reply {
    let path = &request.path;
    if path.ends_with("/count_tokens") {
        Reply::json(200, &json!({ "input_tokens": 1000 }))
    } else if path.ends_with(":countTokens") {
        Reply::json(200, &json!({ "totalTokens": 1000 }))
    } else if path.ends_with("/models") {
        Reply::json(
            200,
            &json!({ "object": "list", "data": [], "models": [], "has_more": false }),
        )
    } else {
        let error = json!({ "type": "not_found_error", "message": "not found" });
        Reply::json(
            if request.method == "HEAD" { 200 } else { 404 },
            &json!({ "type": "error", "error": error }),
        )
    }
}

/// Returns an ID that is unique in this process.
fn id(prefix: &str) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(1);
    format!("{prefix}{:020}", COUNT.fetch_add(1, Ordering::Relaxed))
}
