//! What must hold for any bytes: `fuzz/` looks for inputs that break a rule, this keeps each rule true for a few.

pub mod front;
pub mod hook;
pub mod mask;
pub mod reader;
pub mod reset;
pub mod tail;
