//! Known models in numbers.

use foveal_models::model::{BertConfig, Gpt2Config, LlamaConfig, TransformerConfig, VitConfig};
use foveal_view::{Chart, Steps};
use serde_json::json;

use crate::number::{bytes, counted, grouped, length};
use crate::{Bilingual, Knob, Knobs, Lab, Report, Result, Table, Text, Watch, text};

pub const LAB: Lab = Lab {
    name: "configurations",
    title: Bilingual { en: "Known models in numbers", ko: "숫자로 보는 유명한 모델들" },
    summary: Bilingual {
        en: "Nearly all parameters are in matrices of width × width, so doubling the width makes a model four times as large, \
         and a token costs about two operations for each parameter. The scores of attention come on top: \
         they need no parameters, but their memory grows with the square of the context.",
        ko: "매개변수는 거의 모두 너비 × 너비 행렬에 있으므로 너비가 2배가 되면 모델은 약 4배 커지고, 토큰 하나에는 매개변수 하나당 약 2번의 연산이 듭니다. \
         여기에 어텐션 점수가 더해집니다. 점수에는 매개변수가 필요 없지만, 그 메모리는 문맥 길이의 제곱으로 늘어납니다.",
    },
    knobs: &[TOKENS],
    work,
};

const TOKENS: Knob = Knob::several(
    "tokens",
    Bilingual { en: "Lengths to count for", ko: "계산할 길이" },
    &[1024, 4096, 16_384],
    1..=1 << 24,
);

/// The models whose memory is drawn.
const DRAWN: [&str; 4] = ["GPT-3", "Llama 7B", "BERT large", "GPT-2"];

fn work(knobs: &Knobs, _: Watch) -> Result<Report> {
    let lengths = knobs.get_several(&TOKENS);
    let models = models();
    let mut sizes = Table::new([
        text("model", "모델"),
        text("layers", "층"),
        text("width", "너비"),
        text("heads", "헤드"),
        text("head dim", "헤드 차원"),
        text("context", "문맥"),
        text("parameters", "매개변수"),
        "".into(),
        text("GFLOP/token", "GFLOP/토큰"),
    ])
    .title(text(
        "Sizes (9/3: 9 heads share 3 key heads), and operations of a token at full context",
        "크기(9/3: 헤드 9개가 키 헤드 3개를 공유), 그리고 문맥이 가득 찼을 때 토큰 하나의 연산 수",
    ));
    for model in &models {
        sizes.row([
            model.name.to_owned(),
            model.layers.clone(),
            grouped(model.width as u128),
            if model.key_heads == model.heads {
                model.heads.to_string()
            } else {
                format!("{}/{}", model.heads, model.key_heads)
            },
            model.head_dim.to_string(),
            grouped(model.context as u128),
            grouped(model.parameters),
            counted(model.parameters as f64),
            format!("{:.2}", model.operations(model.context) / 1e9),
        ]);
    }
    let head = |title: Text| {
        let lengths =
            lengths.iter().map(|tokens| text("tokens", "토큰").map(|name| format!("{} {name}", length(*tokens))));
        Table::new([text("model", "모델")].into_iter().chain(lengths)).title(title)
    };
    let mut scores =
        head(text("Memory of the scores of one layer, all heads, f32", "한 층, 모든 헤드의 점수 메모리, f32"));
    let mut caches = head(text(
        "Memory of keys and values of all layers while writing (KV cache), f32",
        "글을 쓰는 동안 모든 층의 키와 값(KV 캐시) 메모리, f32",
    ));
    for model in &models {
        let row = |of: fn(&Model, usize) -> f64| {
            let cells = lengths.iter().map(move |tokens| bytes(of(model, *tokens)));
            [model.name.to_owned()].into_iter().chain(cells).collect::<Vec<_>>()
        };
        scores.row(row(Model::score_bytes));
        if model.cached > 0 {
            caches.row(row(Model::cache_bytes));
        }
    }
    let figures = models.iter().map(|model| {
        let by_length = lengths.iter().map(|&tokens| {
            json!({
                "tokens": tokens, "score_bytes": model.score_bytes(tokens), "flops_per_token": model.operations(tokens),
                "cache_bytes": (model.cached > 0).then(|| model.cache_bytes(tokens)),
            })
        });
        json!({
            "model": model.name, "layers": model.blocks, "width": model.width, "heads": model.heads,
            "key_heads": model.key_heads, "head_dim": model.head_dim, "context": model.context,
            "parameters": model.parameters,
            "published_millions": PUBLISHED.iter().find(|known| known.0 == model.name).map(|known| known.1), "flops_per_token": model.operations(model.context),
            "lengths": by_length.collect::<Vec<_>>(),
        })
    });
    let report = Report::new(json!({ "models": figures.collect::<Vec<_>>() }));
    let shared =
        models.iter().filter_map(|model| Some((model, *PUBLISHED.iter().find(|known| known.0 == model.name)?)));
    let shared: Vec<String> = shared
        .map(|(model, (name, millions))| format!("{name}: {} / {millions} M", grouped(model.parameters)))
        .collect();
    let shared = shared.join(", ");
    let report = report.prose(text(
        format!("The Transformer has one table of 37,000 word pieces for both languages and for its output. Counted so / as its paper says: {shared}."),
        format!("Transformer는 두 언어와 출력에 37,000개짜리 단어 조각 표 하나를 함께 씁니다. 그렇게 센 값 / 논문의 값: {shared}."),
    ));
    report.table(sizes).table(scores).table(caches).scene(|language| {
        let tr = |english, korean| language.choose(english, korean);
        let chart = Chart::new(tr("tokens", "토큰"), "GB").steps(Steps::Log, Steps::Log);
        let drawn = DRAWN.iter().filter_map(|name| models.iter().find(|model| model.name == *name));
        let chart = drawn.fold(chart, |chart, model| {
            let points = lengths.iter().map(|tokens| (*tokens as f64, model.score_bytes(*tokens) / GB));
            chart.series(format!("{}, {} {}", model.name, model.heads, tr("heads", "헤드")), points.collect::<Vec<_>>())
        });
        Ok(chart.title(tr("Memory of the scores of one layer", "한 층의 점수 메모리")).note("f32").language(language))
    })
}

