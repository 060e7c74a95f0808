//! Chat templates: Jinja as Python's `transformers` sets it up, with limits on everything a template can consume.

use crate::abi::{array, guard, panic_text, KvBuffer, KvSlice};
use crate::budget::{bound_this_thread, OutOfMemory};
use crate::python;
use minijinja::value::{Enumerator, Object, Value};
use minijinja::{context, Environment, Error, ErrorKind};
use std::ffi::{c_char, CString};
use std::io;
use std::sync::Arc;

/// Instructions a rendering may take: enough for any real template, and few enough that what a template can nest by
/// looping still unwinds on the stack below.
const FUEL: u64 = 200_000;
const FUEL_PER_MESSAGE: u64 = 2_000;
const MAX_FUEL: u64 = 2_000_000;
/// Rendering has a thread of its own, as dropping deeply nested values recurses. Reserved, not committed.
const STACK_BYTES: usize = 512 << 20;
/// What a template may hold at one time, its result included.
const MEMORY_BYTES: usize = 256 << 20;
const NAME: &str = "chat_template";

pub struct KvTemplate {
    environment: Environment<'static>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct KvMessage {
    pub role: KvSlice,
    pub content: KvSlice,
}

/// A message as templates see it: a mapping with `role` and `content`, in this order.
#[derive(Debug)]
struct Message {
    role: Value,
    content: Value,
}

impl Object for Message {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "role" => Some(self.role.clone()),
            "content" => Some(self.content.clone()),
            _ => None,
        }
    }
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["role", "content"])
    }
}

/// Refuses to grow beyond its limit.
struct Limited {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for Limited {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if part.len() > self.limit - self.bytes.len() {
            return Err(io::Error::other(format!("the result is larger than {} bytes", self.limit)));
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl KvTemplate {
    fn new(source: &str) -> Result<Self, String> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_recursion_limit(100);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_formatter(|out, _, value| python::write_str(out, value));
        environment.add_filter("tojson", python::tojson);
        environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_function("strftime_now", strftime_now);
        environment.add_template_owned(NAME, without_generation_tags(source)).map_err(|e| describe(&e))?;
        Ok(KvTemplate { environment })
    }

    fn render(&self, values: Value, fuel: u64, limit: usize) -> Result<String, String> {
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(fuel));
        let mut out = Limited { bytes: Vec::new(), limit };
        let template = environment.get_template(NAME).map_err(|e| describe(&e))?;
        template.render_captured_to(values, &mut out).map_err(|e| describe(&e))?;
        String::from_utf8(out.bytes).map_err(|e| e.to_string())
    }
}

/// `{% generation %}` marks what a trainer learns from; `transformers` renders it as if it were not there. An `if` that
/// is always true does the same, white space control included.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(open) = rest.find("{%") {
        let (before, tag) = rest.split_at(open);
        out.push_str(before);
        let end = tag.find("%}").map_or(tag.len(), |i| i + 2);
        let inside = tag[2..end].trim_end_matches("%}");
        match inside.trim_matches(|c: char| c.is_ascii_whitespace() || c == '-' || c == '+') {
            "generation" => out.push_str(&tag[..end].replacen("generation", "if true", 1)),
            "endgeneration" => out.push_str(&tag[..end].replacen("endgeneration", "endif", 1)),
            _ => out.push_str(&tag[..end]),
        }
        rest = &tag[end..];
    }
    out.push_str(rest);
    out
}

