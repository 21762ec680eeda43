//! Patterns: the form of texts, as regular expressions that mean the same in JavaScript, Go and
//! Rust: without special classes and look-around.
//!
//! A pattern never refuses a text that the gate accepts. If a rule cannot be expressed in a
//! pattern, the pattern accepts more.

/// The name of a cluster: a DNS-1123 label.
pub const CLUSTER_NAME: &str = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$";

/// The name of a cluster, or of an external peer as it is called among clusters.
pub const MEMBER_NAME: &str = r"^(external\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$";

/// The name of a Service: a DNS-1035 label.
pub const SERVICE_NAME: &str = "^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$";

/// The value of a label.
pub const LABEL_VALUE: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";

/// A day, though not that the calendar has it.
pub const DATE: &str = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$";

/// Standard base64 of 32 bytes.
pub const KEY: &str = "^[A-Za-z0-9+/]{43}=$";

/// The same, or nothing.
pub const KEY_OR_NOTHING: &str = "^([A-Za-z0-9+/]{43}=)?$";

const DNS_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

const OCTET: &str = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";

/// A DNS-1123 subdomain, but for its length.
pub fn subdomain() -> String {
    format!("^{}$", subdomain_body())
}

/// A DNS suffix, with or without a dot before it.
pub fn suffix() -> String {
    format!(r"^\.?{}$", subdomain_body())
}

/// The key of a label, except the length of its prefix.
pub fn label_key() -> String {
    let prefix = subdomain_body();
    format!("^({prefix}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$")
}

/// An IPv4 or IPv6 address.
pub fn address() -> String {
    format!("^({}|{})$", v4(), v6())
}

/// An address with the length of its network; host bits may be set.
pub fn range() -> String {
    format!("^{}$", range_body())
}

/// The same, or nothing.
pub fn range_or_nothing() -> String {
    format!("^({})?$", range_body())
}

/// An address, or a range of them.
pub fn address_or_range() -> String {
    format!("^({}|{}|{})$", v4(), v6(), range_body())
}

fn subdomain_body() -> String {
    format!(r"{DNS_LABEL}(\.{DNS_LABEL})*")
}

/// Our readers and those of Go accept leading zeros in the length.
fn range_body() -> String {
    let (v4, v6) = (v4(), v6());
    format!("({v4}/0*([12]?[0-9]|3[0-2])|{v6}/0*([1-9]?[0-9]|1[01][0-9]|12[0-8]))")
}

fn v4() -> String {
    format!(r"({OCTET}\.){{3}}{OCTET}")
}

/// Groups between colons, the last two optionally written as IPv4. A pattern for the number of
/// groups, with at most one gap, would not be readable.
fn v6() -> String {
    format!("([0-9A-Fa-f]{{0,4}}:){{2,8}}([0-9A-Fa-f]{{0,4}}|{})", v4())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;
    use regex::Regex;

    use super::*;
    use crate::name::{MeshName, is_dns_subdomain, is_label_key, is_label_value};
    use crate::net::Interface;

    fn fits(pattern: &str, text: &str) -> bool {
        Regex::new(pattern).unwrap().is_match(text)
    }

    #[test]
    fn an_address_is_one_in_every_way_to_write_it() {
        for text in [
            "10.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1::8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1:2:3:4:5:6:10.0.0.1",
            "1::6:10.0.0.1",
            "1:2:3:4:5::10.0.0.1",
            "::FFFF:10.0.0.1",
            "::10.0.0.1",
            "FD00:0010::",
        ] {
            assert!(text.parse::<IpAddr>().is_ok(), "{text}");
            assert!(fits(&address(), text), "{text}");
        }
        for text in [
            "",
            "10.0.0",
            "010.0.0.1",
            "256.0.0.1",
            "1:2:3:4:5:6:7:8:9:10",
            "12345::",
            "g::",
            "1:10.0.0.1",
            "::256.0.0.1",
            "fe80::1%eth0",
            "[::1]",
            "10.0.0.1\n",
        ] {
            assert!(text.parse::<IpAddr>().is_err(), "{text}");
            assert!(!fits(&address(), text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_address_is_what_parses(address in any::<IpAddr>(), text in "[0-9a-f]{0,4}(:{1,2}[0-9a-f]{1,4}){0,8}:{0,2}(1[.]2[.]3[.]4)?") {
            prop_assert!(fits(&super::address(), &address.to_string()));
            prop_assert!(fits(&address_or_range(), &address.to_string()));
            prop_assert!(fits(&super::address(), &text) || text.parse::<IpAddr>().is_err());
        }

        #[test]
        fn four_octets_are_an_address_or_not(text in "([0-9]{1,3}[.]){3}[0-9]{1,3}") {
            prop_assert_eq!(fits(&address(), &text), text.parse::<IpAddr>().is_ok());
        }

        #[test]
        fn a_range_is_what_parses(address in any::<IpAddr>(), length in "[0-9+-]{0,4}") {
            // That IPv4 is not to be written as IPv6 takes more than a pattern.
            let text = format!("{}/{length}", address.to_canonical());
            let is_range = text.parse::<Interface>().is_ok();
            prop_assert_eq!(fits(&range(), &text), is_range);
            prop_assert_eq!(fits(&range_or_nothing(), &text), is_range);
            prop_assert_eq!(fits(&address_or_range(), &text), is_range);
        }

        #[test]
        fn names_and_labels_are_what_they_are_to_their_gates(text in "[a-cA-C0-2_./-]{0,5}|[a-c0-2-]{0,70}") {
            let is_short = text.len() <= 63;
            let is_mesh = text.parse::<MeshName>().is_ok();
            prop_assert_eq!(is_short && fits(&subdomain(), &text), is_mesh);
            prop_assert_eq!(fits(&subdomain(), &text), is_dns_subdomain(&text));
            prop_assert_eq!(fits(CLUSTER_NAME, &text), text.parse::<crate::name::ClusterName>().is_ok());
            prop_assert_eq!(fits(&label_key(), &text), is_label_key(&text));
            prop_assert_eq!(fits(LABEL_VALUE, &text), is_label_value(&text));
        }

        #[test]
        fn a_day_of_the_calendar_is_a_date(text in "20[0-9]{2}-[01][0-9]-[0-3][0-9]") {
            if text.parse::<crate::config::Date>().is_ok() {
                prop_assert!(fits(DATE, &text));
            }
        }
    }
}
