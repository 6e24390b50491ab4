//! Guest files.

use std::fs;

use camino::Utf8Path;

use arch::Arch;

use super::description::{AccelSpec, Guest, GuestName, KernelSpec, KnownMessage, QemuSpec, Quirk};
use super::modules::ModuleSource;
use crate::Project;
use diagnostic::Diagnostic;
use regex::Regex;
use yaml::{Document, Fields, Node, Reader};

/// All guests of the project, in the order of their names.
///
/// # Errors
/// Every error of every guest file.
pub fn load_all(project: &Project) -> Result<Vec<Guest>, Vec<Diagnostic>> {
    let names = project
        .stems("guests", "yaml")
        .map_err(|e| vec![Diagnostic::whole_file("guests", format!("failed to list guests: {e}"))])?;
    let mut guests = Vec::new();
    let mut errors = Vec::new();
    for name in &names {
        let file = format!("guests/{name}.yaml");
        match fs::read_to_string(project.path(&file)) {
            Ok(text) => match read_guest(name, &file, &text, &project.path("guests")) {
                Ok(guest) => guests.push(guest),
                Err(found) => errors.extend(found),
            },
            Err(error) => errors.push(Diagnostic::whole_file(file, format!("failed to read guest: {error}"))),
        }
    }
    if names.is_empty() {
        errors.push(Diagnostic::whole_file("guests", "there is no guest: no guests/NAME.yaml"));
    }
    if errors.is_empty() {
        errors.extend(guests.iter().filter_map(|guest| wrong_decoder(guest, &guests)));
    }
    if errors.is_empty() { Ok(guests) } else { Err(errors) }
}

/// What is wrong with the guest that `guest` names to decode its recordings.
fn wrong_decoder(guest: &Guest, guests: &[Guest]) -> Option<Diagnostic> {
    let name = guest.decoder.as_ref()?;
    let message = match guests.iter().find(|other| other.name == *name) {
        None => format!("unknown guest `{name}` as decoder"),
        Some(other) if other.arch == guest.arch => {
            format!("guest `{name}` has the same architecture: name one that decodes elsewhere")
        }
        Some(_) => return None,
    };
    Some(Diagnostic::whole_file(format!("guests/{}.yaml", guest.name), message))
}

/// The guest that `text` describes, the text of a file in `directory`.
///
/// # Errors
/// Every error of the text.
pub fn read_guest(
    name: &str,
    file: &str,
    text: &str,
    directory: &Utf8Path,
) -> Result<Guest, Vec<Diagnostic>> {
    let document = Document::parse(file, text).map_err(|error| vec![error])?;
    let mut reader = Reader::new();
    let guest = guest(&mut reader, name, document.root(), directory);
    let errors = reader.into_errors();
    match guest {
        Some(guest) if errors.is_empty() => Ok(guest),
        _ => Err(errors),
    }
}

const KEYS: [&str; 12] = [
    "arch",
    "memory",
    "cpus",
    "console",
    "debian_arch",
    "qemu",
    "accelerators",
    "kernel",
    "decoder",
    "known_messages",
    "boot_errors",
    "modules",
];

fn guest(r: &mut Reader, name: &str, root: Node<'_>, directory: &Utf8Path) -> Option<Guest> {
    let f = r.fields(root, &KEYS)?;
    let arch = f.need(r, "arch").and_then(|node| arch(r, &node));
    let memory_mib = f.need(r, "memory").and_then(|node| r.number(&node, 64..=65_536));
    let cpus = f.need(r, "cpus").and_then(|node| r.number(&node, 1..=64));
    let console = f.need(r, "console").and_then(|node| r.line(&node));
    let debian_arch = f.need(r, "debian_arch").and_then(|node| r.line(&node));
    let qemu = f.need(r, "qemu").and_then(|node| qemu(r, node));
    let accelerators = f.need(r, "accelerators").and_then(|node| {
        let f = r.fields(node, &["tcg", "kvm"])?;
        let tcg = f.need(r, "tcg").and_then(|node| accelerator(r, node));
        let kvm = f.need(r, "kvm").and_then(|node| accelerator(r, node));
        Some((tcg?, kvm?))
    });
    let kernel = f.need(r, "kernel").and_then(|node| kernel(r, node));
    let decoder =
        f.get("decoder").map_or(Some(None), |node| r.line(&node).map(|name| Some(GuestName::new(&name))));
    let known_messages = messages(r, &f, "known_messages", &["pattern", "reason", "sometimes"]);
    let boot_errors = messages(r, &f, "boot_errors", &["pattern", "reason"]);
    let modules = match f.get("modules") {
        Some(node) => ModuleSource::read_list(r, &node, directory),
        None => Some(Vec::new()),
    };
    let (tcg, kvm) = accelerators?;
    Some(Guest {
        name: GuestName::new(name),
        arch: arch?,
        memory_mib: memory_mib?,
        cpus: cpus?,
        console: console?,
        debian_arch: debian_arch?,
        qemu: qemu?,
        tcg,
        kvm,
        kernel: kernel?,
        decoder: decoder?,
        known_messages: known_messages?,
        boot_errors: boot_errors?,
        modules: modules?,
    })
}