fn describe(error: &Error) -> String {
    let mut text = error.detail().map_or_else(|| error.kind().to_string(), str::to_string);
    if error.kind() == ErrorKind::OutOfFuel {
        text = "it runs longer than a chat template may".to_string();
    }
    if let Some(line) = error.line() {
        text.push_str(&format!(" (line {line})"));
    }
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

/// `datetime.now().strftime(format)`: local time, as in `transformers`.
fn strftime_now(format: String) -> Result<String, Error> {
    let fail = |text: &str| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {text}"));
    if format.len() > 256 {
        return Err(fail("a format longer than 256 bytes"));
    }
    if format.is_empty() {
        return Ok(String::new());
    }
    let format = CString::new(format).map_err(|_| fail("a format with a NUL"))?;
    let mut text = vec![0u8; 8192];
    // SAFETY: all pointers are to live locals of the right types; strftime writes at most text.len() bytes.
    let length = unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&now, &mut local).is_null() {
            return Err(fail("no local time"));
        }
        libc::strftime(text.as_mut_ptr().cast(), text.len(), format.as_ptr(), &local)
    };
    text.truncate(length);
    String::from_utf8(text).map_err(|_| fail("not UTF-8"))
}

/// Parses a template.
///
/// # Safety
/// `source` readable, `out` writable.
#[no_mangle]
pub unsafe extern "C" fn kv_template_new(source: KvSlice, out: *mut *mut KvTemplate) -> *mut c_char {
    guard(|| {
        let source = source.text("the chat template")?.to_string();
        *out = on_big_stack(move || KvTemplate::new(&source).map(|t| Box::into_raw(Box::new(t)) as usize))? as *mut _;
        Ok(())
    })
}

/// Renders a conversation into `out`, at most `limit` bytes of it.
///
/// # Safety
/// `template` from `kv_template_new`; slices readable; `out` writable.
#[no_mangle]
pub unsafe extern "C" fn kv_template_render(
    template: *const KvTemplate,
    messages: *const KvMessage,
    message_count: usize,
    bos_token: KvSlice,
    eos_token: KvSlice,
    add_generation_prompt: bool,
    limit: usize,
    out: *mut KvBuffer,
) -> *mut c_char {
    guard(|| {
        let template = &*template;
        let mut list = Vec::with_capacity(message_count);
        for (i, message) in array(messages, message_count).iter().enumerate() {
            let role = message.role.text(&format!("messages[{i}].role"))?.to_string();
            list.push((role, message.content.text(&format!("messages[{i}].content"))?.to_string()));
        }
        let (bos, eos) = (bos_token.text("bos_token")?.to_string(), eos_token.text("eos_token")?.to_string());
        let fuel = (FUEL + FUEL_PER_MESSAGE * message_count as u64).min(MAX_FUEL);
        let text = on_big_stack(move || {
            let message = |(role, content): (String, String)| {
                Value::from_object(Message { role: Value::from(role), content: Value::from(content) })
            };
            let values = context! {
                messages => list.into_iter().map(message).collect::<Vec<_>>(),
                bos_token => bos,
                eos_token => eos,
                add_generation_prompt => add_generation_prompt,
                tools => Value::from(()),
                documents => Value::from(()),
            };
            template.render(values, fuel, limit)
        })?;
        *out = KvBuffer::from_string(text);
        Ok(())
    })
}

fn on_big_stack<T: Send>(work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let bounded = || {
            bound_this_thread(MEMORY_BYTES);
            work()
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, bounded);
        match thread.map_err(|e| format!("no thread to render in: {e}"))?.join() {
            Ok(result) => result,
            Err(panic) if panic.is::<OutOfMemory>() => {
                Err(format!("it wants more memory than a chat template may ({} MiB)", MEMORY_BYTES >> 20))
            }
            Err(panic) => Err(format!("panic: {}", panic_text(panic.as_ref()))),
        }
    })
}

/// # Safety
/// `template` from `kv_template_new`, freed once.
#[no_mangle]
pub unsafe extern "C" fn kv_template_free(template: *mut KvTemplate) {
    if !template.is_null() {
        drop(Box::from_raw(template));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_tags_become_ifs() {
        assert_eq!(
            without_generation_tags("a{% generation %}b{%- endgeneration -%}{% if generation %}"),
            "a{% if true %}b{%- endif -%}{% if generation %}"
        );
        assert_eq!(without_generation_tags("{% generation"), "{% if true");
    }
}
