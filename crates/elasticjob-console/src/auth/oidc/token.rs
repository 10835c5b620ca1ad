//! Verifies an id token: signed by the provider, for this console, for this login, and currently valid. Pure.
//!
//! Only RS256 and ES256, which every provider supports, are accepted, and only with a key made for the algorithm: the token's header selects
//! among the provider's keys and influences nothing else.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use jiff::{SignedDuration, Timestamp};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// Allowed clock difference to the provider.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// The claims of a token.
pub(super) type Claims = Map<String, Value>;

/// What a valid token must contain.
#[derive(Debug)]
pub(super) struct Expected<'e> {
    pub(super) issuer: &'e str,
    pub(super) client_id: &'e str,
    pub(super) nonce: &'e str,
    pub(super) now: Timestamp,
}

/// Why a token is rejected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("cannot parse the id token: {0}")]
    Malformed(&'static str),
    /// Signed with an algorithm that is not accepted, or not at all.
    #[error("the id token is signed with {0:?}; only RS256 and ES256 are accepted")]
    Algorithm(String),
    /// The provider may have rotated its keys: fetch them again.
    #[error("the id token is signed with a key that the provider does not publish")]
    UnknownKey,
    /// The token was forged or modified.
    #[error("the signature of the id token is invalid")]
    Signature,
    #[error("the id token is from another issuer: {0:?}")]
    Issuer(String),
    #[error("the id token is for another client")]
    Audience,
    /// Expired, or not valid yet.
    #[error(
        "the id token is expired or not yet valid; do the clocks of console and provider agree?"
    )]
    Time,
    #[error("the id token belongs to another login")]
    Nonce,
}

/// A public key of the provider.
#[derive(Debug)]
pub(super) struct Key {
    id: Option<String>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// RS256: modulus and exponent.
    Rsa(Vec<u8>, Vec<u8>),
    /// ES256: the uncompressed point.
    P256(Vec<u8>),
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct JsonWebKey {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The usable keys of a JWKS; others are ignored.
pub(super) fn keys(bytes: &[u8]) -> Result<Vec<Key>, serde_json::Error> {
    let set: KeySet = serde_json::from_slice(bytes)?;
    let jwk = set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
    Ok(jwk.filter_map(Key::from_jwk).collect())
}

impl Key {
    fn from_jwk(jwk: JsonWebKey) -> Option<Self> {
        let decode = |text: Option<String>| BASE64.decode(text?.trim_end_matches('=')).ok();
        let allows = |algorithm: &str| jwk.alg.as_deref().is_none_or(|alg| alg == algorithm);
        if jwk.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        let kind = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) if allows("RS256") => {
                let without_leading_zeros = |bytes: Vec<u8>| -> Vec<u8> {
                    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
                };
                Kind::Rsa(
                    without_leading_zeros(decode(jwk.n)?),
                    without_leading_zeros(decode(jwk.e)?),
                )
            }
            ("EC", Some("P-256")) if allows("ES256") => {
                let (x, y) = (decode(jwk.x)?, decode(jwk.y)?);
                if x.len() != 32 || y.len() != 32 {
                    return None;
                }
                Kind::P256([&[4], x.as_slice(), y.as_slice()].concat())
            }
            _ => return None,
        };
        Some(Self { id: jwk.kid, kind })
    }

    fn algorithm(&self) -> &'static str {
        match self.kind {
            Kind::Rsa(..) => "RS256",
            Kind::P256(_) => "ES256",
        }
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match &self.kind {
            Kind::Rsa(n, e) => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            Kind::P256(point) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                key.verify(message, signature)
            }
        };
        verified.is_ok()
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// Returns the claims of a valid token.
pub(super) fn verify(
    token: &str,
    keys: &[Key],
    expected: &Expected<'_>,
) -> Result<Claims, TokenError> {
    let mut parts = token.split('.');
    let (Some(head), Some(body), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenError::Malformed("it does not have three parts"));
    };
    let header: Header = decode_part(head)?;
    if header.crit.is_some() {
        return Err(TokenError::Malformed("it has critical extensions"));
    }
    if !["RS256", "ES256"].contains(&header.alg.as_str()) {
        return Err(TokenError::Algorithm(header.alg));
    }
    let signature = BASE64
        .decode(signature)
        .map_err(|_| TokenError::Malformed("its signature is not Base64"))?;
    let message = &token.as_bytes()[..head.len() + 1 + body.len()];
    check_signature(keys, &header, message, &signature)?;
    let claims: Claims = decode_part(body)?;
    check_claims(&claims, expected)?;
    Ok(claims)
}