/// Millions of parameters as the paper says (Vaswani 2017, table 3).
const PUBLISHED: [(&str, u32); 2] = [("Transformer", 65), ("Transformer big", 213)];

/// 2³⁰ bytes.
const GB: f64 = (1u64 << 30) as f64;

/// What the tables need to know of a model.
struct Model {
    name: &'static str,
    /// As shown: those of an encoder and of a decoder apart.
    layers: String,
    blocks: usize,
    /// Attention layers: a decoder that also looks at an encoder has two in each block.
    attentions: usize,
    /// Matrices of width × hidden in each MLP: three if it is gated.
    mlp_matrices: usize,
    width: usize,
    heads: usize,
    key_heads: usize,
    head_dim: usize,
    hidden: usize,
    context: usize,
    /// Tokens that are scored as the next; 0 for a model that writes nothing.
    outputs: usize,
    /// Attention layers whose keys and values are kept while writing.
    cached: usize,
    parameters: u128,
}

impl Model {
    /// Multiplications and additions of one token in forward, with `tokens` to attend to. Of an encoder-decoder: one token read
    /// and one written.
    fn operations(&self, tokens: usize) -> f64 {
        let [d, h, g, dim, f] = [self.width, self.heads, self.key_heads, self.head_dim, self.hidden].map(|x| x as f64);
        let projections = d * (h + 2.0 * g) * dim + h * dim * d;
        let mlp = self.mlp_matrices as f64 * d * f;
        let pairs = 2.0 * tokens as f64 * h * dim;
        let attention = self.attentions as f64 * (projections + pairs);
        2.0 * (attention + self.blocks as f64 * mlp + self.outputs as f64 * d)
    }

    /// All heads of one layer, f32.
    fn score_bytes(&self, tokens: usize) -> f64 {
        4.0 * self.heads as f64 * (tokens as f64).powi(2)
    }

