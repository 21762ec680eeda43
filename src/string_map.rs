//! String maps: a few texts by key in one piece of memory, such as the labels of a node.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The largest number of entries of which each is looked at.
const FEW: usize = 32;

/// Texts by key, in the order of the keys.
///
/// Large fleets have a hundred thousand of these maps with a dozen short texts each, which are read and hardly
/// ever changed. A `BTreeMap` of strings takes five times the memory, and an allocation for each text.
#[derive(Clone, Default)]
pub struct StringMap {
    /// All keys and values.
    texts: Box<str>,
    /// The places of the entries, in the order of their keys.
    entries: Box<[EntryPlace]>,
}

/// The place of a key and of the value behind it. No map has 4 GiB of texts: a file with one is refused before.
#[derive(Clone, Copy)]
struct EntryPlace {
    start: u32,
    middle: u32,
    end: u32,
}

impl StringMap {
    /// Returns the value of a key.
    pub fn get(&self, key: impl AsRef<str>) -> Option<&str> {
        let key = key.as_ref();
        // Of a few keys, most have another length, so a search by order takes more.
        let place = if self.entries.len() <= FEW {
            self.entries.iter().position(|it| self.key(*it) == key)?
        } else {
            self.entries.binary_search_by(|it| self.key(*it).cmp(key)).ok()?
        };
        self.entries.get(place).map(|it| self.value(*it))
    }

    /// Returns whether there is a value for a key.
    pub fn contains_key(&self, key: impl AsRef<str>) -> bool {
        self.get(key).is_some()
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the keys and their values, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|entry| (self.key(*entry), self.value(*entry)))
    }

    /// Returns the keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|it| it.0)
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: impl AsRef<str>, value: impl AsRef<str>) {
        let mut entries: BTreeMap<&str, &str> = self.iter().collect();
        entries.insert(key.as_ref(), value.as_ref());
        *self = entries.into_iter().collect();
    }

    /// Removes a key and its value.
    pub fn remove(&mut self, key: impl AsRef<str>) {
        self.retain(|it, _| it != key.as_ref());
    }

    /// Keeps only some of the entries.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&str, &str) -> bool) {
        *self = self.iter().filter(|it| is_kept(it.0, it.1)).collect();
    }

    fn key(&self, entry: EntryPlace) -> &str {
        self.text(entry.start, entry.middle)
    }

    fn value(&self, entry: EntryPlace) -> &str {
        self.text(entry.middle, entry.end)
    }

    fn text(&self, start: u32, end: u32) -> &str {
        let place = |it: u32| usize::try_from(it).ok();
        let text = place(start).zip(place(end)).and_then(|(start, end)| self.texts.get(start..end));
        text.unwrap_or_default()
    }
}

impl PartialEq for StringMap {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for StringMap {}

impl fmt::Debug for StringMap {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

/// Of equal keys the last one counts.
impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for StringMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut unfinished = UnfinishedMap::default();
        for (key, value) in entries {
            unfinished.texts.push_str(key.as_ref());
            let middle = unfinished.length();
            unfinished.texts.push_str(value.as_ref());
            unfinished.add(middle);
        }
        unfinished.finish()
    }
}

impl Serialize for StringMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// The keys are all different; JSON itself lets the last one win.
impl<'de> Deserialize<'de> for StringMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Unique;

        impl<'de> Visitor<'de> for Unique {
            type Value = StringMap;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a map of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<StringMap, A::Error> {
                let mut map = UnfinishedMap::default();
                while access.next_key_seed(Append(&mut map.texts))?.is_some() {
                    let middle = map.length();
                    access.next_value_seed(Append(&mut map.texts))?;
                    if let Some(key) = map.add(middle) {
                        let message = format!("duplicate key {}", crate::diagnostic::Quoted(key));
                        return Err(A::Error::custom(message));
                    }
                }
                Ok(map.finish())
            }
        }

        deserializer.deserialize_map(Unique)
    }
}

/// Reads a text into another one.
struct Append<'t>(&'t mut String);

impl<'de> DeserializeSeed<'de> for Append<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Append<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.push_str(text);
        Ok(())
    }
}

/// A map that still gets entries.
#[derive(Default)]
struct UnfinishedMap {
    texts: String,
    entries: Vec<EntryPlace>,
    /// All keys, once one was out of order.
    keys: Option<BTreeSet<String>>,
}