fn decode_part<T: DeserializeOwned>(text: &str) -> Result<T, TokenError> {
    let bytes = BASE64.decode(text).map_err(|_| TokenError::Malformed("a part is not Base64"))?;
    serde_json::from_slice(&bytes)
        .map_err(|_| TokenError::Malformed("a part is not the expected JSON"))
}

fn check_signature(
    keys: &[Key],
    header: &Header,
    message: &[u8],
    signature: &[u8],
) -> Result<(), TokenError> {
    let mut candidates = keys.iter().filter(|key| key.algorithm() == header.alg);
    match &header.kid {
        Some(_) => {
            let named =
                candidates.find(|key| key.id == header.kid).ok_or(TokenError::UnknownKey)?;
            if named.verifies(message, signature) { Ok(()) } else { Err(TokenError::Signature) }
        }
        // A provider with a single key need not name it. If no key matches, the keys may have been rotated.
        None if candidates.any(|key| key.verifies(message, signature)) => Ok(()),
        None => Err(TokenError::UnknownKey),
    }
}

fn check_claims(claims: &Claims, expected: &Expected<'_>) -> Result<(), TokenError> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let issuer = text("iss").unwrap_or_default();
    if issuer != expected.issuer {
        return Err(TokenError::Issuer(issuer.chars().take(200).collect()));
    }
    let audience: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    // With several audiences, `azp` names the client that requested the token.
    let requester =
        text("azp").or(if audience.len() == 1 { audience.first().copied() } else { None });
    if !audience.contains(&expected.client_id) || requester != Some(expected.client_id) {
        return Err(TokenError::Audience);
    }
    let time_claim = |name: &str| {
        let seconds = claims.get(name)?;
        let seconds = seconds.as_i64().or_else(|| seconds.as_f64().map(|number| number as i64))?;
        Timestamp::from_second(seconds).ok()
    };
    let (early, late) = (expected.now - LEEWAY, expected.now + LEEWAY);
    let is_expired = time_claim("exp").is_none_or(|end| end <= early);
    let is_not_yet_valid = time_claim("iat").is_none_or(|made| made > late)
        || time_claim("nbf").is_some_and(|begin| begin > late);
    if is_expired || is_not_yet_valid {
        return Err(TokenError::Time);
    }
    if text("nonce") != Some(expected.nonce) {
        return Err(TokenError::Nonce);
    }
    if text("sub").is_none_or(str::is_empty) {
        return Err(TokenError::Malformed("it has no subject"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ring::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
    };
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    struct Provider {
        key: EcdsaKeyPair,
        random: SystemRandom,
    }

    impl Provider {
        fn new() -> Self {
            let random = SystemRandom::new();
            let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
            let key = EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap();
            Self { key, random }
        }

        fn keys(&self, id: &str) -> Vec<Key> {
            let point = self.key.public_key().as_ref();
            let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
            let key =
                json!({ "kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "x": x, "y": y });
            keys(json!({ "keys": [key, { "kty": "oct", "k": "x" }, 7] }).to_string().as_bytes())
                .unwrap()
        }

        fn sign(&self, header: &Value, claims: &Value) -> String {
            let text = [header, claims].map(|part| BASE64.encode(part.to_string())).join(".");
            let signature = self.key.sign(&self.random, text.as_bytes()).unwrap();
            format!("{text}.{}", BASE64.encode(signature.as_ref()))
        }
    }

    fn header() -> Value {
        json!({ "alg": "ES256", "kid": "one" })
    }

    fn claims() -> Value {
        json!({ "iss": "https://login", "aud": "console", "sub": "7", "exp": NOW + 300, "iat": NOW, "nonce": "n" })
    }

    fn expected() -> Expected<'static> {
        Expected {
            issuer: "https://login",
            client_id: "console",
            nonce: "n",
            now: Timestamp::from_second(NOW).unwrap(),
        }
    }

    fn with(name: &str, value: impl Into<Value>) -> Value {
        let mut claims = claims();
        claims[name] = value.into();
        claims
    }

    #[test]
    fn token_signed_for_this_login_is_accepted() {
        let provider = Provider::new();
        let keys = provider.keys("one");

        for claims in [
            claims(),
            with("aud", json!(["console"])),
            with("exp", NOW - 30),
            with("iat", NOW + 30),
            {
                let mut several = with("aud", json!(["console", "other"]));
                several["azp"] = "console".into();
                several
            },
        ] {
            let token = provider.sign(&header(), &claims);
            assert_eq!(verify(&token, &keys, &expected()).unwrap()["sub"], "7", "{claims}");
        }
        let unnamed = provider.sign(&json!({ "alg": "ES256" }), &claims());
        assert!(verify(&unnamed, &keys, &expected()).is_ok(), "a single key needs no id");
    }

    #[test]
    fn token_for_another_login_is_rejected() {
        let provider = Provider::new();
        let keys = provider.keys("one");
        let error_of = |claims: Value| {
            verify(&provider.sign(&header(), &claims), &keys, &expected()).unwrap_err()
        };

        assert_eq!(
            error_of(with("iss", "https://evil")),
            TokenError::Issuer("https://evil".to_owned())
        );
        assert_eq!(error_of(with("aud", "other")), TokenError::Audience);
        assert_eq!(
            error_of(with("aud", json!(["console", "other"]))),
            TokenError::Audience,
            "no azp"
        );
        assert_eq!(error_of(with("azp", "other")), TokenError::Audience);
        assert_eq!(error_of(with("exp", NOW - 61)), TokenError::Time);
        assert_eq!(error_of(with("exp", Value::Null)), TokenError::Time);
        assert_eq!(error_of(with("iat", NOW + 61)), TokenError::Time);
        assert_eq!(error_of(with("nbf", NOW + 61)), TokenError::Time);
        assert_eq!(error_of(with("nonce", "m")), TokenError::Nonce);
        assert_eq!(error_of(with("nonce", Value::Null)), TokenError::Nonce);
        assert!(matches!(error_of(with("sub", "")), TokenError::Malformed(_)));
    }

    /// RFC 7515's own example (A.2).
    #[test]
    fn rs256_matches_the_rfc_7515_example() {
        let n = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
        let keys =
            keys(json!({ "keys": [{ "kty": "RSA", "n": n, "e": "AQAB" }] }).to_string().as_bytes())
                .unwrap();
        let error_of = |token: &str| verify(token, &keys, &expected()).unwrap_err();

        assert_eq!(
            error_of(token),
            TokenError::Issuer("joe".to_owned()),
            "the signature is valid, the issuer is not ours"
        );
        assert_eq!(error_of(&token.replace("7Rw", "7RA")), TokenError::UnknownKey);
    }

    #[test]
    fn token_not_signed_by_the_provider_is_rejected() {
        let (provider, other) = (Provider::new(), Provider::new());
        let keys = provider.keys("one");
        let error_of = |token: &str| verify(token, &keys, &expected()).unwrap_err();
        let good = provider.sign(&header(), &claims());
        let (signed, signature) = good.rsplit_once('.').unwrap();
        let (head, _) = signed.split_once('.').unwrap();
        let admin = BASE64.encode(with("sub", "admin").to_string());

        assert_eq!(error_of(&other.sign(&header(), &claims())), TokenError::Signature);
        assert_eq!(error_of(&format!("{head}.{admin}.{signature}")), TokenError::Signature);
        assert_eq!(error_of(&format!("{signed}.")), TokenError::Signature);
        let head = |header: Value| BASE64.encode(header.to_string());
        let body = BASE64.encode(claims().to_string());
        for alg in ["none", "None", "HS256", "ES384", "RS512", ""] {
            let token = format!("{}.{body}.", head(json!({ "alg": alg, "kid": "one" })));
            assert_eq!(error_of(&token), TokenError::Algorithm(alg.to_owned()));
        }
        let rsa = format!("{}.{body}.{signature}", head(json!({ "alg": "RS256", "kid": "one" })));
        assert_eq!(error_of(&rsa), TokenError::UnknownKey, "a key is valid for one algorithm only");
        let unknown = provider.sign(&json!({ "alg": "ES256", "kid": "two" }), &claims());
        assert_eq!(error_of(&unknown), TokenError::UnknownKey);
        let critical = json!({ "alg": "ES256", "kid": "one", "crit": ["b64"], "b64": false });
        assert!(matches!(error_of(&provider.sign(&critical, &claims())), TokenError::Malformed(_)));
        for broken in ["", "a.b", "a.b.c", "a.b.c.d", "..", "é.é.é"] {
            assert!(matches!(error_of(broken), TokenError::Malformed(_)), "{broken:?}");
        }
    }
}
