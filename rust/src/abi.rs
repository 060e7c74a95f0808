//! What crosses the boundary: borrowed slices in, owned buffers and error texts out.

use std::ffi::{c_char, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// A borrowed byte string. `data` may be null when `size` is 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KvSlice {
    pub data: *const u8,
    pub size: usize,
}

/// An owned byte buffer; `kv_buffer_free` gives it back.
#[repr(C)]
pub struct KvBuffer {
    pub data: *mut u8,
    pub size: usize,
    pub capacity: usize,
}

/// An owned array of token ids; `kv_ids_free` gives it back.
#[repr(C)]
pub struct KvIds {
    pub data: *mut u32,
    pub size: usize,
    pub capacity: usize,
}

impl KvSlice {
    /// # Safety
    /// `data` must point to `size` readable bytes that outlive `'a`.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.size == 0 {
            &[]
        } else {
            std::slice::from_raw_parts(self.data, self.size)
        }
    }

    /// # Safety
    /// As `bytes`.
    pub unsafe fn text<'a>(self, what: &str) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes()).map_err(|e| format!("{what} is not UTF-8 at byte {}", e.valid_up_to()))
    }
}

/// # Safety
/// `data` must point to `count` readable elements, or `count` be 0.
pub unsafe fn array<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, count)
    }
}

impl KvBuffer {
    pub fn from_string(text: String) -> Self {
        let mut bytes = std::mem::ManuallyDrop::new(text.into_bytes());
        KvBuffer { data: bytes.as_mut_ptr(), size: bytes.len(), capacity: bytes.capacity() }
    }
}

impl KvIds {
    pub fn from_vec(ids: Vec<u32>) -> Self {
        let mut ids = std::mem::ManuallyDrop::new(ids);
        KvIds { data: ids.as_mut_ptr(), size: ids.len(), capacity: ids.capacity() }
    }
}

/// Runs `body`; an error or a panic becomes an error text for the caller.
pub fn guard(body: impl FnOnce() -> Result<(), String>) -> *mut c_char {
    let message = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return std::ptr::null_mut(),
        Ok(Err(message)) => message,
        Err(panic) => format!("panic: {}", panic_text(panic.as_ref())),
    };
    let printable = message.replace('\0', "\u{fffd}");
    CString::new(printable).unwrap_or_default().into_raw()
}

pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "unknown".to_string()
    }
}

/// # Safety
/// `error` must come from one of this library's functions and be freed once.
#[no_mangle]
pub unsafe extern "C" fn kv_error_free(error: *mut c_char) {
    if !error.is_null() {
        drop(CString::from_raw(error));
    }
}

/// # Safety
/// `buffer` must come from this library and be freed once.
#[no_mangle]
pub unsafe extern "C" fn kv_buffer_free(buffer: KvBuffer) {
    if buffer.capacity != 0 {
        drop(Vec::from_raw_parts(buffer.data, buffer.size, buffer.capacity));
    }
}

/// # Safety
/// `ids` must come from this library and be freed once.
#[no_mangle]
pub unsafe extern "C" fn kv_ids_free(ids: KvIds) {
    if ids.capacity != 0 {
        drop(Vec::from_raw_parts(ids.data, ids.size, ids.capacity));
    }
}

/// Panics on purpose, so that the tests can see that a panic becomes an error.
#[no_mangle]
pub extern "C" fn kv_test_panic() -> *mut c_char {
    guard(|| panic!("on purpose"))
}
