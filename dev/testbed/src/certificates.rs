//! Certificates for TLS tests: an authority, and a server and a client certificate that it signed.

use std::fs;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::folder::Folder;

/// A certificate authority, a server certificate for `localhost` and `127.0.0.1`, and a client certificate, as PEM files in a temporary folder, which
/// is removed when this value is dropped or the process ends.
pub struct Certificates {
    folder: Folder,
    server_pem: String,
}

impl Certificates {
    /// Creates an authority and the server and client certificates that it signs.
    pub fn issue() -> Self {
        Self::try_issue().expect("certificates can be issued")
    }

    fn try_issue() -> Result<Self, rcgen::Error> {
        let authority = authority()?;
        let server =
            SignedCertificate::issue(&authority, "server", ExtendedKeyUsagePurpose::ServerAuth)?;
        let client =
            SignedCertificate::issue(&authority, "client", ExtendedKeyUsagePurpose::ClientAuth)?;

        let folder = Folder::new("testbed-certificates-");
        let write = |name: &str, content: &str| {
            fs::write(folder.join(name), content).expect("a temporary folder can be written to");
        };
        write("ca.pem", &authority.pem());
        write("client-cert.pem", &client.certificate);
        write("client-key.pem", &client.key);

        Ok(Self { folder, server_pem: server.key + &server.certificate })
    }

    pub fn ca_pem(&self) -> PathBuf {
        self.path("ca.pem")
    }

    pub fn client_cert_pem(&self) -> PathBuf {
        self.path("client-cert.pem")
    }

    /// The client's private key, as PKCS#8.
    pub fn client_key_pem(&self) -> PathBuf {
        self.path("client-key.pem")
    }

    /// The server's private key and certificate in one text, as ZooKeeper expects its PEM key store.
    pub(crate) fn server_pem(&self) -> &str {
        &self.server_pem
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Result<Authority, rcgen::Error> {
    let mut params = CertificateParams::new([])?;
    params.distinguished_name.push(DnType::CommonName, "testbed authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

/// A private key and the certificate that the authority signed for it, as PEM.
struct SignedCertificate {
    key: String,
    certificate: String,
}

impl SignedCertificate {
    fn issue(
        authority: &Authority,
        name: &str,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(["localhost".into(), "127.0.0.1".into()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, authority)?;
        Ok(Self { key: key.serialize_pem(), certificate: certificate.pem() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_exist_until_the_certificates_are_dropped() {
        let certificates = Certificates::issue();
        let files = [
            (certificates.ca_pem(), "-----BEGIN CERTIFICATE-----"),
            (certificates.client_cert_pem(), "-----BEGIN CERTIFICATE-----"),
            (certificates.client_key_pem(), "-----BEGIN PRIVATE KEY-----"),
        ];
        for (file, beginning) in &files {
            assert!(fs::read_to_string(file).unwrap().starts_with(beginning));
        }

        drop(certificates);

        assert!(files.iter().all(|(file, _)| !file.exists()));
    }
}
