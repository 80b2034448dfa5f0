//! Lines of production code: lines with at least one token that is neither a comment nor a doc comment.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::{Item, ItemMod};

use crate::source::{Module, attributes, is_test};

/// The lines of code in a file, without test items.
pub(crate) fn code_lines(module: &Module) -> usize {
    let Ok(tokens) = module.text.parse::<TokenStream>() else { return 0 };
    let mut lines = BTreeSet::new();
    add_lines(tokens, &mut lines);
    if let Ok(file) = syn::parse_file(&module.text) {
        for range in file.items.iter().flat_map(test_ranges) {
            lines.retain(|line| !range.contains(line));
        }
    }
    lines.len()
}

fn add_lines(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                // A doc comment becomes `#[doc = "..."]`, each token with the span of the whole comment.
                if let Some(TokenTree::Punct(bang)) = tokens.peek()
                    && bang.as_char() == '!'
                    && is_comment(&punct.span(), &bang.span())
                {
                    tokens.next();
                }
                match tokens.peek() {
                    Some(TokenTree::Group(group))
                        if group.delimiter() == Delimiter::Bracket
                            && is_comment(&punct.span(), &group.span()) =>
                    {
                        tokens.next();
                    }
                    _ => add_span(punct.span(), lines),
                }
            }
            TokenTree::Group(group) => {
                add_span(group.span_open(), lines);
                add_lines(group.stream(), lines);
                add_span(group.span_close(), lines);
            }
            other => add_span(other.span(), lines),
        }
    }
}

fn is_comment(first: &proc_macro2::Span, second: &proc_macro2::Span) -> bool {
    first.start() == second.start() && first.end() == second.end()
}

fn add_span(span: proc_macro2::Span, lines: &mut BTreeSet<usize>) {
    lines.extend(span.start().line..=span.end().line);
}

fn test_ranges(item: &Item) -> Vec<std::ops::RangeInclusive<usize>> {
    if is_test(attributes(item)) {
        let span = item.span();
        return vec![span.start().line..=span.end().line];
    }
    match item {
        Item::Mod(ItemMod { content: Some((_, items)), .. }) => items.iter().flat_map(test_ranges).collect(),
        Item::Impl(block) => {
            let tests = block.items.iter().filter(|item| match item {
                syn::ImplItem::Fn(method) => is_test(&method.attrs),
                _ => false,
            });
            tests.map(|item| item.span().start().line..=item.span().end().line).collect()
        }
        _ => Vec::new(),
    }
}
