//! What a Rust source refers to: its paths, the types that it defines, the macros that it calls.
//!
//! Works on tokens, so that comments and strings cannot mislead it, and knows what code is for tests only. Knows no
//! crate and no rule.

use std::str::FromStr;

use proc_macro2::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree};

/// One source, or one inline module of it.
#[derive(Debug, Default)]
pub struct Source {
    pub paths: Vec<CodePath>,
    pub types: Vec<PublicType>,
    pub macros: Vec<MacroCall>,
    /// Modules that are compiled for tests only, by their path in the crate.
    pub test_modules: Vec<Vec<String>>,
    /// Modules written inside this source.
    pub inline_modules: Vec<Vec<String>>,
}

/// A path of at least two parts, as in `use a::b` or `a::b(c)`; a tree of a `use` gives one for each leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePath {
    /// The module that the path is written in.
    pub module: Vec<String>,
    pub parts: Vec<String>,
    pub kind: PathKind,
    pub line: usize,
    pub in_test: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathKind {
    /// `use PATH as NAME`, whose name others may reach through this module.
    Import { name: String, public: bool },
    /// Part of an item or expression.
    Code,
}

#[derive(Debug)]
pub struct PublicType {
    pub name: String,
    pub line: usize,
    pub in_test: bool,
}

#[derive(Debug)]
pub struct MacroCall {
    pub name: String,
    pub line: usize,
    pub in_test: bool,
}

impl Source {
    /// Read the source of `module`.
    pub fn parse(text: &str, module: &[String]) -> Source {
        let tokens = TokenStream::from_str(text).unwrap_or_else(|e| panic!("failed to read {module:?}: {e}"));
        let mut reader = Reader { source: Source::default(), module: module.to_vec() };
        reader.items(tokens, false);
        reader.source
    }
}

struct Reader {
    source: Source,
    module: Vec<String>,
}

impl Reader {
    fn items(&mut self, tokens: TokenStream, in_test: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        // From an attribute `#[cfg(test)]` to the end of its item.
        let mut item_in_test = false;
        let mut public = false;
        while at < tokens.len() {
            let here = in_test || item_in_test;
            let is_item_end = match &tokens[at] {
                TokenTree::Punct(punct) => punct.as_char() == ';',
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                _ => false,
            };
            match &tokens[at] {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if let Some(TokenTree::Group(group)) = tokens.get(at + 1) {
                        item_in_test |= is_cfg_test(group);
                    }
                }
                TokenTree::Ident(ident) if ident == "use" && starts_item(&tokens, at) => {
                    let end =
                        (at..tokens.len()).find(|at| is_punct(&tokens[*at], ';')).unwrap_or(tokens.len());
                    let start = CodePath {
                        module: self.module.clone(),
                        parts: Vec::new(),
                        kind: PathKind::Import { name: String::new(), public },
                        line: line(ident.span()),
                        in_test: here,
                    };
                    self.use_tree(&tokens[at + 1..end], &start);
                    (at, item_in_test, public) = (end + 1, false, false);
                    continue;
                }
                TokenTree::Ident(ident) if ident == "mod" => {
                    if let Some(TokenTree::Ident(name)) = tokens.get(at + 1) {
                        self.module.push(name.to_string());
                        if here {
                            self.source.test_modules.push(self.module.clone());
                        }
                        if let Some(TokenTree::Group(body)) = tokens.get(at + 2) {
                            self.source.inline_modules.push(self.module.clone());
                            self.items(body.stream(), here);
                        }
                        self.module.pop();
                        (at, item_in_test, public) = (at + 3, false, false);
                        continue;
                    }
                }
                TokenTree::Ident(ident) => {
                    let (length, parts) = path_at(&tokens[at..]);
                    if parts.len() > 1 {
                        self.source.paths.push(CodePath {
                            module: self.module.clone(),
                            parts,
                            kind: PathKind::Code,
                            line: line(ident.span()),
                            in_test: here,
                        });
                    }
                    let last = at + length - 1;
                    self.word(&tokens[last..], public, here);
                    public |= ident == "pub";
                    at = last + 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    self.items(group.stream(), here);
                    // `pub(crate)` is not public.
                    public = false;
                }
                _ => {}
            }
            if is_item_end {
                (item_in_test, public) = (false, false);
            }
            at += 1;
        }
    }

    /// Look at a word that is not the start of a path: a type's keyword, or the name of a macro.
    fn word(&mut self, tokens: &[TokenTree], public: bool, in_test: bool) {
        let TokenTree::Ident(word) = &tokens[0] else { return };
        let line = line(word.span());
        match tokens.get(1) {
            Some(TokenTree::Punct(punct)) if punct.as_char() == '!' && punct.spacing() == Spacing::Alone => {
                self.source.macros.push(MacroCall { name: word.to_string(), line, in_test });
            }
            Some(TokenTree::Ident(name))
                if public && ["struct", "enum", "union", "trait", "type"].iter().any(|k| word == k) =>
            {
                self.source.types.push(PublicType { name: name.to_string(), line, in_test });
            }
            _ => {}
        }
    }

    /// Add the leaves of a `use` tree.
    fn use_tree(&mut self, tokens: &[TokenTree], before: &CodePath) {
        let mut path = before.clone();
        let mut name = None;
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    name = tokens.get(at + 1).map(ToString::to_string);
                    break;
                }
                TokenTree::Ident(word) => path.parts.push(word.to_string()),
                TokenTree::Punct(punct) if punct.as_char() == '*' => path.parts.push("*".to_owned()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    for tree in inner.split(|token| is_punct(token, ',')).filter(|tree| !tree.is_empty()) {
                        self.use_tree(tree, &path);
                    }
                    return;
                }
                _ => {}
            }
        }
        // `a::{self}` names `a`.
        if path.parts.len() > 1 && path.parts.last().is_some_and(|last| last == "self") {
            path.parts.pop();
        }
        let name = name.or_else(|| path.parts.last().cloned()).unwrap_or_default();
        if let PathKind::Import { name: imported, .. } = &mut path.kind {
            *imported = name;
        }
        self.source.paths.push(path);
    }
}

