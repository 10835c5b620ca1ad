//! An id token: whether the provider signed it, for us, for this login, and not long ago. Pure.
//!
//! Only the two algorithms every provider has are taken, and only with a key that is made for them: what the token says about itself chooses among the
//! provider's keys and nothing else.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use jiff::{SignedDuration, Timestamp};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// How far the provider's clock may be from ours.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// What a token says about whoever logged in.
pub(super) type Claims = Map<String, Value>;

/// What a token has to be.
#[derive(Debug)]
pub(super) struct Expected<'e> {
    pub(super) issuer: &'e str,
    pub(super) client_id: &'e str,
    pub(super) nonce: &'e str,
    pub(super) now: Timestamp,
}

/// Why a token is not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// It cannot be read.
    #[error("the id token cannot be read: {0}")]
    Malformed(&'static str),
    /// It is signed in a way we do not take, or not at all.
    #[error("the id token is signed with {0:?}, and RS256 and ES256 are taken")]
    Algorithm(String),
    /// The keys may have changed: look at them again.
    #[error("the id token is signed with a key that the provider does not show")]
    UnknownKey,
    /// Somebody changed it, or made it.
    #[error("the signature of the id token is wrong")]
    Signature,
    /// Another provider's.
    #[error("the id token is of another issuer: {0:?}")]
    Issuer(String),
    /// For another client.
    #[error("the id token is for somebody else than this console")]
    Audience,
    /// Too old, or from the future.
    #[error("the id token is not good now; hint: do the clocks of console and provider agree?")]
    Time,
    /// Of another login.
    #[error("the id token belongs to another login")]
    Nonce,
}

