//! Choices: options whose values are those of another type.

/// Declares the values of an option, each with its help, that are values of another type.
macro_rules! choice {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident of $of:ty {
        $($(#[$help:meta])* $value:ident,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
        $visibility enum $name {
            $($(#[$help])* $value,)+
        }

        impl From<$name> for $of {
            fn from(choice: $name) -> Self {
                match choice {
                    $($name::$value => Self::$value,)+
                }
            }
        }
    };
}

pub(crate) use choice;
