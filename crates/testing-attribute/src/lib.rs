//! The attribute of a test that measures. An attribute needs a crate of its own.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Hands the body of a test to `crate::support::measured`, which judges a failure: it may be the machine's.
///
/// `#[test] #[measures] fn name() { body }` becomes `#[test] fn name() { crate::support::measured(|| { body }) }`.
#[proc_macro_attribute]
pub fn measures(_: TokenStream, test: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = test.into_iter().collect();
    // The last token of a function is its body.
    if let Some(TokenTree::Group(body)) = tokens.last_mut() {
        let closure: TokenStream = "||".parse().expect("two bars");
        let arguments = closure.into_iter().chain([TokenTree::Group(body.clone())]);
        let arguments = Group::new(Delimiter::Parenthesis, arguments.collect());
        let call: TokenStream = "crate::support::measured".parse().expect("a path");
        let call = call.into_iter().chain([TokenTree::Group(arguments)]);
        *body = Group::new(Delimiter::Brace, call.collect());
    }
    tokens.into_iter().collect()
}
