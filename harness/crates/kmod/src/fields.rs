//! The fields of an event's class, as its array of `struct trace_event_fields` has them.
//!
//! The layout is that of include/linux/trace_events.h, Linux 7.2; it is the same on all machines of
//! 64 bits. The array ends with an entry that has no type (`event_define_fields`,
//! kernel/trace/trace_events.c).

use super::error::ModuleError;
use super::model::Field;
use super::object::{Object, Symbol};

/// Bytes of an entry.
const ENTRY: u64 = 40;
/// Places in an entry, in bytes; `type` is at 0. `is_signed` is the lowest bit of its word.
const NAME: u64 = 8;
const SIZE: u64 = 16;
const ALIGN: u64 = 20;
const IS_SIGNED: u64 = 24;
const LEN: u64 = 32;

/// Read the array that is `symbol`, of the event whose call is `call`.
pub(super) fn read(object: &Object<'_>, call: &str, symbol: &Symbol) -> Result<Vec<Field>, ModuleError> {
    let mut fields = Vec::new();
    let mut at = symbol.place;
    loop {
        let missing = |part: &str| {
            let part = format!("class whose field {} has a {part}", fields.len());
            ModuleError::missing(call, part)
        };
        let string = |offset: u64| object.pointer(at.plus(offset)).and_then(|target| object.string(target));
        let number = |offset: u64| object.u32(at.plus(offset));
        // Past the array is past what belongs to the class.
        let inside = object.u64(at).filter(|_| symbol.covers(at.plus(ENTRY - 1)));
        let word = inside.ok_or_else(|| missing("place in the array, which has no end"))?;
        if object.pointer(at).is_none() && word == 0 {
            return Ok(fields);
        }
        // All bits set: a function of the kernel's own defines the fields.
        fields.push(Field {
            type_name: string(0).ok_or_else(|| missing("type"))?,
            name: string(NAME).ok_or_else(|| missing("name"))?,
            size: number(SIZE).ok_or_else(|| missing("size"))?,
            align: number(ALIGN).ok_or_else(|| missing("alignment"))?,
            signed: number(IS_SIGNED).ok_or_else(|| missing("sign"))? & 1 == 1,
            length: number(LEN).ok_or_else(|| missing("length"))?,
        });
        at = at.plus(ENTRY);
    }
}
