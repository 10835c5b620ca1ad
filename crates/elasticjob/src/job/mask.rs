//! Masks what looks like a secret in a configuration, wherever it is shown.
//!
//! Two things decide: the *name* of a property (`email.password`, `apiKey`), and the *form* of a text, whatever its name: a password or a key in a
//! URL, `token=…` in a command line, `"password": "…"` in a body, a token with a known prefix. A property with a secret name is masked as a whole, a
//! text only where the secret is, so that the rest stays readable. What is certainly harmless is shown: the number of a measure (`max_tokens=4096`), a
//! plain word as the `key` in the query of a URL.
//!
//! A masked value that comes back in an edit stands for the stored one ([`restore_masked`]). A value that was changed around its mask is refused: with
//! another host in a URL, the secret would be sent there.
//!
//! References to secrets ([`SecretRef`]) are no secrets, and stay as they are.

use std::{borrow::Cow, ops::Range};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use super::{
    bounds::{MAX_LISTED_TEXT, shorten},
    error::InvalidValue,
    job::Job,
    secret_ref::SecretRef,
};

/// Replaces a secret.
pub const MASK: &str = "***";

/// Words in the name of a property that make its value a secret, alone or as a part of a word: `dbPassword`, `mytoken`.
const SECRET_PARTS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "webhook",
    "credential",
    "authorization",
    "apikey",
    "privatekey",
];
/// The same for short words, which occur in others (`author`): only as a whole word.
const SECRET_WORDS: [&str; 10] = [
    "pwd",
    "pass",
    "auth",
    "cookie",
    "jwt",
    "accesskey",
    "secretkey",
    "sig",
    "signature",
    "bearer",
];
/// Beginnings of longer words that only look like those.
const HARMLESS_PARTS: [&str; 3] = ["tokeniz", "tokenis", "secretar"];
/// Words in the name of a number: `max_tokens`, `password.min.length`, `webhook.timeout`. A number is then no secret.
const MEASURES: [&str; 20] = [
    "max",
    "min",
    "num",
    "count",
    "limit",
    "length",
    "size",
    "per",
    "ttl",
    "age",
    "expiry",
    "interval",
    "timeout",
    "millis",
    "milliseconds",
    "seconds",
    "minute",
    "minutes",
    "hours",
    "days",
];
/// Words before `key` that make it secret: `api_key`, `private.key`.
const KEYS_OF: [&str; 9] =
    ["api", "access", "private", "secret", "signing", "encryption", "auth", "master", "account"];
/// Parameters in the query of a URL that are secret there only, unless they are a plain word: WeChat's `key`, DingTalk's `sign`, Azure's `code`.
const QUERY_WORDS: [&str; 3] = ["key", "sign", "code"];
/// Path segments of a URL after which a token follows: `/hook/TOKEN`, `/api/webhooks/ID/TOKEN`.
const TOKEN_FOLLOWS: [&str; 5] = ["hook", "hooks", "webhook", "webhooks", "webhookb2"];
/// Beginnings of tokens that services hand out.
const TOKEN_PREFIXES: [&str; 14] = [
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "sk_live_",
    "rk_live_",
    "AKIA",
    "eyJ",
];
/// Shorter than this, a text with such a beginning is no token.
const MIN_TOKEN: usize = 16;
/// A path segment of this length, with a mix of letters and digits in it that is at least [`MIN_TOKEN`] long, is taken for a token.
const MIN_RANDOM_SEGMENT: usize = 24;
/// Longest user and password that are looked for in a word.
const MAX_ENCODED: usize = 1_024;
const AUTH_SCHEMES: [&str; 4] = ["bearer", "basic", "token", "digest"];

