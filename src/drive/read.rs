//! How an agent's output becomes acts: one reader for each form of output.

mod about;
mod claude;
mod reasons;
mod reset;
mod stream;
mod text;

use crate::engine::Act;
pub use reasons::Reasons;
pub use stream::Stream;
pub use text::{Text, denials};

/// Takes an agent's acts as they come.
pub type Tell<'a> = dyn FnMut(Act<'_>) + 'a;

/// Reads what an agent prints.
pub enum Reader {
    /// Words for people: what is printed is said.
    Text(Text),
    /// A screen, which only a terminal understands.
    Screen,
    /// One JSON object a line.
    Stream(Stream),
}

impl Reader {
    /// Takes the next bytes, and tells of the acts in them.
    pub fn feed(&mut self, bytes: &[u8], tell: &mut Tell<'_>) {
        match self {
            Self::Text(text) => text.feed(bytes, tell),
            Self::Screen => tell(Act::Painted(bytes.into())),
            Self::Stream(stream) => {
                tell(Act::Raw(bytes.into()));
                stream.feed(bytes, tell);
            }
        }
    }

    /// Takes the end of the output.
    pub fn finish(&mut self, tell: &mut Tell<'_>) {
        match self {
            Self::Text(text) => text.finish(tell),
            Self::Screen => {}
            Self::Stream(stream) => stream.finish(tell),
        }
    }

    /// Whether a tool is at work, as far as is known: then silence says nothing.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Stream(stream) if stream.is_busy())
    }
}
