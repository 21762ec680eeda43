//! Forms: a type that documents are read into, with the schema it asks for.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use crate::diagnostic::{Finding, Mistakes, escaped, mistake};
use crate::place::Place;

use super::tree::TreeNode;
use super::walk;

/// The form of a valid tree that becomes a `T`.
///
/// Made once and used for many trees.
pub struct Form<T> {
    schema: Schema,
    reads: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + JsonSchema> Form<T> {
    /// Returns the form of a type.
    pub fn new() -> Self {
        Self { schema: SchemaGenerator::default().into_root_schema_for::<T>(), reads: PhantomData }
    }

    /// Reads the tree at `place`.
    ///
    /// # Errors
    /// Everything that is wrong with its structure, in the order of the text.
    pub fn read(&self, node: &TreeNode, place: &Place) -> Result<T, Mistakes> {
        match self.salvage(node, place) {
            (Some(value), problems) if problems.is_empty() => Ok(value),
            (_, problems) => Err(problems),
        }
    }

    /// Reads the tree at `place`, and reports all mistakes in its structure.
    ///
    /// If there are mistakes, the value is only good for finding more: broken fields are missing in it,
    /// and missing texts are empty.
    pub fn salvage(&self, node: &TreeNode, place: &Place) -> (Option<T>, Mistakes) {
        let (value, mut problems) = walk::walk(self.schema.as_value(), node, place);
        let read = value.map(serde_json::from_value).transpose();
        let value = read.unwrap_or_else(|error| {
            // Only mistakes that a schema cannot describe get here, or the rest of a broken value.
            if problems.is_empty() {
                let message = escaped(&error.to_string(), 240);
                problems.push(Finding::new(&mistake::INVALID_TYPE, message).at(place.clone(), ""));
            }
            None
        });
        (value, problems)
    }
}

impl<T: DeserializeOwned + JsonSchema> Default for Form<T> {
    fn default() -> Self {
        Self::new()
    }
}
