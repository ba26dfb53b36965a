//! Terminals: the emulator behind an agent's pty, typing a prompt into it, and lending it the user's own terminal.

pub mod emulator;
pub mod guard;
pub mod responder;
pub mod typing;