/// A property for display: `***` if its name says that it is a secret, otherwise its value with the secrets in it masked.
///
/// ```
/// use elasticjob::job::mask_value;
///
/// assert_eq!(mask_value("email.password", "hunter2"), "***");
/// assert_eq!(mask_value("email.password", "secret:mail"), "secret:mail");
/// assert_eq!(mask_value("http.uri", "https://u:hunter2@shop/x?key=4711"), "https://u:***@shop/x?key=***");
/// ```
pub fn mask_value<'a>(key: &str, value: &'a str) -> Cow<'a, str> {
    if value.is_empty() || !is_secret(key, value) || is_only_references(value) {
        return mask_text(value);
    }
    // The parts of a URL beside its reference may be shown.
    let is_url = value.starts_with("https://") || value.starts_with("http://");
    if is_url && SecretRef::find_all(value).next().is_some() {
        return mask_text(value);
    }
    Cow::Borrowed(MASK)
}

/// A description or label as lists show it: masked, and only the beginning of a long one, so that one job does not fill the list of all jobs.
///
/// ```
/// use elasticjob::job::mask_for_list;
///
/// assert_eq!(mask_for_list("settles orders, password=hunter2"), "settles orders, password=***");
/// assert_eq!(mask_for_list(&"x".repeat(5_000)).chars().count(), 1_001);
/// ```
pub fn mask_for_list(text: &str) -> String {
    // Not the other way round: the rest of a secret may no longer look like one.
    shorten(mask_text(text), MAX_LISTED_TEXT)
}

/// A text for display, with the parts that look like secrets masked.
///
/// ```
/// use elasticjob::job::mask_text;
///
/// assert_eq!(mask_text("backup.sh --password hunter2 -v"), "backup.sh --password *** -v");
/// ```
pub fn mask_text(text: &str) -> Cow<'_, str> {
    let mut spans = Vec::new();
    find_in_urls(text, &mut spans);
    find_in_words(text, &mut spans);
    find_private_key(text, &mut spans);
    spans.retain(|span| !span.is_empty() && !is_only_references(&text[span.clone()]));
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let (mut masked, mut shown_to) = (String::with_capacity(text.len()), 0);
    for span in spans {
        if span.start >= shown_to {
            masked.push_str(&text[shown_to..span.start]);
            masked.push_str(MASK);
        }
        shown_to = shown_to.max(span.end);
    }
    masked.push_str(&text[shown_to..]);
    Cow::Owned(masked)
}

/// The value that a sent one stands for: the stored one, if the sent one is what is shown of it. `key` is a property (`jobParameter`) or a key of
/// `props` (`props.email.password`).
pub fn restore_masked(
    stored: Option<&Job>,
    key: &str,
    sent: String,
) -> Result<String, InvalidValue> {
    if !sent.contains(MASK) {
        return Ok(sent);
    }
    let stored = stored.and_then(|stored| stored_text(stored, key)).filter(|text| !text.is_empty());
    let has_secret = |stored: &str| mask_value(key, stored) != stored;
    match stored {
        Some(stored) if sent == MASK || mask_value(key, stored) == sent => Ok(stored.to_owned()),
        stored if sent == MASK || is_masked(key, &sent) || stored.is_some_and(has_secret) => {
            let problem = match stored {
                None => format!("it is masked with {MASK}, but no value is stored"),
                Some(_) => format!("it is masked with {MASK}, and differs from what is stored"),
            };
            Err(InvalidValue::new(key.to_owned(), sent, problem).with_hint("send the whole value"))
        }
        _ => Ok(sent),
    }
}

/// Whether a value has a mask where a secret would be.
fn is_masked(key: &str, value: &str) -> bool {
    // Long enough and mixed, so that every rule takes it for a secret.
    mask_value(key, &value.replace(MASK, "0a1b2c3d4e5f6a7b8c9d0e1f")) == value
}

/// The text that is stored for a property that [`mask_value`] may mask.
fn stored_text<'a>(stored: &'a Job, key: &str) -> Option<&'a str> {
    match key {
        "jobParameter" => Some(&stored.parameter),
        "shardingItemParameters" => Some(stored.items.as_str()),
        "description" => Some(&stored.description),
        "label" => stored.label.as_deref(),
        _ => stored.props.get(key.strip_prefix("props.")?),
    }
}

