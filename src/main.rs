//! Parse, call, exit code.

fn main() -> std::process::ExitCode {
    ralph::verbs::main(std::env::args_os().collect())
}
