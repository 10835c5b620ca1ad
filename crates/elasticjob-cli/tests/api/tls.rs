//! HTTPS without a proxy.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::ring::default_provider,
};
use tempfile::TempDir;

use crate::process::{PATIENCE, Process};

/// A console that serves HTTPS.
struct TlsConsole {
    address: String,
    client_config: Arc<ClientConfig>,
    _process: Process,
    _folder: TempDir,
}

impl TlsConsole {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (cert, key) = (
            file("cert.pem", &certificate.cert.pem()),
            file("key.pem", &certificate.signing_key.serialize_pem()),
        );
        let config = file("console.toml", &format!("[tls]\ncert = '{cert}'\nkey = '{key}'\n"));
        let data = folder.path().join("data");
        let arguments =
            ["console", "--listen", "0", "--config", &config, "--data", data.to_str().unwrap()];
        let mut process = Process::start(&arguments);
        let line = process.wait_for_log("console   https://");
        let address = Process::word_after(&line, "https://").trim_end_matches('/').to_owned();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.cert.der().clone()).unwrap();
        let client_config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { address, client_config: Arc::new(client_config), _process: process, _folder: folder }
    }

    /// Logs in with a wrong password; returns the response.
    fn log_in(&self) -> String {
        let server = "localhost".try_into().unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.client_config), server).unwrap();
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        let body = r#"{"username":"admin","password":"wrong"}"#;
        let head = "POST /api/v1/login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json";
        write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut response = String::new();
        // A connection closed without close_notify still delivered the whole response.
        let _ = stream.read_to_string(&mut response);
        response
    }
}

#[test]
fn https_works_while_another_handshake_stalls() {
    let console = TlsConsole::start();
    let _stalled = TcpStream::connect(&console.address).unwrap();

    let response = console.log_in();

    assert!(response.starts_with("HTTP/1.1 401"), "{response}");
    assert!(response.contains("strict-transport-security: max-age="), "{response}");
}

/// They measure time.
mod alone {
    use super::*;
    use crate::overload::{promptly, raise_file_limit};

    #[test]
    fn https_client_is_not_delayed_by_silent_handshakes() {
        raise_file_limit();
        let console = TlsConsole::start();
        // Above the limit of connections of one address, too.
        for silent in [256, 1_100] {
            let _stalled: Vec<_> =
                (0..silent).map(|_| TcpStream::connect(&console.address).unwrap()).collect();

            let response = promptly(|| console.log_in());

            assert!(response.starts_with("HTTP/1.1 401"), "{silent}: {response}");
        }
    }
}