fn arch(r: &mut Reader, node: &Node<'_>) -> Option<Arch> {
    let table: Vec<(&str, Arch)> =
        Arch::names().filter_map(|name| Some((name, Arch::named(name)?))).collect();
    r.choice(node, "architecture", &table)
}

fn qemu(r: &mut Reader, node: Node<'_>) -> Option<QemuSpec> {
    let f = r.fields(node, &["binary", "package", "machine", "arguments"])?;
    let binary = f.need(r, "binary").and_then(|node| r.line(&node));
    let package = f.need(r, "package").and_then(|node| r.line(&node));
    let machine = f.need(r, "machine").and_then(|node| r.line(&node));
    let arguments = quirks(r, &f, "arguments");
    Some(QemuSpec { binary: binary?, package: package?, machine: machine?, arguments: arguments? })
}

fn accelerator(r: &mut Reader, node: Node<'_>) -> Option<AccelSpec> {
    let f = r.fields(node, &["cpu", "options", "machine", "arguments", "kernel_arguments"])?;
    let cpu = f.need(r, "cpu").and_then(|node| r.line(&node));
    let options = quirks(r, &f, "options");
    let machine = quirks(r, &f, "machine");
    let arguments = quirks(r, &f, "arguments");
    let kernel_arguments = quirks(r, &f, "kernel_arguments");
    Some(AccelSpec {
        cpu: cpu?,
        options: options?,
        machine: machine?,
        arguments: arguments?,
        kernel_arguments: kernel_arguments?,
    })
}

fn kernel(r: &mut Reader, node: Node<'_>) -> Option<KernelSpec> {
    let f = r.fields(node, &["make_arch", "cross", "image", "fragments", "arguments"])?;
    let make_arch = f.need(r, "make_arch").and_then(|node| r.line(&node));
    let cross = f.get("cross").map_or(Some(String::new()), |node| r.line(&node));
    let image = f.need(r, "image").and_then(|node| r.line(&node));
    let fragments = f.need(r, "fragments").and_then(|node| r.lines(&node));
    let arguments = quirks(r, &f, "arguments");
    Some(KernelSpec {
        make_arch: make_arch?,
        cross: cross?,
        image: image?,
        fragments: fragments?,
        arguments: arguments?,
    })
}

/// The quirks under `key`; none when the key is not there.
fn quirks(r: &mut Reader, fields: &Fields<'_>, key: &str) -> Option<Vec<Quirk>> {
    let Some(node) = fields.get(key) else { return Some(Vec::new()) };
    r.each(&node, |r, item| {
        let f = r.fields(item, &["set", "why"])?;
        let set = f.need(r, "set").and_then(|node| {
            let line = r.line(&node)?;
            let words = shell_words::split(&line).ok();
            if words.is_none() {
                r.report(node.error("a quote is not closed"));
            }
            words
        });
        let why = f.need(r, "why").and_then(|node| r.line(&node));
        Some(Quirk { set: set?, why: why? })
    })
}

/// The messages under `key`, each with these keys; none when the key is not there.
fn messages(r: &mut Reader, fields: &Fields<'_>, key: &str, keys: &[&str]) -> Option<Vec<KnownMessage>> {
    let Some(node) = fields.get(key) else { return Some(Vec::new()) };
    r.each(&node, |r, item| {
        let line = item.line();
        let f = r.fields(item, keys)?;
        let pattern = f.need(r, "pattern").and_then(|node| read_message_pattern(r, &node));
        let reason = f.need(r, "reason").and_then(|node| r.line(&node));
        let sometimes = f.optional(r, "sometimes", Reader::boolean);
        Some(KnownMessage {
            pattern: pattern?,
            reason: reason?,
            sometimes: sometimes?.unwrap_or(false),
            line,
        })
    })
}