/// Whether a value consists of references, and of the scheme of an `Authorization` header at most.
fn is_only_references(value: &str) -> bool {
    let mut found = false;
    let rest = SecretRef::replace_all(value, |_| {
        found = true;
        Ok::<_, std::convert::Infallible>(String::new())
    });
    let Ok(rest) = rest;
    let rest = rest.trim();
    found && (rest.is_empty() || AUTH_SCHEMES.iter().any(|word| rest.eq_ignore_ascii_case(word)))
}

/// Whether this value of a property is a secret, by its name.
fn is_secret(name: &str, value: &str) -> bool {
    is_secret_name(name) && !(is_number(value) && is_measure(name))
}

fn is_measure(name: &str) -> bool {
    words(name).iter().any(|word| MEASURES.contains(&word.as_str()))
}

/// Whether a value is a plain number, with a unit of time at most.
fn is_number(value: &str) -> bool {
    let digits = value.trim_end_matches(|each: char| each.is_ascii_lowercase());
    (1..=9).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && ["", "ms", "s", "m", "h", "d"].contains(&&value[digits.len()..])
}

/// Whether the value of a property with this name is a secret, unless it is the number of a measure.
fn is_secret_name(name: &str) -> bool {
    let has_part = |text: &str| {
        let text = HARMLESS_PARTS.iter().fold(text.to_owned(), |text, part| text.replace(part, ""));
        SECRET_PARTS.iter().any(|part| text.contains(part))
    };
    let words = words(name);
    let is_key = |(index, word): (usize, &String)| {
        word == "key" && index > 0 && KEYS_OF.contains(&words[index - 1].as_str())
    };
    words.iter().any(|word| SECRET_WORDS.contains(&word.as_str()))
        || words.iter().enumerate().any(is_key)
        || has_part(&name.to_ascii_lowercase())
}

/// The words of a name, in lower case: `db.apiKey` has `db`, `api`, `key`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut previous = ' ';
    for character in name.chars() {
        let begins =
            !previous.is_alphanumeric() || (character.is_uppercase() && !previous.is_uppercase());
        if character.is_alphanumeric() {
            if begins || words.is_empty() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(character.to_lowercase());
            }
        }
        previous = character;
    }
    words
}

fn ends_url(character: char) -> bool {
    character.is_whitespace() || matches!(character, '"' | '\'' | '<' | '>' | '`' | '\\')
}

/// Passwords, secret parameters and tokens in URLs.
fn find_in_urls(text: &str, spans: &mut Vec<Range<usize>>) {
    let scheme_at = |mark: usize| {
        let scheme = text[..mark].trim_end_matches(|c: char| c.is_ascii_alphanumeric());
        scheme.len()
    };
    let marks: Vec<usize> = text.match_indices("://").map(|(mark, _)| mark).collect();
    for (index, &mark) in marks.iter().enumerate() {
        let start = mark + "://".len();
        // Another URL may follow without a space: 0=http://a,1=http://b.
        let limit = marks.get(index + 1).map_or(text.len(), |&next| scheme_at(next).max(start));
        let end = text[start..limit].find(ends_url).map_or(limit, |length| start + length);
        let is_http = text[scheme_at(mark)..mark].to_ascii_lowercase().starts_with("http");
        find_in_url(text, start..end, is_http, spans);
    }
}

