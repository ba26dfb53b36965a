//! The `ralph` program: passes its arguments to the library and exits with its code.

fn main() -> std::process::ExitCode {
    ralph::main(std::env::args_os().collect())
}