/// A regular expression for a whole message of the kernel. One that matches any text is an error, as it would hide splats.
pub fn read_message_pattern(r: &mut Reader, node: &Node<'_>) -> Option<String> {
    let pattern = r.line(node)?;
    match Regex::new(&format!("^(?:{pattern})$")).and_then(|whole| Regex::new(&pattern).map(|_| whole)) {
        Ok(whole) if whole.is_match("") || whole.is_match("WARNING: a.c:1 at f+0x1/0x2") => {
            r.report(node.error(format!("`{pattern}` matches any message")));
            None
        }
        Ok(_) => Some(pattern),
        Err(error) => {
            let cause = error.to_string();
            let cause = cause.lines().last().unwrap_or_default().trim_start_matches("error: ");
            r.report(node.error(format!("invalid regular expression: {cause}")));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_error_of_a_guest_is_reported() {
        let text = "arch: x86\nmemory: 1\ncpus: two\nconsole: ttyS0\ndebian_arch: amd64\nkernal: {}\n";
        let errors = read_guest("g", "guests/g.yaml", text, "/".into()).expect_err("errors");
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        expect![[r#"
            guests/g.yaml:1:1: missing key `qemu`
            guests/g.yaml:1:1: missing key `accelerators`
            guests/g.yaml:1:1: missing key `kernel`
            guests/g.yaml:1:7: unknown architecture `x86` (did you mean `x86_64`?)
            guests/g.yaml:2:9: 1 is not from 64 to 65536
            guests/g.yaml:3:7: expected a whole number from 1 to 64, found the text `two`
            guests/g.yaml:6:1: unknown key `kernal` (did you mean `kernel`?)"#]]
        .assert_eq(&shown.join("\n"));
    }

    #[test]
    fn decoder_is_another_guest_of_another_architecture() {
        let guest = |name: &str, arch: &str, decoder: &str| {
            let text = format!(
                "arch: {arch}\nmemory: 256\ncpus: 2\nconsole: c\ndebian_arch: d\ndecoder: {decoder}\n\
                 qemu: {{binary: q, package: p, machine: m}}\naccelerators: {{tcg: {{cpu: a}}, kvm: {{cpu: b}}}}\n\
                 kernel: {{make_arch: x, image: vmlinux, fragments: []}}\n"
            );
            read_guest(name, "g.yaml", &text, "/".into()).expect("valid")
        };
        let guests = [guest("a", "x86_64", "b"), guest("b", "ppc64le", "a"), guest("c", "x86_64", "a")];
        let wrong = |guest: &Guest| wrong_decoder(guest, &guests).map(|error| error.to_string());
        assert_eq!((wrong(&guests[0]), wrong(&guests[1])), (None, None));
        let same = "guests/c.yaml:1:1: guest `a` has the same architecture: name one that decodes elsewhere";
        assert_eq!(wrong(&guests[2]).as_deref(), Some(same));
        let unknown = wrong(&guest("d", "x86_64", "e")).expect("an error");
        assert_eq!(unknown, "guests/d.yaml:1:1: unknown guest `e` as decoder");
    }

    #[test]
    fn quirks_have_a_value_and_a_reason() {
        let text = "qemu: {arguments: [{set: -a}, {set: \"'b\", why: w}, {why: w}, {set: c, wy: w}]}";
        let errors = read_guest("g", "guests/g.yaml", text, "/".into()).expect_err("errors");
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let of_quirks: Vec<&str> =
            shown.iter().map(String::as_str).filter(|line| !line.contains(":1:1:")).collect();
        expect![[r#"
            guests/g.yaml:1:7: missing key `binary`
            guests/g.yaml:1:7: missing key `package`
            guests/g.yaml:1:7: missing key `machine`
            guests/g.yaml:1:20: missing key `why`
            guests/g.yaml:1:37: a quote is not closed
            guests/g.yaml:1:52: missing key `set`
            guests/g.yaml:1:62: missing key `why`
            guests/g.yaml:1:71: unknown key `wy` (did you mean `why`?)"#]]
        .assert_eq(&of_quirks.join("\n"));
    }

    #[test]
    fn messages_have_a_pattern_that_is_narrow_and_a_reason() {
        let text = "known_messages: [{pattern: a}, {pattern: 'a(', reason: w}, {pattern: 'a)|(b', reason: w}, \
                    {pattern: '.*', reason: w}, {pattern: 'WARNING: .*', reason: w}, {pattern: 'a|', reason: w}]";
        let errors = read_guest("g", "guests/g.yaml", text, "/".into()).expect_err("errors");
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let of_messages: Vec<&str> =
            shown.iter().map(String::as_str).filter(|line| !line.contains(":1:1:")).collect();
        expect![[r#"
            guests/g.yaml:1:18: missing key `reason`
            guests/g.yaml:1:42: invalid regular expression: unclosed group
            guests/g.yaml:1:70: invalid regular expression: unopened group
            guests/g.yaml:1:101: `.*` matches any message
            guests/g.yaml:1:129: `WARNING: .*` matches any message
            guests/g.yaml:1:166: `a|` matches any message"#]]
        .assert_eq(&of_messages.join("\n"));
    }
}
