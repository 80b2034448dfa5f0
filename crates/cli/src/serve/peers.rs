//! Finds out which user of this machine a loopback connection comes from.
//!
//! Linux lists connections with their users in `/proc/net`. Other systems show them only to privileged processes; there, every user of
//! the machine is admitted, and a note at the start says so.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use throughline_gateway::{PeerCheck, PeerUser};

/// The kernel's tables of TCP connections.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The administrator can read everything anyway, and runs relays for others.
const ADMINISTRATOR: u32 = 0;

/// Whether this system shows the user of a connection.
pub(super) fn can_tell() -> bool {
    TABLES.iter().any(|table| std::fs::metadata(table).is_ok())
}

/// Returns a check that admits programs of this user only, on systems that show the user.
pub(super) fn check() -> Option<PeerCheck> {
    can_tell().then(|| Arc::new(user_of) as PeerCheck)
}

fn user_of(peer: SocketAddr, own: SocketAddr) -> PeerUser {
    let tables = TABLES.iter().filter_map(|table| std::fs::read_to_string(table).ok());
    let found = tables.filter_map(|table| user_in(&table, peer, own)).next();
    match found {
        Some(user) if user == ADMINISTRATOR || user == this_user() => PeerUser::Allowed,
        // A connection that is not in the tables has been closed, and so has its client.
        Some(_) | None => PeerUser::Other,
    }
}

#[cfg(unix)]
fn this_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn this_user() -> u32 {
    ADMINISTRATOR
}

/// Finds the user of the connection from `peer` to `own` in a table of the kernel.
fn user_in(table: &str, peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let (local, remote) = (address(columns.next()?)?, address(columns.next()?)?);
        let user = columns.nth(4)?;
        (same(local, peer) && same(remote, own)).then(|| user.parse().ok())?
    })
}

fn same(listed: SocketAddr, wanted: SocketAddr) -> bool {
    listed.port() == wanted.port() && listed.ip().to_canonical() == wanted.ip().to_canonical()
}

/// Parses an address of the kernel's tables: groups of four bytes in the byte order of the machine, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let words = ip.as_bytes().chunks(8).map(|digits| {
        let digits = std::str::from_utf8(digits).ok()?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    });
    let words: Vec<[u8; 4]> = words.collect::<Option<_>>()?;
    let ip = match words.as_slice() {
        [only] => IpAddr::V4(Ipv4Addr::from(*only)),
        [_, _, _, _] => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    //! Lines as Linux writes them on little-endian machines.

    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn the_user_of_a_connection_is_found_in_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:2256 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1\n\
            \x20  1: 0100007F:2256 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 12 1\n\
            \x20  2: 0100007F:C350 0100007F:2256 01 00000000:00000000 00:00000000 00000000  1001        0 13 1\n";
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(user_in(table, at("127.0.0.1:50000"), at("127.0.0.1:8790")), Some(1001));
        assert_eq!(user_in(table, at("127.0.0.1:50001"), at("127.0.0.1:8790")), None);
        let table = "head\n 0: 00000000000000000000000001000000:C350 00000000000000000000000001000000:2256 01 0:0 0:0 0 7 0\n\
            \x20 1: 0000000000000000FFFF00000100007F:C351 0000000000000000FFFF00000100007F:2256 01 0:0 0:0 0 8 0\n";
        assert_eq!(user_in(table, at("[::1]:50000"), at("[::1]:8790")), Some(7));
        assert_eq!(user_in(table, at("127.0.0.1:50001"), at("127.0.0.1:8790")), Some(8));
    }

    #[test]
    fn invalid_socket_table_names_no_user() {
        let at: SocketAddr = "127.0.0.1:1".parse().unwrap();
        for table in ["", "head", "head\n\n", "head\n a b c d", "head\n 0: zz:1 zz:1 1 1 1 1 1 1"] {
            assert_eq!(user_in(table, at, at), None, "{table}");
        }
    }
}
