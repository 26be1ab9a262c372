//! Learning to tell images apart.

use ndarray::{Array4, Axis};

use super::{Fingerprint, StepContext, Task};
use crate::layer::{CrossEntropy, Loss, Random, expect};
use crate::model::Vit;
use crate::trace::Probe;
use crate::{Error, Result};

/// Images and their classes. The last part is held out.
#[derive(Clone, Debug)]
pub struct Images {
    /// [N, C, height, width]
    images: Array4<f32>,
    classes: Vec<u32>,
    held_out: usize,
    batch: usize,
}

/// Images of one run of an evaluation.
const AT_ONCE: usize = 64;

impl Images {
    /// Learns from `batch` of the images at a time, but not from the last `held_out`.
    ///
    /// # Errors
    /// If there are not as many classes as images, or nothing is left to learn from or to evaluate on.
    pub fn new(images: Array4<f32>, classes: Vec<u32>, held_out: usize, batch: usize) -> Result<Self> {
        expect("the classes of the images", &[images.dim().0], &[classes.len()])?;
        if batch == 0 || held_out == 0 || held_out >= classes.len() {
            return Err(Error::TooShort { tokens: classes.len(), least: held_out + 1 });
        }
        Ok(Images { images, classes, held_out, batch })
    }

    /// The share of held-out images whose class the model tells.
    ///
    /// # Errors
    /// If the images are not of the model's size.
    pub fn accuracy(&self, model: &Vit) -> Result<f64> {
        let mut right = 0;
        self.for_held_out(model, |logits, classes| {
            for (row, &class) in logits.outer_iter().zip(classes) {
                let best = (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b]));
                right += usize::from(best == Some(class as usize));
            }
            Ok(())
        })?;
        Ok(right as f64 / self.held_out as f64)
    }

    fn for_held_out(
        &self,
        model: &Vit,
        mut look: impl FnMut(&ndarray::Array2<f32>, &[u32]) -> Result<()>,
    ) -> Result<()> {
        let all: Vec<usize> = (self.classes.len() - self.held_out..self.classes.len()).collect();
        for chosen in all.chunks(AT_ONCE) {
            let images = self.images.select(Axis(0), chosen);
            let hidden = model.infer(&images, &mut Probe::default())?;
            look(&model.classify(&hidden)?, &self.classes[chosen[0]..chosen[0] + chosen.len()])?;
        }
        Ok(())
    }
}

impl Task for Images {
    type Model = Vit;
    /// Its number.
    type Example = usize;

    fn choose(&self, random: &mut Random) -> Vec<usize> {
        (0..self.batch).map(|_| random.below(self.classes.len() - self.held_out)).collect()
    }

    fn counted(&self, _: &usize) -> usize {
        1
    }

    fn learn(&self, model: &Vit, chosen: &[usize], context: &StepContext, grad: &mut Vit) -> Result<Loss> {
        let classes: Vec<u32> = chosen.iter().map(|&i| self.classes[i]).collect();
        let (mut logits, saved) = model.forward(&self.images.select(Axis(0), chosen), context.dropout())?;
        let loss = context.cross_entropy(None).forward_backward(&mut logits, &classes)?;
        context.backward(|| model.backward(&saved, &logits, grad))?;
        Ok(loss)
    }

    fn evaluate(&self, model: &Vit) -> Result<f32> {
        let mut sum = 0.0;
        self.for_held_out(model, |logits, classes| {
            sum += f64::from(CrossEntropy::new().forward(logits, classes)?.mean) * classes.len() as f64;
            Ok(())
        })?;
        Ok((sum / self.held_out as f64) as f32)
    }

    fn fingerprint(&self, model: &Vit) -> Fingerprint {
        Fingerprint::default()
            .data("images", self.images.iter().map(|x| x.to_bits()))
            .data("classes", self.classes.iter().copied())
            .fact("held-out images", self.held_out)
            .fact("batch", self.batch)
            .fact("model", format!("{:?}", model.config()))
    }
}
