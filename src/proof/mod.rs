//! Measures what an agent touched besides the code, and prepares the view in which the original
//! tests are asked again.

mod baseline;
mod check_script;
mod copies;
mod encoding;
mod guards;
mod manifest;
mod merge;
mod outside;
mod patterns;
mod recorded;
pub(crate) mod review;
mod review_files;
mod rust_items;
mod rust_tests;
mod scope;
mod settings_paths;
mod snapshot;
mod sources;
pub(crate) mod start_tests;
#[cfg(test)]
mod tests;
mod touched;
pub(crate) mod view;

pub(crate) use baseline::Baseline;
pub(crate) use recorded::RecordedState;
pub(crate) use scope::BaselineSpec;
pub(crate) use settings_paths::VariablePaths;
pub(crate) use snapshot::FileSnapshot;
pub(crate) use sources::{GARBLED, SourceFiles};

use std::path::PathBuf;

/// How the view differs from the workspace, or from a file outside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewChange {
    /// Absolute path of the file or directory.
    pub(crate) path: PathBuf,
    pub(crate) content: ViewContent,
}

/// What the view shows at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ViewContent {
    /// The content and the mode of this file, which is one of ralph's copies. It takes the place of
    /// whatever is at the path, and its directory may not exist there. If the copy is a symbolic
    /// link, so is the original.
    Original(PathBuf),
    /// This text, with the mode of the file in the workspace.
    Text(Vec<u8>),
    /// Nothing: the path does not exist in the view.
    Absent,
}

/// Returns whether a file contains tests, judged by its name.
#[cfg(feature = "cli")]
pub(crate) fn is_test_path(path: &str) -> bool {
    guards::table().matches(path.as_bytes()).is_test()
}

/// Returns whether a pattern, as in `--accept`, matches a path.
pub(crate) fn pattern_matches(pattern: &str, path: &str) -> bool {
    patterns::PatternSet::new([pattern]).is_match(path.as_bytes())
}
