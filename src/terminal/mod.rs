//! Terminals: the emulator behind an agent's pty, typing a prompt into it, and lending it the user's own terminal.

pub(crate) mod emulator;
pub(crate) mod guard;
pub(crate) mod responder;
pub(crate) mod typing;
