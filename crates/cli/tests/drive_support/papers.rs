//! Certificates from an authority of the test, in a directory with the file names of QEMU, nbdkit and plumb.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};

/// Certificate authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes `ca-cert.pem` to `directory`.
    pub(crate) fn write(&self, directory: &Path) {
        std::fs::write(directory.join("ca-cert.pem"), self.0.pem()).unwrap();
    }

    /// Writes `server-cert.pem` and its key, for localhost and 127.0.0.1.
    pub(crate) fn write_server(&self, directory: &Path, is_expired: bool) {
        self.issue(directory, "server", ExtendedKeyUsagePurpose::ServerAuth, is_expired);
    }

    /// Writes `client-cert.pem` and its key.
    pub(crate) fn write_client(&self, directory: &Path, is_expired: bool) {
        self.issue(directory, "client", ExtendedKeyUsagePurpose::ClientAuth, is_expired);
    }

    fn issue(&self, directory: &Path, who: &str, usage: ExtendedKeyUsagePurpose, is_expired: bool) {
        let key = KeyPair::generate().unwrap();
        let mut params =
            CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        if is_expired {
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        let certificate = params.signed_by(&key, &self.0).unwrap();
        std::fs::write(directory.join(format!("{who}-cert.pem")), certificate.pem()).unwrap();
        std::fs::write(directory.join(format!("{who}-key.pem")), key.serialize_pem()).unwrap();
    }
}
