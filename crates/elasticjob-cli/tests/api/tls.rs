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

#[test]
fn https_works_while_another_handshake_stalls() {
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
    let mut console = Process::start(&arguments);
    let line = console.wait_for_log("console   https://");
    let address = Process::word_after(&line, "https://").trim_end_matches('/').to_owned();
    let _stalled = TcpStream::connect(&address).unwrap();

    let mut roots = RootCertStore::empty();
    roots.add(certificate.cert.der().clone()).unwrap();
    let client_config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection =
        ClientConnection::new(Arc::new(client_config), "localhost".try_into().unwrap());
    let stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = StreamOwned::new(connection.unwrap(), stream);
    let body = r#"{"username":"admin","password":"wrong"}"#;
    let head = "POST /api/v1/login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut response = String::new();
    // A connection closed without close_notify still delivered the whole response.
    let _ = stream.read_to_string(&mut response);

    assert!(response.starts_with("HTTP/1.1 401"), "{response}");
    assert!(response.contains("strict-transport-security: max-age="), "{response}");
}
