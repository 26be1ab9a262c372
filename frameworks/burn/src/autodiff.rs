//! The same on a device with autodiff: what backward needs is kept, and its gradients are registered.

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::{Flex, FlexTensor};
use burn::backend::tensor::FloatTensor;
use foveal::{GradientsMut, Saved, Scratch};

use crate::arrays::{Owned, forwards, read};
use crate::operation::{Call, FovealBackend};

#[derive(Debug)]
struct Attend;

/// What backward needs: where q, k and v are found, the output, and the call with its log-sum-exp.
#[derive(Clone, Debug)]
struct Kept {
    inputs: [NodeId; 3],
    out: FlexTensor,
    call: Call,
}

impl Backward<Flex, 3> for Attend {
    type State = Kept;

    fn backward(self, ops: Ops<Kept, 3>, gradients: &mut Gradients, checkpointer: &mut Checkpointer) {
        let Kept { inputs, out, call } = ops.state;
        let dout = gradients.consume::<Flex>(&ops.node);
        let [q, k, v] = inputs.map(|node| checkpointer.retrieve_node_output::<FlexTensor>(node));
        // A call that was refused has no gradient: `attention` has returned its error.
        let Some(Ok(lse)) = call.outcome.get() else { return };
        let [q, k, v, out, dout] = &[&q, &k, &v, &out, &dout].map(forwards);
        let room = |tensor: &FlexTensor| Owned::zeros(tensor.dtype(), read(tensor).dim());
        let (mut dq, mut dk, mut dv) = (room(q), room(k), room(v));
        let targets = GradientsMut::set(dq.target(), dk.target(), dv.target());
        let saved = Saved { out: read(out), lse: lse.view() };
        Scratch::lend(|scratch| {
            call.attention.backward_into(read(q), read(k), read(v), saved, read(dout), targets, scratch)
        })
        .expect("the forward pass has checked the shapes");
        for (parent, gradient) in ops.parents.into_iter().zip([dq, dk, dv]) {
            if let Some(parent) = parent {
                gradients.register::<Flex>(parent.id, gradient.into_tensor());
            }
        }
    }
}

impl<C: CheckpointStrategy> FovealBackend for Autodiff<Flex, C> {
    fn foveal_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        call: Call,
    ) -> FloatTensor<Self> {
        match Attend.prepare::<C>([q.node(), k.node(), v.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prepared) => {
                let inputs = [&q, &k, &v].map(|tensor| prepared.checkpoint(tensor));
                let out = call.forward(q.primitive(), k.primitive(), v.primitive());
                prepared.finish(Kept { inputs, out: out.clone(), call }, out)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(call.forward(q.primitive(), k.primitive(), v.primitive())),
        }
    }
}
