//! Prints sentences of the grammar: `cargo run --example sentences -- [number] [seed] [kind]`.

use foveal_grammar::{Certainty, Grammar, Random};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(20);
    let mut random = Random::new(arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1));
    let kind = arguments.next();
    let grammar = Grammar::new();
    let pairs = std::iter::repeat_with(|| grammar.sample(&mut random));
    let wanted = pairs.filter(|pair| kind.as_ref().is_none_or(|kind| format!("{:?}", pair.construction) == *kind));
    for pair in wanted.take(count) {
        let links: Vec<String> = pair
            .word_links(Certainty::Sure)
            .into_iter()
            .map(|(english, korean)| format!("{}-{}", pair.english[english], pair.korean[korean]))
            .collect();
        println!("{:?}\t{}\t{}\t{}", pair.construction, pair.english_text(), pair.korean_text(), links.join(" "));
    }
}
