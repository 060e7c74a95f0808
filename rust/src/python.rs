//! Values as Python would show them: `str()` for what a template prints, `json.dumps` for its `tojson` filter.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind};
use std::fmt::Write;

const MAX_DEPTH: usize = 200;

/// `str(value)`: text as it is, everything else as `repr`.
pub fn write_str(out: &mut impl Write, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String => out.write_str(value.as_str().unwrap_or_default()).map_err(Error::from),
        ValueKind::Undefined => Ok(()),
        _ => write_repr(out, value, 0),
    }
}

fn write_repr(out: &mut impl Write, value: &Value, depth: usize) -> Result<(), Error> {
    check_depth(depth)?;
    match value.kind() {
        ValueKind::None => out.write_str("None")?,
        ValueKind::Bool => out.write_str(if value.is_true() { "True" } else { "False" })?,
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default())?,
        ValueKind::Seq | ValueKind::Iterable => {
            out.write_char('[')?;
            for (i, item) in value.try_iter()?.enumerate() {
                out.write_str(if i == 0 { "" } else { ", " })?;
                write_repr(out, &item, depth + 1)?;
            }
            out.write_char(']')?;
        }
        ValueKind::Map => {
            out.write_char('{')?;
            for (i, key) in value.try_iter()?.enumerate() {
                out.write_str(if i == 0 { "" } else { ", " })?;
                write_repr(out, &key, depth + 1)?;
                out.write_str(": ")?;
                write_repr(out, &value.get_item(&key)?, depth + 1)?;
            }
            out.write_char('}')?;
        }
        _ => write!(out, "{value}")?,
    }
    Ok(())
}

fn write_quoted(out: &mut impl Write, text: &str) -> std::fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c == quote => write!(out, "\\{c}")?,
            c if (c as u32) < 0x20 || c as u32 == 0x7f => write!(out, "\\x{:02x}", c as u32)?,
            c => out.write_char(c)?,
        }
    }
    out.write_char(quote)
}

fn check_depth(depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::InvalidOperation, format!("a value is nested deeper than {MAX_DEPTH} levels")));
    }
    Ok(())
}

/// The `tojson` filter as `transformers` defines it: json.dumps(x, ensure_ascii=False, indent=indent,
/// separators=separators, sort_keys=sort_keys), no HTML escapes.
pub fn tojson(value: &Value, indent: Option<Value>, options: Kwargs) -> Result<String, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => options.get::<Option<Value>>("indent")?,
    };
    let separators = options.get::<Option<Value>>("separators")?;
    let _ensure_ascii = options.get::<Option<bool>>("ensure_ascii")?;
    let sort_keys = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    options.assert_all_used()?;
    let indent = match indent.filter(|v| !v.is_none() && !v.is_undefined()) {
        None => None,
        Some(v) => Some(match (v.as_usize(), v.as_str()) {
            (Some(width), _) => " ".repeat(width.min(64)),
            (None, Some(text)) => text.to_string(),
            (None, None) => return Err(Error::new(ErrorKind::InvalidOperation, "tojson: indent is a number or a text")),
        }),
    };
    let (item, key) = match separators.filter(|v| !v.is_none()) {
        None => ((if indent.is_some() { "," } else { ", " }).to_string(), ": ".to_string()),
        Some(pair) => {
            let part = |i| pair.get_item_by_index(i).map(|v| v.as_str().unwrap_or_default().to_string());
            (part(0)?, part(1)?)
        }
    };
    let writer = Json { indent, item, key, sort_keys };
    let mut out = String::new();
    writer.write(&mut out, value, 0)?;
    Ok(out)
}

struct Json {
    indent: Option<String>,
    item: String,
    key: String,
    sort_keys: bool,
}

impl Json {
    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        check_depth(depth)?;
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => write!(out, "{value}")?,
            ValueKind::String => write_json_string(out, value.as_str().unwrap_or_default())?,
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.block(out, ['[', ']'], &items, depth, |out, item| self.write(out, item, depth + 1))?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                self.block(out, ['{', '}'], &keys, depth, |out, key| {
                    match key.as_str() {
                        Some(text) => write_json_string(out, text)?,
                        None => write_json_string(out, &key.to_string())?,
                    }
                    out.push_str(&self.key);
                    self.write(out, &value.get_item(key)?, depth + 1)
                })?;
            }
            kind => return Err(Error::new(ErrorKind::BadSerialization, format!("{kind} is not JSON serializable"))),
        }
        Ok(())
    }

    fn block(
        &self,
        out: &mut String,
        [open, close]: [char; 2],
        items: &[Value],
        depth: usize,
        mut write: impl FnMut(&mut String, &Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        out.push(open);
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                out.push_str(&self.item);
            }
            self.new_line(out, depth + 1);
            write(out, item)?;
        }
        if !items.is_empty() {
            self.new_line(out, depth);
        }
        out.push(close);
        Ok(())
    }

    fn new_line(&self, out: &mut String, depth: usize) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            for _ in 0..depth {
                out.push_str(indent);
            }
        }
    }
}

fn write_json_string(out: &mut String, text: &str) -> std::fmt::Result {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => write!(out, "\\u{:04x}", c as u32)?,
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(())
}
