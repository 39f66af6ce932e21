//! JSON in which a key stands once and nesting is bounded.
//!
//! What is signed is bytes, and what is judged is their meaning. Where a key stands twice, readers
//! differ in the meaning, so such a text is refused.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::text::{Refusal, refuse, shown};
use super::{MAX_JSON_DEPTH, RejectCode};

/// Reads `bytes` as one JSON value. `what` names them in messages.
pub(super) fn parse(bytes: &[u8], what: &str) -> Result<Value, Refusal> {
    let fault = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict { left: MAX_JSON_DEPTH, fault: &fault }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| match fault.into_inner() {
        Some(Fault::Depth) => refuse(
            RejectCode::Limit,
            format!("{what} is nested deeper than {MAX_JSON_DEPTH} levels"),
        ),
        Some(Fault::Twice(key)) => {
            refuse(RejectCode::Format, format!("{what} has the key `{}` twice", shown(&key)))
        }
        None => {
            refuse(RejectCode::Format, format!("{what} is not JSON: {}", shown(&error.to_string())))
        }
    })
}

enum Fault {
    Depth,
    Twice(String),
}

#[derive(Clone, Copy)]
struct Strict<'f> {
    left: usize,
    fault: &'f RefCell<Option<Fault>>,
}

impl Strict<'_> {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.left.checked_sub(1) {
            Some(left) => Ok(Self { left, ..self }),
            None => {
                self.fault.replace(Some(Fault::Depth));
                Err(E::custom("too deep"))
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                self.fault.replace(Some(Fault::Twice(key)));
                return Err(A::Error::custom("duplicate key"));
            }
            let value = entries.next_value_seed(inner)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<RejectCode> {
        parse(text.as_bytes(), "it").err().map(|refusal| refusal.code)
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_level() {
        assert_eq!(code(r#"{"a":1,"b":{"a":1}}"#), None);
        assert_eq!(code(r#"{"a":1,"a":1}"#), Some(RejectCode::Format));
        assert_eq!(code(r#"[{"b":{"a":1,"\u0061":2}}]"#), Some(RejectCode::Format));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(code(&nested(MAX_JSON_DEPTH)), None);
        assert_eq!(code(&nested(MAX_JSON_DEPTH + 1)), Some(RejectCode::Limit));
        assert_eq!(code(&"[".repeat(100_000)), Some(RejectCode::Limit));
    }

    #[test]
    fn nothing_may_follow_the_value() {
        assert_eq!(code("{} "), None);
        assert_eq!(code("{} {}"), Some(RejectCode::Format));
        assert_eq!(code(""), Some(RejectCode::Format));
    }
}
