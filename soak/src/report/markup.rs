//! Writes HTML and SVG so that every tag is closed and every text is escaped.
//!
//! Empty elements are closed as in XML, which HTML allows, so that a page is well-formed as both.

use std::fmt::{self, Display, Write};

/// A document being written.
#[derive(Debug)]
pub(super) struct Markup {
    out: String,
}

impl Markup {
    /// `prolog` comes first, as it is.
    pub(super) fn new(prolog: &'static str) -> Self {
        Markup {
            out: prolog.to_owned(),
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// An element and what is in it.
    pub(super) fn element(
        &mut self,
        tag: &str,
        attributes: &[(&str, &str)],
        content: impl FnOnce(&mut Markup),
    ) {
        self.open(tag, attributes);
        self.out.push('>');
        content(self);
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push_str(">\n");
    }

    /// An element with nothing but text in it.
    pub(super) fn leaf(&mut self, tag: &str, attributes: &[(&str, &str)], text: impl Display) {
        self.element(tag, attributes, |element| element.text(text));
    }

    /// An element that cannot hold anything.
    pub(super) fn empty(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.open(tag, attributes);
        self.out.push_str("/>\n");
    }

    pub(super) fn text(&mut self, text: impl Display) {
        write!(Escaped(&mut self.out), "{text}").expect("a string takes every text");
    }

    /// Style sheets of our own. They must do without `<` and `&`.
    pub(super) fn style(&mut self, sheets: &[&'static str]) {
        self.element("style", &[], |style| {
            for sheet in sheets {
                debug_assert!(!sheet.contains(['<', '&']), "it is written as it is");
                style.out.push_str(sheet);
            }
        });
    }

    fn open(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.text(value);
            self.out.push('"');
        }
    }
}

struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // XML has no way to write most control characters.
                '\n' | '\t' => self.0.push(character),
                _ if character.is_control() => self.0.push('\u{fffd}'),
                _ => self.0.push(character),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_attributes_are_escaped() {
        let mut markup = Markup::new("");
        markup.leaf(
            "p",
            &[("title", "\"a\" & 'b'")],
            "<script>1 > 0\u{1}</script>",
        );
        assert_eq!(
            markup.finish(),
            "<p title=\"&quot;a&quot; &amp; &#39;b&#39;\">\
             &lt;script&gt;1 &gt; 0\u{fffd}&lt;/script&gt;</p>\n"
        );
    }

    #[test]
    fn elements_close_in_order() {
        let mut markup = Markup::new("<!DOCTYPE html>\n");
        markup.element("a", &[], |a| {
            a.element("b", &[("c", "d")], |b| b.empty("e", &[]));
            a.text("f");
        });
        assert_eq!(
            markup.finish(),
            "<!DOCTYPE html>\n<a><b c=\"d\"><e/>\n</b>\nf</a>\n"
        );
    }
}