fn find_in_url(text: &str, url: Range<usize>, is_http: bool, spans: &mut Vec<Range<usize>>) {
    let rest = &text[url.clone()];
    let path_at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let mut authority_end = path_at;
    // A password with a slash ends the authority too early; a port has digits only.
    let has_password = rest[..path_at]
        .split_once(':')
        .is_some_and(|(_, port)| !port.bytes().all(|byte| byte.is_ascii_digit()));
    if has_password && !rest[..path_at].contains('@') {
        authority_end = rest.find('@').map_or(path_at, |at| at + 1);
    }
    if let Some(at) = rest[..authority_end].rfind('@') {
        match rest[..at].find(':') {
            Some(colon) => spans.push(url.start + colon + 1..url.start + at),
            None if is_http => spans.push(url.start..url.start + at),
            None => {}
        }
    }
    let host_start = rest[..authority_end].rfind('@').map_or(0, |at| at + 1);
    let host = &rest[host_start..authority_end];
    let path_end =
        rest[authority_end..].find(['?', '#']).map_or(rest.len(), |length| authority_end + length);
    let is_hook =
        find_in_path(&rest[authority_end..path_end], host, url.start + authority_end, spans);
    let is_key = |name: &str, value: &str| {
        QUERY_WORDS.contains(&name.to_ascii_lowercase().as_str())
            && (is_hook || !is_plain_words(value))
    };
    let mut at = path_end;
    for pair in rest[path_end..].split(['?', '#', '&', ';']) {
        if let Some((name, value)) = pair.split_once('=')
            && (is_secret(name, value) || is_key(name, value))
        {
            let value_at = url.start + at + name.len() + 1;
            spans.push(value_at..value_at + value.len());
        }
        at += pair.len() + 1;
    }
}

/// Whether a value has words alone, as `open-orders` has: short ones, each in one case.
fn is_plain_words(value: &str) -> bool {
    let is_word = |word: &str| {
        (1..=12).contains(&word.len())
            && (word.bytes().all(|byte| byte.is_ascii_lowercase())
                || word.bytes().all(|byte| byte.is_ascii_uppercase()))
    };
    value.len() <= 40 && value.split(['-', '_', '.', ',']).all(is_word)
}

/// Tokens in the path of a URL. Returns whether it is the URL of a webhook.
fn find_in_path(path: &str, host: &str, offset: usize, spans: &mut Vec<Range<usize>>) -> bool {
    let mut follows = host.starts_with("hooks.");
    let mut at = offset;
    for segment in path.split('/') {
        let lower = segment.to_ascii_lowercase();
        // https://api.telegram.org/bot4711:TOKEN/send
        let is_bot = lower.starts_with("bot") && segment.contains(':');
        // What follows is the token, or ids and the token, up to the word that is called.
        if (follows && segment.len() > 3) || is_bot || is_random(segment) {
            spans.push(at..at + segment.len());
        }
        follows |= TOKEN_FOLLOWS.contains(&lower.as_str());
        // `/webhook/send?key=…`: a call, and no token.
        if lower == "send" {
            spans.pop_if(|span| *span == (at..at + segment.len()));
        }
        at += segment.len() + 1;
    }
    follows
}

