//! Types and values that cross between stores.

use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{Type, Val};

/// How deeply a type may be nested.
const MAX_NESTING: usize = 32;

/// Returns the types that a type is made of.
fn parts(ty: &Type) -> Vec<Type> {
    match ty {
        Type::Bool
        | Type::S8
        | Type::U8
        | Type::S16
        | Type::U16
        | Type::S32
        | Type::U32
        | Type::S64
        | Type::U64
        | Type::Float32
        | Type::Float64
        | Type::Char
        | Type::String
        | Type::Enum(_)
        | Type::Flags(_)
        | Type::Own(_)
        | Type::Borrow(_)
        | Type::Future(_)
        | Type::Stream(_)
        | Type::ErrorContext => Vec::new(),
        Type::List(list) => vec![list.ty()],
        Type::FixedLengthList(list) => vec![list.ty()],
        Type::Map(map) => vec![map.key(), map.value()],
        Type::Record(record) => record.fields().map(|field| field.ty).collect(),
        Type::Tuple(tuple) => tuple.types().collect(),
        Type::Variant(variant) => variant.cases().filter_map(|case| case.ty).collect(),
        Type::Option(option) => vec![option.ty()],
        Type::Result(result) => result.ok().into_iter().chain(result.err()).collect(),
    }
}

/// Returns what a type has that belongs to one store: a handle, or something that isn't copied.
pub(crate) fn foreign(ty: &Type) -> Option<&'static str> {
    let here = match ty {
        Type::Own(_) => Some("a resource"),
        Type::Borrow(_) => Some("a borrowed resource"),
        Type::Future(_) => Some("a future"),
        Type::Stream(_) => Some("a stream"),
        Type::ErrorContext => Some("an error context"),
        Type::Map(_) => Some("a map"),
        Type::Bool
        | Type::S8
        | Type::U8
        | Type::S16
        | Type::U16
        | Type::S32
        | Type::U32
        | Type::S64
        | Type::U64
        | Type::Float32
        | Type::Float64
        | Type::Char
        | Type::String
        | Type::List(_)
        | Type::Record(_)
        | Type::Tuple(_)
        | Type::Variant(_)
        | Type::Enum(_)
        | Type::Option(_)
        | Type::Result(_)
        | Type::Flags(_)
        | Type::FixedLengthList(_) => None,
    };
    here.or_else(|| parts(ty).iter().find_map(foreign))
}

/// Tells whether a type's nesting is within bounds.
pub(crate) fn shallow(ty: &Type) -> bool {
    fn within(ty: &Type, left: usize) -> bool {
        match left.checked_sub(1) {
            Some(left) => parts(ty).iter().all(|part| within(part, left)),
            None => false,
        }
    }
    within(ty, MAX_NESTING)
}

/// Says where two functions differ.
pub(super) fn difference(wanted: &ComponentFunc, offered: &ComponentFunc) -> Option<String> {
    if wanted.async_() != offered.async_() {
        return Some("one is async".to_owned());
    }
    let (params, given) = (wanted.params(), offered.params());
    if params.len() != given.len() {
        return Some(format!("{} parameters are passed and {} taken", params.len(), given.len()));
    }
    for ((name, ty), (_, other)) in params.zip(given) {
        if ty != other {
            return Some(format!("parameter `{name}` has another type"));
        }
    }
    if wanted.results().ne(offered.results()) {
        return Some("the result has another type".to_owned());
    }
    None
}

/// The size of values in bytes, as a record tells it: content, without what holds it together.
pub(crate) fn weight(values: &[Val]) -> u64 {
    values.iter().fold(0, |sum, value| sum.saturating_add(size(value)))
}

fn size(value: &Val) -> u64 {
    let long = |text: &str| u64::try_from(text.len()).unwrap_or(u64::MAX);
    let inner = |value: &Option<Box<Val>>| value.as_deref().map_or(0, size);
    match value {
        Val::Bool(_) | Val::S8(_) | Val::U8(_) | Val::Enum(_) => 1,
        Val::S16(_) | Val::U16(_) => 2,
        // A handle never crosses; it has a size so that each value has one.
        Val::S32(_)
        | Val::U32(_)
        | Val::Float32(_)
        | Val::Char(_)
        | Val::Resource(_)
        | Val::Future(_)
        | Val::Stream(_)
        | Val::ErrorContext(_) => 4,
        Val::S64(_) | Val::U64(_) | Val::Float64(_) => 8,
        Val::String(text) => long(text),
        Val::List(values) | Val::Tuple(values) | Val::FixedLengthList(values) => weight(values),
        Val::Map(pairs) => pairs
            .iter()
            .fold(0, |sum, (key, value)| sum.saturating_add(size(key)).saturating_add(size(value))),
        Val::Record(fields) => {
            fields.iter().fold(0, |sum, (_, value)| sum.saturating_add(size(value)))
        }
        Val::Variant(_, value) | Val::Option(value) | Val::Result(Ok(value) | Err(value)) => {
            inner(value).saturating_add(1)
        }
        Val::Flags(flags) => u64::try_from(flags.len()).unwrap_or(u64::MAX),
    }
}

/// Cuts a name that a document or a person wrote, for a message.
pub(crate) fn short(name: &str) -> String {
    const MOST: usize = 200;
    let end = name.floor_char_boundary(MOST);
    match name.split_at_checked(end) {
        Some((kept, rest)) if !rest.is_empty() => format!("{kept}…"),
        Some(_) | None => name.to_owned(),
    }
}

/// Says a type in a few words, as WIT has them.
pub(crate) fn describe(ty: &Type) -> String {
    let optional = |ty: Option<Type>| ty.map_or_else(|| "_".to_owned(), |ty| describe(&ty));
    let several = |types: Vec<Type>| types.iter().map(describe).collect::<Vec<_>>().join(", ");
    let text = match ty {
        Type::Bool => "bool",
        Type::S8 => "s8",
        Type::U8 => "u8",
        Type::S16 => "s16",
        Type::U16 => "u16",
        Type::S32 => "s32",
        Type::U32 => "u32",
        Type::S64 => "s64",
        Type::U64 => "u64",
        Type::Float32 => "f32",
        Type::Float64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::Record(_) => "record",
        Type::Variant(_) => "variant",
        Type::Enum(_) => "enum",
        Type::Flags(_) => "flags",
        Type::Own(_) => "resource",
        Type::Borrow(_) => "borrow",
        Type::Future(_) => "future",
        Type::Stream(_) => "stream",
        Type::ErrorContext => "error-context",
        Type::Map(_) => "map",
        Type::List(list) => return format!("list<{}>", describe(&list.ty())),
        Type::FixedLengthList(list) => return format!("list<{}, N>", describe(&list.ty())),
        Type::Tuple(tuple) => return format!("tuple<{}>", several(tuple.types().collect())),
        Type::Option(option) => return format!("option<{}>", describe(&option.ty())),
        Type::Result(result) => {
            return format!("result<{}, {}>", optional(result.ok()), optional(result.err()));
        }
    };
    text.to_owned()
}
