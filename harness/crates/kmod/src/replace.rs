//! What the kernel makes of a module's texts when the module is loaded.
//!
//! It puts values in the place of names in print formats, and takes attributes out of types
//! (`trace_event_update_all` and what it calls, kernel/trace/trace_events.c, Linux 7.2). Done here as
//! there, byte by byte: where the kernel does not look, such as at the byte after a number, nothing
//! is looked at here.
//!
//! This is a port of the kernel's own code, from Linux 7.2.12, and has to be compared with it at each
//! release: `update_event_printk`, `sanitize_field_type`, `trace_event_update_all` and `f_show` in
//! kernel/trace/trace_events.c, `trace_event_update_with_eval_map` in kernel/trace/trace.c. A difference
//! shows as a failure of the case sample-trace/formats.

use super::model::{Eval, Event, Field, Module};

impl Module {
    /// What the event's `format` file shows after `print fmt: ` when the module is loaded.
    ///
    /// Names are replaced outside of quotes and as whole words, only those that the event's own system
    /// defines, and not in what begins with another word and goes on with `.` or `->`.
    pub fn shown_print_format(&self, event: &Event) -> String {
        let mut text = event.print_format.clone().into_bytes();
        for eval in self.evals.iter().filter(|eval| eval.system_at == event.system_at) {
            replace(&mut text, eval);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// What the event's `format` file shows after `field:` (`f_show`, same file). Attributes are
    /// taken out when the module has any name to replace; without one, it depends on how the kernel
    /// was built (`trace_event_update_with_eval_map`, kernel/trace/trace.c), and both are returned.
    pub(super) fn shown_field(&self, field: &Field) -> Vec<String> {
        let plain = shown(&without_attributes(&field.type_name), field);
        let raw = shown(&field.type_name, field);
        if self.evals.is_empty() && raw != plain { vec![raw, plain] } else { vec![plain] }
    }
}

/// `TYPE NAME`, with an array's length after the name. The text after `__rel_loc` is taken for an
/// array without a length, that after `__data_loc` is not.
fn shown(type_name: &str, field: &Field) -> String {
    let bracket = type_name.find('[').filter(|_| !type_name.starts_with("__data_loc"));
    let Some(bracket) = bracket else { return format!("{type_name} {}", field.name) };
    let element = &type_name[..bracket];
    // The kernel's number is an `int`.
    match field.length as i32 {
        0 => format!("{element} {}[]", field.name),
        length => format!("{element} {}[{length}]", field.name),
    }
}

/// `update_event_printk`. The kernel also goes on after the end of a text that ends in a replaced
/// name; what it does there is not part of this text.
fn replace(text: &mut Vec<u8>, eval: &Eval) {
    let name = eval.string.as_bytes();
    let value = eval.value.to_string().into_bytes();
    let mut quoted = false;
    let mut at = 0;
    loop {
        let byte = |at: usize| text.get(at).copied().unwrap_or(0);
        let first = byte(at);
        if at >= text.len() {
            return;
        }
        if first == b'\\' {
            at += 1;
        } else if first == b'"' {
            quoted = !quoted;
        } else if !quoted && first.is_ascii_digit() {
            while is_alnum(byte(at)) {
                at += 1;
            }
        } else if !quoted && is_word(first) {
            let whole = !is_word(byte(at + name.len()));
            if text[at..].starts_with(name) && whole {
                if name.len() < value.len() {
                    return;
                }
                text.splice(at..at + name.len(), value.iter().copied());
                at += value.len();
            } else {
                at = after_word(text, at);
            }
        }
        at += 1;
    }
}

/// Past a word, and past all that is joined to it by `.` and `->`. The first byte after a joint is
/// passed whatever it is.
fn after_word(text: &[u8], start: usize) -> usize {
    let byte = |at: usize| text.get(at).copied().unwrap_or(0);
    let mut at = start;
    loop {
        at += 1;
        while is_word(byte(at)) {
            at += 1;
        }
        match (byte(at), byte(at + 1)) {
            (b'.', _) => at += 1,
            (b'-', b'>') => at += 2,
            _ => return at,
        }
        if at >= text.len() {
            return at;
        }
    }
}

/// `sanitize_field_type`: the type without `__attribute__(...)`, and as it is when a parenthesis has
/// no end.
fn without_attributes(type_name: &str) -> String {
    const ATTRIBUTE: &str = "__attribute__(";
    let mut text = type_name.to_owned();
    let mut next = 0;
    while let Some(found) = text[next..].find(ATTRIBUTE) {
        let at = next + found;
        let inside = at + ATTRIBUTE.len();
        // Part of another word. The first one looked at is not, whatever is before it.
        if at != next && !text.as_bytes()[at - 1].is_ascii_whitespace() {
            next = inside;
            continue;
        }
        let mut depth = 1_usize;
        let end = text[inside..].bytes().position(|byte| {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let Some(end) = end else { return type_name.to_owned() };
        let rest = &text[inside + end + 1..];
        let spaces = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_whitespace()).len();
        text.replace_range(at..inside + end + 1 + spaces, "");
        next = at;
    }
    text
}

/// What the kernel's `isalpha` holds for (lib/ctype.c): Latin-1.
fn is_alpha(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || (byte >= 0xc0 && byte != 0xd7 && byte != 0xf7)
}

fn is_alnum(byte: u8) -> bool {
    is_alpha(byte) || byte.is_ascii_digit()
}

fn is_word(byte: u8) -> bool {
    is_alnum(byte) || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Elf, X86, sample};
    use super::*;

    fn replaced(text: &str, string: &str, value: i64) -> String {
        let module = Module::parse(&sample(Elf::new(X86))).expect("a module");
        let mut event = module.events[1].clone();
        assert_eq!(event.system, "sample-trace");
        event.print_format = text.to_owned();
        let eval = Eval { string: string.to_owned(), value, ..module.evals[0].clone() };
        Module { evals: vec![eval], ..module }.shown_print_format(&event)
    }

    #[test]
    fn name_is_replaced_as_a_whole_word_and_outside_of_quotes() {
        let zoo = |text: &str| replaced(text, "ZOO", 8);
        assert_eq!(zoo(r#""ZOO %d \" ZOO", { ZOO, "ZOO" }, ZOO"#), r#""ZOO %d \" ZOO", { 8, "ZOO" }, 8"#);
        assert_eq!(zoo("AZOO ZOOA ZOO_ _ZOO ZOO1 (ZOO)"), "AZOO ZOOA ZOO_ _ZOO ZOO1 (8)");
        assert_eq!(zoo("REC->ZOO a.ZOO a.b->ZOO a - >ZOO ZOO->a ZOO.ZOO"), {
            "REC->ZOO a.ZOO a.b->ZOO a - >8 8->a 8.8"
        });
        assert_eq!(zoo("ZOO|ZOO"), "8|8");
        assert_eq!(zoo(""), "");
    }

    #[test]
    fn byte_after_a_word_or_a_number_is_not_looked_at() {
        // The quote after the word is skipped, and the one after the next name opens a text.
        assert_eq!(replaced("a\"ZOO ZOO\" ZOO", "ZOO", 8), "a\"8 8\" 8");
        assert_eq!(replaced("10ULL\"ZOO\" \"ZOO", "ZOO", 8), "10ULL\"8\" \"ZOO");
    }

    #[test]
    fn value_longer_than_its_name_is_not_put_in() {
        assert_eq!(replaced("ZOO + AB", "AB", 100), "ZOO + AB");
        assert_eq!(replaced("ZOO + AB", "ZOO", -10), "-10 + AB");
    }

    #[test]
    fn sizes_are_replaced_like_names() {
        assert_eq!(
            replaced("a / sizeof(struct x), sizeof(int)", "sizeof(struct x)", 24),
            "a / 24, sizeof(int)"
        );
    }

    #[test]
    fn only_the_names_of_its_own_system_are_replaced_in_an_event() {
        let module = Module::parse(&sample(Elf::new(X86))).expect("a module");
        let shown: Vec<_> = module.events().iter().map(|event| module.shown_print_format(event)).collect();
        let with = |value: &str| format!(r#""foo %s %d", REC->foo, {value}"#);
        assert_eq!(shown, [with("ZOO"), with("8"), with("8")]);
    }

    #[test]
    fn attributes_are_taken_out_of_types() {
        let same = ["char[10]", "a__attribute__((x))", "int __attribute__((x) *"];
        same.iter().for_each(|text| assert_eq!(without_attributes(text), *text));
        assert_eq!(without_attributes("char __attribute__((btf_type_tag(\"user\"))) *"), "char *");
        assert_eq!(without_attributes("__attribute__((a)) __attribute__((b))int"), "int");
    }

    #[test]
    fn field_is_shown_with_its_length_after_its_name() {
        let shown = |type_name: &str, length: u32| {
            let (name, type_name) = ("x".to_owned(), type_name.to_owned());
            super::shown(
                &type_name.clone(),
                &Field { type_name, name, size: 4, align: 4, signed: false, length },
            )
        };
        assert_eq!(shown("int", 0), "int x");
        assert_eq!(shown("char[A_LEN]", 10), "char x[10]");
        assert_eq!(shown("__data_loc char[]", 0), "__data_loc char[] x");
        assert_eq!(shown("__rel_loc char[]", 0), "__rel_loc char x[]");
        assert_eq!(shown("int[2][3]", 2), "int x[2]");
    }
}
