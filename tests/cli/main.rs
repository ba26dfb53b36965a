//! The other integration test binary: whole loops through the real agent CLIs, against a model that is played.

#[expect(dead_code, reason = "the suite of scripted agents needs more of it")]
#[path = "../it/kit.rs"]
mod kit;
mod model;
