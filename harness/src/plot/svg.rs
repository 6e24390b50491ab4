//! What pictures are made of, as SVG.
//!
//! Everything is in attributes, so that a viewer needs neither style sheets nor a font of ours, and
//! the background is white of its own, so that a dark viewer shows the same.

use std::fmt::Write;

use super::lane::Part;
use super::layout::Extent;
use super::palette::Look;
use super::size::GROUP;

/// Height of a lane's bar, in pixels.
pub(super) const BAR: f64 = 16.0;
/// Height of the bar where the CPU runs, in pixels.
const RUN: f64 = 5.0;

const INK: &str = "#222222";
const RUNNING: &str = "#b8c4b8";
const ALARM: &str = "#d00000";

/// The elements so far.
#[derive(Default)]
pub(super) struct Elements {
    text: String,
}

impl Elements {
    /// A file of them, that stands alone.
    pub(super) fn file(&self, width: f64, height: f64) -> String {
        format!(
            concat!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" ",
                "font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"11\" fill=\"{ink}\">\n",
                "<defs><pattern id=\"hatch\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">",
                "<path d=\"M-1,1 l2,-2 M0,4 l4,-4 M3,5 l2,-2\" stroke=\"{ink}\" stroke-width=\"1.2\"/>",
                "</pattern></defs>\n",
                "<rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n{elements}</svg>\n",
            ),
            w = width,
            h = height,
            ink = INK,
            elements = self.text
        )
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        _ = self.text.write_fmt(element);
        self.text.push('\n');
    }

    pub(super) fn text(&mut self, x: f64, y: f64, attributes: &str, text: &str) {
        let text = escape(text);
        self.add(format_args!("<text x=\"{x:.2}\" y=\"{y:.2}\" {attributes}>{text}</text>"));
    }

    fn rect(&mut self, extent: Extent, y: f64, height: f64, fill: &str) {
        let (x, width) = (extent.from, extent.to - extent.from);
        self.add(format_args!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height}\" {fill}/>"
        ));
    }

    /// Begin a group with a title, which viewers show when one points at it.
    pub(super) fn open(&mut self, title: &str) {
        let title = escape(title);
        self.add(format_args!("<g><title>{title}</title>"));
    }

    pub(super) fn close(&mut self) {
        self.text.push_str("</g>\n");
    }

    /// A stretch in which the CPU runs.
    pub(super) fn run(&mut self, extent: Extent, y: f64) {
        self.rect(extent, y + (BAR - RUN) / 2.0, RUN, &format!("fill=\"{RUNNING}\""));
    }

    /// The line of a dispatch, from the lane's bar at `bar` up to its head at `head`.
    pub(super) fn stem(&mut self, x: f64, bar: f64, head: f64, look: Look) {
        let Look { fill, .. } = look;
        let (top, height) = (bar - 3.0, BAR + 6.0);
        self.add(format_args!(
            "<path d=\"M{x:.2},{top:.2} V{head:.2}\" stroke=\"{fill}\" stroke-width=\"1.2\"/>"
        ));
        self.add(format_args!(
            "<path d=\"M{x:.2},{top:.2} v{height}\" stroke=\"{fill}\" stroke-width=\"2.4\"/>"
        ));
    }

    /// A line of the axis's grid.
    pub(super) fn grid(&mut self, x: f64, top: f64, bottom: f64) {
        self.add(format_args!("<path d=\"M{x:.2},{top:.2} V{bottom:.2}\" stroke=\"#dcdcdc\"/>"));
    }

    /// The line of the axis.
    pub(super) fn axis(&mut self, extent: Extent, y: f64) {
        let Extent { from, to } = extent;
        self.add(format_args!("<path d=\"M{from:.2},{y:.2} H{to:.2}\" stroke=\"#999999\"/>"));
    }

    /// A part of a wait.
    pub(super) fn part(&mut self, part: Part, extent: Extent, y: f64, look: Look) {
        self.rect(extent, y, BAR, &format!("fill=\"{}\"", look.fill));
        match part {
            Part::WaitingToReady => {}
            Part::ReadyToEnqueue => self.rect(extent, y, BAR, "fill=\"url(#hatch)\""),
            Part::EnqueueToDispatch => {
                self.rect(extent, y, BAR, &format!("fill=\"{INK}\" fill-opacity=\"0.6\""));
            }
        }
    }

    /// The mark of a wait that is cut off.
    pub(super) fn clip(&mut self, x: f64, y: f64) {
        let x = x + 2.0;
        let step = BAR / 4.0;
        self.add(format_args!(
            "<path d=\"M{x:.2},{y:.2} l3,{step} l-3,{step} l3,{step} l-3,{step}\" fill=\"none\" stroke=\"{ALARM}\" stroke-width=\"1.8\"/>"
        ));
    }

    /// The head of a dispatch, around its middle.
    pub(super) fn dispatch_head(&mut self, x: f64, y: f64, look: Look) {
        let fill = look.fill;
        self.add(format_args!(
            "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"6\" fill=\"{fill}\" stroke=\"#ffffff\" stroke-width=\"0.8\"/>"
        ));
        self.letter(x, y, look);
    }

    /// A reason's letter, around its middle.
    pub(super) fn letter(&mut self, x: f64, y: f64, look: Look) {
        let Look { letter, ink, .. } = look;
        let attributes =
            format!("text-anchor=\"middle\" font-size=\"8.5\" font-weight=\"bold\" fill=\"{ink}\"");
        self.text(x, y + 3.1, &attributes, letter.encode_utf8(&mut [0; 4]));
    }

    /// A counting head, around its middle.
    pub(super) fn group_head(&mut self, x: f64, y: f64, text: &str) {
        let (left, top) = (x - f64::from(GROUP) / 2.0, y - 6.0);
        self.add(format_args!(
            "<rect x=\"{left:.2}\" y=\"{top:.2}\" width=\"{GROUP}\" height=\"12\" rx=\"3\" fill=\"#ffffff\" stroke=\"{INK}\" stroke-width=\"0.8\"/>"
        ));
        self.text(x, y + 3.1, "text-anchor=\"middle\" font-size=\"8.5\"", text);
    }
}

/// Text for XML, which has no place for most control characters.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\n' => escaped.push('\n'),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ if letter.is_ascii_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}
