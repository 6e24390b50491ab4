//! Whether a guest's `format` files say what the module's file says.

use formats::Violation;

use super::format::{FormatField, FormatFile};
use super::model::{Event, Module};

/// All differences between a module and the `format` files of its events, each at its line in the text of
/// the format files: first the events without a format file, at line 1 and in the module's order, then the others by line.
/// Each message begins with the event's name.
///
/// Format files do not name a system: events that share a name are taken in the module's order.
pub fn format_violations(module: &Module, formats: &[FormatFile]) -> Vec<Violation> {
    let mut left: Vec<&FormatFile> = formats.iter().collect();
    let mut pairs = Vec::new();
    let mut found = Vec::new();
    for event in module.events() {
        match left.iter().position(|format| format.name == event.name) {
            Some(at) => pairs.push((event, left.remove(at))),
            None => {
                let message =
                    format!("{}: the module has this event, but no format file was captured", event.name);
                found.push(Violation { line: 1, message });
            }
        }
    }
    let missing = found.len();
    for format in left {
        let message = format!("{}: the module has no such event", format.name);
        found.push(Violation { line: format.line, message });
    }
    pairs.iter().for_each(|(event, format)| compare(module, event, format, &mut found));
    found[missing..].sort_by_key(|violation| violation.line);
    found
}

fn compare(module: &Module, event: &Event, format: &FormatFile, found: &mut Vec<Violation>) {
    let mut differ = |line: usize, what: String| {
        found.push(Violation { line, message: format!("{}: {what}", event.name) });
    };
    let shown = module.shown_print_format(event);
    let expected = shown.trim_end_matches('\n');
    if expected != format.print_format {
        let same = expected.chars().zip(format.print_format.chars()).take_while(|(a, b)| a == b).count();
        let what = format!(
            "the print format differs from character {} on\n  module: {expected}\n  guest:  {}",
            same + 1,
            format.print_format
        );
        differ(format.print_line, what);
    }
    // The first field is after those that all events have.
    let mut end =
        format.common.iter().map(|field| field.offset.saturating_add(field.size)).max().unwrap_or(0);
    let mut shown = format.fields.iter();
    for field in &event.fields {
        let align = u64::from(field.align.max(1));
        let offset = end.checked_next_multiple_of(align).unwrap_or(u64::MAX);
        end = offset.saturating_add(u64::from(field.size));
        let declarations = module.shown_field(field);
        let Some(guest) = shown.next() else {
            differ(format.line, format!("the guest has no field `{}`", declarations[0]));
            continue;
        };
        let mut expect = |what: &str, module: String, guest_has: String| {
            let what = format!(
                "{what} of field `{}` is {module} in the module, {guest_has} in the guest",
                field.name
            );
            if module != guest_has {
                differ(guest.line, what);
            }
        };
        if !declarations.contains(&guest.declaration) {
            expect("the declaration", format!("`{}`", declarations[0]), format!("`{}`", guest.declaration));
        }
        let sign = |signed: bool| if signed { "signed" } else { "unsigned" }.to_owned();
        expect("the offset", offset.to_string(), guest.offset.to_string());
        expect("the size", field.size.to_string(), guest.size.to_string());
        expect("the sign", sign(field.signed), sign(guest.signed));
    }
    for FormatField { declaration, line, .. } in shown {
        differ(*line, format!("the module has no field `{declaration}`"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::read_formats;
    use super::super::testing::{Elf, PPC, sample};
    use super::*;

    fn formats() -> String {
        let file = |name: &str, value: &str| {
            format!(
                "name: {name}\nID: 1\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
                 \tfield:char foo[10];\toffset:8;\tsize:10;\tsigned:0;\n\
                 \tfield:int bar;\toffset:20;\tsize:4;\tsigned:1;\n\n\
                 print fmt: \"foo %s %d\", REC->foo, {value}\n"
            )
        };
        file("foo_bar", "8") + &file("foo_late", "8") + &file("sched_switch", "ZOO")
    }

    fn violations_after(from: &str, to: &str) -> Vec<(usize, String)> {
        let module = Module::parse(&sample(Elf::new(PPC))).expect("a module");
        let text = formats();
        assert!(text.contains(from), "{from}");
        let formats = read_formats(text.replacen(from, to, 1).as_bytes()).expect("format files");
        format_violations(&module, &formats).into_iter().map(|d| (d.line, d.message)).collect()
    }

    #[test]
    fn equal_format_files_have_no_violation() {
        assert_eq!(violations_after("", ""), []);
    }

    #[test]
    fn event_of_one_side_only_is_a_violation() {
        let expected = [
            (1, "foo_late: the module has this event, but no format file was captured".to_owned()),
            (10, "foo_other: the module has no such event".to_owned()),
        ];
        assert_eq!(violations_after("name: foo_late", "name: foo_other"), expected);
    }

    #[test]
    fn different_print_format_is_a_violation_with_its_place() {
        let expected = "\
foo_bar: the print format differs from character 24 on
  module: \"foo %s %d\", REC->foo, 8
  guest:  \"foo %s %d\", REC->foo, ZOO";
        assert_eq!(violations_after("foo, 8", "foo, ZOO"), [(9, expected.to_owned())]);
    }

    #[test]
    fn different_field_is_a_violation() {
        let one = |from: &str, to: &str, line: usize, message: &str| {
            assert_eq!(violations_after(from, to), [(line, format!("foo_bar: {message}"))]);
        };
        let declared =
            "the declaration of field `foo` is `char foo[10]` in the module, `char foo[9]` in the guest";
        one("char foo[10]", "char foo[9]", 6, declared);
        one("size:10", "size:9", 6, "the size of field `foo` is 10 in the module, 9 in the guest");
        one("offset:20", "offset:18", 7, "the offset of field `bar` is 20 in the module, 18 in the guest");
        let sign = "the sign of field `foo` is unsigned in the module, signed in the guest";
        one("signed:0", "signed:1", 6, sign);
        let bar = "\tfield:int bar;\toffset:20;\tsize:4;\tsigned:1;\n";
        one(bar, "", 1, "the guest has no field `int bar`");
        let more = "\tfield:u8 x;\toffset:24;\tsize:1;\tsigned:0;\n\nprint";
        one("\nprint", more, 8, "the module has no field `u8 x`");
    }
}