/// The path that begins with the first token: how many tokens it has, and its parts.
fn path_at(tokens: &[TokenTree]) -> (usize, Vec<String>) {
    let mut parts = vec![tokens[0].to_string()];
    let mut at = 1;
    while let [first, second, TokenTree::Ident(word), ..] = &tokens[at..] {
        if !is_punct(first, ':') || !is_punct(second, ':') {
            break;
        }
        parts.push(word.to_string());
        at += 3;
    }
    (at, parts)
}

/// Whether a `use` here begins an item; in `impl use<'a>` bounds it does not.
fn starts_item(tokens: &[TokenTree], at: usize) -> bool {
    tokens.get(at + 1).is_some_and(|next| !is_punct(next, '<'))
}

/// Whether this is the group of `#[cfg(test)]`, or of a condition that names tests.
fn is_cfg_test(group: &Group) -> bool {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let [TokenTree::Ident(cfg), TokenTree::Group(condition)] = tokens.as_slice() else { return false };
    let text = condition.to_string();
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    cfg == "cfg" && !text.contains("not") && words.into_iter().any(|word| word == "test" || word == "testing")
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn line(span: Span) -> usize {
    span.start().line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let source = Source::parse(text, &["m".to_owned()]);
        let show = |path: &CodePath| {
            let test = if path.in_test { " in a test" } else { "" };
            format!("{}: {}: {}{test}", path.line, path.module.join("::"), path.parts.join("::"))
        };
        source.paths.iter().map(show).collect()
    }

    #[test]
    fn use_tree_gives_each_leaf() {
        assert_eq!(
            shown("use a::{self, b::{C, D as E}, f::*};\npub use super::g;"),
            ["1: m: a", "1: m: a::b::C", "1: m: a::b::D", "1: m: a::f::*", "2: m: super::g"]
        );
    }

    #[test]
    fn paths_in_code_macros_and_attributes_are_found() {
        assert_eq!(
            shown("// a::b\n#[derive(c::D)]\nfn f(x: &e::F) { g!(\"h::i\", j::k::<l::M>()) }"),
            ["2: m: c::D", "3: m: e::F", "3: m: j::k", "3: m: l::M"]
        );
    }

    #[test]
    fn code_for_tests_is_marked() {
        assert_eq!(
            shown(
                "#[cfg(test)]\nuse a::b;\nuse c::d;\n#[cfg(test)]\nmod tests { use super::e; }\nfn f() { g::h() }"
            ),
            ["2: m: a::b in a test", "3: m: c::d", "5: m::tests: super::e in a test", "6: m: g::h"]
        );
    }

    #[test]
    fn public_types_and_macros_are_found() {
        let source = Source::parse(
            "pub struct A; pub(crate) enum B {} struct C; pub trait D {} fn f(){ println!() }",
            &[],
        );
        assert_eq!(source.types.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["A", "D"]);
        assert_eq!(source.macros.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["println"]);
    }
}
