//! Hides the credentials in addresses.

/// Replaces the user and password, or the token, in a list of addresses.
pub(crate) fn redact_urls(urls: &str) -> String {
    let urls: Vec<String> = urls.split(',').map(redact_url).collect();
    urls.join(",")
}

/// Replaces the user and password, or the token, in an address.
pub(crate) fn redact_url(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}***@{host}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_passwords() {
        for (urls, shown) in [
            ("nats://u:p@h:1", "nats://***@h:1"),
            ("nats://u:p@ss@h:1,x:y@i", "nats://***@h:1,***@i"),
            ("token@h", "***@h"),
            ("nats://h:1", "nats://h:1"),
        ] {
            assert_eq!(redact_urls(urls), shown);
        }
    }
}
