//! How to reach the fleet, and how long its leases last: the settings of `ralph fleet`,
//! `ralph worker` and `--fleet`.

use super::error::FleetError;
use crate::config::url::redact_url;
use crate::config::{LayerStack, Settings};
use crate::store::is_valid_name;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where the fleet is, which pool of it to use, and with which credentials.
#[derive(Clone, PartialEq)]
pub(crate) struct FleetConnection {
    /// The servers, each as `nats://[USER:PASSWORD@]HOST[:PORT]`. May contain passwords.
    urls: Vec<String>,
    pub(crate) pool: String,
    pub(crate) creds: Option<PathBuf>,
    pub(crate) nkey: Option<PathBuf>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    /// How long a worker keeps a loop without extending its lease.
    pub(crate) ack_wait: Duration,
    /// How often a worker extends its leases.
    pub(crate) heartbeat: Duration,
    /// How long a loop goes on without the fleet; `None` until its lease would expire.
    pub(crate) offline_grace: Option<Duration>,
}

impl FleetConnection {
    /// Returns a connection with the default settings.
    pub(super) fn new(urls: &str, pool: &str) -> Result<Self, FleetError> {
        let mut settings = Settings::from_layers(&LayerStack::defaults());
        settings.fleet = Some(urls.into());
        settings.fleet_pool = pool.into();
        Self::from_settings(&settings)?.ok_or(FleetError::Fenced)
    }

    /// Takes the connection from the settings in effect; `None` if they name no fleet.
    pub(crate) fn from_settings(settings: &Settings) -> Result<Option<Self>, FleetError> {
        let Some(urls) = &settings.fleet else {
            return Ok(None);
        };
        let millis = |ms: u64| Duration::from_millis(ms);
        let connection = Self {
            urls: parse_urls(urls)?,
            pool: settings.fleet_pool.clone(),
            creds: settings.fleet_creds.clone(),
            nkey: settings.fleet_nkey.clone(),
            ca: settings.fleet_ca.clone(),
            cert: settings.fleet_cert.clone(),
            key: settings.fleet_key.clone(),
            ack_wait: millis(settings.fleet_ack_wait.0),
            heartbeat: millis(settings.fleet_heartbeat.0),
            offline_grace: settings.fleet_offline_grace.map(|grace| millis(grace.0)),
        };
        connection.validate().map(Some)
    }

    fn validate(self) -> Result<Self, FleetError> {
        let invalid = |why: String| Err(FleetError::Other(why));
        if !is_valid_name(&self.pool) {
            let pool = &self.pool;
            return invalid(format!(
                "fleetPool {pool:?} is not a pool: use only a-z, 0-9, _ and -"
            ));
        }
        if self.cert.is_some() != self.key.is_some() {
            return invalid("fleetCert and fleetKey belong together: set both or none".into());
        }
        if self.creds.is_some() && self.nkey.is_some() {
            return invalid("set fleetCreds or fleetNkey, not both".into());
        }
        // Two heartbeats may be lost before a worker gives up at 0.7 of the lease.
        if self.heartbeat.is_zero() || self.heartbeat * 2 > self.ack_wait {
            return invalid(format!(
                "fleetHeartbeat is {:?}: it must be more than 0 and at most half of fleetAckWait, {:?}",
                self.heartbeat, self.ack_wait
            ));
        }
        Ok(self)
    }

    /// Returns the servers' addresses. They may contain passwords: never print them.
    pub(super) fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Returns the user in the first address that has one.
    pub(super) fn user(&self) -> Option<FleetUser> {
        self.urls.iter().find_map(|url| {
            let (_, rest) = url.split_once("://")?;
            let (user, _) = rest.rsplit_once('@')?;
            Some(match user.split_once(':') {
                Some((name, password)) => FleetUser {
                    name: percent_decode(name),
                    password: Some(percent_decode(password)),
                },
                None => FleetUser {
                    name: percent_decode(user),
                    password: None,
                },
            })
        })
    }

    /// Returns the servers' addresses without passwords.
    pub(crate) fn display_urls(&self) -> String {
        let urls: Vec<String> = self.urls.iter().map(|url| redact_url(url)).collect();
        urls.join(",")
    }
}

/// A user as in an address. Without a password, the name is a token.
pub(super) struct FleetUser {
    pub(super) name: String,
    pub(super) password: Option<String>,
}

impl fmt::Debug for FleetConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetConnection")
            .field("urls", &self.display_urls())
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

/// Splits a list of addresses at commas. An address without a scheme gets `nats://`.
fn parse_urls(list: &str) -> Result<Vec<String>, FleetError> {
    let urls = list.split(',').map(str::trim).filter(|url| !url.is_empty());
    let urls = urls.map(|url| match url.split_once("://") {
        None => Ok(format!("nats://{url}")),
        Some(("nats" | "tls", _)) => Ok(url.to_owned()),
        Some(_) => Err(FleetError::Other(format!(
            "{}: the address of a fleet begins with nats:// or tls://",
            redact_url(url)
        ))),
    });
    let urls: Vec<String> = urls.collect::<Result<_, _>>()?;
    if urls.is_empty() {
        return Err(FleetError::Other(
            "the setting fleet is empty: use an address such as nats://127.0.0.1:4222".into(),
        ));
    }
    Ok(urls)
}

/// Decodes `%40` and the like. Invalid sequences stay as they are.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| first == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_may_be_percent_encoded() {
        assert_eq!(percent_decode("p%40s%3As%"), "p@s:s%");
        assert_eq!(percent_decode("%zz%4"), "%zz%4");
    }

    #[test]
    fn a_list_of_addresses_is_split_at_commas() {
        let urls = parse_urls("h:1, tls://u:p@i ,").unwrap();
        assert_eq!(urls, ["nats://h:1", "tls://u:p@i"]);
        assert!(parse_urls(" ,").is_err());
        let error = parse_urls("http://u:secret@h").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
