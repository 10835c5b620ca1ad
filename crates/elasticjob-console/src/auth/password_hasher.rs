//! Hashes passwords with argon2id, in memory that is kept from one hash to the next.
//!
//! Each hash needs 19 MiB. Allocated and freed every time, that memory stays with the heap of each thread that ever hashed a password, several times
//! over: hundreds of megabytes after a few logins.

use argon2::{
    Algorithm, Argon2, Block, Params, Version,
    password_hash::{
        self,
        phc::{Output, ParamsString, PasswordHash, Salt},
    },
};

use super::random_secret;
use crate::http::problem::{Code, Problem};

const SALT_BYTES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct PasswordHasher {
    blocks: Vec<Block>,
}

impl PasswordHasher {
    pub(crate) fn hash(&mut self, password: &str) -> Result<String, Problem> {
        let salt = random_secret(SALT_BYTES)?;
        self.hash_with_salt(password, salt.as_bytes()).map(|hash| hash.to_string()).map_err(
            |error| Problem::new(Code::Internal, format!("cannot hash the password: {error}")),
        )
    }

    /// Whether this is the password; `false` as well if the hash cannot be read.
    pub(crate) fn verify(&mut self, hash: &str, password: &str) -> bool {
        self.try_verify(hash, password).unwrap_or(false)
    }

    fn hash_with_salt(
        &mut self,
        password: &str,
        salt: &[u8],
    ) -> password_hash::Result<PasswordHash> {
        let (argon2, salt) = (Argon2::default(), Salt::new(salt)?);
        let output = self.output(&argon2, password, &salt)?;
        Ok(PasswordHash {
            algorithm: Algorithm::default().ident(),
            version: Some(Version::default().into()),
            params: ParamsString::try_from(argon2.params())?,
            salt: Some(salt),
            hash: Some(output),
        })
    }

    fn try_verify(&mut self, hash: &str, password: &str) -> password_hash::Result<bool> {
        let hash = PasswordHash::new(hash)?;
        let algorithm = Algorithm::try_from(hash.algorithm.as_str())?;
        let version = hash.version.map(Version::try_from).transpose()?.unwrap_or_default();
        let argon2 = Argon2::new(algorithm, version, Params::try_from(&hash)?);
        let (Some(salt), Some(expected)) = (&hash.salt, &hash.hash) else { return Ok(false) };
        // Outputs are compared in constant time.
        Ok(self.output(&argon2, password, salt)? == *expected)
    }

    fn output(
        &mut self,
        argon2: &Argon2<'_>,
        password: &str,
        salt: &Salt,
    ) -> password_hash::Result<Output> {
        let params = argon2.params();
        let mut buffer = [0; Output::MAX_LENGTH];
        let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        let output = buffer.get_mut(..length).ok_or(password_hash::Error::OutputSize)?;
        self.blocks.resize(params.block_count(), Block::default());
        argon2.hash_password_into_with_memory(
            password.as_bytes(),
            salt,
            output,
            &mut self.blocks,
        )?;
        Ok(Output::new(output)?)
    }
}

#[cfg(test)]
mod tests {
    use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};

    use super::*;

    #[test]
    fn hashes_are_those_of_argon2_and_each_has_its_own_salt() {
        let mut hasher = PasswordHasher::default();
        let (ours, again) =
            (hasher.hash("the password").unwrap(), hasher.hash("the password").unwrap());
        let theirs = Argon2::default().hash_password(b"the password").unwrap().to_string();

        assert_ne!(ours, again);
        assert_eq!(
            ours.split('$').take(4).collect::<Vec<_>>(),
            theirs.split('$').take(4).collect::<Vec<_>>()
        );
        Argon2::default()
            .verify_password(b"the password", &PasswordHash::new(&ours).unwrap())
            .unwrap();
        for hash in [&ours, &again, &theirs] {
            assert!(hasher.verify(hash, "the password"), "{hash}");
            assert!(!hasher.verify(hash, "another password"), "{hash}");
        }
    }

    #[test]
    fn hash_with_other_costs_is_verified_and_a_broken_one_matches_nothing() {
        let mut hasher = PasswordHasher::default();
        let costs = Params::new(8 * 1024, 1, 1, None).unwrap();
        let cheap = Argon2::from(costs).hash_password(b"the password").unwrap().to_string();

        assert!(hasher.verify(&cheap, "the password"));
        assert!(!hasher.verify(&cheap, "another password"));
        for broken in ["", "$argon2id$", "plain text", "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ"]
        {
            assert!(!hasher.verify(broken, ""), "{broken}");
        }
    }
}
