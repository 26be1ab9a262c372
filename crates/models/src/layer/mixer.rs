//! The token mixer of a block: where tokens exchange information.

use super::{Family, MultiHeadAttention, Param, ParamMut, Parameters};

/// Attention of any kind, or a Fourier transform.
#[derive(Clone, Debug, PartialEq)]
pub enum Mixer {
    /// Attention.
    Attention(Box<MultiHeadAttention>),
    /// FNet's transform, which learns nothing.
    Fourier,
}

impl From<MultiHeadAttention> for Mixer {
    fn from(attention: MultiHeadAttention) -> Self {
        Mixer::Attention(Box::new(attention))
    }
}

impl Mixer {
    /// The attention, if it is one.
    pub fn attention(&self) -> Option<&MultiHeadAttention> {
        match self {
            Mixer::Attention(attention) => Some(attention),
            Mixer::Fourier => None,
        }
    }

    /// The same, to be changed.
    pub fn attention_mut(&mut self) -> Option<&mut MultiHeadAttention> {
        match self {
            Mixer::Attention(attention) => Some(attention),
            Mixer::Fourier => None,
        }
    }

    /// The kind.
    pub fn family(&self) -> Family {
        self.attention().map_or(Family::Fourier, |attention| attention.mechanism.family())
    }
}

impl Parameters for Mixer {
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        self.attention().into_iter().for_each(|attention| attention.params(prefix, f));
    }

    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        self.attention_mut().into_iter().for_each(|attention| attention.params_mut(prefix, f));
    }
}
