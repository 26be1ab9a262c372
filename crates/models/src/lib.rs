//! Transformer models whose every attention can be looked at.
