//! Parses the arguments of the attribute: `key`, `key = value` and `key(…)`, separated by commas.

use syn::{
    Error, Ident, Lit, LitStr, Result, Token, ext::IdentExt, parenthesized, parse::ParseStream,
    punctuated::Punctuated, token,
};

/// One parsed argument.
pub(crate) struct Argument {
    pub(crate) key: Ident,
    pub(crate) value: Value,
}

/// The value of an argument.
pub(crate) enum Value {
    /// No value: `failover`.
    Bare,
    /// `= "text"`, `= 3`, `= true`.
    Literal(Lit),
    /// `("one", "two")`.
    Texts(Vec<LitStr>),
    /// `(email.host = "mail", "odd-key" = "text")`.
    Pairs(Vec<(LitStr, LitStr)>),
}

impl Argument {
    /// An error that points to the value, or to the key if the value has no single location.
    pub(crate) fn error(&self, problem: String) -> Error {
        match &self.value {
            Value::Literal(literal) => Error::new_spanned(literal, problem),
            Value::Bare | Value::Texts(_) | Value::Pairs(_) => {
                Error::new_spanned(&self.key, problem)
            }
        }
    }
}

/// Parses all arguments. Unknown keys and wrong values are not errors here; see `keys`.
pub(crate) fn parse_arguments(input: ParseStream<'_>) -> Result<Vec<Argument>> {
    Ok(Punctuated::<Argument, Token![,]>::parse_terminated_with(input, parse_argument)?
        .into_iter()
        .collect())
}

fn parse_argument(input: ParseStream<'_>) -> Result<Argument> {
    if !input.peek(Ident::peek_any) {
        return Err(input.error(
            "expected a key; hint: for example #[elasticjob::job(cron = \"0 0 2 * * ?\", shards = 3, failover)]",
        ));
    }
    let key = input.call(Ident::parse_any)?;
    let value = if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        Value::Literal(parse_literal(input, &key)?)
    } else if input.peek(token::Paren) {
        parse_list(input)?
    } else {
        Value::Bare
    };
    if !input.is_empty() && !input.peek(Token![,]) {
        return Err(input.error(format!("a comma is missing after `{key}`")));
    }
    Ok(Argument { key, value })
}

fn parse_literal(input: ParseStream<'_>, key: &Ident) -> Result<Lit> {
    let at = input.span();
    input.parse().map_err(|_| {
        Error::new(at, format!("`{key}` takes a literal; hint: a string, a number, true or false"))
    })
}

/// Parses strings, or pairs of key and string. Empty parentheses are an empty list of pairs.
fn parse_list(input: ParseStream<'_>) -> Result<Value> {
    let content;
    parenthesized!(content in input);
    if content.peek(LitStr) && !content.peek2(Token![=]) {
        let texts = Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?;
        return Ok(Value::Texts(texts.into_iter().collect()));
    }
    let pairs = Punctuated::<_, Token![,]>::parse_terminated_with(&content, parse_pair)?;
    Ok(Value::Pairs(pairs.into_iter().collect()))
}

/// `email.host = "mail"` or `"email.host" = "mail"`.
fn parse_pair(input: ParseStream<'_>) -> Result<(LitStr, LitStr)> {
    let key = if input.peek(LitStr) {
        input.parse()?
    } else {
        let first = input.call(Ident::parse_any)?;
        let mut path = first.unraw().to_string();
        while input.peek(Token![.]) {
            input.parse::<Token![.]>()?;
            path.push('.');
            path.push_str(&input.call(Ident::parse_any)?.unraw().to_string());
        }
        LitStr::new(&path, first.span())
    };
    let expected_pair = |error: Error| {
        let problem =
            format!("a property is a key and a string; hint: write {} = \"…\"", key.value());
        Error::new(error.span(), problem)
    };
    input.parse::<Token![=]>().map_err(expected_pair)?;
    let value = input.parse().map_err(expected_pair)?;
    Ok((key, value))
}
