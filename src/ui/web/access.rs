//! Decides which requests are answered: by token or cookie, and by their Host and Origin headers.
//!
//! Every user of the machine can connect to a loopback port, and every web site that the user visits
//! can make the browser send requests to it. So each request needs the token, which only the user
//! knows, and comes from a page of this server: a site whose name resolves to 127.0.0.1 has a
//! different Host, and another site's form or script has a different Origin.
//!
//! Browsers send a cookie to all ports of a host. So the page is below a random path, and the cookie
//! is for that path only: a server of another user on another port does not receive it.

use crate::lifecycle::error::CommandError;
use crate::os;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

/// The secrets of one server.
pub(super) struct PageAccess {
    address: SocketAddr,
    /// 128 random bits in hexadecimal digits.
    token: String,
    /// The directory of the page: `/v/` and 128 random bits.
    base: String,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessRefusal {
    WrongHost,
    WrongOrigin,
    NoToken,
}

impl AccessRefusal {
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::WrongHost => "the Host header names another server",
            Self::WrongOrigin => "the request comes from another site",
            Self::NoToken => "open the address that `ralph ui` printed: it contains the token",
        }
    }
}

impl PageAccess {
    pub(super) fn new(address: SocketAddr) -> Result<Self, CommandError> {
        Ok(Self {
            address,
            token: random_hex()?,
            base: format!("/v/{}", random_hex()?),
        })
    }

    /// Returns the address to open, with the token.
    pub(super) fn url(&self) -> String {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            ip => ip,
        };
        let address = SocketAddr::new(ip, self.address.port());
        format!("http://{address}/?token={}", self.token)
    }

    /// Returns the path of the page, without a slash at its end.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    pub(super) fn is_token(&self, candidate: &str) -> bool {
        is_same(candidate.as_bytes(), self.token.as_bytes())
    }

    /// Returns the cookie that replaces the token.
    pub(super) fn cookie(&self) -> String {
        let (name, token, base) = (self.cookie_name(), &self.token, &self.base);
        format!("{name}={token}; Path={base}; HttpOnly; SameSite=Strict")
    }

    /// Returns the name of the cookie. Two servers on one host have different ones.
    fn cookie_name(&self) -> String {
        format!("ralph-{}", self.address.port())
    }

    /// Checks where a request comes from.
    pub(super) fn check_source(&self, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        let host = single(headers, &header::HOST).ok_or(AccessRefusal::WrongHost)?;
        if !self.is_own_host(host) {
            return Err(AccessRefusal::WrongHost);
        }
        if headers.contains_key(header::ORIGIN) {
            let origin = single(headers, &header::ORIGIN).ok_or(AccessRefusal::WrongOrigin)?;
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            if authority != Some(host) {
                return Err(AccessRefusal::WrongOrigin);
            }
        }
        Ok(())
    }

    /// Checks that a request to the API has the token, and that it was sent by a script of the user
    /// or by a page of this server.
    pub(super) fn check_api(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<(), AccessRefusal> {
        if let Some(bearer) = single(headers, &header::AUTHORIZATION) {
            // Another site cannot set this header without a preflight request, which fails.
            let token = bearer.strip_prefix("Bearer ").unwrap_or_default();
            return self
                .is_token(token.trim())
                .then_some(())
                .ok_or(AccessRefusal::NoToken);
        }
        let site = headers.get(HeaderName::from_static("sec-fetch-site"));
        if site.is_some_and(|site| site != "same-origin") {
            return Err(AccessRefusal::WrongOrigin);
        }
        // Browsers send an Origin with every POST.
        if method != Method::GET && !headers.contains_key(header::ORIGIN) {
            return Err(AccessRefusal::WrongOrigin);
        }
        self.has_cookie(headers)
            .then_some(())
            .ok_or(AccessRefusal::NoToken)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let all = headers.get_all(header::COOKIE).into_iter();
        let texts = all.filter_map(|value| value.to_str().ok());
        let mut pairs = texts.flat_map(|text| text.split(';'));
        pairs.any(|pair| {
            let pair = pair.trim().split_once('=');
            pair.is_some_and(|(key, value)| key == name && self.is_token(value))
        })
    }

    /// Returns whether a Host header names this server. The port is not compared: behind an SSH
    /// tunnel it is another. Names other than `localhost` are refused, because any name can resolve
    /// to this machine; an address cannot be made to.
    fn is_own_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()) => {
                name
            }
            _ => host,
        };
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let bare = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let ip: Option<IpAddr> = match bare {
            Some(bare) => bare.parse().ok().filter(IpAddr::is_ipv6),
            None => name.parse().ok().filter(IpAddr::is_ipv4),
        };
        let own = self.address.ip();
        ip.is_some_and(|ip| ip.is_loopback() || own.is_unspecified() || ip == own)
    }
}

/// Returns the value of a header that occurs once; `None` if it is missing, repeated or not ASCII.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Compares two texts in a time that depends only on their lengths.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differences) == 0
}

fn random_hex() -> Result<String, CommandError> {
    let mut text = String::new();
    for _ in 0..2 {
        let bytes = os::random_bytes()
            .map_err(|error| CommandError::broken(format!("cannot make a token: {error}")))?;
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
    }
    Ok(text)
}

/// Headers of every response. Nothing is fetched from elsewhere, no script or style is inline, no
/// text becomes markup, and no other page may show this one in a frame or keep a reference to it.
pub(super) fn add_headers(headers: &mut HeaderMap) {
    let all = [
        (
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'",
        ),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ];
    for (name, value) in all {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: &str) -> PageAccess {
        PageAccess::new(address.parse().unwrap()).unwrap()
    }

    #[test]
    fn only_this_server_is_a_host() {
        let own = access("127.0.0.1:7257");
        for host in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:7257",
            "[::1]:9",
            "[::1]",
            "127.0.0.1",
        ] {
            assert!(own.is_own_host(host), "{host}");
        }
        let others = [
            "",
            ":7257",
            "evil.example",
            "evil.example:7257",
            "localhost.evil.example",
            "192.168.0.7",
            "::1",
            "127.0.0.1.evil.example",
            "localhost:",
            "127.0.0.1:7257:1",
            "[127.0.0.1]",
            "0.0.0.0",
        ];
        for host in others {
            assert!(!own.is_own_host(host), "{host}");
        }
        assert!(access("0.0.0.0:1").is_own_host("192.168.0.7:1"));
        assert!(!access("0.0.0.0:1").is_own_host("evil.example:1"));
        assert!(access("10.0.0.1:1").is_own_host("10.0.0.1:1"));
        assert!(!access("10.0.0.1:1").is_own_host("10.0.0.2:1"));
    }

    #[test]
    fn only_the_whole_token_is_the_token() {
        let own = access("127.0.0.1:1");
        let token = own.token.clone();
        assert_eq!(token.len(), 32);
        assert!(own.is_token(&token));
        assert!(
            !own.is_token(&token[1..]) && !own.is_token(&format!("{token}0")) && !own.is_token("")
        );
        assert_ne!(token, access("127.0.0.1:1").token);
        assert!(
            access("0.0.0.0:9")
                .url()
                .starts_with("http://127.0.0.1:9/?token=")
        );
    }
}