    /// Keys and values of all layers, f32.
    fn cache_bytes(&self, tokens: usize) -> f64 {
        4.0 * 2.0 * (self.cached * self.key_heads * self.head_dim) as f64 * tokens as f64
    }
}

fn models() -> Vec<Model> {
    vec![
        gpt2("GPT-2", &Gpt2Config::small()),
        gpt2("GPT-2 medium", &Gpt2Config::medium()),
        gpt2("GPT-2 large", &Gpt2Config::large()),
        gpt2("GPT-2 XL", &Gpt2Config::xl()),
        gpt2("GPT-3", &Gpt2Config::gpt3()),
        bert("BERT base", &BertConfig::base()),
        bert("BERT large", &BertConfig::large()),
        bert("MiniLM", &BertConfig::minilm()),
        llama("SmolLM2 135M", &LlamaConfig::smollm2_135m()),
        llama("TinyLlama", &LlamaConfig::tinyllama()),
        llama("Llama 7B", &LlamaConfig::llama_7b()),
        transformer("Transformer", &TransformerConfig::base()),
        transformer("Transformer big", &TransformerConfig::big()),
        vit("ViT base", &VitConfig::base16()),
    ]
}

fn gpt2(name: &'static str, config: &Gpt2Config) -> Model {
    let &Gpt2Config { vocabulary, context, width, layers, heads, hidden, .. } = config;
    Model {
        name,
        layers: layers.to_string(),
        blocks: layers,
        attentions: layers,
        mlp_matrices: 2,
        width,
        heads,
        key_heads: heads,
        head_dim: width / heads,
        hidden,
        context,
        outputs: vocabulary,
        cached: layers,
        parameters: config.parameters(),
    }
}

fn bert(name: &'static str, config: &BertConfig) -> Model {
    let &BertConfig { context, width, layers, heads, hidden, .. } = config;
    encoder(name, (layers, width, heads, hidden), context, config.parameters())
}

fn vit(name: &'static str, config: &VitConfig) -> Model {
    let &VitConfig { width, layers, heads, hidden, .. } = config;
    encoder(name, (layers, width, heads, hidden), config.tokens(), config.parameters())
}

fn encoder(
    name: &'static str,
    (layers, width, heads, hidden): (usize, usize, usize, usize),
    context: usize,
    parameters: u128,
) -> Model {
    Model {
        name,
        layers: layers.to_string(),
        blocks: layers,
        attentions: layers,
        mlp_matrices: 2,
        width,
        heads,
        key_heads: heads,
        head_dim: width / heads,
        hidden,
        context,
        outputs: 0,
        cached: 0,
        parameters,
    }
}

fn llama(name: &'static str, config: &LlamaConfig) -> Model {
    let &LlamaConfig { vocabulary, context, width, layers, heads, key_heads, head_dim, hidden, .. } = config;
    Model {
        name,
        layers: layers.to_string(),
        blocks: layers,
        attentions: layers,
        mlp_matrices: 3,
        width,
        heads,
        key_heads,
        head_dim,
        hidden,
        context,
        outputs: vocabulary,
        cached: layers,
        parameters: config.parameters(),
    }
}

fn transformer(name: &'static str, config: &TransformerConfig) -> Model {
    let &TransformerConfig { target_vocabulary, context, width, heads, hidden, encoder_layers, decoder_layers, .. } =
        config;
    // One table of word pieces for both languages and for the predictions (section 3.4 of the paper).
    let sharing = (config.source_vocabulary * width) as u128;
    Model {
        name,
        layers: format!("{encoder_layers}+{decoder_layers}"),
        blocks: encoder_layers + decoder_layers,
        attentions: encoder_layers + 2 * decoder_layers,
        mlp_matrices: 2,
        width,
        heads,
        key_heads: heads,
        head_dim: width / heads,
        hidden,
        context,
        outputs: target_vocabulary,
        cached: 2 * decoder_layers,
        parameters: config.parameters() - sharing,
    }
}
