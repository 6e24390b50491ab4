//! A module in words: the same bytes for the same source, whatever the machine and the compiler.

use super::model::{Event, Module};

/// What a module has defined: its counts, the names that are replaced, and its events with their
/// parts, each in a fixed order.
pub fn describe(module: &Module) -> String {
    let counts = module.counts();
    let mut text = format!(
        "module {}\n_ftrace_events: {}\n__tracepoints: {}\n_ftrace_eval_map: {}\n",
        module.identity().name,
        counts.events,
        counts.tracepoints,
        counts.evals
    );
    let mut evals: Vec<_> = module.evals().iter().collect();
    evals.sort_by(|a, b| (&a.system, &a.string, a.value).cmp(&(&b.system, &b.string, b.value)));
    for eval in evals {
        text += &format!("  {}: {} = {}\n", eval.system, eval.string, eval.value);
    }
    module.events().iter().for_each(|event| show(module, event, &mut text));
    text
}

fn show(module: &Module, event: &Event, text: &mut String) {
    *text += &format!("\nevent {}:{}\n", event.system, event.name);
    let mut line = |label: &str, value: &str| {
        // A print format may have line ends of its own.
        *text += &format!("  {label}: {}\n", value.replace('\n', "\\n"));
    };
    line("trace_event_call", &event.call);
    line("tracepoint", event.tracepoint.as_deref().unwrap_or("none"));
    line("class", &event.class);
    line("raw event", &event.probe);
    line("print", &event.print);
    let functions = [("register", &event.register), ("unregister", &event.unregister)];
    for (label, function) in functions {
        function.iter().for_each(|function| line(label, function));
    }
    for field in &event.fields {
        let (name, size, align, signed) = (&field.name, field.size, field.align, u8::from(field.signed));
        let value = format!("{} {name}; size {size}; align {align}; signed {signed}", field.type_name);
        line("field", &value);
    }
    line("print fmt", &event.print_format);
    let shown = module.shown_print_format(event);
    if shown != event.print_format {
        line("shown as", &shown);
    }
}
