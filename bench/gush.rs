//! An agent that prints a lot: `gush lines BYTES` in lines of 80 bytes, `gush line BYTES` without
//! any newline.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (kind, bytes) = (
        args.next(),
        args.next().and_then(|n| n.parse::<usize>().ok()),
    );
    let (Some(kind), Some(mut left)) = (kind, bytes) else {
        eprintln!("usage: gush lines|line BYTES");
        return ExitCode::from(2);
    };
    let mut block = vec![b'x'; 80 * 1024];
    if kind == "lines" {
        for line in block.chunks_mut(80) {
            line[79] = b'\n';
        }
    }
    let mut out = std::io::stdout().lock();
    while left > 0 {
        let now = left.min(block.len());
        if out.write_all(&block[..now]).is_err() {
            return ExitCode::FAILURE;
        }
        left -= now;
    }
    ExitCode::SUCCESS
}
