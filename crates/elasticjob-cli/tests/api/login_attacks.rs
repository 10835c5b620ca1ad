//! Attacks on logins: guessing from many addresses, flooding tables, tokens that outlive themselves, a data folder that two consoles share.

use std::{os::unix::fs::PermissionsExt, thread};

use serde_json::json;
use tempfile::TempDir;

use crate::{
    console::Console,
    http::{Request, request},
    process::Process,
};

const REGISTRY: &str = "shop=zookeeper://127.0.0.1:1/shop";

/// A console behind a proxy, so that requests can come from any address.
fn behind_proxy() -> Console {
    Console::with(&[REGISTRY], "trustedProxies = ['127.0.0.0/8']")
}

fn login(username: &str, password: &str, from: &str) -> Request {
    let body = json!({ "username": username, "password": password });
    request("POST", "/api/v1/login").json(&body).header("x-forwarded-for", from)
}

#[test]
fn guesses_from_many_addresses_are_slowed_and_do_not_lock_the_account() {
    let console = behind_proxy();
    let home = "198.51.100.7";
    assert_eq!(console.send(&login("admin", &console.password, home)).status, 200);

    let mut guessed = 0;
    for round in 0..5 {
        for host in 0..30 {
            let from = format!("203.0.113.{host}");
            let response = console.send(&login("admin", &format!("guess {round}"), &from));
            guessed += u32::from(response.status == 401);
            assert!([401, 429].contains(&response.status), "{response:?}");
        }
    }

    // Twenty are free; then the account takes one in 1, 2, 4, 8, 10, 10 … seconds.
    assert!(guessed <= 30, "{guessed} of 150 guesses were checked");
    let elsewhere = console.send(&login("admin", &console.password, "192.0.2.1"));
    if elsewhere.status != 200 {
        let wait: u64 = elsewhere.header("retry-after").unwrap().parse().unwrap();
        assert!(wait <= 15, "{wait} s: a user at a new address soon has a chance");
    }
    let response = console.send(&login("admin", &console.password, home));
    assert_eq!(
        response.status, 200,
        "an address that logged in before is not slowed: {response:?}"
    );
}

