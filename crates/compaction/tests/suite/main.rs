//! Compaction from outside: what must hold for every conversation, named cases, and what the model sees.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod contents;
#[cfg(test)]
mod earlier;
#[cfg(test)]
mod facts;
#[cfg(test)]
mod focus;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod seen;
#[cfg(test)]
mod talk;
#[cfg(test)]
mod trajectory;
