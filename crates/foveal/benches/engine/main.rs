//! Measures the engine alone: `cargo bench -p foveal --bench engine [-- PART-OF-A-NAME]`.
//!
//! Each work is timed in rounds that alternate with the machine's own limit: the peak of its multiply-adds, or for decoding
//! the bandwidth of its memory. `--worker` serves a coordinator instead, see `worker.rs`.

mod limits;
mod memory;
mod spec;
mod worker;
mod works;

use foveal::Precision;
use spec::{Added, Kind, Result, Spec, Visible};
use works::{Source, Work};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

fn main() -> Result<()> {
    // As every program should that makes and drops large arrays all the time.
    foveal_compute::keep_memory();
    foveal_compute::large_pages();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--worker") {
        return worker::serve();
    }
    if !arguments.iter().any(|argument| argument == "--bench") {
        // `cargo test --all-targets` runs this program too, and is not the time to measure.
        println!("measures the engine under `cargo bench`");
        return Ok(());
    }
    let part = arguments.iter().find(|argument| !argument.starts_with("--"));
    let chosen = |name: &str| part.is_none_or(|part| name.contains(part.as_str()));

    println!("{} threads, {}, f32; medians of alternating rounds\n", rayon::current_num_threads(), foveal::Isa::best());
    println!("{:<44} {:>12} {:>12} {:>18}", "work", "time", "rate", "share of limit");
    for (name, spec) in works().iter().filter(|(name, _)| chosen(name)) {
        println!("{name:<44} {}", measured(spec)?);
    }
    println!();
    for (name, spec) in memory_works().iter().filter(|(name, _)| chosen(name)) {
        let mut work = Work::load(spec, &Source::Random)?;
        let bytes = worker::extra_memory(spec, &mut work)?;
        println!("{name:<44} {:>8.2} MiB above inputs and outputs", bytes as f64 / f64::from(1 << 20));
    }
    Ok(())
}

fn works() -> Vec<(String, Spec)> {
    let shapes = [[1, 12, 1024, 64], [1, 8, 4096, 64], [1, 8, 4096, 128]];
    let masks = [("full", Visible::All), ("causal", Visible::Causal)];
    let mut works = Vec::new();
    for (verb, kind) in [("forward", Kind::Forward), ("backward", Kind::Backward)] {
        for shape in shapes {
            for (name, mask) in masks {
                works.push((format!("{verb} {} {name}", dimensions(shape)), Spec { mask, ..Spec::new(kind, shape) }));
            }
        }
    }
    works.push(("backward 1×1×8192×64 full".into(), Spec::new(Kind::Backward, [1, 1, 8192, 64])));

    let plain = Spec::new(Kind::Forward, [1, 12, 1024, 64]);
    let long = Spec::new(Kind::Forward, [1, 12, 4096, 64]);
    let grouped = Spec::new(Kind::Decode, [1, 64, 1, 128]);
    let head = [1, 1, 16384, 64];
    let [forward, backward] = [Kind::Forward, Kind::Backward].map(|kind| Spec::new(kind, [1, 1, 32768, 64]));
    let others = [
        ("forward 1×12×1024×64 keep-mask", Spec { mask: Visible::Keep, ..plain }),
        ("forward 1×12×1024×64 ALiBi", Spec { bias: Added::Alibi, ..plain }),
        ("forward 1×12×1024×64 ALiBi as a function", Spec { bias: Added::AlibiFunction, ..plain }),
        ("forward 1×12×1024×64 ALiBi, causal", Spec { mask: Visible::Causal, bias: Added::Alibi, ..plain }),
        ("forward 1×12×1024×64 per-head bias", Spec { bias: Added::Dense, ..plain }),
        ("forward 1×12×4096×64 causal", Spec { mask: Visible::Causal, ..long }),
        ("forward 1×12×4096×64 window(511, 0)", Spec { mask: Visible::Window(511), ..long }),
        ("forward 1×1×32768×64 causal", Spec { mask: Visible::Causal, ..forward }),
        ("forward 1×1×32768×64 Longformer 512", Spec { mask: Visible::Longformer(512), ..forward }),
        ("backward 1×1×32768×64 Longformer 512", Spec { mask: Visible::Longformer(512), ..backward }),
        ("decode 1×12×1×64, 32768 keys", Spec { keys: 32768, ..Spec::new(Kind::Decode, [1, 12, 1, 64]) }),
        (
            "decode 1×12×1×64, 32768 keys in bf16",
            Spec { keys: 32768, cache: Precision::Bf16, ..Spec::new(Kind::Decode, [1, 12, 1, 64]) },
        ),
        ("decode 1×64×1×128, 8 heads of 32768 keys", Spec { kv_heads: 8, keys: 32768, ..grouped }),
        ("call 1×4×16×32", Spec::new(Kind::Call, [1, 4, 16, 32])),
        ("forward 1×1×16384×64 full", Spec::new(Kind::Forward, head)),
        ("map of 16384² to 1024²", Spec::new(Kind::Map, head)),
        ("tile of 512²", Spec::new(Kind::Tile, head)),
    ];
    works.extend(others.map(|(name, spec)| (name.to_owned(), spec)));
    works
}

fn memory_works() -> [(&'static str, Spec); 2] {
    let head = [1, 1, 65536, 64];
    [
        ("memory of forward 1×1×65536×64", Spec::new(Kind::Call, head)),
        ("memory of backward 1×1×65536×64", Spec::new(Kind::Backward, head)),
    ]
}

/// The row of the table: time, rate, and share of the limit.
fn measured(spec: &Spec) -> Result<String> {
    let decoding = spec.kind == Kind::Decode;
    let limit = Spec { kind: if decoding { Kind::ReadBandwidth } else { Kind::FmaPeak }, ..*spec };
    let amount = |spec: &Spec| if decoding { spec.bytes() as f64 } else { spec.flops() };
    let mut sides = [(*spec, Work::load(spec, &Source::Random)?), (limit, Work::load(&limit, &Source::Random)?)];

    // About 0.1 s for each side of a round, and 2 s for a work that takes longer than that.
    let mut repeats = [1, 1];
    for ((_, work), repeats) in sides.iter_mut().zip(&mut repeats) {
        *repeats = ((1e8 / worker::nanoseconds(work, 1, 1)?) as u64).clamp(1, 100_000);
    }
    let rounds = if repeats[0] > 1 { 11 } else { 5 };
    let (mut times, mut shares) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut rates = [0.0; 2];
        for (((spec, work), &n), rate) in sides.iter_mut().zip(&repeats).zip(&mut rates) {
            let ns = worker::nanoseconds(work, n, u64::from(n > 1))?;
            *rate = amount(spec) / ns;
            times.extend((spec.kind != limit.kind).then_some(ns));
        }
        shares.push(rates[0] / rates[1]);
    }
    let (time, share) = (median(times), median(shares));
    let unit = if decoding { "GB/s" } else { "GFLOP/s" };
    let time_text = if time < 1e5 { format!("{:.2} µs", time / 1e3) } else { format!("{:.2} ms", time / 1e6) };
    let rate = format!("{:.0} {unit}", amount(spec) / time);
    Ok(format!("{time_text:>12} {rate:>12} {:>16.0} %", 100.0 * share))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn dimensions(shape: [usize; 4]) -> String {
    shape.map(|n| n.to_string()).join("×")
}