/// Whether a path segment looks like a token: long, with letters and digits mixed. Words with dashes, and UUIDs, which are mostly ids, do not.
fn is_random(segment: &str) -> bool {
    let is_mixed = |part: &str| {
        part.len() >= MIN_TOKEN
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    segment.len() >= MIN_RANDOM_SEGMENT && segment.split(['-', '_']).any(is_mixed)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

/// What the words of a text tell: see [`secret_at`].
fn find_in_words(text: &str, spans: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_name_byte(bytes[at]) {
            at += 1;
            continue;
        }
        let end = at + bytes[at..].iter().take_while(|byte| is_name_byte(**byte)).count();
        let found = secret_at(text, at..end);
        // What is found is not searched again: a text of nothing but names would take a time that grows with its square.
        at = found.as_ref().map_or(end, |span| span.end.max(end));
        spans.extend(found);
    }
}

/// The secret that a word announces or is: `token=…`, `"password": "…"`, `--api-key …`, `Authorization: Bearer …`, `-u name:…`, a token with a known
/// beginning, an encoded user and password.
fn secret_at(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let (name, end) = (&text[at.clone()], at.end);
    let is_flag = name.starts_with('-');
    let word = name.trim_start_matches('-');
    if SecretRef::starts_at(text, at.start) {
        // Not the name `secret` with a value.
        return None;
    }
    if AUTH_SCHEMES[..2].iter().any(|scheme| word.eq_ignore_ascii_case(scheme)) {
        // Prose has such words, too; a credential is longer than what follows them there.
        let is_credential = |span: &Range<usize>| {
            span.len() >= MIN_TOKEN || is_encoded_account(&text[span.clone()])
        };
        return next_word(text, end).filter(is_credential);
    }
    if matches!(name, "-u" | "--user") {
        let account = next_word(text, end)?;
        let colon = text[account.clone()].find(':')?;
        let password = account.start + colon + 1..account.end;
        let is_id = |id: &str| id.len() <= 5 && id.bytes().all(|byte| byte.is_ascii_digit());
        // Ids of a user and a group, as containers have them.
        let is_ids =
            is_id(&text[account.start..account.start + colon]) && is_id(&text[password.clone()]);
        return (!is_ids).then_some(password);
    }
    if is_secret_name(word) {
        let value = pair_value(text, end, is_flag);
        return value.filter(|span| is_secret(word, &text[span.clone()]));
    }
    if word.len() >= MIN_TOKEN && TOKEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Some(at);
    }
    let encoded = encoded_at(text, at.start)?;
    let is_account = encoded.len() >= MIN_TOKEN && is_encoded_account(&text[encoded.clone()]);
    is_account.then_some(encoded)
}

/// The characters of Base64 that begin here, unless they began before.
fn encoded_at(text: &str, start: usize) -> Option<Range<usize>> {
    let is_encoding = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    if text[..start].bytes().next_back().is_some_and(is_encoding) {
        return None;
    }
    let rest = &text.as_bytes()[start..];
    let length = rest.iter().take_while(|byte| is_encoding(**byte)).count();
    let padding = rest[length..].iter().take(2).take_while(|byte| **byte == b'=').count();
    Some(start..start + length + padding)
}

/// Whether a text is the Base64 of a user and a password, as `Authorization: Basic` has it.
fn is_encoded_account(text: &str) -> bool {
    if text.len() > MAX_ENCODED {
        return false;
    }
    let Ok(decoded) = STANDARD_NO_PAD.decode(text.trim_end_matches('=')) else { return false };
    let Ok(decoded) = String::from_utf8(decoded) else { return false };
    let is_user = |each: char| each.is_alphanumeric() || "._@-+".contains(each);
    decoded.split_once(':').is_some_and(|(user, password)| {
        // With slashes it is a URL.
        let is_password = !password.is_empty() && !password.starts_with("//");
        !user.is_empty()
            && is_password
            && user.chars().all(is_user)
            && !password.contains(char::is_control)
    })
}

/// The value of a secret name that ends here.
fn pair_value(text: &str, end: usize, is_flag: bool) -> Option<Range<usize>> {
    let rest = &text[end..];
    let unquoted = rest.trim_start_matches(['"', '\'', '\\']);
    let spaced = unquoted.trim_start();
    let Some(value) = spaced.strip_prefix(['=', ':']) else {
        let is_value = is_flag && rest.starts_with([' ', '\t']) && !spaced.starts_with('-');
        return if is_value { next_word(text, end) } else { None };
    };
    // The scheme of a URL.
    if spaced.starts_with("://") {
        return None;
    }
    let start = text.len() - value.len();
    let span = next_word(text, start)?;
    if AUTH_SCHEMES.iter().any(|scheme| text[span.clone()].eq_ignore_ascii_case(scheme)) {
        return next_word(text, span.end).or(Some(span));
    }
    Some(span)
}

