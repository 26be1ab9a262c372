//! Who may ask.
//!
//! Other programs and other users of the machine can connect to a loopback port, and so can any web page through the user's
//! browser. So
//! - `Host` must be a loopback name (with any port, since people forward ports): a name that an attacker's DNS points
//!   to this machine is none;
//! - `Origin`, where a browser sends one, must be the page itself;
//! - a link holds a token that is good once: it is exchanged for a cookie, and leaves the address;
//! - without the cookie there is neither page nor answer.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, Uri};

/// Keeps the secrets of a server.
pub struct Guard {
    /// The name of the cookie: servers on other ports have others.
    name: String,
    cookie: String,
    token: Mutex<String>,
}

impl Guard {
    /// New secrets.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn new() -> std::io::Result<Self> {
        let name = format!("foveal-{}", &secret()?[..8]);
        Ok(Guard { name, cookie: secret()?, token: Mutex::new(secret()?) })
    }

    /// The token of the next link.
    fn token(&self) -> String {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The next link.
    pub fn link(&self, address: SocketAddr) -> String {
        format!("http://{address}/?token={}", self.token())
    }

    /// Exchanges a token: true once. The next link has another.
    pub fn exchange(&self, token: &str) -> bool {
        let mut good = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let same = same(token, &good);
        if let (true, Ok(next)) = (same, secret()) {
            *good = next;
        }
        same
    }

    /// The cookie that a token is exchanged for. Pages of other sites cannot read it and cannot send it along.
    pub fn cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Lax", self.name, self.cookie)
    }

    /// Whether a request has the cookie.
    pub fn knows(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.name && same(value, &self.cookie))
    }
}

/// Whether a request comes from here: its host is a loopback name, and its origin, if it has one, the same.
pub fn is_local(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) else { return false };
    let authority = uri.authority().is_none_or(|authority| authority.as_str() == host);
    let mut origins = headers.get_all(ORIGIN).iter();
    let same = |origin: &str| origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host));
    is_loopback(host) && authority && origins.all(|origin| origin.to_str().is_ok_and(same))
}

/// `localhost`, `127.…` or `[::1]`, with a port or without.
fn is_loopback(host: &str) -> bool {
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => {
            if !is_port(port) {
                return false;
            }
            name
        }
        _ => host,
    };
    let v6 = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || v6.and_then(|address| address.parse::<Ipv6Addr>().ok()).is_some_and(|address| address.is_loopback())
}

/// 128 random bits, in hexadecimal digits.
fn secret() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares in a time that does not tell where two texts differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_with_any_port() {
        for good in ["localhost", "localhost:80", "LOCALHOST:9", "127.0.0.1:65535", "127.1.2.3", "[::1]", "[::1]:8080"]
        {
            assert!(is_loopback(good), "{good}");
        }
        let bad = [
            "",
            "example.com",
            "example.com:80",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "10.0.0.1",
            "0.0.0.0",
            "localhost:",
            "localhost:x",
            "localhost:99999",
            "[::2]",
            "::1",
            "user@localhost",
            "localhost:80:80",
            "[::1",
        ];
        for bad in bad {
            assert!(!is_loopback(bad), "{bad}");
        }
    }

    #[test]
    fn a_token_is_good_once() {
        let guard = Guard::new().unwrap();
        let token = guard.token();
        assert!(!guard.exchange("") && !guard.exchange(&token[1..]));
        assert!(guard.exchange(&token) && !guard.exchange(&token));
        assert!(guard.exchange(&guard.token()));
    }
}