/// A key of the provider's.
#[derive(Debug)]
pub(super) struct Key {
    id: Option<String>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// For RS256: modulus and exponent.
    Rsa(Vec<u8>, Vec<u8>),
    /// For ES256: the point, uncompressed.
    P256(Vec<u8>),
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct KeyShown {
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

/// The keys of a JWKS that can be used here; others are left alone.
pub(super) fn keys(bytes: &[u8]) -> Result<Vec<Key>, serde_json::Error> {
    let set: KeySet = serde_json::from_slice(bytes)?;
    let shown = set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
    Ok(shown.filter_map(Key::of).collect())
}

impl Key {
    fn of(shown: KeyShown) -> Option<Self> {
        let number = |text: Option<String>| BASE64.decode(text?.trim_end_matches('=')).ok();
        let is_for = |algorithm: &str| shown.alg.as_deref().is_none_or(|alg| alg == algorithm);
        if shown.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        let kind = match (shown.kty.as_str(), shown.crv.as_deref()) {
            ("RSA", _) if is_for("RS256") => {
                let plain = |number: Vec<u8>| -> Vec<u8> {
                    number.into_iter().skip_while(|byte| *byte == 0).collect()
                };
                Kind::Rsa(plain(number(shown.n)?), plain(number(shown.e)?))
            }
            ("EC", Some("P-256")) if is_for("ES256") => {
                let (x, y) = (number(shown.x)?, number(shown.y)?);
                if x.len() != 32 || y.len() != 32 {
                    return None;
                }
                Kind::P256([&[4], x.as_slice(), y.as_slice()].concat())
            }
            _ => return None,
        };
        Some(Self { id: shown.kid, kind })
    }

    fn algorithm(&self) -> &'static str {
        match self.kind {
            Kind::Rsa(..) => "RS256",
            Kind::P256(_) => "ES256",
        }
    }

    fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
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

/// What the token says, if it is good.
pub(super) fn verify(
    token: &str,
    keys: &[Key],
    expected: &Expected<'_>,
) -> Result<Claims, Refused> {
    let mut parts = token.split('.');
    let (Some(head), Some(body), Some(seal), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Refused::Malformed("it has not three parts"));
    };
    let header: Header = part(head)?;
    if header.crit.is_some() {
        return Err(Refused::Malformed("it has extensions that have to be known"));
    }
    if !["RS256", "ES256"].contains(&header.alg.as_str()) {
        return Err(Refused::Algorithm(header.alg));
    }
    let seal = BASE64.decode(seal).map_err(|_| Refused::Malformed("its signature is no Base64"))?;
    let message = &token.as_bytes()[..head.len() + 1 + body.len()];
    check_signature(keys, &header, message, &seal)?;
    let claims: Claims = part(body)?;
    check_claims(&claims, expected)?;
    Ok(claims)
}

fn part<T: DeserializeOwned>(text: &str) -> Result<T, Refused> {
    let bytes = BASE64.decode(text).map_err(|_| Refused::Malformed("a part is no Base64"))?;
    serde_json::from_slice(&bytes)
        .map_err(|_| Refused::Malformed("a part is not what it should be"))
}

fn check_signature(
    keys: &[Key],
    header: &Header,
    message: &[u8],
    seal: &[u8],
) -> Result<(), Refused> {
    let mut fitting = keys.iter().filter(|key| key.algorithm() == header.alg);
    match &header.kid {
        Some(_) => {
            let named = fitting.find(|key| key.id == header.kid).ok_or(Refused::UnknownKey)?;
            if named.signed(message, seal) { Ok(()) } else { Err(Refused::Signature) }
        }
        // A provider with one key need not name it. If none fits, it may have another by now.
        None if fitting.any(|key| key.signed(message, seal)) => Ok(()),
        None => Err(Refused::UnknownKey),
    }
}

fn check_claims(claims: &Claims, expected: &Expected<'_>) -> Result<(), Refused> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let issuer = text("iss").unwrap_or_default();
    if issuer != expected.issuer {
        return Err(Refused::Issuer(issuer.chars().take(200).collect()));
    }
    let audience: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    // Where it is for several, it says which of them asked for it.
    let asked = text("azp").or(if audience.len() == 1 { audience.first().copied() } else { None });
    if !audience.contains(&expected.client_id) || asked != Some(expected.client_id) {
        return Err(Refused::Audience);
    }
    let moment = |name: &str| {
        let seconds = claims.get(name)?;
        let seconds = seconds.as_i64().or_else(|| seconds.as_f64().map(|number| number as i64))?;
        Timestamp::from_second(seconds).ok()
    };
    let (early, late) = (expected.now - LEEWAY, expected.now + LEEWAY);
    let is_over = moment("exp").is_none_or(|end| end <= early);
    let is_early = moment("iat").is_none_or(|made| made > late)
        || moment("nbf").is_some_and(|begin| begin > late);
    if is_over || is_early {
        return Err(Refused::Time);
    }
    if text("nonce") != Some(expected.nonce) {
        return Err(Refused::Nonce);
    }
    if text("sub").is_none_or(str::is_empty) {
        return Err(Refused::Malformed("it does not say whose it is"));
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
            let seal = self.key.sign(&self.random, text.as_bytes()).unwrap();
            format!("{text}.{}", BASE64.encode(seal.as_ref()))
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
    fn a_token_that_the_provider_signed_for_this_login_is_taken() {
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
        assert!(verify(&unnamed, &keys, &expected()).is_ok(), "one key needs no name");
    }

    #[test]
    fn what_is_not_for_this_login_is_refused() {
        let provider = Provider::new();
        let keys = provider.keys("one");
        let why = |claims: Value| {
            verify(&provider.sign(&header(), &claims), &keys, &expected()).unwrap_err()
        };

        assert_eq!(why(with("iss", "https://evil")), Refused::Issuer("https://evil".to_owned()));
        assert_eq!(why(with("aud", "other")), Refused::Audience);
        assert_eq!(why(with("aud", json!(["console", "other"]))), Refused::Audience, "no azp");
        assert_eq!(why(with("azp", "other")), Refused::Audience);
        assert_eq!(why(with("exp", NOW - 61)), Refused::Time);
        assert_eq!(why(with("exp", Value::Null)), Refused::Time);
        assert_eq!(why(with("iat", NOW + 61)), Refused::Time);
        assert_eq!(why(with("nbf", NOW + 61)), Refused::Time);
        assert_eq!(why(with("nonce", "m")), Refused::Nonce);
        assert_eq!(why(with("nonce", Value::Null)), Refused::Nonce);
        assert!(matches!(why(with("sub", "")), Refused::Malformed(_)));
    }

    /// RFC 7515's own example (A.2).
    #[test]
    fn rs256_is_verified_as_the_standard_says() {
        let n = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
        let keys =
            keys(json!({ "keys": [{ "kty": "RSA", "n": n, "e": "AQAB" }] }).to_string().as_bytes())
                .unwrap();
        let why = |token: &str| verify(token, &keys, &expected()).unwrap_err();

        assert_eq!(why(token), Refused::Issuer("joe".to_owned()), "signed, and not for us");
        assert_eq!(why(&token.replace("7Rw", "7RA")), Refused::UnknownKey);
    }

    #[test]
    fn what_the_provider_did_not_sign_is_refused() {
        let (provider, other) = (Provider::new(), Provider::new());
        let keys = provider.keys("one");
        let why = |token: &str| verify(token, &keys, &expected()).unwrap_err();
        let good = provider.sign(&header(), &claims());
        let (signed, seal) = good.rsplit_once('.').unwrap();
        let (head, _) = signed.split_once('.').unwrap();
        let admin = BASE64.encode(with("sub", "admin").to_string());

        assert_eq!(why(&other.sign(&header(), &claims())), Refused::Signature);
        assert_eq!(why(&format!("{head}.{admin}.{seal}")), Refused::Signature);
        assert_eq!(why(&format!("{signed}.")), Refused::Signature);
        let head = |header: Value| BASE64.encode(header.to_string());
        let body = BASE64.encode(claims().to_string());
        for alg in ["none", "None", "HS256", "ES384", "RS512", ""] {
            let token = format!("{}.{body}.", head(json!({ "alg": alg, "kid": "one" })));
            assert_eq!(why(&token), Refused::Algorithm(alg.to_owned()));
        }
        let rsa = format!("{}.{body}.{seal}", head(json!({ "alg": "RS256", "kid": "one" })));
        assert_eq!(why(&rsa), Refused::UnknownKey, "a key is for one algorithm");
        let unknown = provider.sign(&json!({ "alg": "ES256", "kid": "two" }), &claims());
        assert_eq!(why(&unknown), Refused::UnknownKey);
        let critical = json!({ "alg": "ES256", "kid": "one", "crit": ["b64"], "b64": false });
        assert!(matches!(why(&provider.sign(&critical, &claims())), Refused::Malformed(_)));
        for broken in ["", "a.b", "a.b.c", "a.b.c.d", "..", "é.é.é"] {
            assert!(matches!(why(broken), Refused::Malformed(_)), "{broken:?}");
        }
    }
}
