//! The part of HTTP/1.1 that model clients use: one request per connection, with a complete body and an immediate reply.

use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A request.
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query string.
    pub(super) path: String,
    /// Null if there is no body, or it is not JSON.
    pub(super) body: Value,
}

/// A reply.
pub(super) struct Reply {
    status: u16,
    kind: &'static str,
    headers: Vec<(String, String)>,
    body: String,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            kind: "application/json",
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    /// Builds a reply from server-sent events. An event with an empty name has only data.
    pub(super) fn events(events: &[(&str, Value)]) -> Self {
        let mut body = String::new();
        for (name, data) in events {
            if !name.is_empty() {
                let _ = writeln!(body, "event: {name}");
            }
            let _ = writeln!(body, "data: {data}\n");
        }
        Self {
            status: 200,
            kind: "text/event-stream",
            headers: Vec::new(),
            body,
        }
    }

    /// Appends text to the body.
    pub(super) fn ending(mut self, text: &str) -> Self {
        self.body += text;
        self
    }

    pub(super) fn with(mut self, headers: Vec<(String, String)>) -> Self {
        self.headers.extend(headers);
        self
    }
}

/// Reads a request; `None` if the client disconnected or does not send valid HTTP.
pub(super) fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let first = line(&mut reader)?;
    let mut args = first.split(' ');
    let (method, target) = (args.next()?.to_owned(), args.next()?.to_owned());
    let (mut length, mut chunked) = (0, false);
    loop {
        let header = line(&mut reader)?.to_ascii_lowercase();
        let Some((name, value)) = header.split_once(':') else {
            break;
        };
        match (name, value.trim()) {
            ("content-length", value) => length = value.parse().ok()?,
            ("transfer-encoding", "chunked") => chunked = true,
            ("expect", _) => (&mut &*stream)
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .ok()?,
            _ => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        while let size @ 1.. = usize::from_str_radix(line(&mut reader)?.trim(), 16).ok()? {
            reader
                .by_ref()
                .take(size as u64)
                .read_to_end(&mut body)
                .ok()?;
            line(&mut reader)?;
        }
    } else {
        reader.take(length).read_to_end(&mut body).ok()?;
    }
    let path = target.split('?').next()?.to_owned();
    Some(Request {
        method,
        path,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = reader.read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

/// Sends a reply. A client that has disconnected is ignored.
pub(super) fn write(stream: &TcpStream, request: &Request, reply: &Reply) {
    let Reply {
        status,
        kind,
        headers,
        body,
    } = reply;
    let mut head = format!(
        "HTTP/1.1 {status} Mock\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head += "connection: close\r\n\r\n";
    if request.method != "HEAD" {
        head += body;
    }
    let _ = (&mut &*stream).write_all(head.as_bytes());
}
