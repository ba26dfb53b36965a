//! The files of the page, embedded in the program.

/// A file of the page.
pub(super) struct Asset {
    /// Its path below the page's.
    pub(super) path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! asset {
    ($path:literal, $content_type:expr) => {
        Asset {
            path: $path,
            content_type: $content_type,
            text: include_str!($path),
        }
    };
}

/// The page itself.
pub(super) const PAGE: Asset = asset!("index.html", HTML);

/// What the page loads.
pub(super) const ASSETS: &[Asset] = &[
    asset!("style.css", STYLE),
    asset!("icon.svg", IMAGE),
    asset!("app.js", SCRIPT),
    asset!("activity.js", SCRIPT),
    asset!("api.js", SCRIPT),
    asset!("diff.js", SCRIPT),
    asset!("dom.js", SCRIPT),
    asset!("format.js", SCRIPT),
    asset!("loop.js", SCRIPT),
    asset!("overview.js", SCRIPT),
    asset!("plots.js", SCRIPT),
    asset!("stats.js", SCRIPT),
];