impl UnfinishedMap {
    fn length(&self) -> u32 {
        u32::try_from(self.texts.len()).unwrap_or(u32::MAX)
    }

    fn key(&self, entry: EntryPlace) -> &str {
        let place = |it: u32| usize::try_from(it).unwrap_or(usize::MAX);
        let text = self.texts.get(place(entry.start)..place(entry.middle));
        text.unwrap_or_default()
    }

    /// Adds the entry of the last texts, and returns its key if there was one before.
    fn add(&mut self, middle: u32) -> Option<&str> {
        let last = self.entries.last().copied();
        let entry = EntryPlace { start: last.map_or(0, |it| it.end), middle, end: self.length() };
        self.entries.push(entry);
        let is_behind = last.is_none_or(|last| self.key(last) < self.key(entry));
        if self.keys.is_none() && is_behind {
            return None;
        }
        let key = self.key(entry).to_owned();
        let mut keys = self.keys.take().unwrap_or_else(|| {
            let before = self.entries.iter().take(self.entries.len() - 1);
            before.map(|it| self.key(*it).to_owned()).collect()
        });
        let is_new = keys.insert(key);
        self.keys = Some(keys);
        (!is_new).then(|| self.key(entry))
    }

    fn finish(mut self) -> StringMap {
        if self.keys.is_some() {
            let mut entries = std::mem::take(&mut self.entries);
            // The last of equal keys comes first, and is the one that stays.
            entries.reverse();
            entries.sort_by(|a, b| self.key(*a).cmp(self.key(*b)));
            entries.dedup_by(|a, b| self.key(*a) == self.key(*b));
            self.entries = entries;
        }
        StringMap { texts: self.texts.into(), entries: self.entries.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_a_map_holds() {
        let texts = [("b", "2"), ("a", ""), ("", "x"), ("b", "3"), ("c", "4")];
        let map: StringMap = texts.into_iter().collect();
        let tree: BTreeMap<&str, &str> = texts.into_iter().collect();
        assert!(map.iter().eq(tree));
        assert_eq!(map.get("b"), Some("3"));
        assert_eq!(map.get("bb"), None);
        assert!(map.contains_key("") && !map.is_empty());
        assert_eq!(format!("{map:?}"), r#"{"": "x", "a": "", "b": "3", "c": "4"}"#);
    }

    #[test]
    fn many_keys_are_found_like_few() {
        let keys: Vec<String> = (0..2 * FEW).map(|it| format!("key-{it}")).collect();
        for count in [FEW, FEW + 1, keys.len()] {
            let map: StringMap = keys[..count].iter().map(|it| (it.as_str(), &it[4..])).collect();
            for (number, key) in keys.iter().enumerate() {
                assert_eq!(map.get(key), (number < count).then(|| &key[4..]));
            }
        }
    }

    #[test]
    fn changes_keep_the_order() {
        let mut map = StringMap::default();
        for (key, value) in [("b", "1"), ("a", "2"), ("b", "3")] {
            map.insert(key, value);
        }
        assert!(map.iter().eq([("a", "2"), ("b", "3")]));
        map.remove("a");
        assert!(map.keys().eq(["b"]));
        map.retain(|_, value| value != "3");
        assert_eq!(map, StringMap::default());
    }

    #[test]
    fn equal_whatever_the_order_of_the_entries() {
        let one: StringMap = [("a", "1"), ("b", "2")].into_iter().collect();
        let other: StringMap = [("b", "2"), ("a", "1")].into_iter().collect();
        assert_eq!(one, other);
    }

    #[test]
    fn json_has_each_key_once() {
        let map: StringMap = serde_json::from_str(r#"{"b":"\u0041","a":"é"}"#).unwrap();
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":"é","b":"A"}"#);
        let error = |text| serde_json::from_str::<StringMap>(text).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"a":"1","c":"2","b":"3","a":"4","d":"5"}"#),
            "duplicate key `a` at line 1 column 32"
        );
        assert_eq!(error(r#"{"a":"1","a":"2"}"#), "duplicate key `a` at line 1 column 17");
        assert!(error(r#"{"a":1}"#).starts_with("invalid type: integer `1`, expected a string"));
        assert!(error("[]").starts_with("invalid type: sequence, expected a map of texts"));
    }
}
