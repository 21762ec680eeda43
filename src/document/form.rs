//! Forms: a type that documents are read into, with the schema it asks for.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use crate::diagnostic::{Diagnostic, escaped};
use crate::place::Place;

use super::tree::Node;
use super::walk;

/// What a tree must look like to become a `T`.
///
/// Made once and used for many trees.
pub struct Form<T> {
    schema: Schema,
    reads: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + JsonSchema> Form<T> {
    /// Returns the form of a type.
    pub fn new() -> Self {
        Self {
            schema: SchemaGenerator::default().into_root_schema_for::<T>(),
            reads: PhantomData,
        }
    }

    /// Returns the schema, for editors.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Reads the tree that stands at `place`.
    ///
    /// # Errors
    /// Everything that is wrong with its structure, in the order of the text.
    pub fn read(&self, node: &Node, place: &Place) -> Result<T, Vec<Diagnostic>> {
        let value = walk::walk(self.schema.as_value(), node, place)?;
        serde_json::from_value(value).map_err(|error| {
            // Only what a schema cannot say gets here.
            let message = escaped(&error.to_string(), 240);
            vec![Diagnostic::error("wrong-type", message).at(place.clone(), "")]
        })
    }
}

impl<T: DeserializeOwned + JsonSchema> Default for Form<T> {
    fn default() -> Self {
        Self::new()
    }
}
