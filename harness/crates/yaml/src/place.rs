//! Where each key and value of a YAML text is.
//!
//! serde_yaml gives values without places, so the text is read a second time, once, by a parser that
//! gives places and no values. What the second one does not find is at the nearest place around it.

use saphyr_parser::{Event, Marker, Parser, ScanError, Span};

/// A line and a column, from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Point {
    /// The start of a file.
    pub(super) const START: Point = Point { line: 1, column: 1 };
}

impl From<Marker> for Point {
    fn from(marker: Marker) -> Point {
        Point { line: marker.line(), column: marker.col() + 1 }
    }
}

/// Where a value begins, and where the values inside it do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ValuePlace {
    pub(super) at: Point,
    inside: Inside,
}

#[derive(Debug, PartialEq, Eq)]
enum Inside {
    Nothing,
    Items(Vec<ValuePlace>),
    Entries(Vec<EntryPlace>),
}

/// An entry of a mapping whose key is a scalar.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EntryPlace {
    key: String,
    /// Where the key begins.
    pub(super) at: Point,
    pub(super) value: ValuePlace,
}

impl ValuePlace {
    /// The places of the only document of a text; `None` when it has none or cannot be read.
    pub(super) fn of_text(text: &str) -> Option<ValuePlace> {
        let mut events = Parser::new_from_str(text);
        loop {
            let (event, span) = events.next()?.ok()?;
            if !matches!(event, Event::StreamStart | Event::DocumentStart(_)) {
                return place(event, span, &mut events).ok().flatten();
            }
        }
    }

    /// The place of an item of a list, from 0.
    pub(super) fn item(&self, index: usize) -> Option<&ValuePlace> {
        match &self.inside {
            Inside::Items(items) => items.get(index),
            _ => None,
        }
    }

    /// The place of an entry of a mapping.
    pub(super) fn entry(&self, key: &str) -> Option<&EntryPlace> {
        match &self.inside {
            Inside::Entries(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }
}

type Events<'e, 't> = &'e mut dyn Iterator<Item = Result<(Event<'t>, Span), ScanError>>;

/// The place of the value that begins with `event`; `None` for the end of what is around it.
fn place(event: Event<'_>, span: Span, events: Events<'_, '_>) -> Result<Option<ValuePlace>, ScanError> {
    let inside = match event {
        Event::Scalar(..) | Event::Alias(_) => Inside::Nothing,
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            while let Some((item, _)) = next(events)? {
                items.push(item);
            }
            Inside::Items(items)
        }
        Event::MappingStart(..) => {
            let mut entries = Vec::new();
            while let Some((key, text)) = next(events)? {
                let Some((value, _)) = next(events)? else { break };
                entries.extend(text.map(|text| EntryPlace { key: text, at: key.at, value }));
            }
            Inside::Entries(entries)
        }
        _ => return Ok(None),
    };
    Ok(Some(ValuePlace { at: span.start.into(), inside }))
}

/// The next value, and its text when it is a scalar; `None` at the end of what is around it.
fn next(events: Events<'_, '_>) -> Result<Option<(ValuePlace, Option<String>)>, ScanError> {
    let Some((event, span)) = events.next().transpose()? else { return Ok(None) };
    let text = if let Event::Scalar(text, ..) = &event { Some(text.to_string()) } else { None };
    Ok(place(event, span, events)?.map(|place| (place, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# é: a comment
title: One
steps:
  - run: |
      echo a
  - read: /proc/version
    capture: 'version'
  - {cpu: [0, 1], \"at\": 1ms}
";

    fn point(point: Point) -> (usize, usize) {
        (point.line, point.column)
    }

    #[test]
    fn every_key_and_value_has_its_place() {
        let root = ValuePlace::of_text(TEXT).expect("a document");
        let title = root.entry("title").expect("there");
        assert_eq!((point(title.at), point(title.value.at)), ((2, 1), (2, 8)));
        let steps = &root.entry("steps").expect("there").value;
        let step = |index| steps.item(index).expect("there");
        assert_eq!([0, 1, 2].map(|index| point(step(index).at)), [(4, 5), (6, 5), (8, 5)]);
        // A block of text begins with its first line.
        assert_eq!(point(step(0).entry("run").expect("there").value.at), (5, 7));
        let capture = step(1).entry("capture").expect("there");
        assert_eq!((point(capture.at), point(capture.value.at)), ((7, 5), (7, 14)));
        let cpus = &step(2).entry("cpu").expect("there").value;
        assert_eq!(point(cpus.item(1).expect("there").at), (8, 15));
        assert_eq!(point(step(2).entry("at").expect("there").at), (8, 19));
        assert_eq!(step(2).entry("absent"), None);
        assert_eq!(cpus.item(2), None);
    }

    #[test]
    fn text_without_a_document_has_no_places() {
        assert_eq!(ValuePlace::of_text(""), None);
        assert_eq!(ValuePlace::of_text("a: ["), None);
    }
}
