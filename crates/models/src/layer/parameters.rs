//! Going over the parameters of a layer or model, whatever it is made of.

use std::sync::Arc;

use ndarray::{Array, ArrayViewD, ArrayViewMutD, Dimension};

use super::Weight;

/// Something with parameters: they have names like those in Hugging Face's files, joined by dots, and always come in the
/// same order. Gradients are values of the same type, so parameters and their gradients can be zipped:
///
/// ```
/// use foveal_models::layer::{Linear, Parameters, Random};
///
/// let mut layer = Linear::new(4, 2, &mut Random::new(1));
/// let mut grad = layer.zeros_like();
/// grad.bias.as_mut().unwrap().fill(1.0);
///
/// let mut gradients = Vec::new();
/// grad.visit("", &mut |_, gradient| gradients.push(gradient));
/// let mut gradients = gradients.into_iter();
/// layer.visit_mut("", &mut |name, mut parameter| {
///     let gradient = gradients.next().unwrap();
///     assert_eq!(parameter.shape(), gradient.shape(), "{name}");
///     parameter.scaled_add(-0.1, &gradient); // a step of gradient descent
/// });
/// assert_eq!(layer.bias.unwrap()[0], -0.1);
/// ```
pub trait Parameters {
    /// Calls `f` with the name of every parameter and the parameter itself, as it is kept.
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>));

    /// Calls `f` with the name of every parameter and the parameter itself, to be changed.
    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>));

    /// Calls `f` with the name and the values of every parameter; those of 16 bits are widened for it.
    fn visit<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, ArrayViewD<'a, f32>)) {
        self.params(prefix, &mut |name, param| f(name, param.values()));
    }

    /// Calls `f` with the name and the values of every parameter, which can be changed.
    fn visit_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ArrayViewMutD<'a, f32>)) {
        self.params_mut(prefix, &mut |name, param| f(name, param.into_values()));
    }

    /// How many numbers there are to train. They are counted by their shapes; none is looked at.
    fn parameter_count(&self) -> usize {
        let mut count = 0;
        self.params("", &mut |_, param| count += param.shape().iter().product::<usize>());
        count
    }

    /// A gradient to start from: the same shapes and layouts, all zero.
    #[must_use]
    fn zeros_like(&self) -> Self
    where
        Self: Clone,
    {
        let mut zeros = self.clone();
        zeros.visit_mut("", &mut |_, mut parameter| parameter.fill(0.0));
        zeros
    }
}

/// A parameter.
#[derive(Clone, Debug)]
pub enum Param<'a> {
    /// As numbers of 32 bits.
    Values(ArrayViewD<'a, f32>),
    /// As a file stores them.
    Weight(&'a Weight),
}

impl<'a> Param<'a> {
    /// Its shape.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Param::Values(values) => values.shape().to_vec(),
            Param::Weight(weight) => weight.shape().to_vec(),
        }
    }

    /// As numbers of 32 bits, of which a [`Weight`] of 16 bits makes a copy to keep.
    pub fn values(self) -> ArrayViewD<'a, f32> {
        match self {
            Param::Values(values) => values,
            Param::Weight(weight) => weight.view().into_dyn(),
        }
    }
}

/// A parameter, to be changed.
#[derive(Debug)]
pub enum ParamMut<'a> {
    /// As numbers of 32 bits.
    Values(ArrayViewMutD<'a, f32>),
    /// As a file stores them.
    Weight(&'a mut Weight),
}

impl<'a> ParamMut<'a> {
    /// As numbers of 32 bits, which a [`Weight`] becomes by it.
    pub fn into_values(self) -> ArrayViewMutD<'a, f32> {
        match self {
            ParamMut::Values(values) => values,
            ParamMut::Weight(weight) => weight.view_mut().into_dyn(),
        }
    }
}

/// A single array is its own parameter, named by the prefix.
impl<D: Dimension> Parameters for Array<f32, D> {
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        f(prefix, Param::Values(self.view().into_dyn()));
    }

    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        f(prefix, ParamMut::Values(self.view_mut().into_dyn()));
    }
}

/// Shared until it is changed.
impl<P: Parameters + Clone> Parameters for Arc<P> {
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        (**self).params(prefix, f);
    }

    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        Arc::make_mut(self).params_mut(prefix, f);
    }
}

/// None has no parameters.
impl<P: Parameters> Parameters for Option<P> {
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        self.iter().for_each(|part| part.params(prefix, f));
    }

    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        self.iter_mut().for_each(|part| part.params_mut(prefix, f));
    }
}

/// Part i of a list is named by its number.
impl<P: Parameters> Parameters for Vec<P> {
    fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, Param<'a>)) {
        self.iter().enumerate().for_each(|(i, part)| part.params(&join(prefix, &i.to_string()), f));
    }

    fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, ParamMut<'a>)) {
        self.iter_mut().enumerate().for_each(|(i, part)| part.params_mut(&join(prefix, &i.to_string()), f));
    }
}

/// `prefix.name`, or the one that is not empty.
pub(crate) fn join(prefix: &str, name: &str) -> String {
    match (prefix, name) {
        ("", name) => name.to_owned(),
        (prefix, "") => prefix.to_owned(),
        (prefix, name) => format!("{prefix}.{name}"),
    }
}

/// Implements [`Parameters`] for a struct by naming its fields: `parameters!(Linear { weight: "weight", bias: "bias" });`
macro_rules! parameters {
    ($layer:ty { $($field:ident: $name:literal),+ $(,)? }) => {
        impl $crate::layer::Parameters for $layer {
            fn params<'a>(&'a self, prefix: &str, f: &mut dyn FnMut(&str, $crate::layer::Param<'a>)) {
                $(self.$field.params(&$crate::layer::join(prefix, $name), f);)+
            }

            fn params_mut<'a>(&'a mut self, prefix: &str, f: &mut dyn FnMut(&str, $crate::layer::ParamMut<'a>)) {
                $(self.$field.params_mut(&$crate::layer::join(prefix, $name), f);)+
            }
        }
    };
}
pub(crate) use parameters;