#[test]
fn familiar_address_logs_in_during_an_attack_even_after_a_restart() {
    let console = behind_proxy();
    let home = "198.51.100.7";
    assert_eq!(console.send(&login("admin", &console.password, home)).status, 200);
    let console = console.restart(&[REGISTRY]);

    let guess = |host: u32| {
        let from = format!("203.0.113.{}", host % 250);
        console.send(&login("admin", "wrong guess", &from)).status
    };
    assert!((0..200).any(|host| guess(host) == 429), "the account is under attack");

    let stranger = console.send(&login("admin", &console.password, "192.0.2.1"));
    assert_eq!(stranger.status, 429, "the account is not slowed: {stranger:?}");
    let response = console.send(&login("admin", &console.password, home));
    assert_eq!(response.status, 200, "{response:?}");
    let path = console.folder.path().join("data/familiar.json");
    let stored = std::fs::read_to_string(&path).unwrap();
    assert!(!stored.contains("admin") && !stored.contains("198.51"), "only hashes: {stored}");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn parallel_logins_take_the_memory_of_two_hashes() {
    let console = behind_proxy();
    let (address, password) = (&console.address, &console.password);
    let log_in = |number: u32| {
        let from = format!("198.51.100.{}", number % 250);
        login("admin", password, &from).send(address).status
    };
    assert_eq!(log_in(0), 200);
    let before = resident_mebibytes(console.process.id());

    let admitted: usize = thread::scope(|scope| {
        let threads = (0..50).map(|first| {
            let log_in = &log_in;
            scope.spawn(move || (0..4).filter(|round| log_in(first * 4 + round) == 200).count())
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });

    // At first more than twenty are under way, which looks like an attack on the account.
    assert!(admitted >= 20, "{admitted} of 200 logins");
    let grown = resident_mebibytes(console.process.id()).saturating_sub(before);
    // The second hash has its own 19 MiB; what else a session and a connection need is small.
    assert!(grown < 64, "{grown} MiB more after {admitted} logins");
}

/// The memory that a process has now.
fn resident_mebibytes(process_id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn flood_of_failed_logins_does_not_flood_the_audit() {
    let console = behind_proxy();
    // Too long for an account, so that nothing is hashed.
    let name = "x".repeat(70);
    for number in 0..300 {
        let from = format!("203.0.{}.{}", number / 200, number % 200);
        assert_eq!(console.send(&login(&format!("{name}{number}"), "guess", &from)).status, 401);
    }

    let audit = console.admin().data("/api/v1/audit?action=login&pageSize=1000");
    let entries = audit["items"].as_array().unwrap();
    let failed = entries.iter().filter(|entry| entry["problem"].is_string()).count();
    assert!((1..=60).contains(&failed), "{failed} entries for 300 failed logins");
}

#[test]
fn guesses_from_one_ipv6_network_count_as_one_address() {
    let console = behind_proxy();
    let guesses = (0..16).map(|host| {
        let from = format!("2001:db8:1:2:{host:x}::1");
        console.send(&login("ann", "guess", &from)).status
    });

    // Each guess beyond five waits twice as long as the one before it, counted from when that one began. On a slow machine the first waits may be
    // over by the next guess, but not all of them.
    let refused = guesses.enumerate().find(|(_, status)| *status != 401);
    assert!(matches!(refused, Some((5.., 429))), "guess and status: {refused:?}");
    assert_eq!(console.send(&login("ann", "guess", "2001:db8:1:3::1")).status, 401);
}

#[test]
fn login_with_a_huge_name_is_refused_and_audited_shortened() {
    let console = behind_proxy();
    let name = "x".repeat(190 * 1024);

    let response = console.send(&login(&name, "guess", "203.0.113.1"));

    assert_eq!(response.status, 401);
    let audit = console.admin().data("/api/v1/audit?action=login");
    let entry = &audit["items"][1];
    assert_eq!(entry["username"].as_str().unwrap().len(), 64, "{entry}");
}

#[test]
fn admin_token_cannot_change_accounts_tokens_or_sessions() {
    let console = Console::start(&[REGISTRY]);
    let admin = console.admin();
    let ann = console.add_user("ann", &json!({ "*": "viewer" }));
    let body = json!({ "name": "ci", "role": "admin" });
    let created = ann.send(request("POST", "/api/v1/tokens").json(&body)).json();
    let ann_token = format!("/api/v1/accounts/ann/tokens/{}", created["id"].as_str().unwrap());
    let created = admin.send(request("POST", "/api/v1/tokens").json(&body)).json();
    let token = format!("Bearer {}", created["token"].as_str().unwrap());
    let put = |name: &str| {
        let body = json!({ "password": "battery staple", "roles": { "*": "admin" } });
        request("PUT", &format!("/api/v1/accounts/{name}")).json(&body)
    };

    let own_token = format!("/api/v1/tokens/{}", created["id"].as_str().unwrap());
    for sent in [
        put("evil"),
        put("admin"),
        put("ann"),
        request("DELETE", "/api/v1/accounts/ann"),
        request("DELETE", &ann_token),
        request("DELETE", &own_token),
        request("DELETE", "/api/v1/sessions/ann"),
        request("POST", "/api/v1/tokens").json(&body),
    ] {
        let response = console.send(&sent.header("authorization", &token));
        assert_eq!(response.problem(), (403, "forbidden".to_owned()), "{response:?}");
        let hint = response.json()["hint"].as_str().unwrap().to_owned();
        assert!(hint.contains("log in") && hint.contains("curl -u"), "a way out: {hint}");
        assert!(response.json()["detail"].as_str().unwrap().contains("outlive"), "{response:?}");
    }

    let read = request("GET", "/api/v1/accounts").header("authorization", &token);
    let accounts = console.send(&read).json();
    assert_eq!(accounts.as_array().unwrap().len(), 2, "reading stays allowed: {accounts}");
    assert_eq!(ann.get("/api/v1/session").status, 200);
    assert_eq!(admin.send(put("bob")).status, 201, "a session may");
}

#[test]
fn cookie_of_a_secure_console_has_the_host_prefix() {
    let console = Console::with(&[REGISTRY], "behindHttps = true");
    let body = json!({ "username": "admin", "password": console.password });
    let response = console.send(&request("POST", "/api/v1/login").json(&body));

    let cookie = response.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-elasticjob_session="), "{cookie}");
    // Without these a browser refuses the prefix.
    assert!(cookie.contains("; Path=/;") && cookie.contains("; Secure"), "{cookie}");
    assert!(!cookie.to_ascii_lowercase().contains("domain"), "{cookie}");
    let (name, secret) = cookie.split(';').next().unwrap().split_once('=').unwrap();
    let session = |name: &str| {
        let sent = request("GET", "/api/v1/session").header("cookie", &format!("{name}={secret}"));
        console.send(&sent).status
    };
    assert_eq!(session(name), 200);
    assert_eq!(session("elasticjob_session"), 401, "a name that any subdomain can set is ignored");
    let logout = request("POST", "/api/v1/logout")
        .header("cookie", &format!("{name}={secret}"))
        .header("x-csrf-token", response.json()["csrfToken"].as_str().unwrap());
    let gone = console.send(&logout);
    let gone = gone.header("set-cookie").unwrap();
    assert!(gone.starts_with("__Host-elasticjob_session=;"), "{gone}");
    assert!(gone.contains("; Secure") && gone.contains("; Max-Age=0"), "{gone}");
}

#[test]
fn second_console_on_a_data_folder_is_refused_until_the_first_is_dead() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let arguments = ["console", "--listen", "0", "--registry", REGISTRY, "--data", data];
    let mut first = Process::start(&arguments);
    first.wait_for_log("console   http://");

    let mut second = Process::start(&arguments);
    second.wait_for_log(&format!("the data folder {data} is in use"));
    let (status, _) = second.wait();

    let log = second.log();
    assert_eq!(status.code(), Some(7), "{log}");
    assert!(log.contains(&format!("process {}", first.id())), "{log}");
    assert!(log.contains("--data"), "a way out: {log}");

    // Killed, it cannot clean up: the lock ends with the process, not with the file.
    assert!(first.kill_and_wait_for_silence());
    let mut third = Process::start(&arguments);
    third.wait_for_log("console   http://");
}