/// The next word from here on: in quotes up to the closing one, otherwise up to a space or a separator.
fn next_word(text: &str, from: usize) -> Option<Range<usize>> {
    let escaped = text[from..].trim_start();
    let rest = escaped.trim_start_matches('\\');
    let start = text.len() - rest.len();
    if let Some(quote) = rest.chars().next().filter(|first| matches!(first, '"' | '\'')) {
        let length = quoted_length(&rest[1..], quote, escaped.len() - rest.len());
        return Some(start + 1..start + 1 + length).filter(|span| !span.is_empty());
    }
    let ends = |character: char| {
        character.is_whitespace()
            || matches!(character, '"' | '\'' | ',' | ';' | '&' | '}' | ')' | ']')
    };
    let length = rest.find(ends).unwrap_or(rest.len());
    Some(start..start + length).filter(|span| !span.is_empty())
}

/// How long a quoted text is, without the closing quote and its backslashes; all of it if it is not closed. `escapes` is the number of backslashes before
/// the opening quote: none in JSON, one in JSON that is a text of other JSON, and so on. A quote with more is a part of the text.
fn quoted_length(text: &str, quote: char, escapes: usize) -> usize {
    let mut backslashes = 0;
    for (at, character) in text.char_indices() {
        if character == '\\' {
            backslashes += 1;
            continue;
        }
        // With fewer, an outer text ends.
        if character == quote
            && (backslashes < escapes || backslashes % (2 * escapes + 2) == escapes)
        {
            return at - backslashes.min(escapes);
        }
        backslashes = 0;
    }
    text.len()
}

