//! What stands in the parentheses: `key`, `key = value`, `key(…)`, with commas in between.

use syn::{
    Error, Ident, Lit, LitStr, Result, Token, ext::IdentExt, parenthesized, parse::ParseStream,
    punctuated::Punctuated, token,
};

/// One argument as it was written.
pub(crate) struct Argument {
    pub(crate) key: Ident,
    pub(crate) value: Value,
}

/// What follows a key.
pub(crate) enum Value {
    /// Nothing: `failover`.
    Bare,
    /// `= "text"`, `= 3`, `= true`.
    Literal(Lit),
    /// `("one", "two")`.
    Texts(Vec<LitStr>),
    /// `(email.host = "mail", "odd-key" = "text")`.
    Pairs(Vec<(LitStr, LitStr)>),
}

impl Argument {
    /// A mistake in the value, told there.
    pub(crate) fn wrong(&self, problem: String) -> Error {
        match &self.value {
            Value::Literal(literal) => Error::new_spanned(literal, problem),
            Value::Bare | Value::Texts(_) | Value::Pairs(_) => {
                Error::new_spanned(&self.key, problem)
            }
        }
    }
}

/// All arguments. Only what cannot be read at all is an error here.
pub(crate) fn arguments(input: ParseStream<'_>) -> Result<Vec<Argument>> {
    Ok(Punctuated::<Argument, Token![,]>::parse_terminated_with(input, argument)?
        .into_iter()
        .collect())
}

fn argument(input: ParseStream<'_>) -> Result<Argument> {
    if !input.peek(Ident::peek_any) {
        return Err(input.error(
            "a key stands here; hint: for example #[elasticjob::job(cron = \"0 0 2 * * ?\", shards = 3, failover)]",
        ));
    }
    let key = input.call(Ident::parse_any)?;
    let value = if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        Value::Literal(literal(input, &key)?)
    } else if input.peek(token::Paren) {
        list(input)?
    } else {
        Value::Bare
    };
    if !input.is_empty() && !input.peek(Token![,]) {
        return Err(input.error(format!("a comma is missing after `{key}`")));
    }
    Ok(Argument { key, value })
}

fn literal(input: ParseStream<'_>, key: &Ident) -> Result<Lit> {
    let at = input.span();
    input.parse().map_err(|_| {
        Error::new(
            at,
            format!(
                "`{key}` takes a value that is written out; hint: a text in quotes, a number, true or false"
            ),
        )
    })
}

/// Texts, or pairs of them; empty parentheses are either.
fn list(input: ParseStream<'_>) -> Result<Value> {
    let content;
    parenthesized!(content in input);
    if content.peek(LitStr) && !content.peek2(Token![=]) {
        let texts = Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?;
        return Ok(Value::Texts(texts.into_iter().collect()));
    }
    let pairs = Punctuated::<_, Token![,]>::parse_terminated_with(&content, pair)?;
    Ok(Value::Pairs(pairs.into_iter().collect()))
}

/// `email.host = "mail"` or `"email.host" = "mail"`.
fn pair(input: ParseStream<'_>) -> Result<(LitStr, LitStr)> {
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
    let told = |error: Error| {
        let problem = format!(
            "a property is a key and a text in quotes; hint: write {} = \"…\"",
            key.value()
        );
        Error::new(error.span(), problem)
    };
    input.parse::<Token![=]>().map_err(told)?;
    let value = input.parse().map_err(told)?;
    Ok((key, value))
}
