//! Signs a request anew (AWS signature version 4) after one of its signed headers was taken away.
//! Lives on: anywhere (pure).
//! Owns: nothing.
//! Invariants: none of the product's; the secret shows in no message.

use std::fmt;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::http::request::Parts;
use sha2::{Digest as _, Sha256};

const BLOCK_BYTES: usize = 64;
const SCHEME: &str = "AWS4-HMAC-SHA256 ";

/// The secret key that the clients sign with.
#[derive(Clone)]
pub struct SecretKey(String);

impl SecretKey {
    pub fn new(secret: impl Into<String>) -> SecretKey {
        SecretKey(secret.into())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey")
    }
}

/// Replaces the signature of a request whose headers are not what they were; `None` if it was signed in another way or not at all.
pub(super) fn sign_anew(parts: &mut Parts, secret: &SecretKey) -> Option<()> {
    let told = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix(SCHEME)?.to_owned();
    let field = |name: &str| told.split(',').find_map(|pair| pair.trim().strip_prefix(name));
    let credential = field("Credential=")?;
    let signed: Vec<&str> =
        field("SignedHeaders=")?.split(';').filter(|name| parts.headers.contains_key(*name)).collect();
    let (_, scope) = credential.split_once('/')?;
    let time = header(&parts.headers, "x-amz-date")?;
    let payload = header(&parts.headers, "x-amz-content-sha256")?;

    let headers: Option<String> = signed
        .iter()
        .map(|name| header(&parts.headers, name).map(|value| format!("{name}:{value}\n")))
        .collect();
    let names = signed.join(";");
    let request = format!(
        "{}\n{}\n{}\n{}\n{names}\n{payload}",
        parts.method,
        parts.uri.path(),
        query(parts.uri.query().unwrap_or_default()),
        headers?,
    );
    let text = format!("{}\n{time}\n{scope}\n{}", SCHEME.trim(), hex(&Sha256::digest(request)));
    let key = scope
        .split('/')
        .fold(format!("AWS4{}", secret.0).into_bytes(), |key, part| hmac(&key, part.as_bytes()).to_vec());
    let signature = hex(&hmac(&key, text.as_bytes()));
    let value = format!("{SCHEME}Credential={credential}, SignedHeaders={names}, Signature={signature}");
    parts.headers.insert(AUTHORIZATION, HeaderValue::from_str(&value).ok()?);
    Some(())
}

/// A header's value as it is signed.
fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The query as it is signed: sorted, each name with a value.
fn query(text: &str) -> String {
    let mut pairs: Vec<String> = text
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") })
        .collect();
    pairs.sort();
    pairs.join("&")
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0_u8; BLOCK_BYTES];
    let hashed;
    let key = if key.len() > BLOCK_BYTES {
        hashed = Sha256::digest(key);
        hashed.as_slice()
    } else {
        key
    };
    for (to, from) in block.iter_mut().zip(key) {
        *to = *from;
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS.get(usize::from(nibble)).copied().unwrap_or_default());
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    /// The example that AWS documents for a GET with a range.
    #[test]
    fn the_documented_example_gets_its_documented_signature() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let old = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
                   SignedHeaders=host;if-none-match;range;x-amz-content-sha256;x-amz-date, Signature=00";
        let request = Request::get("/test.txt")
            .header("host", "examplebucket.s3.amazonaws.com")
            .header("range", "bytes=0-9")
            .header("x-amz-content-sha256", empty)
            .header("x-amz-date", "20130524T000000Z")
            .header("authorization", old);
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        sign_anew(&mut parts, &SecretKey::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")).unwrap();
        let signed = parts.headers["authorization"].to_str().unwrap();
        assert!(signed.contains("SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"), "{signed}");
        let expected = "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        assert!(signed.ends_with(expected), "{signed}");
    }

    #[test]
    fn what_is_signed_otherwise_is_left_alone() {
        let (mut parts, ()) =
            Request::get("/k").header("authorization", "Bearer x").body(()).unwrap().into_parts();
        assert!(sign_anew(&mut parts, &SecretKey::new("s")).is_none());
    }
}