fn find_private_key(text: &str, spans: &mut Vec<Range<usize>>) {
    if let Some(begin) = text.find("PRIVATE KEY-----") {
        let begin = begin + "PRIVATE KEY-----".len();
        let end = text[begin..].rfind("-----END").map_or(text.len(), |length| begin + length);
        spans.push(begin..end);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "hunter2-hunter2-hunter2";

    #[test]
    fn quote_in_a_secret_leaves_none_of_it() {
        for (text, masked) in [
            (r#"{"password":"ab\"hunter2","a":1}"#, r#"{"password":"***","a":1}"#),
            (r#"{"password":"hunter2\\","a":"b"}"#, r#"{"password":"***","a":"b"}"#),
            (r#"{\"password\":\"hunter2\",\"a\":1}"#, r#"{\"password\":\"***\",\"a\":1}"#),
            (r#"{\"password\":\"ab\\\"hunter2\"}"#, r#"{\"password\":\"***\"}"#),
            (r#""{\"password\":\"hunter2" -v"#, r#""{\"password\":\"***" -v"#),
            (r#"--password "ab\"hunter2"#, r#"--password "***"#),
            ("-----END X----- PRIVATE KEY-----\nhunter2", "-----END X----- PRIVATE KEY-----***"),
        ] {
            assert_eq!(mask_text(text), masked);
        }
    }

    #[test]
    fn property_with_a_secret_name_is_masked_as_a_whole() {
        for key in [
            "email.password",
            "db.passwd",
            "dbPwd",
            "apiKey",
            "api_key",
            "shop.api-key",
            "private_key",
            "privateKey",
            "auth",
            "http.auth",
            "elasticjob.http.header.Authorization",
            "aws.credentials",
            "DINGTALK.SECRET",
            "accessToken",
            "mytokenvalue",
            "session.cookie",
            "wechat.webhook",
            "elasticjob.webhook.url",
        ] {
            assert_eq!(mask_value(key, SECRET), MASK, "{key}");
        }
        for key in [
            "author",
            "email.host",
            "partition.key",
            "compass.heading",
            "elasticjob.timeout",
            "jobParameter",
        ] {
            assert_eq!(mask_value(key, "plain"), "plain", "{key}");
        }
    }

    #[test]
    fn secret_in_a_text_is_masked_and_the_rest_is_shown() {
        for (text, shown) in [
            ("https://jane:SECRET@shop/x", "https://jane:***@shop/x"),
            ("https://SECRET@shop/x", "https://***@shop/x"),
            ("postgres://jane:SEC/RET@db/x", "postgres://jane:***@db/x"),
            (
                "https://shop:8443/x?access_token=SECRET&page=2#top",
                "https://shop:8443/x?access_token=***&page=2#top",
            ),
            (
                "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=SECRET",
                "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=***",
            ),
            (
                "https://open.feishu.cn/open-apis/bot/v2/hook/SECRET",
                "https://open.feishu.cn/open-apis/bot/v2/hook/***",
            ),
            ("https://hooks.slack.com/services/SECRET", "https://hooks.slack.com/***/***"),
            (
                "https://discord.com/api/webhooks/4711/SECRET",
                "https://discord.com/api/webhooks/***/***",
            ),
            (
                "https://api.telegram.org/bot42:SECRET/sendMessage",
                "https://api.telegram.org/***/sendMessage",
            ),
            ("https://shop/files/0a1b2c3d4e5f60718293a4b5c6d7e8f9", "https://shop/files/***"),
            ("0=http://a:SECRET@h,1=http://b:SECRET@h", "0=http://a:***@h,1=http://b:***@h"),
            ("backup.sh --password SECRET -v", "backup.sh --password *** -v"),
            ("PGPASSWORD=SECRET pg_dump shop", "PGPASSWORD=*** pg_dump shop"),
            ("curl -u jane:SECRET https://shop", "curl -u jane:*** https://shop"),
            ("curl -H 'Authorization: Bearer SECRET' x", "curl -H 'Authorization: Bearer ***' x"),
            (r#"{"user":"jane","password":"SECRET, x"}"#, r#"{"user":"jane","password":"***"}"#),
            (r#"{"token": "SECRET"}"#, r#"{"token": "***"}"#),
            (r#"{\"token\":\"SECRET\"}"#, r#"{\"token\":\"***\"}"#),
            ("region=eu;api_key=SECRET;x=1", "region=eu;api_key=***;x=1"),
            ("ghp_0123456789abcdef0123", "***"),
            ("push glpat-SECRET now", "push *** now"),
            (
                "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----",
                "-----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY-----",
            ),
        ] {
            let text = text.replace("SECRET", SECRET);

            assert_eq!(mask_text(&text), shown, "{text}");
        }
    }

    #[test]
    fn plain_text_is_shown_unchanged() {
        for text in [
            "",
            "all",
            "0=Beijing,1=Shanghai",
            "https://shop.example:8443/tenants/550e8400-e29b-41d4-a716-446655440000/settle?page=2",
            "https://shop.example/webhook/send",
            "/opt/jobs/settle.sh --full -u root",
            "Basic settlement of the author's orders: all of them",
            "{\"orders\":\"all\"}",
            "ssh://backup@host/folder",
            "https://shop.example/services/orders/settle-orders-2026-batch-v2",
            "llm.py --max-tokens 4096 max_tokens=4096 tokenizer=cl100k_base --tokenizer bpe",
            r#"{"maxTokens": 4096, "tokens_per_minute":"90000", "password_min_length": 12}"#,
            "docker run -u 1000:1000 --user 0:0 shop",
            "https://shop.example/export?key=orders&code=de&sign=plus",
            "https://shop.example/export?key=open-orders",
        ] {
            assert_eq!(mask_text(text), text);
        }
        for (key, value) in [
            ("llm.max_tokens", "4096"),
            ("llm.tokenizer", "bpe"),
            ("wechat.readTimeoutMilliseconds", "90"),
        ] {
            assert_eq!(mask_value(key, value), value, "{key}");
        }
    }

    #[test]
    fn name_of_a_number_hides_what_is_no_number() {
        for (text, shown) in [
            ("max_tokens=hunter2", "max_tokens=***"),
            ("token=4711", "token=***"),
            ("tokens=4711", "tokens=***"),
            ("password=12345678", "password=***"),
            ("curl -u 1000:hunter2 x", "curl -u 1000:*** x"),
            ("curl -u 4711:12345678 x", "curl -u 4711:*** x"),
            ("https://x/?key=AIzaSyD-9tSrke72PouQMnMX", "https://x/?key=***"),
            ("https://x/?key=qwertyuiopasdfghjklz", "https://x/?key=***"),
            ("https://x/?code=123456", "https://x/?code=***"),
            ("https://x/webhook/send?key=orders", "https://x/webhook/send?key=***"),
        ] {
            assert_eq!(mask_text(text), shown);
        }
        assert_eq!(mask_value("llm.max_tokens", "sk-hunter2"), MASK);
    }

    #[test]
    fn encoded_user_and_password_is_masked() {
        for (text, shown) in [
            ("Authorization: Basic dTpw", "Authorization: Basic ***"),
            ("curl -H 'X-Auth-Proxy: Basic amFuZTpwdw=='", "curl -H 'X-Auth-Proxy: Basic ***'"),
            ("sent Basic dTpw today", "sent Basic *** today"),
            ("sent Basic amFuZTpwdw==", "sent Basic ***"),
            ("header=amFuZTpodW50ZXIy", "header=***"),
        ] {
            assert_eq!(mask_text(text), shown);
        }
        for text in ["Basic settlement of orders", "Basic accounting", "path=aGVsbG8gd29ybGQ="] {
            assert_eq!(mask_text(text), text);
        }
    }

    #[test]
    fn reference_to_a_secret_is_shown() {
        for (key, value) in [
            ("email.password", "secret:mail"),
            ("elasticjob.http.header.Authorization", "Bearer secret:shop"),
            (
                "wechat.webhook",
                "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=secret:wechat",
            ),
            ("http.uri", "https://jane:secret:shop@host/x?token=secret:other"),
            ("http.uri", "https://hooks.slack.com/secret:slack"),
        ] {
            assert_eq!(mask_value(key, value), value);
        }
        assert_eq!(mask_value("email.password", "hunter2 secret:mail"), MASK);
        assert_eq!(
            mask_value("wechat.webhook", "https://x/send?key=hunter2&sign=secret:x"),
            "https://x/send?key=***&sign=secret:x"
        );
    }

    #[test]
    fn masked_value_stands_for_the_stored_one_only_if_nothing_else_changed() {
        let stored = Job::named("j")
            .unwrap()
            .parameter("https://u:hunter2@shop/x")
            .prop("email.password", "hunter2")
            .unwrap()
            .prop("plain", "a***b")
            .unwrap();
        let restore = |key: &str, sent: &str| restore_masked(Some(&stored), key, sent.to_owned());

        assert_eq!(restore("props.email.password", "***").unwrap(), "hunter2");
        assert_eq!(restore("jobParameter", "https://u:***@shop/x").unwrap(), stored.parameter);
        assert_eq!(restore("jobParameter", "***").unwrap(), stored.parameter);
        assert_eq!(restore("props.plain", "a***b").unwrap(), "a***b");
        assert_eq!(restore("props.plain", "a***c").unwrap(), "a***c", "literal stars");
        let moved = restore("jobParameter", "https://u:***@attacker/x").unwrap_err();
        assert!(moved.problem.contains("differs"), "{moved}");
        for key in ["props.other.password", "props.plain2", "description"] {
            let missing = restore(key, "***").unwrap_err();
            assert!(missing.problem.contains("no value is stored"), "{missing}");
        }
        assert!(restore_masked(None, "props.http.uri", "http://x?key=***".to_owned()).is_err());
    }

    #[test]
    fn long_text_of_names_is_masked_in_one_pass() {
        // Each name would have the rest of the text as its value.
        let text = "token=".repeat(500_000);
        assert_eq!(mask_text(&text), "token=***");
        let references = "secret:a ".repeat(300_000);
        assert_eq!(mask_value("password", &references), references);
    }

    proptest! {
        #[test]
        fn any_text_is_masked_without_a_panic_and_only_once(text in r"[ -~é\n]{0,60}") {
            let shown = mask_text(&text).into_owned();
            let _ = mask_value("password", &text);

            prop_assert_eq!(mask_text(&shown), shown.as_str());
        }
    }
}
