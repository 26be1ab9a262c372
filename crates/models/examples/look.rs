//! The whole way: text → tokens → model → trace → what each token looks at.
//!
//!     cargo run --release -p foveal-models --example look -- MODEL "some text"
//!
//! MODEL is a folder, a .gguf file or a name on the hub, of a GPT-2 or a Llama.

use foveal_models::analysis::{Repeated, report, top};
use foveal_models::generate::GenerateOptions;
use foveal_models::trace::{Capture, Kind, Probe};
use foveal_models::{OpenModel, Result};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(name), Some(text)) = (args.next(), args.next()) else {
        println!("usage: look MODEL TEXT");
        return Ok(());
    };
    let open = OpenModel::open(&name)?;
    let (tokenizer, model) = (open.tokenizer()?, open.model.as_language_model()?);

    let mut session = open.session()?.watched_by(Probe::new(Capture::All));
    let options = GenerateOptions { most: 12, stop: open.stop.clone(), ..GenerateOptions::default() };
    let prompt = tokenizer.encode(&text)?;
    session.generate(prompt.ids(), options)?.try_for_each(|token| token.map(drop))?;

    let encoding = tokenizer.describe(session.tokens())?;
    println!("{}\n", encoding.text());
    let trace = session.trace();
    let layer = model.shape().layers / 2;
    println!("what each token looks at most, layer {layer}, head 0:");
    for (label, links) in encoding.labels().iter().zip(top(trace.layer(Kind::Decoder, layer)?, 0, 0, 3)?) {
        let links =
            links.iter().map(|link| format!("{:.2} {:<12}", link.weight, format!("{:?}", encoding.labels()[link.key])));
        println!("{:>14}  {}", format!("{label:?}"), links.collect::<String>().trim_end());
    }

    let mut heads = report(model, session.tokens(), Repeated::default())?;
    heads.sort_by(|a, b| b.induction.unwrap_or(0.0).total_cmp(&a.induction.unwrap_or(0.0)));
    println!("\nthe five heads that continue repetitions best:");
    for scores in &heads[..heads.len().min(5)] {
        let (layer, head) = (scores.head.site.layer, scores.head.head);
        println!("layer {layer:>2}, head {head:>2}: induction {:.3}", scores.induction.unwrap_or(0.0));
    }
    Ok(())
}
