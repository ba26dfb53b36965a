//! What must hold for any bytes: `fuzz/` looks for inputs that break a rule, this keeps each rule true for a few.

pub mod mask;
pub mod reader;
pub mod reset;
