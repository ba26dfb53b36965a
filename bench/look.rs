//! A small client of `ralph ui`.
//!
//! `look get ADDRESS TOKEN PATH N` fetches a path N times, and prints the median and the worst time
//! in microseconds, and the length of the last answer. `look follow ADDRESS TOKEN PATH` reads an
//! event stream until it ends or is killed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["get", address, token, path, count] => {
            let count: usize = count.parse().expect("N is a number");
            let mut length = 0;
            let mut times: Vec<u128> = (0..count)
                .map(|_| {
                    let from = Instant::now();
                    length = get(address, token, path);
                    from.elapsed().as_micros()
                })
                .collect();
            times.sort_unstable();
            println!("{} {} {length}", times[times.len() / 2], times[times.len() - 1]);
        }
        ["follow", address, token, path] => {
            let mut stream = request(address, token, path);
            let mut buffer = [0; 64 * 1024];
            while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
        }
        _ => {
            eprintln!("usage: look get ADDRESS TOKEN PATH N | look follow ADDRESS TOKEN PATH");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn get(address: &str, token: &str, path: &str) -> usize {
    let mut answer = Vec::new();
    request(address, token, path)
        .read_to_end(&mut answer)
        .expect("the answer is complete");
    assert!(
        answer.starts_with(b"HTTP/1.1 200"),
        "{path}: {}",
        String::from_utf8_lossy(&answer[..answer.len().min(200)])
    );
    answer.len()
}

fn request(address: &str, token: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the server answers");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    .expect("the request is sent");
    stream
}
