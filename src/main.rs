//! Parse, call, exit code.

fn main() -> std::process::ExitCode {
    ralph::main(std::env::args_os().collect())
}
