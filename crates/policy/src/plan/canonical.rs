//! Canonical JSON: no white space, keys sorted by their bytes, texts and numbers as `serde_json` writes them.
//!
//! Written straight from a document, without a tree of values in between: the plan for a thousand disks has a hundred
//! thousand of them.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;
use serde::ser::{self, Error as _, Impossible};
use serde_json::{Error, Value};

/// The text of `document`; with `without`, the key of that name is left out of the outermost object.
///
/// # Errors
/// If it holds what JSON cannot say, or an enum's variant with several fields, which plans do not.
pub(super) fn text(document: &impl Serialize, without: Option<&str>) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    document.serialize(Writer { text: &mut text, without })?;
    Ok(text)
}

struct Writer<'a> {
    text: &'a mut Vec<u8>,
    without: Option<&'a str>,
}

/// What `serde_json` writes for one value.
fn plain(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
    serde_json::to_writer(text, value)
}

/// A text in quotes; most hold nothing that needs escaping.
fn quoted(text: &mut Vec<u8>, value: &str) -> Result<(), Error> {
    if value.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        return plain(text, value);
    }
    text.push(b'"');
    text.extend(value.as_bytes());
    text.push(b'"');
    Ok(())
}

macro_rules! plainly {
    ($($method:ident: $kind:ty),*) => {
        $(fn $method(self, value: $kind) -> Result<(), Error> {
            plain(self.text, &value)
        })*
    };
}

impl<'a> ser::Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Fields<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Impossible<(), Error>;

    plainly!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32,
        serialize_f64: f64, serialize_char: char, serialize_bytes: &[u8]
    );

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        quoted(self.text, value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        plain(self.text, &())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        use ser::SerializeStruct as _;
        let mut fields = self.serialize_struct(name, 1)?;
        fields.serialize_field(variant, value)?;
        fields.end()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'a>, Error> {
        self.text.push(b'[');
        Ok(Items { text: self.text, first: true })
    }

    fn serialize_tuple(self, length: usize) -> Result<Items<'a>, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Items<'a>, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(Error::custom(name))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields<'a>, Error> {
        let start = self.text.len();
        Ok(Fields { text: self.text, start, without: self.without, found: Vec::with_capacity(16), key: None })
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Fields<'a>, Error> {
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        Err(Error::custom(name))
    }
}

/// An array that is being written.
struct Items<'a> {
    text: &'a mut Vec<u8>,
    first: bool,
}

impl Items<'_> {
    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        if !std::mem::take(&mut self.first) {
            self.text.push(b',');
        }
        value.serialize(Writer { text: self.text, without: None })
    }

    fn close(self) {
        self.text.push(b']');
    }
}

macro_rules! items {
    ($($kind:ident $method:ident),*) => {
        $(impl ser::$kind for Items<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        })*
    };
}

items!(SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field);

/// An object that is being written: its fields one after the other as they come, put in order at the end.
struct Fields<'a> {
    text: &'a mut Vec<u8>,
    start: usize,
    without: Option<&'a str>,
    found: Vec<(Cow<'static, str>, Range<usize>)>,
    key: Option<String>,
}

impl Fields<'_> {
    fn field(&mut self, key: Cow<'static, str>, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        if self.without == Some(&*key) {
            return Ok(());
        }
        let from = self.text.len();
        quoted(self.text, &key)?;
        self.text.push(b':');
        value.serialize(Writer { text: self.text, without: None })?;
        self.found.push((key, from..self.text.len()));
        Ok(())
    }

    fn close(mut self) {
        let written = self.text.split_off(self.start);
        self.found.sort_by(|(left, _), (right, _)| left.cmp(right));
        self.text.reserve(written.len() + self.found.len() + 2);
        self.text.push(b'{');
        for (number, (_, place)) in self.found.iter().enumerate() {
            if number > 0 {
                self.text.push(b',');
            }
            self.text.extend(&written[place.start - self.start..place.end - self.start]);
        }
        self.text.push(b'}');
    }
}

impl ser::SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.field(Cow::Borrowed(key), value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeMap for Fields<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        match serde_json::to_value(key)? {
            Value::String(key) => self.key = Some(key),
            other => return Err(Error::custom(format!("{other} is no key of an object"))),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take().ok_or_else(|| Error::custom("a value without a key"))?;
        self.field(Cow::Owned(key), value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    /// `serde_json` keeps the keys of its values sorted, and writes them without white space.
    fn oracle(document: &Value) -> String {
        document.to_string()
    }

    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..6).prop_map(Value::from),
                btree_map(any::<String>(), inner, 0..6).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_document_is_written_as_the_tree_of_its_values_is(document in documents()) {
            let written = text(&document, None).unwrap();
            prop_assert_eq!(String::from_utf8(written).unwrap(), oracle(&document));
        }
    }

    #[derive(Serialize)]
    struct Sample {
        zebra: Option<u8>,
        hash: &'static str,
        ape: (i32, char),
        kind: Kind,
        inner: Option<Box<Sample>>,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        PlainOne,
        Wrapped(u8),
    }

    #[test]
    fn types_are_written_sorted_and_one_key_is_left_out_of_the_outermost_alone() {
        let inner = Sample { zebra: None, hash: "in", ape: (-1, 'é'), kind: Kind::Wrapped(3), inner: None };
        let sample = Sample {
            zebra: Some(1),
            hash: "out",
            ape: (2, '"'),
            kind: Kind::PlainOne,
            inner: Some(Box::new(inner)),
        };
        let mut value = serde_json::to_value(&sample).unwrap();
        assert_eq!(text(&sample, None).unwrap(), oracle(&value).into_bytes());
        value.as_object_mut().unwrap().remove("hash");
        let without = String::from_utf8(text(&sample, Some("hash")).unwrap()).unwrap();
        assert_eq!(without, oracle(&value));
        assert!(without.contains(r#""hash":"in""#), "{without}");
    }
}
